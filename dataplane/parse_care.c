/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parse_care.c: the careful way through a packet's headers, check by check.
 *
 * The destination address is read first, and everything that is wrong after that is only noted
 * (`fault`): a packet that is not for a VIP goes to the kernel whatever its state, and
 * stage_service alone knows the VIPs. The first fault found counts, in the order of the checks
 * below.
 *
 * Headers must lie in the first segment of the mbuf; payload may lie in others. No byte is read
 * before its presence was checked.
 *
 * Policies:
 *   - Up to two VLAN tags (0x8100, 0x88a8) are passed over. They are not put on the packet again.
 *   - IPv4 options stay in the inner packet; ports are read behind them (RFC 2003, section 3.1).
 *   - A fragment is what has MF or an offset; DF or the reserved bit make none. Fragments for a VIP
 * are dropped, first ones as well, so that no datagram is torn apart. Any IPv6 fragment header
 * counts.
 *   - TTL and hop limit: the balancer decrements nothing, so the inner packet stays as it came,
 * byte for byte. 0 is never forwarded (RFC 1812, section 5.3.1); 1 is, because the backend, not a
 * next hop, takes it off the tunnel. Loops end by the outer TTL.
 *   - Source addresses that can't be answered, and a source equal to the VIP, are dropped.
 *   - UDP may claim less than the IP packet holds (it is forwarded whole), never more.
 */
#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "flow_bucket.h" /* hb_flow_fold */
#include "parse_care.h"
#include "stages.h"

#define VLAN_TAGS_MAX      2
#define EXTENSIONS_MAX     8
#define IPV4_FRAGMENT_MASK 0x3fff /* MF and offset */
#define IPV4_DF            0x4000
#define IPV6_ROUTING       43
#define IPV6_FRAGMENT      44
#define IPV6_DESTINATION   60
#define IPV6_HOP_BY_HOP    0

/* A frame as far as it can be read. */
struct frame {
    const uint8_t *bytes;
    uint32_t readable; /* bytes in the first segment */
    uint32_t length;   /* bytes in all segments */
};

/* Part of the frame: the headers behind the IP header. */
struct span {
    uint32_t offset;
    uint32_t length;
};

/* What the flags of a TCP header say about the flow, by the five lowest of them: FIN 1, SYN 2, RST
 * 4, PSH 8, ACK 16. Flags that end a flow outweigh others (BL-44). A SYN with ACK is a server's
 * answer, which no client sends. */
#define EVENT(flags)                                                                               \
    [flags] = ((flags)&4)    ? HB_EVENT_RST                                                        \
              : ((flags)&1)  ? (((flags)&2) ? HB_EVENT_ODD : HB_EVENT_FIN)                         \
              : ((flags)&2)  ? (((flags)&16) ? HB_EVENT_ODD : HB_EVENT_SYN)                        \
              : ((flags)&16) ? HB_EVENT_ACK                                                        \
                             : HB_EVENT_ODD
#define EVENTS_FROM(flags)                                                                         \
    EVENT(flags), EVENT((flags) + 1), EVENT((flags) + 2), EVENT((flags) + 3), EVENT((flags) + 4),  \
        EVENT((flags) + 5), EVENT((flags) + 6), EVENT((flags) + 7)
const uint8_t hb_event_of_flags[32] = {EVENTS_FROM(0), EVENTS_FROM(8), EVENTS_FROM(16),
                                       EVENTS_FROM(24)};

static uint32_t load32(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static uint16_t load_be16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static bool is_martian_ipv4(const uint8_t *source, const uint8_t *destination)
{
    static const uint8_t broadcast[4] = {255, 255, 255, 255};

    return source[0] == 0 || source[0] == 127 || (source[0] & 0xf0) == 0xe0 ||
           memcmp(source, broadcast, 4) == 0 || destination[0] == 0 || destination[0] == 127 ||
           (destination[0] & 0xf0) == 0xe0 || memcmp(destination, broadcast, 4) == 0 ||
           memcmp(source, destination, 4) == 0;
}

/* Unspecified, loopback, multicast, IPv4-mapped. */
static bool is_bad_ipv6(const uint8_t *address)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    static const uint8_t zero[15];

    return address[0] == 0xff || memcmp(address, mapped, 12) == 0 ||
           (memcmp(address, zero, 15) == 0 && address[15] <= 1);
}

static bool is_martian_ipv6(const uint8_t *source, const uint8_t *destination)
{
    bool link_local = source[0] == 0xfe && (source[1] & 0xc0) == 0x80;

    return is_bad_ipv6(source) || is_bad_ipv6(destination) || link_local ||
           memcmp(source, destination, 16) == 0;
}

