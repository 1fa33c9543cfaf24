/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nat_header.h: the addresses and ports of one packet, found and changed.
 *
 * Works on the bytes of an IP packet, or of the beginning of one as an ICMP error quotes it. What
 * changes is an address, the port beside it, and the checksums that cover them, by what they differ
 * (nat_checksum.h); no other byte (BL-10). Ports stand behind IPv4 options and IPv6 extension
 * headers (BL-12). A later fragment has no ports and no checksum of its own: only its address
 * changes, and since the first fragment's checksum is brought in line for both, the datagram is
 * right when it is put together again.
 *
 * Pure.
 */
#ifndef HB_DATAPLANE_NAT_HEADER_H
#define HB_DATAPLANE_NAT_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "halbach/types.h"

struct hb_nat_header {
    uint8_t *l3;
    uint8_t *l4;        /* what is behind the IP headers; NULL in a later fragment */
    uint32_t l4_length; /* bytes at hand there */
    uint8_t family;
    uint8_t protocol;
    bool fragment; /* a part of a datagram, the first or a later one */
};

/* Which end of a packet. */
enum hb_nat_end { HB_NAT_SOURCE_END, HB_NAT_DESTINATION_END };

/* Reads the headers of `readable` bytes at `l3`. False when there are fewer than the IP headers
 * have, or they are none. */
bool hb_nat_read(struct hb_nat_header *header, uint8_t *l3, uint32_t readable);

/* Whether ports and the checksum that covers them are at hand: TCP and UDP, whole enough. */
bool hb_nat_has_ports(const struct hb_nat_header *header);

/* The address (4 or 16 bytes) and, in network byte order, the port of an end. The port of a packet
 * that has none is 0. */
const uint8_t *hb_nat_address(const struct hb_nat_header *header, enum hb_nat_end end);
hb_be16 hb_nat_port(const struct hb_nat_header *header, enum hb_nat_end end);

/* Gives one end another address and, where the packet has ports, another port. In a quote whose
 * checksum was cut off there is none to bring in line. */
void hb_nat_set_end(struct hb_nat_header *header, enum hb_nat_end end, const uint8_t *address,
                    hb_be16 port);

/* Takes one from the TTL or hop limit. False, and nothing has changed, when it was 1 or 0. */
bool hb_nat_take_hop(struct hb_nat_header *header);

/* The checksum of TCP or UDP after words of its sum were exchanged otherwise. */
void hb_nat_fix_checksum(struct hb_nat_header *header, uint64_t removed, uint64_t added);

#endif
