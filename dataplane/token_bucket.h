/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * token_bucket.h: so many a second and no more, without a division on the packet path.
 *
 * Tokens are kept in thousandths, so that a millisecond at `rate` a second adds exactly `rate` of
 * them. A bucket holds what a tenth of a second brings, at least one token: short bursts pass, a
 * flood is cut to the rate. It starts full.
 *
 * Threads: a bucket belongs to one worker. Pure: no DPDK. The clock is hb_worker_clock_ms(), which
 * may wrap.
 */
#ifndef HB_DATAPLANE_TOKEN_BUCKET_H
#define HB_DATAPLANE_TOKEN_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#define HB_TOKEN UINT64_C(1000)

struct hb_token_bucket {
    uint64_t tokens; /* thousandths */
    uint32_t filled_ms;
    bool started;
};

/* Takes one token. False: there is none, the rate is used up. `rate`: tokens a second; with 0 there
 * never is one. */
static inline bool hb_token_take(struct hb_token_bucket *bucket, uint32_t rate, uint32_t now_ms)
{
    uint64_t room = (uint64_t)rate * 100;

    if (rate == 0)
        return false;
    if (room < HB_TOKEN)
        room = HB_TOKEN;
    bucket->tokens += (uint64_t)(uint32_t)(now_ms - bucket->filled_ms) * rate;
    bucket->filled_ms = now_ms;
    if (!bucket->started || bucket->tokens > room)
        bucket->tokens = room;
    bucket->started = true;
    if (bucket->tokens < HB_TOKEN)
        return false;
    bucket->tokens -= HB_TOKEN;
    return true;
}

#endif
