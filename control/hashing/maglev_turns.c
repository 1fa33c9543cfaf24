/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "hashing/maglev_turns.h"

/* Turns in a window, about: few enough to stay in the cache, many enough that visiting every tier
 * in each window costs little. */
#define WINDOW      8192
#define WINDOW_TIER 4 /* or so many times the tiers */

/* A turn is one number: the time since the window's begin, then the tier. Windows are at most
 * WINDOW / 1 long, 2^45, so it fits. */
#define TIER_BITS 16 /* as hb_turn_tier() has it */

/* Insertions that a turn may cost on average before the window is sorted otherwise. */
#define PATIENCE 16

/* A tier's next turn. Turns are 2^32 / weight apart, kept as whole part and rest, so that due times
 * don't drift. */
struct clock {
    uint64_t due;
    uint64_t step;
    uint32_t step_rest, rest; /* in parts of the weight */
    uint32_t weight;
    uint32_t left; /* turns */
    uint32_t number;
};

struct hb_turns {
    struct clock *clocks;
    uint32_t count; /* tiers that have turns left */
    uint32_t window;
    uint64_t begin;
    uint64_t *listed; /* the turns of a window, tier by tier */
    uint64_t *sorted;
    uint32_t *start; /* of each bucket */
};

struct hb_turns *hb_turns_make(uint32_t tiers, uint64_t expected)
{
    struct hb_turns *turns = calloc(1, sizeof(*turns));
    size_t room;

    if (turns == NULL)
        return NULL;
    turns->window = WINDOW > WINDOW_TIER * tiers ? WINDOW : WINDOW_TIER * tiers;
    if (turns->window > expected)
        turns->window = expected > 0 ? (uint32_t)expected : 1;
    room = (size_t)turns->window + tiers; /* each tier may have one turn more than its part */
    turns->clocks = calloc(tiers, sizeof(*turns->clocks));
    turns->listed = calloc(room, sizeof(*turns->listed));
    turns->sorted = calloc(room, sizeof(*turns->sorted));
    turns->start = calloc(2 * (size_t)turns->window, sizeof(*turns->start));
    if (turns->clocks != NULL && turns->listed != NULL && turns->sorted != NULL &&
        turns->start != NULL)
        return turns;
    hb_turns_free(turns);
    return NULL;
}

void hb_turns_free(struct hb_turns *turns)
{
    if (turns == NULL)
        return;
    free(turns->start);
    free(turns->sorted);
    free(turns->listed);
    free(turns->clocks);
    free(turns);
}

void hb_turns_add(struct hb_turns *turns, uint32_t weight, uint32_t count)
{
    turns->clocks[turns->count] = (struct clock){
        .step = (UINT64_C(1) << 32) / weight,
        .step_rest = (uint32_t)((UINT64_C(1) << 32) % weight),
        .weight = weight,
        .left = count,
        .number = turns->count,
    };
    turns->count++;
}

static void advance(struct clock *clock)
{
    clock->due += clock->step;
    clock->rest += clock->step_rest;
    if (clock->rest >= clock->weight) {
        clock->rest -= clock->weight;
        clock->due++;
    }
    clock->left--;
}

/* Writes down the turns that are due before `end`, counts them by bucket, and drops the tiers that
 * have no more. */
static uint32_t list_turns(struct hb_turns *turns, uint64_t end, unsigned shift)
{
    uint32_t listed = 0, kept = 0;

    for (uint32_t i = 0; i < turns->count; i++) {
        struct clock clock = turns->clocks[i];

        while (clock.left > 0 && clock.due < end) {
            uint64_t since = clock.due - turns->begin;

            turns->start[since >> shift]++;
            turns->listed[listed++] = since << TIER_BITS | clock.number;
            advance(&clock);
        }
        turns->clocks[kept] = clock;
        kept += clock.left > 0;
    }
    turns->count = kept;
    return listed;
}

static int compare_turns(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

/* Turns stand nearly where they belong: each bucket holds one or two. Should many be due at nearly
 * the same time in the wrong order, insertion gives up. */
static void insert_in_order(uint64_t *sorted, uint32_t count)
{
    uint64_t patience = (uint64_t)count * PATIENCE;

    for (uint32_t i = 1; i < count; i++) {
        uint64_t turn = sorted[i];
        uint32_t at = i;

        for (; at > 0 && sorted[at - 1] > turn; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = turn;
        if (i - at > patience) {
            qsort(sorted, count, sizeof(*sorted), compare_turns);
            return;
        }
        patience -= i - at;
    }
}

static void sort_turns(struct hb_turns *turns, uint32_t count, unsigned shift, uint32_t buckets)
{
    uint32_t next = 0;

    for (uint32_t bucket = 0; bucket < buckets; bucket++) {
        uint32_t size = turns->start[bucket];

        turns->start[bucket] = next;
        next += size;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t turn = turns->listed[i];

        turns->sorted[turns->start[turn >> TIER_BITS >> shift]++] = turn;
    }
    insert_in_order(turns->sorted, count);
}

/* Some tier has turns left. */
static uint64_t measure_window(const struct hb_turns *turns)
{
    uint64_t weights = turns->clocks[0].weight;

    for (uint32_t i = 1; i < turns->count; i++)
        weights += turns->clocks[i].weight;
    return ((uint64_t)turns->window << 32) / weights;
}

uint32_t hb_turns_next(struct hb_turns *turns, const uint64_t **due)
{
    uint32_t count = 0;

    while (count == 0 && turns->count > 0) {
        uint64_t width = measure_window(turns), last = width - 1;
        unsigned shift = 0;
        uint32_t buckets;

        while (last >> shift >= 2 * (uint64_t)turns->window)
            shift++;
        buckets = (uint32_t)(last >> shift) + 1;
        memset(turns->start, 0, buckets * sizeof(*turns->start));
        count = list_turns(turns, turns->begin + width, shift);
        sort_turns(turns, count, shift, buckets);
        turns->begin += width;
    }
    *due = turns->sorted;
    return count;
}
