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
 *   - A fragment is what has MF or an offset; DF or the reserved bit make none, nor does an IPv6
 * fragment header that says neither (an atomic fragment, RFC 6946). stage_fragment finds the ports.
 *   - TTL and hop limit: the balancer decrements nothing, so the inner packet stays as it came,
 * byte for byte. 0 is never forwarded (RFC 1812, section 5.3.1); 1 is, because the backend, not a
 * next hop, takes it off the tunnel. Loops end by the outer TTL.
 *   - Source addresses that can't be answered, and a source equal to the VIP, are dropped. So is
 * what came by link-layer broadcast or multicast (RFC 1812, section 5.3.4): every other balancer
 * on that link has it as well.
 *   - UDP may claim less than the IP packet holds (it is forwarded whole), never more.
 */
#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_sctp.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "flow_bucket.h" /* hb_flow_fold */
#include "parse_care.h"
#include "stages.h"

#define VLAN_TAGS_MAX      2
#define EXTENSIONS_MAX     8
#define IPV4_FRAGMENT_MASK 0x3fff /* MF and offset */
#define IPV4_OFFSET        0x1fff
#define IPV4_MF            0x2000
#define IPV4_DF            0x4000
#define IPV6_ROUTING       43
#define IPV6_FRAGMENT      44
#define IPV6_FRAGMENT_MASK 0xfff9 /* offset and M */
#define IPV6_DESTINATION   60
#define IPV6_HOP_BY_HOP    0
#define ICMP_HEADER        8
#define SCTP_HEADER        12
#define FRAGMENT_HEADER    8
#define UDP_LITE           136

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

/* Only the ports are ours to read; what is behind them the two ends may change as they like. */
static uint8_t check_sctp(struct hb_packet *packet, const struct frame *frame, struct span l4)
{
    if (l4.length < SCTP_HEADER)
        return HB_DROP_L4_HEADER;
    if (frame->readable < l4.offset + SCTP_HEADER)
        return HB_DROP_RUNT;
    packet->event = HB_EVENT_UDP;
    return HB_NO_FAULT;
}

/* The rest is for stage_icmp to judge. */
static uint8_t check_icmp(struct hb_packet *packet, const struct frame *frame, struct span l4)
{
    if (l4.length < ICMP_HEADER)
        return HB_DROP_L4_HEADER;
    if (frame->readable < l4.offset + ICMP_HEADER)
        return HB_DROP_RUNT;
    packet->shape = HB_SHAPE_ICMP;
    return HB_DROP_ICMP_TYPE;
}

/* The header behind that of IP, `l4` being all that the IP packet holds for it. */
static uint8_t check_l4(struct hb_packet *packet, const struct frame *frame, uint8_t protocol,
                        struct span l4)
{
    uint8_t fault = HB_DROP_PROTOCOL;

    packet->l4_offset = (uint16_t)l4.offset;
    if (protocol == HB_PROTOCOL_TCP)
        fault = check_tcp(packet, frame, l4);
    else if (protocol == HB_PROTOCOL_UDP)
        fault = check_udp(packet, frame, l4);
    else if (protocol == HB_PROTOCOL_SCTP)
        fault = check_sctp(packet, frame, l4);
    else if (protocol == (hb_flow_is_ipv6(&packet->flow) ? HB_ICMPV6 : HB_ICMP))
        fault = check_icmp(packet, frame, l4);
    else if (protocol == UDP_LITE)
        fault = HB_DROP_UDP_LITE;
    if (fault == HB_NO_FAULT) {
        packet->flow.kind |= protocol;
        packet->flow.ports = load32(frame->bytes + l4.offset);
        packet->l4_offset = (uint16_t)l4.offset;
    }
    return fault;
}

/* The destination's group bit: link-layer broadcast and multicast. */
static bool is_group(const struct frame *frame)
{
    return (frame->bytes[0] & 1) != 0;
}

/* `at`: of the IPv6 fragment header, or behind the IPv4 header. */
static uint8_t set_fragment(struct hb_packet *packet, uint32_t at)
{
    packet->shape = HB_SHAPE_FRAGMENT;
    packet->l4_offset = (uint16_t)at;
    return HB_DROP_FRAGMENT;
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
    if (is_group(frame))
        return HB_DROP_BROADCAST;
    if (header[8] == 0)
        return HB_DROP_TTL_EXPIRED;
    if (is_martian_ipv4(header + 12, header + 16))
        return HB_DROP_MARTIAN;
    if ((fragment & IPV4_FRAGMENT_MASK) != 0)
        return set_fragment(packet, l4.offset);
    return check_l4(packet, frame, header[9], l4);
}

/* The extension header at the start of `l4`, whose type is `protocol`. */
static uint8_t skip_extension(const struct frame *frame, struct span *l4, uint8_t *protocol)
{
    const uint8_t *header = frame->bytes + l4->offset;
    uint32_t length = 8;

    if (l4->length < 8)
        return HB_DROP_IPV6_EXTENSION;
    if (frame->readable < l4->offset + 8)
        return HB_DROP_RUNT;
    if (*protocol != IPV6_FRAGMENT)
        length += header[1] * 8u;
    if (length > l4->length)
        return HB_DROP_IPV6_EXTENSION;
    if (*protocol == IPV6_ROUTING && header[3] != 0) /* the VIP is not where it is going */
        return HB_DROP_IPV6_EXTENSION;
    *protocol = header[0];
    l4->offset += length;
    l4->length -= length;
    return HB_NO_FAULT;
}

