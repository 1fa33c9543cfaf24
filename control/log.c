/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The one process-wide setting: how much is printed. */
static enum hb_log_level log_level = HB_LOG_INFO;

void hb_log_set_level(enum hb_log_level level)
{
    log_level = level;
}

/* systemd names the journal's stream by device and inode (sd-daemon(3)), so that a program whose
 * standard error was redirected elsewhere does not print prefixes. */
static bool stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat status;

    return stream != NULL && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
           fstat(STDERR_FILENO, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

static int print_prefix(char *line, size_t size, enum hb_log_level level)
{
    static const char *const words[] = {
        [HB_LOG_ERROR] = "error: ", [HB_LOG_WARNING] = "warning: ",
        [HB_LOG_DEBUG] = "debug: ", [HB_LOG_NOTICE] = "",
        [HB_LOG_INFO] = "",
    };
    struct timespec now;
    struct tm local;
    char clock[32];

    if (stderr_is_journal())
        return snprintf(line, size, "<%d>", (int)level);
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    strftime(clock, sizeof(clock), "%H:%M:%S", &local);
    return snprintf(line, size, "%s.%03ld %s", clock, now.tv_nsec / 1000000, words[level]);
}

void hb_log(enum hb_log_level level, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    int used, more;

    if (level > log_level)
        return;
    used = print_prefix(line, sizeof(line) - 1, level);
    va_start(arguments, format);
    more = vsnprintf(line + used, sizeof(line) - 1 - (size_t)used, format, arguments);
    va_end(arguments);
    used += more;
    if (used > (int)sizeof(line) - 2)
        used = (int)sizeof(line) - 2;
    line[used++] = '\n';
    /* One write, so that lines of several processes do not mix. */
    if (write(STDERR_FILENO, line, (size_t)used) < 0)
        return; /* nobody is left to tell */
}
