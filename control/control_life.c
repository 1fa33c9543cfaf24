/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens to backends by itself as time passes: the deadline of a drain, its last flow, the
 * steps of a slow start. One timer stands for the next of them; the flows of drains are looked at
 * once a second.
 */
#include <inttypes.h>
#include <string.h>

#include "clock.h"
#include "control.h"
#include "log.h"

void hb_control_schedule(struct hb_control *control)
{
    uint64_t now_ms = hb_now_ms(), next_ms, wait_ms;
    struct timeval wait;

    if (!control->started)
        return;
    next_ms = hb_model_next_ms(control->model, now_ms);
    if (next_ms == UINT64_MAX) {
        event_del(control->life_timer);
        return;
    }
    wait_ms = next_ms > now_ms ? next_ms - now_ms : 0;
    wait.tv_sec = (time_t)(wait_ms / 1000);
    wait.tv_usec = (suseconds_t)(wait_ms % 1000 * 1000);
    event_add(control->life_timer, &wait);
}

static void tell_deadline(const struct hb_control *control, const struct hb_model_pool *pool,
                          const struct hb_model_backend *backend, uint64_t flows)
{
    static const char *const fates[HB_AT_DEADLINES] = {
        [HB_AT_DEADLINE_KEEP] = "they go on",
        [HB_AT_DEADLINE_REASSIGN] = "they are selected anew",
        [HB_AT_DEADLINE_RESET] = "they are reset",
    };

    hb_log(HB_LOG_NOTICE,
           "pool %s: backend %s (%s): the drain's deadline has passed with %" PRIu64
           " flows left; %s",
           pool->name, backend->name, backend->identity, flows, fates[backend->drain.at_deadline]);
    hb_events_add(control->events, HB_NEWS_DRAIN, pool->name, backend->name,
                  "backend %s: the drain's deadline has passed with %" PRIu64 " flows left; %s",
                  backend->name, flows, fates[backend->drain.at_deadline]);
}

/* Returns whether any deadline has passed. */
static bool pass_deadlines(struct hb_control *control, uint64_t now_ms)
{
    bool any = false;

    for (uint32_t p = 0; p < control->model->pools_count; p++) {
        struct hb_model_pool *pool = &control->model->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++) {
            struct hb_model_backend *backend = pool->backends[b];
            uint64_t flows;

            if (!backend->state.draining)
                continue;
            flows = hb_control_backend_flows(control, backend->id);
            if (!hb_backend_deadline(backend, flows, now_ms))
                continue;
            control->drain_forced += backend->drain.forced;
            hb_pool_touch(pool);
            tell_deadline(control, pool, backend, flows);
            any = true;
        }
    }
    return any;
}

/* If it leads to no other generation it is no cause. */
static void tell_ramps(const struct hb_control *control, const struct hb_model_pool *pool)
{
    const struct hb_model_backend *one = NULL;
    uint32_t count = 0;

    for (uint32_t b = 0; pool->ramps && b < pool->backends_count; b++) {
        if (pool->backends[b]->ramp_since_ms == 0)
            continue;
        one = pool->backends[b];
        count++;
    }
    if (count == 1)
        hb_events_add_routine(control->events, "slow start of backend %s", one->name);
    else if (count > 1)
        hb_events_add_routine(control->events, "slow starts in pool %s", pool->name);
}

void hb_control_on_life_timer(evutil_socket_t fd, short what, void *context)
{
    struct hb_control *control = context;

    (void)fd;
    (void)what;
    if (pass_deadlines(control, hb_now_ms()))
        hb_control_save(control);
    for (uint32_t p = 0; p < control->model->pools_count; p++)
        tell_ramps(control, &control->model->pools[p]);
    hb_control_publish_touched(control); /* schedules the next */
}

bool hb_control_is_drained(const struct hb_control *control, const struct hb_model_pool *pool,
                           const struct hb_model_backend *backend)
{
    if (!backend->state.draining || !hb_publication_in_sync(&control->publication))
        return false;
    if (backend->state.disabled) /* entries that name it decide for no packet */
        return true;
    if (hb_control_backend_flows(control, backend->id) != 0)
        return false;
    return !hb_model_tracks_changed(control->model, pool) ||
           (backend->slots == 0 && hb_pool_remembered_slots(pool, backend->id) == 0) ||
           (backend->drain.quiet_since_ms != 0 &&
            hb_now_ms() - backend->drain.quiet_since_ms >= hb_control_idle_ms(control));
}

/* Since when no packet has come. */
static void watch_packets(struct hb_control *control, struct hb_model_backend *backend,
                          uint64_t now_ms)
{
    struct hb_drain *drain = &backend->drain;
    uint64_t packets = hb_control_backend_counts(control, backend).packets;

    if (drain->quiet_since_ms == 0 || packets != drain->packets)
        drain->quiet_since_ms = now_ms;
    drain->packets = packets;
}

static void watch_drain(struct hb_control *control, const struct hb_model_pool *pool,
                        struct hb_model_backend *backend, uint64_t now_ms)
{
    bool drained;

    watch_packets(control, backend, now_ms);
    drained = hb_control_is_drained(control, pool, backend);
    if (hb_publication_in_sync(&control->publication))
        hb_drain_observe(&backend->drain, hb_control_backend_flows(control, backend->id), now_ms);
    if (drained && !backend->drain.drained) {
        uint64_t seconds = (now_ms - backend->state.drain_since_ms) / 1000;

        hb_log(HB_LOG_NOTICE, "pool %s: backend %s (%s) is drained after %" PRIu64 " s", pool->name,
               backend->name, backend->identity, seconds);
        hb_events_add(control->events, HB_NEWS_DRAIN, pool->name, backend->name,
                      "backend %s is drained after %" PRIu64 " s", backend->name, seconds);
    }
    backend->drain.drained = drained;
}

void hb_control_watch_drains(struct hb_control *control)
{
    uint64_t now_ms = hb_now_ms();

    for (uint32_t p = 0; p < control->model->pools_count; p++) {
        const struct hb_model_pool *pool = &control->model->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++) {
            if (pool->backends[b]->state.draining)
                watch_drain(control, pool, pool->backends[b], now_ms);
        }
    }
}
