/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * preference.c: ordered distinct backends of a key, distinct zones first.
 */
#include <stdlib.h>
#include <string.h>

#include "hashing/preference.h"

static const char *zone_of(const char *const *zones, uint32_t member)
{
    return zones[member] != NULL ? zones[member] : "";
}

struct ranked {
    const char *zone;
    uint32_t place; /* in the key's order */
};

static int compare_zones(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    int order = strcmp(a->zone, b->zone);

    if (order != 0)
        return order;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* Sorted by zone, the first of each zone is the one to move. */
static uint32_t mark_first_of_zones(const char *const *zones, const uint32_t *members,
                                    uint32_t count, struct ranked *ranked, bool *first)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < count; i++)
        ranked[i] = (struct ranked){zone_of(zones, members[i]), i};
    qsort(ranked, count, sizeof(*ranked), compare_zones);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && strcmp(ranked[i - 1].zone, ranked[i].zone) == 0)
            continue;
        first[ranked[i].place] = true;
        found++;
    }
    return found;
}

uint32_t hb_preference_spread(const char *const *zones, uint32_t *members, uint32_t count)
{
    struct ranked *ranked = calloc(count + 1, sizeof(*ranked));
    bool *first = calloc(count + 1, sizeof(*first));
    uint32_t *spread = calloc(count + 1, sizeof(*spread));
    uint32_t found = 0, ahead = 0, behind;

    if (ranked != NULL && first != NULL && spread != NULL) {
        found = behind = mark_first_of_zones(zones, members, count, ranked, first);
        for (uint32_t i = 0; i < count; i++)
            spread[first[i] ? ahead++ : behind++] = members[i];
        memcpy(members, spread, count * sizeof(*members));
    }
    free(spread);
    free(first);
    free(ranked);
    return found;
}

uint32_t hb_preference(const struct hb_hash_method *method, const void *state,
                       const char *const *zones, const char *key, size_t size, uint32_t want,
                       uint32_t *members)
{
    uint32_t count = method->prefer(state, key, size, members);

    if (zones != NULL && count > 0 && hb_preference_spread(zones, members, count) == 0)
        return 0;
    return count < want ? count : want;
}
