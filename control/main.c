/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * halbach-control: decides where the dataplane forwards.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config.h"
#include "control.h"
#include "halbach/protocol.h"
#include "log.h"

#define EXIT_USAGE   2
#define STATE_FOLDER "/var/lib/halbach"
#define STATE_FILE   "/state.json"

struct settings {
    const char *config;
    const char *dataplane;
    const char *socket;
    const char *state;
    const char *log_level;
    bool check;
    bool version;
    bool help;
};

/* An option with `text` takes an argument, one with `flag` does not. */
struct option_row {
    const char *name;
    const char *argument;
    const char *help;
    size_t text;
    size_t flag;
};

#define TEXT(member) offsetof(struct settings, member), SIZE_MAX
#define FLAG(member) SIZE_MAX, offsetof(struct settings, member)

static const struct option_row rows[] = {
    {"config", "FILE", "configuration (/etc/halbach/halbach.yaml)", TEXT(config)},
    {"dataplane", "SOCKET", "where halbach-dataplane listens (" HB_DATAPLANE_SOCKET ")",
     TEXT(dataplane)},
    {"socket", "SOCKET", "where the API listens (/run/halbach/control.sock)", TEXT(socket)},
    {"state", "FILE", "what must survive a restart (" STATE_FOLDER STATE_FILE ")", TEXT(state)},
    {"check", NULL, "check the configuration, print what is wrong with it, and leave", FLAG(check)},
    {"log-level", "LEVEL", "error, warning, notice, info or debug (info)", TEXT(log_level)},
    {"version", NULL, "print the version and leave", FLAG(version)},
    {"help", NULL, "print this and leave", FLAG(help)},
};
#define ROWS (sizeof(rows) / sizeof(*rows))

static void print_help(FILE *to)
{
    fprintf(to, "Usage: halbach-control [OPTION]...\n"
                "Reads the configuration, checks backends, and tells halbach-dataplane where to "
                "forward.\n\n");
    for (size_t r = 0; r < ROWS; r++) {
        char left[40];

        snprintf(left, sizeof(left), "--%s %s", rows[r].name,
                 rows[r].argument ? rows[r].argument : "");
        fprintf(to, "  %-20s  %s\n", left, rows[r].help);
    }
    fprintf(to, "\nSIGHUP reloads the configuration; SIGTERM and SIGINT end control, and the "
                "dataplane goes on.\n"
                "Exit status: 0 success, 1 failure, 2 wrong usage.\n");
}

/* Fills *settings; false after a message on wrong usage. */
static bool parse_options(int argc, char **argv, struct settings *settings)
{
    struct option options[ROWS + 1] = {{0}};
    int row;

    for (size_t r = 0; r < ROWS; r++) {
        options[r].name = rows[r].name;
        options[r].has_arg = rows[r].argument ? required_argument : no_argument;
        options[r].val = (int)r;
    }
    while ((row = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (row == '?')
            return false; /* getopt_long has said what is wrong */
        if (rows[row].argument != NULL)
            *(const char **)((char *)settings + rows[row].text) = optarg;
        else
            *(bool *)((char *)settings + rows[row].flag) = true;
    }
    if (optind < argc) {
        fprintf(stderr, "halbach-control: unexpected argument '%s'\n", argv[optind]);
        return false;
    }
    return true;
}

static bool set_log_level(const char *name)
{
    static const char *const names[] = {[HB_LOG_ERROR] = "error",
                                        [HB_LOG_WARNING] = "warning",
                                        [HB_LOG_NOTICE] = "notice",
                                        [HB_LOG_INFO] = "info",
                                        [HB_LOG_DEBUG] = "debug"};

    for (int level = HB_LOG_ERROR; level <= HB_LOG_DEBUG; level++) {
        if (strcmp(name, names[level]) != 0)
            continue;
        hb_log_set_level((enum hb_log_level)level);
        return true;
    }
    fprintf(stderr,
            "halbach-control: --log-level is '%s'; expected error, warning, notice, info or "
            "debug\n",
            name);
    return false;
}

static void print_complaint(void *context, bool warning, const char *message)
{
    (void)context;
    fprintf(stderr, "%s%s\n", warning ? "warning: " : "", message);
}

static int check_config(const char *file)
{
    struct hb_config *config = hb_config_load(file, print_complaint, NULL);

    if (config == NULL)
        return EXIT_FAILURE;
    printf("%s: good: %u services, %u pools\n", file, config->services_count, config->pools_count);
    hb_config_free(config);
    return EXIT_SUCCESS;
}

/* The folder of the default path, as packages would make it; any other is the administrator's.
 * Where this fails, saving the state says so. */
static void make_state_folder(const char *state)
{
    if (strcmp(state, STATE_FOLDER STATE_FILE) == 0)
        (void)mkdir(STATE_FOLDER, 0700);
}

static int run(const struct settings *settings)
{
    const struct hb_control_options options = {
        .config = settings->config,
        .dataplane = settings->dataplane,
        .socket = settings->socket,
        .state = settings->state,
    };
    struct hb_control *control;
    int status;

    make_state_folder(settings->state);
    control = hb_control_open(&options);
    if (control == NULL)
        return EXIT_FAILURE;
    status = hb_control_run(control);
    hb_control_close(control);
    return status;
}

int main(int argc, char **argv)
{
    struct settings settings = {
        .config = "/etc/halbach/halbach.yaml",
        .dataplane = HB_DATAPLANE_SOCKET,
        .socket = "/run/halbach/control.sock",
        .state = STATE_FOLDER STATE_FILE,
        .log_level = "info",
    };

    if (!parse_options(argc, argv, &settings) || !set_log_level(settings.log_level)) {
        fprintf(stderr, "'halbach-control --help' lists the options\n");
        return EXIT_USAGE;
    }
    if (settings.help) {
        print_help(stdout);
        return EXIT_SUCCESS;
    }
    if (settings.version) {
        printf("halbach-control %s\n", HB_VERSION);
        return EXIT_SUCCESS;
    }
    return settings.check ? check_config(settings.config) : run(&settings);
}
