/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table_builder.h: the one interface of all algorithms that fill a lookup table.
 *
 * The dataplane looks a packet's hash up in a table of M slots; what fills the table is a choice.
 * Builders are pure functions of (the set of backends with weights, M, seed). They sort by identity
 * first, so the order of the input never matters, and use no floating point and no
 * machine-dependent order where a slot depends on it, so that every machine and compiler builds the
 * same table.
 *
 * Source for Maglev: D. E. Eisenbud et al., "Maglev: A Fast and Reliable Software Network Load
 * Balancer", NSDI 2016, section 3.4.
 */
#ifndef HB_CONTROL_HASHING_TABLE_BUILDER_H
#define HB_CONTROL_HASHING_TABLE_BUILDER_H

#include <stdbool.h>
#include <stdint.h>

#include "halbach/types.h"

struct hb_table_member {
    const char *identity; /* canonical address text: the same backend on all balancers */
    uint32_t weight;      /* 0 to 65,535; 0 gets no slot */
    uint16_t id;          /* what is written into the slots; never an input to the choice */
};

enum hb_table_error {
    HB_TABLE_OK = 0,
    HB_TABLE_NO_MEMBERS = 1,     /* no member has a weight above 0 */
    HB_TABLE_SIZE_NOT_PRIME = 2, /* or out of range */
    HB_TABLE_SIZE_TOO_SMALL = 3, /* fewer slots than members with a weight */
    HB_TABLE_DUPLICATE = 4,      /* two members share an identity */
    HB_TABLE_NO_MEMORY = 5,
};

struct hb_table_builder {
    const char *name; /* "maglev" */
    /* Fills `slots` entries of `owner` with ids. Thread-safe; O(slots * log(slots)) on average. */
    enum hb_table_error (*build)(const struct hb_table_member *members, uint32_t count,
                                 uint32_t slots, uint64_t seed, uint16_t *owner);
};

extern const struct hb_table_builder hb_maglev;

/* Content address of a table: XXH3, 128 bits canonical, of the slots' bytes. */
void hb_table_digest(const uint16_t *owner, uint32_t slots, uint8_t digest[HB_DIGEST_SIZE]);

/* Digest of who owns which slot by identity, independent of ids: equal on all balancers that have
 * the same backends, weights, size and seed. Members that own no slot do not matter, so those that
 * are down or draining may be listed or not. Zeros when memory is short. */
void hb_table_owners_digest(const uint16_t *owner, uint32_t slots,
                            const struct hb_table_member *members, uint32_t count,
                            uint8_t digest[HB_DIGEST_SIZE]);

/* What a change of table moves, by id. `from` and `to` have `slots` entries. */
struct hb_table_change {
    uint32_t moved;      /* slots whose owner differs */
    uint32_t collateral; /* of these, slots whose old owner is still in `to` and whose new owner was
                          * already in `from`: Maglev's small remainder */
};
struct hb_table_change hb_table_compare(const uint16_t *from, const uint16_t *to, uint32_t slots);

bool hb_is_prime(uint32_t n);
/* The nearest prime at most / at least n, or 0 when there is none in 32 bits. */
uint32_t hb_prime_below(uint32_t n);
uint32_t hb_prime_above(uint32_t n);

const char *hb_table_error_text(enum hb_table_error error);

#endif
