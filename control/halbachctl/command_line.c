/* SPDX-License-Identifier: BSD-3-Clause */
#include "command_line.h"
#include "watch.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const struct hb_option options[] = {
    {"socket", "PATH", "the socket of halbach-control (default " HB_CONTROL_SOCKET ")",
     offsetof(struct hb_ctl, socket_path), true},
    {"json", NULL, "print the API's JSON document instead of text", offsetof(struct hb_ctl, json),
     true},
    {"help", NULL, "explain the command", offsetof(struct hb_ctl, help), true},
    {"version", NULL, "print the version of halbachctl", offsetof(struct hb_ctl, version), true},
    {"pool", "POOL", "only in this pool", offsetof(struct hb_ctl, pool), false},
    {"down", NULL, "only backends that are not up", offsetof(struct hb_ctl, down), false},
    {"traffic", NULL, "packets and bytes instead of weights and shares",
     offsetof(struct hb_ctl, traffic), false},
    {"wait", NULL, "wait until its last flow has ended", offsetof(struct hb_ctl, wait), false},
    {"watch", "SECONDS", "repeat, every second unless told otherwise, until ctrl-C",
     offsetof(struct hb_ctl, watch), false},
    {"once", NULL, "one measurement, of a second unless --watch says otherwise",
     offsetof(struct hb_ctl, once), false},
    {"follow", NULL, "go on with each new event until ctrl-C; -f for short",
     offsetof(struct hb_ctl, follow), false},
    {"since", "NUMBER", "only events after this one", offsetof(struct hb_ctl, since), false},
    {"deadline", "TIME", "how long its flows may stay: 30s, 10m, 2h",
     offsetof(struct hb_ctl, deadline), false},
    {"at-deadline", "WHAT", "with the flows left then: keep, reassign (default) or reset",
     offsetof(struct hb_ctl, at_deadline), false},
    {"force", NULL, "also when its pool falls under its minimum, or connections break",
     offsetof(struct hb_ctl, force), false},
    {"reset", NULL, "back to the weight of the configuration", offsetof(struct hb_ctl, reset),
     false},
    {"file", "FILE", "the configuration to plan for; -f FILE for short",
     offsetof(struct hb_ctl, file), false},
    {"old", "FILE", "compare with this file, without halbach-control", offsetof(struct hb_ctl, old),
     false},
    {"all", NULL, "also those that never happened", offsetof(struct hb_ctl, all), false},
};

#define DRAIN_DETAILS                                                                              \
    "The backend leaves the lookup table at once and keeps its flows until they\n"                 \
    "end. A drain survives restarts; 'undrain' takes it back. With --wait a\n"                     \
    "progress bar shows the flows that remain and when they will have ended at the\n"              \
    "pace of the last half minute; ctrl-C ends the waiting, not the drain. At the\n"               \
    "deadline the flows that are left are kept, selected anew (reassign), or reset.\n"             \
    "Refused when the pool would fall under its minimum, unless forced. Exit status\n"             \
    "1 when the dataplane has not taken the change yet (it will as soon as it can\n"               \
    "be reached)."

#define PLAN_DETAILS                                                                               \
    "Tells for each pool how many slots of the table would move, how many any\n"                   \
    "method would have to move, every backend's share before and after, and how\n"                 \
    "many live flows would break. Backends that are new count as up. Nothing is\n"                 \
    "changed. Exit status 1 when a reload would refuse the file; every complaint is\n"             \
    "printed."

