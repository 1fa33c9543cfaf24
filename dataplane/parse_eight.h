/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parse_eight.h: eight plain IPv4 packets read at once, for stage_parse.c.
 *
 * The headers of eight frames are loaded by rows of 16 bytes and turned, so that one vector holds
 * one word of all eight; then every question is asked once for all of them. What of a packet is not
 * plain shows in one bit; what was written for such a packet is rubbish, and the caller takes it
 * another way.
 *
 *     offset in the frame   10    14         18           22            26   30   34     38
 *     link, net             type  version .. length  id, fragment  TTL, protocol, sum  from  to
 *                           ports  UDP length
 *     end                   34 ports .. 46: TCP data offset, flags, window
 */
#ifndef HB_DATAPLANE_PARSE_EIGHT_H
#define HB_DATAPLANE_PARSE_EIGHT_H

#include <netinet/in.h>

#include <rte_byteorder.h>

#include "batch.h"
#include "eight.h"
#include "flow_bucket.h"

#define EIGHT_MIN 54 /* bytes at hand: Ethernet, IPv4, TCP */

/* The first words of a frame's headers, as loaded. */
struct eight_headers {
    hb_eight type;     /* upper half */
    hb_eight start;    /* version and length, TOS, total length */
    hb_eight fragment; /* ID; upper half: flags and offset */
    hb_eight middle;   /* TTL, protocol, checksum */
    hb_eight source, destination;
    hb_eight ports;
    hb_eight udp; /* lower half: length */
    hb_eight tcp; /* data offset, flags */
};

static inline void load_square(struct hb_eight_square *square, const uint8_t *const at[8],
                               uint32_t offset)
{
    for (uint32_t i = 0; i < 4; i++)
        square->of[i] = hb_eight_load(at[i] + offset, at[i + 4] + offset);
    *square = hb_eight_turn(*square);
}

/* Where the frames are, how long, and whether enough of each is at hand. */
static inline bool find_frames(const struct hb_packet *packet, const uint8_t *frame[8],
                               hb_eight *length)
{
    struct hb_eight_square square;

    for (uint32_t i = 0; i < 4; i++) {
        const struct rte_mbuf *low = packet[i].mbuf, *high = packet[i + 4].mbuf;

        frame[i] = rte_pktmbuf_mtod(low, const uint8_t *);
        frame[i + 4] = rte_pktmbuf_mtod(high, const uint8_t *);
        square.of[i] = hb_eight_load(&low->packet_type, &high->packet_type);
    }
    square = hb_eight_turn(square); /* packet_type, pkt_len, data_len and vlan_tci, hash */
    *length = square.of[1];
    return hb_eight_bits(hb_eight_greater(HB_EIGHT(EIGHT_MIN), square.of[2] & HB_EIGHT(0xffff))) ==
           0;
}
_Static_assert(offsetof(struct rte_mbuf, pkt_len) == offsetof(struct rte_mbuf, packet_type) + 4 &&
                   offsetof(struct rte_mbuf, data_len) == offsetof(struct rte_mbuf, pkt_len) + 4,
               "one row");

static inline struct eight_headers load_headers(const uint8_t *const frame[8])
{
    struct hb_eight_square link, net, end;

    load_square(&link, frame, 10);
    load_square(&net, frame, 26);
    load_square(&end, frame, 34);
    return (struct eight_headers){.type = link.of[0],
                                  .start = link.of[1],
                                  .fragment = link.of[2],
                                  .middle = link.of[3],
                                  .source = net.of[0],
                                  .destination = net.of[1],
                                  .ports = net.of[2],
                                  .udp = net.of[3],
                                  .tcp = end.of[3]};
}

/* 0xffff when the checksum is in it and right. The sum of ten halves is a multiple of 0xffff then,
 * which one fold shows. */
static inline hb_eight sum_ipv4(const struct eight_headers *h)
{
    hb_eight upper = (h->start >> 16) + (h->fragment >> 16) + (h->middle >> 16) +
                     (h->source >> 16) + (h->destination >> 16);
    hb_eight all = h->start + h->fragment + h->middle + h->source + h->destination;
    hb_eight sum = all - (upper << 16) + upper; /* the lower halves are what is left of all */

    return (sum & HB_EIGHT(0xffff)) + (sum >> 16);
}

