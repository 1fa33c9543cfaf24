/* SPDX-License-Identifier: BSD-3-Clause */
/* The map from VIP, protocol and port to the service; service_map.h tells how it works. */
#include <stdalign.h>
#include <string.h>

#include "service_map.h"

#define SLOTS_MIN 8

/* What a packet is matched by. A VIP is written with protocol and port 0, which no service has. */
struct key {
    uint8_t address[HB_ADDRESS_SIZE];
    hb_be16 port;
    uint8_t protocol;
    uint8_t family;
};
_Static_assert(sizeof(struct key) == 20, "no padding: keys are compared as bytes");

struct slot {
    struct key key;
    int32_t index; /* of the service; EMPTY */
    uint64_t reserved;
};
_Static_assert(sizeof(struct slot) == 32, "two to a cache line");

enum { EMPTY = -1 };

struct hb_service_map {
    alignas(64) uint32_t mask; /* slots of either table - 1 */
    uint32_t reserved[15];
    struct slot slots[]; /* first the services, then as many for the VIPs */
};
_Static_assert(offsetof(struct hb_service_map, slots) == 64, "slots start at a cache line");

/* A power of two, at least twice the records, so that probing ends at an empty slot soon. */
static uint32_t count_slots(uint32_t records)
{
    uint32_t slots = SLOTS_MIN;

    while (slots < 2 * (uint64_t)records)
        slots *= 2;
    return slots;
}

size_t hb_service_map_bytes(uint32_t count)
{
    return sizeof(struct hb_service_map) + 2 * (size_t)count_slots(count) * sizeof(struct slot);
}

/* Not keyed: all keys in the map are the operator's, and a stranger's key costs one short run of
 * probes at most. */
static uint32_t hash_key(const struct key *key)
{
    uint64_t tail = (uint64_t)key->port << 16 | (uint64_t)key->protocol << 8 | key->family;
    uint64_t sum = hb_mix(hb_load64(key->address) ^ 0x9e3779b97f4a7c15,
                          hb_load64(key->address + 8) ^ 0xc2b2ae3d27d4eb4f);

    return (uint32_t)hb_mix(sum ^ tail, 0x165667b19e3779f9);
}

static struct slot *probe(struct slot *slots, uint32_t mask, const struct key *key)
{
    uint32_t at = hash_key(key) & mask;

    while (slots[at].index != EMPTY && memcmp(&slots[at].key, key, sizeof(*key)) != 0)
        at = (at + 1) & mask;
    return &slots[at];
}

struct hb_service_map *hb_service_map_build(void *memory, const struct hb_service_record *records,
                                            uint32_t count, uint32_t *duplicate)
{
    struct hb_service_map *map = memory;
    uint32_t slots = count_slots(count);

    memset(map, 0, hb_service_map_bytes(count));
    map->mask = slots - 1;
    for (uint32_t i = 0; i < 2 * slots; i++)
        map->slots[i].index = EMPTY;
    for (uint32_t i = 0; i < count; i++) {
        struct key key = {
            .port = records[i].port, .protocol = records[i].protocol, .family = records[i].family};
        struct slot *slot;

        memcpy(key.address, records[i].address, sizeof(key.address));
        slot = probe(map->slots, map->mask, &key);
        if (slot->index != EMPTY) {
            *duplicate = i;
            return NULL;
        }
        slot->key = key;
        slot->index = (int32_t)i;

        key.port = 0;
        key.protocol = 0;
        slot = probe(map->slots + slots, map->mask, &key);
        slot->key = key;
        slot->index = (int32_t)i;
    }
    return map;
}

int32_t hb_service_map_find(const struct hb_service_map *map, const struct hb_flow_key *flow)
{
    /* The slots are only read; probe() is shared with the builder. */
    struct slot *slots = (struct slot *)(uintptr_t)map->slots;
    struct key key = {
        .port = flow->destination_port, .protocol = flow->protocol, .family = flow->family};
    const struct slot *slot;

    memcpy(key.address, flow->destination, sizeof(key.address));
    slot = probe(slots, map->mask, &key);
    if (slot->index != EMPTY)
        return slot->index;
    key.port = 0;
    key.protocol = 0;
    slot = probe(slots + map->mask + 1, map->mask, &key);
    return slot->index != EMPTY ? HB_SERVICE_NONE : HB_SERVICE_NOT_VIP;
}
