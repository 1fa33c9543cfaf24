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
 *
 * Services that do not track all flows. With `tracking: off` the slot's owner serves, and so it
 * does for TCP with `changed` on a slot that has settled: such packets get their backend here, and
 * the flow cache is not touched for them. All others are as above.
 */
#include <string.h>

#include <rte_prefetch.h>

#include "affinity.h"
#include "flow_bucket.h"
#include "stages.h"
#include "worker_state.h"

_Static_assert(HB_BURST <= HB_FLOW_FIND_MAX, "a burst is one look-up");

#define BACKENDS_AT_HAND 256 /* 16 KB of lines */

enum {
    SYN = HB_EVENT_SYN,
    ACK = HB_EVENT_ACK,
    FIN = HB_EVENT_FIN,
    RST = HB_EVENT_RST,
    ODD = HB_EVENT_ODD,
    UDP = HB_EVENT_UDP,
};

/* Eight columns, so that a row is found by a shift. */
static const uint8_t next_state[HB_FLOW_STATES][8] = {
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

_Static_assert(HB_EVENTS <= 8, "an event is a column");

uint8_t hb_flow_next_state(uint8_t state, uint8_t event)
{
    return next_state[state][event];
}

/* What finding and following entries reads, at hand for a whole burst. */
struct guide {
    struct hb_flow_bucket *buckets;
    const struct hb_backend *backends;
    const struct hb_service *services;
    uint32_t backends_count;
    uint32_t now_ms;
    /* By an entry's state, and by that with bits set that say that it is of another protocol: 0, as
     * for a free place. */
    uint32_t timeout_ms[4 * (HB_FLOW_META_STATE + 1)];
};
_Static_assert(HB_FLOW_META_PROTOCOL == 3 * (HB_FLOW_META_STATE + 1), "two bits more");

static struct guide make_guide(const struct hb_batch *batch)
{
    struct guide guide = {
        .buckets = batch->worker->flows->buckets,
        .backends = batch->generation->backends,
        .services = batch->generation->services,
        .backends_count = batch->generation->backends_count,
        .now_ms = batch->worker->now_ms,
    };

    /* Zero for HB_FLOW_FREE. */
    memcpy(guide.timeout_ms, batch->worker->flows->timeout_ms, 4 * (HB_FLOW_META_STATE + 1));
    return guide;
}

/* Where an entry stands. */
struct spot {
    struct hb_flow_bucket *bucket; /* NULL: there is none */
    uint32_t place;
};

static struct spot spot_of(const struct guide *guide, hb_flow_ref entry)
{
    return (struct spot){entry == HB_FLOW_NONE ? NULL : &guide->buckets[entry >> 2], entry & 3};
}

/* hb_flow_find_in for an IPv4 flow: one comparison says that the entry is of the right protocol, in
 * use, and that its time is not over. Sets `bucket` of the spot in any case. */
static inline bool find_in(const struct guide *guide, struct hb_flow_bucket *bucket,
                           const struct hb_flow_query *query, struct spot *spot)
{
    uint32_t protocol = hb_flow_protocol_bits(query->kind);

    spot->bucket = bucket;
    for (uint32_t same = hb_flow_compare(bucket, query); likely(same != 0); same &= same - 1) {
        uint32_t place = (uint32_t)__builtin_ctz(same);
        uint32_t state =
            (bucket->meta[place] ^ protocol) & (HB_FLOW_META_STATE | HB_FLOW_META_PROTOCOL);

        if (likely(guide->now_ms - bucket->last_ms[place] < guide->timeout_ms[state])) {
            spot->place = place;
            return true;
        }
    }
    return false;
}

/* Of eight bytes of a backend: the incarnation's bits that an entry keeps, pool, serves. */
#define COMPARED (HB_FLOW_INCARNATION_MASK | UINT64_C(0xffff) << 32 | UINT64_C(0xff) << 48)
_Static_assert(offsetof(struct hb_backend, pool) == offsetof(struct hb_backend, incarnation) + 4 &&
                   offsetof(struct hb_backend, serves) ==
                       offsetof(struct hb_backend, incarnation) + 6,
               "read as one number");

/* hb_flow_follow. The entry decides if its backend is in the generation, in the incarnation of the
 * entry, up or draining, and of the pool that the VIP has now. No entry names backend 0, none. */
static inline bool follow(const struct guide *guide, struct hb_packet *packet, struct spot spot)
{
    struct hb_flow_bucket *bucket = spot.bucket;
    uint32_t meta = bucket->meta[spot.place], id = bucket->backend[spot.place];
    uint32_t incarnation = hb_flow_incarnation_of(bucket->incarnation[spot.place], meta);
    uint32_t state = next_state[meta & HB_FLOW_META_STATE][packet->event];
    const struct hb_backend *backend = &guide->backends[id];
    uint64_t is, must_be;

    if (unlikely(id >= guide->backends_count))
        return false;
    memcpy(&is, &backend->incarnation, sizeof(is));
    must_be =
        incarnation | (uint64_t)guide->services[packet->service].pool << 32 | UINT64_C(1) << 48;
    if (unlikely(((is ^ must_be) & COMPARED) != 0) || unlikely(state == HB_FLOW_FREE))
        return false;
    bucket->last_ms[spot.place] = guide->now_ms;
    /* States change seldom: without this store the next packet of the same flow need not wait. */
    if (unlikely((meta & HB_FLOW_META_STATE) != state))
        bucket->meta[spot.place] = (uint8_t)((meta & ~(uint32_t)HB_FLOW_META_STATE) | state);
    packet->backend_id = (uint16_t)id;
    packet->backend = backend;
    return true;
}
bool hb_flow_follow(struct hb_batch *batch, struct hb_packet *packet, hb_flow_ref entry)
{
    struct guide guide = make_guide(batch);

    return follow(&guide, packet, spot_of(&guide, entry));
}

/* What the packet of an unknown flow needs next, fetched early so that stage_select need not wait.
 */
static void prefetch_slot(const struct hb_batch *batch, const struct hb_packet *packet)
{
    hb_slot_prefetch(batch->generation, packet->service, &packet->flow);
}

/* The packets of a burst, a bit for each, by where their flows may stand. */
struct sorted {
    uint64_t first;  /* IPv4, found in the first bucket */
    uint64_t second; /* IPv4, to be looked for in the second one */
    uint64_t ipv6;
};
_Static_assert(HB_BURST <= 64, "a bit for each packet");

/* The first packet of a set that is not empty. */
static inline uint32_t first_of(uint64_t packets)
{
    return (uint32_t)__builtin_ctzll(packets);
}

/* Looks for the IPv4 flows of a burst in their first buckets, whose lines are here by now. */
static struct sorted find_first(const struct hb_batch *batch, const struct guide *guide,
                                struct spot spot[])
{
    const struct hb_flow_shelf shelf = batch->worker->flows->shelf[0];
    uint64_t second = 0, ipv6 = 0;

    for (uint32_t i = 0; i < batch->count; i++) {
        const struct hb_flow_query *query = &batch->packet[i].flow;
        struct hb_flow_bucket *bucket = &guide->buckets[hb_flow_first_bucket(&shelf, query->hash)];

        if (unlikely(hb_flow_is_ipv6(query))) {
            ipv6 |= UINT64_C(1) << i;
            continue;
        }
        if (unlikely(!find_in(guide, bucket, query, &spot[i])))
            second |= UINT64_C(1) << i;
    }
    return (struct sorted){UINT64_MAX >> (64 - batch->count) & ~(second | ipv6), second, ipv6};
}

/* Fetches the second buckets, in a row: several are on their way at once, and each would hold up
 * the search for the packets behind it. */
static void prefetch_second(const struct hb_batch *batch, const struct guide *guide,
                            struct spot spot[], uint64_t second)
{
    const struct hb_flow_shelf shelf = batch->worker->flows->shelf[0];

    for (; second != 0; second &= second - 1) {
        uint32_t i = first_of(second), bucket = (uint32_t)(spot[i].bucket - guide->buckets);

        bucket = hb_flow_other_bucket_of(&shelf, bucket, &batch->packet[i].flow);
        spot[i].bucket = &guide->buckets[bucket];
        __builtin_prefetch(spot[i].bucket, 1);
    }
}

static void find_second(const struct hb_batch *batch, const struct guide *guide, struct spot spot[],
                        uint64_t second)
{
    for (; second != 0; second &= second - 1) {
        uint32_t i = first_of(second);

        if (!find_in(guide, spot[i].bucket, &batch->packet[i].flow, &spot[i]))
            spot[i] = (struct spot){NULL, 0};
    }
}

static void find_ipv6(const struct hb_batch *batch, const struct guide *guide, struct spot spot[],
                      uint64_t ipv6)
{
    const struct hb_flow_query *query[HB_BURST];
    hb_flow_ref found[HB_BURST];
    uint32_t count = 0;

    for (uint64_t rest = ipv6; rest != 0; rest &= rest - 1)
        query[count++] = &batch->packet[first_of(rest)].flow;
    hb_flow_table_find(batch->worker->flows, query, count, batch->worker->now_ms, found);
    count = 0;
    for (uint64_t rest = ipv6; rest != 0; rest &= rest - 1)
        spot[first_of(rest)] = spot_of(guide, found[count++]);
}

/* Follows a packet's entry. Returns whether there is none. */
static inline bool follow_one(struct hb_batch *batch, const struct guide *guide,
                              struct hb_packet *packet, struct spot spot)
{
    bool found = spot.bucket != NULL;

    if (unlikely(!found) || unlikely(!follow(guide, packet, spot))) {
        packet->backend = NULL; /* stage_select will choose one */
        prefetch_slot(batch, packet);
    }
    return !found;
}

/* Backends that do not all fit the nearest cache are fetched before the first is looked at. */
static void prefetch_backends(const struct guide *guide, const struct spot spot[], uint64_t packets)
{
    for (; packets != 0; packets &= packets - 1) {
        const struct spot *at = &spot[first_of(packets)];

        if (at->bucket != NULL)
            rte_prefetch0(&guide->backends[at->bucket->backend[at->place]]);
    }
}

/* Follows the entries of some packets. Returns how many have none. */
static inline uint32_t follow_some(struct hb_batch *batch, const struct guide *guide,
                                   const struct spot spot[], uint64_t packets)
{
    uint32_t misses = 0;

    if (guide->backends_count > BACKENDS_AT_HAND)
        prefetch_backends(guide, spot, packets);
    for (; packets != 0; packets &= packets - 1) {
        uint32_t i = first_of(packets);

        misses += follow_one(batch, guide, &batch->packet[i], spot[i]);
    }
    return misses;
}

/* A packet of an untracked flow: true when the slot's owner serves it, which is set then. */
static inline bool serve_untracked(struct hb_batch *batch, struct hb_packet *packet)
{
    const struct hb_generation *generation = batch->generation;
    const struct hb_service *service = &generation->services[packet->service];
    const struct hb_pool *pool = &generation->pools[service->pool];
    uint32_t slot =
        hb_slot_of(hb_slot_hash(generation, packet->service, &packet->flow), pool->slots);
    uint16_t previous;

    if (service->tracking == HB_TRACKING_ALL || unlikely(pool->slots == 0))
        return false;
    if (unlikely(packet->event == HB_EVENT_SYN) && (pool->flags & HB_POOL_CLOSED) != 0)
        return false; /* stage_select turns it away */
    if (service->tracking == HB_TRACKING_CHANGED &&
        unlikely(hb_slot_past(generation, service->pool, slot, &previous)))
        return false;
    packet->backend_id = pool->owner[slot];
    packet->backend = &generation->backends[packet->backend_id];
    if (generation->backends_count > BACKENDS_AT_HAND)
        rte_prefetch0(packet->backend);
    if (unlikely(packet->event == HB_EVENT_SYN)) {
        batch->worker->services[service->id].new_flows++;
        batch->worker->backends[packet->backend_id].new_flows++;
    }
    return true;
}

/* Not all flows of this generation are tracked: looks only for those that are. */
static void follow_tracked(struct hb_batch *batch)
{
    struct hb_worker *worker = batch->worker;
    const struct hb_flow_query *query[HB_BURST];
    hb_flow_ref entry[HB_BURST];
    uint8_t tracked[HB_BURST];
    struct guide guide = make_guide(batch);
    uint32_t count = 0, misses = 0;

    for (uint32_t i = 0; i < batch->count; i++) {
        struct hb_packet *packet = &batch->packet[i];

        if (likely(serve_untracked(batch, packet)))
            continue;
        query[count] = &packet->flow;
        tracked[count++] = (uint8_t)i;
        hb_flow_prefetch(worker->flows, hb_flow_shelf_of(worker->flows, &packet->flow),
                         packet->flow.hash);
    }
    if (count == 0)
        return;
    hb_flow_table_find(worker->flows, query, count, worker->now_ms, entry);
    for (uint32_t t = 0; t < count; t++) {
        struct hb_packet *packet = &batch->packet[tracked[t]];

        misses += entry[t] == HB_FLOW_NONE;
        if (entry[t] == HB_FLOW_NONE || !follow(&guide, packet, spot_of(&guide, entry[t]))) {
            packet->backend = NULL; /* stage_select will choose one */
            prefetch_slot(batch, packet);
        }
    }
    worker->counters->flow_hits += count - misses;
    worker->counters->flow_misses += misses;
}

/* Nearly all packets are of IPv4 flows in their first bucket: those go on while the second buckets
 * of the others are on their way. Packets of one flow stay in their order: all of them are found in
 * the same bucket. */
void hb_stage_flow(struct hb_batch *batch)
{
    struct hb_worker_counters *counters = batch->worker->counters;
    struct spot spot[HB_BURST];
    struct sorted sorted;
    uint32_t misses = 0;
    struct guide guide;

    if (batch->count == 0)
        return;
    if (unlikely(batch->generation->selective)) {
        follow_tracked(batch);
        return;
    }
    guide = make_guide(batch);
    sorted = find_first(batch, &guide, spot);
    if (sorted.second + sorted.ipv6 == 0 && guide.backends_count <= BACKENDS_AT_HAND) {
        for (uint32_t i = 0; i < batch->count; i++)
            follow_one(batch, &guide, &batch->packet[i], spot[i]);
    } else {
        prefetch_second(batch, &guide, spot, sorted.second);
        follow_some(batch, &guide, spot, sorted.first);
        find_second(batch, &guide, spot, sorted.second);
        misses = follow_some(batch, &guide, spot, sorted.second);
        if (sorted.ipv6 != 0) {
            find_ipv6(batch, &guide, spot, sorted.ipv6);
            misses += follow_some(batch, &guide, spot, sorted.ipv6);
        }
    }
    counters->flow_hits += batch->count - misses;
    counters->flow_misses += misses;
}
