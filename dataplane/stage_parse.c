/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage_parse.c: what the headers say, and whether they can be believed: the short cuts.
 *
 * Two ways to one end. Nearly every packet is untagged IPv4 without options, whole, TCP or UDP, and
 * sound: take_plain_ipv4 reads it by a few wide loads and asks all questions at once; and
 * take_plain_ipv6 one without extension headers. Whatever it is not sure of goes the careful way
 * (parse_care.c), check by check, which alone gives reasons; it would say the same of a plain
 * packet (tests/packets/test_parse.c compares the two). Where the processor has wide vectors eight
 * packets take the first of the short cuts at once (parse_eight.h).
 */
#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "flow_bucket.h"
#include "ipv4_sum.h"
#include "parse_care.h"
#include "stages.h"
#include "worker_state.h"
#if defined(__AVX2__)
#include "parse_eight.h"
#endif

#define IPV4_FRAGMENT_MASK 0x3fff /* MF and offset */
#define IPV4_DF            0x4000
#define PLAIN_MIN          54 /* bytes at hand: Ethernet, IPv4, TCP */
#define PLAIN_MIN_IPV6     74

static uint32_t load32(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static uint16_t load16(const uint8_t *at)
{
    uint16_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static uint16_t load_be16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

/* By the first byte of an IPv4 address: surely no martian. Some others are none either. */
static const uint8_t is_common[256] = {[1 ... 126] = 1, [128 ... 223] = 1};

/* Is the TCP or UDP header sound that is at hand whole? `length`: what the IP packet holds. */
static bool is_sound_l4(const uint8_t *l4, uint32_t protocol, uint32_t length)
{
    uint32_t tcp_length = l4[12] >> 4 << 2;
    uint32_t udp_length = load_be16(l4 + 4);

    if (likely(protocol == HB_PROTOCOL_TCP))
        return (tcp_length >= sizeof(struct rte_tcp_hdr)) & (tcp_length <= length);
    return (protocol == HB_PROTOCOL_UDP) & (udp_length >= sizeof(struct rte_udp_hdr)) &
           (udp_length <= length);
}

/* In the first eight bytes of the header: version 4, five words long, no fragment. */
#define PLAIN_MASK  ((uint64_t)RTE_BE16(IPV4_FRAGMENT_MASK) << 48 | 0xff)
#define PLAIN_VALUE UINT64_C(0x45)

/* The plain packet, read at once. False: not one, or not surely; nothing is decided then. */
static inline bool take_plain_ipv4(struct hb_packet *packet, const struct hb_hash_key *key)
{
    const struct rte_mbuf *mbuf = packet->mbuf;
    const uint8_t *frame = rte_pktmbuf_mtod(mbuf, const uint8_t *);
    const uint8_t *header = frame + sizeof(struct rte_ether_hdr);
    const uint8_t *l4 = header + sizeof(struct rte_ipv4_hdr);
    uint64_t start, middle, name[2];
    uint32_t destination, source, protocol, total_length;
    bool plain;

    if (unlikely(rte_pktmbuf_data_len(mbuf) < PLAIN_MIN))
        return false;
    start = hb_load64(header);      /* version, TOS, length, ID, fragment */
    middle = hb_load64(header + 8); /* TTL, protocol, checksum, source */
    destination = load32(header + 16);
    source = (uint32_t)(middle >> 32);
    protocol = middle >> 8 & 0xff;
    total_length = __builtin_bswap16((uint16_t)(start >> 16));

    plain = load16(frame + 12) == RTE_BE16(RTE_ETHER_TYPE_IPV4);
    plain &= (frame[0] & 1) == 0; /* not to a link-layer group */
    plain &= (start & PLAIN_MASK) == PLAIN_VALUE;
    plain &= (middle & 0xff) != 0;
    plain &= total_length - 20 <= rte_pktmbuf_pkt_len(mbuf) - 34; /* a length below 20 wraps */
    plain &= is_common[source & 0xff] & is_common[destination & 0xff] & (source != destination);
    plain &= hb_ipv4_sum(start, middle, destination) == 0xffff;
    if (unlikely(!plain))
        return false;
    if (unlikely(!is_sound_l4(l4, protocol, total_length - (uint32_t)sizeof(struct rte_ipv4_hdr))))
        return false;

    /* Stored by eight bytes, and the hash made of the words at hand: a wide load that must wait for
     * two narrow stores costs as much as all the rest. */
    name[0] = source | (uint64_t)destination << 32;
    name[1] = load32(l4) | (uint64_t)HB_FLOW_KIND(protocol, HB_FAMILY_IPV4) << 32;
    memcpy(&packet->flow.source, &name[0], sizeof(name[0]));
    memcpy(&packet->flow.ports, &name[1], sizeof(name[1]));
    packet->flow.hash = hb_flow_hash_words(name[0], name[1], key);
    packet->inner_length = (uint16_t)total_length;
    packet->l3_offset = sizeof(struct rte_ether_hdr);
    packet->l4_offset = sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv4_hdr);
    packet->traffic_class = (uint8_t)(start >> 8);
    packet->event = protocol == HB_PROTOCOL_UDP ? HB_EVENT_UDP : hb_event_of_flags[l4[13] & 0x1f];
    packet->fault = HB_NO_FAULT;
    packet->outer_protocol = IPPROTO_IPIP;
    packet->dont_fragment = (start >> 48 & RTE_BE16(IPV4_DF)) != 0;
    return true;
}

/* Global unicast (2000::/3): surely no martian. Some others are none either. */
static bool is_common_ipv6(uint64_t first_half)
{
    return (first_half & 0xe0) == 0x20;
}

/* The same for IPv6 without extension headers. */
static bool take_plain_ipv6(struct hb_packet *packet, const struct hb_hash_key *key)
{
    const struct rte_mbuf *mbuf = packet->mbuf;
    const uint8_t *frame = rte_pktmbuf_mtod(mbuf, const uint8_t *);
    const uint8_t *header = frame + sizeof(struct rte_ether_hdr);
    const uint8_t *l4 = header + sizeof(struct rte_ipv6_hdr);
    uint64_t start, source, destination, name[2];
    uint32_t protocol, payload_length;
    bool plain;

    if (unlikely(rte_pktmbuf_data_len(mbuf) < PLAIN_MIN_IPV6))
        return false;
    start = hb_load64(header); /* version, class and label; length, next header, hop limit */
    protocol = start >> 48 & 0xff;
    payload_length = __builtin_bswap16((uint16_t)(start >> 32));
    source = hb_load64(header + 8);
    destination = hb_load64(header + 24);

    plain = load16(frame + 12) == RTE_BE16(RTE_ETHER_TYPE_IPV6);
    plain &= (frame[0] & 1) == 0;
    plain &= ((start & 0xf0) == 0x60) & (start >> 56 != 0);
    plain &= (payload_length <= rte_pktmbuf_pkt_len(mbuf) - 54) &
             (payload_length <= UINT16_MAX - sizeof(struct rte_ipv6_hdr));
    plain &= is_common_ipv6(source);
    plain &= is_common_ipv6(destination);
    plain &= ((source ^ destination) | (hb_load64(header + 16) ^ hb_load64(header + 32))) != 0;
    if (unlikely(!plain) || unlikely(!is_sound_l4(l4, protocol, payload_length)))
        return false;

    name[0] = hb_flow_fold(header + 8) | (uint64_t)hb_flow_fold(header + 24) << 32;
    name[1] = load32(l4) | (uint64_t)HB_FLOW_KIND(protocol, HB_FAMILY_IPV6) << 32;
    memcpy(&packet->flow.source, &name[0], sizeof(name[0]));
    memcpy(&packet->flow.ports, &name[1], sizeof(name[1]));
    packet->flow.addresses = header + 8;
    packet->flow.hash = hb_flow_hash_ipv6(&packet->flow, key);
    packet->inner_length = (uint16_t)(payload_length + sizeof(struct rte_ipv6_hdr));
    packet->l3_offset = sizeof(struct rte_ether_hdr);
    packet->l4_offset = sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv6_hdr);
    packet->traffic_class = (uint8_t)(__builtin_bswap16((uint16_t)start) >> 4);
    packet->event = protocol == HB_PROTOCOL_UDP ? HB_EVENT_UDP : hb_event_of_flags[l4[13] & 0x1f];
    packet->fault = HB_NO_FAULT;
    packet->outer_protocol = IPPROTO_IPV6;
    packet->dont_fragment = true;
    return true;
}

