/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl hash compare: the same change, by every method. */
#include <inttypes.h>
#include <string.h>

#include "format.h"
#include "hash_measure.h"
#include "json.h"

#define KEYS_SHOWN 64 /* a few keys are shown one by one */

struct comparison {
    const struct hb_ctl *ctl;
    struct hb_hash_progress progress;
    struct hb_hash_pool before, after;
    struct hb_hash_keys keys;
    double hit; /* ratio of a cache before the change */
    double minimum;
};

/* ---- measuring ---- */

/* --hit 0.95 */
static int read_hit(const struct hb_ctl *ctl, double *hit)
{
    const char *text = ctl->hash.hit;
    char *end;

    *hit = 0.95;
    if (!text)
        return HB_EXIT_OK;
    *hit = strtod(text, &end);
    if (*end != '\0' || !(*hit > 0 && *hit < 1))
        return hb_hash_refuse(ctl, HB_EXIT_USAGE,
                              "--hit %s: expected a ratio between 0 and 1, such as 0.95", text);
    return HB_EXIT_OK;
}

static json_t *counts_json(const struct hb_hash_pool *pool, const uint32_t *counts)
{
    json_t *object = json_object();
    uint32_t i;

    for (i = 0; i < pool->count; i++) {
        if (pool->members[i].weight > 0)
            json_object_set_new(object, pool->backends[i].name, json_integer(counts[i]));
    }
    return object;
}

static json_t *shares_json(const struct hb_hash_pool *pool, const struct hb_hash_result *result)
{
    const struct hb_share_figures *shares = &result->shares;

    return json_pack("{s:I, s:I, s:f, s:f, s:o}", "min", (json_int_t)shares->min, "max",
                     (json_int_t)shares->max, "mean", shares->mean, "sd", shares->sd, "counts",
                     counts_json(pool, result->counts));
}

/* A cache behind each backend: a key that moved is not there, so the hits that are left are those
 * on keys that stayed. */
static void add_cache_view(json_t *row, double hit, double moved_share)
{
    double hit_after = hit * (1 - moved_share);

    json_object_set_new(row, "hit_after", json_real(hit_after));
    json_object_set_new(row, "misses_grow", json_real((1 - hit_after) / (1 - hit)));
}

static json_t *owners_json(const struct comparison *comparison, const struct hb_hash_result *before,
                           const struct hb_hash_result *after)
{
    const struct hb_hash_keys *keys = &comparison->keys;
    json_t *array = json_array();
    uint32_t i;

    for (i = 0; i < keys->count; i++) {
        char number[24];

        snprintf(number, sizeof(number), "%" PRIu64, keys->numbers[i]);
        json_array_append_new(array, json_pack("{s:s, s:s, s:s}", "hash", number, "before",
                                               comparison->before.backends[before->owners[i]].name,
                                               "after",
                                               comparison->after.backends[after->owners[i]].name));
    }
    return array;
}

static enum hb_table_error describe(const struct comparison *comparison,
                                    const struct hb_hash_choice *choice,
                                    const struct hb_hash_result *before,
                                    const struct hb_hash_result *after, json_t *row)
{
    struct hb_table_request from = hb_hash_request(&comparison->before, choice);
    struct hb_table_request to = hb_hash_request(&comparison->after, choice);
    uint32_t count = comparison->keys.count;
    struct hb_key_moves moves;
    enum hb_table_error error =
        hb_key_moves(&from, before->owners, &to, after->owners, count, &moves);

    if (error != HB_TABLE_OK)
        return error;
    json_object_update_new(
        row, json_pack("{s:I, s:f, s:I, s:I, s:I}", "moved", (json_int_t)moves.moved, "moved_share",
                       (double)moves.moved / count, "to_new", (json_int_t)moves.to_new, "from_gone",
                       (json_int_t)moves.from_gone, "between_old", (json_int_t)moves.between_old));
    add_cache_view(row, comparison->hit, (double)moves.moved / count);
    json_object_update_new(
        row, json_pack("{s:o, s:o, s:f, s:f, s:I, s:b}", "before",
                       shares_json(&comparison->before, before), "after",
                       shares_json(&comparison->after, after), "build_ms", after->build_s * 1e3,
                       "lookup_ns", after->lookup_ns, "memory_bytes", (json_int_t)after->memory,
                       "jump_replacement", before->replacement || after->replacement));
    if (comparison->keys.numbers && count <= KEYS_SHOWN)
        json_object_set_new(row, "owners", owners_json(comparison, before, after));
    return HB_TABLE_OK;
}

