/* SPDX-License-Identifier: BSD-3-Clause */
#include "status.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#define PREFIX_TEXT (INET6_ADDRSTRLEN + 5)

static const struct counter_row {
    const char *name;
    const char *text;
} counter_rows[] = {
#define COUNTER_ROW(id, name, text) {name, text},
    HB_DECAP_COUNTERS(COUNTER_ROW)
#undef COUNTER_ROW
};

static const char *print_address(const struct hb_decap_address *address, char *text)
{
    return inet_ntop(address->family == 4 ? AF_INET : AF_INET6, address->bytes, text,
                     INET6_ADDRSTRLEN);
}

/* An address alone, or with the length of its prefix. */
static const char *print_prefix(const struct hb_decap_prefix *prefix, char *text)
{
    uint32_t length = prefix->bits - 8;

    inet_ntop(prefix->family == 4 ? AF_INET : AF_INET6, prefix->bytes, text, INET6_ADDRSTRLEN);
    if (length != (prefix->family == 4 ? 32u : 128u))
        snprintf(text + strlen(text), 5, "/%u", length);
    return text;
}

static json_t *make_list(const struct hb_decap_prefixes *prefixes)
{
    json_t *list = json_array();
    char text[PREFIX_TEXT];

    for (uint32_t i = 0; i < prefixes->count; i++)
        json_array_append_new(list, json_string(print_prefix(&prefixes->list[i], text)));
    return list;
}

static json_t *make_marks(const struct hb_decap_marks *marks)
{
    char host[INET6_ADDRSTRLEN], vip[INET6_ADDRSTRLEN];
    json_t *list = json_array();

    for (uint32_t i = 0; i < marks->count; i++)
        json_array_append_new(list, json_pack("{s:s, s:i, s:s}", "address",
                                              print_address(&marks->list[i].mark.host, host),
                                              "dscp", marks->list[i].mark.dscp, "vip",
                                              print_address(&marks->list[i].vip, vip)));
    return list;
}

static const struct {
    uint32_t tunnel;
    const char *name;
} tunnels[] = {
    {HB_DECAP_TUNNEL_IPIP, "ipip"},
    {HB_DECAP_TUNNEL_GUE, "gue"},
    {HB_DECAP_TUNNEL_GRE, "gre"},
    {HB_DECAP_TUNNEL_VXLAN, "vxlan"},
};
#define TUNNELS (sizeof(tunnels) / sizeof(tunnels[0]))

static uint16_t port_of(const struct hb_decap_settings *settings, uint32_t tunnel)
{
    return tunnel == HB_DECAP_TUNNEL_GUE     ? ntohs(settings->gue_port)
           : tunnel == HB_DECAP_TUNNEL_VXLAN ? ntohs(settings->vxlan_port)
                                             : 0;
}

static json_t *make_tunnels(const struct hb_decap_settings *settings)
{
    json_t *list = json_object();

    for (size_t i = 0; i < TUNNELS; i++) {
        uint16_t port = port_of(settings, tunnels[i].tunnel);

        if (settings->tunnels & tunnels[i].tunnel)
            json_object_set_new(list, tunnels[i].name,
                                port ? json_pack("{s:i}", "port", port) : json_object());
    }
    return list;
}

static json_t *make_status(const struct hb_decap_status *status)
{
    json_t *counters = json_object();

    for (size_t i = 0; i < HB_DECAP_COUNT; i++)
        json_object_set_new(counters, counter_rows[i].name,
                            json_integer((json_int_t)status->counters[i]));
    return json_pack("{s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o}", "interface", status->ifname,
                     "mode", hb_xdp_mode_name(status->mode), "program_id",
                     (json_int_t)status->program_id, "vips", make_list(&status->now.vips),
                     "sources", make_list(&status->now.sources), "tunnels",
                     make_tunnels(&status->now.settings), "marks", make_marks(&status->now.marks),
                     "counters", counters);
}

