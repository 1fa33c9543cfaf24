/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * maglev.h: the inside of the Maglev builder, for its tests and tools.
 *
 * hb_maglev builds with permutations that it derives from identities. hb_maglev_fill() is the part
 * after that: permutations in, table out. It is the same code for the paper's worked example, for
 * equal weights and for any mixture of weights. Pure; any thread.
 */
#ifndef HB_CONTROL_HASHING_MAGLEV_H
#define HB_CONTROL_HASHING_MAGLEV_H

#include <stdint.h>

#include "hashing/table_builder.h"

struct hb_maglev_member {
    uint32_t offset; /* the first slot of its permutation, below the table's size */
    uint32_t skip;   /* distance to the next one, 1 to size - 1 */
    uint32_t weight; /* 1 to 65,535 */
    uint16_t id;     /* what is written into the slots */
};

/* The permutation of an identity: offset = h1 mod M, skip = h2 mod (M - 1) + 1. */
void hb_maglev_permutation(const char *identity, uint32_t slots, uint64_t seed,
                           struct hb_maglev_member *member);

/* Fills `slots` entries of `owner`. Members of equal weight take their turns in the order given.
 * `slots` should be prime: with any other number a permutation can miss slots, and what would be an
 * endless search ends in HB_TABLE_SIZE_NOT_PRIME. */
enum hb_table_error hb_maglev_fill(const struct hb_maglev_member *members, uint32_t count,
                                   uint32_t slots, uint16_t *owner);

#endif
