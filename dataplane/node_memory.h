/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node_memory.h: where the memory of a generation comes from.
 *
 * One copy is made on each NUMA node that has workers. The dataplane allocates hugepage memory on
 * that node; tests use malloc and may let an allocation fail.
 */
#ifndef HB_DATAPLANE_NODE_MEMORY_H
#define HB_DATAPLANE_NODE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#define HB_NODES_MAX 8 /* as in struct hb_generation_set */

struct hb_node_memory {
    uint32_t nodes; /* bit n: NUMA node n has workers */
    /* Zeroed memory, 64-byte aligned, on `node`; NULL when there is none. */
    void *(*allocate)(void *context, size_t bytes, uint32_t node);
    void (*release)(void *context, void *memory); /* NULL is allowed */
    void *context;
    /* For what each worker has of its own: how many there are, and on which node each one is. */
    uint32_t workers;
    const uint8_t *worker_node;
    size_t flow_tags_bytes; /* hb_flow_table_tags_bytes of each worker's flow cache */
};

#endif
