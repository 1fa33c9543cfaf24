/* SPDX-License-Identifier: BSD-3-Clause */
/* table_fixture.h: pools and tables for the tests of table builders. */
#ifndef HB_TESTS_TABLE_FIXTURE_H
#define HB_TESTS_TABLE_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>

#include "hashing/table_builder.h"

struct pool {
    struct hb_table_member *members; /* 10.0.0.1, 10.0.0.2, ...; weight 1; ids from 1 */
    char (*names)[24];
    uint32_t count;
};

static inline struct pool make_pool(uint32_t count)
{
    struct pool pool = {.count = count};

    pool.members = calloc(count, sizeof(*pool.members));
    pool.names = calloc(count, sizeof(*pool.names));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t host = i + 1;

        snprintf(pool.names[i], sizeof(pool.names[i]), "10.%u.%u.%u", host >> 16 & 255,
                 host >> 8 & 255, host & 255);
        pool.members[i] = (struct hb_table_member){
            .identity = pool.names[i], .weight = 1, .id = (uint16_t)(i + 1), .bucket = i};
    }
    return pool;
}

static inline void free_pool(struct pool *pool)
{
    free(pool->members);
    free(pool->names);
}

/* Builds without options. */
static inline enum hb_table_error build_table(const struct hb_table_builder *builder,
                                              const struct hb_table_member *members, uint32_t count,
                                              uint32_t slots, uint64_t seed, uint16_t *owner)
{
    const struct hb_table_request request = {
        .members = members, .count = count, .slots = slots, .seed = seed};

    return builder->build(&request, owner);
}

static inline enum hb_table_error build_maglev(const struct hb_table_member *members,
                                               uint32_t count, uint32_t slots, uint64_t seed,
                                               uint16_t *owner)
{
    return build_table(&hb_maglev, members, count, slots, seed, owner);
}

static inline uint16_t *make_table(uint32_t slots)
{
    return calloc(slots, sizeof(uint16_t));
}

/* xorshift64*: the same on every machine. `state` is not 0. */
static inline uint32_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * UINT64_C(0x2545f4914f6cdd1d)) >> 32);
}

static inline void swap_members(struct pool *pool, uint32_t a, uint32_t b)
{
    struct hb_table_member member = pool->members[a];

    pool->members[a] = pool->members[b];
    pool->members[b] = member;
}

static inline void shuffle_pool(struct pool *pool, uint64_t *random)
{
    for (uint32_t i = pool->count; i > 1; i--)
        swap_members(pool, i - 1, next_random(random) % i);
}

static inline void reverse_pool(struct pool *pool)
{
    for (uint32_t i = 0; i < pool->count / 2; i++)
        swap_members(pool, i, pool->count - 1 - i);
}

static inline const char *print_digest(const uint8_t digest[HB_DIGEST_SIZE], char *text)
{
    for (int i = 0; i < HB_DIGEST_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return text;
}

#endif
