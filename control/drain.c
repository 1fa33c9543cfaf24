/* SPDX-License-Identifier: BSD-3-Clause */
#include "drain.h"

#include <math.h>
#include <string.h>

#define SAMPLE_EVERY_MS 900 /* the tick that brings them is not exact */

static const char *const names[HB_AT_DEADLINES] = {
    [HB_AT_DEADLINE_KEEP] = "keep",
    [HB_AT_DEADLINE_REASSIGN] = "reassign",
    [HB_AT_DEADLINE_RESET] = "reset",
};

static uint32_t newest(const struct hb_drain *drain)
{
    return (drain->samples - 1) % HB_DRAIN_SAMPLES;
}

static uint32_t oldest(const struct hb_drain *drain)
{
    return drain->samples < HB_DRAIN_SAMPLES ? 0 : drain->samples % HB_DRAIN_SAMPLES;
}

void hb_drain_observe(struct hb_drain *drain, uint64_t flows, uint64_t now_ms)
{
    if (drain->samples > 0 && now_ms < drain->sampled_ms[newest(drain)] + SAMPLE_EVERY_MS)
        return;
    drain->samples++;
    drain->sample[newest(drain)] = flows;
    drain->sampled_ms[newest(drain)] = now_ms;
}

double hb_drain_rate(const struct hb_drain *drain)
{
    uint32_t first, last;

    if (drain->samples < 2)
        return 0;
    first = oldest(drain);
    last = newest(drain);
    if (drain->sample[last] >= drain->sample[first])
        return 0;
    return (double)(drain->sample[first] - drain->sample[last]) * 1000 /
           (double)(drain->sampled_ms[last] - drain->sampled_ms[first]);
}

uint64_t hb_drain_estimate(const struct hb_drain *drain, uint64_t flows)
{
    double rate = hb_drain_rate(drain);

    if (flows == 0)
        return 0;
    return rate > 0 ? (uint64_t)ceil((double)flows / rate) : HB_DRAIN_ENDLESS;
}

const char *hb_at_deadline_name(enum hb_at_deadline at_deadline)
{
    return names[at_deadline];
}

bool hb_at_deadline_parse(const char *text, enum hb_at_deadline *at_deadline)
{
    for (unsigned i = 0; i < HB_AT_DEADLINES; i++) {
        if (strcmp(text, names[i]) != 0)
            continue;
        *at_deadline = (enum hb_at_deadline)i;
        return true;
    }
    return false;
}
