/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl events */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api_client.h"
#include "ctl.h"
#include "format.h"
#include "json.h"

static enum hb_colour colour_of(const char *type, const char *message)
{
    if (strcmp(type, "rejected") == 0 || strstr(message, " is down") ||
        strstr(message, "cannot be reached") || strstr(message, "cannot connect") ||
        strstr(message, "refused"))
        return HB_RED;
    if (strcmp(type, "drain") == 0 || strcmp(type, "rollback") == 0 ||
        strcmp(type, "maintenance") == 0 || strcmp(type, "policy") == 0 ||
        strcmp(type, "notice") == 0)
        return HB_YELLOW;
    return strstr(message, " is up") ? HB_GREEN : HB_PLAIN;
}

void hb_show_event(const struct hb_screen *screen, const json_t *event)
{
    const char *type = hb_json_text(event, "type"), *message = hb_json_text(event, "message");
    uint64_t ms = hb_json_count(event, "unix_ms");
    struct hb_text time, who;

    if (ms > 0)
        fprintf(screen->out, "%s.%03u  ", hb_format_time(&time, ms / 1000), (unsigned)(ms % 1000));
    hb_print(screen, HB_PLAIN, "%-11s  ", type);
    if (hb_json_has(event, "pool"))
        hb_print(screen, HB_PLAIN, "pool %s: ", hb_json_text(event, "pool"));
    hb_print(screen, colour_of(type, message), "%s", message);
    if (hb_json_has(event, "actor"))
        hb_print(screen, HB_PLAIN, ", by %s", hb_format_actor(&who, hb_json_at(event, "actor")));
    fputc('\n', screen->out);
}

void hb_show_events(const struct hb_screen *screen, const json_t *answer)
{
    const json_t *events = hb_json_at(answer, "events"), *event;
    size_t i;

    if (json_array_size(events) == 0)
        fprintf(screen->out, "nothing has happened since control started\n");
    json_array_foreach (events, i, event)
        hb_show_event(screen, event);
}

/* One line of the stream. Returns false when nobody takes what is printed. */
static bool on_line(void *context, const char *line, size_t size)
{
    const struct hb_ctl *ctl = context;
    char why[128];
    json_t *event;

    if (ctl->json) {
        fprintf(ctl->screen.out, "%.*s\n", (int)size, line);
    } else {
        event = hb_json_parse(line, size, why, sizeof(why));
        if (event)
            hb_show_event(&ctl->screen, event);
        json_decref(event);
    }
    return fflush(ctl->screen.out) == 0;
}

/* Those that are kept first, so that one sees what led to the present. */
static int follow(const struct hb_ctl *ctl, const char *since)
{
    struct hb_answer answer;
    char path[64];

    snprintf(path, sizeof(path), "/v1/events?follow=1&since=%s", since);
    if (hb_api_stream(ctl->socket_path, path, on_line, (void *)(uintptr_t)ctl, &answer) != 0)
        hb_answer_report(&answer, ctl->err);
    hb_answer_free(&answer);
    return HB_EXIT_FAILED; /* a stream ends by ctrl-C only, if all is well */
}

int hb_ctl_events(const struct hb_ctl *ctl)
{
    const char *since = ctl->since ? ctl->since : "0";
    struct hb_answer answer;
    char path[64];
    bool good;

    if (strlen(since) > 20 || since[strspn(since, "0123456789")] != '\0') {
        fprintf(ctl->err, "halbachctl: --since is '%s'; expected the number of an event\n", since);
        return HB_EXIT_USAGE;
    }
    if (ctl->follow)
        return follow(ctl, since);
    snprintf(path, sizeof(path), "/v1/events?since=%s", since);
    good = hb_ctl_ask(ctl, false, path, &answer);
    if (good && ctl->json)
        hb_ctl_print_json(ctl, &answer);
    else if (good)
        hb_show_events(&ctl->screen, answer.json);
    hb_answer_free(&answer);
    return good ? HB_EXIT_OK : HB_EXIT_FAILED;
}
