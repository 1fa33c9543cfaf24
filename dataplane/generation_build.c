/* SPDX-License-Identifier: BSD-3-Clause */
/* See generation_build.h. */
#include "generation_build.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "nat_map.h"
#include "service_extras.h"
#include "service_map.h"

/* Where the parts of a generation stand in its one block of memory. */
struct layout {
    size_t services, pools, past, backends, map, bounds, members, extras, mss_max, nat, bytes;
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

static bool lowers_an_mss(const struct hb_generation_header *header)
{
    const struct hb_service_record *services = records_of(header, &header->services);

    for (uint32_t i = 0; i < header->services.count; i++) {
        if (services[i].mss_max != 0)
            return true;
    }
    return false;
}

static struct hb_service_sections sections_of(const struct hb_generation_header *header,
                                              uint32_t workers)
{
    return (struct hb_service_sections){
        .services = records_of(header, &header->services),
        .prefixes = records_of(header, &header->prefixes),
        .quic = records_of(header, &header->quic),
        .backends = records_of(header, &header->backends),
        .services_count = header->services.count,
        .prefixes_count = header->prefixes.count,
        .quic_count = header->quic.count,
        .backends_count = header->backends.count,
        .workers = workers,
    };
}

static struct layout lay_out(const struct hb_generation_header *header, uint32_t workers)
{
    struct hb_service_sections sections = sections_of(header, 1);
    struct hb_nat_input nat = hb_nat_input_of(header, workers);
    size_t nat_bytes = hb_nat_bytes(&nat);
    const struct hb_backend_record *backends = records_of(header, &header->backends);
    struct layout layout = {.bytes = sizeof(struct hb_generation), .ids = 1};

