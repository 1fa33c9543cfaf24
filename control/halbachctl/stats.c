/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl stats */
#include <inttypes.h>

#include "api_client.h"
#include "ctl.h"
#include "format.h"
#include "json.h"
#include "watch.h"

/* What passed since the answer before, a second. A dataplane that started anew in between counts
 * from 0. */
static double rate_of(const json_t *now, const json_t *before, const char *path, double seconds)
{
    uint64_t to = hb_json_count(now, path), from = hb_json_count(before, path);

    return before && seconds > 0 && to >= from ? (double)(to - from) / seconds : 0;
}

static void show_traffic(const struct hb_screen *screen, const json_t *answer, const json_t *before,
                         double seconds)
{
    static const struct hb_column columns[] = {{"TRAFFIC", false, 0},
                                               {"PACKETS", true, 0},
                                               {"BYTES", true, 0},
                                               {"PACKETS/S", true, 0},
                                               {"BITS/S", true, 0}};
    static const struct {
        const char *name, *packets, *bytes;
    } rows[] = {
        {"received", "totals.rx_packets", "totals.rx_bytes"},
        {"forwarded", "totals.tx_packets", "totals.tx_bytes"},
        {"to the kernel", "totals.punted_packets", NULL},
        {"dropped", "totals.dropped_packets", NULL},
    };
    struct hb_table *table = hb_table_new(columns, before ? 5 : 3);
    struct hb_text text;
    unsigned i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *bytes = rows[i].bytes;
        double rate = bytes ? 8 * rate_of(answer, before, bytes, seconds) : 0;

        hb_table_add(table, HB_PLAIN, "%s", rows[i].name);
        hb_table_add(table, HB_PLAIN, "%s",
                     hb_format_count(&text, hb_json_count(answer, rows[i].packets)));
        hb_table_add(table, HB_PLAIN, "%s",
                     bytes ? hb_format_bytes(&text, hb_json_count(answer, bytes)) : "-");
        if (!before)
            continue;
        hb_table_add(
            table, HB_PLAIN, "%s",
            hb_format_count(&text, (uint64_t)rate_of(answer, before, rows[i].packets, seconds)));
        hb_table_add(table, HB_PLAIN, "%s", bytes ? hb_format_count(&text, (uint64_t)rate) : "-");
    }
    hb_table_finish(table, screen);
}

static void show_flows(const struct hb_screen *screen, const json_t *answer)
{
    uint64_t flows = hb_json_count(answer, "totals.flows");
    uint64_t most = hb_json_count(answer, "totals.flows_max");
    uint64_t hits = hb_json_count(answer, "totals.flow_hits");
    uint64_t misses = hb_json_count(answer, "totals.flow_misses");
    uint64_t failures = hb_json_count(answer, "totals.flow_insert_failures");
    uint64_t overflows = hb_json_count(answer, "totals.flow_overflows");
    struct hb_text texts[6];

    fprintf(screen->out, "\nFlow caches  %s of %s entries in use (%s)\n",
            hb_format_count(&texts[0], flows), hb_format_count(&texts[1], most),
            hb_format_percent(&texts[2], (double)flows, (double)most));
    fprintf(screen->out, "Lookups      %s hits, %s misses (%s hits)\n",
            hb_format_count(&texts[0], hits), hb_format_count(&texts[1], misses),
            hb_format_percent(&texts[2], (double)hits, (double)hits + (double)misses));
    fprintf(screen->out, "Entries      %s inserted, %s expired, %s evicted, %s selected anew\n",
            hb_format_count(&texts[0], hb_json_count(answer, "totals.flow_inserts")),
            hb_format_count(&texts[1], hb_json_count(answer, "totals.flow_expiries")),
            hb_format_count(&texts[2], hb_json_count(answer, "totals.flow_evictions")),
            hb_format_count(&texts[3], hb_json_count(answer, "totals.flow_reselects")));
    if (hb_json_count(answer, "totals.nat_sessions") > 0)
        fprintf(screen->out, "Full NAT     %s of %s sessions in use\n",
                hb_format_count(&texts[0], hb_json_count(answer, "totals.nat_sessions")),
                hb_format_count(&texts[1], hb_json_count(answer, "totals.nat_sessions_max")));
    if (overflows > 0)
        fprintf(screen->out,
                "Bounded load %s new flows passed on, their backend was at its limit\n",
                hb_format_count(&texts[0], overflows));
    if (failures > 0) {
        hb_print(screen, HB_YELLOW,
                 "Full         %s flows found no room; give the dataplane more --flows",
                 hb_format_count(&texts[0], failures));
        fputc('\n', screen->out);
    }
}

