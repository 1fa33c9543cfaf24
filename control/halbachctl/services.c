/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl services */
#include <inttypes.h>

#include "api_client.h"
#include "ctl.h"
#include "format.h"
#include "json.h"

/* Those of the drops that a rule of the service is the reason for. */
static void add_drops(struct hb_table *table, const json_t *service, const char *name)
{
    uint64_t count = hb_json_count(service, name);
    struct hb_text text;

    hb_table_add(table, count > 0 ? HB_YELLOW : HB_PLAIN, "%s", hb_format_count(&text, count));
}

/* What the packets of services with configurations of connection ids were. */
static void show_quic(const struct hb_screen *screen, const json_t *services)
{
    static const struct hb_column columns[] = {
        {"QUIC", false, 10},       {"ROUTED", true, 0},         {"OF CLIENT", true, HB_SPARE},
        {"NO ID", true, HB_SPARE}, {"TOO SHORT", true, 0},      {"CONFIGURATION", true, 0},
        {"NOT ROUTABLE", true, 0}, {"UNKNOWN SERVER", true, 0}, {"DOWN", true, 0},
    };
    static const char *const names[] = {
        "routed",       "of_client",      "no_id",       "too_short", "unknown_configuration",
        "not_routable", "unknown_server", "backend_down"};
    struct hb_table *table = NULL;
    const json_t *service;
    size_t i;

    json_array_foreach (services, i, service) {
        const json_t *quic = hb_json_at(service, "quic");

        if (!json_is_object(quic))
            continue;
        if (table == NULL)
            table = hb_table_new(columns, 9);
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(service, "name"));
        for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
            uint64_t count = hb_json_count(quic, names[n]);
            struct hb_text text;

            hb_table_add(table, n >= 2 && count > 0 ? HB_YELLOW : HB_PLAIN, "%s",
                         hb_format_count(&text, count));
        }
    }
    if (table == NULL)
        return;
    fprintf(screen->out, "\n");
    hb_table_finish(table, screen);
}

void hb_show_services(const struct hb_screen *screen, const json_t *answer)
{
    static const struct hb_column columns[] = {
        {"SERVICE", false, 10},        {"VIP", false, 16},          {"PROTO", false, HB_SPARE},
        {"POOL", false, 8 | HB_SPARE}, {"USABLE", true, 0},         {"NEW FLOWS", true, HB_SPARE},
        {"PACKETS", true, 0},          {"BYTES", true, HB_SPARE},   {"DROPS", true, 0},
        {"DENIED", true, HB_SPARE},    {"LIMITED", true, HB_SPARE}, {"TOO BIG", true, HB_SPARE},
    };
    const json_t *services = hb_json_at(answer, "services"), *service;
    struct hb_table *table;
    size_t i;

    if (json_array_size(services) == 0) {
        fprintf(screen->out, "no services are configured\n");
        return;
    }
    table = hb_table_new(columns, 12);
    json_array_foreach (services, i, service) {
        uint64_t usable = hb_json_count(service, "usable"), total = hb_json_count(service, "total");
        uint64_t drops = hb_json_count(service, "drops");
        struct hb_text text;

        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(service, "name"));
        hb_table_add(table, HB_PLAIN, "%s",
                     hb_json_has(service, "ports")
                         ? hb_format_service(&text, hb_json_text(service, "vip"),
                                             hb_json_text(service, "ports"))
                         : hb_format_endpoint(&text, hb_json_text(service, "vip"),
                                              hb_json_count(service, "port")));
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(service, "protocol"));
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(service, "pool"));
        hb_table_add(table,
                     usable == 0      ? HB_RED
                     : usable < total ? HB_YELLOW
                                      : HB_GREEN,
                     "%" PRIu64 "/%" PRIu64, usable, total);
        hb_table_add(table, HB_PLAIN, "%s",
                     hb_format_count(&text, hb_json_count(service, "new_flows")));
        hb_table_add(table, HB_PLAIN, "%s",
                     hb_format_count(&text, hb_json_count(service, "packets")));
        hb_table_add(table, HB_PLAIN, "%s",
                     hb_format_bytes(&text, hb_json_count(service, "bytes")));
        hb_table_add(table, drops > 0 ? HB_YELLOW : HB_PLAIN, "%s", hb_format_count(&text, drops));
        add_drops(table, service, "denied");
        add_drops(table, service, "limited");
        add_drops(table, service, "too_big");
    }
    hb_table_finish(table, screen);
    show_quic(screen, services);
}

int hb_ctl_services(const struct hb_ctl *ctl)
{
    struct hb_answer answer;
    bool good = hb_ctl_ask(ctl, false, "/v1/services", &answer);

    if (good && ctl->json)
        hb_ctl_print_json(ctl, &answer);
    else if (good)
        hb_show_services(&ctl->screen, answer.json);
    hb_answer_free(&answer);
    return good ? HB_EXIT_OK : HB_EXIT_FAILED;
}
