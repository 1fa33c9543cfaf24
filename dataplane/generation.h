/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * generation.h: the adopted generation, as the workers read it.
 *
 * Control publishes a blob (halbach/generation.h); the main lcore checks it, copies it into the
 * form below on each NUMA node that has workers, and stores one pointer. A worker loads that
 * pointer once a burst and never again within it, so a packet sees exactly one generation. The old
 * one is freed after every worker has passed a quiescent state (rte_rcu_qsbr).
 *
 * Everything here is immutable once published. Pure: no DPDK types, so that the stages which read
 * it can be tested without EAL.
 */
#ifndef HB_DATAPLANE_GENERATION_H
#define HB_DATAPLANE_GENERATION_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "halbach/flow_key.h"
#include "halbach/generation.h"
#include "halbach/types.h"

struct hb_service_map;   /* service_map.h */
struct hb_service_extra; /* service_extras.h */
struct hb_quic_config;   /* quic_lb.h */
struct hb_quic_servers;  /* quic_servers.h */
struct hb_nat;           /* nat_map.h */

/* The lookup table of a pool as the packet path needs it. slots == 0: no usable backend. */
struct hb_pool {
    const uint16_t *owner; /* `slots` backend ids */
    uint32_t slots;
    uint16_t bounded_load; /* as in struct hb_pool_record */
    uint16_t flags;        /* HB_POOL_... */
};
_Static_assert(HB_BOUNDED_LOAD_MAX <= UINT16_MAX, "a bound fits");
_Static_assert(sizeof(struct hb_pool) == 16, "four pools to a cache line");

/* What the pool's slots were before. `unsettled` is NULL when all of them have settled. */
struct hb_pool_past {
    const uint16_t *previous;  /* backend ids */
    const uint64_t *unsettled; /* a bit a slot: see struct hb_table_record */
    uint32_t *const *used;     /* by worker, who writes its own: see slot_uses.h; may be NULL */
};

/* What a pool with bounded_load needs beside (bounded_load.h). All zero for the others. */
struct hb_pool_bound {
    const uint16_t *member; /* each backend id that owns a slot, once */
    uint32_t members;
    uint64_t weights; /* of all members */
};

/* What only some services have (service_extras.h). */
enum {
    HB_HAS_AFFINITY = 1, /* the slot is not that of the flow's hash */
    HB_HAS_LIST = 2,     /* of sources, allowed or denied */
    HB_HAS_LIMIT = 4,    /* on new flows a second or on flows */
    HB_HAS_QUIC = 8,     /* connection ids name backends */
};

struct hb_service {
    uint16_t id;      /* index of its counters */
    uint8_t tracking; /* enum hb_tracking; UDP: all or off, since there is no changed for it */
    uint8_t features; /* HB_HAS_... */
    uint32_t pool;    /* index into pools */
};
_Static_assert(sizeof(struct hb_service) == 8, "eight services to a cache line");

/* One backend by id. An id that this generation does not use has use == 0. The first cache line
 * holds all that forwarding over an IPv4 tunnel touches. */
struct hb_backend {
    alignas(64) uint8_t use; /* enum hb_backend_use, or 0 */
    uint8_t family;          /* of the rewrite; see struct hb_rewrite for these */
    uint16_t port;
    uint16_t inner_max;
    uint8_t forwarding; /* enum hb_forwarding */
    bool plain;         /* Ethernet without a tag and an IPv4 tunnel, nothing else: stage_encap's
                         * short way */
    uint32_t incarnation;
    uint16_t pool;
    bool serves;  /* the flows that it has: in use, and not down */
    uint8_t size; /* of the rewrite */
    uint8_t bytes[HB_REWRITE_BYTES];
    uint16_t weight; /* its part of a bounded load, never 0 */
    uint8_t flags;   /* HB_REWRITE_... */
    uint8_t spread;
    uint8_t dscp;
    uint8_t l2_size;
    hb_be16 nat_port;
};
_Static_assert(HB_POOLS_MAX <= UINT16_MAX, "a pool's index fits");
_Static_assert(sizeof(struct hb_backend) == 128, "two cache lines");
_Static_assert(offsetof(struct hb_backend, bytes) + 14 + 20 <= 64,
               "Ethernet and IPv4 fit line one");

