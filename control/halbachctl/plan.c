/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl hash plan: what a configuration would change, asked of control or worked out of two
 * files. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api_client.h"
#include "ctl.h"
#include "format.h"
#include "json.h"
#include "preview_offline.h"

/* ---- showing ---- */

static bool is_same(const json_t *object, const char *member)
{
    const json_t *pair = hb_json_at(object, member);

    return json_equal(json_object_get(pair, "before"), json_object_get(pair, "after"));
}

static bool is_quiet_backend(const json_t *backend)
{
    return strcmp(hb_json_text(backend, "change"), "stays") == 0 && is_same(backend, "weight") &&
           is_same(backend, "slots") && strcmp(hb_json_text(backend, "flow_fate"), "keep") == 0;
}

/* Nothing about the pool that its users would notice. */
static bool is_quiet_pool(const json_t *pool)
{
    const json_t *backend;
    size_t i;

    if (strcmp(hb_json_text(pool, "change"), "stays") != 0 || hb_json_count(pool, "moved") > 0 ||
        hb_json_has(pool, "problem") || !is_same(pool, "algorithm"))
        return false;
    json_array_foreach (hb_json_at(pool, "backends"), i, backend) {
        if (!is_quiet_backend(backend))
            return false;
    }
    return true;
}

/* "maglev", or "ring -> maglev". */
static void print_pair(const struct hb_screen *screen, const json_t *object, const char *member)
{
    const json_t *pair = hb_json_at(object, member);
    bool before = hb_json_has(pair, "before"), after = hb_json_has(pair, "after");
    bool both = before && after && !is_same(object, member);

    if (json_is_string(json_object_get(pair, before ? "before" : "after")))
        hb_print(screen, HB_PLAIN, "%s%s%s", before ? hb_json_text(pair, "before") : "",
                 both ? " -> " : "", both || !before ? hb_json_text(pair, "after") : "");
    else if (both)
        fprintf(screen->out, "%" PRIu64 " -> %" PRIu64, hb_json_count(pair, "before"),
                hb_json_count(pair, "after"));
    else
        fprintf(screen->out, "%" PRIu64, hb_json_count(pair, before ? "before" : "after"));
}

static void show_pool_title(const struct hb_screen *screen, const json_t *pool)
{
    const char *change = hb_json_text(pool, "change");
    uint64_t moved = hb_json_count(pool, "moved");
    bool stays = strcmp(change, "stays") == 0;

    hb_print(screen, HB_BOLD, "pool %s", hb_json_text(pool, "name"));
    fprintf(screen->out, " (");
    print_pair(screen, pool, "algorithm");
    fprintf(screen->out, ", ");
    print_pair(screen, pool, "table_size");
    fprintf(screen->out, " slots)");
    if (!stays)
        fprintf(screen->out, ": %s\n", strcmp(change, "added") == 0 ? "new" : "removed");
    else if (moved == 0)
        fprintf(screen->out, ": no slot moves\n");
    else
        fprintf(screen->out,
                ": %" PRIu64 " slots move (at least %" PRIu64 " must), %" PRIu64
                " between backends that stay\n",
                moved, hb_json_count(pool, "ideal"), hb_json_count(pool, "collateral"));
    if (hb_json_has(pool, "problem")) {
        hb_print(screen, HB_RED, "  no table can be built: %s", hb_json_text(pool, "problem"));
        fputc('\n', screen->out);
    } else if (strcmp(change, "removed") != 0 && hb_json_count(pool, "usable.after") == 0) {
        hb_print(screen, HB_RED, "  no backend would be usable: new flows would be dropped");
        fputc('\n', screen->out);
    }
}

/* "1", "1 -> 2"; "-" for what is not there. */
static void add_weight(struct hb_table *table, const json_t *backend)
{
    const json_t *pair = hb_json_at(backend, "weight");
    bool before = hb_json_has(pair, "before"), after = hb_json_has(pair, "after");

    if (before && after && !is_same(backend, "weight"))
        hb_table_add(table, HB_YELLOW, "%" PRIu64 " -> %" PRIu64, hb_json_count(pair, "before"),
                     hb_json_count(pair, "after"));
    else
        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(pair, before ? "before" : "after"));
}

/* Numbers where they are known, else what a flow may expect. */
static void add_flows(struct hb_table *table, const json_t *backend)
{
    const char *fate = hb_json_text(backend, "flow_fate");
    uint64_t broken = hb_json_count(backend, "flows.broken");
    uint64_t unsure = hb_json_count(backend, "flows.unsure");
    struct hb_text text;

    if (strcmp(hb_json_text(backend, "change"), "added") == 0) {
        hb_table_add(table, HB_PLAIN, "-");
        hb_table_add(table, HB_PLAIN, "-");
    } else if (!hb_json_has(backend, "flows")) {
        hb_table_add(table, HB_PLAIN, "?");
        hb_table_add(table, strcmp(fate, "keep") == 0 ? HB_PLAIN : HB_RED, "%s",
                     strcmp(fate, "keep") == 0    ? "none"
                     : strcmp(fate, "break") == 0 ? "all"
                                                  : "some");
    } else {
        hb_table_add(table, HB_PLAIN, "%s",
                     hb_format_count(&text, hb_json_count(backend, "flows.live")));
        if (unsure > 0)
            hb_table_add(table, broken > 0 ? HB_RED : HB_YELLOW, "%" PRIu64 " to %" PRIu64, broken,
                         broken + unsure);
        else
            hb_table_add(table, broken > 0 ? HB_RED : HB_PLAIN, "%" PRIu64, broken);
    }
}

