/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl: the operator's command. Talks to halbach-control over its HTTP API and to nothing
 * else. */
#include <curl/curl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "command_line.h"
#include "watch.h"

#define COLUMNS_LEAST 20 /* less is no screen */

static void find_out_about_screen(struct hb_screen *screen)
{
    const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
    const char *columns = getenv("COLUMNS");
    struct winsize size;

    screen->out = stdout;
    if (isatty(STDOUT_FILENO)) {
        bool dumb = terminal && strcmp(terminal, "dumb") == 0;

        screen->colour = !(no_colour && *no_colour) && !dumb;
        screen->terminal = !dumb;
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
            screen->width = size.ws_col;
            screen->height = size.ws_row;
        }
    }
    /* Whoever sets it wants it, also where the output is no terminal. */
    if (columns && strtoul(columns, NULL, 10) >= COLUMNS_LEAST)
        screen->width = (unsigned)strtoul(columns, NULL, 10);
}

int main(int argc, char **argv)
{
    struct hb_ctl ctl = {.err = stderr, .err_is_terminal = isatty(STDERR_FILENO)};
    int status;

    /* Names are UTF-8 whatever the locale says; messages and numbers stay as scripts expect them.
     */
    setlocale(LC_CTYPE, "C.UTF-8");
    find_out_about_screen(&ctl.screen);
    if (!hb_command_line_parse(&ctl, argc, argv, &status))
        return status;

    curl_global_init(CURL_GLOBAL_DEFAULT);
    status = ctl.watch && !hb_command_watches(&ctl) ? hb_watch(&ctl) : ctl.command->run(&ctl);
    curl_global_cleanup();
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "halbachctl: cannot write the output; is the disk full?\n");
        return HB_EXIT_FAILED;
    }
    return status;
}
