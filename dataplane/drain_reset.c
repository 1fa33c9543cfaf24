/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drain_reset.c: TCP flows of a backend whose drain ends by reset (HB_BACKEND_RESET); and the
 * resets, which full NAT uses for its sessions as well (full_nat.c).
 *
 * The next packet of such a flow is dropped and its entry forgotten, and both ends are told: the
 * client by a RST from the VIP whose sequence number is the one that it waits for (RFC 9293,
 * section 3.10.7.1), the way the packet came; the backend by a RST as from the client with the
 * packet's sequence number, through its tunnel. A RST of the client's own goes on to the backend;
 * a SYN begins a new flow and is selected anew. So are flows of other protocols.
 */
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>

#include "answer.h"
#include "checksum.h"
#include "flow_bucket.h"
#include "parse_care.h"
#include "stages.h"
#include "worker_state.h"

#define FLAG_FIN 1
#define FLAG_SYN 2
#define FLAG_RST 4
#define FLAG_ACK 16

/* The TCP header of a packet, which may be gone when it is used. */
struct segment {
    struct rte_tcp_hdr tcp;
    uint32_t length; /* of the data and SYN and FIN: what an acknowledgement counts */
};

static struct segment read_segment(const struct hb_packet *packet)
{
    struct segment segment;
    uint32_t behind = packet->l3_offset + packet->inner_length - packet->l4_offset;

    memcpy(&segment.tcp, rte_pktmbuf_mtod_offset(packet->mbuf, const uint8_t *, packet->l4_offset),
           sizeof(segment.tcp));
    segment.length = behind - (segment.tcp.data_off >> 4) * 4u +
                     ((segment.tcp.tcp_flags & FLAG_SYN) != 0) +
                     ((segment.tcp.tcp_flags & FLAG_FIN) != 0);
    return segment;
}

/* An empty buffer with room for Ethernet and IP headers in front; counted as made, and as dropped
 * when there is none. */
static struct rte_mbuf *make_mbuf(struct hb_worker *worker, struct rte_mempool *pool)
{
    struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);

    worker->counters->made_packets++;
    if (mbuf == NULL)
        worker->counters->drops[HB_DROP_NO_MBUF]++;
    return mbuf;
}

static void put_reset(struct rte_mbuf *mbuf, const struct rte_tcp_hdr *reset,
                      const struct hb_answer *between)
{
    struct rte_tcp_hdr *tcp = (void *)rte_pktmbuf_append(mbuf, sizeof(*tcp));

    *tcp = *reset;
    tcp->data_off = sizeof(*tcp) / 4 << 4;
    tcp->rx_win = 0;
    tcp->cksum = 0;
    tcp->tcp_urp = 0;
    tcp->cksum = (uint16_t)~hb_packet_sum(mbuf, 0, sizeof(*tcp),
                                          hb_pseudo_sum(between->addresses,
                                                        hb_answer_addresses_size(between),
                                                        HB_PROTOCOL_TCP, sizeof(*tcp)));
}

static void tell_client(struct hb_worker *worker, const struct hb_answer *answer,
                        const struct segment *segment, struct rte_mempool *pool)
{
    struct rte_mbuf *mbuf = make_mbuf(worker, pool);
    struct rte_tcp_hdr reset = {
        .src_port = segment->tcp.dst_port,
        .dst_port = segment->tcp.src_port,
        .tcp_flags = FLAG_RST,
    };

    if (mbuf == NULL)
        return;
    if ((segment->tcp.tcp_flags & FLAG_ACK) != 0) {
        reset.sent_seq = segment->tcp.recv_ack;
    } else {
        reset.tcp_flags |= FLAG_ACK;
        reset.recv_ack =
            rte_cpu_to_be_32(rte_be_to_cpu_32(segment->tcp.sent_seq) + segment->length);
    }
    put_reset(mbuf, &reset, answer);
    hb_answer_send(worker, answer, mbuf);
}

