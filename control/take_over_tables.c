/* SPDX-License-Identifier: BSD-3-Clause */
/* What the slots' owners were, from the dataplane's generation; see take_over.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "take_over.h"

static const void *section_of(const struct hb_generation_header *header, struct hb_section section)
{
    return (const uint8_t *)header + section.offset;
}

/* The body of a pool's table, or NULL when the blob does not carry it or it does not lie in it. */
static const void *find_body(const struct hb_generation_header *header,
                             const struct hb_pool_record *pool,
                             const struct hb_table_record **record)
{
    const struct hb_table_record *tables = section_of(header, header->tables);
    uint64_t bytes;

    if (pool->table >= header->tables.count)
        return NULL;
    *record = &tables[pool->table];
    bytes = hb_table_body_bytes((*record)->slots, (*record)->flags);
    if ((*record)->offset == 0 || (*record)->offset % HB_SECTION_ALIGN != 0 ||
        (*record)->slots < HB_TABLE_SLOTS_MIN || (*record)->slots > HB_TABLE_SLOTS_MAX ||
        (*record)->offset > header->total_size || bytes > header->total_size - (*record)->offset)
        return NULL;
    return (const uint8_t *)header + (*record)->offset;
}

/* By the ids of the blob's pool, those of the model's. */
static void map_ids(const struct hb_generation_header *header, uint32_t index,
                    const struct hb_model_pool *pool, uint16_t *id_of)
{
    const struct hb_backend_record *backends = section_of(header, header->backends);

    memset(id_of, 0, (HB_BACKENDS_MAX + 1) * sizeof(*id_of));
    for (uint32_t b = 0; b < header->backends.count; b++) {
        struct hb_address address = {.family = backends[b].family};
        const struct hb_model_backend *backend;

        if (backends[b].pool != index || backends[b].id > HB_BACKENDS_MAX)
            continue;
        memcpy(address.bytes, backends[b].address, sizeof(address.bytes));
        backend = hb_pool_backend(pool, &address);
        if (backend != NULL)
            id_of[backends[b].id] = (uint16_t)backend->id;
    }
}

static void take_over_pool(const struct hb_generation_header *header, uint32_t index,
                           struct hb_model_pool *pool, uint64_t seed, uint16_t *id_of)
{
    const struct hb_pool_record *pools = section_of(header, header->pools);
    const struct hb_table_record *record;
    const void *body = find_body(header, &pools[index], &record);
    struct hb_slot_history history = {0};
    struct hb_table_columns column;

    if (body == NULL)
        return;
    column = hb_table_columns(body, record->slots, record->flags);
    if (hb_history_load(&history, &column, record->slots, seed) != 0)
        return; /* short of memory: flows depend on their entries */
    map_ids(header, index, pool, id_of);
    hb_history_renumber(&history, id_of);
    hb_history_clear(&pool->history);
    pool->history = history;
}

void hb_take_over_tables(struct hb_model *model, const void *blob)
{
    const struct hb_generation_header *header = blob;
    const struct hb_pool_record *pools = section_of(header, header->pools);
    uint16_t *id_of;

    /* With another key flows have other slots. */
    if (memcmp(&header->hash_key, &model->hash_key, sizeof(model->hash_key)) != 0)
        return;
    id_of = calloc(HB_BACKENDS_MAX + 1, sizeof(*id_of));
    for (uint32_t p = 0; id_of != NULL && p < header->pools.count; p++) {
        struct hb_model_pool *pool = NULL;

        if (memchr(pools[p].name, '\0', HB_NAME_SIZE) != NULL)
            pool = hb_model_pool(model, pools[p].name);
        if (pool != NULL && pool->owner == NULL)
            take_over_pool(header, p, pool, model->table_seed, id_of);
    }
    free(id_of);
}
