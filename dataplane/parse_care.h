/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parse_care.h: the careful way through a packet's headers, check by check.
 *
 * It takes every packet, and alone gives reasons. What stage_parse.c takes by a short cut it would
 * read and judge the same (tests/packets/test_parse.c compares the two).
 */
#ifndef HB_DATAPLANE_PARSE_CARE_H
#define HB_DATAPLANE_PARSE_CARE_H

#include "batch.h"

#define HB_ICMP   1
#define HB_ICMPV6 58

/* enum hb_flow_event by the five lowest flags of a TCP header. */
extern const uint8_t hb_event_of_flags[32];

/* Writes all that stage_parse writes but the hash, or ends the packet. */
void hb_parse_with_care(struct hb_batch *batch, struct hb_packet *packet);

/* What a fragment says of its datagram: it holds the bytes from `start` to before `end` of what
 * comes behind the IP header (IPv6: behind the fragment header). */
struct hb_fragment {
    uint32_t id; /* as a number; 16 bits of IPv4 */
    uint32_t start, end;
    bool more; /* not the last one */
    uint8_t protocol;
};

/* Reads them of a packet of HB_SHAPE_FRAGMENT. HB_NO_FAULT, or why it can't be one of a sound
 * datagram: nothing in it, a length that is no multiple of 8 without being the last, or an end
 * beyond what a datagram can have. */
uint8_t hb_parse_fragment(const struct hb_packet *packet, struct hb_fragment *fragment);

/* Of the fragment with `start` 0: writes ports, protocol, event and l4_offset. HB_NO_FAULT or why
 * it can't go on. */
uint8_t hb_parse_first_fragment(struct hb_packet *packet, const struct hb_fragment *fragment);

/* Is it a fragment without the headers behind that of IP? */
bool hb_is_later_fragment(const struct hb_packet *packet);

#endif
