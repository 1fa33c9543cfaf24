/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * generation_build.h: from a checked blob to what the workers read.
 *
 * Builds a whole struct hb_generation on each NUMA node that has workers, from nothing: nothing of
 * the generation before is edited or carried over but whole tables, so no two generations can ever
 * disagree about a record (BL-105). Main lcore only. Pure.
 */
#ifndef HB_DATAPLANE_GENERATION_BUILD_H
#define HB_DATAPLANE_GENERATION_BUILD_H

#include "generation.h"
#include "halbach/protocol.h"
#include "node_memory.h"
#include "slot_uses.h"
#include "table_store.h"
#include "worker.h"

/* One generation with all that it holds. */
struct hb_built_generation {
    struct hb_generation_set set; /* what the workers get */
    struct hb_table **tables;     /* taken from the store, in the order of the blob */
    uint32_t tables_count;
    struct hb_pool_table *pools; /* in the order of the blob */
    uint32_t pools_count;
};

/* What the main lcore needs to know of a pool's table. */
struct hb_pool_table {
    const struct hb_table *table; /* NULL: the pool has none */
    struct hb_slot_uses *uses;    /* NULL: all slots have settled, or no memory for it */
};

/* `blob` has passed hb_generation_check. `before` is the generation that serves, or NULL: pools
 * that stay unsettled go on with its notes. Returns NULL when memory is short; nothing is left
 * behind. */
struct hb_built_generation *hb_generation_build(const void *blob,
                                                const struct hb_built_generation *before,
                                                struct hb_table_store *store,
                                                const struct hb_node_memory *memory);

/* Whether some service of a checked blob limits its flows, so that workers need tags for them. */
bool hb_generation_limits_flows(const void *blob);

/* The tags of the workers' flow caches, by worker; before it is adopted. */
void hb_generation_set_tags(struct hb_built_generation *built, uint16_t *const *tags);

/* It is about to be adopted, at this time of the workers' clock. */
void hb_generation_begin(const struct hb_built_generation *built, uint32_t now_ms);

/* Answers SETTLE from the generation that serves. Fills all of *reply but its header. */
void hb_generation_settle(const struct hb_built_generation *built, const struct hb_settle *request,
                          uint32_t now_ms, struct hb_settle_reply *reply);

/* Frees it and gives its tables back. No worker may read it any more. NULL is allowed. */
void hb_generation_free(struct hb_built_generation *built, struct hb_table_store *store,
                        const struct hb_node_memory *memory);

#endif
