/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rendezvous.h: rendezvous hashing (highest random weight) with weights.
 *
 * Every member has a score for a key: -w / ln(u), where w is its weight and u, between 0 and 1, is
 * a hash of key and member. The highest score has the key. A member's score depends on no other
 * member, so one that joins takes keys and moves none between the others; one that leaves hands its
 * keys on to the next best of each. -ln(u) / w is exponentially distributed with rate w, so the
 * member is first with probability w / sum of weights: shares follow weights exactly on average.
 *
 * No floating point. log2 serves as well as ln (all scores grow by one factor) and is taken in
 * fixed point by squaring: every machine gets the same bits. hb_minus_log2() is monotone: each step
 * of it (squaring, rounding down, taking the leading bit) keeps the order of two inputs. Scores are
 * fractions of integers and compared by multiplying crosswise, which is exact. Equal scores are
 * decided by the larger hash, then by name; so with equal weights the largest hash wins, exactly.
 *
 * The live table: two levels. Asking M * N times is slow where there are thousands of members. The
 * first level cuts the keys into the M slots; the second has for every member a stream of draws
 * k = 0, 1, 2, ..., each a slot and a time. Times are sums of -log2(u) over the draws so far,
 * divided by the weight; both come from a hash of (identity, seed, k). A slot belongs to the member
 * that draws it earliest. That is rendezvous hashing, not an approximation of it: the first time
 * that a member draws a given slot is exponentially distributed with a rate proportional to its
 * weight and independent of every other slot's (a Poisson process, thinned), just what -ln(u) / w
 * of a hash for each pair would be. But draws come in the order of their scores, so the losing
 * ones, nearly all of M * N, are never made: about M * ln(M) draws in all, whatever N is. The usual
 * two-level variant, groups of members, is as fast but moves keys between old members whenever a
 * group changes its weight; this one never does.
 *
 * Cost of a table: 6 ms for M = 65,537, 113 ms for 655,373, 5 s for 5,000,011 (which no longer fits
 * the cache), whatever the number of members and their weights. Of an owner by key: N hashes and N
 * logarithms of 0.1 us.
 *
 * Sources: D. Thaler, C. Ravishankar, "Using Name-Based Mappings to Increase Hit Rates", 1998;
 * J. Resch, "New Hashing Algorithms for Data Storage", SNIA 2015 (weights); J. Kingman, "Poisson
 * Processes" (thinning). Pure; any thread.
 */
#ifndef HB_CONTROL_HASHING_RENDEZVOUS_H
#define HB_CONTROL_HASHING_RENDEZVOUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hashing/table_builder.h"

#define HB_LOG2_BITS 40 /* of fraction */

/* -log2(u / 2^64) in units of 2^-HB_LOG2_BITS, rounded up: 1 to 64 * 2^40. 0 counts as 1. Never
 * larger for a larger u. Off by less than two units. */
uint64_t hb_minus_log2(uint64_t u);

/* One member's claim to a key. */
struct hb_rendezvous_claim {
    uint32_t weight; /* above 0 */
    uint32_t member; /* decides between equal claims: lower first, so number them by name */
    uint64_t hash;
    uint64_t loss; /* hb_minus_log2(hash) */
};

/* True when the score of `a` is above that of `b`. A strict order. */
bool hb_rendezvous_beats(const struct hb_rendezvous_claim *a, const struct hb_rendezvous_claim *b);

/* The owner of a key among members with u = h32("key|identity") / 2^32, as an index; or `count`
 * when none has a weight. `order` is the canonical order of the members (member_order.h). O(count).
 */
uint32_t hb_rendezvous_owner(const struct hb_table_member *members, uint32_t count,
                             const uint32_t *order, const char *key, size_t size);

/* All members with a weight, best first: room for `count`. Returns how many; 0 when memory is
 * short. O(count * log(count)). */
uint32_t hb_rendezvous_rank(const struct hb_table_member *members, uint32_t count,
                            const uint32_t *order, const char *key, size_t size, uint32_t *ranked);

/* The score as people compute it, -w / ln(u): for showing only. */
double hb_rendezvous_score(uint32_t hash, uint32_t weight);

#endif
