/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl lookup */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api_client.h"
#include "ctl.h"
#include "format.h"
#include "json.h"

/* How the answer came about, by the API's `source`. */
static const struct {
    const char *source, *text;
} sources[] = {
    {"flow", "a flow entry (cached)"},
    {"flow_stale", "the lookup table (computed): the flow's own backend is gone or down"},
    {"table", "the lookup table (computed): the flow has no entry"},
    {"no_backend", "nothing"}, /* "why" says it */
    {"no_service", "nothing"},
};

static const char *source_text(const char *source)
{
    unsigned i;

    for (i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        if (strcmp(sources[i].source, source) == 0)
            return sources[i].text;
    }
    return source;
}

static void show_destination(const struct hb_screen *screen, const json_t *answer)
{
    const char *state = hb_json_text(answer, "backend_state");

    fprintf(screen->out, "  goes to     ");
    if (!hb_json_has(answer, "backend")) {
        hb_print(screen, HB_RED, "no backend");
        fputc('\n', screen->out);
        return;
    }
    hb_print(screen, HB_BOLD, "%s", hb_json_text(answer, "backend"));
    hb_print(screen, HB_PLAIN, " (%s), ", hb_json_text(answer, "backend_address"));
    hb_print(screen, hb_colour_of_state(state), "%s", state);
    fputc('\n', screen->out);
}

static void show_line(const struct hb_screen *screen, const char *title, const char *text)
{
    fprintf(screen->out, "  %-10s  ", title);
    hb_print(screen, HB_PLAIN, "%s", text);
    fputc('\n', screen->out);
}

void hb_show_lookup(const struct hb_screen *screen, const json_t *answer, const char *client,
                    const char *vip, const char *protocol)
{
    hb_print(screen, HB_PLAIN, "%s to %s, %s", client, vip, protocol);
    fputc('\n', screen->out);
    show_destination(screen, answer);
    show_line(screen, "decided by", source_text(hb_json_text(answer, "source")));
    show_line(screen, "why", hb_json_text(answer, "why"));
    if (hb_json_has(answer, "slot")) {
        fprintf(screen->out, "  slot        %" PRIu64 " of %" PRIu64 ", owned by ",
                hb_json_count(answer, "slot"), hb_json_count(answer, "slots"));
        hb_print(screen, HB_PLAIN, "%s", hb_json_text(answer, "slot_owner"));
        fputc('\n', screen->out);
    }
    if (hb_json_has(answer, "worker"))
        fprintf(screen->out, "  flow entry  worker %" PRIu64 ", last used %" PRIu64 " ms ago\n",
                hb_json_count(answer, "worker"), hb_json_count(answer, "idle_ms"));
    if (hb_json_has(answer, "service")) {
        fprintf(screen->out, "  service     ");
        hb_print(screen, HB_PLAIN, "%s, pool %s", hb_json_text(answer, "service"),
                 hb_json_text(answer, "pool"));
        fputc('\n', screen->out);
    }
    fprintf(screen->out, "  generation  %" PRIu64 "\n", hb_json_count(answer, "generation"));
    if (hb_json_has(answer, "hash"))
        show_line(screen, "hash", hb_json_text(answer, "hash"));
}

/* "192.0.2.10:80" or "[2001:db8::10]:80". Only the form: the API knows the rest. */
static bool is_endpoint(const char *text)
{
    const char *colon = strrchr(text, ':');
    unsigned char bytes[16];
    char address[64], *end;
    size_t size;

    if (!colon || colon[1] < '0' || colon[1] > '9' || strtoul(colon + 1, &end, 10) > 65535 || *end)
        return false;
    size = (size_t)(colon - text);
    if (size >= sizeof(address))
        return false;
    memcpy(address, text, size);
    address[size] = '\0';
    if (size >= 2 && address[0] == '[' && address[size - 1] == ']') {
        address[size - 1] = '\0';
        return inet_pton(AF_INET6, address + 1, bytes) == 1;
    }
    return inet_pton(AF_INET, address, bytes) == 1;
}

static bool check_arguments(const struct hb_ctl *ctl, const char *protocol)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        if (!is_endpoint(ctl->arguments[i])) {
            fprintf(ctl->err,
                    "halbachctl: '%s' is not ADDRESS:PORT; examples: 192.0.2.10:80, "
                    "[2001:db8::10]:80\n",
                    ctl->arguments[i]);
            return false;
        }
    }
    if (strcmp(protocol, "tcp") != 0 && strcmp(protocol, "udp") != 0 &&
        strcmp(protocol, "sctp") != 0) {
        fprintf(ctl->err, "halbachctl: '%s' is not a protocol of services; use tcp, udp or sctp\n",
                protocol);
        return false;
    }
    return true;
}

int hb_ctl_lookup(const struct hb_ctl *ctl)
{
    const char *protocol = ctl->arguments_count > 2 ? ctl->arguments[2] : "tcp";
    char client[256], vip[256], path[640];
    struct hb_answer answer;
    bool good;

    if (!check_arguments(ctl, protocol) ||
        !hb_url_escape(client, sizeof(client), ctl->arguments[0]) ||
        !hb_url_escape(vip, sizeof(vip), ctl->arguments[1]))
        return HB_EXIT_USAGE;
    snprintf(path, sizeof(path), "/v1/lookup?client=%s&vip=%s&protocol=%s", client, vip, protocol);
    good = hb_ctl_ask(ctl, false, path, &answer);
    if (good && ctl->json)
        hb_ctl_print_json(ctl, &answer);
    else if (good)
        hb_show_lookup(&ctl->screen, answer.json, ctl->arguments[0], ctl->arguments[1], protocol);
    hb_answer_free(&answer);
    return good ? HB_EXIT_OK : HB_EXIT_FAILED;
}
