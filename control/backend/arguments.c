/* SPDX-License-Identifier: BSD-3-Clause */
#include "arguments.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct option_row {
    const char *name;
    char letter;
    int has_value;
    const char *summary;
} options[] = {
    {"vip", 'v', required_argument,
     "--vip ADDRESS      a VIP that this host serves (IPv4 or IPv6, or a prefix; repeat it)"},
    {"source", 's', required_argument,
     "--source ADDRESS   an address, or a prefix, from which balancers send tunnel packets (repeat "
     "it)"},
    {"tunnel", 't', required_argument,
     "--tunnel KIND      what is unwrapped: auto (default: all), ipip, gue, gre or vxlan (repeat "
     "it)"},
    {"gue-port", 'g', required_argument, "--gue-port PORT    UDP port of GUE (default 6080)"},
    {"vxlan-port", 'x', required_argument, "--vxlan-port PORT  UDP port of VXLAN (default 4789)"},
    {"dscp", 'd', required_argument,
     "--dscp DSCP=VIP    for l3dsr: packets with this DSCP are for this VIP (repeat it)"},
    {"address", 'a', required_argument,
     "--address ADDRESS  for l3dsr: an address of this host that balancers send to (repeat it)"},
    {"mode", 'm', required_argument,
     "--mode MODE        of XDP: auto (default: native, else generic), native, or generic"},
    {"json", 'j', no_argument, "--json             print as JSON"},
    {"help", 'h', no_argument, "--help             print this"},
    {"version", 'V', no_argument, "--version          print the version"},
};

void print_options(void)
{
    for (size_t i = 0; i < COUNT(options); i++)
        printf("  %s\n", options[i].summary);
}

int fail_usage(const char *what, const char *value)
{
    fprintf(stderr, "halbach-backend: %s%s%s; see 'halbach-backend --help'\n", what,
            value ? ": " : "", value ? value : "");
    return EXIT_USAGE;
}

static bool read_number(const char *text, uint32_t least, uint32_t most, uint32_t *number)
{
    char *end;
    unsigned long value;

    if (*text < '0' || *text > '9' || strlen(text) > 5)
        return false;
    value = strtoul(text, &end, 10);
    *number = (uint32_t)value;
    return *end == '\0' && value >= least && value <= most;
}

static bool read_address(const char *text, struct hb_decap_address *address)
{
    *address = (struct hb_decap_address){.family = strchr(text, ':') ? 6 : 4};
    return inet_pton(address->family == 4 ? AF_INET : AF_INET6, text, address->bytes) == 1;
}

/* Bits behind a prefix must be zero: what was meant would be a guess. */
static bool is_clean(const struct hb_decap_address *address, uint32_t length)
{
    for (uint32_t bit = length; bit < 128; bit++)
        if (address->bytes[bit / 8] >> (7 - bit % 8) & 1)
            return false;
    return true;
}

static bool read_prefix(const char *text, struct hb_decap_prefix *prefix)
{
    const char *slash = strchr(text, '/');
    struct hb_decap_address address;
    char first[INET6_ADDRSTRLEN];
    uint32_t length;

    if (!slash)
        slash = text + strlen(text);
    if ((size_t)(slash - text) >= sizeof(first))
        return false;
    memcpy(first, text, (size_t)(slash - text));
    first[slash - text] = '\0';
    if (!read_address(first, &address))
        return false;
    length = address.family == 4 ? 32 : 128;
    if (*slash == '/' && !read_number(slash + 1, 0, length, &length))
        return false;
    *prefix = (struct hb_decap_prefix){.bits = 8 + length, .family = address.family};
    memcpy(prefix->bytes, address.bytes, sizeof(prefix->bytes));
    return is_clean(&address, length);
}

static int add_prefix(struct hb_decap_prefix *list, uint32_t *count, uint32_t max, const char *text)
{
    struct hb_decap_prefix prefix;

    if (!read_prefix(text, &prefix))
        return fail_usage("not an IPv4 or IPv6 address, nor a prefix", text);
    if (*count == max)
        return fail_usage("more addresses than there is room for, from", text);
    list[(*count)++] = prefix;
    return 0;
}

static int add_host(struct arguments *arguments, const char *text)
{
    struct hb_decap_address address;

    if (!read_address(text, &address))
        return fail_usage("not an IPv4 or IPv6 address", text);
    if (arguments->hosts_count == HB_HOST_ADDRESSES_MAX)
        return fail_usage("more addresses than there is room for, from", text);
    arguments->hosts[arguments->hosts_count++] = address;
    return 0;
}

static int add_dscp(struct arguments *arguments, const char *text)
{
    const char *equals = strchr(text, '=');
    struct dscp_argument row;
    char number[8];

    if (!equals || equals - text >= (long)sizeof(number))
        return fail_usage("a DSCP and its VIP are expected, such as 10=192.0.2.10, not", text);
    memcpy(number, text, (size_t)(equals - text));
    number[equals - text] = '\0';
    if (!read_number(number, 1, 63, &row.dscp) || !read_address(equals + 1, &row.vip))
        return fail_usage(
            "a DSCP from 1 to 63 and its VIP are expected, such as 10=192.0.2.10, not", text);
    if (arguments->dscps_count == HB_DSCPS_MAX)
        return fail_usage("more DSCPs than there is room for, from", text);
    arguments->dscps[arguments->dscps_count++] = row;
    return 0;
}

