/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash_method.h: all methods behind one interface, to explore and compare them offline.
 *
 * A method prepares what it needs for a set of members once and then answers for keys. Members are
 * named by their index in the request; `identity` is the name that is hashed. The hash is h32
 * (h32.h), so that results are the published ones and anybody can repeat them:
 *
 *     modulo      hb_modulo_owner of h32(key)
 *     ring        tokens at h32("name#i"), key at h32(key); with ketama both by MD5
 *     rendezvous  u = h32("key|name") / 2^32
 *     skeleton    rendezvous in two levels, as the live table has it: the slot of h32(key)
 *     jump        the bucket of h32(key), taken as 64 bits
 *     maglev      the slot of h32(key) in the table that the builder makes
 *
 * The slot of a hash is hash * M / 2^32, rounded down, as the dataplane scales its own.
 *
 * Pure; a prepared state may be asked by any number of threads at once.
 */
#ifndef HB_CONTROL_HASHING_HASH_METHOD_H
#define HB_CONTROL_HASHING_HASH_METHOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hashing/table_builder.h"

struct hb_hash_method {
    const char *name;
    enum hb_algorithm algorithm;
    const char *summary; /* a few words for a list */
    bool uses_table;     /* request->slots and seed matter */
    bool uses_weights;
    bool moves_between_old; /* a change can move keys between members that stay */

    /* Makes the state that release() frees. The request's members and their identities must stay
     * until then. */
    enum hb_table_error (*prepare)(const struct hb_table_request *request, void **state);
    /* Index of the member that has the key. */
    uint32_t (*owner)(const void *state, const char *key, size_t size);
    /* All members with a weight, each once, its owner first: who takes over when those before it
     * are gone or full. Room for request->count. Returns how many; 0 when memory is short. */
    uint32_t (*prefer)(const void *state, const char *key, size_t size, uint32_t *members);
    /* Bytes that the state takes, without the members. */
    size_t (*memory)(const void *state);
    void (*release)(void *state);
};

/* All methods; ends with NULL. */
extern const struct hb_hash_method *const hb_hash_methods[];
/* NULL when there is none. */
const struct hb_hash_method *hb_hash_method_by_name(const char *name);

/* ---- figures ---- */

struct hb_share_figures {
    uint32_t min, max; /* keys of the member with the fewest and the most */
    double mean, sd;   /* sd: of all members (population) */
};
struct hb_share_figures hb_share_figures(const uint32_t *counts, uint32_t members);

/* What a change did to a list of keys. Owners are indexes into the members before and after. */
struct hb_key_moves {
    uint32_t moved;
    uint32_t to_new;      /* of these: to a member that was not there before, or had weight 0 */
    uint32_t from_gone;   /* from a member that is no longer there, or has weight 0 */
    uint32_t between_old; /* from one that stays to one that was there */
};

/* Returns HB_TABLE_OK, HB_TABLE_DUPLICATE or HB_TABLE_NO_MEMORY. Only members and count of the
 * requests are looked at. */
enum hb_table_error hb_key_moves(const struct hb_table_request *before,
                                 const uint32_t *owner_before, const struct hb_table_request *after,
                                 const uint32_t *owner_after, uint32_t keys,
                                 struct hb_key_moves *moves);

/* The least share of keys, 0 to 1, that must move when shares follow the weights before and after:
 * the sum of what each member loses. 1 / (N + 1) when N equal ones become N + 1. Returns an error
 * as hb_key_moves() does. */
enum hb_table_error hb_minimum_moved(const struct hb_table_request *before,
                                     const struct hb_table_request *after, double *share);

#endif
