/* SPDX-License-Identifier: BSD-3-Clause */
/* hash_measure.c: asking a method for every key, with a watch in the hand. */
#include "hash_measure.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hashing/jump.h"
#include "hashing/member_order.h"
#include "hashing/modulo.h"
#include "hashing/ring.h"

#define PATIENCE_S    1.0
#define CHUNK_OF_KEYS 4096 /* between two looks at the clock */

static double seconds_since(const struct timespec *start)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) / 1e9;
}

/* ---- progress ---- */

void hb_hash_progress_start(struct hb_hash_progress *progress, const struct hb_ctl *ctl)
{
    *progress = (struct hb_hash_progress){.ctl = ctl};
    clock_gettime(CLOCK_MONOTONIC, &progress->started);
}

void hb_hash_progress_tell(struct hb_hash_progress *progress, const char *what, uint64_t done,
                           uint64_t whole, const char *unit)
{
    bool terminal = progress->ctl->err_is_terminal;
    double now = seconds_since(&progress->started);

    if (now < PATIENCE_S || (progress->shown && now - progress->told < (terminal ? 0.2 : 5.0)))
        return;
    fprintf(progress->ctl->err, "%s%s: %" PRIu64 " %% of %" PRIu64 " %s%s",
            terminal ? "\r\033[K" : "", what, whole > 0 ? done * 100 / whole : 100, whole, unit,
            terminal ? "" : "\n");
    fflush(progress->ctl->err);
    progress->told = now;
    progress->shown = true;
}

void hb_hash_progress_end(struct hb_hash_progress *progress)
{
    if (progress->shown && progress->ctl->err_is_terminal)
        fprintf(progress->ctl->err, "\r\033[K");
    progress->shown = false;
}

/* ---- keys that are texts ---- */

enum hb_table_error hb_hash_prepare(const struct hb_hash_choice *choice,
                                    struct hb_table_request *request, void **state)
{
    enum hb_table_error error = choice->method->prepare(request, state);

    if (error == HB_TABLE_BUCKET_EMPTY || error == HB_TABLE_BUCKETS) {
        request->options.jump_replacement = true;
        error = choice->method->prepare(request, state);
    }
    return error;
}

static void ask(struct hb_hash_progress *progress, const struct hb_hash_choice *choice,
                const void *state, const struct hb_hash_keys *keys, uint32_t *owners)
{
    struct timespec start;
    uint32_t from = 0, i;

    clock_gettime(CLOCK_MONOTONIC, &start);
    while (from < keys->count) {
        uint32_t to = keys->count - from > CHUNK_OF_KEYS ? from + CHUNK_OF_KEYS : keys->count;

        for (i = from; i < to; i++)
            owners[i] = choice->method->owner(state, keys->text + keys->at[i],
                                              keys->at[i + 1] - keys->at[i]);
        from = to;
        hb_hash_progress_tell(progress, choice->name, from, keys->count, "keys");
    }
}

static void measure_texts(struct hb_hash_progress *progress, const struct hb_hash_choice *choice,
                          struct hb_table_request *request, const struct hb_hash_keys *keys,
                          struct hb_hash_result *result)
{
    struct timespec start;
    void *state;

    clock_gettime(CLOCK_MONOTONIC, &start);
    result->error = hb_hash_prepare(choice, request, &state);
    result->build_s = seconds_since(&start);
    result->replacement = request->options.jump_replacement;
    if (result->error != HB_TABLE_OK)
        return;
    clock_gettime(CLOCK_MONOTONIC, &start);
    ask(progress, choice, state, keys, result->owners);
    result->lookup_ns = seconds_since(&start) * 1e9 / keys->count;
    result->memory = choice->method->memory(state);
    choice->method->release(state);
}

/* ---- keys that are hashes already: methods that take one ---- */

static enum hb_table_error ask_modulo(const struct hb_table_request *request,
                                      const struct hb_hash_keys *keys, uint32_t *owners)
{
    uint32_t *order = calloc(request->count, sizeof(*order)), i;
    enum hb_table_error error = HB_TABLE_NO_MEMORY;
    struct hb_modulo_map map;

    if (order)
        error = hb_member_order(request->members, request->count, order);
    if (error == HB_TABLE_OK)
        error = hb_modulo_make(request->members, request->count, order, &map);
    if (error == HB_TABLE_OK) {
        for (i = 0; i < keys->count; i++)
            owners[i] = hb_modulo_owner(&map, keys->numbers[i]);
        hb_modulo_free(&map);
    }
    free(order);
    return error;
}

