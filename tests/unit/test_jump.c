/* SPDX-License-Identifier: BSD-3-Clause */
/* Jump hashing: its own property, the numbering of buckets, and buckets that have nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "hashing/jump.h"
#include "table_fixture.h"

#define CASES 300
#define SLOTS 1021

static struct hb_table_request ask_for(const struct pool *pool, bool replacement, uint64_t seed)
{
    return (struct hb_table_request){.members = pool->members,
                                     .count = pool->count,
                                     .slots = SLOTS,
                                     .seed = seed,
                                     .options = {.jump_replacement = replacement}};
}

/* A bucket more takes keys and moves none between the others, for any number of them. */
static void test_only_the_new_bucket_takes(void **state)
{
    uint64_t random = 41;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint64_t key = (uint64_t)next_random(&random) << 32 | next_random(&random);
        uint32_t buckets = 1 + next_random(&random) % (i % 2 ? 20 : 100000);
        uint32_t before = hb_jump_bucket(key, buckets), after = hb_jump_bucket(key, buckets + 1);

        assert_true(before < buckets);
        assert_true(after == before || after == buckets);
    }
    assert_true(hb_jump_bucket(UINT64_C(123456789), INT32_MAX) < INT32_MAX);
}

/* The buckets decide, not the identities or the order. */
static void test_order_is_in_the_buckets(void **state)
{
    struct pool pool = make_pool(8);
    struct hb_table_request request = ask_for(&pool, false, 7);
    uint16_t before[SLOTS], after[SLOTS];

    (void)state;
    assert_int_equal(hb_jump.build(&request, before), HB_TABLE_OK);
    for (uint32_t i = 0; i < 8; i++)
        pool.members[i].bucket = 7 - i;
    assert_int_equal(hb_jump.build(&request, after), HB_TABLE_OK);
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        assert_int_equal(after[slot], 9 - before[slot]); /* ids are 1 to 8 */
    free_pool(&pool);
}

static void test_refusals(void **state)
{
    struct pool pool = make_pool(5);
    struct hb_table_request strict = ask_for(&pool, false, 7), loose = ask_for(&pool, true, 7);
    uint16_t owner[SLOTS];

    (void)state;
    pool.members[2].bucket = 4; /* twice */
    assert_int_equal(hb_jump.build(&strict, owner), HB_TABLE_BUCKETS);
    assert_int_equal(hb_jump.build(&loose, owner), HB_TABLE_BUCKETS);
    pool.members[2].bucket = 5; /* nobody has 2 */
    assert_int_equal(hb_jump.build(&strict, owner), HB_TABLE_BUCKET_EMPTY);
    assert_int_equal(hb_jump.build(&loose, owner), HB_TABLE_OK);
    pool.members[2].bucket = HB_JUMP_BUCKETS_MAX - 1; /* nearly everybody is missing */
    assert_int_equal(hb_jump.build(&loose, owner), HB_TABLE_OK);
    pool.members[2].bucket = HB_JUMP_BUCKETS_MAX;
    assert_int_equal(hb_jump.build(&strict, owner), HB_TABLE_BUCKETS);
    assert_int_equal(hb_jump.build(&loose, owner), HB_TABLE_BUCKETS);
    pool.members[2].bucket = UINT32_MAX; /* as without the key */
    assert_int_equal(hb_jump.build(&loose, owner), HB_TABLE_BUCKETS);
    pool.members[2].bucket = 2;
    pool.members[3].weight = 2;
    assert_int_equal(hb_jump.build(&strict, owner), HB_TABLE_WEIGHTS_DIFFER);
    assert_int_equal(hb_jump.build(&loose, owner), HB_TABLE_WEIGHTS_DIFFER);
    pool.members[3].weight = 0; /* in the middle */
    assert_int_equal(hb_jump.build(&strict, owner), HB_TABLE_BUCKET_EMPTY);
    assert_int_equal(hb_jump.build(&loose, owner), HB_TABLE_OK);
    for (int i = 0; i < 5; i++)
        pool.members[i].weight = 0;
    assert_int_equal(hb_jump.build(&loose, owner), HB_TABLE_NO_MEMBERS);
    free_pool(&pool);
}

/* Without replacement the last ones may go, and that is as if they had never been there. */
static void test_the_last_may_go(void **state)
{
    struct pool pool = make_pool(8);
    struct hb_table_request request = ask_for(&pool, false, 7);
    uint16_t all[SLOTS], listed[SLOTS], fewer[SLOTS];

    (void)state;
    assert_int_equal(hb_jump.build(&request, all), HB_TABLE_OK);
    pool.members[7].weight = pool.members[6].weight = 0;
    assert_int_equal(hb_jump.build(&request, listed), HB_TABLE_OK);
    request.count = 6;
    assert_int_equal(hb_jump.build(&request, fewer), HB_TABLE_OK);
    assert_memory_equal(listed, fewer, sizeof(fewer));
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        assert_true(fewer[slot] == all[slot] || all[slot] > 6);
    free_pool(&pool);
}

