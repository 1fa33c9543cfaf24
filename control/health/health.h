/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * health.h: probes of backends, one scheduler for all, one file a kind of checker.
 *
 * The scheduler starts each probe at its time, spread over the interval so that a thousand targets
 * do not fire at once, and reports each result with the moment the probe began. It counts nothing:
 * rise, fall and state belong to backend_state. Runs on control's event loop and never blocks it.
 */
#ifndef HB_CONTROL_HEALTH_HEALTH_H
#define HB_CONTROL_HEALTH_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"
#include "config.h"

struct event_base;
struct hb_health;
struct hb_health_target;

/* Why a probe ended as it did; the text is for people. */
enum hb_probe_reason {
    HB_PROBE_OK = 0,
    HB_PROBE_REFUSED,     /* the port answered with RST */
    HB_PROBE_TIMEOUT,     /* no answer within the time limit */
    HB_PROBE_UNREACHABLE, /* no route, or ICMP unreachable */
    HB_PROBE_LOCAL_ERROR, /* this machine could not probe: no descriptors, no ports, no permission.
                           * It says nothing about the backend: the owner may show it, and counts it
                           * neither as a success nor as a failure */
};

struct hb_probe_result {
    bool success;
    enum hb_probe_reason reason;
    uint64_t started_ms; /* CLOCK_MONOTONIC */
    uint32_t duration_us;
};

/* May remove its own target, or others. */
typedef void (*hb_probe_done)(void *context, const struct hb_probe_result *result);

struct hb_health *hb_health_open(struct event_base *base);
void hb_health_close(struct hb_health *health); /* ends all targets */

/* Starts probing `address` as `config` says; config->port is not 0, its type is not HB_HEALTH_NONE.
 * The first probe starts within 100 ms. NULL with errno: EINVAL or ENOMEM. `done` is called from
 * the event loop, never from within this call. */
struct hb_health_target *hb_health_add(struct hb_health *health, const struct hb_address *address,
                                       const struct hb_health_config *config, hb_probe_done done,
                                       void *context);
/* Ends it; a probe under way is dropped and `done` is not called again. */
void hb_health_remove(struct hb_health_target *target);

const char *hb_probe_reason_text(enum hb_probe_reason reason);

#endif
