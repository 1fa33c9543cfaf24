/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jump.c: jump consistent hashing, with a rule for buckets that have nobody.
 */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "hashing/jump.h"
#include "hashing/member_order.h"
#include "hashing/slot_key.h"

#define GAMMA UINT64_C(0x9e3779b97f4a7c15)

/* Doubles are computed as doubles, not in something wider: see the header. */
_Static_assert(FLT_EVAL_METHOD == 0, "a double is rounded to a double at each step");

/* A key jumps from bucket to bucket, each time to the next number of buckets at which it would have
 * moved, until that is beyond the number there is. */
uint32_t hb_jump_bucket(uint64_t key, uint32_t buckets)
{
    uint64_t bucket = 0, next = 0;

    while (next < buckets) {
        bucket = next;
        key = key * UINT64_C(2862933555777941757) + 1;
        next = (uint64_t)((double)(bucket + 1) *
                          ((double)(UINT64_C(1) << 31) / (double)((key >> 33) + 1)));
    }
    return (uint32_t)bucket;
}

/* Counts the buckets, 0 when a number is too large. */
static uint32_t count_buckets(const struct hb_table_request *request)
{
    uint32_t buckets = 0;

    for (uint32_t i = 0; i < request->count; i++) {
        if (request->members[i].bucket >= HB_JUMP_BUCKETS_MAX)
            return 0;
        if (request->members[i].bucket >= buckets)
            buckets = request->members[i].bucket + 1;
    }
    return buckets;
}

/* Every member into its bucket, also those of weight 0. */
static enum hb_table_error place_members(const struct hb_table_request *request,
                                         struct hb_jump_map *map)
{
    uint32_t weight = 0;

    memset(map->by_bucket, 0xff, map->buckets * sizeof(*map->by_bucket));
    for (uint32_t i = 0; i < request->count; i++) {
        const struct hb_table_member *member = &request->members[i];

        if (map->by_bucket[member->bucket] != UINT32_MAX)
            return HB_TABLE_BUCKETS;
        map->by_bucket[member->bucket] = i;
        if (weight != 0 && member->weight != 0 && member->weight != weight)
            return HB_TABLE_WEIGHTS_DIFFER;
        weight = member->weight != 0 ? member->weight : weight;
    }
    return weight != 0 ? HB_TABLE_OK : HB_TABLE_NO_MEMBERS;
}

static void list_usable(const struct hb_table_request *request, struct hb_jump_map *map)
{
    for (uint32_t bucket = 0; bucket < map->buckets; bucket++) {
        uint32_t member = map->by_bucket[bucket];

        if (member != UINT32_MAX && request->members[member].weight > 0)
            map->usable[map->usable_count++] = bucket;
        else
            map->by_bucket[bucket] = UINT32_MAX;
    }
}

enum hb_table_error hb_jump_make(const struct hb_table_request *request, struct hb_jump_map *map)
{
    enum hb_table_error error = HB_TABLE_NO_MEMORY;

    *map = (struct hb_jump_map){.buckets = count_buckets(request)};
    if (map->buckets == 0)
        return request->count == 0 ? HB_TABLE_NO_MEMBERS : HB_TABLE_BUCKETS;
    map->by_bucket = calloc(map->buckets, sizeof(*map->by_bucket));
    map->usable = calloc(map->buckets, sizeof(*map->usable));
    if (map->by_bucket != NULL && map->usable != NULL)
        error = place_members(request, map);
    if (error == HB_TABLE_OK) {
        list_usable(request, map);
        if (!request->options.jump_replacement) {
            map->buckets = map->usable[map->usable_count - 1] + 1; /* the last ones may go */
            if (map->usable_count < map->buckets)
                error = HB_TABLE_BUCKET_EMPTY;
        }
    }
    if (error != HB_TABLE_OK)
        hb_jump_free(map);
    return error;
}

void hb_jump_free(struct hb_jump_map *map)
{
    free(map->usable);
    free(map->by_bucket);
    *map = (struct hb_jump_map){0};
}

/* The bucket that a key tries at first, second, ... */
static uint32_t bucket_of_try(uint64_t key, uint32_t try, uint32_t buckets)
{
    return hb_jump_bucket(try == 0 ? key : hb_mix64(key + try * GAMMA), buckets);
}

/* A well-mixed number of key and bucket; one-to-one in the bucket, so never the same for two. */
static uint64_t mix(uint64_t key, uint32_t bucket)
{
    return hb_mix64(key ^ hb_mix64(bucket + GAMMA));
}

static uint32_t find_highest(const struct hb_jump_map *map, uint64_t key)
{
    uint32_t best = map->usable[0];
    uint64_t highest = mix(key, best);

    for (uint32_t i = 1; i < map->usable_count; i++) {
        uint64_t hash = mix(key, map->usable[i]);

        if (hash > highest) {
            highest = hash;
            best = map->usable[i];
        }
    }
    return map->by_bucket[best];
}

uint32_t hb_jump_owner(const struct hb_jump_map *map, uint64_t key)
{
    for (uint32_t try = 0; try < HB_JUMP_TRIES; try++) {
        uint32_t member = map->by_bucket[bucket_of_try(key, try, map->buckets)];

        if (member != UINT32_MAX)
            return member;
    }
    return find_highest(map, key);
}

struct candidate {
    uint64_t hash;
    uint32_t member;
};

static int compare_candidates(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;

    return a->hash > b->hash ? -1 : a->hash < b->hash;
}

/* What the tries find, each once, then the others by hash. */
uint32_t hb_jump_rank(const struct hb_jump_map *map, uint64_t key, uint32_t *members)
{
    struct candidate *others = calloc(map->usable_count, sizeof(*others));
    bool *seen = calloc(map->buckets, sizeof(*seen));
    uint32_t found = 0, others_count = 0;

    if (others == NULL || seen == NULL)
        goto free_both;
    for (uint32_t try = 0; try < HB_JUMP_TRIES; try++) {
        uint32_t bucket = bucket_of_try(key, try, map->buckets);

        if (map->by_bucket[bucket] != UINT32_MAX && !seen[bucket])
            members[found++] = map->by_bucket[bucket];
        seen[bucket] = true;
    }
    for (uint32_t i = 0; i < map->usable_count; i++) {
        uint32_t bucket = map->usable[i];

        if (!seen[bucket])
            others[others_count++] = (struct candidate){mix(key, bucket), map->by_bucket[bucket]};
    }
    qsort(others, others_count, sizeof(*others), compare_candidates);
    for (uint32_t i = 0; i < others_count; i++)
        members[found++] = others[i].member;
free_both:
    free(seen);
    free(others);
    return found;
}

static enum hb_table_error build(const struct hb_table_request *request, uint16_t *owner)
{
    uint32_t *order = calloc(request->count + 1, sizeof(*order));
    enum hb_table_error error = HB_TABLE_NO_MEMORY;
    struct hb_jump_map map = {0};

    if (order != NULL)
        error = hb_check_request(request, order);
    if (error == HB_TABLE_OK)
        error = hb_jump_make(request, &map);
    for (uint32_t slot = 0; error == HB_TABLE_OK && slot < request->slots; slot++) {
        uint64_t key = hb_slot_key(slot, request->seed);

        owner[slot] = request->members[hb_jump_owner(&map, key)].id;
    }
    hb_jump_free(&map);
    free(order);
    return error;
}

const struct hb_table_builder hb_jump = {
    .name = "jump", .algorithm = HB_ALGORITHM_JUMP, .build = build};
