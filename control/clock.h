/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock.h: the two clocks that control reads.
 */
#ifndef HB_CONTROL_CLOCK_H
#define HB_CONTROL_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC: for time spans; the one that probe results and backend states use. */
static inline uint64_t hb_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The same in microseconds, for how long something took. */
static inline uint64_t hb_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Seconds since 1970: for people and for what outlives this process. */
static inline uint64_t hb_now_unix(void)
{
    return (uint64_t)time(NULL);
}

/* The same in milliseconds. */
static inline uint64_t hb_now_unix_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

#endif
