/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl backends */
#include <inttypes.h>
#include <string.h>

#include "api_client.h"
#include "ctl.h"
#include "format.h"
#include "json.h"

static const struct hb_column share_columns[] = {
    {"BACKEND", false, 10},
    {"POOL", false, 8 | HB_SPARE},
    {"ADDRESS", false, 13 | HB_SPARE},
    {"STATE", false, 0},
    {"SINCE", true, HB_SPARE},
    {"WEIGHT", true, HB_SPARE},
    {"SHARE", true, 0},
    {"FLOWS", true, 0},
};
static const struct hb_column traffic_columns[] = {
    {"BACKEND", false, 10}, {"POOL", false, 8 | HB_SPARE}, {"STATE", false, 0},
    {"FLOWS", true, 0},     {"NEW FLOWS", true, HB_SPARE}, {"PACKETS", true, 0},
    {"BYTES", true, 0},     {"ANSWERS", true, HB_SPARE},
};

static bool is_reachable(const json_t *backend)
{
    return !hb_json_has(backend, "next_hop") || hb_json_flag(backend, "next_hop.resolved");
}

static bool is_wanted(const json_t *backend, const char *pool, bool down_only)
{
    if (pool && strcmp(pool, hb_json_text(backend, "pool")) != 0)
        return false;
    return !down_only || strcmp(hb_json_text(backend, "state"), "up") != 0 ||
           !is_reachable(backend);
}

static void add_name(struct hb_table *table, const json_t *backend)
{
    hb_table_add(table, HB_PLAIN, "%s", hb_json_text(backend, "name"));
    hb_table_add(table, HB_PLAIN, "%s", hb_json_text(backend, "pool"));
}

/* An up backend whose next hop is unknown gets no packet: it must not look fine. */
static void add_state(struct hb_table *table, const json_t *backend)
{
    const char *state = hb_json_text(backend, "state");

    if (is_reachable(backend))
        hb_table_add(table, hb_colour_of_state(state), "%s", state);
    else
        hb_table_add(table, HB_RED, "%s, no route", state);
}

/* "5 (1)": the configuration's in brackets where an operator has set another. */
static void add_weight(struct hb_table *table, const json_t *backend)
{
    uint64_t weight = hb_json_count(backend, "weight");
    uint64_t configured = hb_json_count(backend, "configured_weight");

    if (hb_json_has(backend, "configured_weight") && configured != weight)
        hb_table_add(table, HB_PLAIN, "%" PRIu64 " (%" PRIu64 ")", weight, configured);
    else
        hb_table_add(table, HB_PLAIN, "%" PRIu64, weight);
}

/* Now, and where it is on its way to during a slow start. */
static void add_share(struct hb_table *table, const json_t *backend)
{
    struct hb_text now, then;

    hb_format_percent(&now, hb_json_real(backend, "share"), 1);
    if (hb_json_has(backend, "slow_start"))
        hb_table_add(table, HB_YELLOW, "%s of %s", now.text,
                     hb_format_percent(&then, hb_json_real(backend, "share_to_come"), 1));
    else
        hb_table_add(table, HB_PLAIN, "%s", now.text);
}

static void add_share_row(struct hb_table *table, const json_t *backend)
{
    struct hb_text text;

    add_name(table, backend);
    hb_table_add(table, HB_PLAIN, "%s", hb_json_text(backend, "address"));
    add_state(table, backend);
    hb_table_add(table, HB_PLAIN, "%s",
                 hb_format_duration(&text, hb_json_count(backend, "since_s")));
    add_weight(table, backend);
    add_share(table, backend);
    hb_table_add(table, HB_PLAIN, "%s", hb_format_count(&text, hb_json_count(backend, "flows")));
}

static void add_traffic_row(struct hb_table *table, const json_t *backend)
{
    struct hb_text text;

    add_name(table, backend);
    add_state(table, backend);
    hb_table_add(table, HB_PLAIN, "%s", hb_format_count(&text, hb_json_count(backend, "flows")));
    hb_table_add(table, HB_PLAIN, "%s",
                 hb_format_count(&text, hb_json_count(backend, "new_flows")));
    hb_table_add(table, HB_PLAIN, "%s", hb_format_count(&text, hb_json_count(backend, "packets")));
    hb_table_add(table, HB_PLAIN, "%s", hb_format_bytes(&text, hb_json_count(backend, "bytes")));
    hb_table_add(table, HB_PLAIN, "%s",
                 hb_format_count(&text, hb_json_count(backend, "returned_packets")));
}

