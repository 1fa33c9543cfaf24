/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage_fragment.c: fragments for a VIP follow the first one of their datagram, and so do those of
 * answers whose session or VIP only a port can tell (stage_return.c).
 *
 * Only the first fragment has ports. It goes the way of any packet of its flow, and what it said is
 * remembered (fragment_table.h); later ones get its ports and go the same way. One that comes
 * before the first is held, and goes the whole way from its start as soon as that is here. So
 * fragments and whole packets of a flow reach the same backend, in any order.
 *
 * NICs spread fragments over the workers by their addresses alone, whole packets by ports as well.
 * So the flow's entry may be on another worker. Where that matters (peek.h) it is asked for, once a
 * datagram.
 *
 * Dropped: first fragments without their whole header, which hide things from firewalls (RFC 1858,
 * RFC 7112); a fragment that overlaps another, and with it all that is still to come of the
 * datagram (RFC 5722), so that no backend can put it together; fragments whose first one does not
 * come in time; fragments of other protocols than services have. What is there twice is dropped
 * alone (RFC 8200, section 4.5): the first copy went on.
 */
#include <rte_mbuf.h>

#include "flow_bucket.h"
#include "parse_care.h"
#include "peek.h"
#include "service_map.h"
#include "stages.h"
#include "worker_state.h"

static struct hb_fragment_key key_of(const struct hb_packet *packet,
                                     const struct hb_fragment *fragment)
{
    bool ipv6 = hb_flow_is_ipv6(&packet->flow);
    struct hb_fragment_key key = {
        .id = fragment->id,
        .protocol = ipv6 ? 0 : fragment->protocol,
        .family = ipv6 ? HB_FAMILY_IPV6 : HB_FAMILY_IPV4,
    };

    if (ipv6)
        memcpy(key.address, packet->flow.addresses, sizeof(key.address));
    else
        key.address[0] = packet->flow.source | (uint64_t)packet->flow.destination << 32;
    return key;
}

/* What can never be balanced need not be held. Of an IPv6 datagram only the first one tells. */
static bool may_be_balanced(const struct hb_packet *packet, const struct hb_fragment *fragment)
{
    return hb_flow_is_ipv6(&packet->flow) || fragment->protocol == HB_PROTOCOL_TCP ||
           fragment->protocol == HB_PROTOCOL_UDP || fragment->protocol == HB_PROTOCOL_SCTP;
}

static void hold(struct hb_batch *batch, struct hb_packet *packet, struct hb_datagram *datagram)
{
    struct hb_worker *worker = batch->worker;

    if (!hb_fragment_hold(worker->fragments, datagram, packet->mbuf, worker->now_ms)) {
        if (datagram->held == HB_FRAGMENT_NONE)
            hb_fragment_forget(worker->fragments, datagram);
        hb_drop(batch, packet, HB_DROP_FRAGMENT_FULL);
        return;
    }
    packet->mbuf = NULL;
    batch->ended++;
}

/* Now the packet is like a whole one. */
static void set_ports(struct hb_packet *packet, const struct hb_datagram *datagram)
{
    uint8_t family = hb_flow_is_ipv6(&packet->flow) ? HB_FAMILY_IPV6 : HB_FAMILY_IPV4;

    packet->flow.ports = datagram->ports;
    packet->flow.kind = HB_FLOW_KIND(datagram->protocol, family);
    packet->fault = HB_NO_FAULT;
}

/* Finds the service of its flow. False when none has it. */
static bool find_service(struct hb_batch *batch, struct hb_packet *packet)
{
    const struct hb_generation *generation = batch->generation;
    struct hb_flow_query *flow = &packet->flow;
    bool ipv6 = hb_flow_is_ipv6(flow);
    int32_t index;

    flow->hash = ipv6 ? hb_flow_hash_ipv6(flow, &generation->hash_key)
                      : hb_flow_hash_ipv4(flow, &generation->hash_key);
    index = hb_service_of(generation, flow);
    if (index < 0)
        return false;
    packet->service = (uint16_t)index;
    return true;
}

