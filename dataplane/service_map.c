/* SPDX-License-Identifier: BSD-3-Clause */
/* The map from VIP, protocol and port to the service; service_map.h tells how it works. */
#include <stdalign.h>
#include <stdbool.h>
#include <string.h>

#include "service_map.h"

#define SLOTS_MIN 8

/* A power of two, at least twice the records, so that probing ends at an empty slot soon. */
static uint32_t count_slots(uint32_t records)
{
    uint32_t slots = SLOTS_MIN;

    while (slots < 2 * (uint64_t)records)
        slots *= 2;
    return slots;
}

/* Of the two tables of each family; a multiple of 64. */
static size_t table_bytes(uint32_t slots)
{
    return 2 * (size_t)slots * (sizeof(struct hb_service_slot4) + sizeof(struct hb_service_slot6));
}

static uint32_t count_wide(const struct hb_service_record *records, uint32_t count)
{
    uint32_t wide = 0;

    for (uint32_t i = 0; i < count; i++)
        wide += hb_service_is_wide(&records[i]);
    return wide;
}

size_t hb_service_map_bytes(const struct hb_service_record *records, uint32_t count)
{
    uint32_t wide = count_wide(records, count);

    return sizeof(struct hb_service_map) + table_bytes(count_slots(count - wide)) +
           hb_service_nets_bytes(wide);
}

static struct hb_service_slot6 *probe6(const struct hb_service_map *map, bool vips,
                                       const uint8_t *address, uint32_t tail)
{
    struct hb_service_slot6 *slots = map->ipv6[vips];
    uint64_t high = hb_load64(address), low = hb_load64(address + 8);
    uint64_t sum = hb_mix(high ^ 0x9e3779b97f4a7c15, low ^ 0xc2b2ae3d27d4eb4f);
    uint32_t at = (uint32_t)(((sum ^ tail) * 0x165667b19e3779f9) >> map->shift);

    while (slots[at].index != HB_SERVICE_EMPTY &&
           (slots[at].address[0] != high || slots[at].address[1] != low || slots[at].tail != tail))
        at = (at + 1) & map->mask;
    return &slots[at];
}

static bool add4(struct hb_service_map *map, const struct hb_service_record *record, int32_t index)
{
    uint32_t address = (uint32_t)hb_load64(record->address);
    uint64_t key = hb_service_key4(address, record->port, record->protocol);
    struct hb_service_slot4 *slot = hb_service_probe4(map, false, key);

    if (slot->index != HB_SERVICE_EMPTY)
        return false;
    *slot = (struct hb_service_slot4){.key = key, .index = index};
    slot = hb_service_probe4(map, true, address);
    if (slot->index == HB_SERVICE_EMPTY)
        *slot = (struct hb_service_slot4){.key = address, .index = index};
    return true;
}

static bool add6(struct hb_service_map *map, const struct hb_service_record *record, int32_t index)
{
    uint32_t tail = record->port | (uint32_t)record->protocol << 16;
    struct hb_service_slot6 *slot = probe6(map, false, record->address, tail);
    struct hb_service_slot6 filled = {
        .address = {hb_load64(record->address), hb_load64(record->address + 8)},
        .tail = tail,
        .index = index};

    if (slot->index != HB_SERVICE_EMPTY)
        return false;
    *slot = filled;
    filled.tail = 0;
    slot = probe6(map, true, record->address, 0);
    if (slot->index == HB_SERVICE_EMPTY)
        *slot = filled;
    return true;
}

struct hb_service_map *hb_service_map_build(void *memory, const struct hb_service_record *records,
                                            uint32_t count, uint32_t *duplicate)
{
    struct hb_service_map *map = memory;
    uint32_t wide = count_wide(records, count), slots = count_slots(count - wide);

    memset(map, 0, sizeof(*map) + table_bytes(slots));
    map->mask = slots - 1;
    map->shift = 64 - (uint32_t)__builtin_ctz(slots);
    map->ipv4[0] = (struct hb_service_slot4 *)(map + 1);
    map->ipv4[1] = map->ipv4[0] + slots;
    map->ipv6[0] = (struct hb_service_slot6 *)(map->ipv4[1] + slots);
    map->ipv6[1] = map->ipv6[0] + slots;
    for (uint32_t i = 0; i < 2 * slots; i++) {
        map->ipv4[0][i].index = HB_SERVICE_EMPTY;
        map->ipv6[0][i].index = HB_SERVICE_EMPTY;
    }
    if (wide > 0) {
        map->nets = hb_service_nets_build((uint8_t *)(map + 1) + table_bytes(slots), records, count,
                                          duplicate);
        if (map->nets == NULL)
            return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        bool fresh = true;

        if (!hb_service_is_wide(&records[i]))
            fresh = records[i].family == HB_FAMILY_IPV4 ? add4(map, &records[i], (int32_t)i)
                                                        : add6(map, &records[i], (int32_t)i);
        if (!fresh) {
            *duplicate = i;
            return NULL;
        }
    }
    return map;
}

/* One that prefixes say nothing of may still be the address of a single service. */
static int32_t find_wide(const struct hb_service_map *map, uint8_t family,
                         const uint64_t address[2], uint16_t port, uint8_t protocol)
{
    if (map->nets == NULL)
        return HB_SERVICE_NOT_VIP;
    return hb_service_nets_find(map->nets, family, address, port, protocol);
}

int32_t hb_service_map_wide_ipv4(const struct hb_service_map *map, uint32_t address, uint16_t port,
                                 uint8_t protocol)
{
    const uint64_t words[2] = {address, 0};

    return find_wide(map, HB_FAMILY_IPV4, words, port, protocol);
}

int32_t hb_service_map_find_ipv6(const struct hb_service_map *map, const uint8_t *address,
                                 uint16_t port, uint8_t protocol)
{
    int32_t index = probe6(map, false, address, port | (uint32_t)protocol << 16)->index;
    const uint64_t words[2] = {hb_load64(address), hb_load64(address + 8)};

    if (index != HB_SERVICE_EMPTY)
        return index;
    index = find_wide(map, HB_FAMILY_IPV6, words, port, protocol);
    if (index != HB_SERVICE_NOT_VIP)
        return index;
    return probe6(map, true, address, 0)->index != HB_SERVICE_EMPTY ? HB_SERVICE_NONE
                                                                    : HB_SERVICE_NOT_VIP;
}

/* Of services with a single port the map knows the first; one with a range may come before it. */
int32_t hb_service_map_first(const struct hb_service_map *map, uint8_t family,
                             const uint8_t *address)
{
    bool ipv6 = family == HB_FAMILY_IPV6;
    uint64_t words[2] = {0};
    int32_t single, wide = HB_SERVICE_NOT_VIP;

    memcpy(words, address, ipv6 ? 16 : 4);
    single =
        ipv6 ? probe6(map, true, address, 0)->index : hb_service_probe4(map, true, words[0])->index;
    if (map->nets != NULL)
        wide = hb_service_nets_first(map->nets, family, words,
                                     single == HB_SERVICE_EMPTY ? 0 : (ipv6 ? 128 : 32));
    if (single == HB_SERVICE_EMPTY || (wide >= 0 && wide < single))
        return wide;
    return single;
}

int32_t hb_service_map_find(const struct hb_service_map *map, const struct hb_flow_key *flow)
{
    if (flow->family == HB_FAMILY_IPV4)
        return hb_service_map_find_ipv4(map, (uint32_t)hb_load64(flow->destination),
                                        flow->destination_port, flow->protocol);
    return hb_service_map_find_ipv6(map, flow->destination, flow->destination_port, flow->protocol);
}