static const struct hb_command commands[] = {
    {"status", "", 0, 0, "watch", "is everything in sync, what is down, and why",
     "Begins with what is wrong, most urgent first, or says that all is well.", "halbachctl status",
     "the first thing to look at", hb_ctl_status},
    {"services", "", 0, 0, "watch", "the VIPs, their pools and their traffic",
     "USABLE counts the backends that take new flows. DROPS are packets for the\n"
     "service that could not be forwarded; 'halbachctl drops' names the reasons.",
     "halbachctl services", "list all services", hb_ctl_services},
    {"backends", "", 0, 0, "pool down traffic watch", "the backends, their state and their flows",
     "SHARE is the part of the pool's new flows. Below the table stands why a\n"
     "backend is not up.",
     "halbachctl backends --pool web --down", "what is not up in pool web", hb_ctl_backends},
    {"drain", "BACKEND", 1, 1, "pool deadline at-deadline force wait",
     "give a backend no new flows; established ones go on", DRAIN_DETAILS,
     "halbachctl drain web3 --deadline 10m --wait", "empty web3, then take it down for maintenance",
     hb_ctl_drain},
    {"undrain", "BACKEND", 1, 1, "pool", "give a backend new flows again",
     "The reverse of drain. New flows come as soon as the backend is up.",
     "halbachctl undrain web3", "web3 is back from maintenance", hb_ctl_undrain},
    {"weight", "BACKEND [N]", 1, 2, "pool reset force", "change a backend's part of the new flows",
     "Takes effect at once and holds until it is changed again, also after a reload\n"
     "or restart; with --reset the weight of the configuration file holds again. 0:\n"
     "no new flows.",
     "halbachctl weight web3 5", "five times the new flows of a backend with weight 1",
     hb_ctl_weight},
    {"maintenance", "[on|off]", 0, 1, "wait", "take the whole balancer out of service, or back",
     "Runs the command on_withdraw (or on_announce) of the configuration; the\n"
     "dataplane goes on forwarding, so nothing is lost while routes change. With\n"
     "--wait it ends when it is safe to stop the balancer: the command has\n"
     "succeeded, and no traffic comes for VIPs any more. Without on or off: how it\n"
     "stands. Survives restarts.",
     "halbachctl maintenance on --wait", "before a reboot of this machine", hb_ctl_maintenance},
    {"flush", "", 0, 0, "force", "have the dataplane forget all entries of its flow caches",
     "Connections go on by the lookup table where slots have settled. Where some\n"
     "would break (unsettled slots, bounded_load, a pool without a table) it asks\n"
     "first, or is refused unless forced. The workers stop for some milliseconds.\n"
     "UDP flows go by the table from then on too. Sessions of full NAT are kept:\n"
     "nothing else knows what they stand for.",
     "halbachctl flush", "a cache full of a flood's entries", hb_ctl_flush},
    {"reload", "", 0, 0, "", "read the configuration file again",
     "A file with a mistake is refused as a whole and changes nothing; every\n"
     "complaint is printed.",
     "halbachctl reload", "apply an edited configuration", hb_ctl_reload},
    {"rollback", "[NUMBER]", 0, 1, "", "go back to the configuration before, in one step",
     "Takes a former configuration as a whole, in one generation: the one before\n"
     "that in use, or the one of a number; 'halbachctl history' lists them. The file\n"
     "on disk is not touched, so it differs then, and 'status' says so. The rollback\n"
     "holds, also over a restart of control, until 'halbachctl reload' takes the\n"
     "file again, or the file is another one at a start.",
     "halbachctl rollback", "the last reload was a mistake", hb_ctl_rollback},
    {"history", "", 0, 0, "watch", "the last generations, and who or what caused each",
     "Below stand the configurations that are kept for 'halbachctl rollback'. MOVED\n"
     "are slots of the lookup tables that changed their owner.",
     "halbachctl history", "what changed, and who did it", hb_ctl_history},
    {"events", "", 0, 0, "follow since", "what happened: backends, drains, reloads, generations",
     "The last thousand since control started. With --follow the stream ends when\n"
     "control does, or when events come much faster than they are read.",
     "halbachctl events --follow", "watch what happens as it happens", hb_ctl_events},
    {"plan", "", 0, 0, "file old", "what a configuration would change, before it is used",
     PLAN_DETAILS, "halbachctl plan -f new.yaml", "before a reload: does anything break?",
     hb_ctl_plan},
    {"config check", "FILE", 1, 1, "", "check a configuration file, without halbach-control",
     "Prints every complaint with its line, or a summary of what the file describes.",
     "halbachctl config check /etc/halbach/halbach.yaml", "before a reload", hb_ctl_config_check},
    {"stats", "", 0, 0, "watch", "traffic and flow caches, in total and for each worker",
     "Counts run since the start of the dataplane.", "halbachctl stats --watch",
     "traffic as it flows", hb_ctl_stats},
    {"top", "", 0, 0, "once watch", "services and backends by traffic, live",
     "Packets, bits (without tunnel headers) and new flows a second, the busiest\n"
     "first. Where standard output is no terminal, measurements follow one another.\n"
     "With --json rates are numbers, one document a line.",
     "halbachctl top", "what is going on just now", hb_ctl_top},
    {"talkers", "", 0, 0, "all watch", "the sources that send most packets to services",
     "Each worker samples one packet of a burst and keeps the sources that come most\n"
     "often. What a source made up of the samples is told as two bounds; a source\n"
     "with more than 1/128 of a worker's samples is never missing. Looks for a\n"
     "second (or as --watch says); --all: since the start of the dataplane.",
     "halbachctl talkers", "who floods us", hb_ctl_talkers},
    {"drops", "", 0, 0, "all watch", "packets that were dropped, by reason",
     "Counts run since the start of the dataplane.", "halbachctl drops",
     "why packets do not arrive", hb_ctl_drops},
    {"lookup", "CLIENT:PORT VIP:PORT [tcp|udp|sctp]", 2, 3, "watch",
     "where a packet of one flow goes, and why",
     "Asks the dataplane, which looks for the flow in its caches and, if there is\n"
     "none, in the lookup table. IPv6 addresses stand in brackets. The protocol is\n"
     "tcp unless told otherwise.",
     "halbachctl lookup 203.0.113.9:40000 192.0.2.10:80", "which backend serves this client",
     hb_ctl_lookup},
    {"doctor", "[INTERFACE | PCI-ADDRESS]...", 0, HB_ARGUMENTS_MAX, "",
     "what on this machine costs the dataplane speed, and the remedy",
     "Looks at hugepages, the CPUs of the running dataplane's workers (clock,\n"
     "isolation, siblings), and the NICs that are named (NUMA node, PCIe, ring size,\n"
     "mode of AF_XDP). Changes nothing and asks neither daemon. docs/benchmarking.md\n"
     "says why each of these matters.",
     "halbachctl doctor eth0", "before measuring", hb_ctl_doctor},
    {"completion", "bash|zsh|backends|pools|services", 1, 1, "",
     "what a shell needs to complete halbachctl's words",
     "Prints a script for the shell. Packages install it; by hand:\n"
     "'source <(halbachctl completion bash)'. The scripts ask for the names of\n"
     "backends, pools and services in the same way.",
     "halbachctl completion bash > /etc/bash_completion.d/halbachctl", "completion for all users",
     hb_ctl_completion},
    {"help", "[COMMAND]", 0, 2, "", "explain halbachctl, or one command", "",
     "halbachctl help drain", "how draining works", hb_ctl_help},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- finding rows ---- */

/* All rows one after the other, here and in hash_rows.c; NULL behind the last. */
const struct hb_command *hb_command_at(size_t i)
{
    if (i < COUNT(commands))
        return &commands[i];
    return hb_hash_commands[i - COUNT(commands)].name ? &hb_hash_commands[i - COUNT(commands)]
                                                      : NULL;
}

const struct hb_option *hb_option_at(size_t i)
{
    if (i < COUNT(options))
        return &options[i];
    return hb_hash_option_rows[i - COUNT(options)].name ? &hb_hash_option_rows[i - COUNT(options)]
                                                        : NULL;
}

bool hb_command_takes(const struct hb_command *command, const struct hb_option *option)
{
    size_t size = strlen(option->name);
    const char *at = command->options;

    while (!option->global && (at = strstr(at, option->name)) != NULL) {
        if ((at == command->options || at[-1] == ' ') && (at[size] == ' ' || at[size] == '\0'))
            return true;
        at += size;
    }
    return option->global;
}

bool hb_option_is_optional(const struct hb_option *option)
{
    return option->field == offsetof(struct hb_ctl, watch);
}

bool hb_command_watches(const struct hb_ctl *ctl)
{
    int (*run)(const struct hb_ctl *ctl) = ctl->command->run;

    return run == hb_ctl_top ||
           (!ctl->json && (run == hb_ctl_stats || (run == hb_ctl_talkers && !ctl->all)));
}

static const struct hb_option *find_option(const char *name, size_t size)
{
    const struct hb_option *option;
    size_t i;

    for (i = 0; (option = hb_option_at(i)) != NULL; i++) {
        if (strlen(option->name) == size && memcmp(option->name, name, size) == 0)
            return option;
    }
    return NULL;
}

static const struct hb_command *find_command(const char *name)
{
    const struct hb_command *command;
    size_t i;

    for (i = 0; (command = hb_command_at(i)) != NULL; i++) {
        if (strcmp(command->name, name) == 0)
            return command;
    }
    return NULL;
}

static const char *nearest_command(const char *word)
{
    const struct hb_command *command;
    const char *nearest = NULL;
    unsigned best = UINT32_MAX;
    size_t i;

    for (i = 0; (command = hb_command_at(i)) != NULL; i++)
        hb_consider(word, command->name, &nearest, &best);
    return nearest;
}

static const char *nearest_option(const struct hb_command *command, const char *word)
{
    const struct hb_option *option;
    const char *nearest = NULL;
    unsigned best = UINT32_MAX;
    size_t i;

    for (i = 0; (option = hb_option_at(i)) != NULL; i++) {
        if (!command || hb_command_takes(command, option))
            hb_consider(word, option->name, &nearest, &best);
    }
    return nearest;
}

/* ---- help ---- */

static int refuse_word(FILE *to, const char *kind, const char *dashes, const char *word,
                       const char *nearest, const char *help)
{
    fprintf(to, "halbachctl: there is no %s '%s%s'", kind, dashes, word);
    if (nearest)
        fprintf(to, "; did you mean '%s%s'?\n", dashes, nearest);
    else
        fprintf(to, "; '%s' lists them\n", help);
    return HB_EXIT_USAGE;
}

int hb_ctl_help(const struct hb_ctl *ctl)
{
    const struct hb_command *command;
    char name[64];

    if (ctl->arguments_count == 0) {
        hb_print_overview(ctl->screen.out);
        return HB_EXIT_OK;
    }
    snprintf(name, sizeof(name), "%s%s%s", ctl->arguments[0], ctl->arguments_count > 1 ? " " : "",
             ctl->arguments_count > 1 ? ctl->arguments[1] : "");
    command = find_command(name);
    if (!command)
        return refuse_word(ctl->err, "command", "", name, nearest_command(name), "halbachctl help");
    hb_print_command(ctl->screen.out, command);
    return HB_EXIT_OK;
}

/* ---- parsing ---- */

struct line {
    char **words;
    int count, next;
    bool options_end; /* after "--" */
};

static bool is_number(const char *word)
{
    return *word != '\0' && word[strspn(word, "0123456789.")] == '\0';
}

/* "-" and negative numbers are words: whoever gives such a weight is told what a weight is. */
static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && (word[1] < '0' || word[1] > '9');
}

