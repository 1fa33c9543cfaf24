/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl top */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"
#include "format.h"
#include "json.h"
#include "watch.h"

/* A service or backend, and what passed a second. */
struct mover {
    const json_t *row;
    double packets, bits, flows, drops;
    size_t place; /* in the answer */
};

static double rate(const json_t *now, const json_t *before, const char *path, double seconds)
{
    uint64_t to = hb_json_count(now, path), from = hb_json_count(before, path);

    /* One that is new, or counts anew, has no rate yet. */
    return before && seconds > 0 && to >= from ? (double)(to - from) / seconds : 0;
}

/* The same object in the answer before: by name, and by pool and address or VIP. */
static const json_t *find(const json_t *list, const json_t *row, size_t hint)
{
    static const char *const keys[] = {"name", "pool", "address", "vip", "ports", "protocol"};
    const json_t *other = json_array_get(list, hint);
    size_t i, k;

    for (i = 0; i <= json_array_size(list); i++) {
        bool same = other != NULL;

        for (k = 0; same && k < sizeof(keys) / sizeof(keys[0]); k++)
            same = strcmp(hb_json_text(row, keys[k]), hb_json_text(other, keys[k])) == 0;
        if (same && hb_json_count(row, "port") == hb_json_count(other, "port"))
            return other;
        other = json_array_get(list, i);
    }
    return NULL;
}

static int by_bits(const void *a, const void *b)
{
    const struct mover *left = a, *right = b;

    if (left->bits != right->bits)
        return left->bits < right->bits ? 1 : -1;
    if (left->packets != right->packets)
        return left->packets < right->packets ? 1 : -1;
    return (left->place > right->place) - (left->place < right->place);
}

/* All of a list, the busiest first. NULL without memory. */
static struct mover *measure(const json_t *now, const json_t *before, double seconds)
{
    struct mover *movers = calloc(json_array_size(now) + 1, sizeof(*movers));
    const json_t *row;
    size_t i;

    json_array_foreach (now, i, row) {
        const json_t *old = find(before, row, i);

        if (!movers)
            return NULL;
        movers[i] = (struct mover){row,
                                   rate(row, old, "packets", seconds),
                                   8 * rate(row, old, "bytes", seconds),
                                   rate(row, old, "new_flows", seconds),
                                   rate(row, old, "drops", seconds),
                                   i};
    }
    if (movers)
        qsort(movers, json_array_size(now), sizeof(*movers), by_bits);
    return movers;
}

static void add_rate(struct hb_table *table, double value)
{
    struct hb_text text;

    hb_table_add(table, HB_PLAIN, "%s", hb_format_count(&text, (uint64_t)(value + 0.5)));
}

static void show_services(const struct hb_screen *screen, const struct mover *movers, size_t count)
{
    static const struct hb_column columns[] = {
        {"SERVICE", false, 10}, {"VIP", false, 16 | HB_SPARE}, {"PACKETS/S", true, 0},
        {"BITS/S", true, 0},    {"NEW FLOWS/S", true, 0},      {"DROPS/S", true, 0},
    };
    struct hb_table *table = hb_table_new(columns, 6);

    for (size_t i = 0; i < count; i++) {
        const json_t *row = movers[i].row;
        struct hb_text text;

        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(row, "name"));
        hb_table_add(
            table, HB_PLAIN, "%s",
            hb_json_has(row, "ports")
                ? hb_format_service(&text, hb_json_text(row, "vip"), hb_json_text(row, "ports"))
                : hb_format_endpoint(&text, hb_json_text(row, "vip"), hb_json_count(row, "port")));
        add_rate(table, movers[i].packets);
        add_rate(table, movers[i].bits);
        add_rate(table, movers[i].flows);
        hb_table_add(table, movers[i].drops > 0 ? HB_YELLOW : HB_PLAIN, "%s",
                     hb_format_count(&text, (uint64_t)(movers[i].drops + 0.5)));
    }
    hb_table_finish(table, screen);
}