struct hb_generation {
    const struct hb_service_map *map; /* from a packet to an index into services */
    const struct hb_service *services;
    const struct hb_pool *pools;
    const struct hb_pool_past *past;   /* by pool; NULL: every slot of every pool has settled */
    const struct hb_backend *backends; /* indexed by id; entry 0 is "none" */
    uint32_t services_count;
    uint32_t pools_count;
    uint32_t backends_count; /* largest id + 1 */
    bool selective;          /* some service does not track all its flows */
    bool fetch_slots;        /* and its tables are far (hb_tables_are_far) */
    struct hb_hash_key hash_key;
    uint64_t number;
    struct hb_settings settings;
    const struct hb_pool_bound *bounds; /* by pool; NULL when no pool bounds its load */
    const struct hb_nat *nat;           /* nat_map.h; NULL when no backend is reached by NAT */
    const uint16_t *mss_max; /* by service, 0: any; NULL when no service lowers the MSS */

    uint8_t features;                     /* of all services: HB_HAS_... */
    const struct hb_service_extra *extra; /* by service; NULL: no service has any feature */
    const struct hb_quic_config *quic;
    const struct hb_quic_servers *servers;
    uint16_t *const *flow_tags; /* by worker; see hb_flow_table_tag; NULL: flows are not limited */
};

/* More than a core's own caches hold: a slot should be fetched well before it is read. */
#define HB_TABLES_AT_HAND (1u << 20)

static inline bool hb_tables_are_far(const struct hb_pool *pools, uint32_t count)
{
    uint64_t slots = 0;

    for (uint32_t i = 0; i < count; i++)
        slots += pools[i].slots;
    return slots * sizeof(*pools->owner) > HB_TABLES_AT_HAND;
}

/* Serves the flows that it has; whether it gets new ones is the tables' business. */
static inline bool hb_backend_is_in_use(const struct hb_backend *backend)
{
    return (backend->use == HB_BACKEND_ACTIVE) | (backend->use == HB_BACKEND_DRAINING);
}

/* Whether stage_encap may go its short way, with packets that fit. */
static inline bool hb_backend_is_plain(const struct hb_backend *backend)
{
    uint8_t for_others = HB_REWRITE_FRAGMENT_OUTER | HB_REWRITE_FRAGMENT_INNER;

    return backend->forwarding == HB_FORWARDING_IPIP && backend->family == HB_FAMILY_IPV4 &&
           backend->l2_size == 14 && (backend->flags & ~for_others) == 0 && backend->spread == 0;
}

/* The last step of filling in a backend. Where a plain one's header has its checksum, the sum of
 * what is the same for all packets is kept (RFC 1071), so that a packet only adds its own. */
static inline void hb_backend_complete(struct hb_backend *backend)
{
    const uint32_t end = 14 + 20, at = 14 + 10;
    uint32_t sum = 0;

    backend->serves = hb_backend_is_in_use(backend);
    backend->plain = hb_backend_is_plain(backend);
    if (!backend->plain)
        return;
    backend->bytes[at] = backend->bytes[at + 1] = 0;
    for (uint32_t i = 14; i < end; i += 2)
        sum += backend->bytes[i] | (uint32_t)backend->bytes[i + 1] << 8;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    backend->bytes[at] = (uint8_t)sum;
    backend->bytes[at + 1] = (uint8_t)(sum >> 8);
}

/* Its TCP flows end at their next packet, by reset. */
static inline bool hb_backend_resets(const struct hb_backend *backend, uint32_t incarnation,
                                     uint32_t mask)
{
    return backend->use == HB_BACKEND_RESET && ((backend->incarnation ^ incarnation) & mask) == 0;
}

/* The slot's mark and its previous owner, or false when it has settled. */
static inline bool hb_slot_past(const struct hb_generation *generation, uint32_t pool,
                                uint32_t slot, uint16_t *previous)
{
    const struct hb_pool_past *past;

    if (generation->past == NULL)
        return false;
    past = &generation->past[pool];
    if (past->unsettled == NULL || !hb_slot_is_unsettled(past->unsettled, slot))
        return false;
    *previous = past->previous[slot];
    return true;
}

/* A flow's backend still serves it: the same incarnation, and not down. */
static inline int hb_backend_serves(const struct hb_generation *generation, uint16_t id,
                                    uint32_t incarnation)
{
    const struct hb_backend *backend;

    if (id == HB_BACKEND_NONE || id >= generation->backends_count)
        return 0;
    backend = &generation->backends[id];
    return backend->incarnation == incarnation && hb_backend_is_in_use(backend);
}

#endif
