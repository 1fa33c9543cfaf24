/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * duration.h: times as people write them, "500ms", "30s", "10m", "2h". Pure.
 */
#ifndef HB_CONTROL_DURATION_H
#define HB_CONTROL_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/* False when the text is no such time, or one above a year; *ms is left alone then. */
bool hb_duration_parse(const char *text, uint64_t *ms);

#endif
