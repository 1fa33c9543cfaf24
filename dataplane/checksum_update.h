/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checksum_update.h: Internet checksums (RFC 1071) brought up to date when part of what they cover
 * changes. Pure.
 *
 * Words are as loaded from the packet: a one's complement sum does not depend on the order of
 * bytes.
 */
#ifndef HB_DATAPLANE_CHECKSUM_UPDATE_H
#define HB_DATAPLANE_CHECKSUM_UPDATE_H

#include <stdint.h>
#include <string.h>

/* Folds until no carry is left (BL-01). 0 only for 0. */
static inline uint16_t hb_checksum_fold(uint64_t sum)
{
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

/* Adds up `size` bytes, an even number. */
static inline uint64_t hb_checksum_add(const void *bytes, uint32_t size)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < size; i += 2) {
        uint16_t word;

        memcpy(&word, (const uint8_t *)bytes + i, sizeof(word));
        sum += word;
    }
    return sum;
}

/* The checksum field after words that sum up to `before` became such that sum up to `after`: RFC
 * 1624, equation 3. Its other equations go wrong at 0xffff. */
static inline uint16_t hb_checksum_update(uint16_t checksum, uint64_t before, uint64_t after)
{
    uint64_t sum = (uint16_t)~checksum;

    sum += (uint16_t)~hb_checksum_fold(before);
    sum += hb_checksum_fold(after);
    return (uint16_t)~hb_checksum_fold(sum);
}

/* The same for the checksum of UDP, where 0 stands for "none" and stays so, and a sum that comes
 * out as 0 is written as 0xffff (RFC 768). */
static inline uint16_t hb_checksum_update_udp(uint16_t checksum, uint64_t before, uint64_t after)
{
    uint16_t updated = hb_checksum_update(checksum, before, after);

    if (checksum == 0)
        return 0;
    return updated != 0 ? updated : 0xffff;
}

#endif
