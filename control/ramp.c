/* SPDX-License-Identifier: BSD-3-Clause */
#include "ramp.h"

#define STEPS       60
#define STEP_MIN_MS 1000
#define NO_SLOT     UINT32_MAX

static uint32_t step_length(uint32_t slow_start_ms)
{
    uint32_t step = slow_start_ms / STEPS;

    return step > STEP_MIN_MS ? step : STEP_MIN_MS;
}

uint32_t hb_ramp_progress(uint64_t elapsed_ms, uint32_t slow_start_ms)
{
    uint32_t step = step_length(slow_start_ms);
    uint32_t steps = (slow_start_ms + step - 1) / step;
    uint64_t progress;

    if (elapsed_ms >= slow_start_ms)
        return HB_RAMP_FULL;
    progress = (elapsed_ms / step + 1) * HB_RAMP_FULL / (steps + 1);
    return progress > 0 ? (uint32_t)progress : 1;
}

uint64_t hb_ramp_next_step(uint64_t elapsed_ms, uint32_t slow_start_ms)
{
    uint32_t step = step_length(slow_start_ms);
    uint64_t next = step - elapsed_ms % step;

    if (elapsed_ms >= slow_start_ms)
        return 0;
    return elapsed_ms + next < slow_start_ms ? next : slow_start_ms - elapsed_ms;
}

/* When in a ramp a slot changes hands, 0 to HB_RAMP_FULL - 1: spread evenly, the same everywhere
 * (the finalizer of MurmurHash3, A. Appleby). */
static uint32_t moment_of(uint32_t slot, uint64_t seed)
{
    uint64_t mix = seed ^ ((uint64_t)slot + 1) * UINT64_C(0x9e3779b97f4a7c15);

    mix = (mix ^ mix >> 33) * UINT64_C(0xff51afd7ed558ccd);
    mix = (mix ^ mix >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return (uint32_t)((mix ^ mix >> 33) % HB_RAMP_FULL);
}

/* The slot that each newcomer gets before all others. */
static void find_first(const uint16_t *to, uint32_t slots, uint64_t seed, const uint32_t *progress,
                       uint32_t ids, uint32_t *first)
{
    for (uint32_t id = 0; id <= ids; id++)
        first[id] = NO_SLOT;
    for (uint32_t slot = 0; slot < slots; slot++) {
        uint32_t *least = &first[to[slot]];

        if (progress[to[slot]] < HB_RAMP_FULL &&
            (*least == NO_SLOT || moment_of(slot, seed) < moment_of(*least, seed)))
            *least = slot;
    }
}

void hb_ramp_blend(uint16_t *owner, const uint16_t *to, uint32_t slots, uint64_t seed,
                   const uint32_t *progress, uint32_t ids, uint32_t *first)
{
    uint32_t slowest = HB_RAMP_FULL;

    for (uint32_t id = 0; id <= ids; id++)
        slowest = progress[id] < slowest ? progress[id] : slowest;
    find_first(to, slots, seed, progress, ids, first);
    for (uint32_t slot = 0; slot < slots; slot++) {
        uint32_t own = progress[to[slot]];
        uint32_t reached = own < HB_RAMP_FULL ? own : slowest;

        if (owner[slot] != to[slot] && (moment_of(slot, seed) < reached || first[to[slot]] == slot))
            owner[slot] = to[slot];
    }
}
