/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl talkers */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api_client.h"
#include "ctl.h"
#include "format.h"
#include "json.h"
#include "watch.h"

#define SHOWN 20

/* What is known of one source: it made up `least` to `most` of the samples. */
struct talker {
    const json_t *row;
    uint64_t least, most, bytes;
};

static const json_t *find(const json_t *answer, const json_t *row)
{
    const json_t *other;
    size_t i;

    json_array_foreach (hb_json_at(answer, "talkers"), i, other) {
        if (strcmp(hb_json_text(row, "source"), hb_json_text(other, "source")) == 0 &&
            strcmp(hb_json_text(row, "service"), hb_json_text(other, "service")) == 0)
            return other;
    }
    return NULL;
}

static uint64_t above(uint64_t value, uint64_t less)
{
    return value > less ? value - less : 0;
}

/* Between two answers: what a source has now at least, less what it had at most, and the reverse.
 */
static struct talker compare(const json_t *row, const json_t *before)
{
    uint64_t count = hb_json_count(row, "count"), error = hb_json_count(row, "error");
    uint64_t missed = hb_json_count(row, "missed");
    uint64_t bytes = hb_json_count(row, "bytes");
    struct talker talker = {row, count - error, count + missed, bytes};

    if (before) {
        uint64_t old = hb_json_count(before, "count"), old_error = hb_json_count(before, "error");

        /* The same entry: what it has been counted since is exact. */
        if (error == old_error && count >= old) {
            talker.least = talker.most = count - old;
            talker.bytes = above(bytes, hb_json_count(before, "bytes"));
        } else {
            talker.least = above(count - error, old + hb_json_count(before, "missed"));
            talker.most = above(count + missed, old - old_error);
        }
    }
    return talker;
}

static int by_most(const void *a, const void *b)
{
    const struct talker *left = a, *right = b;

    if (left->least != right->least)
        return (left->least < right->least) - (left->least > right->least);
    return (left->most < right->most) - (left->most > right->most);
}

static void add_row(struct hb_table *table, const struct talker *talker, uint64_t samples)
{
    struct hb_text texts[2];

    hb_table_add(table, HB_PLAIN, "%s", hb_json_text(talker->row, "source"));
    hb_table_add(table, HB_PLAIN, "%s", hb_json_text(talker->row, "service"));
    hb_table_add(table, talker->least * 10 >= samples ? HB_YELLOW : HB_PLAIN, "%s",
                 hb_format_percent(&texts[0], (double)talker->least, (double)samples));
    hb_table_add(table, HB_PLAIN, "%s",
                 hb_format_percent(&texts[0], (double)talker->most, (double)samples));
    hb_table_add(table, HB_PLAIN, "%s", hb_format_count(&texts[0], talker->least));
}

void hb_show_talkers(const struct hb_screen *screen, const json_t *answer, const json_t *before)
{
    static const struct hb_column columns[] = {{"SOURCE", false, 15},
                                               {"SERVICE", false, 8},
                                               {"AT LEAST", true, 0},
                                               {"AT MOST", true, 0},
                                               {"SAMPLES", true, HB_SPARE}};
    const json_t *rows = hb_json_at(answer, "talkers"), *row;
    uint64_t samples = hb_json_count(answer, "sampled");
    struct talker *talkers = calloc(json_array_size(rows) + 1, sizeof(*talkers));
    size_t count = 0, i;
    struct hb_table *table;
    struct hb_text text;

    if (before)
        samples = above(samples, hb_json_count(before, "sampled"));
    json_array_foreach (rows, i, row) {
        if (talkers)
            talkers[count] = compare(row, before ? find(before, row) : NULL);
        count += talkers && (talkers[count].least > 0 || !before);
    }
    if (samples == 0 || count == 0) {
        fprintf(screen->out, "no packet for a service was seen%s\n",
                before ? " meanwhile" : " since the start of the dataplane");
        free(talkers);
        return;
    }
    qsort(talkers, count, sizeof(*talkers), by_most);
    table = hb_table_new(columns, 5);
    for (i = 0; i < count && i < SHOWN; i++)
        add_row(table, &talkers[i], samples);
    hb_table_finish(table, screen);
    fprintf(screen->out,
            "\nof %s sampled packets (one of each burst); a source's part is between the two\n",
            hb_format_count(&text, samples));
    free(talkers);
}

static void show(const struct hb_ctl *ctl, const json_t *now, const json_t *before, double seconds)
{
    (void)seconds;
    hb_show_talkers(&ctl->screen, now, before);
}

int hb_ctl_talkers(const struct hb_ctl *ctl)
{
    static const char *const paths[] = {"/v1/talkers", NULL};
    struct hb_answer answer;
    bool good;

    if (!ctl->json && !ctl->all)
        return hb_watch_rates(ctl, paths, !ctl->watch, show);
    good = hb_ctl_ask(ctl, false, paths[0], &answer);
    if (good && ctl->json)
        hb_ctl_print_json(ctl, &answer);
    else if (good)
        hb_show_talkers(&ctl->screen, answer.json, NULL);
    hb_answer_free(&answer);
    return good ? HB_EXIT_OK : HB_EXIT_FAILED;
}