/* The options that have a short form are few. */
static const char *long_form(const char *word, bool follows)
{
    if (strcmp(word, "-h") == 0)
        return "--help";
    if (strcmp(word, "-f") == 0)
        return follows ? "--follow" : "--file";
    return word;
}

/* The command is the first word, so it is known before options that follow it. */
static bool is_events(const struct hb_ctl *ctl)
{
    return ctl->arguments_count > 0 && strcmp(ctl->arguments[0], "events") == 0;
}

/* Takes one option and its argument. Returns false after a complaint. */
static bool take_option(struct hb_ctl *ctl, struct line *line, const struct hb_option **taken)
{
    const char *word = long_form(line->words[line->next++], is_events(ctl)) + 2;
    size_t size = strcspn(word, "=");
    const struct hb_option *option = find_option(word, size);
    const char *value = word[size] == '=' ? word + size + 1 : NULL;
    void *field;

    if (!option) {
        refuse_word(ctl->err, "option", "--", word, nearest_option(ctl->command, word),
                    "halbachctl help");
        return false;
    }
    *taken = option;
    field = (char *)ctl + option->field;
    if (!option->argument) {
        if (value)
            fprintf(ctl->err, "halbachctl: --%s takes no value\n", option->name);
        *(bool *)field = true;
        return !value;
    }
    if (!value && hb_option_is_optional(option))
        value = line->next < line->count && is_number(line->words[line->next])
                    ? line->words[line->next++]
                    : "1";
    if (!value && line->next < line->count)
        value = line->words[line->next++];
    if (!value || !*value) {
        fprintf(ctl->err, "halbachctl: --%s needs a value: --%s %s\n", option->name, option->name,
                option->argument);
        return false;
    }
    *(const char **)field = value;
    return true;
}

