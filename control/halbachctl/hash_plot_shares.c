/* SPDX-License-Identifier: BSD-3-Clause */
/* hash_plot_shares.c: the keys of each backend, one panel a method. */
#include <inttypes.h>
#include <stdlib.h>

#include "hash_plot.h"

#define NAMES_SHOWN 12 /* more backends are shown by number */

struct panel {
    const char *name;
    double *percent; /* of its fair share, of each backend that has a weight */
    double sd;       /* of the same */
};

static int measure(struct hb_plot *plot, const struct hb_hash_choice *choice,
                   const struct hb_hash_pool *pool, const struct hb_hash_keys *keys,
                   struct panel *panel)
{
    struct hb_hash_result result;
    int status = hb_hash_measure(&plot->progress, choice, pool, keys, &result);
    char text[HB_TABLE_EXPLANATION];
    double weights = 0;
    uint32_t i;

    if (status == HB_EXIT_OK && (result.error != HB_TABLE_OK || result.refusal)) {
        hb_hash_refuse(plot->ctl, 0, "%s is left out: %s", choice->name,
                       hb_hash_why(pool, choice, &result, text));
    } else if (status == HB_EXIT_OK) {
        json_t *array = json_array();

        panel->percent = calloc(pool->count, sizeof(*panel->percent));
        for (i = 0; i < pool->count; i++)
            weights += pool->members[i].weight;
        for (i = 0; panel->percent && i < pool->count; i++) {
            double fair = keys->count * pool->members[i].weight / weights;

            panel->percent[i] = fair > 0 ? result.counts[i] * 100 / fair : 0;
            json_array_append_new(array, json_integer(result.counts[i]));
        }
        panel->name = choice->name;
        panel->sd = result.shares.sd * 100 / result.shares.mean;
        json_array_append_new(plot->data,
                              json_pack("{s:s, s:o}", "name", choice->name, "counts", array));
    }
    hb_hash_result_free(&result);
    return status;
}

static void write_panel(FILE *script, const struct hb_hash_pool *pool, const struct panel *panel,
                        uint32_t number)
{
    uint32_t shown = 0, i;

    fprintf(script, "$panel%" PRIu32 " << EOD\n", number);
    for (i = 0; i < pool->count; i++) {
        if (pool->members[i].weight > 0)
            fprintf(script, "%" PRIu32 " %.3f\n", shown++, panel->percent[i]);
    }
    fprintf(script, "EOD\nset title ");
    fprintf(script, "'%s: sd %.1f %%'\n", panel->name, panel->sd);
    fprintf(script,
            "plot $panel%" PRIu32 " using 1:2 with boxes lc rgb '#a6cee3' fs solid border "
            "lc rgb '#000000' notitle, 100 with lines lw 2 dt 2 lc rgb '#000000' notitle\n",
            number);
}

static void write_names(FILE *script, const struct hb_hash_pool *pool)
{
    uint32_t shown = 0, i;
    size_t longest = 0;

    for (i = 0; i < pool->count; i++) {
        unsigned width = hb_text_width(pool->backends[i].name);

        longest = width > longest ? width : longest;
    }
    if (hb_hash_pool_weighted(pool) > NAMES_SHOWN) {
        fprintf(script, "set xlabel 'backend (place in the list, from 0)'\n");
        return;
    }
    fprintf(script, "set xtics %s(", longest > 3 ? "rotate by 90 right " : "");
    for (i = 0; i < pool->count; i++) {
        if (pool->members[i].weight == 0)
            continue;
        fprintf(script, "%s", shown > 0 ? ", " : "");
        hb_plot_quote(script, pool->backends[i].name);
        fprintf(script, " %" PRIu32, shown++);
    }
    fprintf(script, ")\n");
}

static void write_all(FILE *script, const struct hb_hash_pool *pool,
                      const struct hb_hash_keys *keys, const struct panel *panels, uint32_t count)
{
    uint32_t columns = count > 4 ? 3 : count > 1 ? 2 : 1, i, j;
    double most = 110;

    for (i = 0; i < count; i++) {
        for (j = 0; j < pool->count; j++)
            most = panels[i].percent[j] > most ? panels[i].percent[j] : most;
    }
    fprintf(script,
            "set multiplot layout %" PRIu32 ",%" PRIu32 " title 'Keys of each backend (%" PRIu32
            " keys, %" PRIu32 " backends); dashed: fair share by weight; sd: standard "
            "deviation'\n",
            (count + columns - 1) / columns, columns, keys->count, hb_hash_pool_weighted(pool));
    fprintf(script,
            "set ylabel 'keys (%% of fair share)'\nset xlabel 'backend'\nset boxwidth 0.8\n"
            "set grid ytics lt 1 lw 0.5 lc rgb '#cccccc'\nset tics nomirror out\nset border 3\n"
            "set yrange [0:%.0f]\nset xrange [-0.7:%.1f]\n",
            most * 1.06, hb_hash_pool_weighted(pool) - 0.3);
    write_names(script, pool);
    for (i = 0; i < count; i++)
        write_panel(script, pool, &panels[i], i);
    fprintf(script, "unset multiplot\n");
}

int hb_plot_shares(struct hb_plot *plot)
{
    const struct hb_ctl *ctl = plot->ctl;
    struct panel panels[HB_HASH_CHOICES_MAX] = {{0}};
    struct hb_hash_keys keys = {0};
    struct hb_hash_pool pool = {0};
    struct hb_hash_choices choices;
    uint32_t count = 0, i;
    int status = hb_hash_choose(ctl, &choices);

    if (status == HB_EXIT_OK)
        status = hb_hash_pool_load(ctl, 10, &pool);
    if (status == HB_EXIT_OK)
        status = hb_hash_pool_vnodes(ctl, &pool);
    if (status == HB_EXIT_OK)
        status = hb_hash_keys_load(ctl, HB_HASH_KEYS, &keys);
    for (i = 0; status == HB_EXIT_OK && i < choices.count; i++) {
        status = measure(plot, &choices.row[i], &pool, &keys, &panels[count]);
        count += panels[count].percent != NULL;
    }
    if (status == HB_EXIT_OK && count == 0)
        status = HB_EXIT_FAILED;
    if (status == HB_EXIT_OK)
        write_all(plot->script, &pool, &keys, panels, count);
    for (i = 0; i < count; i++)
        free(panels[i].percent);
    hb_hash_keys_free(&keys);
    hb_hash_pool_free(&pool);
    return status;
}
