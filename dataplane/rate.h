/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rate.h: a limit on events a second, without a division (a token bucket).
 *
 * A bucket fills with time up to what an eighth of a second brings, one event at least, and each
 * event takes one out. So in any second at most an eighth more than the rate happens. Pure; one
 * thread.
 */
#ifndef HB_DATAPLANE_RATE_H
#define HB_DATAPLANE_RATE_H

#include <stdbool.h>
#include <stdint.h>

#define HB_RATE_EVENT 1000 /* an event's worth: at one event a second a millisecond brings 1 */

/* Zeroed: full at its first use. */
struct hb_rate {
    uint64_t level;
    uint32_t filled_ms;
    uint32_t begun;
};

/* Is there one left? `rate`: events a second; 0: never. The clock may wrap. */
static inline bool hb_rate_has(struct hb_rate *bucket, uint32_t rate, uint32_t now_ms)
{
    uint32_t elapsed = now_ms - bucket->filled_ms;
    uint64_t most = rate > 8 ? (uint64_t)rate * (HB_RATE_EVENT / 8) : HB_RATE_EVENT;

    if (elapsed > HB_RATE_EVENT || bucket->begun == 0)
        elapsed = HB_RATE_EVENT;
    bucket->level += (uint64_t)elapsed * rate;
    if (bucket->level > most)
        bucket->level = most;
    bucket->filled_ms = now_ms;
    bucket->begun = 1;
    return rate != 0 && bucket->level >= HB_RATE_EVENT;
}

/* Takes it; hb_rate_has has just said that there is one. */
static inline void hb_rate_take(struct hb_rate *bucket)
{
    bucket->level -= HB_RATE_EVENT;
}

#endif