/* Does the flow have an entry on another worker alone, which decides? */
static void look_elsewhere(struct hb_batch *batch, const struct hb_packet *packet,
                           struct hb_datagram *datagram)
{
    const struct hb_generation *generation = batch->generation;

    if (generation->services[packet->service].tracking == HB_TRACKING_OFF ||
        hb_peek_has_entry(batch, &packet->flow))
        return;
    datagram->backend = hb_peek_elsewhere(batch, packet->service, &packet->flow);
    datagram->incarnation = generation->backends[datagram->backend].incarnation;
}

static void set_decided(struct hb_batch *batch, struct hb_packet *packet,
                        const struct hb_datagram *datagram)
{
    const struct hb_generation *generation = batch->generation;

    if (datagram->backend == HB_BACKEND_NONE ||
        !hb_backend_serves(generation, datagram->backend, datagram->incarnation))
        return;
    packet->backend_id = datagram->backend;
    packet->backend = &generation->backends[datagram->backend];
    packet->shape = HB_SHAPE_DECIDED;
}

/* The first fragment. Returns its datagram, or NULL when it was dropped. */
static struct hb_datagram *take_first(struct hb_batch *batch, struct hb_packet *packet,
                                      const struct hb_fragment *fragment,
                                      const struct hb_fragment_key *key, uint64_t hash)
{
    struct hb_worker *worker = batch->worker;
    struct hb_fragment_table *table = worker->fragments;
    struct hb_datagram *datagram = hb_fragment_find(table, key, hash, worker->now_ms);
    uint8_t fault = hb_parse_first_fragment(packet, fragment);
    uint8_t protocol = (uint8_t)packet->flow.kind;
    uint32_t held = hb_fragment_held(table);

    if (fault != HB_NO_FAULT) {
        hb_drop(batch, packet, fault);
        return NULL;
    }
    if (datagram != NULL && datagram->known) {
        if (datagram->ports == packet->flow.ports && datagram->protocol == protocol &&
            worker->now_ms - datagram->begun_ms < HB_FRAGMENT_REUSE_MS)
            return datagram; /* once more, or more of it: its bytes tell */
        hb_fragment_forget(table, datagram);
        datagram = NULL;
    }
    if (datagram == NULL)
        datagram = hb_fragment_begin(table, key, hash, worker->now_ms);
    hb_fragment_know(table, datagram);
    datagram->ports = packet->flow.ports;
    datagram->protocol = protocol;
    hb_fragment_release(table, datagram);
    worker->released = (uint16_t)(worker->released + held - hb_fragment_held(table));
    return datagram;
}

/* A later one. Returns its datagram when that is known, else NULL: the fragment was held. */
static struct hb_datagram *take_later(struct hb_batch *batch, struct hb_packet *packet,
                                      const struct hb_fragment *fragment,
                                      const struct hb_fragment_key *key, uint64_t hash)
{
    struct hb_worker *worker = batch->worker;
    struct hb_datagram *datagram = hb_fragment_find(worker->fragments, key, hash, worker->now_ms);

    if (datagram == NULL && !may_be_balanced(packet, fragment)) {
        hb_drop(batch, packet, HB_DROP_FRAGMENT);
        return NULL;
    }
    if (datagram == NULL)
        datagram = hb_fragment_begin(worker->fragments, key, hash, worker->now_ms);
    if (!datagram->known) {
        hold(batch, packet, datagram);
        return NULL;
    }
    packet->event = datagram->protocol == HB_PROTOCOL_TCP ? HB_EVENT_ODD : HB_EVENT_UDP;
    return datagram;
}

static void go_on(struct hb_batch *batch, struct hb_packet *packet,
                  const struct hb_fragment *fragment, struct hb_datagram *datagram)
{
    set_ports(packet, datagram);
    if (!find_service(batch, packet)) {
        hb_drop(batch, packet, HB_DROP_NO_SERVICE);
        return;
    }
    if (fragment->start == 0)
        look_elsewhere(batch, packet, datagram);
    set_decided(batch, packet, datagram);
    batch->worker->counters->fragments++;
}