static int add_tunnel(struct arguments *arguments, const char *text)
{
    static const struct {
        const char *name;
        uint32_t tunnel;
    } names[] = {
        {"auto", HB_DECAP_TUNNEL_ALL},    {"ipip", HB_DECAP_TUNNEL_IPIP},
        {"gue", HB_DECAP_TUNNEL_GUE},     {"gre", HB_DECAP_TUNNEL_GRE},
        {"vxlan", HB_DECAP_TUNNEL_VXLAN},
    };

    if (!arguments->tunnels_given)
        arguments->settings.tunnels = 0;
    arguments->tunnels_given = true;
    for (size_t i = 0; i < COUNT(names); i++) {
        if (strcmp(text, names[i].name) == 0) {
            arguments->settings.tunnels |= names[i].tunnel;
            return 0;
        }
    }
    return fail_usage("a tunnel is auto, ipip, gue, gre or vxlan, not", text);
}

static int set_port(__be16 *port, const char *text)
{
    uint32_t number;

    if (!read_number(text, 1, 65535, &number))
        return fail_usage("a port from 1 to 65535 is expected, not", text);
    *port = htons((uint16_t)number);
    return 0;
}

static int set_mode(struct arguments *arguments, const char *text)
{
    static const char *const names[] = {
        [HB_DECAP_ANY_MODE] = "auto",
        [HB_DECAP_NATIVE_ONLY] = "native",
        [HB_DECAP_GENERIC_ONLY] = "generic",
    };

    for (size_t i = 0; i < COUNT(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            arguments->wish = (enum hb_decap_wish)i;
            return 0;
        }
    }
    return fail_usage("mode is auto, native or generic, not", text);
}

static int take_option(struct arguments *arguments, const char *accepted, const char *command,
                       int letter)
{
    if (letter == '?' || letter == ':')
        return fail_usage(letter == '?' ? "unknown option" : "an option lacks its value", NULL);
    if (!strchr(accepted, letter))
        return fail_usage("an option that this command does not take", command);
    switch (letter) {
    case 'v':
        return add_prefix(arguments->vips, &arguments->vips_count, HB_DECAP_VIPS_MAX, optarg);
    case 's':
        return add_prefix(arguments->sources, &arguments->sources_count, HB_DECAP_SOURCES_MAX,
                          optarg);
    case 't':
        return add_tunnel(arguments, optarg);
    case 'g':
        return set_port(&arguments->settings.gue_port, optarg);
    case 'x':
        return set_port(&arguments->settings.vxlan_port, optarg);
    case 'd':
        return add_dscp(arguments, optarg);
    case 'a':
        return add_host(arguments, optarg);
    case 'm':
        return set_mode(arguments, optarg);
    default:
        arguments->json = true;
        return 0;
    }
}

/* Every address of this host with every DSCP of its family. */
static int make_marks(struct arguments *arguments)
{
    for (uint32_t d = 0; d < arguments->dscps_count; d++) {
        const struct dscp_argument *row = &arguments->dscps[d];
        uint32_t before = arguments->marks_count;

        for (uint32_t h = 0; h < arguments->hosts_count; h++) {
            if (arguments->hosts[h].family != row->vip.family)
                continue;
            if (arguments->marks_count == HB_DECAP_MARKS_MAX)
                return fail_usage("more --dscp by --address than there is room for", NULL);
            arguments->marks[arguments->marks_count++] = (struct hb_decap_mark_row){
                .mark = {.host = arguments->hosts[h], .dscp = row->dscp}, .vip = row->vip};
        }
        if (arguments->marks_count == before)
            return fail_usage("--dscp needs an --address of this host of the VIP's family", NULL);
    }
    if (arguments->hosts_count > 0 && arguments->dscps_count == 0)
        return fail_usage("--address is for --dscp, and there is none", NULL);
    return 0;
}

int check_attach(struct arguments *arguments)
{
    bool tunnels = arguments->vips_count > 0 && arguments->sources_count > 0;

    if (!tunnels &&
        (arguments->dscps_count == 0 || arguments->vips_count > 0 || arguments->sources_count > 0))
        return fail_usage("attach needs at least one --vip and one --source, or for l3dsr a --dscp "
                          "and an --address",
                          NULL);
    return make_marks(arguments);
}

int take_options(int argc, char **argv, const char *accepted, const char *command,
                 struct arguments *arguments, bool *help)
{
    struct option long_options[COUNT(options) + 1] = {0};
    int letter, err;

    arguments->settings = (struct hb_decap_settings){.tunnels = HB_DECAP_TUNNEL_ALL,
                                                     .gue_port = htons(HB_DECAP_GUE_PORT),
                                                     .vxlan_port = htons(HB_DECAP_VXLAN_PORT)};
    for (size_t i = 0; i < COUNT(options); i++)
        long_options[i] =
            (struct option){options[i].name, options[i].has_value, NULL, options[i].letter};
    while ((letter = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        if (letter == 'h' || letter == 'V') {
            *help = letter == 'h';
            return 1;
        }
        err = command ? take_option(arguments, accepted, command, letter)
                      : fail_usage("a command comes first", NULL);
        if (err)
            return err + 1;
    }
    return 0;
}
