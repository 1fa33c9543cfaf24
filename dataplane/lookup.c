/* SPDX-License-Identifier: BSD-3-Clause */
/* See lookup.h. */
#include "lookup.h"

#include "affinity.h"
#include "service_map.h"

static void look_into_caches(const struct hb_generation *generation,
                             struct hb_worker *const *workers, uint32_t workers_count,
                             const struct hb_flow_key *flow, struct hb_lookup_reply *reply)
{
    for (uint32_t i = 0; i < workers_count; i++) {
        struct hb_flow_view view;

        if (!hb_worker_peek_flow(workers[i], flow, reply->hash, &view))
            continue;
        reply->worker = i;
        reply->flow_backend = view.backend;
        reply->flow_idle_ms = view.idle_ms;
        if (reply->slots > 0)
            reply->source = HB_LOOKUP_FLOW_STALE;
        if (hb_backend_serves(generation, view.backend, view.incarnation)) {
            reply->source = HB_LOOKUP_FLOW;
            reply->backend = view.backend;
            return;
        }
    }
}

void hb_lookup_flow(const struct hb_generation *generation, struct hb_worker *const *workers,
                    uint32_t workers_count, const struct hb_flow_key *request,
                    struct hb_lookup_reply *reply)
{
    struct hb_flow_key flow = *request;
    const struct hb_pool *pool;
    uint16_t previous = HB_BACKEND_NONE;
    int32_t index;

    reply->source = HB_LOOKUP_NO_SERVICE;
    if (generation == NULL)
        return;
    flow.zero = 0;
    reply->generation_number = generation->number;
    reply->hash = hb_flow_hash(&flow, &generation->hash_key);
    index = hb_service_map_find(generation->map, &flow);
    if (index < 0)
        return;
    reply->service = generation->services[index].id;
    reply->pool = generation->services[index].pool;
    pool = &generation->pools[reply->pool];
    reply->slots = pool->slots;
    reply->source = HB_LOOKUP_NO_BACKEND;
    if (pool->slots > 0) {
        struct hb_flow_query query = hb_flow_query_of(&flow, reply->hash);

        reply->slot = hb_slot_of(hb_slot_hash(generation, (uint32_t)index, &query), pool->slots);
        reply->table_backend = pool->owner[reply->slot];
        reply->backend = reply->table_backend;
        reply->source = HB_LOOKUP_TABLE;
        reply->unsettled = hb_slot_past(generation, reply->pool, reply->slot, &previous);
        reply->previous_backend = reply->unsettled ? previous : HB_BACKEND_NONE;
    }
    reply->tracking = generation->services[index].tracking;
    if (reply->tracking == HB_TRACKING_ALL ||
        (reply->tracking == HB_TRACKING_CHANGED && (reply->unsettled || reply->slots == 0)))
        look_into_caches(generation, workers, workers_count, &flow, reply);
}
