/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_hashing.c: what must hold between the keys that choose and shape a pool's lookup table.
 *
 * A key that the pool's algorithm does not look at is a warning, not an error: somebody who tries
 * algorithms should not have to take the others' keys out. What no table could be built from is an
 * error.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "config_internal.h"
#include "hashing/ring.h"

/* With this many slots for each backend a Maglev table keeps shares within 1 % of the weights, and
 * shares that are left to chance scatter by 10 %. */
#define SLOTS_PER_BACKEND 100

static const char *name_of(const struct hb_pool_config *pool)
{
    return hb_table_builder_of(pool->algorithm)->name;
}

/* The line of a key of the pool, or of the pool when the file does not have the key. */
static int line_of(const struct hb_config_reader *reader, const struct hb_pool_config *pool,
                   const void *field)
{
    return hb_config_line_of(reader, field, pool->line);
}

static const char *print_path(char path[HB_CONFIG_PATH], uint32_t pool_index, const char *key)
{
    snprintf(path, HB_CONFIG_PATH, "pools[%u].%s", pool_index, key);
    return path;
}

static const char *print_backend_path(char path[HB_CONFIG_PATH], uint32_t pool_index,
                                      uint32_t backend, const char *key)
{
    snprintf(path, HB_CONFIG_PATH, "pools[%u].backends[%u].%s", pool_index, backend, key);
    return path;
}

/* ---- the size of the table ---- */

struct weights {
    uint32_t weighted; /* backends that have one */
    uint32_t lightest;
    uint64_t sum;
};

static struct weights measure_weights(const struct hb_pool_config *pool)
{
    struct weights weights = {.lightest = UINT32_MAX};

    for (uint32_t i = 0; i < pool->backends_count; i++) {
        uint32_t weight = pool->backends[i].weight;

        weights.weighted += weight > 0;
        weights.sum += weight;
        if (weight > 0 && weight < weights.lightest)
            weights.lightest = weight;
    }
    return weights;
}

static void warn_small_table(struct hb_config_reader *reader, uint32_t pool_index,
                             uint32_t weighted)
{
    const struct hb_pool_config *pool = &reader->config->pools[pool_index];
    bool exact = pool->algorithm == HB_ALGORITHM_MAGLEV;
    double off = exact ? 100.0 * weighted / pool->table_size
                       : 100.0 * sqrt((double)weighted / pool->table_size);
    uint64_t good = (uint64_t)weighted * SLOTS_PER_BACKEND;
    int line = line_of(reader, pool, &pool->table_size);
    char path[HB_CONFIG_PATH], remedy[96];

    if (good <= HB_TABLE_SLOTS_MAX)
        snprintf(remedy, sizeof(remedy), "; %" PRIu32 " or more keeps that below %s",
                 hb_prime_above((uint32_t)good), exact ? "1 %" : "10 %");
    else
        snprintf(remedy, sizeof(remedy),
                 ", and the largest table has %d; divide them among several pools",
                 HB_TABLE_SLOTS_MAX);
    hb_config_warn(reader, line, print_path(path, pool_index, "table_size"),
                   "%" PRIu32 " slots for %" PRIu32 " backend%s: shares %s by about %.1f %%%s",
                   pool->table_size, weighted, weighted == 1 ? "" : "s",
                   exact ? "can be off" : "scatter", off, remedy);
}

static void check_table_size(struct hb_config_reader *reader, uint32_t pool_index,
                             const struct weights *weights)
{
    const struct hb_pool_config *pool = &reader->config->pools[pool_index];
    int line = line_of(reader, pool, &pool->table_size);
    uint32_t weighted = weights->weighted;
    char path[HB_CONFIG_PATH];

    print_path(path, pool_index, "table_size");
    if (pool->table_size < weighted) {
        hb_config_complain(reader, line, path,
                           "%" PRIu32 " slots are too few for %" PRIu32 " backends with a weight; "
                           "the smallest prime that will do is %" PRIu32,
                           pool->table_size, weighted, hb_table_smallest_size(weighted));
        return;
    }
    if (pool->table_size < (uint64_t)weighted * SLOTS_PER_BACKEND)
        warn_small_table(reader, pool_index, weighted);
    if ((uint64_t)pool->table_size * weights->lightest < weights->sum)
        hb_config_warn(reader, line, path,
                       "a backend of weight %" PRIu32 " has a share of less than one slot and %s; "
                       "bring the weights closer together or use a larger table",
                       weights->lightest,
                       pool->algorithm == HB_ALGORITHM_MAGLEV ? "gets one all the same"
                                                              : "may get none");
}

