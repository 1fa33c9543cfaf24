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
#include "node_memory.h"
#include "table_store.h"
#include "worker.h"

/* One generation with all that it holds. */
struct hb_built_generation {
    struct hb_generation_set set; /* what the workers get */
    struct hb_table **tables;     /* taken from the store, in the order of the blob */
    uint32_t tables_count;
};

/* `blob` has passed hb_generation_check. Returns NULL when memory is short; nothing is left behind.
 */
struct hb_built_generation *hb_generation_build(const void *blob, struct hb_table_store *store,
                                                const struct hb_node_memory *memory);

/* Frees it and gives its tables back. No worker may read it any more. NULL is allowed. */
void hb_generation_free(struct hb_built_generation *built, struct hb_table_store *store,
                        const struct hb_node_memory *memory);

#endif
