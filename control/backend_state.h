/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backend_state.h: the life of one backend, as a pure state machine.
 *
 *     health:  unknown -> up <-> down                   by consecutive probe results (rise, fall)
 *     duty:    in service <-> draining -> disabled      by operators, and by a drain's deadline
 *                   ^----------------------'            survives health changes and restarts
 *
 * What people see of the two, and what the dataplane does with the backend:
 *
 *                    in service               draining                 disabled
 *     unknown        unknown: no flows        draining: no flows yet   disabled: no flows
 *     up             up: all flows            draining: its own flows  disabled: no flows
 *     down           down: no flows           down: no flows           disabled: no flows
 *
 * A backend takes new flows (stands in the table) when it is up, in service, has a weight above 0
 * and its next hop is resolved; pool_policy.h has what a pool does that has too few of those. It
 * keeps established flows while it is neither down nor disabled. A disabled one loses them: each
 * is selected anew, or, with `reset`, ended by a RST. Pure: time comes in, no clock is read.
 * Results of probes that started before the last change of state are ignored (BL-93).
 */
#ifndef HB_CONTROL_BACKEND_STATE_H
#define HB_CONTROL_BACKEND_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "halbach/generation.h"

enum hb_backend_health {
    HB_BACKEND_UNKNOWN = 0,
    HB_BACKEND_UP = 1,
    HB_BACKEND_FAILED = 2, /* down */
};

enum hb_backend_event {
    HB_EVENT_PROBE_SUCCEEDED,
    HB_EVENT_PROBE_FAILED,
    HB_EVENT_DRAIN,
    HB_EVENT_UNDRAIN,
    HB_EVENT_DEADLINE,     /* of a drain that does not let flows run on for ever */
    HB_EVENT_TAKE_OVER_UP, /* after a restart: what the dataplane or the state file knew; only a
                            * backend that is still unknown takes it over */
    HB_EVENT_TAKE_OVER_DOWN,
};

struct hb_backend_state {
    enum hb_backend_health health;
    bool draining;      /* an operator wants no new flows here: draining or disabled */
    bool disabled;      /* no flows at all; only while `draining` */
    bool reset;         /* once disabled: flows are ended, not moved */
    uint32_t successes; /* in a row */
    uint32_t failures;  /* in a row */
    uint64_t health_since_ms;
    uint64_t drain_since_ms;
};

/* Applies an event at `now_ms` (any monotonic clock); `started_ms` is when the probe began, for
 * probe events, else now. An unknown backend becomes up at its first success and down at its first
 * failure; after that `rise` and `fall` in a row count. Returns true when the table or the
 * backend's use changes. */
bool hb_backend_state_apply(struct hb_backend_state *state, enum hb_backend_event event,
                            uint32_t rise, uint32_t fall, uint64_t started_ms, uint64_t now_ms);

bool hb_backend_takes_new_flows(const struct hb_backend_state *state, uint32_t weight);
enum hb_backend_use hb_backend_use_of(const struct hb_backend_state *state);

/* "up", "down", "unknown", "draining", "disabled": for people, by the table above. */
const char *hb_backend_state_name(const struct hb_backend_state *state);

#endif
