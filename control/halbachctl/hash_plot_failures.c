/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash_plot_failures.c: keys that move when backends fail, as in figure 12 of the Maglev paper (D.
 * E. Eisenbud et al., NSDI 2016).
 *
 * Backends fail in an order that the seed decides, the same for every method. The upper panel has
 * all keys that move; those of failed backends must. The lower one has those that moved from one
 * backend that stays to another, on a logarithmic scale; its title names methods that move none.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "hash_plot.h"

#define STEPS_MAX 20

struct curve {
    const char *name;
    double moved[STEPS_MAX + 1], needless[STEPS_MAX + 1]; /* percent of all keys */
    bool any_needless;
};

struct study {
    struct hb_plot *plot;
    struct hb_hash_pool pool;
    struct hb_hash_keys keys;
    uint32_t *order; /* backends in the order in which they fail */
    uint32_t order_count;
    uint32_t failed[STEPS_MAX + 1]; /* at each step */
    double least[STEPS_MAX + 1];
    uint32_t steps;
};

/* Backends that have a weight, shuffled (R. Durstenfeld, 1964). */
static bool shuffle(struct study *study)
{
    struct hb_key_source source = {.state = study->keys.seed};
    uint32_t i;

    study->order = calloc(study->pool.count, sizeof(*study->order));
    for (i = 0; study->order && i < study->pool.count; i++) {
        if (study->pool.members[i].weight > 0)
            study->order[study->order_count++] = i;
    }
    for (i = study->order_count; study->order && i > 1; i--) {
        uint32_t other = (uint32_t)((uint64_t)hb_mulberry32(&source) * i >> 32);
        uint32_t kept = study->order[i - 1];

        study->order[i - 1] = study->order[other];
        study->order[other] = kept;
    }
    return study->order != NULL;
}

/* The pool at a step: those that failed have no weight. */
static int fail(const struct study *study, uint32_t step, struct hb_hash_pool *pool)
{
    int status = hb_hash_pool_copy(study->plot->ctl, &study->pool, pool);
    uint32_t i;

    for (i = 0; status == HB_EXIT_OK && i < study->failed[step]; i++)
        pool->members[study->order[i]].weight = 0;
    return status;
}

static enum hb_table_error note(const struct study *study, const struct hb_hash_choice *choice,
                                const struct hb_hash_pool *pool,
                                const struct hb_hash_result *before,
                                const struct hb_hash_result *after, struct curve *curve,
                                uint32_t step)
{
    struct hb_table_request from = hb_hash_request(&study->pool, choice);
    struct hb_table_request to = hb_hash_request(pool, choice);
    struct hb_key_moves moves = {0};
    enum hb_table_error error =
        hb_key_moves(&from, before->owners, &to, after->owners, study->keys.count, &moves);

    curve->moved[step] = moves.moved * 100.0 / study->keys.count;
    curve->needless[step] = moves.between_old * 100.0 / study->keys.count;
    curve->any_needless |= moves.between_old > 0;
    return error;
}

static int follow(struct study *study, const struct hb_hash_choice *choice, struct curve *curve)
{
    struct hb_hash_progress *progress = &study->plot->progress;
    struct hb_hash_result before, after;
    const struct hb_hash_pool *failed = NULL;
    char text[HB_TABLE_EXPLANATION];
    int status = hb_hash_measure(progress, choice, &study->pool, &study->keys, &before);
    uint32_t step;

    after = before;
    if (status == HB_EXIT_OK && (before.error != HB_TABLE_OK || before.refusal))
        failed = &study->pool;
    if (failed)
        hb_hash_refuse(study->plot->ctl, 0, "%s is left out: %s", choice->name,
                       hb_hash_why(failed, choice, &before, text));
    for (step = 0; status == HB_EXIT_OK && !failed && step <= study->steps; step++) {
        struct hb_hash_pool pool;

        status = fail(study, step, &pool);
        if (status == HB_EXIT_OK)
            status = hb_hash_measure(progress, choice, &pool, &study->keys, &after);
        if (status == HB_EXIT_OK && after.error == HB_TABLE_OK)
            after.error = note(study, choice, &pool, &before, &after, curve, step);
        if (status == HB_EXIT_OK && after.error != HB_TABLE_OK)
            status = hb_hash_refuse(study->plot->ctl, HB_EXIT_FAILED,
                                    "%s with %" PRIu32 " failures: %s", choice->name,
                                    study->failed[step], hb_hash_why(&pool, choice, &after, text));
        hb_hash_result_free(&after);
        hb_hash_pool_free(&pool);
        hb_hash_progress_tell(progress, choice->name, step, study->steps, "steps");
    }
    if (status == HB_EXIT_OK && !failed)
        curve->name = choice->name;
    hb_hash_result_free(&before);
    return status;
}

static int find_least(struct study *study)
{
    const struct hb_hash_choice none = {0};
    struct hb_table_request from = hb_hash_request(&study->pool, &none);
    int status = HB_EXIT_OK;
    uint32_t step;

    for (step = 0; status == HB_EXIT_OK && step <= study->steps; step++) {
        struct hb_hash_pool pool;

        status = fail(study, step, &pool);
        if (status == HB_EXIT_OK) {
            struct hb_table_request to = hb_hash_request(&pool, &none);
            double share = 0;

            if (hb_minimum_moved(&from, &to, &share) != HB_TABLE_OK)
                status = hb_hash_no_memory(study->plot->ctl);
            study->least[step] = share * 100;
        }
        hb_hash_pool_free(&pool);
    }
    return status;
}