/* A guess, from the only field that could tell; what it guesses is checked then. */
static bool seems_ipv6(const struct rte_mbuf *mbuf)
{
    return likely(rte_pktmbuf_data_len(mbuf) >= sizeof(struct rte_ether_hdr)) &&
           load16(rte_pktmbuf_mtod_offset(mbuf, const uint8_t *, 12)) ==
               RTE_BE16(RTE_ETHER_TYPE_IPV6);
}

/* A packet by itself: by a short cut, or the careful way and the hash of what that found. Returns
 * whether it is plain. */
static bool take_one(struct hb_batch *batch, struct hb_packet *packet,
                     const struct hb_flow_table *flows, const struct hb_hash_key *key)
{
    struct hb_flow_query *flow = &packet->flow;
    bool plain, ipv6 = seems_ipv6(packet->mbuf);

    plain = ipv6 ? take_plain_ipv6(packet, key) : take_plain_ipv4(packet, key);
    if (unlikely(!plain)) {
        hb_parse_with_care(batch, packet);
        if (packet->mbuf == NULL)
            return false;
        ipv6 = hb_flow_is_ipv6(flow);
        flow->hash = ipv6 ? hb_flow_hash_ipv6(flow, key) : hb_flow_hash_ipv4(flow, key);
    }
    hb_flow_prefetch(flows, &flows->shelf[ipv6], flow->hash);
    return plain;
}

