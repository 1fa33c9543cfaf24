/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * modulo.h: hash modulo the number of backends, for comparison.
 *
 * Every weight is divided by the greatest divisor that all have in common, and member i (in the
 * order of identities) has as many of the rests as that leaves. So with equal weights it is hash
 * mod N. Growing from N to N + 1 moves N / (N + 1) of the keys (80 % for 4 to 5), nearly all of
 * them between old backends. A live pool that uses it gets a warning.
 *
 * The live table: slot s stands for the hash XXH3(s as 64 bits little-endian, seed).
 *
 * Cost: log2(N) comparisons a slot; 65,537 slots with 1,000 backends 3.6 ms. Pure; any thread.
 */
#ifndef HB_CONTROL_HASHING_MODULO_H
#define HB_CONTROL_HASHING_MODULO_H

#include <stdint.h>

#include "hashing/table_builder.h"

struct hb_modulo_map {
    uint32_t divisor; /* sum of the reduced weights */
    uint32_t count;   /* members with a weight */
    uint32_t *last;   /* of each: the first rest that is no longer its own; ascending */
    uint32_t *member; /* of each: its index among all members */
};

/* `order` is the canonical order of the members. Returns HB_TABLE_OK, HB_TABLE_NO_MEMBERS or
 * HB_TABLE_NO_MEMORY. */
enum hb_table_error hb_modulo_make(const struct hb_table_member *members, uint32_t count,
                                   const uint32_t *order, struct hb_modulo_map *map);
void hb_modulo_free(struct hb_modulo_map *map);

/* The member of a hash, as an index. */
uint32_t hb_modulo_owner(const struct hb_modulo_map *map, uint64_t hash);

#endif
