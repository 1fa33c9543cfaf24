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
struct hb_http;  /* http_engine.h */

/* A probe has ended; `detail` as in struct hb_probe_result. The receiver may destroy the check from
 * within. */
typedef void (*hb_check_done)(void *context, enum hb_probe_reason reason, const char *detail);

/* All of it outlives the check. */
struct hb_check_setup {
    struct event_base *base;
    struct hb_http *http; /* NULL unless the checker is one that needs it */
    const struct hb_health_config *config;
    const struct hb_check_way *way;   /* may change between probes */
    const struct hb_address *address; /* of the backend */
    hb_check_done done;
    void *context;
};

/* What begin() answers when the probe goes on and `done` will tell. */
#define HB_PROBE_UNDER_WAY (-1)

struct hb_checker {
    enum hb_health_type type;
    bool needs_http;

    /* Prepares for probes of a target; nothing starts yet. NULL: no memory. */
    struct hb_check *(*create)(const struct hb_check_setup *setup);

    /* Starts a probe; none is under way. Returns HB_PROBE_UNDER_WAY: it ends in exactly one `done`
     * within config->timeout_ms, called from the event loop and never from within this call,
     * whatever happens. Or it has ended at once, and the reason is returned (with *detail, which
     * may stay NULL): `done` is not called. */
    int (*begin)(struct hb_check *check, const char **detail);

    /* Frees it; a probe under way is dropped without `done`. */
    void (*destroy)(struct hb_check *check);
};

extern const struct hb_checker hb_checker_tcp;
extern const struct hb_checker hb_checker_http;
extern const struct hb_checker hb_checker_https;
extern const struct hb_checker hb_checker_udp;
extern const struct hb_checker hb_checker_icmp;
extern const struct hb_checker hb_checker_grpc;
extern const struct hb_checker hb_checker_grpcs;
extern const struct hb_checker hb_checker_exec;

#endif
