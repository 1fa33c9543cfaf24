/* SPDX-License-Identifier: BSD-3-Clause */
/* See slot_uses.h. */
#include "slot_uses.h"

#include <stdlib.h>
#include <string.h>

static void free_uses(struct hb_slot_uses *uses, const struct hb_node_memory *memory)
{
    for (uint32_t worker = 0; uses->used != NULL && worker < uses->workers; worker++)
        memory->release(memory->context, uses->used[worker]);
    free(uses->used);
    free(uses->since);
    free(uses->owner);
    free(uses->unsettled);
    free(uses);
}

struct hb_slot_uses *hb_slot_uses_create(const struct hb_node_memory *memory, const char *pool,
                                         uint32_t slots)
{
    struct hb_slot_uses *uses = calloc(1, sizeof(*uses));

    if (uses == NULL)
        return NULL;
    uses->holders = 1;
    uses->slots = slots;
    uses->workers = memory->workers;
    memcpy(uses->pool, pool, sizeof(uses->pool));
    uses->used = calloc(memory->workers + 1, sizeof(*uses->used));
    uses->since = calloc(slots, sizeof(*uses->since));
    uses->owner = calloc(slots, sizeof(*uses->owner));
    uses->unsettled = calloc(1, hb_table_unsettled_bytes(slots));
    if (uses->used == NULL || uses->since == NULL || uses->owner == NULL || uses->unsettled == NULL)
        goto fail;
    for (uint32_t worker = 0; worker < memory->workers; worker++) {
        uses->used[worker] = memory->allocate(memory->context, slots * sizeof(**uses->used),
                                              memory->worker_node[worker]);
        if (uses->used[worker] == NULL)
            goto fail;
    }
    return uses;

fail:
    free_uses(uses, memory);
    return NULL;
}

void hb_slot_uses_release(struct hb_slot_uses *uses, const struct hb_node_memory *memory)
{
    if (uses != NULL && --uses->holders == 0)
        free_uses(uses, memory);
}

void hb_slot_uses_begin(struct hb_slot_uses *uses, const struct hb_table_columns *columns,
                        uint32_t now_ms)
{
    for (uint32_t slot = 0; slot < uses->slots; slot++)
        if (!hb_slot_is_unsettled(uses->unsettled, slot) ||
            uses->owner[slot] != columns->owner[slot])
            uses->since[slot] = now_ms;
    memcpy(uses->owner, columns->owner, uses->slots * sizeof(*uses->owner));
    memcpy(uses->unsettled, columns->unsettled, hb_table_unsettled_bytes(uses->slots));
}

/* Clocks may wrap, and a note of a worker may be of a mark that the slot had before. */
static bool is_idle(const struct hb_slot_uses *uses, uint32_t slot, uint32_t now_ms,
                    uint32_t idle_ms)
{
    int32_t idle = (int32_t)(now_ms - uses->since[slot]);

    for (uint32_t worker = 0; worker < uses->workers; worker++) {
        uint32_t used = __atomic_load_n(&uses->used[worker][slot], __ATOMIC_RELAXED);

        if (used != 0 && (int32_t)(now_ms - used) < idle)
            idle = (int32_t)(now_ms - used);
    }
    return idle >= 0 && (uint32_t)idle >= idle_ms;
}

void hb_slot_uses_idle(const struct hb_slot_uses *uses, uint32_t now_ms, uint32_t idle_ms,
                       uint32_t first, uint64_t *bits, uint32_t words)
{
    memset(bits, 0, words * sizeof(*bits));
    for (uint32_t i = 0; i < words * 64 && first + i < uses->slots; i++)
        if (hb_slot_is_unsettled(uses->unsettled, first + i) &&
            is_idle(uses, first + i, now_ms, idle_ms))
            bits[i / 64] |= UINT64_C(1) << i % 64;
}
