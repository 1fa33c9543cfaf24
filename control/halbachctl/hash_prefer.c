/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl hash prefer: which backends a key prefers, in order. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "hash_measure.h"
#include "hashing/preference.h"
#include "json.h"

struct question {
    const struct hb_hash_pool *pool;
    const char *key;
    const char **zones; /* NULL: they don't matter */
    uint32_t want;
};

static json_t *list_members(const struct hb_hash_pool *pool, const uint32_t *members,
                            uint32_t count)
{
    json_t *array = json_array();
    uint32_t i;

    for (i = 0; i < count; i++) {
        const struct hb_hash_backend *backend = &pool->backends[members[i]];

        json_array_append_new(array, json_pack("{s:s, s:s*}", "backend", backend->name, "zone",
                                               *backend->zone ? backend->zone : NULL));
    }
    return array;
}

static json_t *describe(const struct question *question, const struct hb_hash_choice *choice)
{
    const struct hb_hash_pool *pool = question->pool;
    struct hb_table_request request = hb_hash_request(pool, choice);
    uint32_t *members = calloc(pool->count, sizeof(*members)), count = 0;
    json_t *row = json_pack("{s:s}", "name", choice->name);
    struct hb_hash_result result = {.error = HB_TABLE_NO_MEMORY};
    char text[HB_TABLE_EXPLANATION];
    void *state;

    if (members)
        result.error = hb_hash_prepare(choice, &request, &state);
    if (result.error == HB_TABLE_OK) {
        count = hb_preference(choice->method, state, question->zones, question->key,
                              strlen(question->key), question->want, members);
        choice->method->release(state);
        if (count == 0)
            result.error = HB_TABLE_NO_MEMORY;
    }
    if (result.error == HB_TABLE_OK)
        json_object_set_new(row, "prefers", list_members(pool, members, count));
    else
        json_object_set_new(row, "error", json_string(hb_hash_why(pool, choice, &result, text)));
    free(members);
    return row;
}

static void print_list(const json_t *prefers, char *text, size_t size)
{
    const json_t *member;
    size_t used = 0, i;

    *text = '\0';
    json_array_foreach (prefers, i, member) {
        bool zoned = hb_json_has(member, "zone");

        if (used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s%s%s%s", i > 0 ? ", " : "",
                                     hb_json_text(member, "backend"), zoned ? " (" : "",
                                     zoned ? hb_json_text(member, "zone") : "", zoned ? ")" : "");
    }
}

void hb_show_hash_prefer(const struct hb_screen *screen, const json_t *document)
{
    static const struct hb_column columns[] = {{"METHOD", false, 0}, {"PREFERS", false, 20}};
    struct hb_table *table = hb_table_new(columns, 2);
    const json_t *row;
    size_t i;

    hb_print(screen, HB_PLAIN, "%s", hb_json_text(document, "key"));
    fprintf(screen->out, ": the first %" PRIu64 " of %" PRIu64 " backends%s\n\n",
            hb_json_count(document, "count"), hb_json_count(document, "backends"),
            hb_json_flag(document, "zones") ? ", distinct zones first" : "");
    json_array_foreach (hb_json_at(document, "methods"), i, row) {
        char text[2048];

        print_list(hb_json_at(row, "prefers"), text, sizeof(text));
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(row, "name"));
        if (hb_json_has(row, "error"))
            hb_table_add(table, HB_YELLOW, "%s", hb_json_text(row, "error"));
        else
            hb_table_add(table, HB_PLAIN, "%s", text);
    }
    hb_table_finish(table, screen);
}

static int load(const struct hb_ctl *ctl, struct hb_hash_pool *pool, struct question *question)
{
    uint64_t want = 3;
    int status = hb_hash_pool_load(ctl, 10, pool);
    uint32_t i;

    if (status == HB_EXIT_OK)
        status = hb_hash_pool_vnodes(ctl, pool);
    if (status == HB_EXIT_OK)
        status = hb_hash_number(ctl, "count", ctl->hash.count, 1, HB_BACKENDS_MAX, &want);
    *question = (struct question){.pool = pool, .key = ctl->arguments[0], .want = (uint32_t)want};
    if (status != HB_EXIT_OK || !ctl->hash.zones)
        return status;
    question->zones = calloc(pool->count, sizeof(*question->zones));
    if (!question->zones)
        return hb_hash_no_memory(ctl);
    for (i = 0; i < pool->count; i++)
        question->zones[i] = pool->backends[i].zone;
    return HB_EXIT_OK;
}

int hb_ctl_hash_prefer(const struct hb_ctl *ctl)
{
    struct hb_hash_choices choices;
    struct hb_hash_pool pool = {0};
    struct question question = {0};
    json_t *document, *methods = json_array(), *row;
    int status = hb_hash_choose(ctl, &choices);
    size_t i, good = 0;

    if (status == HB_EXIT_OK)
        status = load(ctl, &pool, &question);
    for (i = 0; status == HB_EXIT_OK && i < choices.count; i++)
        json_array_append_new(methods, describe(&question, &choices.row[i]));
    if (status == HB_EXIT_OK) {
        json_array_foreach (methods, i, row)
            good += !json_object_get(row, "error");
        status = good > 0 ? HB_EXIT_OK : HB_EXIT_FAILED;
        document = json_pack("{s:s, s:I, s:I, s:b, s:O}", "key", question.key, "count",
                             (json_int_t)question.want, "backends",
                             (json_int_t)hb_hash_pool_weighted(&pool), "zones", ctl->hash.zones,
                             "methods", methods);
        if (!document)
            status = hb_hash_refuse(ctl, HB_EXIT_USAGE, "the key is not UTF-8");
        else if (ctl->json)
            hb_hash_print_json(ctl, json_incref(document));
        else
            hb_show_hash_prefer(&ctl->screen, document);
        json_decref(document);
    }
    json_decref(methods);
    free(question.zones);
    hb_hash_pool_free(&pool);
    return status;
}
