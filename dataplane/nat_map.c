/* SPDX-License-Identifier: BSD-3-Clause */
/* See nat_map.h. */
#include "nat_map.h"

#include <string.h>

#include "halbach/flow_key.h"

enum { ICMP = 1, ICMPV6 = 58, SLOTS_MIN = 8 };

struct builder {
    const struct hb_nat_input *input;
    struct hb_nat *nat;
    struct hb_nat_slot *slots;
    struct hb_nat_conflict *conflict;
};

struct layout {
    size_t slots, services, pools, sources, bytes;
    uint32_t slots_count;
};

static const void *records_of(const struct hb_generation_header *header,
                              const struct hb_section *section)
{
    return (const uint8_t *)header + section->offset;
}

struct hb_nat_input hb_nat_input_of(const struct hb_generation_header *header, uint32_t workers)
{
    return (struct hb_nat_input){
        .services = records_of(header, &header->services),
        .pools = records_of(header, &header->pools),
        .backends = records_of(header, &header->backends),
        .sources = records_of(header, &header->sources),
        .services_count = header->services.count,
        .pools_count = header->pools.count,
        .backends_count = header->backends.count,
        .sources_count = header->sources.count,
        .workers = workers,
    };
}

static bool translates(const struct hb_backend_record *backend)
{
    return backend->rewrite.size != 0 && hb_forwarding_is_nat(backend->rewrite.forwarding);
}

/* Keys that the map may get: of each backend one for each service of its pool, and the three
 * without ports. */
static uint64_t count_keys(const struct hb_nat_input *input)
{
    uint64_t keys = 0;

    for (uint32_t b = 0; b < input->backends_count; b++) {
        if (!translates(&input->backends[b]))
            continue;
        keys += 3;
        for (uint32_t s = 0; s < input->services_count; s++)
            keys += input->services[s].pool == input->backends[b].pool;
    }
    return keys == 0 ? 0 : keys + input->sources_count;
}

static size_t place(size_t *end, size_t bytes)
{
    size_t at = (*end + 63) & ~(size_t)63;

    *end = at + bytes;
    return at;
}

static struct layout lay_out(const struct hb_nat_input *input)
{
    uint64_t keys = count_keys(input);
    struct layout layout = {.bytes = sizeof(struct hb_nat), .slots_count = SLOTS_MIN};

    if (keys == 0)
        return (struct layout){0};
    while (layout.slots_count < 2 * keys)
        layout.slots_count *= 2;
    layout.slots = place(&layout.bytes, layout.slots_count * sizeof(struct hb_nat_slot));
    layout.services = place(&layout.bytes, input->services_count * sizeof(struct hb_nat_service));
    layout.pools = place(&layout.bytes, input->pools_count * sizeof(struct hb_nat_pool));
    layout.sources = place(&layout.bytes, input->sources_count * sizeof(struct hb_nat_source));
    return layout;
}

size_t hb_nat_bytes(const struct hb_nat_input *input)
{
    return lay_out(input).bytes;
}

/* Not keyed: all keys in the map are the operator's, and a stranger's key costs one short run of
 * probes at most. */
static uint32_t probe(const struct hb_nat *nat, const struct hb_nat_key *key)
{
    const uint8_t *bytes = (const uint8_t *)key;
    uint64_t a = hb_load64(bytes), b = hb_load64(bytes + 8), c = hb_load64(bytes + 16);
    uint64_t sum = hb_mix(a ^ 0x9e3779b97f4a7c15, b ^ 0xc2b2ae3d27d4eb4f) ^ c;
    uint32_t at = (uint32_t)((sum * 0x165667b19e3779f9) >> nat->shift);

    while (nat->slots[at].kind != HB_NAT_NOTHING &&
           memcmp(&nat->slots[at].key, key, sizeof(*key)) != 0)
        at = (at + 1) & nat->mask;
    return at;
}

const struct hb_nat_slot *hb_nat_find(const struct hb_nat *nat, const struct hb_nat_key *key)
{
    const struct hb_nat_slot *slot = &nat->slots[probe(nat, key)];

    return slot->kind != HB_NAT_NOTHING ? slot : NULL;
}

/* The slot of a key, which is a new one when its kind is HB_NAT_NOTHING. */
static struct hb_nat_slot *slot_for(struct builder *b, const uint8_t *address, uint8_t family,
                                    hb_be16 port, uint8_t protocol)
{
    struct hb_nat_key key = {.port = port, .protocol = protocol, .family = family};
    struct hb_nat_slot *slot;

    memcpy(key.address, address, sizeof(key.address));
    slot = &b->slots[probe(b->nat, &key)];
    slot->key = key;
    return slot;
}

