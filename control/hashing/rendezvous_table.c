/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rendezvous_table.c: rendezvous tables by draws; rendezvous.h says why that is the same.
 *
 * Draw k of a member is mix64(base + k * gamma), base = XXH3(identity, seed): the lower half,
 * scaled to M, is the slot; the upper half, as u between 0 and 1, moves the member's clock on by
 * -log2(u). A draw's time is the clock divided by the weight. Each slot goes to the draw with the
 * earliest time, at equal times to the member whose identity comes first.
 *
 * All members draw up to one horizon of time, then up to the next, until every slot is drawn: what
 * was not drawn yet is later than every owner. Horizons only say when to stop; they decide nothing.
 * After 64 draws a slot on average, which no table comes near (the chance that a given slot is
 * still free is e^-64), slots that are left go to the first of the heaviest members, so that the
 * time is bounded.
 */
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "hashing/rendezvous.h"
#include "hashing/slot_key.h"

#define GAMMA     UINT64_C(0x9e3779b97f4a7c15) /* odd, so the draws of a member all differ */
#define BASE_SEED UINT64_C(0x52656e64657a7631) /* sets bases apart from hashes of other tables */

/* Clocks count in 2^-18: with the most slots and the last horizon they have 47 bits, and 63 when
 * multiplied by a weight. */
#define CLOCK_BITS 18
#define HORIZONS   64

/* -log2 is read from a line between the nearest two of these many values: off by less than 2^-26,
 * always the same, and ten times as fast. */
#define CURVE_BITS 12
#define CURVE      (1 << CURVE_BITS)

struct drawer {
    uint64_t base;
    uint64_t draws;
    uint64_t clock; /* of its next draw */
    uint32_t weight;
    uint32_t member;
};

/* The earliest draw of a slot so far. */
struct claim {
    uint64_t clock;
    uint32_t weight; /* 0: none */
    uint32_t drawer;
};

struct drawing {
    uint32_t slots;
    uint32_t free;
    uint64_t weights; /* sum */
    struct drawer *drawers;
    uint32_t drawers_count;
    struct claim *claims;
    uint64_t *curve; /* -log2(1 + i / CURVE) + 1, in 2^-HB_LOG2_BITS */
};

static uint64_t hash_draw(const struct drawer *drawer)
{
    return hb_mix64(drawer->base + drawer->draws * GAMMA);
}

/* -log2 of the upper half of a draw: (h + 1/2) / 2^32, in the clock's units, rounded up. */
static uint64_t clock_step(const struct drawing *d, uint64_t hash)
{
    uint64_t u = hash >> 31 | 1; /* 2 * h + 1 of 2^33 */
    unsigned zeros = (unsigned)__builtin_clzll(u);
    uint64_t x = u << zeros << 1;          /* the fraction, 64 bits */
    uint64_t i = x >> (64 - CURVE_BITS);   /* which part of the curve */
    uint64_t part = x << CURVE_BITS >> 32; /* where in it, 32 bits */
    uint64_t above = d->curve[i], below = d->curve[i + 1];
    uint64_t fraction = above - ((above - below) * part >> 32);
    uint64_t loss = ((uint64_t)(zeros - 31) << HB_LOG2_BITS) + fraction;

    return (loss >> (HB_LOG2_BITS - CLOCK_BITS)) + 1;
}

static void move_clock(const struct drawing *d, struct drawer *drawer)
{
    drawer->clock += clock_step(d, hash_draw(drawer));
}

static void take_draw(struct drawing *d, uint32_t number)
{
    struct drawer *drawer = &d->drawers[number];
    uint64_t slot = (hash_draw(drawer) & UINT32_MAX) * d->slots >> 32;
    struct claim *claim = &d->claims[slot];
    uint64_t mine = drawer->clock * claim->weight, other = claim->clock * drawer->weight;

    if (claim->weight == 0)
        d->free--;
    else if (mine > other || (mine == other && number >= claim->drawer))
        return;
    *claim = (struct claim){drawer->clock, drawer->weight, number};
}

/* Horizon n is the time by which n draws a slot are made on average. A clock moves by 1 / ln(2) on
 * average, so a member's is then n * slots * weight / weights * 1.4427; any number near does. */
static uint64_t clock_at(const struct drawing *d, const struct drawer *drawer, uint32_t horizon)
{
    __uint128_t clock = (__uint128_t)horizon * d->slots * drawer->weight * 378193;

    return (uint64_t)(clock / d->weights); /* 378193 = 2^18 / ln(2) */
}

static void draw_all(struct drawing *d)
{
    for (uint32_t horizon = 1; horizon <= HORIZONS && d->free > 0; horizon++) {
        for (uint32_t i = 0; i < d->drawers_count; i++) {
            struct drawer *drawer = &d->drawers[i];
            uint64_t last = clock_at(d, drawer, horizon);

            while (drawer->clock <= last) {
                take_draw(d, i);
                drawer->draws++;
                move_clock(d, drawer);
            }
        }
    }
}

static void set_drawers(struct drawing *d, const struct hb_table_request *request,
                        const uint32_t *order)
{
    for (uint32_t i = 0; i <= CURVE; i++) {
        uint64_t x = (UINT64_C(1) << 62) + ((uint64_t)i << (62 - CURVE_BITS));

        d->curve[i] = hb_minus_log2(x) - (UINT64_C(1) << HB_LOG2_BITS);
    }
    for (uint32_t i = 0; i < request->count; i++) {
        const struct hb_table_member *member = &request->members[order[i]];
        struct drawer *drawer = &d->drawers[d->drawers_count];

        if (member->weight == 0)
            continue;
        *drawer = (struct drawer){
            .base = XXH3_64bits_withSeed(member->identity, strlen(member->identity),
                                         request->seed ^ BASE_SEED),
            .weight = member->weight,
            .member = order[i],
        };
        move_clock(d, drawer);
        d->weights += member->weight;
        d->drawers_count++;
    }
}

static void write_owners(const struct drawing *d, const struct hb_table_member *members,
                         uint16_t *owner)
{
    uint32_t heaviest = 0;

    for (uint32_t i = 1; i < d->drawers_count; i++)
        heaviest = d->drawers[i].weight > d->drawers[heaviest].weight ? i : heaviest;
    for (uint32_t slot = 0; slot < d->slots; slot++) {
        const struct claim *claim = &d->claims[slot];

        owner[slot] = members[d->drawers[claim->weight > 0 ? claim->drawer : heaviest].member].id;
    }
}

static enum hb_table_error build(const struct hb_table_request *request, uint16_t *owner)
{
    uint32_t *order = calloc(request->count + 1, sizeof(*order));
    struct drawing d = {.slots = request->slots, .free = request->slots};
    enum hb_table_error error = HB_TABLE_NO_MEMORY;

    if (order != NULL)
        error = hb_check_request(request, order);
    if (error == HB_TABLE_OK) {
        error = HB_TABLE_NO_MEMORY;
        d.drawers = calloc(request->count, sizeof(*d.drawers));
        d.claims = calloc(request->slots, sizeof(*d.claims));
        d.curve = calloc(CURVE + 1, sizeof(*d.curve));
    }
    if (d.drawers != NULL && d.claims != NULL && d.curve != NULL) {
        set_drawers(&d, request, order);
        draw_all(&d);
        write_owners(&d, request->members, owner);
        error = HB_TABLE_OK;
    }
    free(d.curve);
    free(d.claims);
    free(d.drawers);
    free(order);
    return error;
}

const struct hb_table_builder hb_rendezvous = {
    .name = "rendezvous", .algorithm = HB_ALGORITHM_RENDEZVOUS, .build = build};
