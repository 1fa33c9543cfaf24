/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * encap_eight.h: the tunnel headers of eight plain packets at once, for stage_encap.c.
 *
 * The same as put_plain_ipv4, eight times side by side. What of the outer IPv4 header depends on
 * the packet is made by words of all eight, turned, and added to the backend's ready header:
 *
 *     offset in the frame   0            15    16            20               24        26       34
 *     link                  Ethernet ..  TOS
 *     net                                      length, ID    fragment,        checksum  source ..
 *                                                            TTL, protocol
 */
#ifndef HB_DATAPLANE_ENCAP_EIGHT_H
#define HB_DATAPLANE_ENCAP_EIGHT_H

#include "batch.h"
#include "eight.h"

#define EIGHT_HEADERS 34 /* bytes of the new headers */
#define EIGHT_OLD     14 /* bytes of the Ethernet header that they take the place of */

/* What the rows of a packet, its backend and its mbuf hold, as columns. */
struct eight_facts {
    hb_eight length;                /* of the IP packet */
    hb_eight l3_and_class;          /* l3_offset in bits 16 to 23, TOS in 24 to 31 */
    hb_eight dont_fragment;         /* mask */
    hb_eight protocol;              /* in bits 24 to 31 */
    hb_eight limit;                 /* largest length; below 0 where the rewrite is not plain */
    struct hb_eight_square headers; /* rows: bytes 16 to 31 of the backend's headers */
    struct hb_eight_square mbufs;   /* rows: data_off, refcnt, nb_segs, port, ol_flags */
};
_Static_assert(
    offsetof(struct hb_packet, inner_length) % 16 == 0 &&
        offsetof(struct hb_packet, l3_offset) == 2 + offsetof(struct hb_packet, inner_length) &&
        offsetof(struct hb_packet, traffic_class) == 3 + offsetof(struct hb_packet, inner_length) &&
        offsetof(struct hb_packet, dont_fragment) == 6 + offsetof(struct hb_packet, inner_length) &&
        offsetof(struct hb_packet, outer_protocol) == 10 + offsetof(struct hb_packet, inner_length),
    "a packet's row");
_Static_assert(offsetof(struct hb_backend, inner_max) == 4 &&
                   offsetof(struct hb_backend, forwarding) == 6 &&
                   offsetof(struct hb_backend, plain) == 7,
               "the second word of a backend's row");
_Static_assert(offsetof(struct rte_mbuf, refcnt) == offsetof(struct rte_mbuf, data_off) + 2 &&
                   offsetof(struct rte_mbuf, nb_segs) == offsetof(struct rte_mbuf, data_off) + 4 &&
                   offsetof(struct rte_mbuf, ol_flags) == offsetof(struct rte_mbuf, data_off) + 8 &&
                   offsetof(struct rte_mbuf, packet_type) ==
                       offsetof(struct rte_mbuf, data_off) + 16 &&
                   offsetof(struct rte_mbuf, pkt_len) ==
                       offsetof(struct rte_mbuf, packet_type) + 4 &&
                   offsetof(struct rte_mbuf, data_len) == offsetof(struct rte_mbuf, pkt_len) + 4 &&
                   offsetof(struct rte_mbuf, vlan_tci) == offsetof(struct rte_mbuf, data_len) + 2,
               "two rows of an mbuf");

static inline struct eight_facts gather_facts(const struct hb_packet *packet)
{
    struct hb_eight_square properties, backends;
    struct eight_facts facts;

    for (uint32_t i = 0; i < 4; i++) {
        const struct hb_packet *low = &packet[i], *high = &packet[i + 4];

        properties.of[i] = hb_eight_load(&low->inner_length, &high->inner_length);
        backends.of[i] = hb_eight_load(low->backend, high->backend);
        facts.headers.of[i] = hb_eight_load(&low->backend->bytes[16], &high->backend->bytes[16]);
        facts.mbufs.of[i] = hb_eight_load(&low->mbuf->data_off, &high->mbuf->data_off);
    }
    properties = hb_eight_turn(properties);
    facts.length = properties.of[0] & HB_EIGHT(0xffff);
    facts.l3_and_class = properties.of[0];
    facts.dont_fragment = (hb_eight)((hb_eight_signed)(properties.of[1] << 15) >> 31);
    facts.protocol = properties.of[2] << 8 & HB_EIGHT(UINT32_C(0xff000000));
    facts.limit = hb_eight_turn(backends).of[1] - HB_EIGHT(HB_FORWARDING_IPIP << 16 | 1 << 24);
    return facts;
}

/* As is_plain, for all of them. */
static inline bool are_plain(const struct eight_facts *facts)
{
    hb_eight wrong = hb_eight_greater(facts->length, facts->limit) |
                     ((facts->l3_and_class ^ HB_EIGHT(EIGHT_OLD << 16)) & HB_EIGHT(0xff << 16));

    for (uint32_t i = 0; i < 4; i++) {
        hb_eight row = facts->mbufs.of[i];

        wrong |=
            (row ^ HB_EIGHT_ROW(1 << 16, 1, 0, 0)) &
            HB_EIGHT_ROW(0xffff0000, 0xffff, 0, (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL) >> 32);
        wrong |= hb_eight_greater(HB_EIGHT_ROW(EIGHT_HEADERS - EIGHT_OLD, 0, 0, 0),
                                  row & HB_EIGHT_ROW(0xffff, 0, 0, 0)); /* headroom */
    }
    return hb_eight_bits(hb_eight_equal(wrong, hb_eight_all(0))) == 0xff;
}

