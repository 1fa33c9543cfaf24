/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl status: first what is wrong, then the whole. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "api_client.h"
#include "ctl.h"
#include "format.h"
#include "json.h"

#define BACKENDS_NAMED 10 /* of those that are down; the rest is a number */

/* What there is to complain about: red where traffic is lost or changes do not take effect, yellow
 * where somebody should look. One pass counts all (no screen), one prints each colour, the worst
 * first. */
struct findings {
    const struct hb_screen *screen;
    enum hb_colour colour; /* to print */
    unsigned count, severe;
};

static void __attribute__((format(printf, 3, 4)))
find(struct findings *findings, enum hb_colour colour, const char *format, ...)
{
    va_list arguments;
    char *text;

    findings->count++;
    findings->severe += colour == HB_RED;
    if (!findings->screen || findings->colour != colour)
        return;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    hb_print(findings->screen, colour, "  ! ");
    hb_print(findings->screen, HB_PLAIN, "%s", text ? text : "out of memory");
    fputc('\n', findings->screen->out);
    free(text);
}

static void check_dataplane(struct findings *findings, const json_t *status)
{
    const json_t *dataplane = hb_json_at(status, "dataplane"), *port;
    size_t i;

    if (!hb_json_flag(dataplane, "connected")) {
        find(findings, HB_RED,
             "the dataplane is out of reach (if it runs, it forwards by its last generation): %s",
             hb_json_has(dataplane, "problem") ? hb_json_text(dataplane, "problem")
                                               : "no attempt has ended yet");
        return;
    }
    if (hb_json_has(dataplane, "problem"))
        find(findings, HB_RED, "dataplane: %s", hb_json_text(dataplane, "problem"));
    json_array_foreach (hb_json_at(dataplane, "ports"), i, port) {
        if (!hb_json_flag(port, "link"))
            find(findings, HB_RED, "port %" PRIu64 " (%s): the link is down",
                 hb_json_count(port, "id"), hb_json_text(port, "interface"));
    }
}

static void check_generation(struct findings *findings, const json_t *status)
{
    if (hb_json_flag(status, "generation.in_sync"))
        return;
    /* Without a dataplane this follows from the first finding. */
    if (hb_json_flag(status, "dataplane.connected"))
        find(findings, HB_RED,
             "generation %" PRIu64 " is wanted, but the dataplane serves %" PRIu64 "%s%s",
             hb_json_count(status, "generation.wanted"),
             hb_json_count(status, "generation.serving"),
             hb_json_has(status, "generation.last_reject") ? "; it refused: " : "",
             hb_json_has(status, "generation.last_reject")
                 ? hb_json_text(status, "generation.last_reject")
                 : "");
}

static void check_maintenance(struct findings *findings, const json_t *status)
{
    if (hb_json_has(status, "maintenance.command.problem"))
        find(findings, HB_RED, "the command for the state %s has failed: %s",
             hb_json_text(status, "maintenance.state"),
             hb_json_text(status, "maintenance.command.problem"));
    if (strcmp(hb_json_text(status, "maintenance.state"), "withdrawn") == 0)
        find(findings, HB_YELLOW,
             "withdrawn for maintenance%s; 'halbachctl maintenance off' ends it",
             hb_json_flag(status, "maintenance.safe") ? ", safe to stop" : "");
}

static void check_pools(struct findings *findings, const json_t *status)
{
    const json_t *pool;
    size_t i;

    /* Without a dataplane control has no tables: what is dropped then is not for it to say. */
    if (!hb_json_flag(status, "dataplane.connected"))
        return;
    json_array_foreach (hb_json_at(status, "pools"), i, pool) {
        const char *mode = hb_json_text(pool, "mode");

        if (strcmp(mode, "panic") == 0)
            find(findings, HB_RED,
                 "pool %s is in panic, %" PRIu64 " of its backends are healthy: all are used, "
                 "whatever their checks say",
                 hb_json_text(pool, "name"), hb_json_count(pool, "healthy"));
        else if (strcmp(mode, "backup") == 0)
            find(findings, HB_YELLOW,
                 "pool %s has %" PRIu64 " healthy backends, fewer than %" PRIu64
                 ": its backup pool %s serves",
                 hb_json_text(pool, "name"), hb_json_count(pool, "healthy"),
                 hb_json_count(pool, "minimum"), hb_json_text(pool, "backup"));
        else if (strcmp(mode, "closed") == 0 && hb_json_has(pool, "digest"))
            find(findings, HB_RED,
                 "pool %s is closed, %" PRIu64 " of its backends are healthy and %" PRIu64
                 " is the minimum: new flows are dropped, established ones go on",
                 hb_json_text(pool, "name"), hb_json_count(pool, "healthy"),
                 hb_json_count(pool, "minimum"));
        else if (hb_json_count(pool, "usable") == 0)
            find(findings, HB_RED,
                 "pool %s has no usable backend: packets for its services are dropped",
                 hb_json_text(pool, "name"));
    }
}

