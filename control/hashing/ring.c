/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.c: making rings, and tables from rings. What a ring is asked is in ring_query.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "hashing/h32.h"
#include "hashing/ketama.h"
#include "hashing/member_order.h"
#include "hashing/ring.h"
#include "hashing/slot_key.h"

#define NUMBER_TEXT 12 /* "#4294967295" and its end */

/* 2^32 * 0.618...: the golden section. */
#define GOLDEN UINT64_C(2654435769)

uint32_t hb_ring_hash_h32(const void *bytes, size_t size, uint64_t seed)
{
    (void)seed;
    return hb_h32(bytes, size);
}

uint32_t hb_ring_hash_xxh3(const void *bytes, size_t size, uint64_t seed)
{
    return (uint32_t)(XXH3_64bits_withSeed(bytes, size, seed) >> 32);
}

void hb_ring_free(struct hb_ring_map *ring)
{
    if (ring == NULL)
        return;
    for (uint32_t i = 0; ring->names != NULL && i < ring->members_count; i++)
        free(ring->names[i]);
    free(ring->names);
    free(ring->points);
    free(ring);
}

static struct hb_ring_map *make_empty(uint64_t space, uint32_t members, uint32_t points)
{
    struct hb_ring_map *ring = calloc(1, sizeof(*ring));

    if (ring == NULL)
        return NULL;
    ring->space = space;
    ring->names = calloc(members + 1, sizeof(*ring->names));
    ring->points = calloc((size_t)points + 1, sizeof(*ring->points));
    if (ring->names != NULL && ring->points != NULL)
        return ring;
    hb_ring_free(ring);
    return NULL;
}

#define DIGIT_BITS 11
#define DIGITS     (1 << DIGIT_BITS)

static void sort_by_digit(const struct hb_ring_point *from, struct hb_ring_point *to,
                          uint32_t count, unsigned shift)
{
    uint32_t start[DIGITS] = {0}, next = 0;

    for (uint32_t i = 0; i < count; i++)
        start[from[i].position >> shift & (DIGITS - 1)]++;
    for (uint32_t digit = 0; digit < DIGITS; digit++) {
        uint32_t size = start[digit];

        start[digit] = next;
        next += size;
    }
    for (uint32_t i = 0; i < count; i++)
        to[start[from[i].position >> shift & (DIGITS - 1)]++] = from[i];
}

/* By position; points of one position stay in the order given. A radix sort: rings have hundreds of
 * thousands of points, and qsort() would take most of the time. */
static bool sort_points(struct hb_ring_map *ring)
{
    struct hb_ring_point *sorted = calloc((size_t)ring->points_count + 1, sizeof(*sorted));

    if (sorted == NULL)
        return false;
    for (unsigned shift = 0; shift < 32; shift += DIGIT_BITS) {
        struct hb_ring_point *before = ring->points;

        sort_by_digit(before, sorted, ring->points_count, shift);
        ring->points = sorted;
        sorted = before;
    }
    free(sorted);
    return true;
}

/* Writes "#i" and returns its length. */
static size_t print_number(char *text, uint32_t i)
{
    char digits[NUMBER_TEXT];
    size_t count = 0, length = 1;

    do {
        digits[count++] = (char)('0' + i % 10);
        i /= 10;
    } while (i > 0);
    text[0] = '#';
    while (count > 0)
        text[length++] = digits[--count];
    return length;
}

/* The tokens "name#0", "name#1", ... of one member. */
static bool add_hashes(struct hb_ring_map *ring, const char *name, uint32_t member, uint32_t tokens,
                       uint64_t seed, hb_ring_hash hash)
{
    size_t length = strlen(name);
    char *text = malloc(length + NUMBER_TEXT);

    if (text == NULL)
        return false;
    memcpy(text, name, length);
    for (uint32_t i = 0; i < tokens; i++) {
        size_t size = length + print_number(text + length, i);

        ring->points[ring->points_count++] =
            (struct hb_ring_point){.position = hash(text, size, seed), .member = member};
    }
    free(text);
    return true;
}

