/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * digest.c: what tables are compared by.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "halbach/generation.h"
#include "hashing/member_order.h"

#define IDS 65536

/* A rank that no owner has: ranks end at 65,534. */
#define RANK_NONE 0xffff

static void store_digest(XXH128_hash_t hash, uint8_t digest[HB_DIGEST_SIZE])
{
    XXH128_canonical_t canonical;

    XXH128_canonicalFromHash(&canonical, hash);
    _Static_assert(sizeof(canonical) == HB_DIGEST_SIZE, "a digest is an XXH128 hash");
    memcpy(digest, &canonical, HB_DIGEST_SIZE);
}

void hb_table_digest(const uint16_t *owner, uint32_t slots, uint8_t digest[HB_DIGEST_SIZE])
{
    store_digest(XXH3_128bits(owner, slots * sizeof(*owner)), digest);
}

void hb_table_columns_digest(const struct hb_table_columns *column, uint32_t slots,
                             uint8_t digest[HB_DIGEST_SIZE])
{
    static const uint8_t gap[8];
    size_t bytes = slots * sizeof(uint16_t), gap_bytes = hb_table_previous_offset(slots) - bytes;
    XXH3_state_t *state;

    if (column->unsettled == NULL) {
        hb_table_digest(column->owner, slots, digest);
        return;
    }
    memset(digest, 0, HB_DIGEST_SIZE);
    state = XXH3_createState();
    if (state == NULL)
        return; /* the dataplane refuses it, and the next change repeats it */
    XXH3_128bits_reset_withSeed(state, HB_TABLE_TWO_OWNERS);
    XXH3_128bits_update(state, column->owner, bytes);
    XXH3_128bits_update(state, gap, gap_bytes);
    XXH3_128bits_update(state, column->previous, bytes);
    XXH3_128bits_update(state, gap, gap_bytes);
    XXH3_128bits_update(state, column->unsettled, hb_table_unsettled_bytes(slots));
    store_digest(XXH3_128bits_digest(state), digest);
    XXH3_freeState(state);
}

/* Gives ranks 0, 1, 2, ... to the members that own a slot, in canonical order, and returns a hash
 * of their identities in that order. On entry `rank` is 0 for ids that own something. */
static uint64_t rank_owners(const struct hb_table_member *members, uint32_t count,
                            const uint32_t *order, uint16_t rank[IDS])
{
    uint64_t names = 0;
    uint16_t next = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct hb_table_member *member = &members[order[i]];

        if (rank[member->id] == RANK_NONE)
            continue;
        rank[member->id] = next++;
        names = XXH3_64bits_withSeed(member->identity, strlen(member->identity), names);
    }
    return names;
}

/* The digest is XXH3, 128 bits, of the slots' ranks (16 bits each, little-endian), seeded with the
 * hash of the owners' identities. Members without a slot don't enter, so it does not matter whether
 * the caller lists those that are down or drained. */
void hb_table_owners_digest(const uint16_t *owner, uint32_t slots,
                            const struct hb_table_member *members, uint32_t count,
                            uint8_t digest[HB_DIGEST_SIZE])
{
    uint16_t *rank = malloc(IDS * sizeof(*rank));
    uint16_t *ranks = malloc(slots * sizeof(*ranks));
    uint32_t *order = malloc((count + 1) * sizeof(*order));
    uint64_t names;

    memset(digest, 0, HB_DIGEST_SIZE);
    if (rank == NULL || ranks == NULL || order == NULL)
        goto free_all;
    if (hb_member_order(members, count, order) == HB_TABLE_NO_MEMORY)
        goto free_all;
    memset(rank, 0xff, IDS * sizeof(*rank));
    for (uint32_t slot = 0; slot < slots; slot++)
        rank[owner[slot]] = 0;
    names = rank_owners(members, count, order, rank);
    for (uint32_t slot = 0; slot < slots; slot++)
        ranks[slot] = htole16(rank[owner[slot]]);
    store_digest(XXH3_128bits_withSeed(ranks, slots * sizeof(*ranks), names), digest);
free_all:
    free(order);
    free(ranks);
    free(rank);
}