/* For one VIP, protocol and port. */
static bool is_alike(const struct hb_packet *packet, const struct hb_packet *first)
{
    const uint8_t *to = packet->flow.addresses, *first_to = first->flow.addresses;

    if (packet->flow.destination != first->flow.destination ||
        packet->flow.ports >> 16 != first->flow.ports >> 16 ||
        packet->flow.kind != first->flow.kind)
        return false;
    /* Of IPv6 addresses what was compared is the fold. */
    return !hb_flow_is_ipv6(&packet->flow) ||
           ((hb_load64(to + 16) ^ hb_load64(first_to + 16)) |
            (hb_load64(to + 24) ^ hb_load64(first_to + 24))) == 0;
}

/* The hashes of IPv4 packets side by side, and what of the flow cache they name, fetched: eight at
 * a time, with the reading of the next eight behind them. Sixty-four in one go are one stall. */
static inline void put_hashes(struct hb_packet *packet, uint32_t count,
                              const struct hb_flow_table *flows, const struct hb_hash_key *key)
{
    const struct hb_flow_shelf shelf = flows->shelf[0];
    const struct hb_hash_key words = *key;

    for (const struct hb_packet *end = packet + count; packet != end; packet++) {
        packet->flow.hash = hb_flow_hash_ipv4(&packet->flow, &words);
        hb_flow_prefetch(flows, &shelf, packet->flow.hash);
    }
}

/* What eight packets at once can be asked and those that are not plain one by one. Returns how many
 * of the burst were taken so. `*unlike` is set when not all were for one service. */
static uint16_t take_eights(struct hb_batch *batch, const struct hb_flow_table *flows,
                            const struct hb_hash_key *key, uint32_t *unlike)
{
    uint16_t next = 0;

#if defined(__AVX2__)
    uint64_t rest = 0;

    for (; next + 8 <= batch->count; next = (uint16_t)(next + 8)) {
        uint64_t plain = take_eight(&batch->packet[next], batch->packet, unlike);

        if (unlikely(plain == 0) && next == 0)
            return 0; /* IPv6, as a rule: the next eight would be asked for nothing */
        rest |= (plain ^ 0xff) << next;
        if (likely(plain != 0))
            put_hashes(&batch->packet[next], 8, flows, key);
    }
    for (*unlike |= rest != 0; unlikely(rest != 0); rest &= rest - 1)
        take_one(batch, &batch->packet[__builtin_ctzll(rest)], flows, key);
#else
    (void)batch, (void)flows, (void)key, (void)unlike, (void)put_hashes;
#endif
    return next;
}

/* A flow cache of one bucket, which is always at hand. Where not all flows are tracked it is
 * fetched in place of the real one, and stage_flow fetches what it needs itself. Two loops, with
 * and without the prefetch, would each be 3 cycles a packet slower than this one. */
static struct hb_flow_bucket no_bucket;
static const struct hb_flow_table no_flows = {.buckets = &no_bucket,
                                              .shelf = {{.count = 1}, {.count = 1}}};

/* The hash, made here, serves all that follows. What stage_flow reads of the flow cache is on its
 * way while this stage and the next go on with the burst. */
void hb_stage_parse(struct hb_batch *batch)
{
    const struct hb_flow_table *flows;
    const struct hb_hash_key *key;
    uint32_t unlike = 0;
    uint16_t next;

    if (batch->count == 0)
        return;
    key = &batch->generation->hash_key;
    flows = batch->generation->selective ? &no_flows : batch->worker->flows;
    next = take_eights(batch, flows, key, &unlike);
    for (; next < batch->count; next++) {
        struct hb_packet *packet = &batch->packet[next];

        /* The first one's fields are only read when all before this one were plain. */
        if (!take_one(batch, packet, flows, key) || unlike != 0)
            unlike = 1;
        else
            unlike = !is_alike(packet, batch->packet);
    }
    batch->alike = unlike == 0;
    hb_batch_end(batch);
}
