/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * health.h: probes of backends, one scheduler for all, one file a kind of checker.
 *
 * The scheduler starts each probe at its time, spread over the interval so that a thousand targets
 * do not fire at once, and reports each result with the moment the probe began. It counts nothing:
 * rise, fall, damping and state belong to its owner. Runs on control's event loop and never blocks
 * it.
 */
#ifndef HB_CONTROL_HEALTH_HEALTH_H
#define HB_CONTROL_HEALTH_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "check_config.h"

struct event_base;
struct hb_health;
struct hb_health_target;

/* Why a probe ended as it did; the text is for people. */
enum hb_probe_reason {
    HB_PROBE_OK = 0,
    HB_PROBE_ASSUMED,     /* a success without evidence: nothing spoke against the target */
    HB_PROBE_REFUSED,     /* the port answered with RST or ICMP port unreachable */
    HB_PROBE_TIMEOUT,     /* no answer within the time limit */
    HB_PROBE_UNREACHABLE, /* no route, or ICMP unreachable */
    HB_PROBE_WRONG,       /* it answered, but not as expected */
    HB_PROBE_UNSURE,      /* silence that would be HB_PROBE_ASSUMED, but an error was heard shortly
                           * before; counted neither as a success nor as a failure */
    HB_PROBE_LOCAL_ERROR, /* this machine could not probe: no descriptors, no ports, no permission.
                           * It says nothing about the backend: the owner may show it, and counts it
                           * neither as a success nor as a failure */
};

struct hb_probe_result {
    bool success;
    enum hb_probe_reason reason;
    uint64_t started_ms; /* CLOCK_MONOTONIC */
    uint32_t duration_us;
    uint32_t late_us;   /* how long after its planned time it began */
    const char *detail; /* for people, in place of the reason's own text; valid during the call;
                         * NULL: nothing to add */
};

/* May remove its own target, or others. */
typedef void (*hb_probe_done)(void *context, const struct hb_probe_result *result);

/* The way that a probe goes. */
struct hb_check_way {
    struct hb_address to;   /* the backend, or a VIP when it goes through a tunnel */
    struct hb_address from; /* of this machine; family 0: as the kernel chooses */
    uint32_t mark;          /* SO_MARK; 0: none */
};

/* Fills in the way before a probe begins; *way is as it was the last time. False when there is none
 * now: then the probe is a HB_PROBE_LOCAL_ERROR that says `problem` (of `size` bytes). */
typedef bool (*hb_probe_prepare)(void *context, struct hb_check_way *way, char *problem,
                                 size_t size);

/* Raises this process's limit of open files as far as it may: each probe under way needs one. */
struct hb_health *hb_health_open(struct event_base *base);
void hb_health_close(struct hb_health *health); /* ends all targets */

/* Starts probing `address` as `config` says; its type is not HB_HEALTH_NONE, and its port not 0 if
 * the type needs one. *config stays as it is until the target is removed. The first probe starts
 * within 100 ms and the jitter. `prepare` may be NULL: the way is straight to the address. NULL
 * with errno: EINVAL or ENOMEM. `prepare` and `done` are called from the event loop, never from
 * within this call. */
struct hb_health_target *hb_health_add(struct hb_health *health, const struct hb_address *address,
                                       const struct hb_health_config *config,
                                       hb_probe_prepare prepare, hb_probe_done done, void *context);
/* Ends it; a probe under way is dropped and `done` is not called again. */
void hb_health_remove(struct hb_health_target *target);

const char *hb_probe_reason_text(enum hb_probe_reason reason);

#endif
