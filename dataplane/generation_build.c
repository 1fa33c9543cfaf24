/* SPDX-License-Identifier: BSD-3-Clause */
/* See generation_build.h. */
#include "generation_build.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "service_map.h"

/* Where the parts of a generation stand in its one block of memory. */
struct layout {
    size_t services, pools, backends, map, bounds, members, bytes;
    uint32_t ids; /* largest backend id + 1 */
};

static const void *records_of(const struct hb_generation_header *header,
                              const struct hb_section *section)
{
    return (const uint8_t *)header + section->offset;
}

static size_t place(size_t *end, size_t bytes)
{
    size_t at = (*end + 63) & ~(size_t)63;

    *end = at + bytes;
    return at;
}

static bool bounds_a_pool(const struct hb_generation_header *header)
{
    const struct hb_pool_record *pools = records_of(header, &header->pools);

    for (uint32_t i = 0; i < header->pools.count; i++) {
        if (pools[i].bounded_load != 0)
            return true;
    }
    return false;
}

static struct layout lay_out(const struct hb_generation_header *header)
{
    const struct hb_backend_record *backends = records_of(header, &header->backends);
    struct layout layout = {.bytes = sizeof(struct hb_generation), .ids = 1};

    if (header->backends.count > 0) /* sorted by id */
        layout.ids = backends[header->backends.count - 1].id + 1;
    layout.services = place(&layout.bytes, header->services.count * sizeof(struct hb_service));
    layout.pools = place(&layout.bytes, header->pools.count * sizeof(struct hb_pool));
    layout.backends = place(&layout.bytes, layout.ids * sizeof(struct hb_backend));
    layout.map = place(&layout.bytes, hb_service_map_bytes(header->services.count));
    if (bounds_a_pool(header)) { /* a backend is a member of one pool at most */
        layout.bounds = place(&layout.bytes, header->pools.count * sizeof(struct hb_pool_bound));
        layout.members = place(&layout.bytes, header->backends.count * sizeof(uint16_t));
    }
    return layout;
}

static void fill_backend(struct hb_backend *backend, const struct hb_backend_record *record)
{
    backend->use = record->use;
    backend->size = record->rewrite.size;
    backend->l2_size = record->rewrite.l2_size;
    backend->family = record->rewrite.family;
    backend->port = record->rewrite.port;
    backend->inner_max = record->rewrite.inner_max;
    backend->incarnation = record->incarnation;
    backend->pool = record->pool;
    memcpy(backend->bytes, record->rewrite.bytes, sizeof(backend->bytes));
    /* It counts only for one that owns slots, so that takes flows: its part can't be nothing. */
    backend->weight = record->weight != 0 ? record->weight : 1;
}

/* The members of the pools that bound their load: whoever owns a slot. */
static void fill_bounds(struct hb_pool_bound *bounds, uint16_t *member,
                        const struct hb_generation_header *header, struct hb_table *const *tables,
                        const struct hb_backend *backends)
{
    const struct hb_pool_record *records = records_of(header, &header->pools);

    for (uint32_t i = 0; i < header->pools.count; i++) {
        const uint16_t *ids;

        if (records[i].bounded_load == 0 || records[i].table == HB_POOL_NO_TABLE)
            continue;
        ids = hb_table_ids(tables[records[i].table], &bounds[i].members);
        bounds[i].member = memcpy(member, ids, bounds[i].members * sizeof(*ids));
        member += bounds[i].members;
        for (uint32_t id = 0; id < bounds[i].members; id++)
            bounds[i].weights += backends[ids[id]].weight;
    }
}

/* The generation of one node, in one block. */
static struct hb_generation *build_node(const struct hb_generation_header *header,
                                        struct hb_table *const *tables,
                                        const struct hb_node_memory *memory, uint32_t node)
{
    const struct hb_service_record *service_records = records_of(header, &header->services);
    const struct hb_pool_record *pool_records = records_of(header, &header->pools);
    const struct hb_backend_record *backend_records = records_of(header, &header->backends);
    struct layout layout = lay_out(header);
    uint8_t *block = memory->allocate(memory->context, layout.bytes, node);
    struct hb_generation *generation = (void *)block;
    struct hb_service *services;
    struct hb_pool *pools;
    struct hb_backend *backends;
    uint32_t duplicate;

    if (block == NULL)
        return NULL;
    services = (void *)(block + layout.services);
    pools = (void *)(block + layout.pools);
    backends = (void *)(block + layout.backends);
    for (uint32_t i = 0; i < header->services.count; i++)
        services[i] = (struct hb_service){service_records[i].id, service_records[i].pool};
    for (uint32_t i = 0; i < header->pools.count; i++) {
        const struct hb_table *table;

        pools[i].bounded_load = pool_records[i].bounded_load;
        if (pool_records[i].table == HB_POOL_NO_TABLE)
            continue;
        table = tables[pool_records[i].table];
        pools[i].owner = hb_table_owner(table, node);
        pools[i].slots = hb_table_slots(table);
    }
    for (uint32_t i = 0; i < header->backends.count; i++)
        fill_backend(&backends[backend_records[i].id], &backend_records[i]);
    *generation = (struct hb_generation){
        .map = hb_service_map_build(block + layout.map, service_records, header->services.count,
                                    &duplicate),
        .services = services,
        .pools = pools,
        .backends = backends,
        .services_count = header->services.count,
        .pools_count = header->pools.count,
        .backends_count = layout.ids,
        .hash_key = header->hash_key,
        .number = header->number,
    };
    if (layout.bounds != 0) {
        struct hb_pool_bound *bounds = (void *)(block + layout.bounds);

        fill_bounds(bounds, (void *)(block + layout.members), header, tables, backends);
        generation->bounds = bounds;
    }
    return generation;
}

struct hb_built_generation *hb_generation_build(const void *blob, struct hb_table_store *store,
                                                const struct hb_node_memory *memory)
{
    const struct hb_generation_header *header = blob;
    const struct hb_table_record *records = records_of(header, &header->tables);
    struct hb_built_generation *built = calloc(1, sizeof(*built));

    if (built == NULL)
        return NULL;
    built->tables = calloc((size_t)header->tables.count + 1, sizeof(struct hb_table *));
    if (built->tables == NULL)
        goto fail;
    for (uint32_t i = 0; i < header->tables.count; i++) {
        const uint16_t *owner = records[i].offset == 0
                                    ? NULL
                                    : (const void *)((const uint8_t *)blob + records[i].offset);

        built->tables[i] = hb_table_store_take(store, records[i].digest, owner, records[i].slots);
        if (built->tables[i] == NULL)
            goto fail;
        built->tables_count++;
    }
    for (uint32_t node = 0; node < HB_NODES_MAX; node++) {
        if ((memory->nodes >> node & 1) == 0)
            continue;
        built->set.node[node] = build_node(header, built->tables, memory, node);
        if (built->set.node[node] == NULL || built->set.node[node]->map == NULL)
            goto fail;
    }
    return built;

fail:
    hb_generation_free(built, store, memory);
    return NULL;
}

void hb_generation_free(struct hb_built_generation *built, struct hb_table_store *store,
                        const struct hb_node_memory *memory)
{
    if (built == NULL)
        return;
    for (uint32_t node = 0; node < HB_NODES_MAX; node++)
        memory->release(memory->context, (void *)(uintptr_t)built->set.node[node]);
    for (uint32_t i = 0; i < built->tables_count; i++)
        hb_table_store_release(store, built->tables[i]);
    free(built->tables);
    free(built);
}
