/* SPDX-License-Identifier: BSD-3-Clause */
#include "tally.h"

#include <stddef.h>

/* All counts are of one kind, so that they can be added as an array. */
static struct hb_counts add(struct hb_counts a, struct hb_counts b, uint64_t times)
{
    uint64_t *to = (uint64_t *)&a;
    const uint64_t *from = (const uint64_t *)&b;

    for (size_t i = 0; i < sizeof(a) / sizeof(*to); i++)
        to[i] += times * from[i];
    return a;
}

static struct hb_counts subtract(struct hb_counts a, struct hb_counts b)
{
    return add(a, b, UINT64_MAX); /* modulo 2^64 */
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
    return add(tally->carried, subtract(tally->last, tally->base), 1);
}

void hb_quic_tally_start(struct hb_quic_tally *tally, uint64_t instance,
                         struct hb_quic_counters raw)
{
    *tally = (struct hb_quic_tally){.instance = instance, .base = raw, .last = raw};
}

struct hb_quic_counters hb_quic_tally_read(struct hb_quic_tally *tally, uint64_t instance,
                                           struct hb_quic_counters raw)
{
    if (tally->instance != instance) {
        tally->carried = hb_quic_tally_last(tally);
        tally->base = (struct hb_quic_counters){0};
        tally->instance = instance;
    }
    tally->last = raw;
    return hb_quic_tally_last(tally);
}

struct hb_quic_counters hb_quic_tally_last(const struct hb_quic_tally *tally)
{
    struct hb_quic_counters counts;

    for (unsigned outcome = 0; outcome < HB_QUIC_OUTCOME_COUNT; outcome++)
        counts.packets[outcome] = tally->carried.packets[outcome] + tally->last.packets[outcome] -
                                  tally->base.packets[outcome];
    return counts;
}