/* One method's row: figures, or "error" when it cannot do this. */
static int compare_one(struct comparison *comparison, const struct hb_hash_choice *choice,
                       json_t *rows)
{
    json_t *row = json_pack("{s:s}", "name", choice->name);
    struct hb_hash_result before = {0}, after = {0};
    const struct hb_hash_pool *failed = NULL;
    char text[HB_TABLE_EXPLANATION];
    int status = hb_hash_measure(&comparison->progress, choice, &comparison->before,
                                 &comparison->keys, &before);

    if (status == HB_EXIT_OK && (before.error != HB_TABLE_OK || before.refusal))
        failed = &comparison->before;
    if (status == HB_EXIT_OK && !failed) {
        status = hb_hash_measure(&comparison->progress, choice, &comparison->after,
                                 &comparison->keys, &after);
        if (status == HB_EXIT_OK && after.error == HB_TABLE_OK && !after.refusal)
            after.error = describe(comparison, choice, &before, &after, row);
        if (status == HB_EXIT_OK && (after.error != HB_TABLE_OK || after.refusal))
            failed = &comparison->after;
    }
    if (failed)
        json_object_set_new(
            row, "error",
            json_string(hb_hash_why(failed, choice,
                                    failed == &comparison->before ? &before : &after, text)));
    json_array_append_new(rows, row);
    hb_hash_result_free(&before);
    hb_hash_result_free(&after);
    return status;
}

static int find_minimum(struct comparison *comparison)
{
    const struct hb_hash_choice none = {0};
    struct hb_table_request from = hb_hash_request(&comparison->before, &none);
    struct hb_table_request to = hb_hash_request(&comparison->after, &none);
    enum hb_table_error error = hb_minimum_moved(&from, &to, &comparison->minimum);

    if (error == HB_TABLE_OK)
        return HB_EXIT_OK;
    return hb_hash_refuse(comparison->ctl, HB_EXIT_FAILED, "--backends: %s",
                          error == HB_TABLE_DUPLICATE ? "one of them is listed twice; remove it"
                                                      : hb_table_error_text(error));
}

/* ---- showing ---- */

static void show_moves(const struct hb_screen *screen, const json_t *document)
{
    static const struct hb_column columns[] = {
        {"METHOD", false, 0},     {"MOVED", true, 0},     {"OF ALL", true, 0}, {"TO NEW", true, 0},
        {"BETWEEN OLD", true, 0}, {"HIT RATIO", true, 0}, {"MISSES", true, 0},
    };
    struct hb_table *table = hb_table_new(columns, 7);
    const json_t *row;
    size_t i;

    json_array_foreach (hb_json_at(document, "methods"), i, row) {
        if (hb_json_has(row, "error"))
            continue;
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(row, "name"));
        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(row, "moved"));
        hb_table_add(table, HB_PLAIN, "%.1f %%", hb_json_real(row, "moved_share") * 100);
        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(row, "to_new"));
        hb_table_add(table, hb_json_count(row, "between_old") > 0 ? HB_YELLOW : HB_PLAIN,
                     "%" PRIu64, hb_json_count(row, "between_old"));
        hb_table_add(table, HB_PLAIN, "%.1f %%", hb_json_real(row, "hit_after") * 100);
        hb_table_add(table, HB_PLAIN, "x %.2f", hb_json_real(row, "misses_grow"));
    }
    hb_table_add(table, HB_PLAIN, "(minimum)");
    hb_table_add(table, HB_PLAIN, "%.0f", hb_json_real(document, "minimum.moved"));
    hb_table_add(table, HB_PLAIN, "%.1f %%", hb_json_real(document, "minimum.moved_share") * 100);
    hb_table_add(table, HB_PLAIN, "-");
    hb_table_add(table, HB_PLAIN, "0");
    hb_table_add(table, HB_PLAIN, "%.1f %%", hb_json_real(document, "minimum.hit_after") * 100);
    hb_table_add(table, HB_PLAIN, "x %.2f", hb_json_real(document, "minimum.misses_grow"));
    hb_table_finish(table, screen);
}

