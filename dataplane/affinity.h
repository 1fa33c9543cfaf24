/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * affinity.h: which hash of a packet picks the slot of its pool's table.
 *
 * It is the flow's own, the one that finds it in the flow cache, unless the service keeps the
 * sources together (enum hb_affinity): then it is the same function of the source's first bits, and
 * of the source port if that counts, alone. Destination and protocol are left out, so that services
 * with one affinity and one pool send a source to one backend: its TCP and its UDP, port 80 and
 * port 443.
 *
 * Everything that asks for a slot asks here. Pure.
 */
#ifndef HB_DATAPLANE_AFFINITY_H
#define HB_DATAPLANE_AFFINITY_H

#include "flow_bucket.h"
#include "service_extras.h"

/* For a service that has HB_HAS_AFFINITY. */
uint64_t hb_affinity_hash(const struct hb_service_extra *extra, const struct hb_flow_query *flow,
                          const struct hb_hash_key *key);

/* The hash whose upper half is scaled to the slots (hb_slot_of). `service` is an index. */
static inline uint64_t hb_slot_hash(const struct hb_generation *generation, uint32_t service,
                                    const struct hb_flow_query *flow)
{
    if (__builtin_expect((generation->features & HB_HAS_AFFINITY) == 0, 1) ||
        (generation->services[service].features & HB_HAS_AFFINITY) == 0)
        return flow->hash;
    return hb_affinity_hash(&generation->extra[service], flow, &generation->hash_key);
}

/* Fetches the slot of a flow. */
static inline void hb_slot_prefetch(const struct hb_generation *generation, uint32_t service,
                                    const struct hb_flow_query *flow)
{
    const struct hb_pool *pool = &generation->pools[generation->services[service].pool];

    if (pool->slots != 0)
        __builtin_prefetch(
            &pool->owner[hb_slot_of(hb_slot_hash(generation, service, flow), pool->slots)]);
}

#endif
