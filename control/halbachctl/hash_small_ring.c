/* SPDX-License-Identifier: BSD-3-Clause */
#include "hash_small_ring.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

#define ROWS_SHOWN 40

/* Tokens with names of their own, in the order in which they came. */
struct token_list {
    struct hb_ring_token *tokens;
    uint32_t count, room;
};

static void free_tokens(struct token_list *list)
{
    uint32_t i;

    for (i = 0; i < list->count; i++)
        free((char *)(uintptr_t)list->tokens[i].name);
    free(list->tokens);
    *list = (struct token_list){0};
}

static bool add_token(struct token_list *list, const char *name, uint64_t position)
{
    char *copy = strdup(name);

    if (copy && list->count == list->room) {
        uint32_t room = list->room ? list->room * 2 : 16;
        struct hb_ring_token *tokens = reallocarray(list->tokens, room, sizeof(*tokens));

        if (tokens) {
            list->tokens = tokens;
            list->room = room;
        }
    }
    if (!copy || list->count == list->room) {
        free(copy);
        return false;
    }
    list->tokens[list->count++] = (struct hb_ring_token){.name = copy, .position = position};
    return true;
}

/* ---- what is typed ---- */

/* "A=100" or "A@100" */
static int add_typed(const struct hb_ctl *ctl, const char *option, char *word, uint64_t space,
                     struct token_list *list)
{
    char *at = strpbrk(word, "=@");
    uint64_t position = 0;
    int status;

    if (!at || at == word)
        return hb_hash_refuse(ctl, HB_EXIT_USAGE, "--%s %s: expected NAME%cTOKEN, such as A%c100",
                              option, word, strcmp(option, "join") == 0 ? '@' : '=',
                              strcmp(option, "join") == 0 ? '@' : '=');
    *at++ = '\0';
    status = hb_hash_number(ctl, option, at, 0, space - 1, &position);
    if (status == HB_EXIT_OK && !add_token(list, word, position))
        status = hb_hash_no_memory(ctl);
    return status;
}

static int read_tokens(const struct hb_ctl *ctl, uint64_t space, struct token_list *list)
{
    const char *words = ctl->hash.tokens;
    int status = HB_EXIT_OK;
    char *word;

    while (status == HB_EXIT_OK && hb_hash_next_word(&words, &word)) {
        status = add_typed(ctl, "tokens", word, space, list);
        free(word);
    }
    return status;
}

