/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * preview_offline.h: a preview from two files, without a running control.
 *
 * The old file counts as settled: every backend is up and can be reached. Live flows are not known.
 * Pure.
 */
#ifndef HB_CONTROL_PREVIEW_OFFLINE_H
#define HB_CONTROL_PREVIEW_OFFLINE_H

#include <jansson.h>

#include "config.h"

/* The plan in *plan (the caller's), as hb_preview_json() makes it. 0; -EINVAL or -ENOSPC: a reload
 * would refuse the new file, and `complaint` says why; -ENOMEM. */
int hb_preview_files(const struct hb_config *old, const struct hb_config *new, json_t **plan,
                     char *complaint, size_t size);

#endif