/* What speaks against a pool although it works. */
static void check_warnings(struct findings *findings, const json_t *status)
{
    const json_t *pool;
    size_t i;

    json_array_foreach (hb_json_at(status, "pools"), i, pool) {
        uint64_t ports = hb_json_count(pool, "nat.ports");
        uint64_t used = hb_json_count(pool, "nat.ports_used");

        if (10 * used > 9 * ports)
            find(findings, HB_YELLOW,
                 "pool %s: %" PRIu64 " of %" PRIu64 " source ports toward one backend are in use, "
                 "and new connections may find none (nat_ports); give it more \"sources\"",
                 hb_json_text(pool, "name"), used, ports);
        if (hb_json_has(pool, "warning"))
            find(findings, HB_YELLOW, "pool %s: %s", hb_json_text(pool, "name"),
                 hb_json_text(pool, "warning"));
    }
}

static void check_backends(struct findings *findings, const json_t *backends)
{
    const json_t *backend;
    unsigned found = 0;
    struct hb_text since;
    size_t i;

    json_array_foreach (hb_json_at(backends, "backends"), i, backend) {
        const char *state = hb_json_text(backend, "state");
        bool up = strcmp(state, "up") == 0 || strcmp(state, "draining") == 0;
        bool resolved =
            !hb_json_has(backend, "next_hop") || hb_json_flag(backend, "next_hop.resolved");

        if ((up && resolved) || ++found > BACKENDS_NAMED)
            continue;
        if (!up)
            find(findings, strcmp(state, "down") == 0 ? HB_RED : HB_YELLOW,
                 "backend %s (pool %s) is %s for %s: %s", hb_json_text(backend, "name"),
                 hb_json_text(backend, "pool"), state,
                 hb_format_duration(&since, hb_json_count(backend, "since_s")),
                 hb_json_text(backend, "reason"));
        else
            find(findings, HB_RED, "backend %s (pool %s) cannot be reached: %s",
                 hb_json_text(backend, "name"), hb_json_text(backend, "pool"),
                 hb_json_text(backend, "next_hop.problem"));
    }
    if (found > BACKENDS_NAMED) {
        find(findings, HB_RED, "and %u more backends; 'halbachctl backends --down' lists them",
             found - BACKENDS_NAMED);
        findings->count += found - BACKENDS_NAMED - 1;
    }
}

/* No fault of a program, but what is in use is not what the file says. */
static void check_rollback(struct findings *findings, const json_t *status)
{
    struct hb_text time, who;

    if (!hb_json_has(status, "config.rollback"))
        return;
    find(findings, HB_YELLOW,
         "configuration %" PRIu64 " is in use since a rollback at %s by %s; the file has another "
         "one, which 'halbachctl reload' takes",
         hb_json_count(status, "config.configuration"),
         hb_format_time(&time, hb_json_count(status, "config.rollback.unix")),
         hb_format_actor(&who, hb_json_at(status, "config.rollback.actor")));
}

static void check_all(struct findings *findings, const json_t *status, const json_t *backends)
{
    check_dataplane(findings, status);
    check_generation(findings, status);
    check_maintenance(findings, status);
    check_pools(findings, status);
    check_warnings(findings, status);
    check_backends(findings, backends);
    if (!backends && hb_json_count(status, "backends.down") > 0)
        find(findings, HB_RED, "%" PRIu64 " backend%s down; 'halbachctl backends --down' says why",
             hb_json_count(status, "backends.down"),
             hb_json_count(status, "backends.down") == 1 ? " is" : "s are");
    check_rollback(findings, status);
    if (hb_json_has(status, "config.last_error"))
        find(findings, HB_YELLOW,
             "the last reload was refused, the configuration before it is in use: %s",
             hb_json_text(status, "config.last_error"));
}

static void show_verdict(const struct hb_screen *screen, const json_t *status,
                         const json_t *backends)
{
    struct findings findings = {0};

    check_all(&findings, status, backends);
    if (findings.count == 0) {
        hb_print(screen, HB_GREEN, "All is well");
        fprintf(screen->out, ": dataplane connected and in sync, no backend down\n\n");
        return;
    }
    hb_print(screen, findings.severe ? HB_RED : HB_YELLOW, "%u problem%s", findings.count,
             hb_plural(findings.count));
    fprintf(screen->out, ":\n");
    findings = (struct findings){.screen = screen, .colour = HB_RED};
    check_all(&findings, status, backends);
    findings.colour = HB_YELLOW;
    check_all(&findings, status, backends);
    fputc('\n', screen->out);
}

