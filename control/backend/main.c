/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c: halbach-backend, the command for a backend host.
 *
 * It sets up, changes, shows or removes the decapsulation program of an interface, and exits: the
 * kernel does the work. Exit status: 0, 1 (failed), 2 (wrong usage).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "decap_program.h"

#define EXIT_FAILED 1
#define EXIT_USAGE  2

struct arguments {
    const char *ifname; /* NULL: none given */
    struct hb_decap_address vips[HB_DECAP_VIPS_MAX];
    struct hb_decap_address sources[HB_DECAP_SOURCES_MAX];
    uint32_t vips_count, sources_count;
    enum hb_decap_wish wish;
    bool json;
};

struct command {
    const char *name;
    const char *usage;
    const char *summary;
    const char *options; /* the letters it takes, see options[] */
    int (*run)(const struct arguments *arguments);
};

static const struct option_row {
    const char *name;
    char letter;
    int has_value;
    const char *summary;
} options[] = {
    {"vip", 'v', required_argument,
     "--vip ADDRESS      a VIP that this host serves (IPv4 or IPv6; repeat it)"},
    {"source", 's', required_argument,
     "--source ADDRESS   an address from which balancers send tunnel packets (repeat it)"},
    {"mode", 'm', required_argument,
     "--mode MODE        auto (default: native, else generic), native, or generic"},
    {"json", 'j', no_argument, "--json             print as JSON"},
    {"help", 'h', no_argument, "--help             print this"},
    {"version", 'V', no_argument, "--version          print the version"},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct counter_row {
    const char *name;
    const char *text;
} counter_rows[] = {
#define COUNTER_ROW(id, name, text) {name, text},
    HB_DECAP_COUNTERS(COUNTER_ROW)
#undef COUNTER_ROW
};

static int fail(const char *problem)
{
    fprintf(stderr, "halbach-backend: %s\n", problem);
    return EXIT_FAILED;
}

/* ---- attach, detach ---- */

static int run_attach(const struct arguments *arguments)
{
    static const char *const changes[] = {
        [HB_DECAP_ATTACHED] = "attached",
        [HB_DECAP_UPDATED] = "updated in place",
        [HB_DECAP_REPLACED] = "exchanged for this version",
    };
    struct hb_decap_addresses vips = {(struct hb_decap_address *)arguments->vips,
                                      arguments->vips_count};
    struct hb_decap_addresses sources = {(struct hb_decap_address *)arguments->sources,
                                         arguments->sources_count};
    struct hb_decap_outcome outcome;
    char problem[HB_XDP_TEXT_SIZE];

    if (hb_decap_attach(arguments->ifname, &vips, &sources, arguments->wish, &outcome, problem))
        return fail(problem);
    if (outcome.note[0])
        fprintf(stderr, "halbach-backend: %s; generic mode is used, which is slower\n",
                outcome.note);
    printf("%s: decapsulation %s, %s mode, %u VIPs, %u tunnel sources\n", arguments->ifname,
           changes[outcome.change], hb_xdp_mode_name(outcome.mode), vips.count, sources.count);
    return 0;
}

static int run_detach(const struct arguments *arguments)
{
    char problem[HB_XDP_TEXT_SIZE];
    int detached = hb_decap_detach(arguments->ifname, problem);

    if (detached < 0)
        return fail(problem);
    printf("%s: %s\n", arguments->ifname,
           detached ? "decapsulation detached" : "no program was attached");
    return 0;
}

/* ---- status ---- */

static const char *print_address(const struct hb_decap_address *address, char *text)
{
    return inet_ntop(address->family == 4 ? AF_INET : AF_INET6, address->bytes, text,
                     INET6_ADDRSTRLEN);
}

static json_t *make_list(const struct hb_decap_addresses *addresses)
{
    json_t *list = json_array();
    char text[INET6_ADDRSTRLEN];

    for (uint32_t i = 0; i < addresses->count; i++)
        json_array_append_new(list, json_string(print_address(&addresses->list[i], text)));
    return list;
}

static json_t *make_status(const struct hb_decap_status *status)
{
    json_t *counters = json_object();

    for (size_t i = 0; i < HB_DECAP_COUNT; i++)
        json_object_set_new(counters, counter_rows[i].name,
                            json_integer((json_int_t)status->counters[i]));
    return json_pack("{s:s, s:s, s:I, s:o, s:o, s:o}", "interface", status->ifname, "mode",
                     hb_xdp_mode_name(status->mode), "program_id", (json_int_t)status->program_id,
                     "vips", make_list(&status->vips), "sources", make_list(&status->sources),
                     "counters", counters);
}

static void print_list(const char *title, const struct hb_decap_addresses *addresses)
{
    char text[INET6_ADDRSTRLEN];

    for (uint32_t i = 0; i < addresses->count; i++)
        printf("  %-15s %s\n", i ? "" : title, print_address(&addresses->list[i], text));
    if (!addresses->count)
        printf("  %-15s none\n", title);
}

static void print_status(const struct hb_decap_status *status)
{
    printf("%s: %s mode, program %u\n", status->ifname, hb_xdp_mode_name(status->mode),
           status->program_id);
    print_list("VIPs", &status->vips);
    print_list("tunnel sources", &status->sources);
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

static int run_status(const struct arguments *arguments)
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

/* ---- arguments ---- */

static const struct command commands[] = {
    {"attach", "attach IFACE --vip ADDRESS... --source ADDRESS... [--mode MODE]",
     "decapsulate on IFACE for exactly these VIPs and sources; again with others to change them",
     "vsm", run_attach},
    {"detach", "detach IFACE", "remove the program from IFACE", "", run_detach},
    {"status", "status [IFACE] [--json]", "show mode, addresses and counters", "j", run_status},
};

static void print_help(void)
{
    printf(
        "Usage: halbach-backend COMMAND\n\n"
        "Decapsulates the balancers' IP-in-IP packets on a backend host, with an XDP program that\n"
        "stays attached when this command ends. A program of somebody else is never replaced.\n\n"
        "Commands:\n");
    for (size_t i = 0; i < COUNT(commands); i++)
        printf("  %s\n      %s\n", commands[i].usage, commands[i].summary);
    printf("\nOptions:\n");
    for (size_t i = 0; i < COUNT(options); i++)
        printf("  %s\n", options[i].summary);
    printf("\nExit status: 0 done, 1 failed, 2 wrong usage.\n");
}

static int fail_usage(const char *what, const char *value)
{
    fprintf(stderr, "halbach-backend: %s%s%s; see 'halbach-backend --help'\n", what,
            value ? ": " : "", value ? value : "");
    return EXIT_USAGE;
}

static int add_address(struct hb_decap_address *list, uint32_t *count, uint32_t max,
                       const char *text)
{
    struct hb_decap_address address = {.family = strchr(text, ':') ? 6 : 4};

    if (inet_pton(address.family == 4 ? AF_INET : AF_INET6, text, address.bytes) != 1)
        return fail_usage("not an IPv4 or IPv6 address", text);
    if (*count == max)
        return fail_usage("more addresses than there is room for, from", text);
    list[(*count)++] = address;
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

static int take_option(struct arguments *arguments, const struct command *command, int letter)
{
    if (letter == '?' || letter == ':')
        return fail_usage(letter == '?' ? "unknown option" : "an option lacks its value", NULL);
    if (!strchr(command->options, letter))
        return fail_usage("an option that this command does not take", command->name);
    switch (letter) {
    case 'v':
        return add_address(arguments->vips, &arguments->vips_count, HB_DECAP_VIPS_MAX, optarg);
    case 's':
        return add_address(arguments->sources, &arguments->sources_count, HB_DECAP_SOURCES_MAX,
                           optarg);
    case 'm':
        return set_mode(arguments, optarg);
    default:
        arguments->json = true;
        return 0;
    }
}

static int check_arguments(const struct arguments *arguments, const struct command *command)
{
    if (!arguments->ifname && command->run != run_status)
        return fail_usage("which interface? usage", command->usage);
    if (command->run == run_attach && (!arguments->vips_count || !arguments->sources_count))
        return fail_usage("attach needs at least one --vip and one --source", NULL);
    return 0;
}

/* Returns 0 when the command is to be run, else the exit status plus one. */
static int parse(int argc, char **argv, const struct command *command, struct arguments *arguments)
{
    struct option long_options[COUNT(options) + 1] = {0};
    int letter, err;

    for (size_t i = 0; i < COUNT(options); i++)
        long_options[i] =
            (struct option){options[i].name, options[i].has_value, NULL, options[i].letter};
    while ((letter = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        if (letter == 'h') {
            print_help();
            return 1;
        }
        if (letter == 'V') {
            printf("halbach-backend %s\n", HB_VERSION);
            return 1;
        }
        err = command ? take_option(arguments, command, letter)
                      : fail_usage("a command comes first", NULL);
        if (err)
            return err + 1;
    }
    return 0;
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; name && i < COUNT(commands); i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

int main(int argc, char **argv)
{
    static struct arguments arguments; /* static: the address lists are large for a stack */
    const struct command *command = find_command(argv[1]);
    int err = parse(argc, argv, command, &arguments);

    if (err)
        return err - 1;
    if (!command)
        return fail_usage(argc < 2 ? "a command is missing" : "unknown command", argv[1]);
    if (optind + 1 < argc) /* argv[optind] is the command's name: getopt moves options before it */
        arguments.ifname = argv[optind + 1];
    if (optind + 2 < argc)
        return fail_usage("one interface at a time; too much", argv[optind + 2]);
    err = check_arguments(&arguments, command);
    return err ? err : command->run(&arguments);
}
