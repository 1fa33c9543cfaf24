/* SPDX-License-Identifier: BSD-3-Clause */
/* See answer.h. */
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "answer.h"
#include "stages.h"
#include "worker_state.h"

#define TTL             64
#define KEPT_MBUF_FLAGS (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL)

void hb_answer_to(struct hb_answer *answer, const struct hb_packet *packet)
{
    const uint8_t *frame = rte_pktmbuf_mtod(packet->mbuf, const uint8_t *);
    const uint8_t *ip = frame + packet->l3_offset;
    bool ipv6 = ip[0] >> 4 == 6;
    uint32_t size = ipv6 ? 16 : 4;
    const uint8_t *source = ip + (ipv6 ? 8 : 12);

    *answer = (struct hb_answer){.l2_size = packet->l3_offset,
                                 .family = ipv6 ? HB_FAMILY_IPV6 : HB_FAMILY_IPV4};
    memcpy(answer->l2, frame, packet->l3_offset);
    memcpy(answer->l2, frame + RTE_ETHER_ADDR_LEN, RTE_ETHER_ADDR_LEN);
    memcpy(answer->l2 + RTE_ETHER_ADDR_LEN, frame, RTE_ETHER_ADDR_LEN);
    memcpy(answer->addresses, source + size, size);
    memcpy(answer->addresses + size, source, size);
}

bool hb_is_writable(const struct rte_mbuf *mbuf)
{
    return !RTE_MBUF_CLONED(mbuf) && rte_mbuf_refcnt_read(mbuf) == 1 &&
           !(RTE_MBUF_HAS_EXTBUF(mbuf) && rte_mbuf_ext_refcnt_read(mbuf->shinfo) > 1);
}

/* An atomic datagram (RFC 6864): never in fragments, so it needs no identification. */
static void put_ipv4(const struct hb_answer *answer, uint8_t *at, uint32_t payload)
{
    struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)at;

    *ip = (struct rte_ipv4_hdr){
        .version_ihl = 0x45,
        .type_of_service = answer->traffic_class,
        .total_length = rte_cpu_to_be_16((uint16_t)(sizeof(*ip) + payload)),
        .fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG),
        .time_to_live = TTL,
        .next_proto_id = answer->protocol,
    };
    memcpy(&ip->src_addr, answer->addresses, 8);
    ip->hdr_checksum = rte_ipv4_cksum(ip);
}

static void put_ipv6(const struct hb_answer *answer, uint8_t *at, uint32_t payload)
{
    struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)at;

    *ip = (struct rte_ipv6_hdr){
        .vtc_flow = rte_cpu_to_be_32(UINT32_C(6) << 28 | (uint32_t)answer->traffic_class << 20),
        .payload_len = rte_cpu_to_be_16((uint16_t)payload),
        .proto = answer->protocol,
        .hop_limits = TTL,
    };
    memcpy(at + 8, answer->addresses, 32);
}

uint8_t *hb_answer_put_ip(const struct hb_answer *answer, struct rte_mbuf *mbuf)
{
    bool ipv6 = answer->family == HB_FAMILY_IPV6;
    uint32_t payload = rte_pktmbuf_pkt_len(mbuf);
    uint8_t *ip = (uint8_t *)rte_pktmbuf_prepend(mbuf, ipv6 ? sizeof(struct rte_ipv6_hdr)
                                                            : sizeof(struct rte_ipv4_hdr));

    if (ip == NULL)
        return NULL;
    if (ipv6)
        put_ipv6(answer, ip, payload);
    else
        put_ipv4(answer, ip, payload);
    return ip;
}

void hb_answer_send(struct hb_worker *worker, const struct hb_answer *answer, struct rte_mbuf *mbuf)
{
    uint8_t *frame = hb_answer_put_ip(answer, mbuf);

    if (frame != NULL)
        frame = (uint8_t *)rte_pktmbuf_prepend(mbuf, answer->l2_size);
    if (frame == NULL) {
        hb_drop_mbuf(worker, mbuf, HB_DROP_NO_HEADROOM);
        return;
    }
    memcpy(frame, answer->l2, answer->l2_size);
    /* What the receiving port said about the frame is over. */
    mbuf->ol_flags &= KEPT_MBUF_FLAGS;
    mbuf->tx_offload = 0;
    mbuf->vlan_tci = 0;
    mbuf->packet_type = 0;
    if (worker->answers_count == HB_BURST)
        hb_answer_flush(worker);
    worker->answers[worker->answers_count++] = mbuf;
}

void hb_answer_flush(struct hb_worker *worker)
{
    uint64_t bytes = 0;
    uint16_t taken;

    for (uint16_t i = 0; i < worker->answers_count; i++)
        bytes += rte_pktmbuf_pkt_len(worker->answers[i]);
    taken = rte_eth_tx_burst(worker->rx_port, (uint16_t)worker->config.index, worker->answers,
                             worker->answers_count);
    for (uint16_t i = taken; i < worker->answers_count; i++) {
        bytes -= rte_pktmbuf_pkt_len(worker->answers[i]);
        hb_drop_mbuf(worker, worker->answers[i], hb_tx_refusal(worker, worker->rx_port));
    }
    worker->counters->tx_packets += taken;
    worker->counters->tx_bytes += bytes;
    worker->answers_count = 0;
}
