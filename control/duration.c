/* SPDX-License-Identifier: BSD-3-Clause */
#include "duration.h"

#include <ctype.h>
#include <string.h>

#define YEAR_MS (UINT64_C(365) * 24 * 3600 * 1000)

bool hb_duration_parse(const char *text, uint64_t *ms)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    uint64_t value = 0;
    const char *at = text;

    for (; isdigit((unsigned char)*at); at++) {
        value = value * 10 + (uint64_t)(*at - '0');
        if (value > YEAR_MS)
            return false;
    }
    for (unsigned i = 0; at != text && i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(at, units[i].name) != 0 || value > YEAR_MS / units[i].ms)
            continue;
        *ms = value * units[i].ms;
        return true;
    }
    return false;
}