/* Tokens of all members together, or 0 when that is more than a ring may have. */
static uint64_t count_tokens(const struct hb_table_request *request, uint64_t nodes)
{
    uint64_t weights = 0, members = 0;

    for (uint32_t i = 0; i < request->count; i++) {
        weights += request->members[i].weight;
        members += request->members[i].weight > 0;
    }
    if (request->options.ketama)
        return members * HB_KETAMA_ROOM;
    return weights <= HB_RING_POINTS_MAX && weights * nodes <= HB_RING_POINTS_MAX ? weights * nodes
                                                                                  : 0;
}

static bool add_members(struct hb_ring_map *ring, const struct hb_table_request *request,
                        const uint32_t *order, uint32_t nodes, hb_ring_hash hash)
{
    for (uint32_t i = 0; i < request->count; i++) {
        const struct hb_table_member *member = &request->members[i];

        ring->names[i] = strdup(member->identity);
        ring->members_count = i + 1;
        if (ring->names[i] == NULL)
            return false;
    }
    if (request->options.ketama)
        return hb_ketama_add(ring, request, order);
    for (uint32_t i = 0; i < request->count; i++) {
        const struct hb_table_member *member = &request->members[order[i]];

        if (!add_hashes(ring, member->identity, order[i], member->weight * nodes, request->seed,
                        hash))
            return false;
    }
    return true;
}

enum hb_table_error hb_ring_from_members(const struct hb_table_request *request, hb_ring_hash hash,
                                         struct hb_ring_map **ring)
{
    uint32_t nodes = request->options.virtual_nodes;
    uint32_t *order = calloc(request->count + 1, sizeof(*order));
    enum hb_table_error error = HB_TABLE_NO_MEMORY;
    struct hb_ring_map *made = NULL;
    uint64_t tokens;

    nodes = nodes == 0 ? HB_RING_VIRTUAL_NODES : nodes;
    tokens = count_tokens(request, nodes);
    if (order != NULL)
        error = hb_check_members(request, order);
    if (error == HB_TABLE_OK && tokens == 0)
        error = HB_TABLE_TOO_MANY_POINTS;
    if (error == HB_TABLE_OK) {
        error = HB_TABLE_NO_MEMORY;
        made = make_empty(HB_RING_SPACE, request->count, (uint32_t)tokens);
        if (made != NULL && add_members(made, request, order, nodes, hash) && sort_points(made))
            error = HB_TABLE_OK;
    }
    if (error != HB_TABLE_OK) {
        hb_ring_free(made);
        made = NULL;
    }
    free(order);
    *ring = made;
    return error;
}

/* ---- tokens that somebody chose ---- */

/* Copies the distinct names and points each token at its own. Comparing with all names is for a
 * person's few tokens. */
static bool add_tokens(struct hb_ring_map *ring, const struct hb_ring_token *tokens, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        int64_t member = hb_ring_member(ring, tokens[i].name);

        if (member < 0) {
            member = ring->members_count;
            ring->names[member] = strdup(tokens[i].name);
            if (ring->names[member] == NULL)
                return false;
            ring->members_count++;
        }
        ring->points[ring->points_count++] = (struct hb_ring_point){
            .position = (uint32_t)tokens[i].position, .member = (uint32_t)member};
    }
    return true;
}

