/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slot_history.h: who owned the slots of one pool's table before, and which slots are unsettled.
 *
 * The dataplane asks the first two columns of a table when it has no entry for a flow: on a slot
 * that is unsettled an established flow goes to the owner that it may have begun on. This is where
 * those columns are made (struct hb_table_record has their form).
 *
 *     a slot gets another owner       it is marked, `previous` is the owner before
 *     another one, still unsettled    `previous` stays: the oldest one has most to lose, and flows
 *                                     made since then have entries. Only where it is gone, the
 *                                     owner before this change takes its place
 *     it gets its old owner back      the mark stays: flows made in between live elsewhere
 *     a backend leaves the pool       it is nobody's previous owner any more. A slot of its own is
 *                                     as if it had had no owner: its flows are dead with it
 *     a pool loses all its backends   its last owners are remembered
 *     the slot was not used for long  hb_history_settle takes the mark away
 *
 * An owner that has not forwarded a packet yet has no flows, so a slot that it loses is as if it
 * had had no owner. Without this all slots would be unsettled after a start, when one backend is up
 * before the others.
 *
 * Another number of slots. A new slot stands for a piece of the hash's range, which one old slot or
 * several had; it is marked unless all of them were settled and owned by its new owner. `previous`
 * is what the old slot in the middle of the piece says. With a larger table nearly every piece lies
 * within one old slot, and no flow is lost; with a smaller one flows on the other old slots depend
 * on their entries. Another seed moves every flow to another slot, so nothing is remembered.
 *
 * Pure. One thread.
 */
#ifndef HB_CONTROL_SLOT_HISTORY_H
#define HB_CONTROL_SLOT_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "halbach/generation.h"

/* Zero it: nothing is known. */
struct hb_slot_history {
    uint32_t slots;
    uint64_t seed;       /* of the pool's tables */
    uint16_t *owner;     /* the last ones; HB_BACKEND_NONE: not known, or gone */
    uint16_t *previous;  /* NULL when all slots have settled */
    uint64_t *unsettled; /* the same */
    uint32_t unsettled_count;
    bool changed; /* set by every change, cleared by whoever keeps it (slot_files.h) */
};

void hb_history_clear(struct hb_slot_history *history);

/* The next table: `owner` (malloc) has `slots` ids, none HB_BACKEND_NONE, and is the history's from
 * here on. `unused` (by id; NULL: nobody) says who has no flows. -ENOMEM: nothing has changed, and
 * it is still the caller's. */
int hb_history_follow(struct hb_slot_history *history, uint16_t *owner, uint32_t slots,
                      uint64_t seed, const bool *unused);

/* Ids have other meanings: `id_of` (HB_BACKENDS_MAX + 1 entries) has the new one by the old one,
 * HB_BACKEND_NONE for those that are gone. */
void hb_history_renumber(struct hb_slot_history *history, const uint16_t *id_of);

/* Takes the marks away whose bits are set: bit 0 of bits[0] is for slot `first`, a multiple of 64;
 * `count` slots. Returns how many there were. */
uint32_t hb_history_settle(struct hb_slot_history *history, const uint64_t *bits, uint32_t first,
                           uint32_t count);

/* The columns as a table carries them. */
struct hb_table_columns hb_history_columns(const struct hb_slot_history *history);

/* Replaces a history by columns from elsewhere (copied), which say what they like: marks without
 * sense are put right. -ENOMEM: nothing has changed. */
int hb_history_load(struct hb_slot_history *history, const struct hb_table_columns *columns,
                    uint32_t slots, uint64_t seed);

#endif