static void show_pool(const struct hb_screen *screen, const json_t *pool)
{
    static const struct hb_column columns[] = {
        {"  BACKEND", false, 12}, {"CHANGE", false, 0}, {"STATE", false, 0}, {"WEIGHT", true, 0},
        {"SHARE NOW", true, 0},   {"AFTER", true, 0},   {"FLOWS", true, 0},  {"BREAK", true, 0},
    };
    struct hb_table *table = hb_table_new(columns, 8);
    json_t *backends = hb_json_by_name(hb_json_at(pool, "backends"));
    const json_t *backend;
    struct hb_text text;
    size_t i;

    show_pool_title(screen, pool);
    json_array_foreach (backends, i, backend) {
        const char *change = hb_json_text(backend, "change"),
                   *state = hb_json_text(backend, "state");
        bool stays = strcmp(change, "stays") == 0;

        hb_table_add(table, HB_PLAIN, "  %s", hb_json_text(backend, "name"));
        hb_table_add(table, stays ? HB_PLAIN : HB_YELLOW, "%s", change);
        hb_table_add(table, strcmp(state, "new") == 0 ? HB_PLAIN : hb_colour_of_state(state), "%s",
                     state);
        add_weight(table, backend);
        hb_table_add(table, HB_PLAIN, "%s",
                     hb_format_percent(&text, hb_json_real(backend, "share.before"), 1));
        hb_table_add(table, HB_PLAIN, "%s",
                     hb_format_percent(&text, hb_json_real(backend, "share.after"), 1));
        add_flows(table, backend);
    }
    json_decref(backends);
    hb_table_finish(table, screen);
    fputc('\n', screen->out);
}

static void show_counts(const struct hb_screen *screen, const json_t *plan, const char *what)
{
    const json_t *counts = hb_json_at(plan, what);

    fprintf(screen->out, "%s: %" PRIu64 " added, %" PRIu64 " removed, %" PRIu64 " changed\n", what,
            hb_json_count(counts, "added"), hb_json_count(counts, "removed"),
            hb_json_count(counts, "changed"));
}

/* "settings: pool web, pool dns, general", where some change. */
static void show_settings(const struct hb_screen *screen, const json_t *plan)
{
    const char *before = "settings that change: ";
    const json_t *pool;
    size_t i;

    json_array_foreach (hb_json_at(plan, "pools"), i, pool) {
        if (!hb_json_flag(pool, "settings_changed"))
            continue;
        hb_print(screen, HB_PLAIN, "%spool %s", before, hb_json_text(pool, "name"));
        before = ", ";
    }
    if (hb_json_flag(plan, "settings_changed")) {
        hb_print(screen, HB_PLAIN, "%sgeneral ones", before);
        before = ", ";
    }
    if (before[0] == ',')
        fputc('\n', screen->out);
}

static void show_verdict(const struct hb_screen *screen, const json_t *plan)
{
    uint64_t live = hb_json_count(plan, "flows.live"), broken = hb_json_count(plan, "flows.broken");
    uint64_t unsure = hb_json_count(plan, "flows.unsure");
    const char *breaks = hb_json_text(plan, "breaks");
    struct hb_text text;

    if (!hb_json_has(plan, "flows")) {
        if (strcmp(breaks, "no") == 0)
            hb_print(screen, HB_GREEN, "No flow breaks");
        else
            hb_print(screen, HB_YELLOW, "Flows break where the tables say so");
        fprintf(screen->out, "; how many flows there are is not known%s\n",
                strcmp(breaks, "no") == 0 ? ", nor does it matter" : "");
        return;
    }
    if (broken == 0 && unsure == 0)
        hb_print(screen, HB_GREEN, "No flow breaks");
    else if (unsure == 0)
        hb_print(screen, HB_RED, "%" PRIu64 " live flow%s break%s", broken, hb_plural(broken),
                 broken == 1 ? "s" : "");
    else
        hb_print(screen, broken > 0 ? HB_RED : HB_YELLOW,
                 "%" PRIu64 " to %" PRIu64 " live flows break", broken, broken + unsure);
    fprintf(screen->out, ": %s of ", hb_format_count(&text, hb_json_count(plan, "flows.kept")));
    fprintf(screen->out, "%s keep their backend\n", hb_format_count(&text, live));
}

