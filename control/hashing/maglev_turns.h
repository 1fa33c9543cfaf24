/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * maglev_turns.h: in which order tiers of backends take their turns; a part of the Maglev builder.
 *
 * The n-th turn (n from 0) of a tier of weight w is due at time n / w. Turns come by due time, at
 * equal times those of the tier with the lower number first.
 *
 * A queue that is asked for the next turn costs log(tiers) comparisons a turn, nearly all of them
 * mispredicted, which was most of a build with many different weights. Here time is cut into
 * windows of some thousand turns. The turns of a window are written down tier by tier, dealt into
 * as many buckets as there are turns, by due time, and what is left unordered in a bucket, one or
 * two turns, is put in order by insertion.
 *
 * Due times are whole numbers of 2^-32, rounded down. Weights are below 2^16, so two different due
 * times differ by more than that unit: rounding keeps their order, and only equal ones become
 * equal.
 *
 * Pure; one order belongs to one thread.
 */
#ifndef HB_CONTROL_HASHING_MAGLEV_TURNS_H
#define HB_CONTROL_HASHING_MAGLEV_TURNS_H

#include <stdbool.h>
#include <stdint.h>

struct hb_turns;

/* For so many tiers (1 to 65,536) that have about so many turns in all. NULL when memory is short.
 */
struct hb_turns *hb_turns_make(uint32_t tiers, uint64_t expected);
void hb_turns_free(struct hb_turns *turns);

/* Adds a tier: a weight of 1 to 65,535 and how many turns it has, at least 1. Tiers are numbered in
 * the order in which they are added. */
void hb_turns_add(struct hb_turns *turns, uint32_t weight, uint32_t count);

/* The next some turns: returns how many, 0 when there are none left. They stay until the next
 * call. */
uint32_t hb_turns_next(struct hb_turns *turns, const uint64_t **due);

/* The tier whose turn it is. */
static inline uint16_t hb_turn_tier(uint64_t turn)
{
    return (uint16_t)turn;
}

#endif
