/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service_map.h: from (family, VIP, protocol, port) to the service, and "is this address a VIP at
 * all".
 *
 * Two open-addressing tables with linear probing in one block of memory, at most half full, built
 * once for a generation and never changed. Keys are compared in full. Lookups cost one probe of the
 * service table for traffic that is balanced; the VIP table is only asked when that misses, to tell
 * a stray packet to a VIP (dropped here) from the kernel's traffic (punted).
 *
 * Pure; a built map may be read by any number of threads.
 */
#ifndef HB_DATAPLANE_SERVICE_MAP_H
#define HB_DATAPLANE_SERVICE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "halbach/flow_key.h"
#include "halbach/generation.h"

struct hb_service_map;

enum {
    HB_SERVICE_NONE = -1,    /* a VIP, but no service with this protocol and port */
    HB_SERVICE_NOT_VIP = -2, /* not an address of any service */
};

/* Bytes of memory that a map of `count` services needs. */
size_t hb_service_map_bytes(uint32_t count);

/* Builds the map of `count` records in `memory` (64-byte aligned, hb_service_map_bytes(count)
 * bytes; the caller owns it). Returns the map, or NULL when two records share a key and
 * `*duplicate` is the index of the second. */
struct hb_service_map *hb_service_map_build(void *memory, const struct hb_service_record *records,
                                            uint32_t count, uint32_t *duplicate);

/* The index (into the records it was built from) of the service that `flow` is addressed to, or
 * HB_SERVICE_NONE or HB_SERVICE_NOT_VIP. Only the destination half of the key is looked at. */
int32_t hb_service_map_find(const struct hb_service_map *map, const struct hb_flow_key *flow);

#endif
