/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bounded_load.h: no backend takes more new flows than its part and a bit.
 *
 * The rule stands in halbach/generation.h (struct hb_pool_record). This is how a worker keeps to
 * it, by its own counts alone: no lock, no division, nothing shared.
 *
 * Who counts. The members of a pool are the owners of its table's slots: the backends that take new
 * flows. m is the sum of the members' live flows on this worker and the flow to be placed. A
 * backend that drains, is down or has left is no member, so neither it nor its flows count: as they
 * end, the members' parts do not change.
 *
 * Counts that cannot go stale. The gauge of each backend (struct hb_backend_counters, `flows`) is
 * exact whatever happens to an entry: insert, expiry, eviction, re-point. Nothing else is counted
 * by backend. Only m is kept beside it, one sum a pool, moved wherever a gauge moves; and the first
 * flow that a bounded pool gets in a generation makes all sums anew from the gauges. So pools may
 * change their index, backends their pool, and a bound may come and go. An id that is given to
 * another backend would inherit the count of flows it does not have, but control gives away no id
 * that a gauge still counts for; were it to, each of these flows counts until its next packet
 * moves it or its time is over.
 *
 * Where a flow goes. To the owner of its slot while that has room. Else to the next owner along the
 * slots that has, looking at HB_BOUNDED_STEPS slots in all; a slot of a full backend costs one
 * comparison, so those seen before are not remembered. If none of them has room, the least loaded
 * member by flows / weight takes it. That one is always below its limit: limits sum up to at least
 * (1 + bound) * m > m - 1, the flows there are, so some member is, and the least loaded is as well.
 * Hence a flow never goes to a member that has no room. Full backends own less than 1 / (1 + bound)
 * of the slots: with 0.25 chance needs all steps once in 10^24 flows, with 0.01 and nearly all full
 * (few flows a backend) once in 13. Then the scan of the members costs a few ns each.
 *
 * Threads: struct hb_loads belongs to one worker. Pure: no DPDK.
 */
#ifndef HB_DATAPLANE_BOUNDED_LOAD_H
#define HB_DATAPLANE_BOUNDED_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "generation.h"
#include "halbach/counters.h"
#include "halbach/types.h"

#define HB_BOUNDED_STEPS 256

/* The sums of one worker. Zero to begin with. */
struct hb_loads {
    /* The generation that the rest is about. Its number as well, because an address may come again
     * while a worker sleeps. */
    const struct hb_generation *generation;
    uint64_t number;
    uint64_t flows[HB_POOLS_MAX + 1];      /* of the members, by pool index + 1; [0]: of no use */
    uint16_t pool_of[HB_BACKENDS_MAX + 1]; /* by backend id: pool index + 1; 0: no member of any */
    uint16_t member[HB_BACKENDS_MAX];      /* those whose pool_of is not 0 */
    uint32_t members;
};
_Static_assert(HB_POOLS_MAX + 1 <= UINT16_MAX, "a pool index + 1 fits");

/* Follows the gauge of a backend. */
static inline void hb_loads_add(struct hb_loads *loads, uint16_t backend)
{
    loads->flows[loads->pool_of[backend]]++;
}

static inline void hb_loads_remove(struct hb_loads *loads, uint16_t backend)
{
    loads->flows[loads->pool_of[backend]]--;
}

/* Makes the sums of another generation, from the gauges (by backend id): as many steps as there are
 * members of bounded pools in the two. Called before the first flow is placed by a generation. */
void hb_loads_enter(struct hb_loads *loads, const struct hb_generation *generation,
                    const struct hb_backend_counters *gauges);

static inline bool hb_loads_are_of(const struct hb_loads *loads,
                                   const struct hb_generation *generation)
{
    return loads->generation == generation && loads->number == generation->number;
}

/* The limits of a pool's members at one instant. */
struct hb_load_limit {
    uint64_t scale; /* HB_BOUNDED_LOAD_ONE * W, at most 2^42 */
    uint64_t quota; /* (HB_BOUNDED_LOAD_ONE + bound) * m, at most 2^45 */
};

static inline struct hb_load_limit hb_load_limit_of(uint32_t bounded_load, uint64_t flows,
                                                    uint64_t weights)
{
    return (struct hb_load_limit){HB_BOUNDED_LOAD_ONE * weights,
                                  (HB_BOUNDED_LOAD_ONE + bounded_load) * flows};
}

/* A backend with so many flows may have one more: flows + 1 <= ceil(quota * weight / scale), which
 * is flows < quota * weight / scale. The right side fits 61 bits; the left, with 2^31 flows, needs
 * 73: one multiplication all the same. */
static inline bool hb_load_has_room(struct hb_load_limit limit, uint64_t flows, uint16_t weight)
{
    return (unsigned __int128)flows * limit.scale < limit.quota * weight;
}

/* a / its weight < b / its weight; 47 bits. */
static inline bool hb_load_is_less(uint64_t flows_a, uint16_t weight_a, uint64_t flows_b,
                                   uint16_t weight_b)
{
    return flows_a * weight_b < flows_b * weight_a;
}

/* Who takes a flow of that hash, in a bounded pool with slots, that the table gives to `owner`. The
 * flow is counted nowhere yet. `loads` must be of this generation. */
uint16_t hb_bounded_choose(const struct hb_loads *loads, const struct hb_generation *generation,
                           const struct hb_backend_counters *gauges, uint32_t pool, uint64_t hash,
                           uint16_t owner);

#endif
