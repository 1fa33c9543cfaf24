/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a pool's policy and its slow start need to know of members, and what operators say about
 * one.
 */
#include <stdlib.h>

#include "model_internal.h"
#include "ramp.h"

struct hb_member_view hb_member_view(const struct hb_model_backend *backend)
{
    return (struct hb_member_view){
        .backup = backend->backup,
        .leaving = backend->leaving,
        .wanted = !backend->state.draining && backend->weight > 0,
        .up = backend->state.health == HB_BACKEND_UP,
        .checked = backend->state.health != HB_BACKEND_UNKNOWN,
        .disabled = backend->state.disabled,
        .reachable = backend->rewrite.size > 0,
    };
}

struct hb_pool_strength hb_model_strength_without(const struct hb_model_pool *pool,
                                                  const bool *without)
{
    struct hb_member_view *views = calloc(pool->backends_count + 1, sizeof(*views));
    struct hb_pool_strength strength = {0};

    for (uint32_t b = 0; views != NULL && b < pool->backends_count; b++) {
        views[b] = hb_member_view(pool->backends[b]);
        views[b].wanted = views[b].wanted && !without[pool->backends[b]->id];
    }
    if (views != NULL)
        strength = hb_pool_strength(&pool->failure, views, pool->backends_count);
    free(views);
    return strength;
}

void hb_backend_set_weight(struct hb_model_backend *backend, bool set, uint32_t weight)
{
    backend->weight_is_set = set;
    backend->weight = set ? weight : backend->configured_weight;
}

/* --- slow start --- */

bool hb_backend_begins_ramp(const struct hb_model_pool *pool,
                            const struct hb_model_backend *backend)
{
    return pool->slow_start_ms != 0 && backend->ramps && !backend->was_usable && !backend->backup &&
           hb_backend_takes_new_flows(&backend->state, backend->weight);
}

/* Notes whether a member has come into service, or left it. That it cannot be forwarded to for a
 * while is neither: its server kept its caches. */
static void follow_service(const struct hb_model *model, const struct hb_model_pool *pool,
                           struct hb_model_backend *backend)
{
    uint64_t now_ms = model->now_ms;
    bool in_service = hb_backend_takes_new_flows(&backend->state, backend->weight);
    bool begins = hb_backend_begins_ramp(pool, backend);

    if (!in_service) {
        if (backend->was_usable || backend->state.health == HB_BACKEND_FAILED)
            backend->ramps = true;
        backend->ramp_since_ms = 0;
    } else if (begins) {
        backend->ramp_since_ms = now_ms;
        backend->ramp_since_unix_ms = model->now_unix_ms;
    }
    backend->was_usable = in_service;
    if (pool->slow_start_ms == 0 ||
        (backend->ramp_since_ms != 0 && now_ms >= backend->ramp_since_ms + pool->slow_start_ms))
        backend->ramp_since_ms = 0;
}

void hb_pool_follow_ramps(const struct hb_model *model, struct hb_model_pool *pool)
{
    bool base = false;

    for (uint32_t b = 0; b < pool->backends_count; b++) {
        struct hb_model_backend *backend = pool->backends[b];

        follow_service(model, pool, backend);
        base = base || (backend->stands && backend->ramp_since_ms == 0);
    }
    /* Where nobody else serves, the newcomers have all of it. */
    for (uint32_t b = 0; b < pool->backends_count && !base; b++) {
        if (pool->backends[b]->stands)
            pool->backends[b]->ramp_since_ms = 0;
    }
    pool->ramps = false;
    for (uint32_t b = 0; b < pool->backends_count; b++)
        pool->ramps = pool->ramps || pool->backends[b]->ramp_since_ms != 0;
}

uint32_t hb_backend_ramp(const struct hb_model_pool *pool, const struct hb_model_backend *backend,
                         uint64_t now_ms)
{
    uint32_t progress;

    if (backend->ramp_since_ms == 0 || pool->slow_start_ms == 0)
        return 0;
    progress = hb_ramp_progress(
        now_ms > backend->ramp_since_ms ? now_ms - backend->ramp_since_ms : 0, pool->slow_start_ms);
    return progress < HB_RAMP_FULL ? progress : 0;
}

