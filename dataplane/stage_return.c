/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage_return.c: answers of NAT backends, on their way back to the clients.
 *
 * Two kinds. With NAT an answer comes from a backend's address and port and goes to a client; the
 * map of the generation (nat_map.h) says which VIP and port its source becomes. With full NAT it is
 * addressed to one of the pool's source addresses, and the session (nat_session.h) knows the rest.
 * What a backend sends to one of the balancer's own addresses is the kernel's: answers to health
 * checks. So is what it sends from other ports, as a client of somebody else.
 *
 * Fragments of answers. With NAT, where all services behind a backend have one VIP, its address
 * alone says what becomes of a later fragment: nothing is remembered, and none waits. With full
 * NAT, and where a backend serves several VIPs, the ports are needed: a later fragment gets those
 * of the first one of its datagram, as a client's does (stage_fragment.c), with the same bounds.
 *
 * An answer that ends its connection (FIN, RST) moves the flow's entry on, if this worker has it,
 * by the same table as the client's (stage_flow.c): so a drain does not wait an hour for a
 * connection that its server has reset. With several workers the answer may come to another one
 * than the requests; then the entry goes by the client's FIN or by time, as without NAT.
 *
 * They are sent by the way to clients that control found (settings.to_clients); a packet that does
 * not fit there is dropped, and its server told what would.
 */
#include <rte_ethdev.h>

#include "flow_bucket.h"
#include "full_nat.h"
#include "nat_frame.h"
#include "nat_icmp.h"
#include "nat_map.h"
#include "stages.h"
#include "worker_state.h"

/* Answers of one family that wait to be sent. */
struct outgoing {
    struct hb_packet *packet[HB_BURST];
    struct rte_mbuf *mbuf[HB_BURST];
    uint16_t count;
};

static uint8_t family_of(const struct hb_packet *packet)
{
    return hb_flow_is_ipv6(&packet->flow) ? HB_FAMILY_IPV6 : HB_FAMILY_IPV4;
}

/* The key of an end of the packet as it was parsed. */
static struct hb_nat_key key_of(const struct hb_packet *packet, enum hb_nat_end end, hb_be16 port,
                                uint8_t protocol)
{
    struct hb_nat_key key = {.port = port, .protocol = protocol, .family = family_of(packet)};
    bool source = end == HB_NAT_SOURCE_END;

    if (key.family == HB_FAMILY_IPV6)
        memcpy(key.address, packet->flow.addresses + (source ? 0 : HB_ADDRESS_SIZE),
               HB_ADDRESS_SIZE);
    else
        memcpy(key.address, source ? &packet->flow.source : &packet->flow.destination, 4);
    return key;
}

/* By address alone: what has no ports, or none that could be read. */
static const struct hb_nat_slot *find_by_address(const struct hb_nat *nat,
                                                 const struct hb_packet *packet)
{
    uint8_t *l3 = rte_pktmbuf_mtod_offset(packet->mbuf, uint8_t *, packet->l3_offset);
    uint32_t readable = rte_pktmbuf_data_len(packet->mbuf) - packet->l3_offset;
    struct hb_nat_header header;
    struct hb_nat_key key;

    if (!hb_nat_read(&header, l3, readable))
        return NULL;
    if (packet->fault == HB_DROP_ICMP_TYPE && !hb_nat_is_error(&header))
        return NULL;
    key = key_of(packet, HB_NAT_SOURCE_END, 0, header.protocol);
    return hb_nat_find(nat, &key);
}

bool hb_is_return(const struct hb_batch *batch, struct hb_packet *packet)
{
    const struct hb_nat *nat = batch->generation->nat;
    struct hb_nat_key key = key_of(packet, HB_NAT_DESTINATION_END, 0, 0);
    const struct hb_nat_slot *slot = hb_nat_find(nat, &key);

    packet->backend_id = HB_BACKEND_NONE;
    if (slot != NULL)
        return slot->kind == HB_NAT_SOURCE;
    if (packet->fault == HB_NO_FAULT) {
        key = key_of(packet, HB_NAT_SOURCE_END, (uint16_t)packet->flow.ports,
                     (uint8_t)packet->flow.kind);
        slot = hb_nat_find(nat, &key);
    } else {
        slot = find_by_address(nat, packet);
    }
    if (slot == NULL)
        return false;
    packet->service = slot->service;
    packet->backend_id = slot->backend;
    return true;
}

void hb_flow_note_answer(struct hb_batch *batch, const struct hb_flow_key *flow, uint8_t event)
{
    struct hb_flow_table *flows = batch->worker->flows;
    uint64_t hash = hb_flow_hash(flow, &batch->generation->hash_key);
    struct hb_flow_query query = hb_flow_query_of(flow, hash);
    const struct hb_flow_query *queries[] = {&query};
    hb_flow_ref entry;
    uint8_t state;

    hb_flow_table_find(flows, queries, 1, batch->worker->now_ms, &entry);
    if (entry == HB_FLOW_NONE)
        return;
    state = hb_flow_next_state(hb_flow_table_get(flows, entry).state, event);
    if (state != HB_FLOW_FREE)
        hb_flow_table_touch(flows, entry, state, batch->worker->now_ms);
}