/* The command's own name is the first plain word, or the first two. */
static bool take_word(struct hb_ctl *ctl, const char *word)
{
    if (ctl->arguments_count == HB_ARGUMENTS_MAX) {
        fprintf(ctl->err,
                "halbachctl: too many arguments, from '%s' on; 'halbachctl help' explains\n", word);
        return false;
    }
    ctl->arguments[ctl->arguments_count++] = word;
    return true;
}

static bool find_named_command(struct hb_ctl *ctl)
{
    unsigned words = 1;
    char name[64];

    ctl->command = find_command(ctl->arguments[0]);
    if (!ctl->command && ctl->arguments_count > 1) {
        snprintf(name, sizeof(name), "%s %s", ctl->arguments[0], ctl->arguments[1]);
        ctl->command = find_command(name);
        words = 2;
    }
    if (!ctl->command) {
        /* "confg check" is near a command; "config" alone begins one. */
        const char *nearest = words == 2 ? nearest_command(name) : NULL;

        if (!nearest)
            nearest = nearest_command(ctl->arguments[0]);
        refuse_word(ctl->err, "command", "", ctl->arguments[0], nearest, "halbachctl help");
        return false;
    }
    ctl->arguments_count -= words;
    memmove(ctl->arguments, ctl->arguments + words, ctl->arguments_count * sizeof(*ctl->arguments));
    return true;
}

