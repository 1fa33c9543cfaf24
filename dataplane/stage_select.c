/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage_select.c: the lookup table decides for flows that no entry decides for.
 *
 * One step: the hash picks a slot, the slot names the backend. Then the flow is remembered. Not
 * being able to (the cache is full, or the packet may not make an entry) never holds a packet back:
 * the lookup table will say the same again for the next one.
 *
 * On a slot that is unsettled the flow may have begun on the owner before. A SYN or a datagram goes
 * to the owner of now; any other TCP packet to the previous one, while that is up or draining. So
 * flows from before the change stay where they are without an entry, and get one by their next
 * packets; flows from after it have one, or else are lost: see docs/connections.md. A flow whose
 * entry no longer decides was made after some change: the owner of now gets it. Whenever a packet
 * goes to another backend than the owner of an unsettled slot, that is noted, for as long as this
 * happens the slot does not settle (slot_uses.h).
 *
 * The entry is looked for once more here, because an earlier packet of the same burst may have made
 * it, and an insert in between may have taken the place that the look-up of stage_flow saw.
 *
 * A closed pool takes no new flows, but its table goes on to serve TCP flows that began before and
 * have no entry (`tracking: changed`, a dataplane that was started anew).
 *
 * Bounded load (bounded_load.h) is the one case in which the lookup table is not the last word: a
 * flow whose backend is at its limit is passed on to another. Its next packets find that one by the
 * entry alone, so only a flow that has an entry now is passed on; one that the cache has no room
 * for goes to the owner of its slot, limit or not. So does one that begins with an ACK: it is a
 * connection that was set up before, most likely on the owner (after a restart of the dataplane all
 * of them are), and anybody else would answer it with a RST.
 */
#include <rte_prefetch.h>

#include "affinity.h"
#include "flow_bucket.h"
#include "stages.h"
#include "worker_state.h"

static hb_flow_ref find_again(const struct hb_worker *worker, const struct hb_packet *packet)
{
    const struct hb_flow_query *query = &packet->flow;
    hb_flow_ref entry;

    hb_flow_table_find(worker->flows, &query, 1, worker->now_ms, &entry);
    return entry;
}

static uint32_t service_id(const struct hb_batch *batch, const struct hb_packet *packet)
{
    return batch->generation->services[packet->service].id;
}

static inline uint64_t slot_hash(const struct hb_batch *batch, const struct hb_packet *packet)
{
    return hb_slot_hash(batch->generation, packet->service, &packet->flow);
}

/* The owner of the flow's slot, or HB_BACKEND_NONE when the pool has no backend for it. That every
 * owner is in the generation and has a rewrite was checked before it was adopted. */
static uint16_t owner_of(const struct hb_batch *batch, const struct hb_packet *packet)
{
    const struct hb_generation *generation = batch->generation;
    const struct hb_pool *pool = &generation->pools[generation->services[packet->service].pool];

    if (pool->slots == 0)
        return HB_BACKEND_NONE;
    return pool->owner[hb_slot_of(slot_hash(batch, packet), pool->slots)];
}

/* The same for a packet that may belong to an older flow: the previous owner of an unsettled slot.
 */
static uint16_t previous_owner_of(const struct hb_batch *batch, const struct hb_packet *packet,
                                  uint16_t owner)
{
    const struct hb_generation *generation = batch->generation;
    uint32_t pool = generation->services[packet->service].pool;
    uint32_t slot = hb_slot_of(slot_hash(batch, packet), generation->pools[pool].slots);
    uint16_t previous;

    if (packet->event == HB_EVENT_SYN || packet->event == HB_EVENT_UDP ||
        !hb_slot_past(generation, pool, slot, &previous) || previous == HB_BACKEND_NONE ||
        !hb_backend_is_in_use(&generation->backends[previous]))
        return owner;
    return previous;
}

