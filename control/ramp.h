/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ramp.h: slow start. The share of a backend that has come up grows in steps to what its weight is
 * worth.
 *
 * Two tables are built: one without the newcomers, and the one that there will be in the end. A
 * slot on which they agree has its owner; each other one changes hands once, at a moment of its own
 * within the ramp. So nothing else moves in a step, all steps together move what a join without a
 * ramp moves at once, the share only grows, and the last table is the one that a ramp never
 * touched, to the digest. A small weight in place of all this would move other slots with each
 * step (BL-71). Every newcomer has one slot at least from its first second.
 *
 *     slots that a newcomer gets    by its own progress
 *     other slots that differ       by that of the newcomer that is behind all others
 *
 * Steps are a second apart, or a sixtieth of a ramp that is longer than a minute. Pure.
 */
#ifndef HB_CONTROL_RAMP_H
#define HB_CONTROL_RAMP_H

#include <stdint.h>

#define HB_RAMP_FULL 65536 /* progress at the end */

/* Progress of a ramp of `slow_start_ms` that has lasted `elapsed_ms`: 1 to HB_RAMP_FULL. */
uint32_t hb_ramp_progress(uint64_t elapsed_ms, uint32_t slow_start_ms);

/* Milliseconds from `elapsed_ms` to the next step. */
uint64_t hb_ramp_next_step(uint64_t elapsed_ms, uint32_t slow_start_ms);

/* `owner` is the table without newcomers and `to` the one in the end; makes `owner` the one in
 * between. `progress` has an entry for each id up to `ids`: HB_RAMP_FULL for who is no newcomer.
 * `first` is room for ids + 1 numbers. */
void hb_ramp_blend(uint16_t *owner, const uint16_t *to, uint32_t slots, uint64_t seed,
                   const uint32_t *progress, uint32_t ids, uint32_t *first);

#endif