/* ---- keys that only one algorithm looks at ---- */

static void warn_unused(struct hb_config_reader *reader, uint32_t pool_index, const void *field,
                        const char *key, enum hb_algorithm user)
{
    const struct hb_pool_config *pool = &reader->config->pools[pool_index];
    const struct hb_config_place *place = hb_config_find_place(reader, field);
    char path[HB_CONFIG_PATH];

    if (place == NULL || !place->good || pool->algorithm == user)
        return;
    hb_config_warn(reader, place->line, print_path(path, pool_index, key),
                   "algorithm %s has no use for it; remove it or choose %s", name_of(pool),
                   hb_table_builder_of(user)->name);
}

static void warn_unused_buckets(struct hb_config_reader *reader, uint32_t pool_index)
{
    const struct hb_pool_config *pool = &reader->config->pools[pool_index];
    char path[HB_CONFIG_PATH];

    if (pool->algorithm == HB_ALGORITHM_JUMP)
        return;
    for (uint32_t i = 0; i < pool->backends_count; i++) {
        const struct hb_backend_config *backend = &pool->backends[i];

        if (backend->bucket == HB_BUCKET_NONE)
            continue;
        hb_config_warn(reader, hb_config_line_of(reader, &backend->bucket, backend->line),
                       print_backend_path(path, pool_index, i, "bucket"),
                       "algorithm %s has no use for it; remove it or choose jump", name_of(pool));
        return; /* one says it for all */
    }
}

/* ---- ring ---- */

static void check_ring(struct hb_config_reader *reader, uint32_t pool_index,
                       const struct weights *weights)
{
    const struct hb_pool_config *pool = &reader->config->pools[pool_index];
    const struct hb_table_options *options = &pool->options;
    uint32_t nodes = options->virtual_nodes != 0 ? options->virtual_nodes : HB_RING_VIRTUAL_NODES;
    int line = line_of(reader, pool, &options->virtual_nodes);
    char path[HB_CONFIG_PATH];

    print_path(path, pool_index, "virtual_nodes");
    if (options->ketama && options->virtual_nodes != 0)
        hb_config_warn(reader, line, path,
                       "ketama has its own number of points, so this has no effect; remove it");
    if (options->ketama || weights->sum * nodes <= HB_RING_POINTS_MAX)
        return;
    if (weights->sum <= HB_RING_POINTS_MAX)
        hb_config_complain(
            reader, line, path,
            "weights of %" PRIu64 " in all with %" PRIu32 " points each are more "
            "than the %d that a ring may have; set it to %" PRIu64 " or less, or lower all weights",
            weights->sum, nodes, HB_RING_POINTS_MAX, HB_RING_POINTS_MAX / weights->sum);
    else
        hb_config_complain(reader, line, path,
                           "weights of %" PRIu64 " in all are more than the %d points that a ring "
                           "may have; lower all weights",
                           weights->sum, HB_RING_POINTS_MAX);
}

/* ---- jump ---- */

/* Complains about a bucket that is missing, given twice or, without replacement, beyond the others.
 * `line_of_bucket` has room for every bucket and is zero. Returns the largest, or HB_BUCKET_NONE.
 */
static uint32_t check_buckets(struct hb_config_reader *reader, uint32_t pool_index,
                              int *line_of_bucket)
{
    const struct hb_pool_config *pool = &reader->config->pools[pool_index];
    uint32_t largest = 0;
    bool good = true;

    for (uint32_t i = 0; i < pool->backends_count; i++) {
        const struct hb_backend_config *backend = &pool->backends[i];
        int line = hb_config_line_of(reader, &backend->bucket, backend->line);
        char path[HB_CONFIG_PATH];

        print_backend_path(path, pool_index, i, "bucket");
        if (backend->bucket == HB_BUCKET_NONE) {
            if (hb_config_is_good(reader, &backend->bucket))
                hb_config_complain(reader, line, path,
                                   "it is missing; with jump each backend has a number, 0, 1, 2, "
                                   "... in the order in which they joined");
            good = false;
            continue;
        }
        if (line_of_bucket[backend->bucket] != 0) {
            hb_config_complain(reader, line, path,
                               "%" PRIu32 " is the bucket of the backend at line %d already",
                               backend->bucket, line_of_bucket[backend->bucket]);
            good = false;
        }
        line_of_bucket[backend->bucket] = line;
        largest = backend->bucket > largest ? backend->bucket : largest;
    }
    return good ? largest : HB_BUCKET_NONE;
}

