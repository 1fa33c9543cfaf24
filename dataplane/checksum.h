/* SPDX-License-Identifier: BSD-3-Clause */
/* checksum.h: the Internet checksum (RFC 1071) of ICMP and TCP, over however many segments. */
#ifndef HB_DATAPLANE_CHECKSUM_H
#define HB_DATAPLANE_CHECKSUM_H

#include <rte_byteorder.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

static inline uint16_t hb_fold_sum(uint32_t sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

/* The sum of a pseudo header (RFC 9293 section 3.1, RFC 8200 section 8.1), not complemented.
 * `addresses`: source and destination, `size` bytes together. */
static inline uint16_t hb_pseudo_sum(const uint8_t *addresses, uint32_t size, uint8_t protocol,
                                     uint32_t length)
{
    return hb_fold_sum((uint32_t)rte_raw_cksum(addresses, size) +
                       rte_cpu_to_be_16((uint16_t)length) + rte_cpu_to_be_16(protocol));
}

/* The sum of `length` bytes of a packet from `offset` on, added to `sum`. They are there. 0xffff
 * when a right checksum is among them; its complement is the checksum when that is 0 in them. */
static inline uint16_t hb_packet_sum(const struct rte_mbuf *mbuf, uint32_t offset, uint32_t length,
                                     uint16_t sum)
{
    uint16_t bytes = 0;

    rte_raw_cksum_mbuf(mbuf, offset, length, &bytes);
    return hb_fold_sum((uint32_t)bytes + sum);
}

/* Changes a checksum for one word of what it covers (RFC 1624, equation 3). All as loaded. */
static inline uint16_t hb_change_sum(uint16_t checksum, uint16_t from, uint16_t to)
{
    return (uint16_t)~hb_fold_sum((uint32_t)(uint16_t)~checksum + (uint16_t)~from + to);
}

#endif