/* Not 0 where an address may be a martian, by its first byte: 0, 127, 224 and up. Both addresses of
 * a packet in the two halves of a number. */
static inline hb_eight is_uncommon(hb_eight source, hb_eight destination)
{
    typedef int16_t halves __attribute__((vector_size(32)));
    const hb_eight byte = HB_EIGHT(0xff);
    halves first = (halves)((source & byte) | (destination & byte) << 16);

    return (hb_eight)((first == (halves)hb_eight_all(0)) | (first == (halves)HB_EIGHT(0x007f007f)) |
                      (first > (halves)HB_EIGHT(0x00df00df)));
}

/* Set where the packet is plain and sound; as take_plain_ipv4 asks. `total`: length of the IP
 * packet, `frame`: of all there is. */
static inline hb_eight is_plain_eight(const struct eight_headers *h, hb_eight total, hb_eight frame)
{
    const hb_eight zero = hb_eight_all(0), protocols = h->middle & HB_EIGHT(0xff00);
    hb_eight tcp = hb_eight_equal(protocols, HB_EIGHT(HB_PROTOCOL_TCP << 8));
    hb_eight udp = hb_eight_equal(protocols, HB_EIGHT(HB_PROTOCOL_UDP << 8));
    hb_eight least = (tcp & HB_EIGHT(20)) | (udp & HB_EIGHT(8));
    hb_eight l4 =
        (tcp & h->tcp >> 2 & HB_EIGHT(0x3c)) | (udp & hb_eight_swap(h->udp) & HB_EIGHT(0xffff));
    hb_eight wrong = (h->type ^ HB_EIGHT((uint32_t)RTE_BE16(0x0800) << 16)) >> 16;

    wrong |= (h->start ^ HB_EIGHT(0x45)) & HB_EIGHT(0xff);
    wrong |= h->fragment & HB_EIGHT((uint32_t)RTE_BE16(0x3fff) << 16);
    wrong |= hb_eight_equal(h->middle & HB_EIGHT(0xff), zero); /* TTL */
    wrong |= sum_ipv4(h) ^ HB_EIGHT(0xffff);
    wrong |= is_uncommon(h->source, h->destination);
    wrong |= hb_eight_equal(h->source, h->destination);
    wrong |= hb_eight_greater(total + HB_EIGHT(14), frame);
    wrong |= hb_eight_greater(least, l4) | hb_eight_greater(l4, total - HB_EIGHT(20));
    wrong |= hb_eight_equal(least, zero); /* neither */
    return hb_eight_equal(wrong, zero);
}

/* enum hb_flow_event by FIN, SYN, RST, four bits each, without and with ACK. */
#define EIGHT_EVENTS(ack)                                                                          \
    ((uint32_t)((ack) ? HB_EVENT_ACK : HB_EVENT_ODD) | HB_EVENT_FIN << 4 |                         \
     (uint32_t)((ack) ? HB_EVENT_ODD : HB_EVENT_SYN) << 8 | HB_EVENT_ODD << 12 |                   \
     HB_EVENT_RST << 16 | HB_EVENT_RST << 20 | HB_EVENT_RST << 24 | HB_EVENT_RST << 28)

static inline hb_eight find_events(const struct eight_headers *h)
{
    hb_eight ack = (hb_eight)((hb_eight_signed)(h->tcp << 19) >> 31);
    hb_eight events =
        HB_EIGHT(EIGHT_EVENTS(false)) ^ (ack & HB_EIGHT(EIGHT_EVENTS(false) ^ EIGHT_EVENTS(true)));
    hb_eight udp = hb_eight_equal(h->middle & HB_EIGHT(0xff00), HB_EIGHT(HB_PROTOCOL_UDP << 8));

    return hb_eight_choose(udp, HB_EIGHT(HB_EVENT_UDP),
                           events >> (h->tcp >> 6 & HB_EIGHT(0x1c)) & HB_EIGHT(7));
}

