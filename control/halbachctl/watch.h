/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.h: commands that repeat (--watch).
 */
#ifndef HB_CTL_WATCH_H
#define HB_CTL_WATCH_H

#include <stdbool.h>

#include "ctl.h"

/* Runs the command again and again. On a terminal each output replaces the one before, and a
 * control that is away is waited for; else outputs follow one another, and the first failure ends
 * it. Until ctrl-C, or until nobody reads. Returns the exit status. */
int hb_watch(const struct hb_ctl *ctl);

/* Shows `now`, the members of all answers in one object, and what was there `seconds` before. */
typedef void (*hb_rates_show)(const struct hb_ctl *ctl, const json_t *now, const json_t *before,
                              double seconds);

/* Asks for the status and `paths` (NULL ends them) and shows the difference to the answers an
 * interval before: once, or again and again like hb_watch(). Returns the exit status. */
int hb_watch_rates(const struct hb_ctl *ctl, const char *const *paths, bool once,
                   hb_rates_show show);

/* The value of --watch is a number of seconds; false after a complaint. */
bool hb_watch_check(const struct hb_ctl *ctl);

#endif
