/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compare.c: what a change of table moves.
 */
#include <string.h>

#include "hashing/table_builder.h"

/* A set of ids as bits: 8 KiB, so it lives on the stack. */
struct id_set {
    uint64_t word[65536 / 64];
};

static void add_ids(struct id_set *set, const uint16_t *owner, uint32_t slots)
{
    memset(set, 0, sizeof(*set));
    for (uint32_t slot = 0; slot < slots; slot++)
        set->word[owner[slot] / 64] |= UINT64_C(1) << (owner[slot] % 64);
}

static bool has_id(const struct id_set *set, uint16_t id)
{
    return set->word[id / 64] >> (id % 64) & 1;
}

struct hb_table_change hb_table_compare(const uint16_t *from, const uint16_t *to, uint32_t slots)
{
    struct hb_table_change change = {0};
    struct id_set before, after;

    add_ids(&before, from, slots);
    add_ids(&after, to, slots);
    for (uint32_t slot = 0; slot < slots; slot++) {
        if (from[slot] == to[slot])
            continue;
        change.moved++;
        if (has_id(&after, from[slot]) && has_id(&before, to[slot]))
            change.collateral++;
    }
    return change;
}
