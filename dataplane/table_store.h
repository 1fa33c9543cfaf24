/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table_store.h: the lookup tables that the dataplane holds, by digest.
 *
 * A table is stored once for each NUMA node that has workers, however many pools and generations
 * use it, and lives as long as one of them does: each holder counts. So a generation that names a
 * table which the one before had moves no slots at all.
 *
 * Main lcore only; workers read the slots of tables that their generation holds. Pure: memory comes
 * from the allocator that its owner gives (hugepages in the dataplane, malloc in tests).
 */
#ifndef HB_DATAPLANE_TABLE_STORE_H
#define HB_DATAPLANE_TABLE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "generation_check.h"
#include "node_memory.h"

struct hb_table_store;
struct hb_table; /* one table that is held */

/* NULL when memory is short. `memory` must outlive the store. */
struct hb_table_store *hb_table_store_create(const struct hb_node_memory *memory);

/* Every table must have been released before. */
void hb_table_store_destroy(struct hb_table_store *store);

/* Takes a table once more: the one with the record's digest if it is held, else a copy of its
 * `body` on each node. NULL when memory is short, or when it is not held and `body` is NULL. */
struct hb_table *hb_table_store_take(struct hb_table_store *store,
                                     const struct hb_table_record *record, const void *body);

/* Gives it back; the last holder frees it. NULL is allowed. */
void hb_table_store_release(struct hb_table_store *store, struct hb_table *table);

/* The slots on a NUMA node. */
struct hb_table_columns hb_table_on_node(const struct hb_table *table, uint32_t node);
uint32_t hb_table_slots(const struct hb_table *table);
const uint8_t *hb_table_content(const struct hb_table *table); /* its digest */

/* Each id that the slots name, once, in ascending order. Lives as long as the table is held. */
const uint16_t *hb_table_ids(const struct hb_table *table, uint32_t *count);

/* For hb_generation_limits: `context` is the store. */
bool hb_table_store_find(void *context, const uint8_t digest[HB_DIGEST_SIZE],
                         struct hb_held_table *table);

/* How many tables are held. */
uint32_t hb_table_store_count(const struct hb_table_store *store);

#endif