void hb_show_plan(const struct hb_screen *screen, const json_t *plan)
{
    const json_t *pool, *warning;
    unsigned quiet = 0;
    size_t i;

    json_array_foreach (hb_json_at(plan, "warnings"), i, warning) {
        hb_print(screen, HB_YELLOW, "warning: ");
        hb_print(screen, HB_PLAIN, "%s",
                 json_is_string(warning) ? json_string_value(warning) : "-");
        fputc('\n', screen->out);
    }
    if (!hb_json_flag(plan, "changed")) {
        fprintf(screen->out, "the file describes what is in use already; nothing would change\n");
        return;
    }
    show_counts(screen, plan, "services");
    show_counts(screen, plan, "backends");
    show_settings(screen, plan);
    if (hb_json_flag(plan, "reseeded")) {
        hb_print(screen, HB_RED, "the seed differs: every flow is hashed anew");
        fputc('\n', screen->out);
    }
    fputc('\n', screen->out);
    json_array_foreach (hb_json_at(plan, "pools"), i, pool) {
        if (is_quiet_pool(pool))
            quiet++;
        else
            show_pool(screen, pool);
    }
    if (quiet > 0)
        fprintf(screen->out, "%u pool%s keep%s slots, weights and flows\n", quiet, hb_plural(quiet),
                quiet == 1 ? "s its" : " their");
    show_verdict(screen, plan);
}

/* ---- asking ---- */

struct complaints {
    json_t *errors, *warnings;
};

static void on_report(void *context, bool warning, const char *message)
{
    struct complaints *complaints = context;

    json_array_append_new(warning ? complaints->warnings : complaints->errors,
                          json_string(message));
}

/* As control refuses, so that both look the same. */
static void refuse(struct hb_answer *answer, const char *file, json_t *errors)
{
    snprintf(answer->error, sizeof(answer->error),
             "%.512s would be refused as a whole; mend it and plan again", file);
    hb_text_clean(answer->error);
    answer->json = json_pack("{s:{s:O}}", "error", "complaints", errors);
}

static bool plan_offline(const struct hb_ctl *ctl, struct hb_answer *answer)
{
    struct complaints ours = {json_array(), json_array()}, theirs = {json_array(), json_array()};
    struct hb_config *old = hb_config_load(ctl->old, on_report, &theirs);
    struct hb_config *new = hb_config_load(ctl->file, on_report, &ours);
    char complaint[512];
    int error = -1;

    if (old == NULL) {
        refuse(answer, ctl->old, theirs.errors);
    } else if (new == NULL) {
        refuse(answer, ctl->file, ours.errors);
    } else {
        error = hb_preview_files(old, new, &answer->json, complaint, sizeof(complaint));
        if (error == 0) {
            json_object_set(answer->json, "warnings", ours.warnings);
            answer->body = json_dumps(answer->json, JSON_INDENT(2));
            answer->size = answer->body ? strlen(answer->body) : 0;
        } else if (complaint[0] != '\0') {
            json_array_append_new(ours.errors, json_string(complaint));
            refuse(answer, ctl->file, ours.errors);
        } else {
            snprintf(answer->error, sizeof(answer->error), "out of memory");
        }
    }
    hb_config_free(old);
    hb_config_free(new);
    json_decref(ours.errors);
    json_decref(ours.warnings);
    json_decref(theirs.errors);
    json_decref(theirs.warnings);
    return error == 0;
}

static bool plan_online(const struct hb_ctl *ctl, struct hb_answer *answer)
{
    struct complaints complaints = {json_array(), json_array()};
    char path[2048] = "/v1/plan?file=", *text = NULL;
    bool good = false;
    size_t size;

    if (!hb_url_escape(path + strlen(path), sizeof(path) - strlen(path), ctl->file))
        snprintf(path, sizeof(path), "/v1/plan");
    if (hb_config_read(ctl->file, &text, &size, on_report, &complaints) < 0)
        refuse(answer, ctl->file, complaints.errors);
    else
        good = hb_api_post(ctl->socket_path, path, text, size, answer) == 0;
    free(text);
    json_decref(complaints.errors);
    json_decref(complaints.warnings);
    return good;
}

int hb_ctl_plan(const struct hb_ctl *ctl)
{
    struct hb_answer answer = {0};
    bool good;

    if (ctl->file == NULL) {
        fprintf(ctl->err, "halbachctl: name the configuration to plan for: -f NEW.yaml\n");
        return HB_EXIT_USAGE;
    }
    good = ctl->old ? plan_offline(ctl, &answer) : plan_online(ctl, &answer);
    if (!good)
        hb_answer_report(&answer, ctl->err);
    else if (ctl->json)
        hb_ctl_print_json(ctl, &answer);
    else
        hb_show_plan(&ctl->screen, answer.json);
    hb_answer_free(&answer);
    return good ? HB_EXIT_OK : HB_EXIT_FAILED;
}
