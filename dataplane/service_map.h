/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service_map.h: from (family, VIP, protocol, port) to the service, and "is this address a VIP at
 * all".
 *
 * For each family two open-addressing tables with linear probing, at most half full, in one block
 * of memory, built once for a generation and never changed. Keys are compared in full. Lookups cost
 * one probe of the service table for traffic that is balanced; the VIP table is only asked when
 * that misses, to tell a stray packet to a VIP (dropped here) from the kernel's traffic (punted).
 * An IPv4 key is one number of 64 bits, four slots to a cache line: 4,096 services are 128 KB.
 *
 * These tables hold the services of one address and one port. Those with a prefix of addresses or a
 * range of ports are asked for in a second step (service_nets.h) when the first has missed, and
 * only if there are any; the first is always the more specific. So where there are some, a packet
 * that is for them, and one for the kernel, costs that step too.
 *
 * Pure; a built map may be read by any number of threads.
 */
#ifndef HB_DATAPLANE_SERVICE_MAP_H
#define HB_DATAPLANE_SERVICE_MAP_H

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#include "halbach/flow_key.h"
#include "halbach/generation.h"
#include "service_nets.h"

enum {
    HB_SERVICE_NONE = -1,    /* a VIP, but no service with this protocol and port */
    HB_SERVICE_NOT_VIP = -2, /* not an address of any service */
    HB_SERVICE_EMPTY = -1,   /* in a slot: nobody's */
};

/* A VIP is written with protocol and port 0, which no service has. */
struct hb_service_slot4 {
    uint64_t key;  /* address, port << 32, protocol << 48 */
    int32_t index; /* of the service; HB_SERVICE_EMPTY */
    uint32_t reserved;
};
_Static_assert(sizeof(struct hb_service_slot4) == 16, "four to a cache line");

struct hb_service_slot6 {
    uint64_t address[2];
    uint32_t tail; /* port, protocol << 16 */
    int32_t index; /* the same */
    uint64_t reserved;
};
_Static_assert(sizeof(struct hb_service_slot6) == 32, "two to a cache line");

/* Of each pair the first table holds the services, the second the VIPs. */
struct hb_service_map {
    alignas(64) uint32_t mask; /* slots of any table - 1 */
    uint32_t shift;            /* from 64 bits to a slot */
    struct hb_service_slot4 *ipv4[2];
    struct hb_service_slot6 *ipv6[2];
    struct hb_service_nets *nets; /* NULL: none */
    uint64_t reserved[2];
};
_Static_assert(sizeof(struct hb_service_map) == 64, "slots start at a cache line");

/* Bytes of memory that a map of these services needs. */
size_t hb_service_map_bytes(const struct hb_service_record *records, uint32_t count);

/* Builds the map of `count` records in `memory` (64-byte aligned, hb_service_map_bytes bytes; the
 * caller owns it). Returns the map, or NULL when two records share a key and
 * `*duplicate` is the index of the second. */
struct hb_service_map *hb_service_map_build(void *memory, const struct hb_service_record *records,
                                            uint32_t count, uint32_t *duplicate);

/* The index (into the records it was built from) of the service that `flow` is addressed to, or
 * HB_SERVICE_NONE or HB_SERVICE_NOT_VIP. Only the destination half of the key is looked at. */
int32_t hb_service_map_find(const struct hb_service_map *map, const struct hb_flow_key *flow);

static inline uint64_t hb_service_key4(uint32_t address, uint16_t port, uint8_t protocol)
{
    return address | (uint64_t)port << 32 | (uint64_t)protocol << 48;
}

/* Not keyed: all keys in the map are the operator's, and a stranger's key costs one short run of
 * probes at most. */
static inline struct hb_service_slot4 *hb_service_probe4(const struct hb_service_map *map, int vips,
                                                         uint64_t key)
{
    struct hb_service_slot4 *slots = map->ipv4[vips];
    uint32_t at = (uint32_t)((key * 0x9e3779b97f4a7c15) >> map->shift);

    while (slots[at].index != HB_SERVICE_EMPTY && slots[at].key != key)
        at = (at + 1) & map->mask;
    return &slots[at];
}

/* What prefixes and ranges say of an IPv4 packet; only if there are any. */
int32_t hb_service_map_wide_ipv4(const struct hb_service_map *map, uint32_t address, uint16_t port,
                                 uint8_t protocol);

/* The same for the packet path. `address` is the four bytes of a VIP as loaded, or points to the
 * sixteen; `port` is the destination port as loaded. */
static inline int32_t hb_service_map_find_ipv4(const struct hb_service_map *map, uint32_t address,
                                               uint16_t port, uint8_t protocol)
{
    int32_t index = hb_service_probe4(map, 0, hb_service_key4(address, port, protocol))->index;

    if (index != HB_SERVICE_EMPTY)
        return index;
    if (__builtin_expect(map->nets != NULL, 0))
        index = hb_service_map_wide_ipv4(map, address, port, protocol);
    else
        index = HB_SERVICE_NOT_VIP;
    if (index != HB_SERVICE_NOT_VIP)
        return index;
    return hb_service_probe4(map, 1, address)->index != HB_SERVICE_EMPTY ? HB_SERVICE_NONE
                                                                         : HB_SERVICE_NOT_VIP;
}

/* The first service of a VIP, or HB_SERVICE_NOT_VIP; of prefixes that hold the VIP the longest
 * counts. `address`: its 4 or 16 bytes. */
int32_t hb_service_map_first(const struct hb_service_map *map, uint8_t family,
                             const uint8_t *address);

int32_t hb_service_map_find_ipv6(const struct hb_service_map *map, const uint8_t *address,
                                 uint16_t port, uint8_t protocol);

#endif
