/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nat_quote.h: ICMP errors about translated packets (RFC 5508, section 4; RFC 4443).
 *
 * An error quotes the beginning of the packet it is about, as that packet was where the error was
 * made. Whoever gets it compares the quote with what it sent, so addresses, ports and checksums of
 * the quote are translated back, and the checksum of the ICMP message with them. How much is quoted
 * is the sender's choice: what was cut off is left alone.
 *
 * Pure.
 */
#ifndef HB_DATAPLANE_NAT_QUOTE_H
#define HB_DATAPLANE_NAT_QUOTE_H

#include "nat_header.h"

/* Whether the packet is an ICMP or ICMPv6 error, by protocol, family and type. */
bool hb_nat_is_error(const struct hb_nat_header *outer);

/* Finds the packet that an error quotes. False: it is no error, or the quote is cut off within its
 * IP header or before its ports, is of another family, a later fragment, or neither TCP nor UDP. */
bool hb_nat_read_quote(const struct hb_nat_header *outer, struct hb_nat_header *quote);

/* What an end of the error and an end of its quote become. */
struct hb_nat_exchange {
    enum hb_nat_end end;
    const uint8_t *address;
    hb_be16 port; /* of a quote */
};

/* Translates one or both ends of the error's own addresses, and of the quote's. */
void hb_nat_translate_error(struct hb_nat_header *outer, const struct hb_nat_exchange own[],
                            uint32_t own_count, struct hb_nat_header *quote,
                            const struct hb_nat_exchange quoted[], uint32_t quoted_count);

#endif