static void show_backends(const struct hb_screen *screen, const struct mover *movers, size_t count)
{
    static const struct hb_column columns[] = {
        {"BACKEND", false, 10}, {"POOL", false, 8 | HB_SPARE}, {"STATE", false, 0},
        {"PACKETS/S", true, 0}, {"BITS/S", true, 0},           {"NEW FLOWS/S", true, 0},
        {"FLOWS", true, 0},
    };
    struct hb_table *table = hb_table_new(columns, 7);

    for (size_t i = 0; i < count; i++) {
        const json_t *row = movers[i].row;
        const char *state = hb_json_text(row, "state");
        struct hb_text text;

        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(row, "name"));
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(row, "pool"));
        hb_table_add(table, hb_colour_of_state(state), "%s", state);
        add_rate(table, movers[i].packets);
        add_rate(table, movers[i].bits);
        add_rate(table, movers[i].flows);
        hb_table_add(table, HB_PLAIN, "%s", hb_format_count(&text, hb_json_count(row, "flows")));
    }
    hb_table_finish(table, screen);
}

static void show_sum(const struct hb_screen *screen, const struct mover *movers, size_t count)
{
    struct mover sum = {0};
    struct hb_text texts[3];

    for (size_t i = 0; i < count; i++) {
        sum.packets += movers[i].packets;
        sum.bits += movers[i].bits;
        sum.flows += movers[i].flows;
    }
    hb_print(screen, HB_BOLD, "%s packets/s, %s/s, %s new flows/s",
             hb_format_count(&texts[0], (uint64_t)(sum.packets + 0.5)),
             hb_format_bits(&texts[1], (uint64_t)(sum.bits + 0.5)),
             hb_format_count(&texts[2], (uint64_t)(sum.flows + 0.5)));
    fprintf(screen->out, "\n\n");
}

/* How many rows of each table a terminal of this height has room for. */
static size_t fit(const struct hb_screen *screen, size_t count)
{
    size_t room = screen->height > 12 ? (screen->height - 9) / 2 : 0;

    return room > 0 && count > room ? room : count;
}

void hb_show_top(const struct hb_screen *screen, const json_t *answer, const json_t *before,
                 double seconds)
{
    static const char *const lists[] = {"services", "backends"};
    struct mover *movers[2];

    for (int l = 0; l < 2; l++)
        movers[l] = measure(hb_json_at(answer, lists[l]), hb_json_at(before, lists[l]), seconds);
    if (movers[0] && movers[1]) {
        size_t services = json_array_size(hb_json_at(answer, "services"));
        size_t backends = json_array_size(hb_json_at(answer, "backends"));

        show_sum(screen, movers[0], services);
        show_services(screen, movers[0], fit(screen, services));
        fputc('\n', screen->out);
        show_backends(screen, movers[1], fit(screen, backends));
    }
    free(movers[0]);
    free(movers[1]);
}

/* For scripts: rates as numbers. */
static json_t *rates_of(const json_t *list, const json_t *before, double seconds, bool service)
{
    struct mover *movers = measure(list, before, seconds);
    json_t *rates = json_array();

    for (size_t i = 0; movers && i < json_array_size(list); i++) {
        const json_t *row = movers[i].row;
        json_t *one =
            json_pack("{s:s, s:s, s:f, s:f, s:f}", "name", hb_json_text(row, "name"), "pool",
                      hb_json_text(row, "pool"), "packets_per_s", movers[i].packets, "bits_per_s",
                      movers[i].bits, "new_flows_per_s", movers[i].flows);

        if (service)
            json_object_set_new(one, "drops_per_s", json_real(movers[i].drops));
        json_array_append_new(rates, one);
    }
    free(movers);
    return rates;
}

static void print_rates(const struct hb_ctl *ctl, const json_t *answer, const json_t *before,
                        double seconds)
{
    json_t *document = json_pack(
        "{s:f, s:o, s:o}", "seconds", seconds, "services",
        rates_of(hb_json_at(answer, "services"), hb_json_at(before, "services"), seconds, true),
        "backends",
        rates_of(hb_json_at(answer, "backends"), hb_json_at(before, "backends"), seconds, false));
    char *text = json_dumps(document, ctl->once ? JSON_INDENT(2) : JSON_COMPACT);

    fprintf(ctl->screen.out, "%s\n", text ? text : "");
    free(text);
    json_decref(document);
}

static void show(const struct hb_ctl *ctl, const json_t *now, const json_t *before, double seconds)
{
    if (ctl->json) {
        print_rates(ctl, now, before, seconds);
        return;
    }
    hb_show_top(&ctl->screen, now, before, seconds);
    if (!ctl->once && !ctl->screen.terminal)
        fputc('\n', ctl->screen.out);
}

int hb_ctl_top(const struct hb_ctl *ctl)
{
    static const char *const paths[] = {"/v1/services", "/v1/backends", NULL};

    return hb_watch_rates(ctl, paths, ctl->once, show);
}
