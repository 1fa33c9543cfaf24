/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_nat.c: what full NAT has in use, for the API and the metrics.
 *
 * A source port is in use toward one backend: the same port may serve a connection to each of the
 * others. So a pool has as many ports as its sources have, for each backend; what is free is said
 * for the backend that has fewest.
 */
#include "api_internal.h"

/* Of one source address: those that the workers share evenly (struct hb_nat_source). */
static uint64_t ports_of(const struct hb_nat_ports *ports, uint32_t workers)
{
    uint32_t first = (ports->first + workers - 1) / workers * workers;

    return first > ports->last ? 0 : (ports->last + 1u - first) / workers * workers;
}

bool hb_pool_nat_use(struct hb_control *control, const struct hb_model_pool *pool,
                     struct hb_nat_use *use)
{
    const struct hb_hello_reply *hello = hb_publisher_hello(control->publisher);
    const struct hb_counters_header *region = hb_publisher_counters(control->publisher);

    *use = (struct hb_nat_use){0};
    if (pool->forwarding != HB_FORWARDING_FULL_NAT)
        return false;
    use->ports =
        hb_nat_count_sources(&pool->nat) *
        ports_of(&pool->nat.ports, hello != NULL && hello->workers > 0 ? hello->workers : 1);
    for (uint32_t b = 0; b < pool->backends_count; b++) {
        struct hb_model_backend *backend = pool->backends[b];
        uint64_t sessions = hb_counters_nat_total(region, backend->id).sessions;

        use->sessions += sessions;
        use->most = sessions > use->most ? sessions : use->most;
        use->exhausted += hb_control_backend_counts(control, backend).nat_exhausted;
    }
    return true;
}

json_t *hb_json_pool_nat(struct hb_control *control, const struct hb_model_pool *pool)
{
    struct hb_nat_use use;

    if (!hb_pool_nat_use(control, pool, &use))
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "sessions", hb_json_count(use.sessions), "ports",
                     hb_json_count(use.ports), "ports_used", hb_json_count(use.most), "ports_free",
                     hb_json_count(use.ports > use.most ? use.ports - use.most : 0), "exhausted",
                     hb_json_count(use.exhausted));
}

json_t *hb_json_backend_nat(struct hb_control *control, const struct hb_model_pool *pool,
                            struct hb_model_backend *backend)
{
    const struct hb_counters_header *region = hb_publisher_counters(control->publisher);

    if (pool->forwarding != HB_FORWARDING_FULL_NAT)
        return json_null();
    return json_pack("{s:o, s:o}", "sessions",
                     hb_json_count(hb_counters_nat_total(region, backend->id).sessions),
                     "exhausted",
                     hb_json_count(hb_control_backend_counts(control, backend).nat_exhausted));
}