static void show_shares(const struct hb_screen *screen, const json_t *document)
{
    static const struct hb_column columns[] = {
        {"METHOD", false, 0}, {"MIN", true, 0},   {"MAX", true, 0},    {"SD", true, 0},
        {"OF MEAN", true, 0}, {"BUILD", true, 0}, {"LOOKUP", true, 0}, {"MEMORY", true, 0},
    };
    struct hb_table *table = hb_table_new(columns, 8);
    struct hb_text text;
    const json_t *row;
    size_t i;

    json_array_foreach (hb_json_at(document, "methods"), i, row) {
        if (hb_json_has(row, "error"))
            continue;
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(row, "name"));
        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(row, "after.min"));
        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(row, "after.max"));
        hb_table_add(table, HB_PLAIN, "%.1f", hb_json_real(row, "after.sd"));
        hb_table_add(table, HB_PLAIN, "%s",
                     hb_format_percent(&text, hb_json_real(row, "after.sd"),
                                       hb_json_real(row, "after.mean")));
        hb_table_add(table, HB_PLAIN, "%.3f ms", hb_json_real(row, "build_ms"));
        hb_table_add(table, HB_PLAIN, "%.0f ns", hb_json_real(row, "lookup_ns"));
        hb_table_add(table, HB_PLAIN, "%s",
                     hb_format_bytes(&text, hb_json_count(row, "memory_bytes")));
    }
    hb_table_finish(table, screen);
}

static void show_owners(const struct hb_screen *screen, const json_t *document)
{
    static const struct hb_column columns[] = {
        {"METHOD", false, 0}, {"HASH", true, 0}, {"BEFORE", false, 0}, {"AFTER", false, 0}};
    struct hb_table *table = hb_table_new(columns, 4);
    const json_t *row, *key;
    size_t i, j;

    json_array_foreach (hb_json_at(document, "methods"), i, row) {
        json_array_foreach (hb_json_at(row, "owners"), j, key) {
            const char *before = hb_json_text(key, "before"), *after = hb_json_text(key, "after");

            hb_table_add(table, HB_PLAIN, "%s", hb_json_text(row, "name"));
            hb_table_add(table, HB_PLAIN, "%s", hb_json_text(key, "hash"));
            hb_table_add(table, HB_PLAIN, "%s", before);
            hb_table_add(table, strcmp(before, after) == 0 ? HB_PLAIN : HB_YELLOW, "%s", after);
        }
    }
    hb_table_finish(table, screen);
}

/* What a method cannot do, or does in its own way. */
static void show_notes(const struct hb_screen *screen, const json_t *document)
{
    const json_t *row;
    size_t i;

    json_array_foreach (hb_json_at(document, "methods"), i, row) {
        bool failed = hb_json_has(row, "error");

        if (!failed && !hb_json_flag(row, "jump_replacement"))
            continue;
        fputc('\n', screen->out);
        hb_print(screen, failed ? HB_YELLOW : HB_PLAIN, "%s: %s%s", hb_json_text(row, "name"),
                 failed ? "not possible: " : "with jump_replacement: ",
                 failed ? hb_json_text(row, "error")
                        : "by itself it can lose only the backend of the last bucket");
        fputc('\n', screen->out);
    }
}

void hb_show_hash_compare(const struct hb_screen *screen, const json_t *document)
{
    const json_t *row;
    bool any = false;
    size_t i;

    hb_print(screen, HB_PLAIN,
             "%" PRIu64 " backend%s, then %" PRIu64 " (%s); %" PRIu64 " keys (%s)",
             hb_json_count(document, "backends_before"),
             hb_plural(hb_json_count(document, "backends_before")),
             hb_json_count(document, "backends_after"), hb_json_text(document, "change"),
             hb_json_count(document, "keys"), hb_json_text(document, "keys_from"));
    fprintf(screen->out,
            "\n%" PRIu64 " virtual nodes for each unit of weight; tables of %" PRIu64 " slots\n",
            hb_json_count(document, "virtual_nodes"), hb_json_count(document, "table_size"));
    json_array_foreach (hb_json_at(document, "methods"), i, row)
        any |= !hb_json_has(row, "error");
    if (any) {
        fprintf(screen->out, "\nKeys that move, and a cache that had %.1f %% of hits:\n",
                hb_json_real(document, "hit_before") * 100);
        show_moves(screen, document);
        if (hb_json_flag(document, "owners_listed")) {
            fputc('\n', screen->out);
            show_owners(screen, document);
        } else {
            fprintf(screen->out,
                    "\nKeys for each backend after the change (mean %.1f), and costs:\n",
                    hb_json_real(document, "mean_after"));
            show_shares(screen, document);
        }
    }
    show_notes(screen, document);
}

