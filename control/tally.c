/* SPDX-License-Identifier: BSD-3-Clause */
#include "tally.h"

static struct hb_counts add(struct hb_counts a, struct hb_counts b)
{
    return (struct hb_counts){a.packets + b.packets,        a.bytes + b.bytes,
                              a.new_flows + b.new_flows,    a.drops + b.drops,
                              a.denied + b.denied,          a.limited + b.limited,
                              a.unreachable + b.unreachable};
}

static struct hb_counts subtract(struct hb_counts a, struct hb_counts b)
{
    return (struct hb_counts){a.packets - b.packets,        a.bytes - b.bytes,
                              a.new_flows - b.new_flows,    a.drops - b.drops,
                              a.denied - b.denied,          a.limited - b.limited,
                              a.unreachable - b.unreachable};
}

void hb_tally_start(struct hb_tally *tally, uint64_t instance, struct hb_counts raw)
{
    *tally = (struct hb_tally){.instance = instance, .base = raw, .last = raw};
}

struct hb_counts hb_tally_read(struct hb_tally *tally, uint64_t instance, struct hb_counts raw)
{
    if (tally->instance != instance) {
        /* Another life counts from zero. */
        tally->carried = hb_tally_last(tally);
        tally->base = (struct hb_counts){0};
        tally->instance = instance;
    }
    tally->last = raw;
    return hb_tally_last(tally);
}

struct hb_counts hb_tally_last(const struct hb_tally *tally)
{
    return add(tally->carried, subtract(tally->last, tally->base));
}