static void print_list(const char *title, const struct hb_decap_prefixes *prefixes)
{
    char text[PREFIX_TEXT];

    for (uint32_t i = 0; i < prefixes->count; i++)
        printf("  %-15s %s\n", i ? "" : title, print_prefix(&prefixes->list[i], text));
    if (!prefixes->count)
        printf("  %-15s none\n", title);
}

static void print_tunnels(const struct hb_decap_settings *settings)
{
    printf("  %-15s", "tunnels");
    for (size_t i = 0; i < TUNNELS; i++) {
        uint16_t port = port_of(settings, tunnels[i].tunnel);

        if (!(settings->tunnels & tunnels[i].tunnel))
            continue;
        printf(" %s", tunnels[i].name);
        if (port)
            printf(" (UDP port %u)", port);
    }
    printf("\n");
}

static void print_marks(const struct hb_decap_marks *marks)
{
    char host[INET6_ADDRSTRLEN], vip[INET6_ADDRSTRLEN];

    for (uint32_t i = 0; i < marks->count; i++)
        printf("  %-15s DSCP %u to %s is for %s\n", i ? "" : "marks", marks->list[i].mark.dscp,
               print_address(&marks->list[i].mark.host, host),
               print_address(&marks->list[i].vip, vip));
}

static void print_status(const struct hb_decap_status *status)
{
    printf("%s: %s mode, program %u\n", status->ifname, hb_xdp_mode_name(status->mode),
           status->program_id);
    print_list("VIPs", &status->now.vips);
    print_list("tunnel sources", &status->now.sources);
    print_tunnels(&status->now.settings);
    print_marks(&status->now.marks);
    for (size_t i = 0; i < HB_DECAP_COUNT; i++)
        printf("  %-15s %-15llu %s\n", counter_rows[i].name,
               (unsigned long long)status->counters[i], counter_rows[i].text);
}

/* Adds one interface to the answer. Returns what hb_decap_read does. */
static int report(const char *ifname, json_t *list, char *problem)
{
    struct hb_decap_status status;
    int found = hb_decap_read(ifname, &status, problem);

    if (found <= 0)
        return found;
    if (list)
        json_array_append_new(list, make_status(&status));
    else
        print_status(&status);
    hb_decap_status_free(&status);
    return found;
}

static int report_one(const char *ifname, json_t *list)
{
    char problem[HB_XDP_TEXT_SIZE];
    int found = report(ifname, list, problem);

    if (found == 0)
        snprintf(problem, sizeof(problem),
                 "no decapsulation program is attached to %s: see 'halbach-backend attach'",
                 ifname);
    return found > 0 ? 0 : fail(problem);
}

/* An interface with a foreign program is none of ours and no error here. */
static int report_all(json_t *list)
{
    struct if_nameindex *interfaces = if_nameindex();
    char problem[HB_XDP_TEXT_SIZE];
    int reported = 0, status = 0;

    if (!interfaces)
        return fail("cannot list the interfaces of this network namespace");
    for (struct if_nameindex *at = interfaces; at->if_index; at++) {
        int found = report(at->if_name, list, problem);

        if (found < 0 && found != -EBUSY && found != -ENODEV)
            status = fail(problem);
        reported += found > 0;
    }
    if_freenameindex(interfaces);
    if (!reported && !status && !list)
        printf("no interface has the decapsulation program: see 'halbach-backend attach'\n");
    return status;
}

int run_status(const struct arguments *arguments)
{
    json_t *list = arguments->json ? json_array() : NULL;
    int status = arguments->ifname ? report_one(arguments->ifname, list) : report_all(list);
    json_t *answer;

    if (!list)
        return status;
    answer = json_pack("{s:o}", "interfaces", list);
    json_dumpf(answer, stdout, JSON_INDENT(2));
    printf("\n");
    json_decref(answer);
    return status;
}
