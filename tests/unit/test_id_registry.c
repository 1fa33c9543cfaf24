/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "id_registry.h"

static void test_lowest_free_id_and_kept(void **state)
{
    struct hb_id_registry *ids = hb_ids_new(1, 3);

    (void)state;
    assert_int_equal(hb_ids_claim(ids, "a", NULL, NULL), 1);
    assert_int_equal(hb_ids_claim(ids, "b", NULL, NULL), 2);
    assert_int_equal(hb_ids_claim(ids, "a", NULL, NULL), 1);
    assert_int_equal(hb_ids_incarnation(ids, 1), 1);
    assert_int_equal(hb_ids_claim(ids, "c", NULL, NULL), 3);
    assert_int_equal(hb_ids_claim(ids, "d", NULL, NULL), HB_ID_NONE);
    assert_int_equal(hb_ids_find(ids, "d"), HB_ID_NONE);
    assert_int_equal(hb_ids_used(ids), 3);
    hb_ids_free(ids);
}

static void test_reuse_raises_the_incarnation(void **state)
{
    struct hb_id_registry *ids = hb_ids_new(1, 10);

    (void)state;
    hb_ids_claim(ids, "a", NULL, NULL);
    hb_ids_claim(ids, "b", NULL, NULL);
    hb_ids_release(ids, "a");
    assert_int_equal(hb_ids_find(ids, "a"), HB_ID_NONE);
    assert_int_equal(hb_ids_claim(ids, "c", NULL, NULL), 1);
    assert_int_equal(hb_ids_incarnation(ids, 1), 2);
    assert_int_equal(hb_ids_incarnation(ids, 2), 1);
    hb_ids_free(ids);
}

static bool is_not_quarantined(void *context, uint32_t id, uint32_t incarnation)
{
    (void)incarnation;
    return id != *(uint32_t *)context;
}

static void test_quarantine(void **state)
{
    struct hb_id_registry *ids = hb_ids_new(1, 10);
    uint32_t quarantined = 1;

    (void)state;
    hb_ids_claim(ids, "a", NULL, NULL);
    hb_ids_release(ids, "a");
    assert_int_equal(hb_ids_claim(ids, "b", is_not_quarantined, &quarantined), 2);
    quarantined = 0;
    assert_int_equal(hb_ids_claim(ids, "c", is_not_quarantined, &quarantined), 1);
    assert_int_equal(hb_ids_incarnation(ids, 1), 2);
    hb_ids_free(ids);
}

/* BL-85 */
static void test_many_cycles_end_where_they_began(void **state)
{
    struct hb_id_registry *ids = hb_ids_new(1, 8);
    char key[16];

    (void)state;
    for (int i = 0; i < 7; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        hb_ids_claim(ids, key, NULL, NULL);
    }
    for (int i = 0; i < 100000; i++) {
        assert_int_equal(hb_ids_claim(ids, "cycled", NULL, NULL), 8);
        assert_int_equal(hb_ids_claim(ids, "ninth", NULL, NULL), HB_ID_NONE);
        hb_ids_release(ids, "cycled");
    }
    assert_int_equal(hb_ids_used(ids), 7);
    assert_int_equal(hb_ids_incarnation(ids, 8), 100000);
    hb_ids_free(ids);
}

static void test_merge_later_incarnation_wins(void **state)
{
    struct hb_id_registry *ids = hb_ids_new(1, 8);

    (void)state;
    assert_true(hb_ids_merge(ids, 5, 2, "new"));
    assert_false(hb_ids_merge(ids, 5, 1, "old"));
    assert_string_equal(hb_ids_key(ids, 5), "new");
    assert_true(hb_ids_merge(ids, 5, 3, "newest"));
    assert_string_equal(hb_ids_key(ids, 5), "newest");
    assert_int_equal(hb_ids_find(ids, "new"), HB_ID_NONE);
    /* The same incarnation: who speaks last knows better. */
    assert_true(hb_ids_merge(ids, 5, 3, "truth"));
    assert_int_equal(hb_ids_find(ids, "truth"), 5);
    assert_int_equal(hb_ids_used(ids), 1);
    hb_ids_free(ids);
}

static void test_merge_moves_a_key(void **state)
{
    struct hb_id_registry *ids = hb_ids_new(1, 8);

    (void)state;
    hb_ids_claim(ids, "a", NULL, NULL);
    assert_true(hb_ids_merge(ids, 4, 1, "a"));
    assert_int_equal(hb_ids_find(ids, "a"), 4);
    assert_null(hb_ids_key(ids, 1));
    assert_int_equal(hb_ids_used(ids), 1);
    assert_false(hb_ids_merge(ids, 0, 1, "x"));
    assert_false(hb_ids_merge(ids, 9, 1, "x"));
    hb_ids_free(ids);
}

static void test_merge_free_ids(void **state)
{
    struct hb_id_registry *ids = hb_ids_new(1, 8);

    (void)state;
    assert_true(hb_ids_merge(ids, 1, 7, NULL));
    assert_int_equal(hb_ids_claim(ids, "a", NULL, NULL), 1);
    assert_int_equal(hb_ids_incarnation(ids, 1), 8);
    assert_true(hb_ids_merge(ids, 1, 8, NULL));
    assert_int_equal(hb_ids_find(ids, "a"), 1);
    assert_true(hb_ids_merge(ids, 1, 9, NULL));
    assert_int_equal(hb_ids_find(ids, "a"), HB_ID_NONE);
    hb_ids_free(ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lowest_free_id_and_kept),
        cmocka_unit_test(test_reuse_raises_the_incarnation),
        cmocka_unit_test(test_quarantine),
        cmocka_unit_test(test_many_cycles_end_where_they_began),
        cmocka_unit_test(test_merge_later_incarnation_wins),
        cmocka_unit_test(test_merge_moves_a_key),
        cmocka_unit_test(test_merge_free_ids),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
