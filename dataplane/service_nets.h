/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service_nets.h: services that are more than one address and one port: VIP prefixes, ranges of
 * ports, any port.
 *
 * The second step of service_map.h, for packets that no service of one address and one port takes.
 * For each length that some prefix has, longest first, the destination is masked and looked for in
 * one hash table of prefixes (tuple space search: V. Srinivasan, S. Suri, G. Varghese, "Packet
 * Classification using Tuple Space Search", SIGCOMM 1999). A prefix has for each protocol a list of
 * spans, the ports from 0 to 65535 cut wherever the smallest range that holds them changes; a
 * binary search finds the packet's. Where the longest prefix has no service for the port, the next
 * one is asked.
 *
 * Cost: one probe for each length in use, whatever the number of services, and a search where a
 * prefix matches. Networks rarely use more than two or three lengths.
 *
 * Pure; a built one may be read by any number of threads.
 */
#ifndef HB_DATAPLANE_SERVICE_NETS_H
#define HB_DATAPLANE_SERVICE_NETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "halbach/generation.h"

struct hb_service_nets;

/* Whether a service belongs here and not into the map of single addresses and ports. */
static inline bool hb_service_is_wide(const struct hb_service_record *record)
{
    return record->port != record->port_last ||
           record->prefix_length != hb_address_bits(record->family);
}

/* Bytes of memory for `count` wide services; 0 when there are none. */
size_t hb_service_nets_bytes(uint32_t count);

/* Builds from the wide ones among `count` records in `memory` (hb_service_nets_bytes, 64-byte
 * aligned; the caller owns it). NULL when two of them are the same; `*duplicate` is the index of
 * the second. Ranges of one prefix and protocol lie within each other or apart (the check of
 * generations sees to it). */
struct hb_service_nets *hb_service_nets_build(void *memory, const struct hb_service_record *records,
                                              uint32_t count, uint32_t *duplicate);

/* The service for a destination: the address as hb_load64 gives it (an IPv4 address in the lower
 * half of the first word), the port in network byte order. HB_SERVICE_NONE: a prefix holds the
 * address, but has no service for protocol and port. HB_SERVICE_NOT_VIP: none holds it. */
int32_t hb_service_nets_find(const struct hb_service_nets *nets, uint8_t family,
                             const uint64_t address[2], hb_be16 port, uint8_t protocol);

/* The first service of the longest prefix, of at least `shortest` bits, that holds the address; or
 * HB_SERVICE_NOT_VIP. */
int32_t hb_service_nets_first(const struct hb_service_nets *nets, uint8_t family,
                              const uint64_t address[2], uint8_t shortest);

#endif
