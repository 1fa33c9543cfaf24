/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slot_uses.h: when the mark of an unsettled slot was needed last.
 *
 * A mark is needed for a packet that goes to another backend than the slot's owner: because an
 * entry says so, or because it has none and goes to the previous owner. The worker that sends it
 * notes the time; each worker has an array of its own, made on its NUMA node when a generation is
 * adopted, so that nothing is allocated or shared on the packet path. A slot that no worker has
 * noted for the idle timeout of flows has settled: control asks (HB_MSG_SETTLE) and takes the mark
 * away with the next generation.
 *
 * The time counts from when the slot became unsettled, or got yet another owner, in a generation
 * that was adopted here. The arrays belong to the pool and not to a generation: as long as a pool
 * has unsettled slots, and as many slots as before, they pass from one to the next.
 *
 * `used` is written by its worker, anything else by the main lcore. Pure.
 */
#ifndef HB_DATAPLANE_SLOT_USES_H
#define HB_DATAPLANE_SLOT_USES_H

#include <stdbool.h>
#include <stdint.h>

#include "halbach/generation.h"
#include "node_memory.h"

struct hb_slot_uses {
    uint32_t **used; /* by worker, by slot: its clock in milliseconds; 0: never */
    uint32_t workers;
    uint32_t slots;
    uint32_t *since; /* the same clock: by slot, when its mark was set or its owner changed */
    uint16_t *owner; /* of the generation adopted last */
    uint64_t *unsettled;
    uint32_t holders; /* generations */
    char pool[HB_NAME_SIZE];
};

/* For a pool that was not unsettled until now; one holder. NULL when memory is short. */
struct hb_slot_uses *hb_slot_uses_create(const struct hb_node_memory *memory, const char *pool,
                                         uint32_t slots);
/* One holder less; the last one frees it. No worker may use it any more then. NULL is allowed. */
void hb_slot_uses_release(struct hb_slot_uses *uses, const struct hb_node_memory *memory);

/* A generation with these columns is about to be adopted. */
void hb_slot_uses_begin(struct hb_slot_uses *uses, const struct hb_table_columns *columns,
                        uint32_t now_ms);

/* Sets the bit of each unsettled slot that was not used for `idle_ms`, and clears the others: bit 0
 * of bits[0] is for slot `first`, a multiple of 64; `words` words. */
void hb_slot_uses_idle(const struct hb_slot_uses *uses, uint32_t now_ms, uint32_t idle_ms,
                       uint32_t first, uint64_t *bits, uint32_t words);

#endif
