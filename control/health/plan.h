/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.h: when probes start.
 *
 * Each target has a phase, its place within the interval. Phases follow the golden ratio: the n-th
 * is the fractional part of n times 0.618..., which places each new one into a largest gap (Knuth,
 * The Art of Computer Programming, vol. 3, 6.4). So any number of targets is spread evenly, better
 * than by hashing their addresses: of 200 targets each tenth of the interval gets 20 or nearly so
 * (BL-96 asks for at most twice as many in one as in another; a hash gives up to three
 * times as many).
 *
 * Pure; times are CLOCK_MONOTONIC in microseconds.
 */
#ifndef HB_CONTROL_HEALTH_PLAN_H
#define HB_CONTROL_HEALTH_PLAN_H

#include <stdint.h>

/* The first probes of all targets are spread over this time, or over the interval if that is
 * shorter: a start is quick, and yet no burst. */
#define HB_PLAN_FIRST_US 100000

/* The phase of the n-th target, in units of 1/2^32 of the interval. */
uint32_t hb_plan_phase(uint32_t n);

/* How long after its target was added the first probe starts. */
uint64_t hb_plan_first_delay_us(uint32_t phase, uint64_t interval_us);

/* When the next probe starts if one starts now: at the target's place in an interval, at least half
 * an interval from now. Regular times stay on the grid however late a timer was, and times that
 * were missed altogether are left out, not made up for. */
uint64_t hb_plan_next_us(uint32_t phase, uint64_t interval_us, uint64_t now_us);

#endif
