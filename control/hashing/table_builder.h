/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table_builder.h: the one interface of all algorithms that fill a lookup table.
 *
 * The dataplane looks a packet's hash up in a table of M slots; what fills the table is a choice.
 * Builders are pure functions of (the set of backends with weights, M, seed, options). They sort by
 * identity first, so the order of the input never matters, and where a slot depends on it they use
 * no floating point that could round differently elsewhere and no machine-dependent order, so that
 * every machine and compiler builds the same table.
 *
 *     maglev      shares exact to one slot; a change moves a few slots of others too (default)
 *     ring        what hash rings do: see ring.h for how slots lie on the ring
 *     rendezvous  weighted highest random weight: see rendezvous.h
 *     jump        numbered buckets, no weights: see jump.h
 *     modulo      for comparison; any change moves nearly everything: see modulo.h
 *
 * With ring (without ketama), rendezvous and jump, every slot stands for one fixed key, and its
 * owner is what the method says for that key. So a backend that joins takes slots and moves none
 * between the others, exactly. The price is chance: shares scatter around the weights' by about
 * sqrt(backends / M) of themselves for rendezvous, jump and modulo, by 1 / sqrt(virtual nodes) for
 * the ring, and with M close to the number of backends some can be left without a slot. Maglev
 * gives every backend that has a weight at least one.
 *
 * Cost on one core (tests/bench/bench_tables.c), milliseconds:
 *
 *                                    maglev   ring   rendezvous   jump   modulo
 *     1,000 backends, M = 65,537          1      8            6      4        4
 *     10,000 backends, M = 655,373       12    112          113     43       48
 *
 * Source for Maglev: D. E. Eisenbud et al., "Maglev: A Fast and Reliable Software Network Load
 * Balancer", NSDI 2016, section 3.4. The others name theirs in their own headers.
 */
#ifndef HB_CONTROL_HASHING_TABLE_BUILDER_H
#define HB_CONTROL_HASHING_TABLE_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "halbach/types.h"

enum hb_algorithm {
    HB_ALGORITHM_MAGLEV = 1,
    HB_ALGORITHM_RING = 2,
    HB_ALGORITHM_RENDEZVOUS = 3,
    HB_ALGORITHM_JUMP = 4,
    HB_ALGORITHM_MODULO = 5,
};

struct hb_table_member {
    const char *identity; /* canonical address text: the same backend on all balancers */
    uint32_t weight;      /* 0 to 65,535; 0 gets no slot */
    uint16_t id;          /* what is written into the slots; never an input to the choice */
    uint32_t bucket; /* jump only: its number, 0 to n - 1. A member of weight 0 keeps its number
                      * and so holds the others' places: list those that are down that way */
};

/* What a pool may choose beside its algorithm. All zero: the presets. */
struct hb_table_options {
    uint32_t virtual_nodes; /* ring: points for each unit of weight; 0: HB_RING_VIRTUAL_NODES */
    bool ketama;            /* ring: the points that libketama makes; virtual_nodes and the seed do
                             * not matter then */
    bool jump_replacement;  /* jump: a bucket without a usable backend hands its slots on */
};

struct hb_table_request {
    const struct hb_table_member *members;
    uint32_t count;
    uint32_t slots; /* M: prime, HB_TABLE_SLOTS_MIN to HB_TABLE_SLOTS_MAX */
    uint64_t seed;
    struct hb_table_options options;
};

enum hb_table_error {
    HB_TABLE_OK = 0,
    HB_TABLE_NO_MEMBERS = 1,     /* no member has a weight above 0 */
    HB_TABLE_SIZE_NOT_PRIME = 2, /* or out of range */
    HB_TABLE_SIZE_TOO_SMALL = 3, /* fewer slots than members with a weight */
    HB_TABLE_DUPLICATE = 4,      /* two members share an identity */
    HB_TABLE_NO_MEMORY = 5,
    HB_TABLE_BUCKETS = 6,         /* jump: the buckets are not 0 to n - 1, each once */
    HB_TABLE_BUCKET_EMPTY = 7,    /* jump without replacement: a bucket's member has weight 0, or is
                                   * missing, and it is not the last one */
    HB_TABLE_WEIGHTS_DIFFER = 8,  /* jump: it has no weights */
    HB_TABLE_TOO_MANY_POINTS = 9, /* ring: weights * virtual nodes above HB_RING_POINTS_MAX */
};

struct hb_table_builder {
    const char *name; /* as in the configuration: "maglev" */
    enum hb_algorithm algorithm;
    /* Fills `request->slots` entries of `owner` with ids. Thread-safe. After an error the entries
     * are undefined. */
    enum hb_table_error (*build)(const struct hb_table_request *request, uint16_t *owner);
};

extern const struct hb_table_builder hb_maglev;
extern const struct hb_table_builder hb_ring;
extern const struct hb_table_builder hb_rendezvous;
extern const struct hb_table_builder hb_jump;
extern const struct hb_table_builder hb_modulo;

/* All of them, in the order of enum hb_algorithm; ends with NULL. */
extern const struct hb_table_builder *const hb_table_builders[];

/* NULL when there is none. */
const struct hb_table_builder *hb_table_builder_of(enum hb_algorithm algorithm);
const struct hb_table_builder *hb_table_builder_by_name(const char *name);

/* Content address of a table: XXH3, 128 bits canonical, of the slots' bytes. */
void hb_table_digest(const uint16_t *owner, uint32_t slots, uint8_t digest[HB_DIGEST_SIZE]);

/* The same of a table that has a past too (struct hb_table_record). */
struct hb_table_columns;
void hb_table_columns_digest(const struct hb_table_columns *column, uint32_t slots,
                             uint8_t digest[HB_DIGEST_SIZE]);

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

/* The smallest size that a table for so many members with a weight can have. */
uint32_t hb_table_smallest_size(uint32_t weighted);

/* What is wrong, without details: a fixed text. */
const char *hb_table_error_text(enum hb_table_error error);

/* The same with the numbers and the remedy: "251 slots are too few for 1000 backends with a weight;
 * the smallest prime that will do is 1009". Writes at most `size` bytes and returns `text`. */
#define HB_TABLE_EXPLANATION 192
const char *hb_table_explain(const struct hb_table_request *request, enum hb_table_error error,
                             char *text, size_t size);

#endif
