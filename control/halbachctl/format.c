/* SPDX-License-Identifier: BSD-3-Clause */
#include "format.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "json.h"

static const char *format_scaled(struct hb_text *buffer, uint64_t value, const char *unit)
{
    static const char prefixes[] = "kMGTPE";
    unsigned __int128 tenths, scale = 1000;
    unsigned i = 0;

    if (value < 10000) {
        snprintf(buffer->text, sizeof(buffer->text), "%" PRIu64 "%s%s", value, *unit ? " " : "",
                 unit);
        return buffer->text;
    }
    /* In tenths of the next larger unit, until fewer than 1000 whole ones are left after rounding.
     */
    for (;;) {
        tenths = ((unsigned __int128)value * 10 + scale / 2) / scale;
        if (tenths < 10000 || prefixes[i + 1] == '\0')
            break;
        scale *= 1000;
        i++;
    }
    snprintf(buffer->text, sizeof(buffer->text), "%u.%u %c%s", (unsigned)(tenths / 10),
             (unsigned)(tenths % 10), prefixes[i], unit);
    return buffer->text;
}

const char *hb_format_count(struct hb_text *buffer, uint64_t count)
{
    return format_scaled(buffer, count, "");
}

const char *hb_format_bits(struct hb_text *buffer, uint64_t bits)
{
    return format_scaled(buffer, bits, "bit");
}

const char *hb_format_bytes(struct hb_text *buffer, uint64_t bytes)
{
    return format_scaled(buffer, bytes, "B");
}

const char *hb_format_duration(struct hb_text *buffer, uint64_t seconds)
{
    uint64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24;
    size_t size = sizeof(buffer->text);

    if (days > 0)
        snprintf(buffer->text, size, "%" PRIu64 "d %" PRIu64 "h", days, hours % 24);
    else if (hours > 0)
        snprintf(buffer->text, size, "%" PRIu64 "h %" PRIu64 "m", hours, minutes % 60);
    else if (minutes > 0)
        snprintf(buffer->text, size, "%" PRIu64 "m %" PRIu64 "s", minutes, seconds % 60);
    else
        snprintf(buffer->text, size, "%" PRIu64 "s", seconds);
    return buffer->text;
}

const char *hb_format_time(struct hb_text *buffer, uint64_t unix_seconds)
{
    time_t when = (time_t)unix_seconds;
    struct tm parts;

    if (!localtime_r(&when, &parts) ||
        strftime(buffer->text, sizeof(buffer->text), "%Y-%m-%d %H:%M:%S", &parts) == 0)
        snprintf(buffer->text, sizeof(buffer->text), "-");
    return buffer->text;
}

const char *hb_format_service(struct hb_text *buffer, const char *vip, const char *ports)
{
    bool ipv6 = strchr(vip, ':') != NULL;

    snprintf(buffer->text, sizeof(buffer->text), "%s%s%s:%s", ipv6 ? "[" : "", vip, ipv6 ? "]" : "",
             ports);
    return buffer->text;
}

const char *hb_format_endpoint(struct hb_text *buffer, const char *address, uint64_t port)
{
    const char *form = strchr(address, ':') ? "[%s]:%" PRIu64 : "%s:%" PRIu64;

    snprintf(buffer->text, sizeof(buffer->text), form, address, port);
    return buffer->text;
}

const char *hb_format_actor(struct hb_text *buffer, const json_t *actor)
{
    const char *by = hb_json_text(actor, "by");
    const struct passwd *user;

    if (strcmp(by, "unix") != 0) {
        snprintf(buffer->text, sizeof(buffer->text), "%s",
                 strcmp(by, "tcp") == 0      ? "a client on TCP"
                 : strcmp(by, "signal") == 0 ? "SIGHUP"
                                             : "-");
        return buffer->text;
    }
    user = getpwuid((uid_t)hb_json_count(actor, "uid"));
    if (user)
        snprintf(buffer->text, sizeof(buffer->text), "%.64s (pid %" PRIu64 ")", user->pw_name,
                 hb_json_count(actor, "pid"));
    else
        snprintf(buffer->text, sizeof(buffer->text), "uid %" PRIu64 " (pid %" PRIu64 ")",
                 hb_json_count(actor, "uid"), hb_json_count(actor, "pid"));
    return buffer->text;
}

const char *hb_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

const char *hb_format_percent(struct hb_text *buffer, double part, double whole)
{
    if (whole > 0)
        snprintf(buffer->text, sizeof(buffer->text), "%.1f %%", 100 * part / whole);
    else
        snprintf(buffer->text, sizeof(buffer->text), "-");
    return buffer->text;
}
