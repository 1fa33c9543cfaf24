/* SPDX-License-Identifier: BSD-3-Clause */
/* Who owned a slot before: by hand on 7 slots, then against a reference that keeps every flow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "slot_history.h"

#define SLOTS 7
#define SEED  9

/* By id: who has no flows; NULL unless a test is about it. */
static const bool *unused;

static void follow(struct hb_slot_history *history, const uint16_t *owner, uint32_t slots,
                   uint64_t seed)
{
    uint16_t *copy = malloc(slots * sizeof(*copy));

    memcpy(copy, owner, slots * sizeof(*copy));
    assert_int_equal(hb_history_follow(history, copy, slots, seed, unused), 0);
    assert_memory_equal(history->owner, owner, slots * sizeof(*owner));
}
#define FOLLOW(history, ...) follow(history, (const uint16_t[]){__VA_ARGS__}, SLOTS, SEED)

/* "1", "-" for a slot that is marked without a previous owner, "." for a settled one. */
static void assert_past(const struct hb_slot_history *history, const char *text)
{
    struct hb_table_columns column = hb_history_columns(history);
    uint32_t marked = 0;

    for (uint32_t slot = 0; slot < history->slots; slot++) {
        char is = '.';

        if (column.unsettled != NULL && hb_slot_is_unsettled(column.unsettled, slot)) {
            marked++;
            is = column.previous[slot] != 0 ? (char)('0' + column.previous[slot]) : '-';
        }
        if (is != text[slot])
            fail_msg("slot %u is '%c' instead of '%c' in %s", slot, is, text[slot], text);
    }
    assert_int_equal(history->unsettled_count, marked);
    assert_int_equal(column.unsettled != NULL, marked > 0);
    assert_int_equal(column.previous != NULL, marked > 0);
}

static void settle(struct hb_slot_history *history, uint64_t bits, uint32_t expected)
{
    assert_int_equal(hb_history_settle(history, &bits, 0, SLOTS), expected);
}

static void by_hand(void **state)
{
    struct hb_slot_history history = {0};

    (void)state;
    FOLLOW(&history, 1, 2, 3, 1, 2, 3, 1);
    assert_past(&history, "......."); /* nobody had them before */
    FOLLOW(&history, 1, 2, 1, 1, 2, 2, 1);
    assert_past(&history, "..3..3.");
    history.changed = false;
    FOLLOW(&history, 1, 2, 1, 1, 2, 2, 1); /* the same again is no change */
    assert_false(history.changed);
    assert_past(&history, "..3..3.");
    FOLLOW(&history, 1, 2, 2, 1, 1, 2, 1); /* the oldest stays */
    assert_past(&history, "..3.23.");
    FOLLOW(&history, 1, 2, 3, 1, 2, 3, 1); /* undrained: equal again, and marked */
    assert_past(&history, "..3.23.");
    settle(&history, 0x04, 1);
    assert_past(&history, "....23.");
    settle(&history, 0x07, 0); /* not marked any more, or never */
    settle(&history, 0x7f, 2);
    assert_past(&history, ".......");
    FOLLOW(&history, 1, 2, 2, 1, 2, 3, 1);
    assert_past(&history, "..3....");
    hb_history_clear(&history);
}

static void a_backend_that_left_is_nobodys_past(void **state)
{
    struct hb_slot_history history = {0};
    uint16_t *id_of = calloc(HB_BACKENDS_MAX + 1, sizeof(*id_of));

    (void)state;
    id_of[1] = 1, id_of[2] = 2, id_of[4] = 4; /* 3 is gone */
    FOLLOW(&history, 1, 2, 3, 1, 3, 2, 1);
    FOLLOW(&history, 1, 2, 3, 1, 2, 3, 2);
    assert_past(&history, "....321");
    hb_history_renumber(&history, id_of);
    assert_past(&history, "....-21"); /* marked yet: flows made since may live elsewhere */
    FOLLOW(&history, 1, 2, 1, 1, 2, 2, 2);
    assert_past(&history, "....-21"); /* slot 2 was of nobody who lives */
    FOLLOW(&history, 4, 2, 1, 1, 4, 2, 2);
    assert_past(&history, "1...221"); /* slot 4: the next one that can have flows */
    free(id_of);
    hb_history_clear(&history);
}

static void other_ids_are_the_same_past(void **state)
{
    struct hb_slot_history history = {0};
    uint16_t *id_of = calloc(HB_BACKENDS_MAX + 1, sizeof(*id_of));

    (void)state;
    id_of[1] = 2, id_of[2] = 1, id_of[3] = 9;
    FOLLOW(&history, 1, 2, 3, 1, 3, 2, 1);
    FOLLOW(&history, 1, 2, 3, 3, 3, 2, 2);
    hb_history_renumber(&history, id_of);
    assert_past(&history, "...2..2");
    FOLLOW(&history, 2, 1, 9, 9, 9, 1, 1);
    assert_past(&history, "...2..2");
    free(id_of);
    hb_history_clear(&history);
}

