/* SPDX-License-Identifier: BSD-3-Clause */
/* See log.h. */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>

#include <rte_log.h>

RTE_LOG_REGISTER(log_type, halbach, NOTICE)

void hb_log_setup(int user_sets_levels)
{
    rte_openlog_stream(stderr);
    if (!user_sets_levels)
        rte_log_set_global_level(RTE_LOG_NOTICE);
}

static void write_line(uint32_t level, const char *format, va_list arguments)
{
    char line[1024];

    vsnprintf(line, sizeof(line), format, arguments);
    rte_log(level, (uint32_t)log_type, "halbach-dataplane: %s\n", line);
}

void hb_log_notice(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    write_line(RTE_LOG_NOTICE, format, arguments);
    va_end(arguments);
}

void hb_log_error(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    write_line(RTE_LOG_ERR, format, arguments);
    va_end(arguments);
}