static void complain_gap(struct hb_config_reader *reader, uint32_t pool_index, uint32_t largest,
                         const int *line_of_bucket)
{
    uint32_t missing = 0;
    char path[HB_CONFIG_PATH];

    while (missing < largest && line_of_bucket[missing] != 0)
        missing++;
    if (missing == largest)
        return;
    hb_config_complain(reader, line_of_bucket[largest], print_path(path, pool_index, "backends"),
                       "no backend has bucket %" PRIu32 ", but one has %" PRIu32
                       "; number them without gaps (only the last may go), or set "
                       "jump_replacement: true so that others take its place",
                       missing, largest);
}

static void check_jump_weights(struct hb_config_reader *reader, uint32_t pool_index,
                               uint32_t largest)
{
    const struct hb_pool_config *pool = &reader->config->pools[pool_index];
    uint32_t weight = 0;

    for (uint32_t i = 0; i < pool->backends_count; i++) {
        const struct hb_backend_config *backend = &pool->backends[i];
        int line = hb_config_line_of(reader, &backend->weight, backend->line);
        char path[HB_CONFIG_PATH];

        print_backend_path(path, pool_index, i, "weight");
        if (!hb_config_is_good(reader, &backend->weight))
            continue;
        if (backend->weight == 0 && !pool->options.jump_replacement && largest != HB_BUCKET_NONE &&
            backend->bucket != largest)
            hb_config_complain(reader, line, path,
                               "with jump only the last backend (bucket %" PRIu32 ") can go out of "
                               "service; set jump_replacement: true so that others take its place",
                               largest);
        if (backend->weight != 0 && weight != 0 && backend->weight != weight)
            hb_config_complain(reader, line, path,
                               "%" PRIu32 " here and %" PRIu32 " before, but jump has no weights; "
                               "give all backends the same or choose another algorithm",
                               backend->weight, weight);
        weight = weight == 0 ? backend->weight : weight;
    }
}

static void check_jump(struct hb_config_reader *reader, uint32_t pool_index)
{
    const struct hb_pool_config *pool = &reader->config->pools[pool_index];
    int *line_of_bucket = calloc(HB_BACKENDS_MAX, sizeof(*line_of_bucket));
    uint32_t largest;

    if (line_of_bucket == NULL) {
        reader->no_memory = true;
        return;
    }
    largest = check_buckets(reader, pool_index, line_of_bucket);
    if (largest != HB_BUCKET_NONE && !pool->options.jump_replacement)
        complain_gap(reader, pool_index, largest, line_of_bucket);
    check_jump_weights(reader, pool_index, largest);
    free(line_of_bucket);
}

void hb_config_check_hashing(struct hb_config_reader *reader, uint32_t pool_index)
{
    const struct hb_pool_config *pool = &reader->config->pools[pool_index];
    struct weights weights = measure_weights(pool);
    char path[HB_CONFIG_PATH];

    if (weights.weighted > 0 && hb_config_is_good(reader, &pool->table_size))
        check_table_size(reader, pool_index, &weights);
    if (!hb_config_is_good(reader, &pool->algorithm))
        return; /* what the other keys are for is not known */
    warn_unused(reader, pool_index, &pool->options.virtual_nodes, "virtual_nodes",
                HB_ALGORITHM_RING);
    warn_unused(reader, pool_index, &pool->options.ketama, "ketama", HB_ALGORITHM_RING);
    warn_unused(reader, pool_index, &pool->options.jump_replacement, "jump_replacement",
                HB_ALGORITHM_JUMP);
    warn_unused_buckets(reader, pool_index);
    if (pool->algorithm == HB_ALGORITHM_RING)
        check_ring(reader, pool_index, &weights);
    if (pool->algorithm == HB_ALGORITHM_JUMP)
        check_jump(reader, pool_index);
    if (pool->algorithm == HB_ALGORITHM_MODULO)
        hb_config_warn(reader, line_of(reader, pool, &pool->algorithm),
                       print_path(path, pool_index, "algorithm"),
                       "modulo is for comparison: any change of the backends moves nearly all new "
                       "flows (80 %% from 4 backends to 5); use maglev");
}
