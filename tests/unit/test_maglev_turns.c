/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of turns against a plain model, and the sorting below it against qsort(). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "hashing/maglev_turns.h"
#include "hashing/member_order.h"
#include "hashing/sort_keys.h"
#include "table_fixture.h"

#define TIERS_MAX 700

struct schedule {
    uint32_t tiers;
    uint32_t weight[TIERS_MAX];
    uint32_t turns[TIERS_MAX];
    uint32_t all;
};

/* The tier whose next turn is due first, n / weight compared as fractions; the lower one if equal.
 */
static uint32_t next_by_model(const struct schedule *s, const uint32_t *taken)
{
    uint32_t next = UINT32_MAX;

    for (uint32_t i = 0; i < s->tiers; i++) {
        if (taken[i] == s->turns[i])
            continue;
        if (next == UINT32_MAX ||
            (uint64_t)taken[i] * s->weight[next] < (uint64_t)taken[next] * s->weight[i])
            next = i;
    }
    return next;
}

static void check(const struct schedule *s)
{
    struct hb_turns *turns = hb_turns_make(s->tiers, s->all);
    uint32_t taken[TIERS_MAX] = {0}, count, seen = 0;
    const uint64_t *due;

    assert_non_null(turns);
    for (uint32_t i = 0; i < s->tiers; i++)
        hb_turns_add(turns, s->weight[i], s->turns[i]);
    while ((count = hb_turns_next(turns, &due)) > 0) {
        for (uint32_t i = 0; i < count; i++) {
            uint32_t expected = next_by_model(s, taken);

            assert_int_equal(hb_turn_tier(due[i]), expected);
            taken[expected]++;
        }
        seen += count;
    }
    assert_int_equal(seen, s->all);
    assert_int_equal(hb_turns_next(turns, &due), 0);
    hb_turns_free(turns);
}

static void add(struct schedule *s, uint32_t weight, uint32_t turns)
{
    s->weight[s->tiers] = weight;
    s->turns[s->tiers++] = turns;
    s->all += turns;
}

static void test_by_hand(void **state)
{
    /* due:                        0  0  1/3 1/2 2/3 1  1 */
    static const uint16_t order[] = {0, 1, 0, 1, 0, 0, 1};
    struct hb_turns *turns = hb_turns_make(2, 7);
    uint32_t count, seen = 0;
    const uint64_t *due;

    (void)state;
    hb_turns_add(turns, 3, 4);
    hb_turns_add(turns, 2, 3);
    while ((count = hb_turns_next(turns, &due)) > 0) {
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(hb_turn_tier(due[i]), order[seen++]);
    }
    assert_int_equal(seen, 7);
    hb_turns_free(turns);
    hb_turns_free(NULL);
}

static void test_equals_the_model(void **state)
{
    uint64_t random = 61;

    (void)state;
    for (int round = 0; round < 200; round++) {
        struct schedule s = {0};
        uint32_t tiers = 1 + next_random(&random) % 40;
        uint32_t largest = round % 3 == 0 ? 65535 : 1 + next_random(&random) % 300;

        for (uint32_t i = 0; i < tiers; i++)
            add(&s, 1 + next_random(&random) % largest, 1 + next_random(&random) % 60);
        check(&s);
    }
}

/* More turns than a window holds, and what is hard for it: one weight far above the rest, weights
 * close together (many turns due at nearly one time), and those in the wrong order. */
static void test_hard_schedules(void **state)
{
    struct schedule one = {0}, few = {0}, close = {0}, wrong = {0}, light = {0}, crossed = {0};

    (void)state;
    add(&one, 1, 30000);
    check(&one);
    add(&few, 65535, 40000);
    add(&few, 2, 2);
    add(&few, 1, 1);
    check(&few);
    for (uint32_t i = 0; i < 600; i++) {
        add(&close, 65535 - i, 40);
        add(&wrong, 64000 + i, 40);
        add(&light, 1, 15);
        add(&crossed, 65534 + i % 2, 20); /* so many insertions that another sort takes over */
    }
    check(&close);
    check(&wrong);
    check(&light);
    check(&crossed);
}

static int compare_keys(const void *left, const void *right)
{
    const struct hb_key *a = left, *b = right;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static void test_sort_keys(void **state)
{
    uint64_t random = 62;

    (void)state;
    for (int round = 0; round < 300; round++) {
        struct hb_key keys[200] = {0}, expected[200], scratch[200];
        uint32_t count = next_random(&random) % 201;
        uint64_t mask = (uint64_t)next_random(&random) << 32 | next_random(&random);

        for (uint32_t i = 0; i < count; i++) {
            uint64_t key = (uint64_t)next_random(&random) << 32 | next_random(&random);

            keys[i] = (struct hb_key){round % 2 ? key & mask & mask >> 7 : key % 50, i};
        }
        memcpy(expected, keys, sizeof(keys));
        qsort(expected, count, sizeof(*expected), compare_keys);
        hb_sort_keys(keys, scratch, count);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(keys[i].key, expected[i].key);
            assert_int_equal(keys[i].index, expected[i].index);
        }
    }
}

/* Names of letters a and b, up to 30 of them: many begin alike, some are the same. */
static void test_member_order(void **state)
{
    uint64_t random = 63;
    int duplicates = 0;

    (void)state;
    for (int round = 0; round < 500; round++) {
        struct hb_table_member members[60];
        uint32_t order[60], count = 1 + next_random(&random) % 60;
        char names[60][32];
        bool same = false;
        enum hb_table_error error;

        for (uint32_t i = 0; i < count; i++) {
            uint32_t length = next_random(&random) % 31, alike = next_random(&random) % 28;

            for (uint32_t n = 0; n < length; n++)
                names[i][n] = n < alike || next_random(&random) % 2 ? 'a' : '\xff';
            names[i][length] = '\0';
            members[i] = (struct hb_table_member){.identity = names[i], .weight = 1};
        }
        error = hb_member_order(members, count, order);
        for (uint32_t i = 1; i < count; i++) {
            int compared = strcmp(names[order[i - 1]], names[order[i]]);

            assert_true(compared <= 0);
            same |= compared == 0;
        }
        assert_int_equal(error, same ? HB_TABLE_DUPLICATE : HB_TABLE_OK);
        duplicates += same;
    }
    assert_in_range(duplicates, 50, 450);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),        cmocka_unit_test(test_equals_the_model),
        cmocka_unit_test(test_hard_schedules), cmocka_unit_test(test_sort_keys),
        cmocka_unit_test(test_member_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
