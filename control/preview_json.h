/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * preview_json.h: a preview as docs/api.md describes the answer to POST /v1/plan.
 */
#ifndef HB_CONTROL_PREVIEW_JSON_H
#define HB_CONTROL_PREVIEW_JSON_H

#include <jansson.h>

#include "preview.h"

/* A new object, the caller's; NULL without memory. */
json_t *hb_preview_json(const struct hb_preview *preview);

#endif
