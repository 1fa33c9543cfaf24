/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checker.h: what a kind of checker is to the scheduler.
 *
 * A new kind is one file with one struct hb_checker, and one row in the table in scheduler.c.
 */
#ifndef HB_CONTROL_HEALTH_CHECKER_H
#define HB_CONTROL_HEALTH_CHECKER_H

#include "health.h"

struct hb_check; /* one checker at work for one target; each kind has its own */

/* A probe has ended. The receiver may destroy the check from within. */
typedef void (*hb_check_done)(void *context, enum hb_probe_reason reason);

struct hb_checker {
    enum hb_health_type type;

    /* Prepares for probes of a target; nothing starts yet. NULL: no memory. */
    struct hb_check *(*create)(struct event_base *base, const struct hb_address *address,
                               const struct hb_health_config *config, hb_check_done done,
                               void *context);

    /* Starts a probe; none is under way. It ends in exactly one `done` within config->timeout_ms,
     * called from the event loop and never from within this call, whatever happens. */
    void (*begin)(struct hb_check *check);

    /* Frees it; a probe under way is dropped without `done`. */
    void (*destroy)(struct hb_check *check);
};

extern const struct hb_checker hb_checker_tcp;

#endif