/* By member, then by position. */
static int compare_points(const void *a, const void *b)
{
    const struct hb_ring_point *x = a, *y = b;

    if (x->member != y->member)
        return x->member < y->member ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

/* The tokens that h32 gives to backends. Two of one backend on one position count once. */
static int hash_tokens(const struct hb_ctl *ctl, const struct hb_hash_pool *pool,
                       struct token_list *list)
{
    const struct hb_hash_choice ring = {0};
    struct hb_table_request request = hb_hash_request(pool, &ring);
    struct hb_ring_map *map;
    enum hb_table_error error = hb_ring_from_members(&request, hb_ring_hash_h32, &map);
    bool good = true;
    uint32_t i;

    if (error != HB_TABLE_OK) {
        char text[HB_TABLE_EXPLANATION];

        return hb_hash_refuse(ctl, HB_EXIT_FAILED, "the ring cannot be made: %s",
                              hb_table_explain(&request, error, text, sizeof(text)));
    }
    /* So that backends keep their order. This map is not asked for owners any more. */
    qsort(map->points, map->points_count, sizeof(*map->points), compare_points);
    for (i = 0; good && i < map->points_count; i++) {
        const struct hb_ring_point *point = &map->points[i];

        if (i == 0 || point->position != point[-1].position || point->member != point[-1].member)
            good = add_token(list, pool->backends[point->member].name, point->position);
    }
    hb_ring_free(map);
    return good ? HB_EXIT_OK : hb_hash_no_memory(ctl);
}

/* --join NAME, with as many virtual nodes as the others. */
static int join_backend(const struct hb_ctl *ctl, const char *name, uint32_t vnodes,
                        struct token_list *list)
{
    struct hb_hash_pool one = {.virtual_nodes = vnodes};
    int status = HB_EXIT_OK;
    uint32_t i;

    for (i = 0; i < list->count; i++) {
        if (strcmp(list->tokens[i].name, name) == 0)
            return hb_hash_refuse(ctl, HB_EXIT_USAGE,
                                  "--join %s: it is on the ring already; choose a new name, or one "
                                  "token more with --join %s@TOKEN",
                                  name, name);
    }
    status =
        hb_hash_pool_add(&one, name, 1, "") ? hash_tokens(ctl, &one, list) : hb_hash_no_memory(ctl);
    hb_hash_pool_free(&one);
    return status;
}

static int join(const struct hb_ctl *ctl, uint64_t space, uint32_t vnodes, struct token_list *list)
{
    const char *words = ctl->hash.join;
    int status = HB_EXIT_OK;
    char *word;

    while (status == HB_EXIT_OK && words && hb_hash_next_word(&words, &word)) {
        if (strpbrk(word, "=@") || ctl->hash.tokens)
            status = add_typed(ctl, "join", word, space, list);
        else
            status = join_backend(ctl, word, vnodes, list);
        free(word);
    }
    return status;
}

static int leave(const struct hb_ctl *ctl, struct token_list *list)
{
    const char *words = ctl->hash.leave;
    int status = HB_EXIT_OK;
    char *word;

    while (status == HB_EXIT_OK && words && hb_hash_next_word(&words, &word)) {
        uint32_t kept = 0, i;

        for (i = 0; i < list->count; i++) {
            if (strcmp(list->tokens[i].name, word) == 0)
                free((char *)(uintptr_t)list->tokens[i].name);
            else
                list->tokens[kept++] = list->tokens[i];
        }
        if (kept == list->count)
            status = hb_hash_refuse(ctl, HB_EXIT_USAGE, "--leave %s: it is not on the ring", word);
        else if (kept == 0)
            status = hb_hash_refuse(ctl, HB_EXIT_USAGE,
                                    "--leave %s: nobody would be left to inherit", word);
        list->count = kept;
        free(word);
    }
    return status;
}

static int make_ring(const struct hb_ctl *ctl, const struct token_list *list, uint64_t space,
                     struct hb_ring_map **ring)
{
    int result = hb_ring_from_tokens(list->tokens, list->count, space, ring);

    if (result == 0)
        return HB_EXIT_OK;
    if (result == -EEXIST)
        return hb_hash_refuse(ctl, HB_EXIT_USAGE,
                              "a backend has two tokens on one position; name each token once");
    if (result == -ENOMEM)
        return hb_hash_no_memory(ctl);
    return hb_hash_refuse(ctl, HB_EXIT_USAGE,
                          "there is no token; name some, such as --tokens A=100,B=200 --space 360");
}

/* ---- what changes hands ---- */

static uint64_t size_between(uint64_t after, uint64_t to, uint64_t space)
{
    return to > after ? to - after : space - (after - to);
}

static int compare_positions(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* All positions of tokens, each once: between two of them, owners are the same. */
static uint64_t *list_borders(const struct hb_hash_rings *rings, uint32_t *count)
{
    uint32_t before = rings->before->points_count, total = before + rings->after->points_count, i;
    uint64_t *borders = calloc(total, sizeof(*borders));

    if (!borders)
        return NULL;
    for (i = 0; i < total; i++)
        borders[i] = i < before ? rings->before->points[i].position
                                : rings->after->points[i - before].position;
    qsort(borders, total, sizeof(*borders), compare_positions);
    *count = 0;
    for (i = 0; i < total; i++) {
        if (*count == 0 || borders[*count - 1] != borders[i])
            borders[(*count)++] = borders[i];
    }
    return borders;
}

static const char *name_owner(const struct hb_ring_map *ring, uint64_t position)
{
    return ring->names[hb_ring_owner(ring, position)];
}

static bool continues(const struct hb_hash_handover *first, const struct hb_hash_handover *next)
{
    return first->interval.to == next->interval.after && strcmp(first->from, next->from) == 0 &&
           strcmp(first->to, next->to) == 0;
}

/* Neighbours with the same giver and taker are one; so are the last and the first, over zero. */
static void add_handover(struct hb_hash_rings *rings, const struct hb_hash_handover *next)
{
    struct hb_hash_handover *last =
        rings->handovers_count > 0 ? &rings->handovers[rings->handovers_count - 1] : NULL;

    rings->moved += next->size;
    if (last && continues(last, next)) {
        last->interval.to = next->interval.to;
        last->size += next->size;
        return;
    }
    rings->handovers[rings->handovers_count++] = *next;
}

static int find_handovers(const struct hb_ctl *ctl, struct hb_hash_rings *rings)
{
    uint64_t space = rings->before->space;
    uint32_t count, i;
    uint64_t *borders = list_borders(rings, &count);

    if (borders)
        rings->handovers = calloc(count, sizeof(*rings->handovers));
    if (!borders || !rings->handovers) {
        free(borders);
        return hb_hash_no_memory(ctl);
    }
    for (i = 0; i < count; i++) {
        uint64_t after = borders[i > 0 ? i - 1 : count - 1], to = borders[i];
        struct hb_hash_handover next = {
            .interval = {.after = after, .to = to},
            .size = size_between(after, to, space),
            .from = name_owner(rings->before, to),
            .to = name_owner(rings->after, to),
        };

        if (strcmp(next.from, next.to) != 0)
            add_handover(rings, &next);
    }
    if (rings->handovers_count > 1 &&
        continues(&rings->handovers[rings->handovers_count - 1], &rings->handovers[0])) {
        struct hb_hash_handover *last = &rings->handovers[--rings->handovers_count];

        rings->handovers[0].interval.after = last->interval.after;
        rings->handovers[0].size += last->size;
    }
    free(borders);
    return HB_EXIT_OK;
}

/* ---- all of it ---- */

static int load_tokens(const struct hb_ctl *ctl, uint32_t preset_backends, uint64_t space,
                       struct token_list *list, uint32_t *vnodes)
{
    struct hb_hash_pool pool = {0};
    int status;

    if (ctl->hash.tokens && ctl->hash.backends)
        return hb_hash_refuse(ctl, HB_EXIT_USAGE,
                              "--tokens and --backends both say what is on the ring; give one");
    if (ctl->hash.tokens)
        return read_tokens(ctl, space, list);
    if (ctl->hash.space)
        return hb_hash_refuse(ctl, HB_EXIT_USAGE,
                              "--space goes with --tokens; hashed tokens lie on 2^32 positions");
    status = hb_hash_pool_load(ctl, preset_backends, &pool);
    pool.virtual_nodes = *vnodes;
    if (status == HB_EXIT_OK)
        status = hb_hash_pool_vnodes(ctl, &pool);
    *vnodes = pool.virtual_nodes;
    if (status == HB_EXIT_OK)
        status = hash_tokens(ctl, &pool, list);
    hb_hash_pool_free(&pool);
    return status;
}

int hb_hash_rings_load(const struct hb_ctl *ctl, uint32_t preset_backends, uint32_t preset_vnodes,
                       struct hb_hash_rings *rings)
{
    struct token_list list = {0};
    uint64_t space = HB_RING_SPACE;
    int status = hb_hash_number(ctl, "space", ctl->hash.space, 1, HB_RING_SPACE, &space);

    *rings = (struct hb_hash_rings){0};
    if (status == HB_EXIT_OK)
        status = load_tokens(ctl, preset_backends, space, &list, &preset_vnodes);
    if (status == HB_EXIT_OK)
        status = make_ring(ctl, &list, space, &rings->before);
    if (status == HB_EXIT_OK)
        status = join(ctl, space, preset_vnodes, &list);
    if (status == HB_EXIT_OK)
        status = leave(ctl, &list);
    if (status == HB_EXIT_OK && (ctl->hash.join || ctl->hash.leave)) {
        status = make_ring(ctl, &list, space, &rings->after);
        if (status == HB_EXIT_OK)
            status = find_handovers(ctl, rings);
    }
    free_tokens(&list);
    return status;
}

void hb_hash_rings_free(struct hb_hash_rings *rings)
{
    if (rings->before)
        hb_ring_free(rings->before);
    if (rings->after)
        hb_ring_free(rings->after);
    free(rings->handovers);
    *rings = (struct hb_hash_rings){0};
}

uint64_t hb_hash_point_size(const struct hb_ring_map *ring, uint32_t point)
{
    uint32_t last = ring->points_count - 1, previous = point > 0 ? point - 1 : last;

    if (last == 0)
        return ring->space;
    if (point > 0 && ring->points[previous].position == ring->points[point].position)
        return 0; /* the name before it has the position */
    /* Of tokens that share one position all but the first are hidden: the interval begins after
     * that position all the same. */
    if (ring->points[previous].position == ring->points[point].position)
        return ring->space; /* all tokens share one position */
    return size_between(ring->points[previous].position, ring->points[point].position, ring->space);
}

json_t *hb_hash_handovers_json(const struct hb_hash_rings *rings)
{
    json_t *array = json_array();
    uint32_t i;

    for (i = 0; i < rings->handovers_count; i++) {
        const struct hb_hash_handover *handover = &rings->handovers[i];
        char text[HB_RING_INTERVAL_TEXT];

        json_array_append_new(array,
                              json_pack("{s:s, s:I, s:f, s:s, s:s}", "interval",
                                        hb_ring_print_interval(&handover->interval, text), "size",
                                        (json_int_t)handover->size, "share",
                                        (double)handover->size / (double)rings->before->space,
                                        "from", handover->from, "to", handover->to));
    }
    return array;
}

void hb_hash_show_handovers(const struct hb_screen *screen, const json_t *document)
{
    static const struct hb_column columns[] = {
        {"INTERVAL", false, 0}, {"POSITIONS", true, 0}, {"SHARE", true, 0},
        {"FROM", false, 0},     {"TO", false, 0},
    };
    const json_t *rows = hb_json_at(document, "handovers"), *row;
    size_t count = json_array_size(rows), i;
    struct hb_table *table;

    fprintf(screen->out, "%" PRIu64 " of %" PRIu64 " positions change hands (%.3g %%)",
            hb_json_count(document, "moved"), hb_json_count(document, "space"),
            hb_json_real(document, "moved_share") * 100);
    if (count > ROWS_SHOWN)
        fprintf(screen->out, " in %zu intervals; --json lists them", count);
    fputc('\n', screen->out);
    if (count == 0 || count > ROWS_SHOWN)
        return;
    table = hb_table_new(columns, 5);
    fputc('\n', screen->out);
    json_array_foreach (rows, i, row) {
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(row, "interval"));
        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(row, "size"));
        hb_table_add(table, HB_PLAIN, "%.3g %%", hb_json_real(row, "share") * 100);
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(row, "from"));
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(row, "to"));
    }
    hb_table_finish(table, screen);
}
