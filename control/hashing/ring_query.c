/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring_query.c: what a ring is asked: who owns a position, who comes next, what a change moves.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hashing/ring.h"

size_t hb_ring_memory(const struct hb_ring_map *ring)
{
    size_t bytes = sizeof(*ring) + ring->points_count * sizeof(*ring->points) +
                   ring->members_count * sizeof(*ring->names);

    for (uint32_t i = 0; i < ring->members_count; i++)
        bytes += strlen(ring->names[i]) + 1;
    return bytes;
}

/* The first point at or after a position; points_count when there is none. */
static uint32_t find_at_or_after(const struct hb_ring_map *ring, uint64_t position)
{
    uint32_t low = 0, high = ring->points_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (ring->points[middle].position < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t hb_ring_find(const struct hb_ring_map *ring, uint64_t position)
{
    uint32_t point = find_at_or_after(ring, position);

    return point < ring->points_count ? point : 0;
}

uint32_t hb_ring_owner(const struct hb_ring_map *ring, uint64_t position)
{
    return ring->points[hb_ring_find(ring, position)].member;
}

static uint32_t next_of(const struct hb_ring_map *ring, uint32_t point)
{
    return point + 1 < ring->points_count ? point + 1 : 0;
}

static uint32_t previous_of(const struct hb_ring_map *ring, uint32_t point)
{
    return point > 0 ? point - 1 : ring->points_count - 1;
}

uint32_t hb_ring_successors(const struct hb_ring_map *ring, uint64_t position, uint32_t want,
                            uint32_t *members)
{
    bool *seen = calloc(ring->members_count, sizeof(*seen));
    uint32_t point = hb_ring_find(ring, position), found = 0;

    if (seen == NULL)
        return 0;
    for (uint32_t i = 0; i < ring->points_count && found < want; i++) {
        uint32_t member = ring->points[point].member;

        if (!seen[member])
            members[found++] = member;
        seen[member] = true;
        point = next_of(ring, point);
    }
    free(seen);
    return found;
}

int64_t hb_ring_member(const struct hb_ring_map *ring, const char *name)
{
    for (uint32_t i = 0; i < ring->members_count; i++) {
        if (strcmp(ring->names[i], name) == 0)
            return i;
    }
    return -1;
}

struct hb_ring_interval hb_ring_join(const struct hb_ring_map *ring, const char *name,
                                     uint64_t position)
{
    uint32_t next = hb_ring_find(ring, position);
    const struct hb_ring_point *owner = &ring->points[next];
    int order = strcmp(ring->names[owner->member], name);

    return (struct hb_ring_interval){
        .after = ring->points[previous_of(ring, next)].position,
        .to = position,
        .from = owner->member,
        .empty = order == 0 || (owner->position == position && order < 0),
    };
}

struct hb_ring_interval hb_ring_leave(const struct hb_ring_map *ring, uint32_t point,
                                      uint32_t *heir)
{
    const struct hb_ring_point *leaving = &ring->points[point];
    uint32_t next = next_of(ring, point);
    struct hb_ring_interval interval = {
        .after = ring->points[previous_of(ring, point)].position,
        .to = leaving->position,
        .from = leaving->member,
    };

    while (next != point && ring->points[next].member == leaving->member)
        next = next_of(ring, next);
    *heir = ring->points[next].member;
    /* One that stands behind another at the same position has nothing. */
    interval.empty = *heir == leaving->member ||
                     (point > 0 && ring->points[point - 1].position == leaving->position);
    return interval;
}

const char *hb_ring_print_interval(const struct hb_ring_interval *interval,
                                   char text[HB_RING_INTERVAL_TEXT])
{
    if (interval->empty)
        snprintf(text, HB_RING_INTERVAL_TEXT, "nothing");
    else
        snprintf(text, HB_RING_INTERVAL_TEXT, "(%" PRIu32 ", %" PRIu32 "]",
                 (uint32_t)interval->after, (uint32_t)interval->to);
    return text;
}

uint32_t hb_ring_nodes_for(uint32_t members, uint32_t permille)
{
    uint64_t below = (uint64_t)members * permille * permille;
    uint64_t nodes;

    if (below == 0)
        return 1;
    nodes = ((members - UINT64_C(1)) * 1000000 + below - 1) / below;
    return nodes > 0 ? (uint32_t)nodes : 1;
}
