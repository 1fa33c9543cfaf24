/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How drains, slow starts, weights and failure policies stand, for the API's documents.
 */
#include "api_internal.h"
#include "clock.h"

static json_t *seconds_until(uint64_t at_ms, uint64_t now_ms)
{
    return json_integer(at_ms > now_ms ? (json_int_t)((at_ms - now_ms + 999) / 1000) : 0);
}

json_t *hb_json_drain(const struct hb_control *control, const struct hb_model_pool *pool,
                      const struct hb_model_backend *backend)
{
    const struct hb_drain *drain = &backend->drain;
    uint64_t flows = hb_control_backend_flows(control, backend->id);
    uint64_t estimate = hb_drain_estimate(drain, flows);
    bool deadline = drain->deadline_unix_ms != 0;
    bool changed = hb_model_tracks_changed(control->model, pool);
    json_t *object;

    if (!backend->state.draining)
        return json_null();
    object = json_pack("{s:b, s:I, s:I, s:I, s:f}", "drained",
                       hb_control_is_drained(control, pool, backend), "flows", (json_int_t)flows,
                       "flows_at_start", (json_int_t)drain->flows_at_start, "forced",
                       (json_int_t)drain->forced, "flows_per_s", hb_drain_rate(drain));
    json_object_set_new(object, "estimate_s",
                        estimate == HB_DRAIN_ENDLESS ? json_null()
                                                     : json_integer((json_int_t)estimate));
    json_object_set_new(
        object, "remembered_slots",
        json_integer(changed ? backend->slots + hb_pool_remembered_slots(pool, backend->id) : 0));
    json_object_set_new(object, "at_deadline",
                        deadline ? json_string(hb_at_deadline_name(drain->at_deadline))
                                 : json_null());
    json_object_set_new(object, "deadline_unix",
                        deadline ? json_integer((json_int_t)(drain->deadline_unix_ms / 1000))
                                 : json_null());
    json_object_set_new(object, "deadline_s",
                        deadline ? seconds_until(drain->deadline_ms, hb_now_ms()) : json_null());
    return object;
}

void hb_json_set_pool_life(json_t *object, const struct hb_model_pool *pool)
{
    uint32_t minimum = pool->failure.minimum > 0 ? pool->failure.minimum : 1;

    json_object_set_new(object, "mode", json_string(hb_pool_mode_name(pool->mode)));
    json_object_set_new(object, "minimum", json_integer(minimum));
    json_object_set_new(object, "healthy", json_integer(pool->strength.usable));
    json_object_set_new(object, "backup", hb_json_text_or_null(pool->failure.backup));
}

static json_t *describe_slow_start(const struct hb_model_pool *pool,
                                   const struct hb_model_backend *backend)
{
    if (backend->ramp_since_ms == 0 || pool->slow_start_ms == 0)
        return json_null();
    return json_pack("{s:o}", "left_s",
                     seconds_until(backend->ramp_since_ms + pool->slow_start_ms, hb_now_ms()));
}

void hb_json_set_backend_life(json_t *object, const struct hb_control *control,
                              const struct hb_model_pool *pool,
                              const struct hb_model_backend *backend)
{
    double slots = pool->slots ? (double)pool->slots : 1.0;

    json_object_set_new(object, "backup", json_boolean(backend->backup));
    json_object_set_new(object, "configured_weight", json_integer(backend->configured_weight));
    json_object_set_new(object, "share_to_come", json_real((double)backend->slots_to_come / slots));
    json_object_set_new(object, "slow_start", describe_slow_start(pool, backend));
    json_object_set_new(object, "drain", hb_json_drain(control, pool, backend));
}
