/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GET /v1/talkers (docs/api.md): the sources that send most, from the workers' sketches.
 *
 * A source may be in the sketches of several workers; what is told is the sum, and so are the
 * bounds: `count` is at most by `error` too high. A worker whose sketch is full may have left out
 * its part of a source, at most its smallest count: that is `missed`.
 */
#include <stdlib.h>
#include <string.h>

#include "api_internal.h"

struct talker {
    struct hb_talker sum;
    uint64_t missed;  /* what other workers may have seen of it */
    uint64_t workers; /* bit mask of those that know it (the first 64) */
};

struct sketch {
    struct talker *talkers;
    uint32_t count;
    uint64_t sampled;
    uint64_t floor[64]; /* of each worker: the least count of a full sketch, else 0 */
};

/* Copies an entry that the worker is not writing; false when it is free or always being written. */
static bool read_entry(const struct hb_talker *from, struct hb_talker *to)
{
    for (int tries = 0; tries < 1000; tries++) {
        uint32_t before = __atomic_load_n(&from->version, __ATOMIC_ACQUIRE);

        memcpy(to, from, sizeof(*to));
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (before % 2 == 0 && __atomic_load_n(&from->version, __ATOMIC_RELAXED) == before)
            return to->family != 0;
    }
    return false;
}

static int compare_keys(const struct hb_talker *a, const struct hb_talker *b)
{
    int order = memcmp(a->source, b->source, sizeof(a->source));

    if (order != 0)
        return order;
    return a->family != b->family ? a->family - b->family : a->service - b->service;
}

static int by_key(const void *a, const void *b)
{
    return compare_keys(&((const struct talker *)a)->sum, &((const struct talker *)b)->sum);
}

static int by_count(const void *a, const void *b)
{
    uint64_t left = ((const struct talker *)a)->sum.count;
    uint64_t right = ((const struct talker *)b)->sum.count;

    return left != right ? (left < right) - (left > right) : by_key(a, b);
}

static void read_worker(struct sketch *sketch, const struct hb_counters_header *region, uint32_t w)
{
    const struct hb_talker *entries = hb_counters_talkers(region, w);
    uint64_t least = UINT64_MAX;
    uint32_t found = 0;

    for (uint32_t e = 0; e < region->talkers_max; e++) {
        struct talker *talker = &sketch->talkers[sketch->count];

        if (!read_entry(&entries[e], &talker->sum))
            continue;
        talker->missed = 0;
        talker->workers = UINT64_C(1) << (w % 64);
        least = talker->sum.count < least ? talker->sum.count : least;
        sketch->count++;
        found++;
    }
    if (found == region->talkers_max && w < 64)
        sketch->floor[w] = least;
    sketch->sampled += __atomic_load_n(&hb_counters_worker(region, w)->sampled, __ATOMIC_RELAXED);
}

/* Adds up what several workers know of one source. */
static void merge(struct sketch *sketch, uint32_t workers)
{
    uint32_t kept = 0;

    qsort(sketch->talkers, sketch->count, sizeof(*sketch->talkers), by_key);
    for (uint32_t t = 0; t < sketch->count; t++) {
        const struct talker *next = &sketch->talkers[t];
        struct talker *last = kept > 0 ? &sketch->talkers[kept - 1] : NULL;

        if (last == NULL || compare_keys(&last->sum, &next->sum) != 0) {
            sketch->talkers[kept++] = *next;
            continue;
        }
        last->sum.count += next->sum.count;
        last->sum.error += next->sum.error;
        last->sum.bytes += next->sum.bytes;
        last->workers |= next->workers;
    }
    sketch->count = kept;
    for (uint32_t t = 0; t < kept; t++) {
        for (uint32_t w = 0; w < workers && w < 64; w++) {
            if ((sketch->talkers[t].workers >> w & 1) == 0)
                sketch->talkers[t].missed += sketch->floor[w];
        }
    }
    qsort(sketch->talkers, sketch->count, sizeof(*sketch->talkers), by_count);
}

static json_t *describe(const struct hb_model *model, const struct talker *talker)
{
    const struct hb_model_service *service = hb_model_service_by_id(model, talker->sum.service);
    struct hb_address source = {.family = talker->sum.family};

    memcpy(source.bytes, talker->sum.source, sizeof(source.bytes));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "source", hb_json_address(&source),
                     "service", service ? json_string(service->name) : json_null(), "count",
                     hb_json_count(talker->sum.count), "error", hb_json_count(talker->sum.error),
                     "missed", hb_json_count(talker->missed), "bytes",
                     hb_json_count(talker->sum.bytes));
}

void hb_api_get_talkers(struct hb_api_call *call)
{
    const struct hb_counters_header *region = hb_publisher_counters(call->control->publisher);
    uint32_t workers = region ? region->workers : 0;
    struct sketch sketch = {0};
    json_t *list = json_array();

    sketch.talkers =
        calloc((size_t)workers * (region ? region->talkers_max : 0) + 1, sizeof(*sketch.talkers));
    if (sketch.talkers == NULL) {
        json_decref(list);
        hb_api_answer(call, 500, NULL);
        return;
    }
    for (uint32_t w = 0; w < workers; w++)
        read_worker(&sketch, region, w);
    merge(&sketch, workers);
    for (uint32_t t = 0; t < sketch.count && t < HB_TALKERS_MAX; t++)
        json_array_append_new(list, describe(call->control->model, &sketch.talkers[t]));
    free(sketch.talkers);
    hb_api_answer(
        call, 200,
        json_pack("{s:o, s:o}", "sampled", hb_json_count(sketch.sampled), "talkers", list));
}
