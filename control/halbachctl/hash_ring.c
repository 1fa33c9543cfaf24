/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl hash ring: a ring token by token, and who owns which position. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "hash_small_ring.h"
#include "json.h"

#define POINTS_SHOWN 64

static json_t *tokens_json(const struct hb_ring_map *ring)
{
    json_t *array = json_array();
    uint32_t i;

    for (i = 0; i < ring->points_count; i++) {
        const struct hb_ring_point *point = &ring->points[i];
        uint64_t size = hb_hash_point_size(ring, i);
        struct hb_ring_interval owned = {.to = point->position, .empty = size == 0};
        char text[HB_RING_INTERVAL_TEXT];

        owned.after = ring->points[i > 0 ? i - 1 : ring->points_count - 1].position;
        json_array_append_new(
            array, json_pack("{s:I, s:s, s:s, s:I, s:f}", "token", (json_int_t)point->position,
                             "backend", ring->names[point->member], "owns",
                             size > 0 ? hb_ring_print_interval(&owned, text) : "-", "size",
                             (json_int_t)size, "share", (double)size / (double)ring->space));
    }
    return array;
}

static json_t *backends_json(const struct hb_ring_map *ring)
{
    uint64_t *sizes = calloc(ring->members_count, sizeof(*sizes));
    uint32_t *tokens = calloc(ring->members_count, sizeof(*tokens)), i;
    json_t *array = json_array();

    for (i = 0; sizes && tokens && i < ring->points_count; i++) {
        sizes[ring->points[i].member] += hb_hash_point_size(ring, i);
        tokens[ring->points[i].member]++;
    }
    for (i = 0; sizes && tokens && i < ring->members_count; i++)
        json_array_append_new(array, json_pack("{s:s, s:I, s:f}", "backend", ring->names[i],
                                               "tokens", (json_int_t)tokens[i], "share",
                                               (double)sizes[i] / (double)ring->space));
    free(sizes);
    free(tokens);
    return array;
}

/* --positions 150,250: who has them, before and after. */
static int add_positions(const struct hb_ctl *ctl, const struct hb_hash_rings *rings,
                         json_t *document)
{
    json_t *array = json_array();
    uint64_t *positions = NULL;
    int status = HB_EXIT_OK;
    uint32_t count = 0, i;

    if (ctl->hash.positions)
        status = hb_hash_numbers(ctl, "positions", ctl->hash.positions, 0, rings->before->space - 1,
                                 &positions, &count);
    for (i = 0; status == HB_EXIT_OK && i < count; i++) {
        const struct hb_ring_map *before = rings->before, *after = rings->after;
        json_t *row = json_pack("{s:I, s:s}", "position", (json_int_t)positions[i], "owner",
                                before->names[hb_ring_owner(before, positions[i])]);

        if (after)
            json_object_set_new(row, "owner_after",
                                json_string(after->names[hb_ring_owner(after, positions[i])]));
        json_array_append_new(array, row);
    }
    json_object_set_new(document, "positions", array);
    free(positions);
    return status;
}

static void show_tokens(const struct hb_screen *screen, const json_t *document)
{
    static const struct hb_column columns[] = {
        {"TOKEN", true, 0}, {"BACKEND", false, 0}, {"OWNS", false, 0}, {"SHARE", true, 0}};
    struct hb_table *table = hb_table_new(columns, 4);
    const json_t *row;
    size_t i;

    json_array_foreach (hb_json_at(document, "tokens"), i, row) {
        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(row, "token"));
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(row, "backend"));
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(row, "owns"));
        hb_table_add(table, HB_PLAIN, "%.1f %%", hb_json_real(row, "share") * 100);
    }
    hb_table_finish(table, screen);
}

static void show_backends(const struct hb_screen *screen, const json_t *document)
{
    static const struct hb_column columns[] = {
        {"BACKEND", false, 0}, {"TOKENS", true, 0}, {"SHARE", true, 0}};
    struct hb_table *table = hb_table_new(columns, 3);
    const json_t *row;
    size_t i;

    json_array_foreach (hb_json_at(document, "backends"), i, row) {
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(row, "backend"));
        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(row, "tokens"));
        hb_table_add(table, HB_PLAIN, "%.1f %%", hb_json_real(row, "share") * 100);
    }
    hb_table_finish(table, screen);
}

static void show_positions(const struct hb_screen *screen, const json_t *document)
{
    static const struct hb_column columns[] = {
        {"POSITION", true, 0}, {"OWNER", false, 0}, {"AFTER", false, 0}};
    const json_t *rows = hb_json_at(document, "positions"), *row;
    struct hb_table *table;
    size_t i;

    if (json_array_size(rows) == 0)
        return;
    fputc('\n', screen->out);
    table = hb_table_new(columns, hb_json_has(json_array_get(rows, 0), "owner_after") ? 3 : 2);
    json_array_foreach (rows, i, row) {
        const char *owner = hb_json_text(row, "owner"), *after = hb_json_text(row, "owner_after");

        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(row, "position"));
        hb_table_add(table, HB_PLAIN, "%s", owner);
        if (hb_json_has(row, "owner_after"))
            hb_table_add(table, strcmp(owner, after) == 0 ? HB_PLAIN : HB_YELLOW, "%s", after);
    }
    hb_table_finish(table, screen);
}

void hb_show_hash_ring(const struct hb_screen *screen, const json_t *document)
{
    size_t tokens = json_array_size(hb_json_at(document, "tokens"));

    fprintf(screen->out, "A ring of %" PRIu64 " positions, %zu token%s, %zu backend%s\n\n",
            hb_json_count(document, "space"), tokens, hb_plural(tokens),
            json_array_size(hb_json_at(document, "backends")),
            hb_plural(json_array_size(hb_json_at(document, "backends"))));
    if (tokens <= POINTS_SHOWN)
        show_tokens(screen, document);
    if (tokens > json_array_size(hb_json_at(document, "backends"))) {
        if (tokens <= POINTS_SHOWN)
            fputc('\n', screen->out);
        show_backends(screen, document);
    }
    show_positions(screen, document);
    if (hb_json_has(document, "handovers")) {
        fputc('\n', screen->out);
        hb_hash_show_handovers(screen, document);
    }
}

int hb_ctl_hash_ring(const struct hb_ctl *ctl)
{
    struct hb_hash_rings rings = {0};
    json_t *document = NULL;
    int status = hb_hash_rings_load(ctl, 4, 8, &rings);

    if (status == HB_EXIT_OK) {
        document = json_pack("{s:I, s:o, s:o}", "space", (json_int_t)rings.before->space, "tokens",
                             tokens_json(rings.before), "backends", backends_json(rings.before));
        if (rings.after)
            json_object_update_new(document,
                                   json_pack("{s:I, s:f, s:o}", "moved", (json_int_t)rings.moved,
                                             "moved_share",
                                             (double)rings.moved / (double)rings.before->space,
                                             "handovers", hb_hash_handovers_json(&rings)));
        status = add_positions(ctl, &rings, document);
    }
    if (status == HB_EXIT_OK && ctl->json)
        hb_hash_print_json(ctl, json_incref(document));
    else if (status == HB_EXIT_OK)
        hb_show_hash_ring(&ctl->screen, document);
    json_decref(document);
    hb_hash_rings_free(&rings);
    return status;
}
