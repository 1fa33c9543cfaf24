/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash_measure.h: what one method does with a pool and keys, and how long it takes.
 *
 * Counts and moves are exact and repeat; times are those of this machine at this moment.
 */
#ifndef HB_CTL_HASH_MEASURE_H
#define HB_CTL_HASH_MEASURE_H

#include <time.h>

#include "hash_input.h"

/* ---- a word to the one who waits ---- */

/* Lines on standard error once a second has passed: one that renews itself on a terminal, else one
 * every five seconds. */
struct hb_hash_progress {
    const struct hb_ctl *ctl;
    struct timespec started;
    double told; /* seconds after the start */
    bool shown;
};

void hb_hash_progress_start(struct hb_hash_progress *progress, const struct hb_ctl *ctl);
/* "ring: 30 % of 100000 keys". Cheap enough to call every few milliseconds. */
void hb_hash_progress_tell(struct hb_hash_progress *progress, const char *what, uint64_t done,
                           uint64_t whole, const char *unit);
void hb_hash_progress_end(struct hb_hash_progress *progress);

/* ---- measuring ---- */

struct hb_hash_result {
    enum hb_table_error error;
    const char *refusal; /* why a method cannot do it, when no error of a table says it */
    bool replacement;    /* jump: gaps among the buckets were handed on */
    uint32_t *owners;    /* of each key: index into the pool */
    uint32_t *counts;    /* keys of each backend */
    /* Of the backends that have a weight. Where weights differ, their keys are first taken per
     * weight: times mean weight, divided by weight, rounded. */
    struct hb_share_figures shares;
    double build_s, lookup_ns; /* lookup: a key, its hash included */
    size_t memory;             /* bytes */
};

/* Returns the exit status; a method that cannot serve the pool is no failure: result->error or
 * ->refusal says it. The caller frees the result in any case. */
int hb_hash_measure(struct hb_hash_progress *progress, const struct hb_hash_choice *choice,
                    const struct hb_hash_pool *pool, const struct hb_hash_keys *keys,
                    struct hb_hash_result *result);
void hb_hash_result_free(struct hb_hash_result *result);

/* Prepares a method, jump with replacement where it needs it. */
enum hb_table_error hb_hash_prepare(const struct hb_hash_choice *choice,
                                    struct hb_table_request *request, void **state);

/* "Why not", with the remedy. */
const char *hb_hash_why(const struct hb_hash_pool *pool, const struct hb_hash_choice *choice,
                        const struct hb_hash_result *result, char text[HB_TABLE_EXPLANATION]);

#endif