static void set_backend(const struct hb_batch *batch, struct hb_packet *packet, uint16_t id)
{
    packet->backend_id = id;
    packet->backend = &batch->generation->backends[id];
    rte_prefetch0(packet->backend);
}

/* Passes a flow on that is about to be counted for the owner of its slot, if its pool bounds the
 * load and the owner is at its limit. Returns whether it did. */
static __attribute__((noinline)) bool keep_bound(struct hb_batch *batch, struct hb_packet *packet)
{
    const struct hb_generation *generation = batch->generation;
    struct hb_worker *worker = batch->worker;
    uint32_t pool = generation->services[packet->service].pool;
    uint16_t id;

    if (generation->pools[pool].bounded_load == 0)
        return false;
    worker->bounded = worker->loads;
    if (unlikely(!hb_loads_are_of(worker->loads, generation)))
        hb_loads_enter(worker->loads, generation, worker->backends);
    id = hb_bounded_choose(worker->loads, generation, worker->backends, pool,
                           slot_hash(batch, packet), packet->backend_id);
    if (id == packet->backend_id)
        return false;
    worker->counters->flow_overflows++;
    set_backend(batch, packet, id);
    return true;
}

static inline bool is_bounded(const struct hb_batch *batch)
{
    return unlikely(batch->generation->bounds != NULL);
}

static inline bool is_limited(const struct hb_batch *batch)
{
    return unlikely((batch->generation->features & HB_HAS_LIMIT) != 0);
}

/* Asks the limits of the packet's service. An earlier packet of the same burst may have made the
 * entry, so it is looked for again. False: the packet has gone its way, by the table or not at all.
 */
static bool admit(struct hb_batch *batch, struct hb_packet *packet)
{
    if ((batch->generation->services[packet->service].features & HB_HAS_LIMIT) == 0)
        return true;
    return hb_admit_flow(batch, packet, find_again(batch->worker, packet)) == HB_ADMITTED;
}

/* Moves an entry that does not decide any more to the backend just chosen. */
static void move_entry(struct hb_batch *batch, struct hb_packet *packet, hb_flow_ref entry)
{
    struct hb_worker *worker = batch->worker;
    struct hb_flow_value old = hb_flow_table_get(worker->flows, entry);
    uint8_t state = hb_flow_next_state(old.state, packet->event);

    if (state == HB_FLOW_FREE) { /* a new connection on the ports of one that has ended */
        state = hb_flow_next_state(HB_FLOW_FREE, packet->event);
        worker->services[service_id(batch, packet)].new_flows++;
    } else {
        worker->counters->flow_reselects++;
    }
    hb_uncount_flow(worker, old.backend);
    if (is_bounded(batch))
        keep_bound(batch, packet);
    hb_flow_table_repoint(worker->flows, entry, packet->backend_id, packet->backend->incarnation);
    hb_flow_table_touch(worker->flows, entry, state, worker->now_ms);
    hb_count_flow(worker, packet->backend_id);
    worker->backends[packet->backend_id].new_flows++;
}

static void count_insert(struct hb_batch *batch, struct hb_packet *packet, hb_flow_ref entry,
                         enum hb_flow_insert result, const struct hb_flow_value *displaced)
{
    struct hb_worker *worker = batch->worker;

    if (result == HB_FLOW_FULL) {
        worker->counters->flow_insert_failures++;
        return;
    }
    if (result != HB_FLOW_ADDED) {
        worker->counters->flow_expiries += result == HB_FLOW_REPLACED;
        worker->counters->flow_evictions += result == HB_FLOW_EVICTED;
        hb_end_flow(worker, displaced);
    }
    worker->counters->flow_inserts++;
    if (is_limited(batch))
        hb_admit_count(batch, packet, entry);
    if (is_bounded(batch) && packet->event != HB_EVENT_ACK && keep_bound(batch, packet))
        hb_flow_table_repoint(worker->flows, entry, packet->backend_id,
                              packet->backend->incarnation);
    hb_count_flow(worker, packet->backend_id);
    worker->services[service_id(batch, packet)].new_flows++;
    worker->backends[packet->backend_id].new_flows++;
}