uint64_t hb_pool_next_ms(const struct hb_model_pool *pool, uint64_t now_ms)
{
    uint64_t next = UINT64_MAX;

    for (uint32_t b = 0; b < pool->backends_count; b++) {
        const struct hb_model_backend *backend = pool->backends[b];
        uint64_t at = UINT64_MAX;

        /* One that is over waits for a reconcile, not for time. */
        if (backend->ramp_since_ms != 0 && now_ms < backend->ramp_since_ms + pool->slow_start_ms)
            at = now_ms + hb_ramp_next_step(now_ms - backend->ramp_since_ms, pool->slow_start_ms);
        next = at < next ? at : next;
        if (backend->state.draining && !backend->drain.overdue && backend->drain.deadline_ms != 0 &&
            backend->drain.deadline_ms < next)
            next = backend->drain.deadline_ms;
    }
    return next;
}

uint64_t hb_model_next_ms(const struct hb_model *model, uint64_t now_ms)
{
    uint64_t next = UINT64_MAX;

    for (uint32_t p = 0; p < model->pools_count; p++) {
        const struct hb_model_pool *pool = &model->pools[p];
        bool known = !model->touched && !pool->touched && now_ms < pool->next_ms;
        uint64_t at = known ? pool->next_ms : hb_pool_next_ms(pool, now_ms);

        next = at < next ? at : next;
    }
    return next;
}

/* --- drains --- */

/* At the least 1, since 0 means none. */
static uint64_t moment_ago(uint64_t ago_ms, uint64_t now_ms)
{
    return ago_ms < now_ms ? now_ms - ago_ms : 1;
}

void hb_model_set_clock(struct hb_model *model, uint64_t now_ms, uint64_t now_unix_ms)
{
    for (uint32_t p = 0; p < model->pools_count; p++) {
        for (uint32_t b = 0; b < model->pools[p].backends_count; b++) {
            struct hb_model_backend *backend = model->pools[p].backends[b];
            uint64_t at = backend->drain.deadline_unix_ms, begin = backend->ramp_since_unix_ms;

            if (at != 0)
                backend->drain.deadline_ms =
                    at > now_unix_ms ? now_ms + (at - now_unix_ms) : now_ms;
            if (begin != 0)
                backend->ramp_since_ms =
                    moment_ago(now_unix_ms > begin ? now_unix_ms - begin : 0, now_ms);
        }
    }
}

bool hb_backend_deadline(struct hb_model_backend *backend, uint64_t flows, uint64_t now_ms)
{
    struct hb_drain *drain = &backend->drain;

    if (!backend->state.draining || drain->overdue || drain->deadline_ms == 0 ||
        now_ms < drain->deadline_ms)
        return false;
    drain->overdue = true;
    if (drain->at_deadline == HB_AT_DEADLINE_KEEP)
        return true;
    drain->forced = flows;
    backend->state.reset = drain->at_deadline == HB_AT_DEADLINE_RESET;
    hb_backend_state_apply(&backend->state, HB_EVENT_DEADLINE, 1, 1, now_ms, now_ms);
    return true;
}

uint32_t hb_pool_remembered_slots(const struct hb_model_pool *pool, uint32_t id)
{
    uint32_t count = 0;

    for (uint32_t slot = 0; pool->history.previous != NULL && slot < pool->history.slots; slot++)
        count += pool->history.previous[slot] == id;
    return count;
}

bool hb_model_tracks_changed(const struct hb_model *model, const struct hb_model_pool *pool)
{
    for (uint32_t s = 0; s < model->services_count; s++) {
        if (&model->pools[model->services[s].pool] == pool &&
            model->services[s].tracking == HB_TRACKING_CHANGED)
            return true;
    }
    return false;
}