/* Counts and checks a change in which only slots of `changed` may move. */
static void assert_moves_only(const uint16_t *before, const uint16_t *after, uint16_t changed)
{
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        assert_true(before[slot] == after[slot] || before[slot] == changed ||
                    after[slot] == changed);
}

/* With replacement backends go and come in any order: each change moves the slots of that one only,
 * and when all are back the table is the one from the beginning. */
static void test_replacement(void **state)
{
    uint64_t random = 42;

    (void)state;
    for (int round = 0; round < CASES; round++) {
        struct pool pool = make_pool(2 + next_random(&random) % 40);
        struct hb_table_request request = ask_for(&pool, true, next_random(&random));
        uint16_t first[SLOTS], before[SLOTS], after[SLOTS];
        uint32_t usable = pool.count;

        assert_int_equal(hb_jump.build(&request, first), HB_TABLE_OK);
        memcpy(before, first, sizeof(before));
        for (int change = 0; change < 30; change++) {
            struct hb_table_member *changed = &pool.members[next_random(&random) % pool.count];

            if (changed->weight == 1 && usable == 1)
                continue;
            changed->weight ^= 1;
            usable += changed->weight == 1 ? 1 : UINT32_MAX;
            assert_int_equal(hb_jump.build(&request, after), HB_TABLE_OK);
            assert_moves_only(before, after, changed->id);
            memcpy(before, after, sizeof(before));
        }
        for (uint32_t i = 0; i < pool.count; i++)
            pool.members[i].weight = 1;
        assert_int_equal(hb_jump.build(&request, after), HB_TABLE_OK);
        assert_memory_equal(after, first, sizeof(first));
        free_pool(&pool);
    }
}

/* Growing while some are missing moves slots to the new one only. */
static void test_grow_while_some_are_missing(void **state)
{
    uint64_t random = 43;

    (void)state;
    for (int round = 0; round < CASES; round++) {
        struct pool pool = make_pool(3 + next_random(&random) % 40);
        struct hb_table_request request = ask_for(&pool, true, next_random(&random));
        uint16_t before[SLOTS], after[SLOTS];

        for (uint32_t i = 1; i < pool.count - 1; i++)
            pool.members[i].weight = next_random(&random) % 3 == 0;
        request.count = pool.count - 1;
        assert_int_equal(hb_jump.build(&request, before), HB_TABLE_OK);
        request.count = pool.count;
        assert_int_equal(hb_jump.build(&request, after), HB_TABLE_OK);
        for (uint32_t slot = 0; slot < SLOTS; slot++)
            assert_true(after[slot] == before[slot] || after[slot] == pool.count);
        free_pool(&pool);
    }
}

/* What is handed on spreads over all others. */
static void test_heirs_are_even(void **state)
{
    struct pool pool = make_pool(11);
    struct hb_table_request request = ask_for(&pool, true, 7);
    uint16_t *owner = make_table(65537);
    uint32_t slots[12] = {0};

    (void)state;
    request.slots = 65537;
    pool.members[4].weight = 0;
    assert_int_equal(hb_jump.build(&request, owner), HB_TABLE_OK);
    for (uint32_t slot = 0; slot < 65537; slot++)
        slots[owner[slot]]++;
    assert_int_equal(slots[5], 0);
    for (uint32_t id = 1; id <= 11; id++) {
        if (id != 5)
            assert_in_range(slots[id], 6100, 7010); /* 6,554 and six standard deviations */
    }
    free(owner);
    free_pool(&pool);
}

/* The ranking is who owns when those before are gone, also where nearly all buckets are empty. */
static void test_rank(void **state)
{
    uint64_t random = 44;

    (void)state;
    for (int round = 0; round < CASES; round++) {
        struct pool pool = make_pool(1 + next_random(&random) % 20);
        struct hb_table_request request = ask_for(&pool, true, 0);
        uint64_t key = (uint64_t)next_random(&random) << 32 | next_random(&random);
        uint32_t spread = round % 3 == 0 ? 3000 : 1 + round % 3, ranked[20], found;
        struct hb_jump_map map;

        for (uint32_t i = 0; i < pool.count; i++)
            pool.members[i].bucket = i * spread;
        assert_int_equal(hb_jump_make(&request, &map), HB_TABLE_OK);
        found = hb_jump_rank(&map, key, ranked);
        hb_jump_free(&map);
        assert_int_equal(found, pool.count);
        for (uint32_t i = 0; i < found; i++) {
            assert_int_equal(hb_jump_make(&request, &map), HB_TABLE_OK);
            assert_int_equal(hb_jump_owner(&map, key), ranked[i]);
            assert_int_equal(pool.members[ranked[i]].weight, 1);
            pool.members[ranked[i]].weight = 0;
            hb_jump_free(&map);
        }
        free_pool(&pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_the_new_bucket_takes),
        cmocka_unit_test(test_order_is_in_the_buckets),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_the_last_may_go),
        cmocka_unit_test(test_replacement),
        cmocka_unit_test(test_grow_while_some_are_missing),
        cmocka_unit_test(test_heirs_are_even),
        cmocka_unit_test(test_rank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
