/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage_flow.c: packets of known flows stay on their backend.
 *
 * An entry decides for a packet while its backend serves (is there in the same incarnation, and not
 * down) and belongs to the pool that serves the VIP now. Otherwise the flow is selected anew, and
 * so is a connection that a SYN opens on the 5-tuple of one that has ended: it is a new flow, and a
 * draining backend takes none.
 *
 * The state of a flow after a packet, by the state before it (rows) and what the packet is
 * (columns):
 *
 *                  SYN          ACK          FIN        RST      odd          UDP
 *     not known    opening      opening      -          -        -            first
 *     opening      opening      established  closing    reset    opening
 *     established  established  established  closing    reset    established
 *     closing      opening *    closing      closing    closing  closing
 *     reset        opening *    established  closing    reset    reset
 *     first, udp                                                              udp
 *
 * (-) no entry is made of a packet that ends a flow, or of flags that no stack sends; such packets
 * go by the lookup table. (*) a new flow, selected anew. An ACK without an entry is one packet of a
 * flow that began before this balancer could see it: on probation until the next one. An ACK after
 * a RST says that the server did not take the RST (RFC 5961): had a stranger sent it, the flow must
 * not be forgotten. A SYN in an established flow changes nothing for the same reason. After a FIN,
 * a RST only confirms.
 */
#include <rte_prefetch.h>
#include <rte_tcp.h>

#include "stages.h"
#include "worker_state.h"

_Static_assert(HB_BURST <= HB_FLOW_FIND_MAX, "a burst is one look-up");

enum event { SYN, ACK, FIN, RST, ODD, UDP, EVENTS };

static const uint8_t next_state[HB_FLOW_STATES][EVENTS] = {
    [HB_FLOW_FREE] =
        {[SYN] = HB_FLOW_TCP_OPENING, [ACK] = HB_FLOW_TCP_OPENING, [UDP] = HB_FLOW_UDP_FIRST},
    [HB_FLOW_TCP_OPENING] = {[SYN] = HB_FLOW_TCP_OPENING,
                             [ACK] = HB_FLOW_TCP_ESTABLISHED,
                             [FIN] = HB_FLOW_TCP_CLOSING,
                             [RST] = HB_FLOW_TCP_RESET,
                             [ODD] = HB_FLOW_TCP_OPENING},
    [HB_FLOW_TCP_ESTABLISHED] = {[SYN] = HB_FLOW_TCP_ESTABLISHED,
                                 [ACK] = HB_FLOW_TCP_ESTABLISHED,
                                 [FIN] = HB_FLOW_TCP_CLOSING,
                                 [RST] = HB_FLOW_TCP_RESET,
                                 [ODD] = HB_FLOW_TCP_ESTABLISHED},
    [HB_FLOW_TCP_CLOSING] = {[SYN] = HB_FLOW_FREE,
                             [ACK] = HB_FLOW_TCP_CLOSING,
                             [FIN] = HB_FLOW_TCP_CLOSING,
                             [RST] = HB_FLOW_TCP_CLOSING,
                             [ODD] = HB_FLOW_TCP_CLOSING},
    [HB_FLOW_TCP_RESET] = {[SYN] = HB_FLOW_FREE,
                           [ACK] = HB_FLOW_TCP_ESTABLISHED,
                           [FIN] = HB_FLOW_TCP_CLOSING,
                           [RST] = HB_FLOW_TCP_RESET,
                           [ODD] = HB_FLOW_TCP_RESET},
    [HB_FLOW_UDP_FIRST] = {[UDP] = HB_FLOW_UDP},
    [HB_FLOW_UDP] = {[UDP] = HB_FLOW_UDP},
};

/* What the packet says about its flow. Flags that end a flow outweigh others (BL-44). A SYN with
 * ACK is a server's answer, which no client sends. */
static enum event classify(const struct hb_packet *packet)
{
    uint8_t flags = packet->tcp_flags;

    if (packet->flow.protocol == HB_PROTOCOL_UDP)
        return UDP;
    if ((flags & RTE_TCP_RST_FLAG) != 0)
        return RST;
    if ((flags & RTE_TCP_FIN_FLAG) != 0)
        return (flags & RTE_TCP_SYN_FLAG) != 0 ? ODD : FIN;
    if ((flags & RTE_TCP_SYN_FLAG) != 0)
        return (flags & RTE_TCP_ACK_FLAG) != 0 ? ODD : SYN;
    return (flags & RTE_TCP_ACK_FLAG) != 0 ? ACK : ODD;
}

uint8_t hb_flow_next_state(uint8_t state, const struct hb_packet *packet)
{
    return next_state[state][classify(packet)];
}

bool hb_flow_follow(struct hb_batch *batch, struct hb_packet *packet, hb_flow_ref entry)
{
    const struct hb_generation *generation = batch->generation;
    struct hb_worker *worker = batch->worker;
    struct hb_flow_value flow = hb_flow_table_get(worker->flows, entry);
    uint8_t state = hb_flow_next_state(flow.state, packet);

    if (state == HB_FLOW_FREE)
        return false;
    if (!hb_backend_serves(generation, flow.backend, flow.incarnation) ||
        generation->backends[flow.backend].pool != packet->service->pool)
        return false;
    hb_flow_table_touch(worker->flows, entry, state, worker->now_ms);
    packet->backend_id = flow.backend;
    packet->backend = &generation->backends[flow.backend];
    return true;
}

/* The slot that a new flow will be looked up in, so that stage_select need not wait for it. */
static void prefetch_slot(const struct hb_batch *batch, const struct hb_packet *packet)
{
    const struct hb_pool *pool = &batch->generation->pools[packet->service->pool];

    if (pool->slots != 0)
        rte_prefetch0(&pool->owner[hb_slot_of(packet->hash, pool->slots)]);
}

void hb_stage_flow(struct hb_batch *batch)
{
    struct hb_worker *worker = batch->worker;
    const struct hb_flow_key *key[HB_BURST];
    hb_flow_ref entry[HB_BURST];
    uint64_t hash[HB_BURST];
    struct hb_packet *packet;
    uint32_t count = 0;
    uint32_t hits = 0;

    HB_BATCH_FOREACH (packet, batch) {
        packet->hash = hb_flow_hash(&packet->flow, &batch->generation->hash_key);
        key[count] = &packet->flow;
        hash[count++] = packet->hash;
    }
    hb_flow_table_find(worker->flows, key, hash, count, worker->now_ms, entry);

    count = 0;
    HB_BATCH_FOREACH (packet, batch) {
        hb_flow_ref found = entry[count++];

        hits += found != HB_FLOW_NONE;
        if (found == HB_FLOW_NONE || !hb_flow_follow(batch, packet, found))
            prefetch_slot(batch, packet);
        else
            rte_prefetch0(packet->backend);
    }
    worker->counters->flow_hits += hits;
    worker->counters->flow_misses += count - hits;
}