/* Remembers the flow. Returns its entry when there was one already, else HB_FLOW_NONE. */
static hb_flow_ref remember(struct hb_batch *batch, struct hb_packet *packet)
{
    struct hb_worker *worker = batch->worker;
    struct hb_flow_value displaced, flow = {
                                        .incarnation = packet->backend->incarnation,
                                        .backend = packet->backend_id,
                                        .state = hb_flow_next_state(HB_FLOW_FREE, packet->event),
                                    };
    enum hb_flow_insert result;
    hb_flow_ref entry;

    if (flow.state == HB_FLOW_FREE) /* makes no entry, but may have one */
        return find_again(worker, packet);
    result = hb_flow_table_insert(worker->flows, &packet->flow, &flow, worker->now_ms, &displaced,
                                  &entry);
    if (result == HB_FLOW_EXISTED)
        return entry;
    count_insert(batch, packet, entry, result, &displaced);
    return HB_FLOW_NONE;
}

/* May this packet begin a flow that a closed pool must not take? Without an entry a TCP packet
 * behind the SYN is of a flow that began before. */
static bool is_shut_out(const struct hb_batch *batch, const struct hb_packet *packet)
{
    const struct hb_generation *generation = batch->generation;
    const struct hb_pool *pool = &generation->pools[generation->services[packet->service].pool];

    return unlikely((pool->flags & HB_POOL_CLOSED) != 0) &&
           (packet->event == HB_EVENT_SYN || packet->event == HB_EVENT_UDP);
}

static void select_backend(struct hb_batch *batch, struct hb_packet *packet)
{
    uint16_t owner = owner_of(batch, packet), chosen = owner;
    hb_flow_ref entry;

    if (owner == HB_BACKEND_NONE || is_shut_out(batch, packet)) {
        entry = find_again(batch->worker, packet);
        if (entry == HB_FLOW_NONE ||
            (!hb_flow_follow(batch, packet, entry) && !hb_reset_flow(batch, packet, entry)))
            hb_drop(batch, packet, HB_DROP_NO_BACKEND);
        return;
    }
    if (unlikely(batch->generation->past != NULL))
        chosen = previous_owner_of(batch, packet, owner);
    set_backend(batch, packet, chosen);
    if (is_limited(batch) && !admit(batch, packet))
        return;
    entry = remember(batch, packet);
    if (entry == HB_FLOW_NONE || hb_flow_follow(batch, packet, entry) ||
        hb_reset_flow(batch, packet, entry))
        return;
    if (chosen != owner)
        set_backend(batch, packet, owner);
    move_entry(batch, packet, entry);
}

/* Notes which marks this burst needed. */
static void note_uses(struct hb_batch *batch)
{
    const struct hb_generation *generation = batch->generation;
    const struct hb_worker *worker = batch->worker;
    const struct hb_packet *packet;

    HB_BATCH_FOREACH (packet, batch) {
        uint32_t pool = generation->services[packet->service].pool, slot;

        if (generation->past[pool].unsettled == NULL || generation->past[pool].used == NULL)
            continue;
        slot = hb_slot_of(slot_hash(batch, packet), generation->pools[pool].slots);
        if (packet->backend_id != generation->pools[pool].owner[slot] &&
            hb_slot_is_unsettled(generation->past[pool].unsettled, slot))
            generation->past[pool].used[worker->config.index][slot] = worker->now_ms | 1;
    }
}

void hb_stage_select(struct hb_batch *batch)
{
    struct hb_packet *packet;

    HB_BATCH_FOREACH (packet, batch) {
        if (packet->backend == NULL)
            select_backend(batch, packet);
    }
    if (batch->count != 0 && unlikely(batch->generation->past != NULL))
        note_uses(batch);
}