static bool check_usage(struct hb_ctl *ctl, const struct hb_option *const *taken,
                        unsigned taken_count)
{
    const struct hb_command *command = ctl->command;
    unsigned i;

    for (i = 0; i < taken_count; i++) {
        if (!hb_command_takes(command, taken[i])) {
            fprintf(ctl->err, "halbachctl: %s takes no --%s; usage: ", command->name,
                    taken[i]->name);
            hb_print_usage(ctl->err, command);
            return false;
        }
    }
    if (ctl->help)
        return true;
    if (ctl->arguments_count < command->least || ctl->arguments_count > command->most) {
        fprintf(ctl->err, "halbachctl: %s arguments; usage: ",
                ctl->arguments_count < command->least ? "too few" : "too many");
        hb_print_usage(ctl->err, command);
        return false;
    }
    return true;
}

bool hb_command_line_parse(struct hb_ctl *ctl, int argc, char **argv, int *status)
{
    struct line line = {.words = argv, .count = argc, .next = 1};
    const struct hb_option *taken[32];
    unsigned taken_count = 0;

    *status = HB_EXIT_USAGE;
    ctl->socket_path = HB_CONTROL_SOCKET;
    while (line.next < argc) {
        const char *word = argv[line.next];

        if (!line.options_end && strcmp(word, "--") == 0) {
            line.options_end = true;
            line.next++;
        } else if (!line.options_end && is_option(word)) {
            if (long_form(word, false)[1] != '-') {
                refuse_word(ctl->err, "option", "", word, NULL, "halbachctl help");
                return false;
            }
            if (taken_count == COUNT(taken) || !take_option(ctl, &line, &taken[taken_count]))
                return false;
            taken_count++;
        } else {
            if (!take_word(ctl, word))
                return false;
            line.next++;
        }
    }

    if (ctl->version) {
        fprintf(ctl->screen.out, "halbachctl %s\n", HB_VERSION);
        *status = HB_EXIT_OK;
        return false;
    }
    if (ctl->arguments_count == 0) {
        hb_print_overview(ctl->help ? ctl->screen.out : ctl->err);
        *status = ctl->help ? HB_EXIT_OK : HB_EXIT_USAGE;
        return false;
    }
    if (!find_named_command(ctl) || !check_usage(ctl, taken, taken_count))
        return false;
    if (ctl->help) {
        hb_print_command(ctl->screen.out, ctl->command);
        *status = HB_EXIT_OK;
        return false;
    }
    return hb_watch_check(ctl);
}
