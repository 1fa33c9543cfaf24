/* SPDX-License-Identifier: BSD-3-Clause */
/* See peek.h. */
#include "peek.h"

#include "flow_bucket.h"
#include "service_map.h"
#include "worker_state.h"

int32_t hb_service_of(const struct hb_generation *generation, const struct hb_flow_query *flow)
{
    uint16_t port = (uint16_t)(flow->ports >> 16);
    uint8_t protocol = (uint8_t)flow->kind;

    if (!hb_flow_is_ipv6(flow))
        return hb_service_map_find_ipv4(generation->map, flow->destination, port, protocol);
    return hb_service_map_find_ipv6(generation->map, flow->addresses + HB_ADDRESS_SIZE, port,
                                    protocol);
}

static hb_flow_ref find(const struct hb_worker *worker, const struct hb_flow_query *flow,
                        uint32_t now_ms)
{
    hb_flow_ref entry;

    hb_flow_table_find(worker->flows, &flow, 1, now_ms, &entry);
    return entry;
}

/* The backend of an entry if it decides, as in stage_flow. */
static uint16_t decide(const struct hb_batch *batch, uint16_t service,
                       const struct hb_worker *worker, hb_flow_ref entry)
{
    const struct hb_generation *generation = batch->generation;
    struct hb_flow_value value = hb_flow_table_get(worker->flows, entry);
    const struct hb_backend *backend;

    if (value.backend >= generation->backends_count)
        return HB_BACKEND_NONE;
    backend = &generation->backends[value.backend];
    if (((backend->incarnation ^ value.incarnation) & HB_FLOW_INCARNATION_MASK) != 0 ||
        !hb_backend_is_in_use(backend) || backend->pool != generation->services[service].pool)
        return HB_BACKEND_NONE;
    return value.backend;
}

bool hb_peek_has_entry(const struct hb_batch *batch, const struct hb_flow_query *flow)
{
    return find(batch->worker, flow, batch->worker->now_ms) != HB_FLOW_NONE;
}

uint16_t hb_peek_elsewhere(const struct hb_batch *batch, uint16_t service,
                           const struct hb_flow_query *flow)
{
    const struct hb_generation *generation = batch->generation;
    const struct hb_worker_config *config = &batch->worker->config;
    uint32_t pool = generation->services[service].pool;
    const struct hb_pool *of = &generation->pools[pool];
    uint16_t previous, id = HB_BACKEND_NONE;

    if (of->bounded_load == 0 && of->slots != 0 &&
        !hb_slot_past(generation, pool, hb_slot_of(flow->hash, of->slots), &previous))
        return HB_BACKEND_NONE;
    for (uint32_t i = 0; i < config->siblings_count && id == HB_BACKEND_NONE; i++) {
        const struct hb_worker *other = config->siblings[i];
        hb_flow_ref entry;

        if (other == NULL || other == batch->worker)
            continue;
        entry = find(other, flow, __atomic_load_n(&other->now_ms, __ATOMIC_RELAXED));
        if (entry != HB_FLOW_NONE)
            id = decide(batch, service, other, entry);
    }
    return id;
}

/* What the table says of a packet in the middle of the flow (stage_select). */
static uint16_t ask_table(const struct hb_batch *batch, uint16_t service,
                          const struct hb_flow_query *flow, bool any_past)
{
    const struct hb_generation *generation = batch->generation;
    uint32_t pool = generation->services[service].pool;
    const struct hb_pool *of = &generation->pools[pool];
    uint32_t slot = hb_slot_of(flow->hash, of->slots);
    uint16_t previous;

    if (any_past && (uint8_t)flow->kind == HB_PROTOCOL_TCP &&
        hb_slot_past(generation, pool, slot, &previous) && previous != HB_BACKEND_NONE &&
        hb_backend_is_in_use(&generation->backends[previous]))
        return previous;
    return of->owner[slot];
}

enum hb_peek hb_peek_backend(const struct hb_batch *batch, uint16_t service,
                             const struct hb_flow_query *flow, uint16_t *backend)
{
    const struct hb_generation *generation = batch->generation;
    const struct hb_service *of = &generation->services[service];
    uint32_t slots = generation->pools[of->pool].slots;
    bool tracked = of->tracking == HB_TRACKING_ALL;
    uint16_t previous;
    hb_flow_ref entry;

    if (of->tracking == HB_TRACKING_CHANGED)
        tracked = slots == 0 ||
                  hb_slot_past(generation, of->pool, hb_slot_of(flow->hash, slots), &previous);
    *backend = HB_BACKEND_NONE;
    if (tracked) {
        entry = find(batch->worker, flow, batch->worker->now_ms);
        if (entry != HB_FLOW_NONE)
            *backend = decide(batch, service, batch->worker, entry);
        if (*backend != HB_BACKEND_NONE)
            return HB_PEEK_HERE;
        *backend = hb_peek_elsewhere(batch, service, flow);
        if (*backend != HB_BACKEND_NONE)
            return HB_PEEK_ELSEWHERE;
    }
    if (slots == 0)
        return HB_PEEK_NONE;
    *backend = ask_table(batch, service, flow, of->tracking != HB_TRACKING_OFF);
    return tracked ? HB_PEEK_TABLE : HB_PEEK_UNTRACKED;
}
