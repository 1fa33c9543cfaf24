/* SPDX-License-Identifier: BSD-3-Clause */
/* The checks of a generation's lookup tables; see generation_check.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "generation_check_internal.h"

static const struct hb_table_record *tables(const struct hb_check *c)
{
    return (const void *)(c->blob + c->header->tables.offset);
}

static uint64_t body_bytes(const struct hb_table_record *table)
{
    return hb_table_body_bytes(table->slots, table->flags);
}

#define REFUSE_POOL(c, reason, i, field, format, ...)                                              \
    REFUSE_FIELD(c, reason, i, &pools(c)[i].field, "pool %u (%s): " format, i, pools(c)[i].name,   \
                 __VA_ARGS__)

enum hb_reject hb_check_table_indexes(struct hb_check *c)
{
    uint32_t count = c->header->tables.count;

    for (uint32_t i = 0; i < c->header->pools.count; i++) {
        const struct hb_pool_record *pool = &pools(c)[i];

        if (pool->table != HB_POOL_NO_TABLE && pool->table >= count)
            return REFUSE_POOL(c, HB_REJECT_TABLE_INDEX, i, table,
                               "names table %u, there are %u tables", pool->table, count);
        if (pool->bounded_load > HB_BOUNDED_LOAD_MAX)
            return REFUSE_POOL(c, HB_REJECT_TABLE_INDEX, i, bounded_load,
                               "bounded_load %u, must be 0 to %u", pool->bounded_load,
                               HB_BOUNDED_LOAD_MAX);
        if ((pool->flags & ~HB_POOL_CLOSED) != 0 || pool->reserved32 != 0 ||
            !is_zero(pool->reserved, sizeof(pool->reserved)))
            return REFUSE_POOL(c, HB_REJECT_TABLE_INDEX, i, flags,
                               "flags %#x or reserved bytes are set, this dataplane knows %#x",
                               pool->flags, HB_POOL_CLOSED);
    }
    return HB_REJECT_NONE;
}

struct extent {
    uint64_t offset, end;
    uint32_t table; /* UINT32_MAX: a section */
};