/* What is rare stands there only when it happened. */
static void show_rare(const struct hb_screen *screen, const json_t *answer)
{
    static const struct {
        const char *path, *title, *text;
    } rows[] = {
        {"totals.made_packets", "Made here   ", "packets of the dataplane's own"},
        {"totals.icmp_sent", "ICMP        ", "errors and echo answers made"},
        {"totals.icmp_relayed", "ICMP        ", "about flows, handed to their backends"},
        {"totals.fragments", "Fragments   ", "forwarded"},
        {"totals.held_packets", "Fragments   ", "wait for the first of their datagram"},
        {"totals.quic_routed", "QUIC        ", "packets to the backend that their id names"},
        {"totals.quic_unroutable", "QUIC        ", "short headers whose id names no backend"},
        {"totals.drain_resets", "Drains      ", "flows ended by a reset at the deadline"},
        {"totals.nat_resets", "Full NAT    ", "connections reset: their backend was gone"},
        {"totals.kernel_packets", "Kernel      ", "packets sent by its punt port"},
        {"totals.kernel_losses", "Kernel      ", "packets that the port did not take"},
        {"steering.redirected", "Steering    ", "packets for VIPs"},
        {"steering.passed", "Steering    ", "packets passed to the kernel"},
        {"steering.limited", "Steering    ", "packets to the kernel above the limit, dropped"},
        {"steering.no_socket", "Steering    ", "packets for VIPs that nobody could take, dropped"},
    };
    struct hb_text text;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t count = hb_json_count(answer, rows[i].path);

        if (count > 0)
            fprintf(screen->out, "%s %s %s\n", rows[i].title, hb_format_count(&text, count),
                    rows[i].text);
    }
}

static void show_workers(const struct hb_screen *screen, const json_t *answer)
{
    static const struct hb_column columns[] = {
        {"WORKER", true, 0},    {"LCORE", true, 0},  {"GENERATION", true, 0}, {"RECEIVED", true, 0},
        {"FORWARDED", true, 0}, {"PUNTED", true, 0}, {"DROPPED", true, 0},    {"FLOWS", true, 0},
    };
    static const char *const counts[] = {"rx_packets", "tx_packets", "punted_packets",
                                         "dropped_packets", "flows"};
    const json_t *workers = hb_json_at(answer, "workers"), *worker;
    struct hb_table *table;
    struct hb_text text;
    unsigned column;
    size_t i;

    if (json_array_size(workers) == 0)
        return;
    fputc('\n', screen->out);
    table = hb_table_new(columns, 8);
    json_array_foreach (workers, i, worker) {
        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(worker, "worker"));
        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(worker, "lcore"));
        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(worker, "generation"));
        for (column = 0; column < 5; column++)
            hb_table_add(table, HB_PLAIN, "%s",
                         hb_format_count(&text, hb_json_count(worker, counts[column])));
    }
    hb_table_finish(table, screen);
}

void hb_show_stats(const struct hb_screen *screen, const json_t *answer, const json_t *before,
                   double seconds)
{
    show_traffic(screen, answer, before, seconds);
    show_flows(screen, answer);
    show_rare(screen, answer);
    show_workers(screen, answer);
}

/* Not on a terminal: a line a second, for a log or a pipe. */
static void show_rates(const struct hb_screen *screen, const json_t *answer, const json_t *before,
                       double seconds)
{
    struct hb_text texts[4];

    fprintf(
        screen->out, "received %s/s, forwarded %s/s, dropped %s/s, %s flows\n",
        hb_format_count(&texts[0], (uint64_t)rate_of(answer, before, "totals.rx_packets", seconds)),
        hb_format_count(&texts[1], (uint64_t)rate_of(answer, before, "totals.tx_packets", seconds)),
        hb_format_count(&texts[2],
                        (uint64_t)rate_of(answer, before, "totals.dropped_packets", seconds)),
        hb_format_count(&texts[3], hb_json_count(answer, "totals.flows")));
}

static void show(const struct hb_ctl *ctl, const json_t *now, const json_t *before, double seconds)
{
    if (ctl->screen.terminal)
        hb_show_stats(&ctl->screen, now, before, seconds);
    else
        show_rates(&ctl->screen, now, before, seconds);
}

int hb_ctl_stats(const struct hb_ctl *ctl)
{
    static const char *const paths[] = {"/v1/stats", NULL};
    struct hb_answer answer;
    bool good;

    if (ctl->watch)
        return hb_watch_rates(ctl, paths, false, show);
    good = hb_ctl_ask(ctl, false, paths[0], &answer);
    if (good && ctl->json)
        hb_ctl_print_json(ctl, &answer);
    else if (good)
        hb_show_stats(&ctl->screen, answer.json, NULL, 0);
    hb_answer_free(&answer);
    return good ? HB_EXIT_OK : HB_EXIT_FAILED;
}