/* Who has not forwarded anything yet leaves no past, in a table of any size. */
static void who_has_no_flows_leaves_no_past(void **state)
{
    static bool idle[HB_BACKENDS_MAX + 1] = {[1] = true, [3] = true};
    struct hb_slot_history history = {0};

    (void)state;
    unused = idle;
    FOLLOW(&history, 1, 1, 2, 1, 1, 1, 1); /* 1 is up first */
    FOLLOW(&history, 1, 3, 3, 3, 2, 1, 2);
    assert_past(&history, "..2....");
    idle[1] = false;
    FOLLOW(&history, 2, 2, 2, 2, 2, 2, 2);
    assert_past(&history, "1.2..1.");
    follow(&history, (const uint16_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3}, 14, SEED);
    assert_int_equal(history.unsettled_count, 14);
    idle[2] = true;
    follow(&history, (const uint16_t[]){2, 2, 2, 2, 2, 2, 2}, 7, SEED + 1);
    follow(&history, (const uint16_t[]){1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3}, 14, SEED + 1);
    assert_int_equal(history.unsettled_count, 0);
    unused = NULL;
    hb_history_clear(&history);
}

static void another_seed_has_no_past(void **state)
{
    struct hb_slot_history history = {0};

    (void)state;
    FOLLOW(&history, 1, 2, 3, 1, 3, 2, 1);
    FOLLOW(&history, 1, 2, 3, 3, 3, 2, 2);
    follow(&history, (const uint16_t[]){3, 2, 1, 1, 1, 1, 1}, SLOTS, SEED + 1);
    assert_past(&history, ".......");
    hb_history_clear(&history);
}

/* 7 slots become 14: each half has its slot's past. Then 7 again: marks stay where they were. */
static void twice_as_many_slots(void **state)
{
    struct hb_slot_history history = {0};

    (void)state;
    FOLLOW(&history, 1, 2, 3, 1, 2, 3, 1);
    FOLLOW(&history, 1, 2, 3, 2, 2, 3, 1);
    assert_past(&history, "...1...");
    follow(&history, (const uint16_t[]){1, 1, 2, 1, 3, 3, 2, 2, 2, 2, 3, 3, 1, 3}, 14, SEED);
    assert_past(&history, "...2..11.....1");
    FOLLOW(&history, 1, 2, 3, 2, 2, 3, 1);
    assert_past(&history, ".2.1..1");
    hb_history_clear(&history);
}

/* Any sizes, any owners: where the whole piece of a new slot was settled and of one owner, its past
 * says so exactly. */
static void any_sizes(void **state)
{
    static const uint32_t sizes[] = {7, 11, 13, 101, 251, 1021};

    (void)state;
    srand(3);
    for (int round = 0; round < 200; round++) {
        struct hb_slot_history history = {0};
        uint32_t from = sizes[rand() % 6], to = sizes[rand() % 6];
        uint16_t before[1021], after[1021];

        for (uint32_t slot = 0; slot < 1021; slot++) {
            before[slot] = (uint16_t)(1 + rand() % 3);
            after[slot] = (uint16_t)(1 + rand() % 3);
        }
        follow(&history, before, from, SEED);
        follow(&history, after, to, SEED);
        for (uint32_t hash = 0; hash < 0xff000000; hash += 0x00fedcba) {
            uint32_t old = (uint32_t)((uint64_t)hash * from >> 32);
            uint32_t now = (uint32_t)((uint64_t)hash * to >> 32);
            bool marked = history.unsettled != NULL && hb_slot_is_unsettled(history.unsettled, now);

            /* A flow whose owner changed is on a marked slot, always. */
            if (before[old] != after[now])
                assert_true(marked);
            if (marked)
                assert_int_not_equal(history.previous[now], HB_BACKEND_NONE);
            if (marked && from == to)
                assert_int_equal(history.previous[now], before[old]);
        }
        hb_history_clear(&history);
    }
}

static void what_is_loaded_is_put_right(void **state)
{
    struct hb_slot_history history = {0}, empty = {0};
    uint16_t owner[SLOTS] = {1, 2, 3, 1, 2, 3, 1}, previous[SLOTS] = {4, 0, 4, 4, 0, 0, 4};
    uint64_t unsettled = 0xffffffffffffff06;
    struct hb_table_columns column = {owner, previous, &unsettled}, plain = {.owner = owner};

    (void)state;
    assert_int_equal(hb_history_load(&history, &column, SLOTS, SEED), 0);
    assert_past(&history, ".-4....");
    assert_int_equal(hb_history_load(&history, &plain, SLOTS, SEED), 0);
    assert_past(&history, ".......");
    assert_memory_equal(history.owner, owner, sizeof(owner));
    hb_history_clear(&history);
    hb_history_clear(&empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(a_backend_that_left_is_nobodys_past),
        cmocka_unit_test(other_ids_are_the_same_past),
        cmocka_unit_test(who_has_no_flows_leaves_no_past),
        cmocka_unit_test(another_seed_has_no_past),
        cmocka_unit_test(twice_as_many_slots),
        cmocka_unit_test(any_sizes),
        cmocka_unit_test(what_is_loaded_is_put_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