    if (header->backends.count > 0) /* sorted by id */
        layout.ids = backends[header->backends.count - 1].id + 1;
    layout.services = place(&layout.bytes, header->services.count * sizeof(struct hb_service));
    layout.pools = place(&layout.bytes, header->pools.count * sizeof(struct hb_pool));
    layout.past = place(&layout.bytes, header->pools.count * sizeof(struct hb_pool_past));
    layout.backends = place(&layout.bytes, layout.ids * sizeof(struct hb_backend));
    layout.map = place(&layout.bytes, hb_service_map_bytes(records_of(header, &header->services),
                                                           header->services.count));
    layout.extras = place(&layout.bytes, hb_service_extras_bytes(&sections));
    if (bounds_a_pool(header)) { /* a backend is a member of one pool at most */
        layout.bounds = place(&layout.bytes, header->pools.count * sizeof(struct hb_pool_bound));
        layout.members = place(&layout.bytes, header->backends.count * sizeof(uint16_t));
    }
    if (nat_bytes != 0)
        layout.nat = place(&layout.bytes, nat_bytes);
    if (lowers_an_mss(header))
        layout.mss_max = place(&layout.bytes, header->services.count * sizeof(uint16_t));
    return layout;
}

static void fill_service(struct hb_service *service, const struct hb_service_record *record)
{
    service->id = (uint16_t)record->id;
    service->pool = record->pool;
    service->tracking = (uint8_t)record->tracking;
    service->features = hb_service_features(record);
    if (record->protocol != HB_PROTOCOL_TCP && record->tracking == HB_TRACKING_CHANGED)
        service->tracking = HB_TRACKING_ALL; /* nothing tells the first datagram of a flow */
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
    backend->pool = (uint16_t)record->pool;
    backend->forwarding = record->rewrite.forwarding;
    backend->flags = record->rewrite.flags;
    backend->spread = record->rewrite.spread;
    backend->dscp = record->rewrite.dscp;
    backend->nat_port = record->rewrite.nat_port;
    memcpy(backend->bytes, record->rewrite.bytes, sizeof(backend->bytes));
    hb_backend_complete(backend);
    /* It counts only for one that owns slots, so that takes flows: its part can't be nothing. */
    backend->weight = record->weight != 0 ? record->weight : 1;
}

/* The members of the pools that bound their load: whoever owns a slot. */
static void fill_bounds(struct hb_pool_bound *bounds, uint16_t *member,
                        const struct hb_generation_header *header,
                        const struct hb_pool_table *tables, const struct hb_backend *backends)
{
    const struct hb_pool_record *records = records_of(header, &header->pools);

    for (uint32_t i = 0; i < header->pools.count; i++) {
        const uint16_t *ids;

        if (records[i].bounded_load == 0 || tables[i].table == NULL)
            continue;
        ids = hb_table_ids(tables[i].table, &bounds[i].members);
        bounds[i].member = memcpy(member, ids, bounds[i].members * sizeof(*ids));
        member += bounds[i].members;
        for (uint32_t id = 0; id < bounds[i].members; id++)
            bounds[i].weights += backends[ids[id]].weight;
    }
}

static void add_extras(struct hb_generation *generation, void *memory,
                       const struct hb_service_sections *sections)
{
    struct hb_service_extras extras = hb_service_extras_build(memory, sections);

    generation->features = extras.features;
    generation->extra = extras.extra;
    generation->quic = extras.quic;
    generation->servers = extras.servers;
}

/* The generation of one node, in one block. */
static struct hb_generation *build_node(const struct hb_generation_header *header,
                                        const struct hb_pool_table *tables,
                                        const struct hb_node_memory *memory, uint32_t node)
{
    const struct hb_service_record *service_records = records_of(header, &header->services);
    const struct hb_pool_record *pool_records = records_of(header, &header->pools);
    const struct hb_backend_record *backend_records = records_of(header, &header->backends);
    struct hb_service_sections sections = sections_of(header, memory->workers);
    struct layout layout = lay_out(header, memory->workers);
    uint8_t *block = memory->allocate(memory->context, layout.bytes, node);
    struct hb_generation *generation = (void *)block;
    struct hb_service *services;
    struct hb_pool *pools;
    struct hb_pool_past *past;
    struct hb_backend *backends;
    bool unsettled = false, selective = false;
    uint32_t duplicate;

    if (block == NULL)
        return NULL;
    services = (void *)(block + layout.services);
    pools = (void *)(block + layout.pools);
    past = (void *)(block + layout.past);
    backends = (void *)(block + layout.backends);
    for (uint32_t i = 0; i < header->services.count; i++) {
        fill_service(&services[i], &service_records[i]);
        selective |= services[i].tracking != HB_TRACKING_ALL;
    }
    for (uint32_t i = 0; i < header->pools.count; i++) {
        struct hb_table_columns column;

        pools[i].bounded_load = (uint16_t)pool_records[i].bounded_load;
        pools[i].flags = (uint16_t)pool_records[i].flags;
        if (tables[i].table == NULL)
            continue;
        column = hb_table_on_node(tables[i].table, node);
        pools[i].owner = column.owner;
        pools[i].slots = hb_table_slots(tables[i].table);
        if (column.unsettled == NULL)
            continue;
        past[i] = (struct hb_pool_past){column.previous, column.unsettled,
                                        tables[i].uses != NULL ? tables[i].uses->used : NULL};
        unsettled = true;
    }
    for (uint32_t i = 0; i < header->backends.count; i++)
        fill_backend(&backends[backend_records[i].id], &backend_records[i]);
    *generation = (struct hb_generation){
        .map = hb_service_map_build(block + layout.map, service_records, header->services.count,
                                    &duplicate),
        .services = services,
        .pools = pools,
        .past = unsettled ? past : NULL,
        .backends = backends,
        .services_count = header->services.count,
        .pools_count = header->pools.count,
        .backends_count = layout.ids,
        .selective = selective,
        .fetch_slots = selective && hb_tables_are_far(pools, header->pools.count),
        .hash_key = header->hash_key,
        .number = header->number,
        .settings = header->settings,
    };
    if (layout.mss_max != 0) {
        uint16_t *mss_max = (void *)(block + layout.mss_max);

        for (uint32_t i = 0; i < header->services.count; i++)
            mss_max[i] = service_records[i].mss_max;
        generation->mss_max = mss_max;
    }
    add_extras(generation, block + layout.extras, &sections);
    if (layout.bounds != 0) {
        struct hb_pool_bound *bounds = (void *)(block + layout.bounds);

        fill_bounds(bounds, (void *)(block + layout.members), header, tables, backends);
        generation->bounds = bounds;
    }
    if (layout.nat != 0) {
        struct hb_nat_input input = hb_nat_input_of(header, memory->workers);
        struct hb_nat_conflict conflict; /* the check has found none */

        generation->nat = hb_nat_build(block + layout.nat, &input, &conflict);
    }
    return generation;
}

static bool take_tables(struct hb_built_generation *built,
                        const struct hb_generation_header *header, struct hb_table_store *store)
{
    const struct hb_table_record *records = records_of(header, &header->tables);

    for (uint32_t i = 0; i < header->tables.count; i++) {
        const void *body =
            records[i].offset == 0 ? NULL : (const uint8_t *)header + records[i].offset;

        built->tables[i] = hb_table_store_take(store, &records[i], body);
        if (built->tables[i] == NULL)
            return false;
        built->tables_count++;
    }
    return true;
}

/* The notes about a pool's unsettled slots: those of the generation before, if they fit. */
static struct hb_slot_uses *take_uses(const struct hb_built_generation *before, const char *pool,
                                      uint32_t slots, const struct hb_node_memory *memory)
{
    for (uint32_t i = 0; before != NULL && i < before->pools_count; i++) {
        struct hb_slot_uses *uses = before->pools[i].uses;

        if (uses == NULL || uses->slots != slots ||
            memcmp(uses->pool, pool, sizeof(uses->pool)) != 0)
            continue;
        uses->holders++;
        return uses;
    }
    return hb_slot_uses_create(memory, pool, slots);
}

/* Without memory for notes a pool goes on without: it does not settle until a later generation
 * finds some. That is no reason to refuse a change. */
static void take_pools(struct hb_built_generation *built, const struct hb_generation_header *header,
                       const struct hb_built_generation *before,
                       const struct hb_node_memory *memory)
{
    const struct hb_pool_record *records = records_of(header, &header->pools);
    const struct hb_table_record *tables = records_of(header, &header->tables);

    for (uint32_t i = 0; i < header->pools.count; i++) {
        struct hb_pool_table *pool = &built->pools[i];
        const struct hb_table_record *table;

        built->pools_count++;
        if (records[i].table == HB_POOL_NO_TABLE)
            continue;
        table = &tables[records[i].table];
        pool->table = built->tables[records[i].table];
        if ((table->flags & HB_TABLE_TWO_OWNERS) == 0)
            continue;
        pool->uses = take_uses(before, records[i].name, table->slots, memory);
    }
}

struct hb_built_generation *hb_generation_build(const void *blob,
                                                const struct hb_built_generation *before,
                                                struct hb_table_store *store,
                                                const struct hb_node_memory *memory)
{
    const struct hb_generation_header *header = blob;
    struct hb_built_generation *built = calloc(1, sizeof(*built));

    if (built == NULL)
        return NULL;
    built->tables = calloc((size_t)header->tables.count + 1, sizeof(struct hb_table *));
    built->pools = calloc((size_t)header->pools.count + 1, sizeof(*built->pools));
    if (built->tables == NULL || built->pools == NULL || !take_tables(built, header, store))
        goto fail;
    take_pools(built, header, before, memory);
    for (uint32_t node = 0; node < HB_NODES_MAX; node++) {
        if ((memory->nodes >> node & 1) == 0)
            continue;
        built->set.node[node] = build_node(header, built->pools, memory, node);
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
    for (uint32_t i = 0; i < built->pools_count; i++)
        hb_slot_uses_release(built->pools[i].uses, memory);
    free(built->tables);
    free(built->pools);
    free(built);
}

bool hb_generation_limits_flows(const void *blob)
{
    const struct hb_generation_header *header = blob;
    const struct hb_service_record *services = records_of(header, &header->services);

    for (uint32_t i = 0; i < header->services.count; i++)
        if (services[i].flows_max != 0)
            return true;
    return false;
}

void hb_generation_set_tags(struct hb_built_generation *built, uint16_t *const *tags)
{
    for (uint32_t node = 0; node < HB_NODES_MAX; node++)
        if (built->set.node[node] != NULL)
            ((struct hb_generation *)(uintptr_t)built->set.node[node])->flow_tags = tags;
}

static struct hb_table_columns any_columns(const struct hb_table *table)
{
    struct hb_table_columns columns = {0};

    for (uint32_t node = 0; node < HB_NODES_MAX && columns.owner == NULL; node++)
        columns = hb_table_on_node(table, node);
    return columns;
}

void hb_generation_begin(const struct hb_built_generation *built, uint32_t now_ms)
{
    for (uint32_t i = 0; i < built->pools_count; i++) {
        struct hb_table_columns columns;

        if (built->pools[i].uses == NULL)
            continue;
        columns = any_columns(built->pools[i].table);
        hb_slot_uses_begin(built->pools[i].uses, &columns, now_ms);
    }
}

/* Pools whose tables are alike in every byte would need the marks of both. */
void hb_generation_settle(const struct hb_built_generation *built, const struct hb_settle *request,
                          uint32_t now_ms, struct hb_settle_reply *reply)
{
    reply->first = request->first & ~UINT32_C(63);
    for (uint32_t i = 0; built != NULL && i < built->pools_count; i++) {
        const struct hb_pool_table *pool = &built->pools[i];
        uint64_t idle[HB_SETTLE_WORDS];

        if (pool->uses == NULL || reply->first >= pool->uses->slots ||
            memcmp(hb_table_content(pool->table), request->digest, HB_DIGEST_SIZE) != 0)
            continue;
        hb_slot_uses_idle(pool->uses, now_ms, request->idle_ms, reply->first, idle,
                          HB_SETTLE_WORDS);
        for (uint32_t word = 0; word < HB_SETTLE_WORDS; word++)
            reply->idle[word] = reply->known ? reply->idle[word] & idle[word] : idle[word];
        reply->known = 1;
        reply->count = pool->uses->slots - reply->first;
        if (reply->count > HB_SETTLE_WORDS * 64)
            reply->count = HB_SETTLE_WORDS * 64;
    }
}