/* ---- all of it ---- */

static json_t *make_document(const struct comparison *comparison)
{
    uint32_t after = hb_hash_pool_weighted(&comparison->after);
    uint32_t count = comparison->keys.count;
    json_t *minimum = json_pack("{s:f, s:f}", "moved", comparison->minimum * count, "moved_share",
                                comparison->minimum);
    char from[64];

    add_cache_view(minimum, comparison->hit, comparison->minimum);
    if (comparison->keys.numbers)
        snprintf(from, sizeof(from), "given as hashes");
    else if (comparison->keys.file)
        snprintf(from, sizeof(from), "from a file");
    else
        snprintf(from, sizeof(from), "seed %" PRIu32, comparison->keys.seed);
    return json_pack("{s:I, s:I, s:s, s:I, s:s, s:I, s:I, s:I, s:f, s:f, s:b, s:o}",
                     "backends_before", (json_int_t)hb_hash_pool_weighted(&comparison->before),
                     "backends_after", (json_int_t)after, "change", comparison->ctl->hash.change,
                     "keys", (json_int_t)count, "keys_from", from, "seed",
                     (json_int_t)comparison->keys.seed, "virtual_nodes",
                     (json_int_t)comparison->before.virtual_nodes, "table_size",
                     (json_int_t)comparison->before.table_size, "hit_before", comparison->hit,
                     "mean_after", (double)count / after, "owners_listed",
                     comparison->keys.numbers != NULL && count <= KEYS_SHOWN, "minimum", minimum);
}

static int load(struct comparison *comparison, struct hb_hash_choices *choices)
{
    const struct hb_ctl *ctl = comparison->ctl;
    int status = hb_hash_choose(ctl, choices);

    if (status == HB_EXIT_OK && !ctl->hash.change)
        status = hb_hash_refuse(ctl, HB_EXIT_USAGE,
                                "hash compare needs the change to look at, such as --change add:1");
    if (status == HB_EXIT_OK)
        status = read_hit(ctl, &comparison->hit);
    if (status == HB_EXIT_OK)
        status = hb_hash_pool_load(ctl, 10, &comparison->before);
    if (status == HB_EXIT_OK)
        status = hb_hash_pool_vnodes(ctl, &comparison->before);
    if (status == HB_EXIT_OK)
        status =
            hb_hash_pool_change(ctl, &comparison->before, ctl->hash.change, &comparison->after);
    if (status == HB_EXIT_OK)
        status = find_minimum(comparison);
    if (status == HB_EXIT_OK)
        status = hb_hash_keys_load(ctl, HB_HASH_KEYS, &comparison->keys);
    return status;
}

int hb_ctl_hash_compare(const struct hb_ctl *ctl)
{
    struct comparison comparison = {.ctl = ctl};
    json_t *document, *rows = json_array(), *row;
    struct hb_hash_choices choices;
    int status = load(&comparison, &choices);
    size_t i, good = 0;

    hb_hash_progress_start(&comparison.progress, ctl);
    for (i = 0; status == HB_EXIT_OK && i < choices.count; i++)
        status = compare_one(&comparison, &choices.row[i], rows);
    hb_hash_progress_end(&comparison.progress);
    if (status == HB_EXIT_OK) {
        json_array_foreach (rows, i, row)
            good += !json_object_get(row, "error");
        document = make_document(&comparison);
        json_object_set(document, "methods", rows);
        status = good > 0 ? HB_EXIT_OK : HB_EXIT_FAILED;
        if (ctl->json) {
            hb_hash_print_json(ctl, document);
        } else {
            hb_show_hash_compare(&ctl->screen, document);
            json_decref(document);
        }
    }
    json_decref(rows);
    hb_hash_keys_free(&comparison.keys);
    hb_hash_pool_free(&comparison.before);
    hb_hash_pool_free(&comparison.after);
    return status;
}
