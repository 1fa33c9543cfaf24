/* SPDX-License-Identifier: BSD-3-Clause */
/* See table_store.h. A hash table of chains; digests are uniform, so their first bytes are the
 * hash. */
#include "table_store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024

struct id_list {
    uint16_t *ids; /* each one once */
    uint32_t count;
};

struct hb_table {
    struct hb_table *next;
    uint8_t digest[HB_DIGEST_SIZE];
    uint32_t slots;
    uint32_t flags;
    uint32_t holders;
    void *body[HB_NODES_MAX];
    struct id_list owners, previous;
};

struct hb_table_store {
    const struct hb_node_memory *memory;
    uint32_t count;
    struct hb_table *bucket[BUCKETS];
};

struct hb_table_store *hb_table_store_create(const struct hb_node_memory *memory)
{
    struct hb_table_store *store = calloc(1, sizeof(*store));

    if (store != NULL)
        store->memory = memory;
    return store;
}

void hb_table_store_destroy(struct hb_table_store *store)
{
    assert(store == NULL || store->count == 0);
    free(store);
}

/* The pointer that leads to the table, or to where it would be hung. */
static struct hb_table **find_link(struct hb_table_store *store,
                                   const uint8_t digest[HB_DIGEST_SIZE])
{
    uint32_t hash;
    struct hb_table **link;

    memcpy(&hash, digest, sizeof(hash));
    link = &store->bucket[hash % BUCKETS];
    while (*link != NULL && memcmp((*link)->digest, digest, HB_DIGEST_SIZE) != 0)
        link = &(*link)->next;
    return link;
}

static void free_table(const struct hb_table_store *store, struct hb_table *table)
{
    for (uint32_t node = 0; node < HB_NODES_MAX; node++)
        store->memory->release(store->memory->context, table->body[node]);
    free(table->owners.ids);
    free(table->previous.ids);
    free(table);
}

/* Lists each id of a column once, HB_BACKEND_NONE as well, so that a later check of this table need
 * not walk its slots. */
static int list_ids(struct id_list *list, const uint16_t *column, uint32_t slots)
{
    uint64_t seen[(HB_BACKENDS_MAX + 1) / 64] = {0};
    uint32_t count = 0;

    for (uint32_t i = 0; i < slots; i++) {
        uint64_t bit = UINT64_C(1) << (column[i] % 64);

        count += (seen[column[i] / 64] & bit) == 0;
        seen[column[i] / 64] |= bit;
    }
    list->ids = malloc((count + 1) * sizeof(*list->ids));
    if (list->ids == NULL)
        return -1;
    for (uint32_t id = 0; id <= HB_BACKENDS_MAX; id++)
        if (seen[id / 64] >> (id % 64) & 1)
            list->ids[list->count++] = (uint16_t)id;
    return 0;
}

static struct hb_table *copy_table(const struct hb_table_store *store,
                                   const struct hb_table_record *record, const void *body)
{
    const struct hb_node_memory *memory = store->memory;
    struct hb_table_columns column = hb_table_columns(body, record->slots, record->flags);
    uint64_t bytes = hb_table_body_bytes(record->slots, record->flags);
    struct hb_table *table = calloc(1, sizeof(*table));

    if (table == NULL)
        return NULL;
    memcpy(table->digest, record->digest, HB_DIGEST_SIZE);
    table->slots = record->slots;
    table->flags = record->flags;
    if (list_ids(&table->owners, column.owner, table->slots) != 0 ||
        (column.previous != NULL && list_ids(&table->previous, column.previous, table->slots) != 0))
        goto fail;
    for (uint32_t node = 0; node < HB_NODES_MAX; node++) {
        if ((memory->nodes >> node & 1) == 0)
            continue;
        table->body[node] = memory->allocate(memory->context, bytes, node);
        if (table->body[node] == NULL)
            goto fail;
        memcpy(table->body[node], body, bytes);
    }
    return table;

fail:
    free_table(store, table);
    return NULL;
}

struct hb_table *hb_table_store_take(struct hb_table_store *store,
                                     const struct hb_table_record *record, const void *body)
{
    struct hb_table **link = find_link(store, record->digest);

    if (*link == NULL) {
        if (body == NULL)
            return NULL;
        *link = copy_table(store, record, body);
        if (*link == NULL)
            return NULL;
        store->count++;
    }
    (*link)->holders++;
    return *link;
}

void hb_table_store_release(struct hb_table_store *store, struct hb_table *table)
{
    struct hb_table **link;

    if (table == NULL || --table->holders > 0)
        return;
    link = find_link(store, table->digest);
    *link = table->next;
    store->count--;
    free_table(store, table);
}

struct hb_table_columns hb_table_on_node(const struct hb_table *table, uint32_t node)
{
    return hb_table_columns(table->body[node], table->slots, table->flags);
}

uint32_t hb_table_slots(const struct hb_table *table)
{
    return table->slots;
}

const uint8_t *hb_table_content(const struct hb_table *table)
{
    return table->digest;
}

const uint16_t *hb_table_ids(const struct hb_table *table, uint32_t *count)
{
    *count = table->owners.count;
    return table->owners.ids;
}

bool hb_table_store_find(void *context, const uint8_t digest[HB_DIGEST_SIZE],
                         struct hb_held_table *held)
{
    struct hb_table_store *store = context;
    const struct hb_table *table = *find_link(store, digest);

    if (table == NULL)
        return false;
    *held = (struct hb_held_table){
        .slots = table->slots,
        .flags = table->flags,
        .ids = table->owners.ids,
        .ids_count = table->owners.count,
        .previous_ids = table->previous.ids,
        .previous_ids_count = table->previous.count,
    };
    for (uint32_t node = 0; node < HB_NODES_MAX && held->column.owner == NULL; node++)
        held->column = hb_table_on_node(table, node);
    return true;
}

uint32_t hb_table_store_count(const struct hb_table_store *store)
{
    return store->count;
}