/* What the end of struct hb_packet holds, by numbers. */
_Static_assert(
    offsetof(struct hb_packet, inner_length) == 48 && offsetof(struct hb_packet, l3_offset) == 50 &&
        offsetof(struct hb_packet, traffic_class) == 51 &&
        offsetof(struct hb_packet, event) == 52 && offsetof(struct hb_packet, fault) == 53 &&
        offsetof(struct hb_packet, dont_fragment) == 54 &&
        offsetof(struct hb_packet, shape) == 55 && offsetof(struct hb_packet, l4_offset) == 56 &&
        offsetof(struct hb_packet, outer_protocol) == 58 &&
        offsetof(struct hb_packet, service) == 60 && offsetof(struct hb_packet, backend_id) == 62,
    "16 bytes that are written at once");

static inline void put_properties(struct hb_packet *packet, const struct eight_headers *h,
                                  hb_eight total)
{
    hb_eight first = total | HB_EIGHT(14 << 16) | (h->start << 16 & HB_EIGHT(UINT32_C(0xff000000)));
    hb_eight second = find_events(h) | HB_EIGHT(HB_NO_FAULT << 8) |
                      (h->fragment >> 6 & HB_EIGHT(1 << 16)); /* DF */
    const hb_eight rest = HB_EIGHT_ROW(34 | IPPROTO_IPIP << 16, HB_NO_SERVICE,
                                       34 | IPPROTO_IPIP << 16, HB_NO_SERVICE);
    hb_eight low = HB_EIGHT_FIRST(first, second), high = HB_EIGHT_SECOND(first, second);

    hb_eight_store(&packet[0].inner_length, &packet[4].inner_length,
                   HB_EIGHT_PAIRS_FIRST(low, rest));
    hb_eight_store(&packet[1].inner_length, &packet[5].inner_length,
                   HB_EIGHT_PAIRS_SECOND(low, rest));
    hb_eight_store(&packet[2].inner_length, &packet[6].inner_length,
                   HB_EIGHT_PAIRS_FIRST(high, rest));
    hb_eight_store(&packet[3].inner_length, &packet[7].inner_length,
                   HB_EIGHT_PAIRS_SECOND(high, rest));
}

static inline void put_flows(struct hb_packet *packet, const struct eight_headers *h)
{
    hb_eight kind = (h->middle >> 8 & HB_EIGHT(0xff)) | HB_EIGHT(HB_FLOW_KIND(0, HB_FAMILY_IPV4));
    struct hb_eight_square flow = {{h->source, h->destination, h->ports, kind}};

    flow = hb_eight_turn(flow);
    for (uint32_t i = 0; i < 4; i++)
        hb_eight_store(&packet[i].flow, &packet[i + 4].flow, flow.of[i]);
}

/* Not 0 where a packet is not of the same VIP, protocol and port as `first`. */
static inline hb_eight is_unlike(const struct eight_headers *h, const struct hb_packet *first)
{
    return (h->destination ^ hb_eight_all(first->flow.destination)) |
           (h->ports ^ hb_eight_all(first->flow.ports)) >> 16 |
           ((h->middle >> 8 ^ hb_eight_all(first->flow.kind)) & HB_EIGHT(0xff));
}

/* Reads eight packets side by side and returns a bit for each that is plain; of the others nothing
 * is known. `*unlike` gets bits set when not all are for the service of `first`, the first of the
 * burst. The hashes are left to be made. */
static inline __attribute__((always_inline)) uint32_t
take_eight(struct hb_packet *packet, const struct hb_packet *first, uint32_t *unlike)
{
    const uint8_t *frame[8];
    struct eight_headers headers;
    hb_eight length, total;
    uint32_t plain;

    if (unlikely(!find_frames(packet, frame, &length)))
        return 0;
    headers = load_headers(frame);
    total = hb_eight_swap(headers.start) >> 16;
    plain = hb_eight_bits(is_plain_eight(&headers, total, length));
    if (unlikely(plain == 0))
        return 0;
    put_properties(packet, &headers, total);
    put_flows(packet, &headers);
    *unlike |= hb_eight_bits(hb_eight_equal(is_unlike(&headers, first), hb_eight_all(0))) ^ 0xff;
    return plain;
}

#endif
