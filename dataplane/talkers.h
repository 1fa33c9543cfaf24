/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * talkers.h: which sources send most to which service, in a fixed memory however many there are.
 *
 * Space-Saving (A. Metwally et al., "Efficient Computation of Frequent and Top-k Elements in Data
 * Streams", ICDT 2005) over samples, one a burst. A sketch of m entries counts sources; one that is
 * not there takes the place of an entry with the least count, takes its count over and notes it as
 * its `error`. So after n samples, for every entry
 *
 *     count - error <= true count <= count,   error <= n / m,
 *
 * and whoever made up more than n / m of the samples is in the sketch for certain.
 *
 * An entry with the least count is found without a heap: counts only grow, so entries with the
 * least count are used up in the order of their index before the least count must be found anew.
 * Sources are found by a small chained hash, keyed so that nobody outside can make chains long.
 *
 * The entries themselves are those of the counters region (halbach/counters.h), which others read
 * while they are written. Pure; one writer. No allocation, no division.
 */
#ifndef HB_DATAPLANE_TALKERS_H
#define HB_DATAPLANE_TALKERS_H

#include <stdbool.h>
#include <stdint.h>

#include "halbach/counters.h"

#define HB_TALKERS_CHAINS 256
#define HB_TALKERS_NONE   UINT16_MAX

struct hb_talkers {
    struct hb_talker *entry;
    uint32_t entries_max;
    uint32_t used;
    uint64_t seed;                     /* of the hash */
    uint64_t random;                   /* state of the choice within a burst */
    uint64_t least;                    /* no count is less, once all entries are in use */
    uint32_t cursor;                   /* entries below it have a count above `least` */
    uint16_t first[HB_TALKERS_CHAINS]; /* of each chain; HB_TALKERS_NONE: empty */
    uint16_t next[HB_TALKERS_MAX];
    uint64_t count[HB_TALKERS_MAX]; /* as in the entries, side by side */
};

/* Begins an empty sketch in `entries`, which the caller has zeroed. 1 to HB_TALKERS_MAX of them. */
void hb_talkers_init(struct hb_talkers *talkers, struct hb_talker *entries, uint32_t entries_max,
                     uint64_t seed);

/* Counts one sample. `source` has 4 or 16 bytes, by the family. */
void hb_talkers_add(struct hb_talkers *talkers, uint8_t family, const void *source,
                    uint16_t service, uint32_t bytes);

/* Which packet of a burst of `count` to sample: each is as likely. xorshift64 (G. Marsaglia,
 * "Xorshift RNGs", 2003). */
static inline uint32_t hb_talkers_choose(struct hb_talkers *talkers, uint32_t count)
{
    uint64_t x = talkers->random;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    talkers->random = x;
    return (uint32_t)(((x >> 32) * count) >> 32);
}

#endif