/* No problem, but good to know before asking why a backend gets nothing. */
static void show_drains(const struct hb_screen *screen, const json_t *backends)
{
    const json_t *backend;
    bool any = false;
    size_t i;

    json_array_foreach (hb_json_at(backends, "backends"), i, backend) {
        uint64_t flows = hb_json_count(backend, "flows");

        if (!hb_json_flag(backend, "draining"))
            continue;
        any = true;
        hb_print(screen, HB_YELLOW, "Draining");
        hb_print(screen, HB_PLAIN, "    %s (pool %s), %" PRIu64 " flow%s left",
                 hb_json_text(backend, "name"), hb_json_text(backend, "pool"), flows,
                 hb_plural(flows));
        fputc('\n', screen->out);
    }
    if (any)
        fputc('\n', screen->out);
}

static void show_control(const struct hb_screen *screen, const json_t *status)
{
    struct hb_text text;

    hb_print(screen, HB_PLAIN, "Control     %s, pid %" PRIu64 ", up %s",
             hb_json_text(status, "version"), hb_json_count(status, "pid"),
             hb_format_duration(&text, hb_json_count(status, "uptime_s")));
    fputc('\n', screen->out);
}

static void show_config(const struct hb_screen *screen, const json_t *status)
{
    uint64_t reloads = hb_json_count(status, "config.reloads");
    uint64_t refused = hb_json_count(status, "config.reloads_refused");
    struct hb_text text;

    fprintf(screen->out, "Config      ");
    hb_print(screen, HB_PLAIN, "%s", hb_json_text(status, "config.file"));
    fprintf(screen->out,
            ", number %" PRIu64 "\n            taken %s; %" PRIu64 " reload%s, %" PRIu64
            " refused\n",
            hb_json_count(status, "config.configuration"),
            hb_format_time(&text, hb_json_count(status, "config.loaded_unix")), reloads,
            hb_plural(reloads), refused);
}

static void show_dataplane(const struct hb_screen *screen, const json_t *status)
{
    const json_t *dataplane = hb_json_at(status, "dataplane"), *port;
    uint64_t workers = hb_json_count(dataplane, "workers");
    uint64_t flows = hb_json_count(dataplane, "flows"),
             most = hb_json_count(dataplane, "flows_max");
    struct hb_text texts[3];
    size_t i;

    fprintf(screen->out, "Dataplane   ");
    if (!hb_json_flag(dataplane, "connected")) {
        hb_print(screen, HB_RED, "not connected");
        fputc('\n', screen->out);
        return;
    }
    hb_print(screen, HB_PLAIN, "%s", hb_json_text(dataplane, "version"));
    fprintf(screen->out, ", pid %" PRIu64 ", %" PRIu64 " worker%s, %s of %s flows (%s)\n",
            hb_json_count(dataplane, "pid"), workers, hb_plural(workers),
            hb_format_count(&texts[0], flows), hb_format_count(&texts[1], most),
            hb_format_percent(&texts[2], (double)flows, (double)most));
    json_array_foreach (hb_json_at(dataplane, "ports"), i, port) {
        bool link = hb_json_flag(port, "link");

        fprintf(screen->out, "Port %-6" PRIu64 " ", hb_json_count(port, "id"));
        hb_print(screen, HB_PLAIN, "%s (%s), %s", hb_json_text(port, "interface"),
                 hb_json_text(port, "driver"), hb_json_text(port, "mac"));
        fprintf(screen->out, ", MTU %" PRIu64 ", link ", hb_json_count(port, "mtu"));
        hb_print(screen, link ? HB_GREEN : HB_RED, "%s", link ? "up" : "down");
        fputc('\n', screen->out);
    }
}

