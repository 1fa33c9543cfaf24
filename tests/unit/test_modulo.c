/* SPDX-License-Identifier: BSD-3-Clause */
/* Modulo: the example of six keys, weights, and how much a change moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "hashing/member_order.h"
#include "hashing/modulo.h"
#include "table_fixture.h"

static struct hb_modulo_map make_map(const struct hb_table_member *members, uint32_t count)
{
    uint32_t *order = calloc(count, sizeof(*order));
    struct hb_modulo_map map;

    assert_int_equal(hb_member_order(members, count, order), HB_TABLE_OK);
    assert_int_equal(hb_modulo_make(members, count, order, &map), HB_TABLE_OK);
    free(order);
    return map;
}

static void test_six_keys(void **state)
{
    static const uint32_t hashes[6] = {5, 20, 38, 50, 77, 95};
    static const uint32_t mod4[6] = {1, 0, 2, 2, 1, 3}, mod5[6] = {0, 0, 3, 0, 2, 0};
    struct pool pool = make_pool(5);
    struct hb_modulo_map four = make_map(pool.members, 4), five = make_map(pool.members, 5);
    int moved = 0;

    (void)state;
    for (int i = 0; i < 6; i++) {
        uint32_t before = hb_modulo_owner(&four, hashes[i]);
        uint32_t after = hb_modulo_owner(&five, hashes[i]);

        assert_int_equal(before, mod4[i]);
        assert_int_equal(after, mod5[i]);
        moved += before != after;
    }
    assert_int_equal(moved, 5);
    hb_modulo_free(&five);
    hb_modulo_free(&four);
    free_pool(&pool);
}

/* Weights are reduced, members stand in the order of their identities, and weight 0 has no rest. */
static void test_weights(void **state)
{
    static const struct hb_table_member members[] = {
        {.identity = "c", .weight = 6},
        {.identity = "a", .weight = 4},
        {.identity = "b", .weight = 0},
        {.identity = "d", .weight = 2},
    };
    static const uint32_t expected[6] = {1, 1, 0, 0, 0, 3};
    struct hb_modulo_map map = make_map(members, 4);

    (void)state;
    assert_int_equal(map.divisor, 6);
    assert_int_equal(map.count, 3);
    for (uint64_t hash = 0; hash < 60; hash++)
        assert_int_equal(hb_modulo_owner(&map, hash), expected[hash % 6]);
    /* 64 bits are used: 2^32 is 4 mod 6. */
    assert_int_equal(hb_modulo_owner(&map, UINT64_C(1) << 32), expected[4]);
    assert_int_equal(hb_modulo_owner(&map, (UINT64_C(1) << 32) + 1), expected[5]);
    hb_modulo_free(&map);
}

static void test_nobody_has_a_weight(void **state)
{
    static const struct hb_table_member members[] = {{.identity = "a"}, {.identity = "b"}};
    static const uint32_t order[] = {0, 1};
    struct hb_modulo_map map;

    (void)state;
    assert_int_equal(hb_modulo_make(members, 2, order, &map), HB_TABLE_NO_MEMBERS);
    assert_int_equal(hb_modulo_make(members, 0, order, &map), HB_TABLE_NO_MEMBERS);
    hb_modulo_free(&map);
}

static void test_largest_sum(void **state)
{
    struct hb_table_member *members = calloc(65535, sizeof(*members));
    char(*names)[8] = calloc(65535, sizeof(*names));
    struct hb_modulo_map map;

    (void)state;
    for (uint32_t i = 0; i < 65535; i++) {
        snprintf(names[i], sizeof(names[i]), "%05u", i);
        members[i] =
            (struct hb_table_member){.identity = names[i], .weight = i == 0 ? 65534 : 65535};
    }
    map = make_map(members, 65535);
    assert_int_equal(map.divisor, UINT32_C(65535) * 65535 - 1);
    assert_int_equal(hb_modulo_owner(&map, 65533), 0);
    assert_int_equal(hb_modulo_owner(&map, 65534), 1);
    assert_int_equal(hb_modulo_owner(&map, map.divisor - 1), 65534);
    hb_modulo_free(&map);
    free(names);
    free(members);
}

/* Growing moves N / (N + 1) of a live table: that is why a pool that uses it is warned. */
static void test_growing_moves_nearly_all(void **state)
{
    struct pool pool = make_pool(5);
    uint16_t *before = make_table(65537), *after = make_table(65537);

    (void)state;
    assert_int_equal(build_table(&hb_modulo, pool.members, 4, 65537, 1, before), HB_TABLE_OK);
    assert_int_equal(build_table(&hb_modulo, pool.members, 5, 65537, 1, after), HB_TABLE_OK);
    assert_in_range(hb_table_compare(before, after, 65537).moved, 51800, 53100); /* 80 % */
    free(after);
    free(before);
    free_pool(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_six_keys),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_nobody_has_a_weight),
        cmocka_unit_test(test_largest_sum),
        cmocka_unit_test(test_growing_moves_nearly_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
