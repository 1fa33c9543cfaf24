/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage_select.c: the lookup table decides for flows that no entry decides for.
 *
 * One step: the hash picks a slot, the slot names the backend. Then the flow is remembered. Not
 * being able to (the cache is full, or the packet may not make an entry) never holds a packet back:
 * the lookup table will say the same again for the next one.
 *
 * The entry is looked for once more here, because an earlier packet of the same burst may have made
 * it, and an insert in between may have taken the place that the look-up of stage_flow saw.
 */
#include <rte_prefetch.h>

#include "stages.h"
#include "worker_state.h"

static hb_flow_ref find_again(const struct hb_worker *worker, const struct hb_packet *packet)
{
    const struct hb_flow_key *key = &packet->flow;
    hb_flow_ref entry;

    hb_flow_table_find(worker->flows, &key, &packet->hash, 1, worker->now_ms, &entry);
    return entry;
}

/* The owner of the flow's slot, or false when the pool has no backend for it. That every owner is
 * in the generation and has a rewrite was checked before it was adopted. */
static bool choose(struct hb_batch *batch, struct hb_packet *packet)
{
    const struct hb_pool *pool = &batch->generation->pools[packet->service->pool];
    uint16_t owner;

    if (pool->slots == 0)
        return false;
    owner = pool->owner[hb_slot_of(packet->hash, pool->slots)];
    if (owner == HB_BACKEND_NONE)
        return false;
    packet->backend_id = owner;
    packet->backend = &batch->generation->backends[owner];
    rte_prefetch0(packet->backend);
    return true;
}

/* Moves an entry that does not decide any more to the backend just chosen. */
static void move_entry(struct hb_worker *worker, const struct hb_packet *packet, hb_flow_ref entry)
{
    struct hb_flow_value old = hb_flow_table_get(worker->flows, entry);
    uint8_t state = hb_flow_next_state(old.state, packet);

    if (state == HB_FLOW_FREE) { /* a new connection on the ports of one that has ended */
        state = hb_flow_next_state(HB_FLOW_FREE, packet);
        worker->services[packet->service->id].new_flows++;
    } else {
        worker->counters->flow_reselects++;
    }
    hb_flow_table_repoint(worker->flows, entry, packet->backend_id, packet->backend->incarnation);
    hb_flow_table_touch(worker->flows, entry, state, worker->now_ms);
    hb_uncount_flow(worker, old.backend);
    hb_count_flow(worker, packet->backend_id);
    worker->backends[packet->backend_id].new_flows++;
}

static void remember(struct hb_worker *worker, const struct hb_packet *packet)
{
    struct hb_worker_counters *counters = worker->counters;
    struct hb_flow_value displaced;
    struct hb_flow_value flow = {
        .incarnation = packet->backend->incarnation,
        .backend = packet->backend_id,
        .state = hb_flow_next_state(HB_FLOW_FREE, packet),
    };

    if (flow.state == HB_FLOW_FREE)
        return;
    switch (hb_flow_table_insert(worker->flows, &packet->flow, packet->hash, &flow, worker->now_ms,
                                 &displaced)) {
    case HB_FLOW_EXISTED: /* not possible: it was looked for just now */
        return;
    case HB_FLOW_FULL:
        counters->flow_insert_failures++;
        return;
    case HB_FLOW_ADDED:
        break;
    case HB_FLOW_REPLACED:
        counters->flow_expiries++;
        hb_uncount_flow(worker, displaced.backend);
        break;
    case HB_FLOW_EVICTED:
        counters->flow_evictions++;
        hb_uncount_flow(worker, displaced.backend);
        break;
    }
    counters->flow_inserts++;
    hb_count_flow(worker, packet->backend_id);
    worker->services[packet->service->id].new_flows++;
    worker->backends[packet->backend_id].new_flows++;
}

static void select_backend(struct hb_batch *batch, struct hb_packet *packet)
{
    hb_flow_ref entry = find_again(batch->worker, packet);

    if (entry != HB_FLOW_NONE && hb_flow_follow(batch, packet, entry))
        return;
    if (!choose(batch, packet))
        hb_drop(batch, packet, HB_DROP_NO_BACKEND);
    else if (entry != HB_FLOW_NONE)
        move_entry(batch->worker, packet, entry);
    else
        remember(batch->worker, packet);
}

void hb_stage_select(struct hb_batch *batch)
{
    struct hb_packet *packet;

    HB_BATCH_FOREACH (packet, batch) {
        if (packet->backend == NULL)
            select_backend(batch, packet);
    }
}