static int load(struct study *study)
{
    const struct hb_ctl *ctl = study->plot->ctl;
    uint64_t most = 0;
    uint32_t step;
    int status = hb_hash_pool_load(ctl, 100, &study->pool);

    if (status == HB_EXIT_OK)
        status = hb_hash_pool_vnodes(ctl, &study->pool);
    if (status == HB_EXIT_OK)
        status = hb_hash_keys_load(ctl, HB_PLOT_KEYS, &study->keys);
    if (status == HB_EXIT_OK && !shuffle(study))
        status = hb_hash_no_memory(ctl);
    if (status == HB_EXIT_OK && study->order_count < 2)
        status = hb_hash_refuse(ctl, HB_EXIT_USAGE,
                                "--backends: with one backend nobody could take over; give two");
    most = study->order_count / 2;
    if (status == HB_EXIT_OK)
        status =
            hb_hash_number(ctl, "failures", ctl->hash.failures, 1, study->order_count - 1, &most);
    if (status != HB_EXIT_OK)
        return status;
    /* None, one, and from there on evenly. */
    study->steps = most < STEPS_MAX ? (uint32_t)most : STEPS_MAX;
    for (step = 1; step <= study->steps; step++)
        study->failed[step] =
            1 + (uint32_t)((most - 1) * (step - 1) / (study->steps > 1 ? study->steps - 1 : 1));
    return find_least(study);
}

/* ---- the picture ---- */

static json_t *numbers_json(const double *numbers, uint32_t steps)
{
    json_t *array = json_array();
    uint32_t step;

    for (step = 0; step <= steps; step++)
        json_array_append_new(array, json_real(numbers[step]));
    return array;
}

static void write_data(const struct study *study, const struct curve *curves, uint32_t count)
{
    FILE *script = study->plot->script;
    uint32_t step, i;

    fprintf(script, "$failures << EOD\n");
    for (step = 0; step <= study->steps; step++) {
        fprintf(script, "%" PRIu32 " %.4f", study->failed[step], study->least[step]);
        for (i = 0; i < count; i++)
            fprintf(script, " %.4f %.4f", curves[i].moved[step], curves[i].needless[step]);
        fputc('\n', script);
    }
    fprintf(script, "EOD\n");
    for (i = 0; i < count; i++)
        json_array_append_new(study->plot->data,
                              json_pack("{s:s, s:o, s:o}", "name", curves[i].name, "moved_percent",
                                        numbers_json(curves[i].moved, study->steps),
                                        "between_old_percent",
                                        numbers_json(curves[i].needless, study->steps)));
}

static void write_panels(const struct study *study, const struct curve *curves, uint32_t count)
{
    FILE *script = study->plot->script;
    char calm[256] = "";
    uint32_t i;

    fprintf(script,
            "set multiplot layout 2,1\nset grid lt 1 lw 0.5 lc rgb '#cccccc'\nset border 3\n"
            "set tics nomirror out\nset key outside right top Left reverse samplen 3\n"
            "set rmargin 24\nset lmargin 10\n"
            "set xlabel 'backends that failed, of %" PRIu32 "'\n"
            "set ylabel 'keys that moved (%% of all)'\nset yrange [0:100]\n"
            "set title 'All keys that moved'\nplot \\\n",
            study->order_count);
    for (i = 0; i < count; i++)
        fprintf(script, "  $failures using 1:%" PRIu32 " with linespoints %s title '%s', \\\n",
                2 * i + 3, hb_plot_line_styles[i % HB_PLOT_STYLES], curves[i].name);
    fprintf(script, "  $failures using 1:2 with lines lw 1 lc rgb '#000000' title 'the minimum'\n");

    for (i = 0; i < count; i++) {
        if (!curves[i].any_needless)
            snprintf(calm + strlen(calm), sizeof(calm) - strlen(calm), "%s%s", *calm ? ", " : "",
                     curves[i].name);
    }
    fprintf(script,
            "set title 'Keys that moved though their backend stayed%s%s'\n"
            "set logscale y\nset yrange [0.01:100]\nset format y '%%g'\nplot \\\n",
            *calm ? "; none: " : "", calm);
    for (i = 0; i < count; i++) {
        if (curves[i].any_needless)
            fprintf(script,
                    "  $failures using 1:($%" PRIu32 " > 0 ? $%" PRIu32
                    " : NaN) with linespoints %s title '%s', \\\n",
                    2 * i + 4, 2 * i + 4, hb_plot_line_styles[i % HB_PLOT_STYLES], curves[i].name);
    }
    fprintf(script, "  NaN notitle\nunset multiplot\n");
}

int hb_plot_failures(struct hb_plot *plot)
{
    struct study study = {.plot = plot};
    struct curve curves[HB_HASH_CHOICES_MAX] = {{0}};
    struct hb_hash_choices choices;
    uint32_t count = 0, i;
    int status = hb_hash_choose(plot->ctl, &choices);

    if (status == HB_EXIT_OK)
        status = load(&study);
    for (i = 0; status == HB_EXIT_OK && i < choices.count; i++) {
        status = follow(&study, &choices.row[i], &curves[count]);
        count += curves[count].name != NULL;
    }
    if (status == HB_EXIT_OK && count == 0)
        status = HB_EXIT_FAILED;
    if (status == HB_EXIT_OK) {
        write_data(&study, curves, count);
        write_panels(&study, curves, count);
    }
    free(study.order);
    hb_hash_keys_free(&study.keys);
    hb_hash_pool_free(&study.pool);
    return status;
}
