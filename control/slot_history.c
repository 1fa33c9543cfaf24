/* SPDX-License-Identifier: BSD-3-Clause */
#include "slot_history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void hb_history_clear(struct hb_slot_history *history)
{
    free(history->owner);
    free(history->previous);
    free(history->unsettled);
    memset(history, 0, sizeof(*history));
}

/* The columns of a history that has none yet. */
static bool make_columns(struct hb_slot_history *history)
{
    if (history->previous != NULL)
        return true;
    history->previous = calloc(history->slots, sizeof(*history->previous));
    history->unsettled = calloc(1, hb_table_unsettled_bytes(history->slots));
    if (history->previous != NULL && history->unsettled != NULL)
        return true;
    free(history->previous);
    free(history->unsettled);
    history->previous = NULL;
    history->unsettled = NULL;
    return false;
}

static void drop_columns_when_settled(struct hb_slot_history *history)
{
    if (history->unsettled_count > 0)
        return;
    free(history->previous);
    free(history->unsettled);
    history->previous = NULL;
    history->unsettled = NULL;
}

static bool is_marked(const struct hb_slot_history *history, uint32_t slot)
{
    return history->unsettled != NULL && hb_slot_is_unsettled(history->unsettled, slot);
}

static void mark(struct hb_slot_history *history, uint32_t slot, uint16_t previous)
{
    history->unsettled_count += !hb_slot_is_unsettled(history->unsettled, slot);
    history->unsettled[slot / 64] |= UINT64_C(1) << slot % 64;
    history->previous[slot] = previous;
}

/* Who the flows of a slot without an entry belong to, until now. */
static uint16_t claimant(const struct hb_slot_history *history, uint32_t slot, const bool *unused)
{
    if (is_marked(history, slot) && history->previous[slot] != HB_BACKEND_NONE)
        return history->previous[slot];
    return unused != NULL && unused[history->owner[slot]] ? HB_BACKEND_NONE : history->owner[slot];
}

static int follow_same_size(struct hb_slot_history *history, uint16_t *owner, const bool *unused)
{
    bool any = false;

    for (uint32_t slot = 0; slot < history->slots && !any; slot++)
        any = history->owner[slot] != owner[slot];
    if (any && !make_columns(history))
        return -ENOMEM;
    for (uint32_t slot = 0; any && slot < history->slots; slot++) {
        uint16_t old = claimant(history, slot, unused);

        if (history->owner[slot] != owner[slot] &&
            (old != HB_BACKEND_NONE || is_marked(history, slot)))
            mark(history, slot, old);
    }
    if (any)
        drop_columns_when_settled(history);
    history->changed = history->changed || any;
    free(history->owner);
    history->owner = owner;
    return 0;
}

/* What the old table says of one slot of the new one: marked or not, and the previous owner. */
static bool look_back(const struct hb_slot_history *old, uint32_t slot, uint32_t slots,
                      uint16_t owner, const bool *unused, uint16_t *previous)
{
    /* The hashes (upper halves) that fall on it: hb_slot_of() rounds down, so this rounds up. */
    uint64_t begin = (((uint64_t)slot << 32) + slots - 1) / slots;
    uint64_t end = ((((uint64_t)slot + 1) << 32) + slots - 1) / slots;
    uint32_t first = (uint32_t)(begin * old->slots >> 32);
    uint32_t last = (uint32_t)((end - 1) * old->slots >> 32);
    uint32_t middle = (uint32_t)((begin + (end - begin) / 2) * old->slots >> 32);
    bool same = true, known = false;

    for (uint32_t s = first; s <= last; s++) {
        same = same && old->owner[s] == owner && !is_marked(old, s);
        known = known || claimant(old, s, unused) != HB_BACKEND_NONE || is_marked(old, s);
    }
    *previous = claimant(old, middle, unused);
    return known && !same;
}

static int follow_other_size(struct hb_slot_history *history, uint16_t *owner, uint32_t slots,
                             uint64_t seed, const bool *unused)
{
    struct hb_slot_history next = {.slots = slots, .seed = seed, .owner = owner, .changed = true};

    if (!make_columns(&next))
        return -ENOMEM;
    for (uint32_t slot = 0; history->owner != NULL && slot < slots; slot++) {
        uint16_t previous;

        if (look_back(history, slot, slots, owner[slot], unused, &previous))
            mark(&next, slot, previous);
    }
    drop_columns_when_settled(&next);
    hb_history_clear(history);
    *history = next;
    return 0;
}

int hb_history_follow(struct hb_slot_history *history, uint16_t *owner, uint32_t slots,
                      uint64_t seed, const bool *unused)
{
    if (history->seed != seed && history->slots > 0)
        hb_history_clear(history);
    if (history->slots == slots)
        return follow_same_size(history, owner, unused);
    return follow_other_size(history, owner, slots, seed, unused);
}

void hb_history_renumber(struct hb_slot_history *history, const uint16_t *id_of)
{
    for (uint32_t slot = 0; slot < history->slots; slot++) {
        history->owner[slot] = id_of[history->owner[slot]];
        if (history->previous != NULL)
            history->previous[slot] = id_of[history->previous[slot]];
    }
    history->changed = true;
}

uint32_t hb_history_settle(struct hb_slot_history *history, const uint64_t *bits, uint32_t first,
                           uint32_t count)
{
    uint32_t settled = 0;

    for (uint32_t i = 0; i < count && first + i < history->slots; i++) {
        uint32_t slot = first + i;

        if (!hb_slot_is_unsettled(bits, i) || !is_marked(history, slot))
            continue;
        history->unsettled[slot / 64] &= ~(UINT64_C(1) << slot % 64);
        history->previous[slot] = HB_BACKEND_NONE;
        settled++;
    }
    history->unsettled_count -= settled;
    history->changed = history->changed || settled > 0;
    drop_columns_when_settled(history);
    return settled;
}

struct hb_table_columns hb_history_columns(const struct hb_slot_history *history)
{
    return (struct hb_table_columns){history->owner, history->previous, history->unsettled};
}

int hb_history_load(struct hb_slot_history *history, const struct hb_table_columns *columns,
                    uint32_t slots, uint64_t seed)
{
    struct hb_slot_history next = {.slots = slots, .seed = seed, .changed = true};

    next.owner = malloc(slots * sizeof(*next.owner));
    if (next.owner == NULL || !make_columns(&next)) {
        hb_history_clear(&next);
        return -ENOMEM;
    }
    memcpy(next.owner, columns->owner, slots * sizeof(*next.owner));
    for (uint32_t slot = 0; columns->unsettled != NULL && slot < slots; slot++)
        if (hb_slot_is_unsettled(columns->unsettled, slot))
            mark(&next, slot, columns->previous[slot]);
    drop_columns_when_settled(&next);
    hb_history_clear(history);
    *history = next;
    return 0;
}