static uint8_t check_tcp(struct hb_packet *packet, const struct frame *frame, struct span l4)
{
    const uint8_t *header = frame->bytes + l4.offset;
    uint32_t header_length;

    if (l4.length < sizeof(struct rte_tcp_hdr))
        return HB_DROP_L4_HEADER;
    if (frame->readable < l4.offset + sizeof(struct rte_tcp_hdr))
        return HB_DROP_RUNT;
    header_length = (header[12] >> 4) * 4;
    if (header_length < sizeof(struct rte_tcp_hdr) || header_length > l4.length)
        return HB_DROP_L4_HEADER;
    packet->event = hb_event_of_flags[header[13] & 0x1f];
    return HB_NO_FAULT;
}

static uint8_t check_udp(struct hb_packet *packet, const struct frame *frame, struct span l4)
{
    uint32_t length;

    if (l4.length < sizeof(struct rte_udp_hdr))
        return HB_DROP_L4_HEADER;
    if (frame->readable < l4.offset + sizeof(struct rte_udp_hdr))
        return HB_DROP_RUNT;
    length = load_be16(frame->bytes + l4.offset + 4);
    if (length < sizeof(struct rte_udp_hdr) || length > l4.length)
        return HB_DROP_L4_HEADER;
    packet->event = HB_EVENT_UDP;
    return HB_NO_FAULT;
}

/* The header of TCP or UDP, `l4` being all that the IP packet holds for it. */
static uint8_t check_l4(struct hb_packet *packet, const struct frame *frame, uint8_t protocol,
                        struct span l4)
{
    uint8_t fault = HB_DROP_PROTOCOL;

    if (protocol == HB_PROTOCOL_TCP)
        fault = check_tcp(packet, frame, l4);
    else if (protocol == HB_PROTOCOL_UDP)
        fault = check_udp(packet, frame, l4);
    if (fault == HB_NO_FAULT) {
        packet->flow.kind |= protocol;
        packet->flow.ports = load32(frame->bytes + l4.offset);
        packet->l4_offset = (uint16_t)l4.offset;
    }
    return fault;
}

/* The caller has seen to it that 20 bytes can be read. */
static uint8_t check_ipv4(struct hb_packet *packet, const struct frame *frame, uint32_t l3)
{
    const uint8_t *header = frame->bytes + l3;
    uint32_t header_length = (header[0] & 0xf) * 4;
    uint32_t total_length = load_be16(header + 2);
    uint16_t fragment = load_be16(header + 6);
    struct span l4 = {l3 + header_length, total_length - header_length};

    packet->flow = (struct hb_flow_query){.source = load32(header + 12),
                                          .destination = load32(header + 16),
                                          .kind = HB_FLOW_KIND(0, HB_FAMILY_IPV4)};
    packet->inner_length = (uint16_t)total_length;
    packet->traffic_class = header[1];
    packet->dont_fragment = (fragment & IPV4_DF) != 0;
    packet->outer_protocol = IPPROTO_IPIP;

    if (header[0] >> 4 != 4 || header_length < sizeof(struct rte_ipv4_hdr) ||
        total_length < header_length || total_length > frame->length - l3)
        return HB_DROP_IPV4_HEADER;
    if (frame->readable < l4.offset)
        return HB_DROP_RUNT;
    if ((packet->mbuf->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) != RTE_MBUF_F_RX_IP_CKSUM_GOOD &&
        rte_raw_cksum(header, header_length) != 0xffff)
        return HB_DROP_IPV4_CHECKSUM;
    if ((fragment & IPV4_FRAGMENT_MASK) != 0)
        return HB_DROP_FRAGMENT;
    if (header[8] == 0)
        return HB_DROP_TTL_EXPIRED;
    if (is_martian_ipv4(header + 12, header + 16))
        return HB_DROP_MARTIAN;
    return check_l4(packet, frame, header[9], l4);
}

/* Walks over the extension headers that a balancer may ignore (RFC 8200, section 4). On HB_NO_FAULT
 * `l4` and `protocol` tell what comes behind them. */
