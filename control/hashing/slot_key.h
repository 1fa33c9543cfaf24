/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slot_key.h: the key that a slot stands for in tables of jump and modulo, and what all builders
 * check first. Pure; any thread.
 */
#ifndef HB_CONTROL_HASHING_SLOT_KEY_H
#define HB_CONTROL_HASHING_SLOT_KEY_H

#include <endian.h>
#include <stdint.h>

#include <xxhash.h>

#include "hashing/table_builder.h"

/* XXH3 of the slot's number as 64 bits little-endian, with the pool's seed: depends on nothing
 * else, so whatever joins or leaves, a slot stays the same key. */
static inline uint64_t hb_slot_key(uint32_t slot, uint64_t seed)
{
    uint64_t number = htole64(slot);

    return XXH3_64bits_withSeed(&number, sizeof(number), seed);
}

/* A one-to-one mixing of 64 bits: the last step of MurmurHash3 (A. Appleby). */
static inline uint64_t hb_mix64(uint64_t value)
{
    value ^= value >> 33;
    value *= UINT64_C(0xff51afd7ed558ccd);
    value ^= value >> 33;
    value *= UINT64_C(0xc4ceb9fe1a85ec53);
    return value ^ value >> 33;
}

/* Checks that somebody has a weight and that nobody is there twice. Writes the canonical order of
 * the members into `order` (room for request->count). */
enum hb_table_error hb_check_members(const struct hb_table_request *request, uint32_t *order);

/* The same, and that the size is a prime in range with a slot for each member that has a weight. */
enum hb_table_error hb_check_request(const struct hb_table_request *request, uint32_t *order);

#endif
