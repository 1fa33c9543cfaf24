/* SPDX-License-Identifier: BSD-3-Clause */
/* ipv4_sum.h: the checksum of an IPv4 header without options, in registers. Pure. */
#ifndef HB_DATAPLANE_IPV4_SUM_H
#define HB_DATAPLANE_IPV4_SUM_H

#include <stdint.h>

/* The one's complement sum (RFC 1071) of the header's first 16 bytes, as two words, and its last
 * four, all as loaded; in the order of bytes in which it would be stored. 0xffff when the checksum
 * is in it and right; the complement of it without the checksum is the checksum. Carries go round
 * to the end (BL-01). */
static inline uint16_t hb_ipv4_sum(uint64_t start, uint64_t middle, uint32_t destination)
{
    uint64_t sum = start + middle;
    uint32_t half;

    sum += sum < middle;
    sum += destination;
    sum += sum < destination;
    sum += sum << 32 | sum >> 32; /* the upper half is now the sum of both, its carry included */
    half = (uint32_t)(sum >> 32);
    half += half << 16 | half >> 16;
    return (uint16_t)(half >> 16);
}

#endif