/* Returns the datagram of a fragment that may go on, NULL when it was dropped or is held. One that
 * is complete now must be forgotten after that. */
static struct hb_datagram *take_in(struct hb_batch *batch, struct hb_packet *packet,
                                   struct hb_fragment *fragment, bool *complete)
{
    static const enum hb_drop_reason reasons[] = {
        [HB_FRAGMENT_DUPLICATE] = HB_DROP_FRAGMENT_DUPLICATE,
        [HB_FRAGMENT_OVERLAPS] = HB_DROP_FRAGMENT_OVERLAP,
        [HB_FRAGMENT_REFUSED] = HB_DROP_FRAGMENT_REFUSED,
        [HB_FRAGMENT_TOO_MANY_RUNS] = HB_DROP_FRAGMENT_FULL,
    };
    uint8_t fault = hb_parse_fragment(packet, fragment);
    struct hb_fragment_key key = key_of(packet, fragment);
    uint64_t hash = hb_fragment_hash(&key, &batch->generation->hash_key);
    struct hb_datagram *datagram;
    enum hb_fragment_verdict verdict;

    if (fault != HB_NO_FAULT) {
        hb_drop(batch, packet, fault);
        return NULL;
    }
    datagram = fragment->start == 0 ? take_first(batch, packet, fragment, &key, hash)
                                    : take_later(batch, packet, fragment, &key, hash);
    if (datagram == NULL)
        return NULL;
    verdict = hb_fragment_note(datagram, fragment->start, fragment->end, !fragment->more);
    *complete = verdict == HB_FRAGMENT_COMPLETE;
    if (verdict == HB_FRAGMENT_GOOD || verdict == HB_FRAGMENT_COMPLETE)
        return datagram;
    hb_drop(batch, packet, reasons[verdict]);
    return NULL;
}

static void work_on(struct hb_batch *batch, struct hb_packet *packet)
{
    struct hb_fragment fragment;
    bool complete;
    struct hb_datagram *datagram = take_in(batch, packet, &fragment, &complete);

    if (datagram == NULL)
        return;
    go_on(batch, packet, &fragment, datagram);
    if (complete)
        hb_fragment_forget(batch->worker->fragments, datagram);
}

bool hb_fragment_find_ports(struct hb_batch *batch, struct hb_packet *packet)
{
    struct hb_fragment fragment;
    bool complete;
    struct hb_datagram *datagram = take_in(batch, packet, &fragment, &complete);

    if (datagram == NULL)
        return false;
    set_ports(packet, datagram);
    batch->worker->counters->fragments++;
    if (complete)
        hb_fragment_forget(batch->worker->fragments, datagram);
    return true;
}

static void drop_out(struct hb_worker *worker, enum hb_fragment_out cause,
                     enum hb_drop_reason reason)
{
    struct rte_mbuf *mbuf;

    while ((mbuf = hb_fragment_next_out(worker->fragments, cause)) != NULL)
        hb_drop_mbuf(worker, mbuf, reason);
}

/* Drops what did not come on, and counts what is held now. */
static void settle(struct hb_worker *worker)
{
    drop_out(worker, HB_FRAGMENT_LATE, HB_DROP_FRAGMENT_NO_FIRST);
    drop_out(worker, HB_FRAGMENT_LOST, HB_DROP_FRAGMENT_FULL);
    worker->counters->held_packets = hb_fragment_held(worker->fragments) + worker->released;
}

void hb_stage_fragment(struct hb_batch *batch)
{
    for (uint16_t i = 0; i < batch->aside_count; i++) {
        struct hb_packet *packet = &batch->aside[i];

        if (packet->mbuf != NULL && packet->shape == HB_SHAPE_FRAGMENT)
            work_on(batch, packet);
    }
    settle(batch->worker);
    hb_rejoin(batch, HB_SHAPE_FRAGMENT);
}

void hb_fragments_age(struct hb_worker *worker)
{
    hb_fragment_expire(worker->fragments, worker->now_ms);
    settle(worker);
}
