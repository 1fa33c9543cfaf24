/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prefix_set.h: which source addresses a service takes: a list of prefixes, allowed or denied, the
 * longest match decides.
 *
 * Prefixes nest or lie apart, so the addresses of a family fall into stretches that are allowed or
 * denied as a whole, in turn. The set holds where a stretch begins and the other one ends, sorted:
 * 4 bytes an edge for IPv4, 16 for IPv6, at most two edges a prefix. Whether an address is allowed
 * is whether an even or an odd number of edges lies below it: a binary search with no branch to
 * guess. A burst is searched in step, so that the loads of its packets, which are what a search in
 * a long list costs, wait together.
 *
 * Pure; a built set may be read by any number of threads.
 */
#ifndef HB_DATAPLANE_PREFIX_SET_H
#define HB_DATAPLANE_PREFIX_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "halbach/generation.h"

#define HB_PREFIX_FIND_MAX 64

/* An IPv6 address in host byte order. */
struct hb_prefix_edge6 {
    uint64_t high, low;
};

struct hb_prefix_set {
    const uint32_t *edge4; /* host byte order */
    const struct hb_prefix_edge6 *edge6;
    uint32_t count4, count6;
    bool below; /* whether addresses below the first edge are allowed, of either family */
};

/* Bytes of memory for the edges of these prefixes, a multiple of 16. */
size_t hb_prefix_set_bytes(const struct hb_prefix_record *prefixes, uint32_t count);

/* Fills *set, its edges in `memory` (16-byte aligned, hb_prefix_set_bytes; the caller owns it).
 * `prefixes` are sorted by family, then address, then length, without repetition; what none of
 * them matches is allowed if `others` is. */
void hb_prefix_set_build(struct hb_prefix_set *set, void *memory,
                         const struct hb_prefix_record *prefixes, uint32_t count, bool others);

/* Looks up `count` addresses (up to HB_PREFIX_FIND_MAX), each in a set of its own. IPv4 addresses
 * are in host byte order. */
void hb_prefix_set_find4(const struct hb_prefix_set *const set[], const uint32_t address[],
                         uint32_t count, bool allowed[]);
void hb_prefix_set_find6(const struct hb_prefix_set *const set[],
                         const struct hb_prefix_edge6 address[], uint32_t count, bool allowed[]);

static inline struct hb_prefix_edge6 hb_prefix_address6(const uint8_t address[HB_ADDRESS_SIZE])
{
    return (struct hb_prefix_edge6){__builtin_bswap64(hb_load64(address)),
                                    __builtin_bswap64(hb_load64(address + 8))};
}

/* How prefix records are sorted within their list: family, address, length. */
int hb_prefix_compare(const struct hb_prefix_record *a, const struct hb_prefix_record *b);

#endif