static void show_generation(const struct hb_screen *screen, const json_t *status)
{
    const json_t *generation = hb_json_at(status, "generation");
    uint64_t rejects = hb_json_count(generation, "rejects");

    fprintf(screen->out, "Generation  ");
    if (hb_json_flag(generation, "in_sync")) {
        fprintf(screen->out, "%" PRIu64 ", ", hb_json_count(generation, "serving"));
        hb_print(screen, HB_GREEN, "in sync");
        /* A control that has just started found it there and does not know. */
        if (hb_json_count(generation, "adopt_us") > 0)
            fprintf(screen->out,
                    "; adopted in %" PRIu64 " us, all workers on it %" PRIu64 " us later",
                    hb_json_count(generation, "adopt_us"), hb_json_count(generation, "grace_us"));
    } else {
        fprintf(screen->out, "%" PRIu64 " wanted, %" PRIu64 " serving, ",
                hb_json_count(generation, "wanted"), hb_json_count(generation, "serving"));
        hb_print(screen, HB_RED, "not in sync");
    }
    if (rejects > 0)
        fprintf(screen->out, "; %" PRIu64 " refused so far", rejects);
    fputc('\n', screen->out);
}

static void show_backend_counts(const struct hb_screen *screen, const json_t *status)
{
    static const struct {
        const char *path, *name;
        enum hb_colour colour;
    } states[] = {
        {"backends.down", "down", HB_RED},
        {"backends.draining", "draining", HB_YELLOW},
        {"backends.unknown", "unknown", HB_YELLOW},
        {"backends.assumed", "assumed", HB_YELLOW},
    };
    unsigned i;

    fprintf(screen->out, "Backends    %" PRIu64 ": ", hb_json_count(status, "backends.total"));
    hb_print(screen, HB_GREEN, "%" PRIu64 " up", hb_json_count(status, "backends.up"));
    for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        uint64_t count = hb_json_count(status, states[i].path);

        if (count == 0)
            continue;
        fprintf(screen->out, ", ");
        hb_print(screen, states[i].colour, "%" PRIu64 " %s", count, states[i].name);
    }
    fprintf(screen->out, "\nServices    %" PRIu64 "\n", hb_json_count(status, "services"));
}

static void show_pools(const struct hb_screen *screen, const json_t *status)
{
    static const struct hb_column columns[] = {
        {"POOL", false, 12},       {"ALGORITHM", false, HB_SPARE},
        {"SLOTS", true, HB_SPARE}, {"USABLE", true, 0},
        {"MOVED", true, 0},        {"IDEAL", true, 0},
        {"UNSETTLED", true, 0},    {"GENERATION", true, HB_SPARE},
        {"DIGEST", false, 0},
    };
    const json_t *pools = hb_json_at(status, "pools"), *pool;
    struct hb_table *table;
    size_t i;

    if (json_array_size(pools) == 0)
        return;
    table = hb_table_new(columns, 9);
    fputc('\n', screen->out);
    json_array_foreach (pools, i, pool) {
        uint64_t usable = hb_json_count(pool, "usable"), total = hb_json_count(pool, "backends");
        bool changed = hb_json_has(pool, "last_change");

        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(pool, "name"));
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(pool, "algorithm"));
        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(pool, "table_size"));
        hb_table_add(table,
                     usable == 0      ? HB_RED
                     : usable < total ? HB_YELLOW
                                      : HB_GREEN,
                     "%" PRIu64 "/%" PRIu64, usable, total);
        if (changed) {
            hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(pool, "last_change.moved"));
            hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(pool, "last_change.ideal"));
            hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(pool, "unsettled"));
            hb_table_add(table, HB_PLAIN, "%" PRIu64,
                         hb_json_count(pool, "last_change.generation"));
        } else {
            hb_table_add(table, HB_PLAIN, "-");
            hb_table_add(table, HB_PLAIN, "-");
            hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(pool, "unsettled"));
            hb_table_add(table, HB_PLAIN, "-");
        }
        hb_table_add(table, HB_PLAIN, "%.12s", hb_json_text(pool, "digest"));
    }
    hb_table_finish(table, screen);
}

void hb_show_status(const struct hb_screen *screen, const json_t *status, const json_t *backends)
{
    show_verdict(screen, status, backends);
    show_drains(screen, backends);
    show_control(screen, status);
    show_config(screen, status);
    show_dataplane(screen, status);
    show_generation(screen, status);
    show_backend_counts(screen, status);
    show_pools(screen, status);
}

int hb_ctl_status(const struct hb_ctl *ctl)
{
    struct hb_answer status, backends = {0};
    int result = HB_EXIT_FAILED;

    if (hb_ctl_ask(ctl, false, "/v1/status", &status)) {
        result = HB_EXIT_OK;
        if (ctl->json) {
            hb_ctl_print_json(ctl, &status);
        } else {
            /* Reasons are welcome, not necessary. */
            bool known = hb_api_request(ctl->socket_path, false, "/v1/backends", &backends) == 0;

            hb_show_status(&ctl->screen, status.json, known ? backends.json : NULL);
            hb_answer_free(&backends);
        }
    }
    hb_answer_free(&status);
    return result;
}
