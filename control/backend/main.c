/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c: halbach-backend, the command for a backend host.
 *
 * It sets up, changes, shows or removes the decapsulation program of an interface, and exits: the
 * kernel does the work. Exit status: 0, 1 (failed), 2 (wrong usage).
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "arguments.h"
#include "decap_program.h"
#include "status.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct command {
    const char *name;
    const char *usage;
    const char *summary;
    const char *options; /* the letters it takes, see arguments.c */
    int (*run)(const struct arguments *arguments);
};

int fail(const char *problem)
{
    fprintf(stderr, "halbach-backend: %s\n", problem);
    return EXIT_FAILED;
}

static int run_attach(const struct arguments *arguments)
{
    static const char *const changes[] = {
        [HB_DECAP_ATTACHED] = "attached",
        [HB_DECAP_UPDATED] = "updated in place",
        [HB_DECAP_REPLACED] = "exchanged for this version",
    };
    struct hb_decap_wanted wanted = {
        .vips = {(struct hb_decap_prefix *)arguments->vips, arguments->vips_count},
        .sources = {(struct hb_decap_prefix *)arguments->sources, arguments->sources_count},
        .marks = {(struct hb_decap_mark_row *)arguments->marks, arguments->marks_count},
        .settings = arguments->settings,
    };
    struct hb_decap_outcome outcome;
    char problem[HB_XDP_TEXT_SIZE];

    if (hb_decap_attach(arguments->ifname, &wanted, arguments->wish, &outcome, problem))
        return fail(problem);
    if (outcome.note[0])
        fprintf(stderr, "halbach-backend: %s; generic mode is used, which is slower\n",
                outcome.note);
    printf("%s: decapsulation %s, %s mode, %u VIPs, %u tunnel sources", arguments->ifname,
           changes[outcome.change], hb_xdp_mode_name(outcome.mode), wanted.vips.count,
           wanted.sources.count);
    if (wanted.marks.count > 0)
        printf(", %u marks", wanted.marks.count);
    printf("\n");
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

static const struct command commands[] = {
    {"attach", "attach IFACE --vip ADDRESS... --source ADDRESS... [OPTION]...",
     "decapsulate on IFACE for exactly these VIPs and sources; again with others to change them",
     "vstgxdam", run_attach},
    {"detach", "detach IFACE", "remove the program from IFACE", "", run_detach},
    {"status", "status [IFACE] [--json]", "show mode, addresses and counters", "j", run_status},
};

static void print_help(void)
{
    printf(
        "Usage: halbach-backend COMMAND\n\n"
        "Decapsulates the balancers' tunnel packets on a backend host, with an XDP program that\n"
        "stays attached when this command ends. A program of somebody else is never replaced.\n\n"
        "Commands:\n");
    for (size_t i = 0; i < COUNT(commands); i++)
        printf("  %s\n      %s\n", commands[i].usage, commands[i].summary);
    printf("\nOptions:\n");
    print_options();
    printf("\nExit status: 0 done, 1 failed, 2 wrong usage.\n");
}

static int check_arguments(struct arguments *arguments, const struct command *command)
{
    if (!arguments->ifname && command->run != run_status)
        return fail_usage("which interface? usage", command->usage);
    return command->run == run_attach ? check_attach(arguments) : 0;
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
    bool help = false;
    int err = take_options(argc, argv, command ? command->options : "",
                           command ? command->name : NULL, &arguments, &help);

    if (err == 1 && help)
        print_help();
    else if (err == 1)
        printf("halbach-backend %s\n", HB_VERSION);
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