static int compare_tokens(const void *left, const void *right)
{
    const struct hb_ring_token *a = left, *b = right;

    if (a->position != b->position)
        return a->position < b->position ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* The tokens in the order of the ring, or NULL: *error says why. */
static struct hb_ring_token *sort_tokens(const struct hb_ring_token *tokens, uint32_t count,
                                         int *error)
{
    struct hb_ring_token *sorted = calloc(count, sizeof(*sorted));

    *error = -ENOMEM;
    if (sorted == NULL)
        return NULL;
    memcpy(sorted, tokens, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare_tokens);
    for (uint32_t i = 1; i < count; i++) {
        if (compare_tokens(&sorted[i - 1], &sorted[i]) == 0) {
            free(sorted);
            *error = -EEXIST;
            return NULL;
        }
    }
    return sorted;
}

/* Members in the order in which their names were given. */
static void number_members(struct hb_ring_map *ring, const struct hb_ring_token *tokens,
                           uint32_t count)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < count; i++) {
        int64_t member = hb_ring_member(ring, tokens[i].name);
        char *name = ring->names[member];

        if (member < next)
            continue;
        for (uint32_t p = 0; p < ring->points_count; p++) {
            if (ring->points[p].member == member)
                ring->points[p].member = next;
            else if (ring->points[p].member == next)
                ring->points[p].member = (uint32_t)member;
        }
        ring->names[member] = ring->names[next];
        ring->names[next++] = name;
    }
}

int hb_ring_from_tokens(const struct hb_ring_token *tokens, uint32_t count, uint64_t space,
                        struct hb_ring_map **ring)
{
    struct hb_ring_token *sorted;
    struct hb_ring_map *made;
    int error = -EINVAL;

    *ring = NULL;
    if (count == 0 || space == 0 || space > HB_RING_SPACE)
        return -EINVAL;
    for (uint32_t i = 0; i < count; i++) {
        if (tokens[i].position >= space)
            return -EINVAL;
    }
    sorted = sort_tokens(tokens, count, &error);
    if (sorted == NULL)
        return error;
    made = make_empty(space, count, count);
    if (made != NULL && add_tokens(made, sorted, count)) {
        number_members(made, tokens, count);
        *ring = made;
    } else {
        hb_ring_free(made);
    }
    free(sorted);
    return *ring != NULL ? 0 : -ENOMEM;
}

/* ---- the live table ---- */

static uint32_t golden_step(uint32_t slots)
{
    return (uint32_t)(slots * GOLDEN >> 32);
}

/* Position number `j` of as many as there are slots. */
static uint32_t even_position(uint32_t j, uint32_t slots)
{
    return (uint32_t)(((UINT64_C(2) * j + 1) << 32) / (UINT64_C(2) * slots));
}

uint32_t hb_ring_slot_position(uint32_t slot, uint32_t slots)
{
    return even_position((uint32_t)((uint64_t)slot * golden_step(slots) % slots), slots);
}

/* Walks round the circle once: the ids at each of the even positions. */
static void read_circle(const struct hb_ring_map *ring, const struct hb_table_request *request,
                        uint16_t *ids)
{
    uint32_t point = 0;

    for (uint32_t j = 0; j < request->slots; j++) {
        uint32_t position = even_position(j, request->slots);

        while (point < ring->points_count && ring->points[point].position < position)
            point++;
        ids[j] = request->members[ring->points[point < ring->points_count ? point : 0].member].id;
    }
}

static enum hb_table_error build(const struct hb_table_request *request, uint16_t *owner)
{
    uint32_t *order = calloc(request->count + 1, sizeof(*order));
    uint16_t *ids = calloc((size_t)request->slots + 1, sizeof(*ids));
    enum hb_table_error error = HB_TABLE_NO_MEMORY;
    struct hb_ring_map *ring = NULL;

    if (order != NULL && ids != NULL)
        error = hb_check_request(request, order);
    if (error == HB_TABLE_OK)
        error = hb_ring_from_members(request, hb_ring_hash_xxh3, &ring);
    if (error == HB_TABLE_OK) {
        uint32_t step = golden_step(request->slots), j = 0;

        read_circle(ring, request, ids);
        for (uint32_t slot = 0; slot < request->slots; slot++) {
            owner[slot] = ids[j];
            j += step;
            j -= j >= request->slots ? request->slots : 0;
        }
    }
    hb_ring_free(ring);
    free(ids);
    free(order);
    return error;
}

const struct hb_table_builder hb_ring = {
    .name = "ring", .algorithm = HB_ALGORITHM_RING, .build = build};
