/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * damping.h: what a backend pays for going up and down again and again.
 *
 * Each fall (up to down) adds 1 to a penalty that halves every half_life. At `suppress` the backend
 * is held: good checks do not bring it back until the penalty is below `reuse` again. max_hold
 * bounds how high the penalty can get, and so how long a backend that has become well is held. The
 * scheme is that of route flap damping (RFC 2439), with one number for all kinds of falls.
 *
 * Pure: time comes in, no clock is read.
 */
#ifndef HB_CONTROL_HEALTH_DAMPING_H
#define HB_CONTROL_HEALTH_DAMPING_H

#include <stdbool.h>
#include <stdint.h>

#include "check_config.h"

#define HB_DAMPING_ONE 1024.0 /* thresholds are in 1/1024 of a fall */

/* Zero is a backend that never fell. */
struct hb_damping {
    double penalty; /* falls, as of since_ms */
    uint64_t since_ms;
    bool held;
};

/* A backend that was up went down at `now_ms` (any monotonic clock). */
void hb_damping_fall(struct hb_damping *damping, const struct hb_damping_config *config,
                     uint64_t now_ms);

/* Whether it may not come back yet. */
bool hb_damping_holds(struct hb_damping *damping, const struct hb_damping_config *config,
                      uint64_t now_ms);

/* The penalty at a time, in falls. */
double hb_damping_penalty(const struct hb_damping *damping, const struct hb_damping_config *config,
                          uint64_t now_ms);

/* Milliseconds until it is not held any more; 0 when it is not held. */
uint64_t hb_damping_left_ms(const struct hb_damping *damping,
                            const struct hb_damping_config *config, uint64_t now_ms);

#endif
