/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash_plot_moves.c: a few keys one by one, before and after a change, two rows a method.
 *
 * Keys stand in the order of their hashes, so a ring shows its arcs; a cell names its owner. A key
 * that moved has a thick frame, and a bar between the rows.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "hash_plot.h"

#define KEYS       32
#define KEYS_MAX   100
#define ROWS       3.0 /* of height, for each method */
#define HEIGHT     75  /* pixels for each method */
#define NAME_WIDTH 3   /* longer names do not fit a cell */

/* Light enough for black letters. */
static const char *const fills[] = {"#ffffff", "#fdd49e", "#9ecae1", "#dddddd",
                                    "#c7e9c0", "#fcc5d8", "#d9d0e9", "#fff3b0"};

struct drawing {
    struct hb_plot *plot;
    struct hb_hash_pool before, after;
    struct hb_hash_keys keys;
    uint32_t *order; /* keys by their hashes */
    uint32_t methods;
    const char *names[HB_HASH_CHOICES_MAX];
};

struct hashed {
    uint32_t hash, key;
};

static int compare_hashes(const void *a, const void *b)
{
    const struct hashed *x = a, *y = b;

    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

static bool sort_keys(struct drawing *drawing)
{
    const struct hb_hash_keys *keys = &drawing->keys;
    struct hashed *hashed = calloc(keys->count, sizeof(*hashed));
    uint32_t i;

    drawing->order = calloc(keys->count, sizeof(*drawing->order));
    if (hashed && drawing->order) {
        for (i = 0; i < keys->count; i++)
            hashed[i] =
                (struct hashed){hb_h32(keys->text + keys->at[i], keys->at[i + 1] - keys->at[i]), i};
        qsort(hashed, keys->count, sizeof(*hashed), compare_hashes);
        for (i = 0; i < keys->count; i++)
            drawing->order[i] = hashed[i].key;
    }
    free(hashed);
    return drawing->order != NULL;
}

/* A name that does not fit becomes its place in the list, from 1. */
static void print_owner(char text[HB_NAME_SIZE], const struct hb_hash_pool *pool, uint32_t owner)
{
    const char *name = pool->backends[owner].name;

    if (hb_text_width(name) <= NAME_WIDTH)
        snprintf(text, HB_NAME_SIZE, "%s", name);
    else
        snprintf(text, HB_NAME_SIZE, "%" PRIu32, owner + 1);
}

static void write_cell(struct drawing *drawing, uint32_t column, double row,
                       const struct hb_hash_pool *pool, uint32_t owner, bool moved)
{
    FILE *script = drawing->plot->script;
    char text[HB_NAME_SIZE];

    print_owner(text, pool, owner);
    fprintf(script,
            "set object rectangle from %" PRIu32 ",%.1f to %" PRIu32
            ",%.1f fc rgb '%s' fs solid border lc rgb '#000000' lw %s %s\nset label ",
            column, row, column + 1, row + 1, fills[owner % 8], moved ? "2.5" : "0.4",
            moved ? "front" : "back");
    hb_plot_quote(script, text);
    fprintf(script, " at %.1f,%.2f center font ',10' front\n", column + 0.5, row + 0.5);
}

static void write_rows(struct drawing *drawing, const struct hb_hash_choice *choice,
                       const struct hb_hash_result *before, const struct hb_hash_result *after)
{
    double row = -ROWS * drawing->methods;
    uint32_t moved = 0, i;

    for (i = 0; i < drawing->keys.count; i++) {
        uint32_t key = drawing->order[i];
        const struct hb_hash_backend *from = &drawing->before.backends[before->owners[key]];
        const struct hb_hash_backend *to = &drawing->after.backends[after->owners[key]];
        bool moves = strcmp(from->name, to->name) != 0;

        moved += moves;
        write_cell(drawing, i, row + 1.3, &drawing->before, before->owners[key], moves);
        write_cell(drawing, i, row, &drawing->after, after->owners[key], moves);
        if (moves)
            fprintf(drawing->plot->script,
                    "set arrow from %.1f,%.2f to %.1f,%.2f nohead lw 3 front\n", i + 0.5, row + 1.3,
                    i + 0.5, row + 1.0);
    }
    json_array_append_new(drawing->plot->data, json_pack("{s:s, s:I}", "name", choice->name,
                                                         "moved", (json_int_t)moved));
    drawing->names[drawing->methods++] = choice->name;
}

static int draw_method(struct drawing *drawing, const struct hb_hash_choice *choice)
{
    struct hb_hash_progress *progress = &drawing->plot->progress;
    struct hb_hash_result before = {0}, after = {0};
    const struct hb_hash_pool *failed = NULL;
    char text[HB_TABLE_EXPLANATION];
    int status = hb_hash_measure(progress, choice, &drawing->before, &drawing->keys, &before);

    if (status == HB_EXIT_OK && before.error != HB_TABLE_OK)
        failed = &drawing->before;
    if (status == HB_EXIT_OK && !failed) {
        status = hb_hash_measure(progress, choice, &drawing->after, &drawing->keys, &after);
        if (status == HB_EXIT_OK && after.error != HB_TABLE_OK)
            failed = &drawing->after;
    }
    if (failed)
        hb_hash_refuse(
            drawing->plot->ctl, 0, "%s is left out: %s", choice->name,
            hb_hash_why(failed, choice, failed == &drawing->before ? &before : &after, text));
    else if (status == HB_EXIT_OK)
        write_rows(drawing, choice, &before, &after);
    hb_hash_result_free(&before);
    hb_hash_result_free(&after);
    return status;
}

static void write_plot(const struct drawing *drawing, const char *change)
{
    FILE *script = drawing->plot->script;
    double height = ROWS * drawing->methods;
    bool numbers = false;
    char label[256];
    uint32_t i;

    for (i = 0; i < drawing->after.count; i++)
        numbers |= hb_text_width(drawing->after.backends[i].name) > NAME_WIDTH;

    drawing->plot->height += HEIGHT * drawing->methods;
    fprintf(script, "set title ");
    fprintf(script,
            "'%" PRIu32 " keys in the order of their hashes, %" PRIu32 " backends, then %" PRIu32
            ": a cell names the owner; framed: it moved'\n",
            drawing->keys.count, hb_hash_pool_weighted(&drawing->before),
            hb_hash_pool_weighted(&drawing->after));
    fprintf(script,
            "set xrange [-0.2:%.1f]\nset yrange [%.1f:3]\nunset border\nunset key\n"
            "set tics scale 0\nunset xtics\nset xlabel ",
            drawing->keys.count + 0.2, -height + 2.7);
    snprintf(label, sizeof(label), "the change: %s%s", change,
             numbers ? "; numbers are places in the list of backends, from 1" : "");
    hb_plot_quote(script, label);
    fprintf(script, "\nset ytics (");
    for (i = 0; i < drawing->methods; i++)
        fprintf(script, "%s'%s before' %.1f, 'after' %.1f", i > 0 ? ", " : "", drawing->names[i],
                -ROWS * i + 1.8, -ROWS * i + 0.5);
    fprintf(script, ")\nplot NaN\n");
}

static int load(struct drawing *drawing, const char *change)
{
    const struct hb_ctl *ctl = drawing->plot->ctl;
    int status = hb_hash_pool_load(ctl, 4, &drawing->before);

    if (status == HB_EXIT_OK)
        status = hb_hash_pool_vnodes(ctl, &drawing->before);
    if (status == HB_EXIT_OK)
        status = hb_hash_pool_change(ctl, &drawing->before, change, &drawing->after);
    if (status == HB_EXIT_OK)
        status = hb_hash_keys_load(ctl, KEYS, &drawing->keys);
    if (status == HB_EXIT_OK && drawing->keys.count > KEYS_MAX)
        status =
            hb_hash_refuse(ctl, HB_EXIT_USAGE,
                           "%" PRIu32 " keys do not fit one by one; draw at most %d: --keys %d",
                           drawing->keys.count, KEYS_MAX, KEYS);
    if (status == HB_EXIT_OK && !sort_keys(drawing))
        status = hb_hash_no_memory(ctl);
    return status;
}

int hb_plot_moves(struct hb_plot *plot)
{
    const char *change = plot->ctl->hash.change ? plot->ctl->hash.change : "add:1";
    struct drawing drawing = {.plot = plot};
    struct hb_hash_choices choices;
    int status = hb_hash_choose(plot->ctl, &choices);
    uint32_t i;

    if (status == HB_EXIT_OK)
        status = load(&drawing, change);
    for (i = 0; status == HB_EXIT_OK && i < choices.count; i++)
        status = draw_method(&drawing, &choices.row[i]);
    if (status == HB_EXIT_OK && drawing.methods == 0)
        status = HB_EXIT_FAILED;
    if (status == HB_EXIT_OK)
        write_plot(&drawing, change);
    free(drawing.order);
    hb_hash_keys_free(&drawing.keys);
    hb_hash_pool_free(&drawing.before);
    hb_hash_pool_free(&drawing.after);
    return status;
}
