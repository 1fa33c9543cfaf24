/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_health.c: what GET /v1/backends says about a backend's check (docs/api.md).
 */
#include "api_internal.h"
#include "clock.h"

static json_t *describe_check(const struct hb_health_config *check)
{
    bool has_port = hb_health_type_has_port(check->type) && check->port != 0;
    bool in_tunnel = check->via == HB_VIA_TUNNEL;

    if (check->type == HB_HEALTH_NONE)
        return json_null();
    return json_pack("{s:s, s:o, s:s, s:o, s:i, s:i}", "type", hb_health_type_name(check->type),
                     "port", has_port ? json_integer(check->port) : json_null(), "via",
                     in_tunnel ? "tunnel" : "direct", "vip",
                     in_tunnel ? hb_json_address(&check->vip) : json_null(), "interval_ms",
                     (int)check->interval_ms, "timeout_ms", (int)check->timeout_ms);
}

static json_t *describe_failure(const struct hb_model_backend *backend, uint64_t now_ms)
{
    if (backend->last_failure[0] == '\0')
        return json_null();
    return json_pack("{s:s, s:I}", "reason", backend->last_failure, "ago_s",
                     (json_int_t)((now_ms - backend->last_failure_ms) / 1000));
}

static json_t *describe_damping(const struct hb_health_config *check,
                                const struct hb_model_backend *backend, uint64_t now_ms)
{
    uint64_t left_ms = hb_damping_left_ms(&backend->damping, &check->damping, now_ms);

    if (!check->damping.enabled)
        return json_null();
    return json_pack("{s:f, s:I}", "penalty",
                     hb_damping_penalty(&backend->damping, &check->damping, now_ms), "held_s",
                     (json_int_t)((left_ms + 999) / 1000));
}

void hb_json_set_health(json_t *object, const struct hb_model_pool *pool,
                        const struct hb_model_backend *backend)
{
    uint64_t now_ms = hb_now_ms();

    json_object_set_new(object, "check", describe_check(&pool->health));
    json_object_set_new(object, "last_failure", describe_failure(backend, now_ms));
    json_object_set_new(object, "damping", describe_damping(&pool->health, backend, now_ms));
}
