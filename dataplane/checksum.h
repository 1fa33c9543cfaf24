/* SPDX-License-Identifier: BSD-3-Clause */
/* checksum.h: the Internet checksum (RFC 1071) over packets, of however many segments. */
#ifndef HB_DATAPLANE_CHECKSUM_H
#define HB_DATAPLANE_CHECKSUM_H

#include <rte_byteorder.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "checksum_update.h"

/* The sum of a pseudo header (RFC 9293 section 3.1, RFC 8200 section 8.1), not complemented.
 * `addresses`: source and destination, `size` bytes together. */
static inline uint16_t hb_pseudo_sum(const uint8_t *addresses, uint32_t size, uint8_t protocol,
                                     uint32_t length)
{
    return hb_checksum_fold((uint32_t)rte_raw_cksum(addresses, size) +
                            rte_cpu_to_be_16((uint16_t)length) + rte_cpu_to_be_16(protocol));
}

/* The sum of `length` bytes of a packet from `offset` on, added to `sum`. They are there, the first
 * of them in the first segment. 0xffff when a right checksum is among them; its complement is the
 * checksum when that is 0 in them. Not rte_raw_cksum_mbuf, which in DPDK 22.11 loses a carry where
 * a segment begins at an odd byte. */
static inline uint16_t hb_packet_sum(const struct rte_mbuf *mbuf, uint32_t offset, uint32_t length,
                                     uint16_t sum)
{
    uint32_t done = 0;
    uint64_t total = sum;

    for (; mbuf != NULL && done < length; mbuf = mbuf->next) {
        uint32_t size = RTE_MIN(rte_pktmbuf_data_len(mbuf) - offset, length - done);
        uint16_t part = rte_raw_cksum(rte_pktmbuf_mtod_offset(mbuf, const void *, offset), size);

        total += (done & 1) != 0 ? rte_bswap16(part) : part;
        done += size;
        offset = 0;
    }
    return hb_checksum_fold(total);
}

#endif
