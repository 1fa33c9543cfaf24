/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rendezvous.c: scores of members for a key. The live table is in rendezvous_table.c.
 */
#include <math.h>
#include <stdlib.h>

#include "hashing/h32.h"
#include "hashing/rendezvous.h"

/* With u = x * 2^n, x from 1 to 2, the whole part of log2 is n and squaring x brings up the
 * fraction bit by bit: when the square is 2 or more the bit is 1 and the square is halved. */
uint64_t hb_minus_log2(uint64_t u)
{
    unsigned zeros = (unsigned)__builtin_clzll(u | 1);
    uint64_t x = (u | (u == 0)) << zeros; /* 1 is 2^63 */
    uint64_t log = 63 - zeros;

    for (unsigned bit = 0; bit < HB_LOG2_BITS; bit++) {
        __uint128_t square = ((__uint128_t)x * x) >> 63;
        unsigned two = (unsigned)(square >> 64);

        x = (uint64_t)(square >> two);
        log = log << 1 | two;
    }
    return (UINT64_C(64) << HB_LOG2_BITS) - log;
}

/* Weights have 16 bits and losses 47, so the products fit. */
bool hb_rendezvous_beats(const struct hb_rendezvous_claim *a, const struct hb_rendezvous_claim *b)
{
    uint64_t left = a->weight * b->loss, right = b->weight * a->loss;

    if (left != right)
        return left > right;
    if (a->hash != b->hash)
        return a->hash > b->hash;
    return a->member < b->member;
}

static struct hb_rendezvous_claim make_claim(const struct hb_table_member *member, uint32_t number,
                                             const char *key, size_t size)
{
    struct hb_rendezvous_claim claim = {
        .weight = member->weight,
        .member = number,
        .hash = (uint64_t)hb_h32_pair(key, size, member->identity) << 32,
    };

    claim.loss = hb_minus_log2(claim.hash);
    return claim;
}

uint32_t hb_rendezvous_owner(const struct hb_table_member *members, uint32_t count,
                             const uint32_t *order, const char *key, size_t size)
{
    struct hb_rendezvous_claim best = {.weight = 0};
    uint32_t owner = count;

    for (uint32_t i = 0; i < count; i++) {
        struct hb_rendezvous_claim claim;

        if (members[order[i]].weight == 0)
            continue;
        claim = make_claim(&members[order[i]], i, key, size);
        if (owner == count || hb_rendezvous_beats(&claim, &best)) {
            best = claim;
            owner = order[i];
        }
    }
    return owner;
}

static int compare_claims(const void *left, const void *right)
{
    return hb_rendezvous_beats(left, right) ? -1 : hb_rendezvous_beats(right, left);
}

uint32_t hb_rendezvous_rank(const struct hb_table_member *members, uint32_t count,
                            const uint32_t *order, const char *key, size_t size, uint32_t *ranked)
{
    struct hb_rendezvous_claim *claims = calloc(count + 1, sizeof(*claims));
    uint32_t claimed = 0;

    if (claims == NULL)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        if (members[order[i]].weight > 0)
            claims[claimed++] = make_claim(&members[order[i]], i, key, size);
    }
    qsort(claims, claimed, sizeof(*claims), compare_claims);
    for (uint32_t i = 0; i < claimed; i++)
        ranked[i] = order[claims[i].member];
    free(claims);
    return claimed;
}

double hb_rendezvous_score(uint32_t hash, uint32_t weight)
{
    return -(double)weight / log(hash / 4294967296.0);
}
