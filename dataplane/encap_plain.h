/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * encap_plain.h: the short way of stage_encap: a packet that lies alone in one buffer of its own,
 * and plain Ethernet over IPv4 to put in front of it. The header is built in registers and stored
 * by words.
 */
#ifndef HB_DATAPLANE_ENCAP_PLAIN_H
#define HB_DATAPLANE_ENCAP_PLAIN_H

#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "batch.h"

#define L2_SIZE         ((uint32_t)sizeof(struct rte_ether_hdr))
#define PLAIN_SIZE      (L2_SIZE + (uint32_t)sizeof(struct rte_ipv4_hdr))
#define KEPT_MBUF_FLAGS (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL)
_Static_assert(offsetof(struct rte_mbuf, nb_segs) == offsetof(struct rte_mbuf, refcnt) + 2 &&
                   offsetof(struct rte_mbuf, pkt_len) ==
                       offsetof(struct rte_mbuf, packet_type) + 4 &&
                   offsetof(struct rte_mbuf, vlan_tci) == offsetof(struct rte_mbuf, data_len) + 2,
               "each pair is read or written as one number");

static uint32_t load32(const void *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

/* One buffer, this packet's alone, with room for the header in front; a plain rewrite; no too big.
 */
static bool is_plain(const struct hb_packet *packet)
{
    const struct rte_mbuf *mbuf = packet->mbuf;
    bool plain = load32(&mbuf->refcnt) == 0x00010001;

    plain &= (mbuf->ol_flags & KEPT_MBUF_FLAGS) == 0;
    plain &= (uint32_t)mbuf->data_off + packet->l3_offset >= PLAIN_SIZE;
    plain &= packet->backend->plain;
    plain &= packet->inner_length <= packet->backend->inner_max;
    return plain;
}

/* As cut, rte_pktmbuf_adj, rte_pktmbuf_prepend and what follows them in make_room. */
static uint8_t *make_plain_room(const struct hb_packet *packet, uint32_t length)
{
    struct rte_mbuf *mbuf = packet->mbuf;
    uint64_t type_and_length = (uint64_t)length << 32;
    uint32_t length_and_tag = length;

    mbuf->data_off = (uint16_t)(mbuf->data_off + packet->l3_offset - PLAIN_SIZE);
    memcpy(&mbuf->packet_type, &type_and_length, sizeof(type_and_length));
    memcpy(&mbuf->data_len, &length_and_tag, sizeof(length_and_tag));
    mbuf->ol_flags = 0;
    mbuf->tx_offload = 0;
    return rte_pktmbuf_mtod(mbuf, uint8_t *);
}

/* The header of a plain packet; `id` is used up if the packet needs one. The sum of what is the
 * same for all packets stands where the checksum goes (hb_backend_complete). */
static inline void put_plain_ipv4(const struct hb_packet *packet, uint16_t *id)
{
    const uint8_t *from = packet->backend->bytes;
    uint32_t length = (uint32_t)packet->inner_length + PLAIN_SIZE;
    uint8_t *to = make_plain_room(packet, length);
    bool may_fragment = !packet->dont_fragment;
    uint32_t fragment =
        may_fragment ? rte_cpu_to_be_16(*id) : (uint32_t)RTE_BE16(RTE_IPV4_HDR_DF_FLAG) << 16;
    uint32_t outer_length = rte_cpu_to_be_16((uint16_t)(length - L2_SIZE));
    uint32_t tos = (uint32_t)packet->traffic_class << 8;
    uint32_t protocol = (uint32_t)packet->outer_protocol << 8;
    uint64_t start =
        hb_load64(from + L2_SIZE) | tos | outer_length << 16 | (uint64_t)fragment << 32;
    uint64_t middle = hb_load64(from + L2_SIZE + 8);
    uint32_t sum = (uint16_t)(middle >> 16);

    *id = (uint16_t)(*id + may_fragment);
    middle -= (uint64_t)sum << 16;
    sum += tos + outer_length + (fragment & 0xffff) + (fragment >> 16) + protocol;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    middle |= protocol | (sum ^ 0xffff) << 16;
    memcpy(to, from, L2_SIZE);
    memcpy(to + L2_SIZE, &start, sizeof(start));
    memcpy(to + L2_SIZE + 8, &middle, sizeof(middle));
    memcpy(to + L2_SIZE + 16, from + L2_SIZE + 16, 4);
}

#endif