/* What has no port to tell by: fine while all services behind the address have one VIP. */
static void add_address(struct builder *b, const struct hb_backend_record *backend,
                        uint16_t service, uint8_t protocol)
{
    struct hb_nat_slot *slot = slot_for(b, backend->address, backend->family, 0, protocol);
    const struct hb_nat_service *services = b->nat->services;

    if (slot->kind == HB_NAT_NOTHING) {
        slot->kind = HB_NAT_ADDRESS;
        slot->service = service;
        slot->backend = (uint16_t)backend->id;
    } else if (slot->service != HB_NAT_MANY &&
               memcmp(services[slot->service].vip, services[service].vip, HB_ADDRESS_SIZE) != 0) {
        slot->service = HB_NAT_MANY;
    }
}

static bool add_answers(struct builder *b, uint32_t backend_index, uint16_t service)
{
    const struct hb_backend_record *backend = &b->input->backends[backend_index];
    const struct hb_service_record *record = &b->input->services[service];
    hb_be16 port = backend->rewrite.nat_port != 0 ? backend->rewrite.nat_port : record->port;
    struct hb_nat_slot *slot =
        slot_for(b, backend->address, backend->family, port, record->protocol);

    if (slot->kind != HB_NAT_NOTHING) {
        *b->conflict = (struct hb_nat_conflict){slot->service, service, backend_index};
        return false;
    }
    slot->kind = HB_NAT_BACKEND;
    slot->service = service;
    slot->backend = (uint16_t)backend->id;
    add_address(b, backend, service, record->protocol);
    add_address(b, backend, service, backend->family == HB_FAMILY_IPV4 ? ICMP : ICMPV6);
    return true;
}

static bool add_backends(struct builder *b)
{
    const struct hb_nat_input *input = b->input;

    for (uint32_t i = 0; i < input->backends_count; i++) {
        if (!translates(&input->backends[i]) ||
            input->backends[i].rewrite.forwarding != HB_FORWARDING_NAT)
            continue;
        for (uint32_t s = 0; s < input->services_count; s++) {
            if (input->services[s].pool == input->backends[i].pool &&
                !add_answers(b, i, (uint16_t)s))
                return false;
        }
    }
    return true;
}

static struct hb_nat_source make_source(const struct hb_source_record *record, uint32_t workers)
{
    struct hb_nat_source source = {.family = record->family};
    uint32_t first = (record->port_first + workers - 1) / workers * workers;

    memcpy(source.address, record->address, sizeof(source.address));
    if (first > record->port_last)
        return source;
    source.first = (uint16_t)first;
    source.each = (uint16_t)((record->port_last + 1 - first) / workers);
    return source;
}

static void add_sources(struct builder *b, struct hb_nat_source *sources, struct hb_nat_pool *pools)
{
    const struct hb_nat_input *input = b->input;

    for (uint32_t i = 0; i < input->sources_count; i++) {
        const struct hb_source_record *record = &input->sources[i];
        struct hb_nat_slot *slot = slot_for(b, record->address, record->family, 0, 0);

        slot->kind = record->own ? HB_NAT_OWN : HB_NAT_SOURCE;
        sources[i] = make_source(record, b->nat->workers);
    }
    for (uint32_t i = 0; i < input->pools_count; i++) {
        pools[i] =
            (struct hb_nat_pool){input->pools[i].sources_first, input->pools[i].sources_count};
        b->nat->full |= input->pools[i].sources_count != 0;
    }
}

struct hb_nat *hb_nat_build(void *memory, const struct hb_nat_input *input,
                            struct hb_nat_conflict *conflict)
{
    struct layout layout = lay_out(input);
    uint8_t *block = memory;
    struct hb_nat *nat = memory;
    struct hb_nat_service *services = (void *)(block + layout.services);
    struct builder builder = {input, nat, (void *)(block + layout.slots), conflict};
    uint32_t workers = input->workers != 0 ? input->workers : 1;

    *nat = (struct hb_nat){
        .slots = builder.slots,
        .mask = layout.slots_count - 1,
        .shift = 64 - (uint32_t)__builtin_ctz(layout.slots_count),
        .services = services,
        .pools = (void *)(block + layout.pools),
        .sources = (void *)(block + layout.sources),
        .workers = workers,
        /* Rounded up; exact for numbers of 16 bits. With one worker any port is worker 0's. */
        .reciprocal = workers == 1 ? 0 : UINT32_MAX / workers + 1,
    };
    for (uint32_t i = 0; i < input->services_count; i++) {
        services[i] = (struct hb_nat_service){.port = input->services[i].port,
                                              .family = input->services[i].family,
                                              .protocol = input->services[i].protocol};
        memcpy(services[i].vip, input->services[i].address, sizeof(services[i].vip));
    }
    add_sources(&builder, (void *)(block + layout.sources), (void *)(block + layout.pools));
    return add_backends(&builder) ? nat : NULL;
}
