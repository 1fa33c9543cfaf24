/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl hash balance: how evenly a ring spreads keys, by number of virtual nodes. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "format.h"
#include "hash_measure.h"
#include "hashing/ring.h"
#include "json.h"

static json_t *describe(const struct hb_hash_pool *pool, const struct hb_hash_result *result)
{
    double weights = 0, backends = hb_hash_pool_weighted(pool);
    json_t *counts = json_array();
    uint32_t i;

    for (i = 0; i < pool->count; i++) {
        weights += pool->members[i].weight;
        if (pool->members[i].weight > 0)
            json_array_append_new(counts, json_integer(result->counts[i]));
    }
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:I, s:o}", "vnodes",
        (json_int_t)pool->virtual_nodes, "points", (json_int_t)(weights * pool->virtual_nodes),
        "min", (json_int_t)result->shares.min, "max", (json_int_t)result->shares.max, "mean",
        result->shares.mean, "sd", result->shares.sd, "sd_over_mean",
        result->shares.sd / result->shares.mean, "theory",
        sqrt((backends - 1) / (weights * pool->virtual_nodes)), "build_ms", result->build_s * 1e3,
        "memory_bytes", (json_int_t)result->memory, "counts", counts);
}

void hb_show_hash_balance(const struct hb_screen *screen, const json_t *document)
{
    static const struct hb_column columns[] = {
        {"VIRTUAL NODES", true, 0}, {"POINTS", true, 0}, {"MIN", true, 0},
        {"MAX", true, 0},           {"SD", true, 0},     {"OF MEAN", true, 0},
        {"THEORY", true, 0},        {"BUILD", true, 0},  {"MEMORY", true, 0},
    };
    struct hb_table *table = hb_table_new(columns, 9);
    struct hb_text text;
    const json_t *row;
    size_t i;

    fprintf(screen->out, "A ring of %" PRIu64 " backends, %" PRIu64 " keys, %.1f for each\n\n",
            hb_json_count(document, "backends"), hb_json_count(document, "keys"),
            hb_json_real(document, "mean"));
    json_array_foreach (hb_json_at(document, "rings"), i, row) {
        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(row, "vnodes"));
        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(row, "points"));
        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(row, "min"));
        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(row, "max"));
        hb_table_add(table, HB_PLAIN, "%.1f", hb_json_real(row, "sd"));
        hb_table_add(table, HB_PLAIN, "%.1f %%", hb_json_real(row, "sd_over_mean") * 100);
        hb_table_add(table, HB_PLAIN, "%.1f %%", hb_json_real(row, "theory") * 100);
        hb_table_add(table, HB_PLAIN, "%.3f ms", hb_json_real(row, "build_ms"));
        hb_table_add(table, HB_PLAIN, "%s",
                     hb_format_bytes(&text, hb_json_count(row, "memory_bytes")));
    }
    hb_table_finish(table, screen);
    fprintf(screen->out,
            "\nTHEORY is sqrt((N - 1) / (N V)). For 5 %% of the mean a ring of so many backends "
            "needs\n%" PRIu64 " virtual nodes each.\n",
            hb_json_count(document, "vnodes_for_5_percent"));
}

static int measure_all(const struct hb_ctl *ctl, struct hb_hash_pool *pool,
                       const struct hb_hash_keys *keys, const uint64_t *vnodes, uint32_t count,
                       json_t *rings)
{
    const struct hb_hash_choice ring = {.name = "ring", .method = hb_hash_method_by_name("ring")};
    struct hb_hash_progress progress;
    struct hb_hash_result result = {0};
    int status = HB_EXIT_OK;
    uint32_t i;

    hb_hash_progress_start(&progress, ctl);
    for (i = 0; status == HB_EXIT_OK && i < count; i++) {
        char text[HB_TABLE_EXPLANATION];

        pool->virtual_nodes = (uint32_t)vnodes[i];
        status = hb_hash_measure(&progress, &ring, pool, keys, &result);
        if (status == HB_EXIT_OK && (result.error != HB_TABLE_OK || result.refusal))
            status = hb_hash_refuse(ctl, HB_EXIT_FAILED, "%" PRIu64 " virtual nodes: %s", vnodes[i],
                                    hb_hash_why(pool, &ring, &result, text));
        if (status == HB_EXIT_OK)
            json_array_append_new(rings, describe(pool, &result));
        hb_hash_result_free(&result);
    }
    hb_hash_progress_end(&progress);
    return status;
}

int hb_ctl_hash_balance(const struct hb_ctl *ctl)
{
    const char *list = ctl->hash.vnodes ? ctl->hash.vnodes : "1,10,100,1000";
    struct hb_hash_keys keys = {0};
    struct hb_hash_pool pool = {0};
    uint64_t *vnodes = NULL;
    uint32_t count = 0;
    json_t *document, *rings = json_array();
    int status =
        hb_hash_numbers(ctl, "vnodes", list, 1, HB_RING_VIRTUAL_NODES_MAX, &vnodes, &count);

    if (status == HB_EXIT_OK)
        status = hb_hash_pool_load(ctl, 10, &pool);
    if (status == HB_EXIT_OK)
        status = hb_hash_keys_load(ctl, HB_HASH_KEYS, &keys);
    if (status == HB_EXIT_OK)
        status = measure_all(ctl, &pool, &keys, vnodes, count, rings);
    if (status == HB_EXIT_OK) {
        uint32_t backends = hb_hash_pool_weighted(&pool);

        document = json_pack("{s:I, s:I, s:I, s:f, s:I, s:O}", "backends", (json_int_t)backends,
                             "keys", (json_int_t)keys.count, "seed", (json_int_t)keys.seed, "mean",
                             (double)keys.count / backends, "vnodes_for_5_percent",
                             (json_int_t)hb_ring_nodes_for(backends, 50), "rings", rings);
        if (ctl->json) {
            hb_hash_print_json(ctl, document);
        } else {
            hb_show_hash_balance(&ctl->screen, document);
            json_decref(document);
        }
    }
    json_decref(rings);
    free(vnodes);
    hb_hash_keys_free(&keys);
    hb_hash_pool_free(&pool);
    return status;
}
