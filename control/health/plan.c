/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.c: see plan.h.
 */
#include "plan.h"

/* 2^32 divided by the golden ratio, odd: multiples modulo 2^32 are fractional parts. */
#define GOLDEN_STEP UINT32_C(2654435769)

static uint64_t scale(uint32_t phase, uint64_t span_us)
{
    return (span_us * phase) >> 32; /* a span of an hour has 32 bits */
}

uint32_t hb_plan_phase(uint32_t n)
{
    return n * GOLDEN_STEP;
}

uint64_t hb_plan_first_delay_us(uint32_t phase, uint64_t interval_us)
{
    return scale(phase, interval_us < HB_PLAN_FIRST_US ? interval_us : HB_PLAN_FIRST_US);
}

uint64_t hb_plan_next_us(uint32_t phase, uint64_t interval_us, uint64_t now_us)
{
    uint64_t offset_us = scale(phase, interval_us);
    uint64_t earliest_us = now_us + interval_us / 2;
    uint64_t next_us = earliest_us / interval_us * interval_us + offset_us;

    return next_us < earliest_us ? next_us + interval_us : next_us;
}