/* The packet's place in the batch goes on with the reset for the backend. */
static void tell_backend(struct hb_batch *batch, struct hb_packet *packet,
                         const struct hb_answer *answer, const struct segment *segment,
                         struct rte_mempool *pool)
{
    bool ipv6 = answer->family == HB_FAMILY_IPV6;
    uint32_t size = ipv6 ? 16 : 4;
    struct rte_tcp_hdr reset = {
        .src_port = segment->tcp.src_port,
        .dst_port = segment->tcp.dst_port,
        .sent_seq = segment->tcp.sent_seq,
        .tcp_flags = FLAG_RST,
    };
    struct hb_answer forth = {.family = answer->family, .protocol = HB_PROTOCOL_TCP};
    uint8_t *ip;

    packet->mbuf = make_mbuf(batch->worker, pool);
    if (packet->mbuf == NULL) {
        batch->ended++;
        return;
    }
    memcpy(forth.addresses, answer->addresses + size, size);
    memcpy(forth.addresses + size, answer->addresses, size);
    put_reset(packet->mbuf, &reset, &forth);
    ip = hb_answer_put_ip(&forth, packet->mbuf);
    /* As if it had come in an Ethernet frame. */
    memset(rte_pktmbuf_prepend(packet->mbuf, RTE_ETHER_HDR_LEN), 0, RTE_ETHER_HDR_LEN);
    packet->flow.addresses = ip + 8;
    packet->l3_offset = RTE_ETHER_HDR_LEN;
    packet->inner_length = (uint16_t)(rte_pktmbuf_pkt_len(packet->mbuf) - RTE_ETHER_HDR_LEN);
    packet->l4_offset = (uint16_t)(RTE_ETHER_HDR_LEN + packet->inner_length - sizeof(reset));
    packet->traffic_class = 0;
    packet->dont_fragment = true;
    packet->event = HB_EVENT_RST;
}

static void forget(struct hb_worker *worker, hb_flow_ref entry, uint16_t backend)
{
    hb_flow_table_remove(worker->flows, entry);
    hb_uncount_flow(worker, backend);
    worker->counters->flow_expiries++;
}

void hb_reset_ends(struct hb_batch *batch, struct hb_packet *packet, bool backend)
{
    struct segment segment = read_segment(packet);
    struct rte_mempool *pool = packet->mbuf->pool;
    struct hb_answer answer;

    hb_answer_to(&answer, packet);
    answer.protocol = HB_PROTOCOL_TCP;
    hb_count_drop(batch, packet, HB_DROP_RESET);
    rte_pktmbuf_free(packet->mbuf);
    tell_client(batch->worker, &answer, &segment, pool);
    if (backend) {
        tell_backend(batch, packet, &answer, &segment, pool);
        return;
    }
    packet->mbuf = NULL;
    batch->ended++;
}

bool hb_reset_flow(struct hb_batch *batch, struct hb_packet *packet, hb_flow_ref entry)
{
    const struct hb_generation *generation = batch->generation;
    struct hb_worker *worker = batch->worker;
    struct hb_flow_value value = hb_flow_table_get(worker->flows, entry);

    if ((uint8_t)packet->flow.kind != HB_PROTOCOL_TCP || packet->event == HB_EVENT_SYN ||
        value.backend >= generation->backends_count ||
        !hb_backend_resets(&generation->backends[value.backend], value.incarnation,
                           HB_FLOW_INCARNATION_MASK))
        return false;
    if (hb_is_later_fragment(packet)) { /* no header to answer; what came before it did */
        hb_drop(batch, packet, HB_DROP_RESET);
        return true;
    }
    packet->backend_id = value.backend;
    packet->backend = &generation->backends[value.backend];
    forget(worker, entry, value.backend);
    if (packet->event == HB_EVENT_RST)
        return true;
    worker->counters->drain_resets++;
    hb_reset_ends(batch, packet, true);
    return true;
}
