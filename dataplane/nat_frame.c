/* SPDX-License-Identifier: BSD-3-Clause */
/* See nat_frame.h. */
#include <string.h>

#include <rte_ip.h>

#include "nat_frame.h"
#include "stages.h"
#include "worker_state.h"

static bool is_shared(const struct rte_mbuf *mbuf)
{
    return RTE_MBUF_CLONED(mbuf) || rte_mbuf_refcnt_read(mbuf) > 1 ||
           (RTE_MBUF_HAS_EXTBUF(mbuf) && rte_mbuf_ext_refcnt_read(mbuf->shinfo) > 1);
}

/* Headers must not be written into a buffer that others read as well; no port of ours receives any.
 */
static bool make_own(struct hb_packet *packet)
{
    struct rte_mbuf *copy;

    if (!is_shared(packet->mbuf))
        return true;
    copy = rte_pktmbuf_copy(packet->mbuf, packet->mbuf->pool, 0, UINT32_MAX);
    if (copy == NULL)
        return false;
    rte_pktmbuf_free(packet->mbuf);
    packet->mbuf = copy;
    if (hb_flow_is_ipv6(&packet->flow)) /* they are looked at again for sessions */
        packet->flow.addresses = rte_pktmbuf_mtod_offset(
            copy, const uint8_t *,
            packet->l3_offset + (int)offsetof(struct rte_ipv6_hdr, src_addr));
    return true;
}

/* What is behind the IP packet goes. */
static void cut_padding(struct rte_mbuf *mbuf, uint32_t length)
{
    struct rte_mbuf *segment = mbuf;
    uint32_t before = 0;
    uint16_t segments = 1;

    if (rte_pktmbuf_pkt_len(mbuf) == length)
        return;
    while (before + segment->data_len < length) {
        before += segment->data_len;
        segment = segment->next;
        segments++;
    }
    segment->data_len = (uint16_t)(length - before);
    rte_pktmbuf_free(segment->next);
    segment->next = NULL;
    mbuf->nb_segs = segments;
    mbuf->pkt_len = length;
}

static bool refuse(struct hb_batch *batch, struct hb_packet *packet, enum hb_drop_reason reason)
{
    hb_drop(batch, packet, reason);
    return false;
}

bool hb_nat_begin(struct hb_batch *batch, struct hb_packet *packet, struct hb_nat_header *header,
                  uint32_t room)
{
    struct rte_mbuf *mbuf;

    if (!make_own(packet))
        return refuse(batch, packet, HB_DROP_NO_MBUF);
    mbuf = packet->mbuf;
    if ((uint32_t)rte_pktmbuf_headroom(mbuf) + packet->l3_offset < room)
        return refuse(batch, packet, HB_DROP_NO_HEADROOM);
    cut_padding(mbuf, packet->l3_offset + packet->inner_length);
    rte_pktmbuf_adj(mbuf, packet->l3_offset);
    packet->l3_offset = 0;
    mbuf->ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
    mbuf->tx_offload = 0;
    mbuf->vlan_tci = 0;
    mbuf->packet_type = 0;
    if (!hb_nat_read(header, rte_pktmbuf_mtod(mbuf, uint8_t *), rte_pktmbuf_data_len(mbuf)))
        return refuse(batch, packet, HB_DROP_RUNT);
    /* A first fragment so small that its checksum is in the next one (RFC 1858). */
    if (header->fragment && header->l4 != NULL && !hb_nat_has_ports(header))
        return refuse(batch, packet, HB_DROP_FRAGMENT);
    if (!hb_nat_take_hop(header))
        return refuse(batch, packet, HB_DROP_TTL_EXPIRED);
    return true;
}

void hb_nat_end_frame(struct hb_packet *packet, const uint8_t *l2, uint16_t l2_size)
{
    memcpy(rte_pktmbuf_prepend(packet->mbuf, l2_size), l2, l2_size);
}