/* One line for each that is down or out of reach: reasons are too long for a column. */
static void show_reasons(const struct hb_screen *screen, const json_t *backends, const char *pool)
{
    const json_t *backend;
    const char *gap = "\n";
    size_t i;

    json_array_foreach (backends, i, backend) {
        const char *state = hb_json_text(backend, "state");

        if (!is_wanted(backend, pool, true) ||
            ((strcmp(state, "draining") == 0 || strcmp(state, "disabled") == 0) &&
             is_reachable(backend)))
            continue;
        fputs(gap, screen->out);
        gap = "";
        hb_print(screen, HB_PLAIN, "%s (pool %s): %s", hb_json_text(backend, "name"),
                 hb_json_text(backend, "pool"),
                 hb_json_text(backend, strcmp(state, "up") == 0 || strcmp(state, "draining") == 0
                                           ? "next_hop.problem"
                                           : "reason"));
        fputc('\n', screen->out);
    }
}

/* What ICMP errors have told of the ways: a smaller MTU always, numbers with the traffic. */
static void show_paths(const struct hb_screen *screen, const json_t *backends, const char *pool,
                       bool down_only, bool traffic)
{
    const json_t *backend;
    const char *gap = "\n";
    struct hb_text text;
    size_t i;

    json_array_foreach (backends, i, backend) {
        uint64_t unreachable = hb_json_count(backend, "path.unreachable");
        uint64_t exceeded = hb_json_count(backend, "path.time_exceeded");
        uint64_t too_big = hb_json_count(backend, "path.too_big");
        bool reduced = hb_json_count(backend, "path.mtu") != 0;
        bool errors = traffic && (unreachable | exceeded | too_big) != 0;

        if (!is_wanted(backend, pool, down_only) || !(reduced || errors))
            continue;
        fprintf(screen->out, "%s%s (pool %s):", gap, hb_json_text(backend, "name"),
                hb_json_text(backend, "pool"));
        gap = "";
        if (reduced)
            fprintf(screen->out, " its path has an MTU of %" PRIu64 ", tried anew in %s%s",
                    hb_json_count(backend, "path.mtu"),
                    hb_format_duration(&text, hb_json_count(backend, "path.left_s")),
                    errors ? ";" : "");
        if (errors)
            fprintf(screen->out,
                    " ICMP errors on the way: %" PRIu64 " unreachable, %" PRIu64
                    " time exceeded, %" PRIu64 " too big",
                    unreachable, exceeded, too_big);
        fputc('\n', screen->out);
    }
}

void hb_show_backends(const struct hb_screen *screen, const json_t *answer, const char *pool,
                      bool down_only, bool traffic)
{
    json_t *backends = hb_json_by_name(hb_json_at(answer, "backends"));
    const json_t *backend;
    struct hb_table *table =
        traffic ? hb_table_new(traffic_columns, 8) : hb_table_new(share_columns, 8);
    unsigned shown = 0;
    size_t i;

    json_array_foreach (backends, i, backend) {
        if (!is_wanted(backend, pool, down_only))
            continue;
        shown++;
        if (traffic)
            add_traffic_row(table, backend);
        else
            add_share_row(table, backend);
    }
    hb_table_finish(table, screen);
    if (shown == 0)
        fprintf(screen->out, "(%s)\n", down_only ? "none: all are up" : "none");
    show_reasons(screen, backends, pool);
    show_paths(screen, backends, pool, down_only, traffic);
    json_decref(backends);
}

static bool has_pool(const json_t *answer, const char *pool)
{
    const json_t *backend;
    size_t i;

    json_array_foreach (hb_json_at(answer, "backends"), i, backend) {
        if (strcmp(pool, hb_json_text(backend, "pool")) == 0)
            return true;
    }
    return false;
}

int hb_ctl_backends(const struct hb_ctl *ctl)
{
    struct hb_answer answer;
    bool good = hb_ctl_ask(ctl, false, "/v1/backends", &answer);

    if (good && ctl->pool && !has_pool(answer.json, ctl->pool)) {
        fprintf(ctl->err, "halbachctl: no pool is named \"%s\"; 'halbachctl status' lists them\n",
                ctl->pool);
        good = false;
    } else if (good && ctl->json) {
        hb_ctl_print_json(ctl, &answer);
    } else if (good) {
        hb_show_backends(&ctl->screen, answer.json, ctl->pool, ctl->down, ctl->traffic);
    }
    hb_answer_free(&answer);
    return good ? HB_EXIT_OK : HB_EXIT_FAILED;
}
