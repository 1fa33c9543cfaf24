/* SPDX-License-Identifier: BSD-3-Clause */
/* See bounded_load.h. */
#include "bounded_load.h"

static void leave(struct hb_loads *loads)
{
    for (uint32_t i = 0; i < loads->members; i++)
        loads->pool_of[loads->member[i]] = 0;
    loads->members = 0;
}

void hb_loads_enter(struct hb_loads *loads, const struct hb_generation *generation,
                    const struct hb_backend_counters *gauges)
{
    leave(loads);
    for (uint32_t pool = 0; pool < generation->pools_count; pool++) {
        const struct hb_pool_bound *bound = &generation->bounds[pool];
        uint64_t flows = 0;

        for (uint32_t i = 0; i < bound->members; i++) {
            uint16_t id = bound->member[i];

            flows += gauges[id].flows;
            loads->pool_of[id] = (uint16_t)(pool + 1);
            loads->member[loads->members++] = id;
        }
        loads->flows[pool + 1] = flows;
    }
    loads->generation = generation;
    loads->number = generation->number;
}

/* What choosing reads: the backends as they are, their gauges and their limits. */
struct scale {
    const struct hb_backend *backends;
    const struct hb_backend_counters *gauges;
    struct hb_load_limit limit;
};

static inline bool has_room(const struct scale *scale, uint16_t id)
{
    return hb_load_has_room(scale->limit, scale->gauges[id].flows, scale->backends[id].weight);
}

/* The member with the fewest flows for its weight; of equal ones the first. */
static uint16_t find_least_loaded(const struct scale *scale, const struct hb_pool_bound *bound,
                                  uint16_t otherwise)
{
    uint16_t least = bound->members > 0 ? bound->member[0] : otherwise;

    for (uint32_t i = 1; i < bound->members; i++) {
        uint16_t id = bound->member[i];

        if (hb_load_is_less(scale->gauges[id].flows, scale->backends[id].weight,
                            scale->gauges[least].flows, scale->backends[least].weight))
            least = id;
    }
    return least;
}

uint16_t hb_bounded_choose(const struct hb_loads *loads, const struct hb_generation *generation,
                           const struct hb_backend_counters *gauges, uint32_t pool_index,
                           uint64_t hash, uint16_t owner)
{
    const struct hb_pool *pool = &generation->pools[pool_index];
    const struct hb_pool_bound *bound = &generation->bounds[pool_index];
    struct scale scale = {
        .backends = generation->backends,
        .gauges = gauges,
        .limit =
            hb_load_limit_of(pool->bounded_load, loads->flows[pool_index + 1] + 1, bound->weights),
    };
    uint32_t steps = pool->slots < HB_BOUNDED_STEPS ? pool->slots : HB_BOUNDED_STEPS;
    uint32_t slot = hb_slot_of(hash, pool->slots);
    uint16_t last = owner;

    if (has_room(&scale, owner))
        return owner;
    for (uint32_t step = 1; step < steps; step++) {
        uint16_t id;

        slot = slot + 1 < pool->slots ? slot + 1 : 0;
        id = pool->owner[slot];
        if (id == last || id == HB_BACKEND_NONE)
            continue;
        if (has_room(&scale, id))
            return id;
        last = id;
    }
    return find_least_loaded(&scale, bound, owner);
}
