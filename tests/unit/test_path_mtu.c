/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "path_mtu.h"

#define NOW_MS 5000000

static void test_only_smaller_ones_are_learned(void **state)
{
    struct hb_path path = {0};

    (void)state;
    assert_false(hb_path_learn(&path, 9000, 1500, 576, NOW_MS));
    assert_false(hb_path_learn(&path, 1500, 1500, 576, NOW_MS));
    assert_int_equal(path.mtu, 0);
    assert_true(hb_path_learn(&path, 1499, 1500, 576, NOW_MS));
    assert_true(hb_path_learn(&path, 1400, 1499, 576, NOW_MS));
    assert_false(hb_path_learn(&path, 1450, 1400, 576, NOW_MS));
    assert_int_equal(path.mtu, 1400);
}

static void test_the_floor(void **state)
{
    static const uint32_t absurd[] = {0, 1, 67, 68, 575};
    struct hb_path path = {0};

    (void)state;
    for (uint32_t i = 0; i < sizeof(absurd) / sizeof(*absurd); i++)
        assert_false(hb_path_learn(&path, absurd[i], 1500, HB_PATH_FLOOR4, NOW_MS));
    assert_false(hb_path_learn(&path, 1279, 1500, HB_PATH_FLOOR6, NOW_MS));
    assert_int_equal(path.mtu, 0);
    assert_true(hb_path_learn(&path, 1280, 1500, HB_PATH_FLOOR6, NOW_MS));
    assert_true(hb_path_learn(&path, 576, 1280, HB_PATH_FLOOR4, NOW_MS));
}

static void test_it_is_forgotten(void **state)
{
    struct hb_path path = {0};

    (void)state;
    assert_false(hb_path_age(&path, NOW_MS));
    assert_int_equal(hb_path_left_ms(&path, NOW_MS), 0);
    hb_path_learn(&path, 1400, 1500, 576, NOW_MS);
    assert_int_equal(hb_path_left_ms(&path, NOW_MS + 1), HB_PATH_KEEP_MS - 1);
    assert_false(hb_path_age(&path, NOW_MS + HB_PATH_KEEP_MS - 1));
    /* The same once more: it holds on, without a change. */
    assert_false(hb_path_learn(&path, 1400, 1400, 576, NOW_MS + 1000));
    assert_false(hb_path_age(&path, NOW_MS + HB_PATH_KEEP_MS));
    assert_int_equal(path.mtu, 1400);
    assert_true(hb_path_age(&path, NOW_MS + HB_PATH_KEEP_MS + 1000));
    assert_int_equal(path.mtu, 0);
    assert_false(hb_path_age(&path, NOW_MS + HB_PATH_KEEP_MS + 1000));
    assert_false(hb_path_forget(&path));
    hb_path_learn(&path, 1400, 1500, 576, NOW_MS);
    assert_true(hb_path_forget(&path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_smaller_ones_are_learned),
        cmocka_unit_test(test_the_floor),
        cmocka_unit_test(test_it_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
