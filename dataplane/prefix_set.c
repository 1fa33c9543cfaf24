/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of source prefixes; prefix_set.h tells how they work. */
#include "prefix_set.h"

#include <string.h>

typedef unsigned __int128 wide; /* an address of either family as a number */

#define DEPTH_MAX 130 /* prefixes within each other: one of each length, and what is around all */

int hb_prefix_compare(const struct hb_prefix_record *a, const struct hb_prefix_record *b)
{
    int order = (int)a->family - (int)b->family;

    if (order == 0)
        order = memcmp(a->address, b->address, sizeof(a->address));
    return order != 0 ? order : (int)a->length - (int)b->length;
}

static uint32_t count_ipv4(const struct hb_prefix_record *prefixes, uint32_t count)
{
    uint32_t ipv4 = 0;

    while (ipv4 < count && prefixes[ipv4].family == HB_FAMILY_IPV4)
        ipv4++;
    return ipv4;
}

size_t hb_prefix_set_bytes(const struct hb_prefix_record *prefixes, uint32_t count)
{
    size_t ipv4 = count_ipv4(prefixes, count);

    return ((2 * ipv4 * sizeof(uint32_t) + 15) & ~(size_t)15) +
           2 * (count - ipv4) * sizeof(struct hb_prefix_edge6);
}

/* The edges of one family as they are found, from the lowest address on. */
struct edges {
    uint32_t *edge4; /* one of the two is NULL */
    struct hb_prefix_edge6 *edge6;
    uint32_t count;
    bool state; /* behind the last edge */
};

/* From `address` on, `allowed` holds. Where two prefixes begin or end together the last word
 * counts, so an edge may have to go again. */
static void set_from(struct edges *edges, wide address, bool allowed)
{
    struct hb_prefix_edge6 edge = {(uint64_t)(address >> 64), (uint64_t)address};

    if (edges->state == allowed)
        return;
    edges->state = allowed;
    if (edges->count > 0 && (edges->edge4 != NULL ? edges->edge4[edges->count - 1] == edge.low
                                                  : memcmp(&edges->edge6[edges->count - 1], &edge,
                                                           sizeof(edge)) == 0)) {
        edges->count--;
        return;
    }
    if (edges->edge4 != NULL)
        edges->edge4[edges->count++] = (uint32_t)edge.low;
    else
        edges->edge6[edges->count++] = edge;
}

static wide address_of(const struct hb_prefix_record *prefix)
{
    struct hb_prefix_edge6 words = hb_prefix_address6(prefix->address);

    return prefix->family == HB_FAMILY_IPV4 ? (wide)(words.high >> 32)
                                            : (wide)words.high << 64 | words.low;
}

/* The last address of a prefix. */
static wide end_of(const struct hb_prefix_record *prefix)
{
    uint32_t free_bits = hb_address_bits(prefix->family) - prefix->length;
    wide rest = free_bits == 128 ? ~(wide)0 : ((wide)1 << free_bits) - 1;

    return address_of(prefix) | rest;
}

/* A walk over the prefixes of one family that keeps those which the address lies in, innermost
 * last. */
static void find_edges(struct edges *edges, const struct hb_prefix_record *prefixes, uint32_t count)
{
    const struct hb_prefix_record *open[DEPTH_MAX];
    bool others = edges->state;
    uint32_t depth = 0;

    for (uint32_t i = 0; i <= count; i++) {
        while (depth > 0 && (i == count || end_of(open[depth - 1]) < address_of(&prefixes[i]))) {
            wide end = end_of(open[--depth]);

            /* Behind the last address of all there is no edge. */
            if (end != (prefixes[0].family == HB_FAMILY_IPV4 ? (wide)UINT32_MAX : ~(wide)0))
                set_from(edges, end + 1, depth > 0 ? open[depth - 1]->allow != 0 : others);
        }
        if (i == count)
            break;
        open[depth++] = &prefixes[i];
        set_from(edges, address_of(&prefixes[i]), prefixes[i].allow != 0);
    }
}

void hb_prefix_set_build(struct hb_prefix_set *set, void *memory,
                         const struct hb_prefix_record *prefixes, uint32_t count, bool others)
{
    uint32_t ipv4 = count_ipv4(prefixes, count);
    struct edges edges4 = {.edge4 = memory, .state = others};
    struct edges edges6 = {.edge6 =
                               (void *)((uint8_t *)memory + hb_prefix_set_bytes(prefixes, ipv4)),
                           .state = others};

    if (ipv4 > 0)
        find_edges(&edges4, prefixes, ipv4);
    if (count > ipv4)
        find_edges(&edges6, prefixes + ipv4, count - ipv4);
    *set = (struct hb_prefix_set){.edge4 = edges4.edge4,
                                  .edge6 = edges6.edge6,
                                  .count4 = edges4.count,
                                  .count6 = edges6.count,
                                  .below = others};
}

/* How many edges are at or below each address, for the whole burst a step at a time. `IS_BELOW`
 * compares the edge at an index with the address. */
#define SEARCH(count_of, is_below)                                                                 \
    do {                                                                                           \
        uint32_t low[HB_PREFIX_FIND_MAX], left[HB_PREFIX_FIND_MAX], most = 0;                      \
                                                                                                   \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            low[i] = 0;                                                                            \
            left[i] = set[i]->count_of;                                                            \
            most = left[i] > most ? left[i] : most;                                                \
        }                                                                                          \
        for (; most > 0; most >>= 1) {                                                             \
            for (uint32_t i = 0; i < count; i++) {                                                 \
                uint32_t half = (left[i] + 1) / 2;                                                 \
                uint32_t at = low[i] + half - 1;                                                   \
                                                                                                   \
                if (half == 0)                                                                     \
                    continue;                                                                      \
                low[i] += is_below ? half : 0;                                                     \
                left[i] -= half;                                                                   \
            }                                                                                      \
        }                                                                                          \
        for (uint32_t i = 0; i < count; i++)                                                       \
            allowed[i] = set[i]->below ^ (low[i] & 1);                                             \
    } while (0)

void hb_prefix_set_find4(const struct hb_prefix_set *const set[], const uint32_t address[],
                         uint32_t count, bool allowed[])
{
    SEARCH(count4, (set[i]->edge4[at] <= address[i]));
}

static inline bool is_at_or_below(const struct hb_prefix_edge6 *edge,
                                  const struct hb_prefix_edge6 *address)
{
    return (edge->high < address->high) |
           ((edge->high == address->high) & (edge->low <= address->low));
}

void hb_prefix_set_find6(const struct hb_prefix_set *const set[],
                         const struct hb_prefix_edge6 address[], uint32_t count, bool allowed[])
{
    SEARCH(count6, is_at_or_below(&set[i]->edge6[at], &address[i]));
}