static bool refuse(struct hb_batch *batch, struct hb_packet *packet, enum hb_drop_reason reason)
{
    hb_drop(batch, packet, reason);
    return false;
}

static bool find_service(struct hb_batch *batch, struct hb_packet *packet, hb_be16 port,
                         uint8_t protocol)
{
    struct hb_nat_key key = key_of(packet, HB_NAT_SOURCE_END, port, protocol);
    const struct hb_nat_slot *slot = hb_nat_find(batch->generation->nat, &key);

    if (slot == NULL)
        return refuse(batch, packet, HB_DROP_NAT_NO_SESSION);
    packet->service = slot->service;
    return true;
}

/* A fragment of a backend that serves several VIPs: the port of its datagram tells which. */
static bool find_fragment_service(struct hb_batch *batch, struct hb_packet *packet)
{
    return hb_fragment_find_ports(batch, packet) &&
           find_service(batch, packet, (hb_be16)packet->flow.ports, (uint8_t)packet->flow.kind);
}

/* An answer that no session is needed for. */
static bool return_by_map(struct hb_batch *batch, struct hb_packet *packet, uint16_t room)
{
    const struct hb_nat_service *service;
    struct hb_nat_header header;

    if (packet->fault != HB_NO_FAULT && packet->fault != HB_DROP_FRAGMENT &&
        packet->fault != HB_DROP_ICMP_TYPE)
        return refuse(batch, packet, packet->fault);
    if (packet->fault == HB_DROP_FRAGMENT && packet->service == HB_NO_SERVICE &&
        !find_fragment_service(batch, packet))
        return false;
    if (!hb_nat_begin(batch, packet, &header, room))
        return false;
    if (packet->fault == HB_DROP_ICMP_TYPE)
        return hb_nat_icmp_return(batch, packet, &header);
    /* The service of a first fragment that nothing is remembered of is found by its own port. */
    if (packet->fault == HB_DROP_FRAGMENT && header.l4 != NULL &&
        !find_service(batch, packet, hb_nat_port(&header, HB_NAT_SOURCE_END), header.protocol))
        return false;
    service = &batch->generation->nat->services[packet->service];
    hb_nat_set_end(&header, HB_NAT_SOURCE_END, service->vip, service->port);
    if (packet->fault == HB_NO_FAULT &&
        (packet->event == HB_EVENT_FIN || packet->event == HB_EVENT_RST)) {
        struct hb_flow_key flow = hb_nat_flow_key(&header, true);

        hb_flow_note_answer(batch, &flow, packet->event);
    }
    return true;
}

static bool translate(struct hb_batch *batch, struct hb_packet *packet,
                      const struct hb_client_hop *hop)
{
    if (hop->size == 0)
        return refuse(batch, packet, HB_DROP_NAT_NO_WAY);
    if (packet->inner_length > hop->mtu && packet->fault == HB_NO_FAULT) {
        hb_too_big(batch, packet, hop->mtu);
        return false;
    }
    if (packet->inner_length > hop->mtu)
        return refuse(batch, packet, HB_DROP_OVERSIZE);
    if (packet->backend_id == HB_BACKEND_NONE)
        return hb_full_nat_return(batch, packet, hop->size);
    return return_by_map(batch, packet, hop->size);
}

static void count_returned(struct hb_worker *worker, const struct hb_packet *packet,
                           const struct hb_client_hop *hop)
{
    worker->counters->tx_packets++;
    worker->counters->tx_bytes += packet->inner_length + (uint64_t)hop->size;
    worker->backends[packet->backend_id].returned_packets++;
    worker->backends[packet->backend_id].returned_bytes += packet->inner_length;
}

static void send_all(struct hb_batch *batch, struct outgoing *out, const struct hb_client_hop *hop)
{
    struct hb_worker *worker = batch->worker;
    uint16_t taken = 0;

    if (out->count == 0)
        return;
    taken = rte_eth_tx_burst(hop->port, (uint16_t)worker->config.index, out->mbuf, out->count);
    for (uint16_t i = 0; i < taken; i++) {
        count_returned(worker, out->packet[i], hop);
        out->packet[i]->mbuf = NULL;
    }
    for (uint16_t i = taken; i < out->count; i++)
        hb_drop(batch, out->packet[i], hb_tx_refusal(worker, hop->port));
}

void hb_stage_return(struct hb_batch *batch)
{
    const struct hb_client_hop *hops = batch->generation->settings.to_clients;
    struct outgoing out[2];

    out[0].count = out[1].count = 0;
    for (uint16_t i = 0; i < batch->aside_count; i++) {
        struct hb_packet *packet = &batch->aside[i];
        bool ipv6;

        if (packet->mbuf == NULL || packet->shape != HB_SHAPE_RETURN)
            continue;
        ipv6 = hb_flow_is_ipv6(&packet->flow);
        if (!translate(batch, packet, &hops[ipv6]))
            continue;
        hb_nat_end_frame(packet, hops[ipv6].bytes, hops[ipv6].size);
        out[ipv6].packet[out[ipv6].count] = packet;
        out[ipv6].mbuf[out[ipv6].count++] = packet->mbuf;
    }
    send_all(batch, &out[0], &hops[0]);
    send_all(batch, &out[1], &hops[1]);
    hb_rejoin(batch, HB_SHAPE_RETURN); /* none of them is left */
}
