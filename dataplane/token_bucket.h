/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * token_bucket.h: so many a second and no more, without a division on the packet path.
 *
 * Each millisecond brings a step, up to what the bucket holds; what is taken is one token. The unit
 * is the caller's: hb_token_take counts in thousandths of a token, so that a millisecond at `rate`
 * a second adds exactly `rate` of them; the limits of services (service_extras.h) count in smaller
 * parts, since a worker's share may be less than one a second. A bucket starts full.
 *
 * Threads: a bucket belongs to one worker. Pure: no DPDK. The clock is hb_worker_clock_ms(), which
 * may wrap.
 */
#ifndef HB_DATAPLANE_TOKEN_BUCKET_H
#define HB_DATAPLANE_TOKEN_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#define HB_TOKEN UINT64_C(1000)

/* Milliseconds that count at once, so that what they bring fits 64 bits: a step is below 2^47. One
 * token takes as long for one of 128 workers who share one a second. */
#define HB_TOKEN_ELAPSED_MAX (UINT32_C(1) << 17)

struct hb_token_bucket {
    uint64_t tokens; /* in the caller's unit */
    uint32_t filled_ms;
    bool started;
};

/* How fast a bucket fills, and how much it holds: at least one token. In one unit. */
struct hb_token_rate {
    uint64_t step; /* a millisecond */
    uint64_t depth;
    uint64_t token;
};

/* Takes one token. False: there is none, the rate is used up. */
static inline bool hb_token_take_at(struct hb_token_bucket *bucket,
                                    const struct hb_token_rate *rate, uint32_t now_ms)
{
    uint32_t elapsed_ms = now_ms - bucket->filled_ms;

    if (elapsed_ms > HB_TOKEN_ELAPSED_MAX)
        elapsed_ms = HB_TOKEN_ELAPSED_MAX;
    bucket->tokens += elapsed_ms * rate->step;
    bucket->filled_ms = now_ms;
    if (!bucket->started || bucket->tokens > rate->depth)
        bucket->tokens = rate->depth;
    bucket->started = true;
    if (bucket->tokens < rate->token)
        return false;
    bucket->tokens -= rate->token;
    return true;
}

/* The same at `rate` tokens a second; with 0 there never is one. The bucket holds what a tenth of a
 * second brings: short bursts pass, a flood is cut to the rate. */
static inline bool hb_token_take(struct hb_token_bucket *bucket, uint32_t rate, uint32_t now_ms)
{
    struct hb_token_rate at = {
        .step = rate, .depth = (uint64_t)rate * (HB_TOKEN / 10), .token = HB_TOKEN};

    if (at.depth < HB_TOKEN)
        at.depth = HB_TOKEN;
    return rate != 0 && hb_token_take_at(bucket, &at, now_ms);
}

#endif
