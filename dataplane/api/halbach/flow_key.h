/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flow_key.h: the 5-tuple and its keyed hash, the same on both sides of the contract.
 *
 * One 64-bit hash a packet serves everything: its upper half, scaled to the table size, picks the
 * slot of the lookup table; its lower bits pick the bucket of the flow cache. The key comes from
 * the `seed:` of the configuration. It is secret and the same on all balancers of a fleet, so that
 * two balancers send a flow to the same slot and nobody outside can aim collisions at a bucket or
 * pick a backend.
 *
 * Construction: two 64-bit words at a time are added to key words, multiplied to 128 bits and the
 * products summed (the NH family: J. Black et al., "UMAC: Fast and Secure Message Authentication",
 * CRYPTO 1999, section 4). For two different inputs of one length and a random key the sums collide
 * with probability 2^-64. The sum is then folded and mixed by two more keyed multiplications, so
 * that every input bit reaches every output bit. Not a cryptographic hash: a peer who can see hash
 * values could learn the key. Halbach never puts one on the wire.
 *
 * Every machine and compiler gives the same values (tests/unit/test_flow_key.c holds some).
 */
#ifndef HB_API_FLOW_KEY_H
#define HB_API_FLOW_KEY_H

#include <string.h>

#include "halbach/types.h"

/* 40 bytes, no padding: may be compared and hashed as bytes. */
struct hb_flow_key {
    uint8_t source[HB_ADDRESS_SIZE];
    uint8_t destination[HB_ADDRESS_SIZE]; /* the VIP */
    hb_be16 source_port;
    hb_be16 destination_port;
    uint8_t protocol; /* enum hb_protocol */
    uint8_t family;   /* enum hb_family */
    uint16_t zero;
};
_Static_assert(sizeof(struct hb_flow_key) == 40, "a flow key has no padding");

#define HB_HASH_KEY_WORDS 8

/* The secret key of the flow hash; control derives it from the configured seed. */
struct hb_hash_key {
    uint64_t word[HB_HASH_KEY_WORDS];
};

static inline uint64_t hb_mix(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hb_load64(const void *from)
{
    uint64_t value;

    memcpy(&value, from, sizeof(value));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

/* The keyed hash of a 5-tuple. Pure; any thread. The padding field of the key must be zero. */
static inline uint64_t hb_flow_hash(const struct hb_flow_key *flow, const struct hb_hash_key *key)
{
    const uint64_t *k = key->word;
    uint64_t ports = hb_load64(&flow->source_port);
    __uint128_t sum;

    if (flow->family == HB_FAMILY_IPV4) {
        uint64_t source = hb_load64(flow->source) & 0xffffffff;
        uint64_t addresses = source << 32 | (hb_load64(flow->destination) & 0xffffffff);

        sum = (__uint128_t)(addresses + k[0]) * (ports + k[1]);
    } else {
        sum = (__uint128_t)(hb_load64(flow->source) + k[0]) * (hb_load64(flow->source + 8) + k[1]);
        sum += (__uint128_t)(hb_load64(flow->destination) + k[2]) *
               (hb_load64(flow->destination + 8) + k[3]);
        sum += (__uint128_t)(ports + k[4]) * k[5];
    }
    return hb_mix(hb_mix((uint64_t)sum ^ k[6], (uint64_t)(sum >> 64) ^ k[7]) ^ k[6],
                  0x9e3779b97f4a7c15);
}

/* The slot of a table of `slots` entries that a hash falls on: the upper 32 bits scaled, no
 * division. */
static inline uint32_t hb_slot_of(uint64_t hash, uint32_t slots)
{
    return (uint32_t)(((hash >> 32) * slots) >> 32);
}

#endif