static uint8_t skip_extensions(const struct frame *frame, struct span *l4, uint8_t *protocol)
{
    for (uint32_t depth = 0;; depth++) {
        const uint8_t *header = frame->bytes + l4->offset;
        uint32_t length;

        if (*protocol == IPV6_FRAGMENT)
            return HB_DROP_FRAGMENT;
        if (*protocol != IPV6_HOP_BY_HOP && *protocol != IPV6_ROUTING &&
            *protocol != IPV6_DESTINATION)
            return HB_NO_FAULT;
        if (depth == EXTENSIONS_MAX || l4->length < 8)
            return HB_DROP_IPV6_EXTENSION;
        if (*protocol == IPV6_HOP_BY_HOP && depth > 0) /* only ever the first one */
            return HB_DROP_IPV6_EXTENSION;
        if (frame->readable < l4->offset + 8)
            return HB_DROP_RUNT;
        length = 8 + header[1] * 8;
        if (length > l4->length)
            return HB_DROP_IPV6_EXTENSION;
        if (*protocol == IPV6_ROUTING && header[3] != 0) /* the VIP is not where it is going */
            return HB_DROP_IPV6_EXTENSION;
        *protocol = header[0];
        l4->offset += length;
        l4->length -= length;
    }
}

/* The caller has seen to it that 40 bytes can be read. */
static uint8_t check_ipv6(struct hb_packet *packet, const struct frame *frame, uint32_t l3)
{
    const uint8_t *header = frame->bytes + l3;
    uint32_t payload_length = load_be16(header + 4);
    struct span l4 = {l3 + sizeof(struct rte_ipv6_hdr), payload_length};
    uint8_t protocol = header[6];
    uint8_t fault;

    packet->flow = (struct hb_flow_query){.source = hb_flow_fold(header + 8),
                                          .destination = hb_flow_fold(header + 24),
                                          .kind = HB_FLOW_KIND(0, HB_FAMILY_IPV6),
                                          .addresses = header + 8};
    packet->traffic_class = (uint8_t)(load_be16(header) >> 4);
    packet->dont_fragment = true;
    packet->outer_protocol = IPPROTO_IPV6;

    /* A jumbogram (RFC 2675) says 0 here; it is as unfit as what it would be taken for. */
    if (header[0] >> 4 != 6 || payload_length > frame->length - l4.offset ||
        payload_length + sizeof(struct rte_ipv6_hdr) > UINT16_MAX)
        return HB_DROP_IPV6_HEADER;
    packet->inner_length = (uint16_t)(payload_length + sizeof(struct rte_ipv6_hdr));
    if (header[7] == 0)
        return HB_DROP_TTL_EXPIRED;
    if (is_martian_ipv6(header + 8, header + 24))
        return HB_DROP_MARTIAN;
    fault = skip_extensions(frame, &l4, &protocol);
    if (fault != HB_NO_FAULT)
        return fault;
    return check_l4(packet, frame, protocol, l4);
}

void hb_parse_with_care(struct hb_batch *batch, struct hb_packet *packet)
{
    struct frame frame = {
        .bytes = rte_pktmbuf_mtod(packet->mbuf, const uint8_t *),
        .readable = rte_pktmbuf_data_len(packet->mbuf),
        .length = rte_pktmbuf_pkt_len(packet->mbuf),
    };
    uint32_t l3 = sizeof(struct rte_ether_hdr);
    uint16_t type = 0;

    for (uint32_t tags = 0; tags <= VLAN_TAGS_MAX; tags++) {
        if (frame.readable < l3) {
            hb_drop(batch, packet, HB_DROP_RUNT);
            return;
        }
        type = load_be16(frame.bytes + l3 - 2);
        if (type != RTE_ETHER_TYPE_VLAN && type != RTE_ETHER_TYPE_QINQ)
            break;
        l3 += sizeof(struct rte_vlan_hdr);
    }
    packet->l3_offset = (uint8_t)l3;
    if (type == RTE_ETHER_TYPE_IPV4) {
        if (frame.readable < l3 + sizeof(struct rte_ipv4_hdr))
            hb_drop(batch, packet, HB_DROP_RUNT);
        else
            packet->fault = check_ipv4(packet, &frame, l3);
    } else if (type == RTE_ETHER_TYPE_IPV6) {
        if (frame.readable < l3 + sizeof(struct rte_ipv6_hdr))
            hb_drop(batch, packet, HB_DROP_RUNT);
        else
            packet->fault = check_ipv6(packet, &frame, l3);
    } else {
        hb_punt(batch, packet, HB_DROP_ETHERTYPE);
    }
}

void hb_stage_parse_with_care(struct hb_batch *batch)
{
    struct hb_packet *packet;

    HB_BATCH_FOREACH (packet, batch)
        hb_parse_with_care(batch, packet);
}
