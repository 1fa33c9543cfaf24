/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * key_moves.c: figures about shares and about what a change moved.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hashing/hash_method.h"
#include "hashing/member_order.h"

struct hb_share_figures hb_share_figures(const uint32_t *counts, uint32_t members)
{
    struct hb_share_figures figures = {0};
    double squares = 0;

    if (members == 0)
        return figures;
    figures.min = UINT32_MAX;
    for (uint32_t i = 0; i < members; i++) {
        figures.min = counts[i] < figures.min ? counts[i] : figures.min;
        figures.max = counts[i] > figures.max ? counts[i] : figures.max;
        figures.mean += counts[i];
    }
    figures.mean /= members;
    for (uint32_t i = 0; i < members; i++)
        squares += (counts[i] - figures.mean) * (counts[i] - figures.mean);
    figures.sd = sqrt(squares / members);
    return figures;
}

/* Two sets of members side by side: for each member its counterpart in the other set. */
struct match {
    uint32_t *in_after;  /* by index before; UINT32_MAX: not there */
    uint32_t *in_before; /* by index after */
};

static void free_match(struct match *match)
{
    free(match->in_after);
    free(match->in_before);
}

/* Both orders are by identity, so one walk along both finds all pairs. */
static void pair_up(const struct hb_table_request *before, const uint32_t *order_before,
                    const struct hb_table_request *after, const uint32_t *order_after,
                    struct match *match)
{
    uint32_t b = 0, a = 0;

    while (b < before->count && a < after->count) {
        int order = strcmp(before->members[order_before[b]].identity,
                           after->members[order_after[a]].identity);

        if (order == 0) {
            match->in_after[order_before[b]] = order_after[a];
            match->in_before[order_after[a]] = order_before[b];
        }
        b += order <= 0;
        a += order >= 0;
    }
}

static enum hb_table_error make_match(const struct hb_table_request *before,
                                      const struct hb_table_request *after, struct match *match)
{
    uint32_t *order_before = calloc(before->count + 1, sizeof(*order_before));
    uint32_t *order_after = calloc(after->count + 1, sizeof(*order_after));
    enum hb_table_error error = HB_TABLE_NO_MEMORY;

    match->in_after = malloc((before->count + 1) * sizeof(*match->in_after));
    match->in_before = malloc((after->count + 1) * sizeof(*match->in_before));
    if (order_before == NULL || order_after == NULL || match->in_after == NULL ||
        match->in_before == NULL)
        goto free_orders;
    memset(match->in_after, 0xff, (before->count + 1) * sizeof(*match->in_after));
    memset(match->in_before, 0xff, (after->count + 1) * sizeof(*match->in_before));
    error = hb_member_order(before->members, before->count, order_before);
    if (error == HB_TABLE_OK)
        error = hb_member_order(after->members, after->count, order_after);
    if (error == HB_TABLE_OK)
        pair_up(before, order_before, after, order_after, match);
free_orders:
    free(order_after);
    free(order_before);
    if (error != HB_TABLE_OK)
        free_match(match);
    return error;
}

static bool has_weight(const struct hb_table_request *request, uint32_t member)
{
    return member != UINT32_MAX && request->members[member].weight > 0;
}

enum hb_table_error hb_key_moves(const struct hb_table_request *before,
                                 const uint32_t *owner_before, const struct hb_table_request *after,
                                 const uint32_t *owner_after, uint32_t keys,
                                 struct hb_key_moves *moves)
{
    struct match match;
    enum hb_table_error error = make_match(before, after, &match);

    *moves = (struct hb_key_moves){0};
    if (error != HB_TABLE_OK)
        return error;
    for (uint32_t key = 0; key < keys; key++) {
        uint32_t from = owner_before[key], to = owner_after[key];
        bool stays = has_weight(after, match.in_after[from]);
        bool was_there = has_weight(before, match.in_before[to]);

        if (match.in_after[from] == to)
            continue;
        moves->moved++;
        moves->to_new += !was_there;
        moves->from_gone += !stays;
        moves->between_old += stays && was_there;
    }
    free_match(&match);
    return HB_TABLE_OK;
}

static double sum_weights(const struct hb_table_request *request)
{
    double sum = 0;

    for (uint32_t i = 0; i < request->count; i++)
        sum += request->members[i].weight;
    return sum;
}

enum hb_table_error hb_minimum_moved(const struct hb_table_request *before,
                                     const struct hb_table_request *after, double *share)
{
    double all_before = sum_weights(before), all_after = sum_weights(after);
    struct match match;
    enum hb_table_error error;

    *share = 0;
    if (all_before == 0 || all_after == 0)
        return HB_TABLE_NO_MEMBERS;
    error = make_match(before, after, &match);
    if (error != HB_TABLE_OK)
        return error;
    for (uint32_t i = 0; i < before->count; i++) {
        uint32_t same = match.in_after[i];
        double had = before->members[i].weight / all_before;
        double has = same != UINT32_MAX ? after->members[same].weight / all_after : 0;

        *share += had > has ? had - has : 0;
    }
    free_match(&match);
    return HB_TABLE_OK;
}
