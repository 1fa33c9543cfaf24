/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * encap_room.c: the IP packet out of its frame, and room in front of it, in whatever mbufs it lies.
 *
 * The old Ethernet header, VLAN tags and Ethernet padding go. Packets of several segments stay as
 * they are: only the first segment is written to, and it holds all headers (parse_care.c).
 */
#include <rte_ip.h>

#include "encap.h"

#define KEPT_MBUF_FLAGS (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL)
_Static_assert(RTE_PKTMBUF_HEADROOM >= HB_REWRITE_BYTES, "the longest headers fit a fresh mbuf");

static bool is_shared(const struct rte_mbuf *mbuf)
{
    return RTE_MBUF_CLONED(mbuf) || rte_mbuf_refcnt_read(mbuf) > 1 ||
           (RTE_MBUF_HAS_EXTBUF(mbuf) && rte_mbuf_ext_refcnt_read(mbuf->shinfo) > 1);
}

/* Cuts the packet off after `length` bytes. Segments that hold nothing of it any more are freed. */
static void cut(struct rte_mbuf *mbuf, uint32_t length)
{
    struct rte_mbuf *segment = mbuf;
    uint32_t before = 0;

    if (rte_pktmbuf_pkt_len(mbuf) == length)
        return;
    mbuf->nb_segs = 1;
    while (before + segment->data_len < length) {
        before += segment->data_len;
        segment = segment->next;
        mbuf->nb_segs++;
    }
    segment->data_len = (uint16_t)(length - before);
    rte_pktmbuf_free(segment->next);
    segment->next = NULL;
    mbuf->pkt_len = length;
}

/* Headers must not be written into a buffer that others read as well, so such a packet is copied;
 * no port of ours receives any. */
static bool make_own(struct hb_packet *packet)
{
    struct rte_mbuf *copy = rte_pktmbuf_copy(packet->mbuf, packet->mbuf->pool, 0, UINT32_MAX);

    if (copy == NULL)
        return false;
    rte_pktmbuf_free(packet->mbuf);
    packet->mbuf = copy;
    if (hb_flow_is_ipv6(&packet->flow)) /* NAT looks at them again */
        packet->flow.addresses = rte_pktmbuf_mtod_offset(
            copy, const uint8_t *,
            packet->l3_offset + (int)offsetof(struct rte_ipv6_hdr, src_addr));
    return true;
}

static inline uint8_t take_out(struct hb_packet *packet, uint32_t room)
{
    struct rte_mbuf *mbuf;

    if (unlikely(is_shared(packet->mbuf)) && !make_own(packet))
        return HB_DROP_NO_MBUF;
    mbuf = packet->mbuf;
    if ((uint32_t)rte_pktmbuf_headroom(mbuf) + packet->l3_offset < room)
        return HB_DROP_NO_HEADROOM;
    cut(mbuf, packet->l3_offset + packet->inner_length);
    rte_pktmbuf_adj(mbuf, packet->l3_offset);

    /* What the receiving port said about the frame, or asked the sending port to do, is over. */
    mbuf->ol_flags &= KEPT_MBUF_FLAGS;
    mbuf->tx_offload = 0;
    mbuf->vlan_tci = 0;
    mbuf->packet_type = 0;
    return HB_NO_FAULT;
}

uint8_t hb_encap_take_out(struct hb_packet *packet, uint32_t room)
{
    return take_out(packet, room);
}

uint8_t hb_encap_room(struct hb_packet *packet, uint16_t size, uint8_t **at)
{
    uint8_t fault = take_out(packet, size);

    if (unlikely(fault != HB_NO_FAULT))
        return fault;
    *at = (uint8_t *)rte_pktmbuf_prepend(packet->mbuf, size);
    return HB_NO_FAULT;
}
