/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backend_state.c: the rules by which a backend comes and goes.
 *
 *     health    probe succeeded       probe failed          take over up   take over down
 *     unknown   up, at once           down, at once         up             down
 *     up        -                     down, after `fall`    -              -
 *     down      up, after `rise`      -                     -              -
 *
 * `rise` and `fall` count results in a row: one result of the other kind starts the count again.
 * What is taken over after a restart fills in for a backend that nothing is known of; a probe that
 * has been answered since then knows better.
 *
 *     duty         drain         deadline      undrain
 *     in service   draining      -             -
 *     draining     -             disabled      in service
 *     disabled     -             -             in service
 *
 * Operators leave health alone, so a drained backend that fails and recovers is still drained.
 */
#include "backend_state.h"

enum patience { NEVER, AT_ONCE, AFTER_RISE, AFTER_FALL };

struct rule {
    enum patience when;
    enum hb_backend_health to;
};

#define HEALTHS 3
#define EVENTS  7

static const struct rule rules[HEALTHS][EVENTS] = {
    [HB_BACKEND_UNKNOWN] =
        {
            [HB_EVENT_PROBE_SUCCEEDED] = {AT_ONCE, HB_BACKEND_UP},
            [HB_EVENT_PROBE_FAILED] = {AT_ONCE, HB_BACKEND_FAILED},
            [HB_EVENT_TAKE_OVER_UP] = {AT_ONCE, HB_BACKEND_UP},
            [HB_EVENT_TAKE_OVER_DOWN] = {AT_ONCE, HB_BACKEND_FAILED},
        },
    [HB_BACKEND_UP] =
        {
            [HB_EVENT_PROBE_FAILED] = {AFTER_FALL, HB_BACKEND_FAILED},
        },
    [HB_BACKEND_FAILED] =
        {
            [HB_EVENT_PROBE_SUCCEEDED] = {AFTER_RISE, HB_BACKEND_UP},
        },
};

enum duty { IN_SERVICE, DRAINING, DISABLED };

/* By duty and event, from HB_EVENT_DRAIN on. */
static const enum duty duties[3][3] = {
    [IN_SERVICE] = {DRAINING, IN_SERVICE, IN_SERVICE},
    [DRAINING] = {DRAINING, IN_SERVICE, DISABLED},
    [DISABLED] = {DISABLED, IN_SERVICE, DISABLED},
};

static bool is_probe(enum hb_backend_event event)
{
    return event == HB_EVENT_PROBE_SUCCEEDED || event == HB_EVENT_PROBE_FAILED;
}

static void count_result(struct hb_backend_state *state, enum hb_backend_event event)
{
    bool success = event == HB_EVENT_PROBE_SUCCEEDED;
    uint32_t *grows = success ? &state->successes : &state->failures;

    *(success ? &state->failures : &state->successes) = 0;
    if (*grows < UINT32_MAX)
        ++*grows;
}

static bool is_reached(const struct hb_backend_state *state, enum patience when, uint32_t rise,
                       uint32_t fall)
{
    switch (when) {
    case NEVER:
        return false;
    case AT_ONCE:
        return true;
    case AFTER_RISE:
        return state->successes >= rise;
    case AFTER_FALL:
        return state->failures >= fall;
    }
    return false;
}

static void apply_health(struct hb_backend_state *state, enum hb_backend_event event, uint32_t rise,
                         uint32_t fall, uint64_t started_ms, uint64_t now_ms)
{
    const struct rule *rule = &rules[state->health][event];

    if (is_probe(event)) {
        if (started_ms < state->health_since_ms)
            return; /* it saw the world before the last change */
        count_result(state, event);
    }
    if (!is_reached(state, rule->when, rise, fall))
        return;
    state->health = rule->to;
    state->health_since_ms = now_ms;
}

static enum duty duty_of(const struct hb_backend_state *state)
{
    return !state->draining ? IN_SERVICE : state->disabled ? DISABLED : DRAINING;
}

static void apply_duty(struct hb_backend_state *state, enum hb_backend_event event, uint64_t now_ms)
{
    enum duty to = duties[duty_of(state)][event - HB_EVENT_DRAIN];

    if ((to == IN_SERVICE) == state->draining)
        state->drain_since_ms = to == IN_SERVICE ? 0 : now_ms;
    state->draining = to != IN_SERVICE;
    state->disabled = to == DISABLED;
    state->reset = state->reset && state->draining;
}

bool hb_backend_state_apply(struct hb_backend_state *state, enum hb_backend_event event,
                            uint32_t rise, uint32_t fall, uint64_t started_ms, uint64_t now_ms)
{
    bool took_flows = hb_backend_takes_new_flows(state, 1);
    enum hb_backend_use use = hb_backend_use_of(state);

    if (event == HB_EVENT_DRAIN || event == HB_EVENT_UNDRAIN || event == HB_EVENT_DEADLINE)
        apply_duty(state, event, now_ms);
    else
        apply_health(state, event, rise, fall, started_ms, now_ms);
    return took_flows != hb_backend_takes_new_flows(state, 1) || use != hb_backend_use_of(state);
}

bool hb_backend_takes_new_flows(const struct hb_backend_state *state, uint32_t weight)
{
    return state->health == HB_BACKEND_UP && !state->draining && weight > 0;
}

enum hb_backend_use hb_backend_use_of(const struct hb_backend_state *state)
{
    if (state->disabled)
        return state->reset ? HB_BACKEND_RESET : HB_BACKEND_DOWN;
    if (state->health == HB_BACKEND_FAILED)
        return HB_BACKEND_DOWN;
    return state->draining ? HB_BACKEND_DRAINING : HB_BACKEND_ACTIVE;
}

const char *hb_backend_state_name(const struct hb_backend_state *state)
{
    if (state->disabled)
        return "disabled";
    if (state->health == HB_BACKEND_FAILED)
        return "down";
    if (state->draining)
        return "draining";
    return state->health == HB_BACKEND_UP ? "up" : "unknown";
}
