/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl history, halbachctl rollback */
#include <inttypes.h>
#include <string.h>

#include "api_client.h"
#include "ctl.h"
#include "format.h"
#include "json.h"

static void add_generation(struct hb_table *table, const json_t *one)
{
    const char *outcome = hb_json_text(one, "outcome");
    uint64_t first = hb_json_count(one, "first"), number = hb_json_count(one, "number");
    struct hb_text text;

    if (first < number)
        hb_table_add(table, HB_PLAIN, "%" PRIu64 "-%" PRIu64, first, number);
    else
        hb_table_add(table, HB_PLAIN, "%" PRIu64, number);
    hb_table_add(table, HB_PLAIN, "%s", hb_format_time(&text, hb_json_count(one, "first_unix")));
    hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(one, "moved"));
    if (hb_json_has(one, "configuration"))
        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(one, "configuration"));
    else
        hb_table_add(table, HB_PLAIN, "-");
    hb_table_add(table, strcmp(outcome, "refused") == 0 ? HB_RED : HB_PLAIN, "%s", outcome);
    hb_table_add(table, HB_PLAIN, "%s", hb_format_actor(&text, hb_json_at(one, "actor")));
    if (first < number)
        hb_table_add(table, HB_PLAIN, "%s (%" PRIu64 " times)", hb_json_text(one, "cause"),
                     hb_json_count(one, "count"));
    else
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(one, "cause"));
}

/* Those of before generation `first` that come after number *next. */
static void add_actions(struct hb_table *table, const json_t *actions, uint64_t first, size_t *next)
{
    for (; *next < json_array_size(actions); ++*next) {
        const json_t *one = json_array_get(actions, *next);
        struct hb_text text;

        if (hb_json_has(one, "generation") && hb_json_count(one, "generation") >= first)
            return;
        hb_table_add(table, HB_PLAIN, "-");
        hb_table_add(table, HB_PLAIN, "%s", hb_format_time(&text, hb_json_count(one, "unix")));
        hb_table_add(table, HB_PLAIN, "-");
        hb_table_add(table, HB_PLAIN, "-");
        hb_table_add(table, HB_PLAIN, "done");
        hb_table_add(table, HB_PLAIN, "%s", hb_format_actor(&text, hb_json_at(one, "actor")));
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(one, "action"));
    }
}

static void show_generations(const struct hb_screen *screen, const json_t *answer)
{
    static const struct hb_column columns[] = {
        {"GEN", true, 0},
        {"TIME", false, 0},
        {"MOVED", true, HB_SPARE},
        {"CONFIG", true, HB_SPARE},
        {"OUTCOME", false, 0},
        {"BY", false, 8},
        {"CAUSE", false, 20 | HB_FOLD},
    };
    const json_t *generations = hb_json_at(answer, "generations"), *one;
    const json_t *actions = hb_json_at(answer, "actions");
    struct hb_table *table;
    size_t i, next = 0;

    if (json_array_size(generations) == 0 && json_array_size(actions) == 0) {
        fprintf(screen->out, "no generation has been wanted yet\n");
        return;
    }
    table = hb_table_new(columns, 7);
    json_array_foreach (generations, i, one) {
        add_actions(table, actions, hb_json_count(one, "first"), &next);
        add_generation(table, one);
    }
    add_actions(table, actions, UINT64_MAX, &next);
    hb_table_finish(table, screen);
}

static void show_configurations(const struct hb_screen *screen, const json_t *answer)
{
    static const struct hb_column columns[] = {
        {"CONFIG", true, 0}, {"ACCEPTED", false, 0}, {"BYTES", true, HB_SPARE},
        {"STATE", false, 0}, {"BY", false, 8},       {"CAUSE", false, 12 | HB_FOLD},
    };
    const json_t *configurations = hb_json_at(answer, "configurations"), *one;
    bool rolled_back = hb_json_has(answer, "rollback");
    struct hb_table *table = hb_table_new(columns, 6);
    size_t i;

    json_array_foreach (configurations, i, one) {
        bool in_use = hb_json_flag(one, "in_use");
        struct hb_text text;

        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(one, "number"));
        hb_table_add(table, HB_PLAIN, "%s", hb_format_time(&text, hb_json_count(one, "unix")));
        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(one, "size"));
        hb_table_add(table,
                     !in_use       ? HB_PLAIN
                     : rolled_back ? HB_YELLOW
                                   : HB_GREEN,
                     "%s",
                     !in_use       ? "kept"
                     : rolled_back ? "in use (rollback)"
                                   : "in use");
        hb_table_add(table, HB_PLAIN, "%s", hb_format_actor(&text, hb_json_at(one, "actor")));
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(one, "cause"));
    }
    hb_table_finish(table, screen);
}

void hb_show_history(const struct hb_screen *screen, const json_t *answer)
{
    show_generations(screen, answer);
    if (json_array_size(hb_json_at(answer, "configurations")) == 0)
        return;
    fputc('\n', screen->out);
    show_configurations(screen, answer);
}

int hb_ctl_history(const struct hb_ctl *ctl)
{
    struct hb_answer answer;
    bool good = hb_ctl_ask(ctl, false, "/v1/history", &answer);

    if (good && ctl->json)
        hb_ctl_print_json(ctl, &answer);
    else if (good)
        hb_show_history(&ctl->screen, answer.json);
    hb_answer_free(&answer);
    return good ? HB_EXIT_OK : HB_EXIT_FAILED;
}

/* --- rollback --- */

void hb_show_rollback(const struct hb_screen *screen, const json_t *answer)
{
    hb_print(screen, HB_BOLD, "configuration %" PRIu64 " is in use, in place of %" PRIu64,
             hb_json_count(answer, "to"), hb_json_count(answer, "from"));
    fputc('\n', screen->out);
    hb_show_changes(screen, answer);
    hb_print(screen, HB_YELLOW, "the configuration file was not touched and differs from this");
    fprintf(screen->out, ": mend it, then 'halbachctl reload' takes it again\n");
}

int hb_ctl_rollback(const struct hb_ctl *ctl)
{
    const char *to = ctl->arguments_count > 0 ? ctl->arguments[0] : NULL;
    struct hb_answer answer;
    char path[64];
    bool good;

    if (to && (strlen(to) > 18 || to[strspn(to, "0123456789")] != '\0')) {
        fprintf(ctl->err,
                "halbachctl: '%s' is not the number of a configuration; 'halbachctl history' lists "
                "them\n",
                to);
        return HB_EXIT_USAGE;
    }
    snprintf(path, sizeof(path), "/v1/rollback%s%s", to ? "?to=" : "", to ? to : "");
    good = hb_ctl_ask(ctl, true, path, &answer);
    if (good && ctl->json)
        hb_ctl_print_json(ctl, &answer);
    else if (good)
        hb_show_rollback(&ctl->screen, answer.json);
    if (good && !hb_json_flag(answer.json, "applied")) {
        fprintf(ctl->err, "halbachctl: the former configuration is in use, but the dataplane has "
                          "not taken it yet; 'halbachctl status' says why\n");
        good = false;
    }
    hb_answer_free(&answer);
    return good ? HB_EXIT_OK : HB_EXIT_FAILED;
}
