/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c: halbach-dataplane, the process that forwards packets.
 *
 * Exit status: 0 ended by SIGINT or SIGTERM, 1 failed, 2 wrong usage.
 */
#include <signal.h>
#include <stdio.h>

#include "dataplane.h"
#include "log.h"

enum { EXIT_USAGE = 2 };

/* From here on SIGINT and SIGTERM end the process at once: the user has asked twice. */
static void let_signals_kill(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static int complain(const char *problem)
{
    fprintf(stderr, "halbach-dataplane: %s\n", problem);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    static struct hb_dataplane dataplane; /* large; zeroed */
    char problem[HB_TEXT_SIZE] = "";

    dataplane.program = argv[0];
    if (hb_command_line_split(argc, argv, &dataplane.line, problem) != 0)
        return complain(problem);
    if (hb_options_parse(dataplane.line.own_count, dataplane.line.own, &dataplane.options,
                         problem) != 0)
        return complain(problem);
    if (dataplane.options.help) {
        hb_options_help(stdout);
        return 0;
    }
    if (dataplane.options.version) {
        puts("halbach-dataplane " HB_VERSION);
        return 0;
    }
    if (hb_dataplane_start(&dataplane, problem) != 0) {
        hb_log_error("%s", problem);
        return dataplane.plan.wrong_usage ? EXIT_USAGE : 1;
    }
    hb_dataplane_serve(&dataplane);
    let_signals_kill();
    hb_dataplane_stop(&dataplane);
    return 0;
}
