/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nat_map.h: what a generation knows for the translation of addresses (NAT and full NAT).
 *
 * NAT without state. An answer of a backend comes from the backend's address and port; the map
 * leads from there to the service, whose VIP and port become the answer's source. So any worker can
 * translate any answer, whichever worker saw the request, and a restart of the dataplane forgets
 * nothing. That needs one service for each backend address, port and protocol: hb_nat_build finds
 * the first pair that breaks this, and such a generation is refused.
 *
 * The map, one open-addressing table at most half full, holds four kinds of keys:
 *
 *     address of a backend   port    protocol   answers: the service and the backend
 *     address of a backend   0       protocol   fragments without ports, ICMP: the same, if all
 *                                               services behind it have one VIP, else HB_NAT_MANY
 *     a source of full NAT   0       0          its answers are addressed to it: see nat_session.h
 *     an own address         0       0          what is addressed to it is the kernel's, whoever
 *                                               sent it: answers to health checks
 *
 * Pure; built once for a generation and only read after that, by any number of threads.
 */
#ifndef HB_DATAPLANE_NAT_MAP_H
#define HB_DATAPLANE_NAT_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "halbach/generation.h"

#define HB_NAT_MANY UINT16_MAX /* more than one VIP: only a port could tell */

enum hb_nat_kind {
    HB_NAT_NOTHING = 0,
    HB_NAT_BACKEND,
    HB_NAT_ADDRESS,
    HB_NAT_SOURCE,
    HB_NAT_OWN,
};

/* Compared as three numbers; `zero` is 0. */
struct hb_nat_key {
    uint8_t address[HB_ADDRESS_SIZE];
    hb_be16 port;
    uint8_t protocol;
    uint8_t family;
    uint32_t zero;
};
_Static_assert(sizeof(struct hb_nat_key) == 24, "no padding");

struct hb_nat_slot {
    struct hb_nat_key key;
    uint16_t service; /* index, or HB_NAT_MANY */
    uint16_t backend; /* id */
    uint8_t kind;     /* enum hb_nat_kind */
    uint8_t reserved[3];
};
_Static_assert(sizeof(struct hb_nat_slot) == 32, "two to a cache line");

/* A service as clients know it. */
struct hb_nat_service {
    uint8_t vip[HB_ADDRESS_SIZE];
    hb_be16 port;
    uint8_t family;
    uint8_t protocol;
};

/* A source address of full NAT. Worker w of n has the ports first + i * n + w, i below `each`. */
struct hb_nat_source {
    uint8_t address[HB_ADDRESS_SIZE];
    uint8_t family;
    uint8_t reserved[3];
    uint16_t first; /* a multiple of the number of workers */
    uint16_t each;
};

struct hb_nat_pool {
    uint32_t first, count; /* into sources; count 0: not full NAT */
};

struct hb_nat {
    const struct hb_nat_slot *slots;
    uint32_t mask, shift;
    const struct hb_nat_service *services; /* by service index */
    const struct hb_nat_pool *pools;       /* by pool index */
    const struct hb_nat_source *sources;
    uint32_t workers;
    uint32_t reciprocal; /* of it, so that no packet divides */
    bool full;           /* some pool has sources */
};

/* The parts of a generation that it is built from. */
struct hb_nat_input {
    const struct hb_service_record *services;
    const struct hb_pool_record *pools;
    const struct hb_backend_record *backends;
    const struct hb_source_record *sources;
    uint32_t services_count, pools_count, backends_count, sources_count;
    uint32_t workers; /* 0: as 1 */
};

/* Two services whose answers can't be told apart, by index, because of this backend (index). */
struct hb_nat_conflict {
    uint32_t first, second, backend;
};

/* The input that a checked blob is. */
struct hb_nat_input hb_nat_input_of(const struct hb_generation_header *header, uint32_t workers);

/* Bytes of memory for it; 0 when no backend is reached by NAT. */
size_t hb_nat_bytes(const struct hb_nat_input *input);

/* Builds it in `memory`: zeroed, 64-byte aligned, hb_nat_bytes() long, the caller's. NULL when
 * answers could not be told apart, and *conflict says which. */
struct hb_nat *hb_nat_build(void *memory, const struct hb_nat_input *input,
                            struct hb_nat_conflict *conflict);

/* NULL when the key is not in the map. */
const struct hb_nat_slot *hb_nat_find(const struct hb_nat *nat, const struct hb_nat_key *key);

/* Which worker a port of full NAT belongs to: port modulo workers. */
static inline uint32_t hb_nat_worker_of(const struct hb_nat *nat, uint16_t port)
{
    if (nat->workers == 1)
        return 0;
    return port - (uint32_t)((uint64_t)port * nat->reciprocal >> 32) * nat->workers;
}

static inline bool hb_forwarding_is_nat(uint8_t forwarding)
{
    return forwarding == HB_FORWARDING_NAT || forwarding == HB_FORWARDING_FULL_NAT;
}

#endif