/* What the outer IPv4 headers hold beside the ready ones, as rows like theirs. The sum of what is
 * the same for all packets stands where the checksum goes (hb_backend_complete). */
static inline struct hb_eight_square make_headers(const struct eight_facts *facts, uint16_t id)
{
    const hb_eight half = HB_EIGHT(0xffff), zero = hb_eight_all(0);
    const hb_eight order = {0, 1, 2, 3, 4, 5, 6, 7};
    hb_eight ids = (hb_eight_all(id) + order) << 16 & ~facts->dont_fragment;
    hb_eight length_and_id = hb_eight_swap((facts->length + HB_EIGHT(20)) | ids);
    hb_eight fragment = facts->dont_fragment & HB_EIGHT(RTE_BE16(RTE_IPV4_HDR_DF_FLAG));
    hb_eight fixed = hb_eight_turn(facts->headers).of[2] & half;
    hb_eight sum = fixed + (length_and_id & half) + (length_and_id >> 16) + fragment +
                   (facts->protocol >> 16) + (facts->l3_and_class >> 16 & HB_EIGHT(0xff00));

    sum = (sum & half) + (sum >> 16);
    sum = (sum & half) + (sum >> 16);
    return hb_eight_turn((struct hb_eight_square){
        {length_and_id, fragment | facts->protocol, (sum ^ half) - fixed, zero}});
}

/* Cuts what is in front of the IP packet, makes room and forgets what the receiving port said, as
 * make_plain_room does. */
static inline void adjust_mbufs(struct hb_packet *packet, const struct eight_facts *facts)
{
    const hb_eight zero = hb_eight_all(0);
    hb_eight length = facts->length + HB_EIGHT(EIGHT_HEADERS);
    hb_eight twice[2] = {HB_EIGHT_FIRST(length, length), HB_EIGHT_SECOND(length, length)};
    const hb_eight lengths[4] = {/* 0, pkt_len, data_len, 0 */
                                 __builtin_shufflevector(twice[0], zero, 8, 0, 1, 9, 12, 4, 5, 13),
                                 __builtin_shufflevector(twice[0], zero, 8, 2, 3, 9, 12, 6, 7, 13),
                                 __builtin_shufflevector(twice[1], zero, 8, 0, 1, 9, 12, 4, 5, 13),
                                 __builtin_shufflevector(twice[1], zero, 8, 2, 3, 9, 12, 6, 7, 13)};

    for (uint32_t i = 0; i < 4; i++) {
        struct rte_mbuf *low = packet[i].mbuf, *high = packet[i + 4].mbuf;
        hb_eight row = facts->mbufs.of[i] & HB_EIGHT_ROW(~0u, ~0u, 0, 0);

        row -= HB_EIGHT_ROW(EIGHT_HEADERS - EIGHT_OLD, 0, 0, 0);
        hb_eight_store(&low->data_off, &high->data_off, row);
        hb_eight_store(&low->packet_type, &high->packet_type, lengths[i]);
    }
}

/* Puts the headers in front of eight packets, if they all are plain; else does nothing and returns
 * false. Takes eight IDs, whether the packets need them or not. */
static inline __attribute__((always_inline)) bool put_eight(struct hb_packet *packet, uint16_t *id)
{
    const hb_eight zero = hb_eight_all(0);
    const struct eight_facts facts = gather_facts(packet);
    struct hb_eight_square headers;
    hb_eight tos, pairs[2];

    if (unlikely(!are_plain(&facts)))
        return false;
    headers = make_headers(&facts, *id);
    tos = facts.l3_and_class & HB_EIGHT(UINT32_C(0xff000000));
    pairs[0] = HB_EIGHT_FIRST(zero, tos);
    pairs[1] = HB_EIGHT_SECOND(zero, tos);
    for (uint32_t i = 0; i < 4; i++) {
        const struct hb_packet *low = &packet[i], *high = &packet[i + 4];
        uint8_t *to_low = rte_pktmbuf_mtod_offset(low->mbuf, uint8_t *, EIGHT_OLD - EIGHT_HEADERS);
        uint8_t *to_high =
            rte_pktmbuf_mtod_offset(high->mbuf, uint8_t *, EIGHT_OLD - EIGHT_HEADERS);
        hb_eight link = hb_eight_load(low->backend->bytes, high->backend->bytes);

        link |= i % 2 == 0 ? HB_EIGHT_PAIRS_FIRST(zero, pairs[i / 2])
                           : HB_EIGHT_PAIRS_SECOND(zero, pairs[i / 2]);
        hb_eight_store(to_low, to_high, link);
        hb_eight_store(to_low + 16, to_high + 16, facts.headers.of[i] + headers.of[i]);
        memcpy(to_low + 26, &low->backend->bytes[26], 8);
        memcpy(to_high + 26, &high->backend->bytes[26], 8);
    }
    adjust_mbufs(packet, &facts);
    *id = (uint16_t)(*id + 8);
    return true;
}

#endif