/* Walks over the extension headers that a balancer may ignore (RFC 8200, section 4). On HB_NO_FAULT
 * `l4` and `protocol` tell what comes behind them; at the header of a fragment they stop. */
static uint8_t skip_extensions(const struct frame *frame, struct span *l4, uint8_t *protocol)
{
    for (uint32_t depth = 0;; depth++) {
        uint8_t fault;

        if (*protocol != IPV6_HOP_BY_HOP && *protocol != IPV6_ROUTING &&
            *protocol != IPV6_FRAGMENT && *protocol != IPV6_DESTINATION)
            return HB_NO_FAULT;
        if (depth == EXTENSIONS_MAX)
            return HB_DROP_IPV6_EXTENSION;
        if (*protocol == IPV6_HOP_BY_HOP && depth > 0) /* only ever the first one */
            return HB_DROP_IPV6_EXTENSION;
        if (*protocol == IPV6_FRAGMENT && l4->length >= FRAGMENT_HEADER &&
            frame->readable >= l4->offset + FRAGMENT_HEADER &&
            (load_be16(frame->bytes + l4->offset + 2) & IPV6_FRAGMENT_MASK) != 0)
            return HB_NO_FAULT;
        fault = skip_extension(frame, l4, protocol);
        if (fault != HB_NO_FAULT)
            return fault;
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
    if (is_group(frame))
        return HB_DROP_BROADCAST;
    if (header[7] == 0)
        return HB_DROP_TTL_EXPIRED;
    if (is_martian_ipv6(header + 8, header + 24))
        return HB_DROP_MARTIAN;
    fault = skip_extensions(frame, &l4, &protocol);
    if (fault != HB_NO_FAULT)
        return fault;
    if (protocol == IPV6_FRAGMENT)
        return set_fragment(packet, l4.offset);
    return check_l4(packet, frame, protocol, l4);
}

static struct frame frame_of(const struct hb_packet *packet)
{
    return (struct frame){
        .bytes = rte_pktmbuf_mtod(packet->mbuf, const uint8_t *),
        .readable = rte_pktmbuf_data_len(packet->mbuf),
        .length = rte_pktmbuf_pkt_len(packet->mbuf),
    };
}

uint8_t hb_parse_fragment(const struct hb_packet *packet, struct hb_fragment *fragment)
{
    const uint8_t *header =
        rte_pktmbuf_mtod_offset(packet->mbuf, const uint8_t *, packet->l4_offset);
    uint32_t payload = packet->l4_offset;
    uint16_t word;

    if (hb_flow_is_ipv6(&packet->flow)) {
        word = load_be16(header + 2);
        fragment->start = word & 0xfff8;
        fragment->more = (word & 1) != 0;
        fragment->id = load32(header + 4);
        fragment->protocol = header[0];
        payload += FRAGMENT_HEADER;
    } else {
        header = rte_pktmbuf_mtod_offset(packet->mbuf, const uint8_t *, packet->l3_offset);
        word = load_be16(header + 6);
        fragment->start = (uint32_t)(word & IPV4_OFFSET) * 8;
        fragment->more = (word & IPV4_MF) != 0;
        fragment->id = load_be16(header + 4);
        fragment->protocol = header[9];
    }
    fragment->end = fragment->start + packet->l3_offset + packet->inner_length - payload;
    if (fragment->end == fragment->start || fragment->end > UINT16_MAX ||
        (fragment->more && fragment->end % 8 != 0))
        return HB_DROP_FRAGMENT_LENGTH;
    return HB_NO_FAULT;
}

uint8_t hb_parse_first_fragment(struct hb_packet *packet, const struct hb_fragment *fragment)
{
    struct frame frame = frame_of(packet);
    uint8_t protocol = fragment->protocol, fault;
    struct span l4 = {packet->l4_offset, fragment->end};

    if (hb_flow_is_ipv6(&packet->flow)) {
        l4.offset += FRAGMENT_HEADER;
        /* All headers must be in the first fragment (RFC 7112). */
        if (skip_extensions(&frame, &l4, &protocol) != HB_NO_FAULT || protocol == IPV6_FRAGMENT)
            return HB_DROP_FRAGMENT_TINY;
    }
    if (protocol == HB_PROTOCOL_UDP && l4.length >= sizeof(struct rte_udp_hdr))
        l4.length = UINT16_MAX; /* its length is that of the whole datagram */
    fault = check_l4(packet, &frame, protocol, l4);
    if (fault == HB_DROP_L4_HEADER)
        return HB_DROP_FRAGMENT_TINY;
    return fault == HB_NO_FAULT || fault == HB_DROP_RUNT ? fault : HB_DROP_FRAGMENT;
}

bool hb_is_later_fragment(const struct hb_packet *packet)
{
    struct frame frame = frame_of(packet);
    const uint8_t *ip = frame.bytes + packet->l3_offset;
    struct span l4 = {packet->l3_offset + sizeof(struct rte_ipv6_hdr),
                      packet->inner_length - (uint32_t)sizeof(struct rte_ipv6_hdr)};
    uint8_t protocol = ip[6];

    if (ip[0] >> 4 == 4)
        return (load_be16(ip + 6) & IPV4_OFFSET) != 0;
    return skip_extensions(&frame, &l4, &protocol) == HB_NO_FAULT && protocol == IPV6_FRAGMENT &&
           (load_be16(frame.bytes + l4.offset + 2) & 0xfff8) != 0;
}

void hb_parse_with_care(struct hb_batch *batch, struct hb_packet *packet)
{
    struct frame frame = frame_of(packet);
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
    packet->shape = HB_SHAPE_PLAIN;
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
