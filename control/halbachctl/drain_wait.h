/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drain_wait.h: watching a draining backend until its last flow has ended.
 */
#ifndef HB_CTL_DRAIN_WAIT_H
#define HB_CTL_DRAIN_WAIT_H

#include <stdint.h>

#include "ctl.h"

/* What one look at the API tells about the drain. */
struct hb_drain_view {
    unsigned members;    /* pools that have the backend (of those asked for) */
    unsigned draining;   /* of which it drains in */
    unsigned drained;    /* where no packet goes to it any more */
    unsigned disabled;   /* where its deadline has passed and flows did not stay */
    uint64_t flows;      /* of all of them */
    uint64_t forced;     /* that did not stay */
    uint64_t remembered; /* slots that may lead TCP flows without an entry there */
    uint64_t estimate_s; /* until the last flow has ended; UINT64_MAX: nobody can tell */
    uint64_t deadline_s; /* until the next deadline; UINT64_MAX: there is none */
    bool trusted;        /* the dataplane is connected and in sync: `flows` counts */
};

/* Pure: reads the answers to GET /v1/backends and GET /v1/status. `pool` NULL: all. */
struct hb_drain_view hb_drain_view(const json_t *backends, const json_t *status, const char *name,
                                   const char *pool);

/* The line of a bar: `most` flows at the beginning, `seconds` since then. It is shorter than
 * `width` columns (0: of no limit). Pure. */
#define HB_DRAIN_LINE 384
void hb_drain_bar(char line[HB_DRAIN_LINE], const struct hb_drain_view *view, uint64_t most,
                  uint64_t seconds, unsigned width);

/* Waits, showing progress on standard error with --json, else on standard output; `flows` is where
 * it begins. Returns the exit status: 0 when no flow is left. SIGINT and SIGTERM end the waiting;
 * the drain stays in place. */
int hb_drain_wait(const struct hb_ctl *ctl, const char *name, uint64_t flows);

#endif
