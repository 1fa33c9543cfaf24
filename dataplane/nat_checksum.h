/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nat_checksum.h: Internet checksums after a change of some words (RFC 1071, RFC 1624).
 *
 * All numbers are as loaded from the packet, in network byte order: the sum is the same in either
 * order (RFC 1071, section 2). Equation 3 of RFC 1624 is used, HC' = ~(~HC + ~m + m'), and the
 * result is brought to the form that a full computation gives: 0x0000 and 0xffff both stand for
 * zero, and a header that is not all zeroes never has 0xffff. UDP is the exception: there a
 * checksum of zero says "none" (RFC 768), so a computed one is sent as 0xffff, and none stays none.
 *
 * Words that change must begin at an even distance from where the sum begins; hb_checksum_put is
 * for those that may not.
 *
 * Pure.
 */
#ifndef HB_DATAPLANE_NAT_CHECKSUM_H
#define HB_DATAPLANE_NAT_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t hb_checksum_load(const void *at)
{
    uint16_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static inline void hb_checksum_store(void *at, uint16_t value)
{
    memcpy(at, &value, sizeof(value));
}

static inline uint16_t hb_checksum_fold(uint64_t sum)
{
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

/* The sum of `bytes` (an even number) without folding; at most 64 KB. */
static inline uint64_t hb_checksum_words(const void *words, size_t bytes)
{
    const uint8_t *at = words;
    uint64_t sum = 0;

    for (size_t i = 0; i < bytes; i += 2)
        sum += hb_checksum_load(at + i);
    return sum;
}

/* What a checksum becomes when words of the sum `removed` have made way for those of `added`. The
 * first is subtracted by adding its complement, so it must be folded. */
static inline uint16_t hb_checksum_replace(uint16_t check, uint64_t removed, uint64_t added)
{
    uint64_t sum =
        (uint64_t)(uint16_t)~check + (uint16_t)~hb_checksum_fold(removed) + hb_checksum_fold(added);
    uint16_t result = (uint16_t)~hb_checksum_fold(sum);

    return result == 0xffff ? 0 : result;
}

/* The same for `bytes` (an even number) of words. */
static inline uint16_t hb_checksum_update(uint16_t check, const void *removed, const void *added,
                                          size_t bytes)
{
    return hb_checksum_replace(check, hb_checksum_words(removed, bytes),
                               hb_checksum_words(added, bytes));
}

/* A UDP checksum: none stays none where that is allowed, and none is never made of one. */
static inline uint16_t hb_checksum_replace_udp(uint16_t check, uint64_t removed, uint64_t added,
                                               bool none_allowed)
{
    uint16_t result;

    if (check == 0 && none_allowed)
        return 0;
    result = hb_checksum_replace(check, removed, added);
    return result == 0 ? 0xffff : result;
}

/* One byte at `offset` from where the sum begins, as a word of the sum. */
static inline uint16_t hb_checksum_byte(uint8_t value, size_t offset)
{
    uint8_t word[2] = {0, 0};

    word[offset & 1] = value;
    return hb_checksum_load(word);
}

/* Writes bytes at `at`, which is at `offset` from where the sum begins, and brings the checksum in
 * line: for what need not stand at an even place, as TCP options do. */
static inline uint16_t hb_checksum_put(uint16_t check, uint8_t *at, size_t offset,
                                       const uint8_t *bytes, size_t count)
{
    uint64_t removed = 0, added = 0;

    for (size_t i = 0; i < count; i++) {
        removed += hb_checksum_byte(at[i], offset + i);
        added += hb_checksum_byte(bytes[i], offset + i);
        at[i] = bytes[i];
    }
    return hb_checksum_replace(check, removed, added);
}

#endif