static enum hb_table_error ask_jump(const struct hb_table_request *request,
                                    const struct hb_hash_keys *keys, uint32_t *owners)
{
    struct hb_jump_map map;
    enum hb_table_error error = hb_jump_make(request, &map);
    uint32_t i;

    if (error != HB_TABLE_OK)
        return error;
    for (i = 0; i < keys->count; i++)
        owners[i] = hb_jump_owner(&map, keys->numbers[i]);
    hb_jump_free(&map);
    return HB_TABLE_OK;
}

static enum hb_table_error ask_ring(const struct hb_table_request *request,
                                    const struct hb_hash_keys *keys, uint32_t *owners)
{
    struct hb_ring_map *ring;
    enum hb_table_error error = hb_ring_from_members(request, hb_ring_hash_h32, &ring);
    uint32_t i;

    if (error != HB_TABLE_OK)
        return error;
    for (i = 0; i < keys->count; i++)
        owners[i] = hb_ring_owner(ring, keys->numbers[i]);
    hb_ring_free(ring);
    return HB_TABLE_OK;
}

static void measure_numbers(const struct hb_hash_choice *choice, struct hb_table_request *request,
                            const struct hb_hash_keys *keys, struct hb_hash_result *result)
{
    uint32_t i;

    if (choice->method->algorithm == HB_ALGORITHM_MODULO) {
        result->error = ask_modulo(request, keys, result->owners);
    } else if (choice->method->algorithm == HB_ALGORITHM_JUMP) {
        result->error = ask_jump(request, keys, result->owners);
        if (result->error == HB_TABLE_BUCKET_EMPTY || result->error == HB_TABLE_BUCKETS) {
            request->options.jump_replacement = result->replacement = true;
            result->error = ask_jump(request, keys, result->owners);
        }
    } else if (choice->method->algorithm == HB_ALGORITHM_RING) {
        for (i = 0; i < keys->count; i++) {
            if (keys->numbers[i] >= HB_RING_SPACE)
                result->refusal = "a hash is above 4294967295, where the ring ends";
        }
        if (!result->refusal)
            result->error = ask_ring(request, keys, result->owners);
    } else {
        result->refusal = "it hashes the key itself; use --keys instead of --hashes";
    }
}

/* ---- results ---- */

static bool count_keys(const struct hb_hash_pool *pool, const struct hb_hash_keys *keys,
                       struct hb_hash_result *result)
{
    uint32_t *scaled = calloc(pool->count, sizeof(*scaled)), weighted = 0, i;
    double weights = 0;

    if (!scaled)
        return false;
    for (i = 0; i < keys->count; i++)
        result->counts[result->owners[i]]++;
    for (i = 0; i < pool->count; i++)
        weights += pool->members[i].weight;
    weights /= hb_hash_pool_weighted(pool);
    for (i = 0; i < pool->count; i++) {
        if (pool->members[i].weight > 0)
            scaled[weighted++] =
                (uint32_t)llround(result->counts[i] * weights / pool->members[i].weight);
    }
    result->shares = hb_share_figures(scaled, weighted);
    free(scaled);
    return true;
}

int hb_hash_measure(struct hb_hash_progress *progress, const struct hb_hash_choice *choice,
                    const struct hb_hash_pool *pool, const struct hb_hash_keys *keys,
                    struct hb_hash_result *result)
{
    struct hb_table_request request = hb_hash_request(pool, choice);

    *result = (struct hb_hash_result){
        .owners = calloc(keys->count, sizeof(*result->owners)),
        .counts = calloc(pool->count, sizeof(*result->counts)),
    };
    if (!result->owners || !result->counts)
        return hb_hash_no_memory(progress->ctl);
    if (keys->numbers)
        measure_numbers(choice, &request, keys, result);
    else
        measure_texts(progress, choice, &request, keys, result);
    if (result->error == HB_TABLE_NO_MEMORY ||
        (result->error == HB_TABLE_OK && !result->refusal && !count_keys(pool, keys, result)))
        return hb_hash_no_memory(progress->ctl);
    return HB_EXIT_OK;
}

void hb_hash_result_free(struct hb_hash_result *result)
{
    free(result->owners);
    free(result->counts);
    *result = (struct hb_hash_result){0};
}

const char *hb_hash_why(const struct hb_hash_pool *pool, const struct hb_hash_choice *choice,
                        const struct hb_hash_result *result, char text[HB_TABLE_EXPLANATION])
{
    struct hb_table_request request = hb_hash_request(pool, choice);

    if (result->refusal)
        return result->refusal;
    return hb_table_explain(&request, result->error, text, HB_TABLE_EXPLANATION);
}