static int compare_extents(const void *left, const void *right)
{
    const struct extent *a = left, *b = right;

    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* Bodies of tables share no byte with each other or with a section. */
static enum hb_reject check_table_overlap(struct hb_check *c)
{
    const struct hb_generation_header *header = c->header;
    const struct hb_section *const sections[] = {
        &header->services, &header->pools, &header->backends, &header->tables,
        &header->prefixes, &header->quic,  &header->sources};
    uint32_t count = 0, bad = UINT32_MAX;
    struct extent *extents = calloc(
        (size_t)header->tables.count + sizeof(sections) / sizeof(sections[0]), sizeof(*extents));

    if (extents == NULL)
        return hb_check_refuse(c->fault, HB_REJECT_NO_MEMORY, 0, 0,
                               "no memory to compare %u tables", header->tables.count);
    for (uint32_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
        extents[count++] = (struct extent){sections[i]->offset,
                                           sections[i]->offset + (uint64_t)sections[i]->count *
                                                                     sections[i]->record_size,
                                           UINT32_MAX};
    for (uint32_t i = 0; i < header->tables.count; i++)
        if (tables(c)[i].offset != 0)
            extents[count++] = (struct extent){tables(c)[i].offset,
                                               tables(c)[i].offset + body_bytes(&tables(c)[i]), i};
    qsort(extents, count, sizeof(*extents), compare_extents);
    for (uint32_t i = 1, widest = 0; i < count; i++) {
        /* An empty section has no bytes to share. */
        if (extents[i].offset < extents[widest].end && extents[i].end > extents[i].offset) {
            bad = extents[i].table != UINT32_MAX ? extents[i].table : extents[widest].table;
            break;
        }
        if (extents[i].end > extents[widest].end)
            widest = i;
    }
    free(extents);
    if (bad == UINT32_MAX)
        return HB_REJECT_NONE;
    return REFUSE_FIELD(c, HB_REJECT_TABLE, bad, &tables(c)[bad].offset,
                        "table %u: its slots overlap a section or the slots of another table", bad);
}

enum hb_reject hb_check_tables(struct hb_check *c)
{
    for (uint32_t i = 0; i < c->header->tables.count; i++) {
        const struct hb_table_record *table = &tables(c)[i];

        if (table->slots < HB_TABLE_SLOTS_MIN || table->slots > HB_TABLE_SLOTS_MAX)
            return REFUSE_FIELD(c, HB_REJECT_TABLE, i, &table->slots,
                                "table %u: %u slots, must be %d to %d", i, table->slots,
                                HB_TABLE_SLOTS_MIN, HB_TABLE_SLOTS_MAX);
        if ((table->flags & ~HB_TABLE_TWO_OWNERS) != 0)
            return REFUSE_FIELD(c, HB_REJECT_TABLE, i, &table->flags,
                                "table %u: flags %#x are set, this dataplane knows only %#x", i,
                                table->flags, HB_TABLE_TWO_OWNERS);
        if (table->offset != 0 && !is_inside(c, table->offset, body_bytes(table)))
            return REFUSE_FIELD(c, HB_REJECT_TABLE, i, &table->offset,
                                "table %u: offset %" PRIu64
                                " with %u slots is misaligned or outside "
                                "the %" PRIu64 " bytes of the blob",
                                i, table->offset, table->slots, c->size);
    }
    return check_table_overlap(c);
}

enum hb_reject hb_check_table_digests(struct hb_check *c)
{
    for (uint32_t i = 0; i < c->header->tables.count; i++) {
        const struct hb_table_record *table = &tables(c)[i];
        XXH128_canonical_t digest;

        if (table->offset == 0)
            continue;
        XXH128_canonicalFromHash(&digest, XXH3_128bits_withSeed(c->blob + table->offset,
                                                                body_bytes(table), table->flags));
        _Static_assert(sizeof(digest) == HB_DIGEST_SIZE, "the canonical form is the digest");
        if (memcmp(&digest, table->digest, HB_DIGEST_SIZE) != 0)
            return REFUSE_FIELD(c, HB_REJECT_TABLE_DIGEST, i, table->digest,
                                "table %u: its %u slots do not have the digest that names it", i,
                                table->slots);
    }
    return HB_REJECT_NONE;
}

/* The columns of a table, and the ids that it names when the receiver has them ready. */
static bool find_table(const struct hb_check *c, const struct hb_table_record *record,
                       struct hb_held_table *table)
{
    memset(table, 0, sizeof(*table));
    if (record->offset != 0) {
        table->column = hb_table_columns(c->blob + record->offset, record->slots, record->flags);
        table->slots = record->slots;
        table->flags = record->flags;
        return true;
    }
    return c->limits->find_table != NULL &&
           c->limits->find_table(c->limits->context, record->digest, table) &&
           table->slots == record->slots && table->flags == record->flags;
}

enum hb_reject hb_check_tables_known(struct hb_check *c)
{
    for (uint32_t i = 0; i < c->header->tables.count; i++) {
        struct hb_held_table table;

        if (!find_table(c, &tables(c)[i], &table))
            return REFUSE_FIELD(c, HB_REJECT_TABLE_UNKNOWN, i, tables(c)[i].digest,
                                "table %u: %u slots, not carried and not held here; publish the "
                                "generation again with all tables in it",
                                i, tables(c)[i].slots);
    }
    return HB_REJECT_NONE;
}

/* Why a slot of pool `pool` may not name backend `id`, or NULL. */
static const char *slot_problem(const struct hb_check *c, uint32_t pool, uint16_t id)
{
    const struct hb_backend_record *backend;

    if (id == HB_BACKEND_NONE)
        return "which means \"no backend\"; a pool without backends has no table";
    if (c->index_of[id] == HB_NO_INDEX)
        return "which is not in this generation";
    backend = &backends(c)[c->index_of[id]];
    if (backend->pool != pool)
        return "which belongs to another pool";
    if (backend->rewrite.size == 0)
        return "which has no rewrite";
    return NULL;
}

enum hb_reject hb_check_slots(struct hb_check *c)
{
    for (uint32_t i = 0; i < c->header->pools.count; i++) {
        const struct hb_table_record *record;
        struct hb_held_table table;
        const uint16_t *ids;
        uint32_t count;

        if (pools(c)[i].table == HB_POOL_NO_TABLE)
            continue;
        record = &tables(c)[pools(c)[i].table];
        find_table(c, record, &table);
        ids = table.ids != NULL ? table.ids : table.column.owner;
        count = table.ids != NULL ? table.ids_count : table.slots;
        for (uint32_t slot = 0; slot < count; slot++) {
            const char *problem = slot_problem(c, i, ids[slot]);

            if (problem == NULL)
                continue;
            if (record->offset == 0)
                return REFUSE_POOL(c, HB_REJECT_SLOT, i, table,
                                   "its table %u (held here) names backend id %u, %s",
                                   pools(c)[i].table, ids[slot], problem);
            return REFUSE_FIELD(c, HB_REJECT_SLOT, i, &ids[slot],
                                "pool %u (%s): slot %u of its table %u names backend id %u, %s", i,
                                pools(c)[i].name, slot, pools(c)[i].table, ids[slot], problem);
        }
    }
    return HB_REJECT_NONE;
}

/* Bytes that nobody reads must be zero, so that equal tables have equal digests. */
static bool gaps_are_zero(const uint8_t *body, uint32_t slots)
{
    uint64_t used = slots * sizeof(uint16_t), column = hb_table_previous_offset(slots);
    const uint64_t *unsettled = (const void *)(body + 2 * column);

    return is_zero(body + used, column - used) && is_zero(body + column + used, column - used) &&
           (slots % 64 == 0 || unsettled[slots / 64] >> slots % 64 == 0);
}

/* A carried table by itself: its marks, whatever pool it serves. */
static enum hb_reject check_marks(struct hb_check *c, uint32_t i)
{
    const struct hb_table_record *record = &tables(c)[i];
    const uint8_t *body = c->blob + record->offset;
    struct hb_table_columns column = hb_table_columns(body, record->slots, record->flags);

    if (!gaps_are_zero(body, record->slots))
        return REFUSE_FIELD(c, HB_REJECT_PREVIOUS, i, column.unsettled,
                            "table %u: bytes between its columns or marks beyond slot %u are set",
                            i, record->slots - 1);
    if (is_zero(column.unsettled, hb_table_unsettled_bytes(record->slots)))
        return REFUSE_FIELD(c, HB_REJECT_PREVIOUS, i, column.unsettled,
                            "table %u: none of its %u slots is unsettled; then it has one column",
                            i, record->slots);
    for (uint32_t slot = 0; slot < record->slots; slot++)
        if (column.previous[slot] != HB_BACKEND_NONE &&
            !hb_slot_is_unsettled(column.unsettled, slot))
            return REFUSE_FIELD(c, HB_REJECT_PREVIOUS, i, &column.previous[slot],
                                "table %u: slot %u has a previous owner (%u) and is not marked "
                                "as unsettled",
                                i, slot, column.previous[slot]);
    return HB_REJECT_NONE;
}

/* Why a slot of pool `pool` may not have had `id` before, or NULL. It may be down by now. */
static const char *previous_problem(const struct hb_check *c, uint32_t pool, uint16_t id)
{
    if (id == HB_BACKEND_NONE)
        return NULL;
    if (c->index_of[id] == HB_NO_INDEX)
        return "which is not in this generation";
    return backends(c)[c->index_of[id]].pool == pool ? NULL : "which belongs to another pool";
}

static enum hb_reject check_previous_owners(struct hb_check *c, uint32_t i)
{
    uint32_t index = pools(c)[i].table;
    const struct hb_table_record *record = &tables(c)[index];
    struct hb_held_table table;
    const uint16_t *ids;
    uint32_t count;

    find_table(c, record, &table);
    ids = table.previous_ids != NULL ? table.previous_ids : table.column.previous;
    count = table.previous_ids != NULL ? table.previous_ids_count : table.slots;
    for (uint32_t slot = 0; slot < count; slot++) {
        const char *problem = previous_problem(c, i, ids[slot]);

        if (problem == NULL)
            continue;
        if (record->offset == 0)
            return REFUSE_POOL(c, HB_REJECT_PREVIOUS, i, table,
                               "its table %u (held here) has backend id %u as a previous owner, %s",
                               index, ids[slot], problem);
        return REFUSE_FIELD(c, HB_REJECT_PREVIOUS, i, &ids[slot],
                            "pool %u (%s): slot %u of its table %u had backend id %u, %s", i,
                            pools(c)[i].name, slot, index, ids[slot], problem);
    }
    return HB_REJECT_NONE;
}

enum hb_reject hb_check_previous(struct hb_check *c)
{
    enum hb_reject reason = HB_REJECT_NONE;

    for (uint32_t i = 0; i < c->header->tables.count && reason == HB_REJECT_NONE; i++)
        if (tables(c)[i].flags != 0 && tables(c)[i].offset != 0)
            reason = check_marks(c, i);
    for (uint32_t i = 0; i < c->header->pools.count && reason == HB_REJECT_NONE; i++)
        if (pools(c)[i].table != HB_POOL_NO_TABLE && tables(c)[pools(c)[i].table].flags != 0)
            reason = check_previous_owners(c, i);
    return reason;
}
