/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl hash owner: who has a key, by every method, and how that comes about. */
#include <inttypes.h>
#include <string.h>

#include "hash_measure.h"
#include "hashing/ring.h"
#include "json.h"

/* Where the ring's key and token lie. */
static void explain_ring(const struct hb_table_request *request, const char *key, char *text,
                         size_t size)
{
    bool ketama = request->options.ketama;
    uint32_t position = ketama ? hb_ketama_hash(key, strlen(key)) : hb_h32(key, strlen(key));
    struct hb_ring_map *ring;

    if (hb_ring_from_members(request, hb_ring_hash_h32, &ring) != HB_TABLE_OK)
        return;
    snprintf(text, size, "position %" PRIu32 ", the next token is at %" PRIu32, position,
             ring->points[hb_ring_find(ring, position)].position);
    hb_ring_free(ring);
}

static void explain(const struct hb_hash_choice *choice, const struct hb_table_request *request,
                    uint32_t weighted, const char *key, char *text, size_t size)
{
    uint32_t hash = hb_h32(key, strlen(key));

    *text = '\0';
    if (choice->method->algorithm == HB_ALGORITHM_RING)
        explain_ring(request, key, text, size);
    else if (choice->method->uses_table)
        snprintf(text, size, "slot %" PRIu64 " of %" PRIu32, (uint64_t)hash * request->slots >> 32,
                 request->slots);
    else if (choice->method->algorithm == HB_ALGORITHM_RENDEZVOUS)
        snprintf(text, size, "the best of %" PRIu32 " scores", weighted);
    else if (choice->method->algorithm == HB_ALGORITHM_JUMP)
        snprintf(text, size, "a bucket of %" PRIu32 "%s", request->count,
                 request->options.jump_replacement ? ", handed on where it is empty" : "");
    else
        snprintf(text, size, "hash modulo the sum of weights");
}

static json_t *describe(const struct hb_hash_choice *choice, const struct hb_hash_pool *pool,
                        const char *key)
{
    struct hb_table_request request = hb_hash_request(pool, choice);
    json_t *row = json_pack("{s:s}", "name", choice->name);
    struct hb_hash_result result = {0};
    char text[HB_TABLE_EXPLANATION];
    void *state;

    result.error = hb_hash_prepare(choice, &request, &state);
    if (result.error == HB_TABLE_OK) {
        uint32_t owner = choice->method->owner(state, key, strlen(key));

        choice->method->release(state);
        explain(choice, &request, hb_hash_pool_weighted(pool), key, text, sizeof(text));
        json_object_update_new(row,
                               json_pack("{s:s, s:s, s:s}", "owner", pool->backends[owner].name,
                                         "zone", pool->backends[owner].zone, "how", text));
    } else {
        json_object_set_new(row, "error", json_string(hb_hash_why(pool, choice, &result, text)));
    }
    return row;
}

void hb_show_hash_owner(const struct hb_screen *screen, const json_t *document)
{
    static const struct hb_column columns[] = {
        {"METHOD", false, 0}, {"OWNER", false, 0}, {"HOW", false, 20 | HB_FOLD}};
    struct hb_table *table = hb_table_new(columns, 3);
    const json_t *row;
    size_t i;

    hb_print(screen, HB_PLAIN, "%s", hb_json_text(document, "key"));
    fprintf(screen->out, " has the hash %" PRIu64 "; %" PRIu64 " backends\n\n",
            hb_json_count(document, "hash"), hb_json_count(document, "backends"));
    json_array_foreach (hb_json_at(document, "methods"), i, row) {
        bool good = !hb_json_has(row, "error");

        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(row, "name"));
        hb_table_add(table, good ? HB_BOLD : HB_YELLOW, "%s", hb_json_text(row, "owner"));
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(row, good ? "how" : "error"));
    }
    hb_table_finish(table, screen);
}

int hb_ctl_hash_owner(const struct hb_ctl *ctl)
{
    const char *key = ctl->arguments[0];
    struct hb_hash_choices choices;
    struct hb_hash_pool pool = {0};
    json_t *document, *methods = json_array(), *row;
    int status = hb_hash_choose(ctl, &choices);
    size_t i, good = 0;

    if (status == HB_EXIT_OK)
        status = hb_hash_pool_load(ctl, 10, &pool);
    if (status == HB_EXIT_OK)
        status = hb_hash_pool_vnodes(ctl, &pool);
    for (i = 0; status == HB_EXIT_OK && i < choices.count; i++)
        json_array_append_new(methods, describe(&choices.row[i], &pool, key));
    if (status == HB_EXIT_OK) {
        json_array_foreach (methods, i, row)
            good += !json_object_get(row, "error");
        status = good > 0 ? HB_EXIT_OK : HB_EXIT_FAILED;
        document = json_pack("{s:s, s:I, s:I, s:O}", "key", key, "hash",
                             (json_int_t)hb_h32(key, strlen(key)), "backends",
                             (json_int_t)hb_hash_pool_weighted(&pool), "methods", methods);
        if (!document)
            status = hb_hash_refuse(ctl, HB_EXIT_USAGE, "the key is not UTF-8");
        else if (ctl->json)
            hb_hash_print_json(ctl, json_incref(document));
        else
            hb_show_hash_owner(&ctl->screen, document);
        json_decref(document);
    }
    json_decref(methods);
    hb_hash_pool_free(&pool);
    return status;
}
