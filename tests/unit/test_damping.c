/* SPDX-License-Identifier: BSD-3-Clause */
/* test_damping.c: penalties by hand, then a long life of one backend. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "health/damping.h"

#define MINUTE 60000

/* The preset: half-life 1 min, held at 3, back below 1, for 5 min at most. */
static const struct hb_damping_config preset = {
    .enabled = true,
    .half_life_ms = MINUTE,
    .suppress = 3 * 1024,
    .reuse = 1024,
    .max_hold_ms = 5 * MINUTE,
};

static void test_by_hand(void **state)
{
    struct hb_damping damping = {0};

    (void)state;
    hb_damping_fall(&damping, &preset, 1000);
    assert_float_equal(hb_damping_penalty(&damping, &preset, 1000), 1, 1e-9);
    assert_float_equal(hb_damping_penalty(&damping, &preset, 1000 + MINUTE), 0.5, 1e-9);
    assert_float_equal(hb_damping_penalty(&damping, &preset, 1000 + 3 * MINUTE), 0.125, 1e-9);
    hb_damping_fall(&damping, &preset, 1000 + MINUTE);
    assert_float_equal(hb_damping_penalty(&damping, &preset, 1000 + MINUTE), 1.5, 1e-9);
    assert_false(hb_damping_holds(&damping, &preset, 1000 + MINUTE));
}

/* 3 falls at one moment: held until 3 has become 1, which takes log2(3) half-lives. */
static void test_held_until_below_reuse(void **state)
{
    struct hb_damping damping = {0};
    uint64_t left_ms;

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_false(hb_damping_holds(&damping, &preset, 0));
        hb_damping_fall(&damping, &preset, 0);
    }
    left_ms = hb_damping_left_ms(&damping, &preset, 0);
    assert_int_equal(left_ms, 95097); /* 60000 * 1.58496 */
    assert_true(hb_damping_holds(&damping, &preset, left_ms - 1));
    assert_false(hb_damping_holds(&damping, &preset, left_ms + 2));
    assert_int_equal(hb_damping_left_ms(&damping, &preset, left_ms + 2), 0);
    /* What it owes yet counts when it falls again, but it is not held before it is at 3. */
    hb_damping_fall(&damping, &preset, left_ms + 2);
    assert_false(hb_damping_holds(&damping, &preset, left_ms + 2));
    hb_damping_fall(&damping, &preset, left_ms + 2);
    assert_false(hb_damping_holds(&damping, &preset, left_ms + 2));
    hb_damping_fall(&damping, &preset, left_ms + 2);
    assert_true(hb_damping_holds(&damping, &preset, left_ms + 2));
}

static void test_never_longer_than_max_hold(void **state)
{
    struct hb_damping damping = {0};

    (void)state;
    for (uint64_t now_ms = 0; now_ms < 100 * MINUTE; now_ms += 500) {
        hb_damping_fall(&damping, &preset, now_ms);
        assert_in_range(hb_damping_left_ms(&damping, &preset, now_ms), 0, 5 * MINUTE);
    }
    assert_in_range(hb_damping_left_ms(&damping, &preset, 100 * MINUTE - 500), 5 * MINUTE - 1,
                    5 * MINUTE);
}

/* Restarts for an update, a crash a day: nobody is held for that. */
static void test_mild(void **state)
{
    struct hb_damping damping = {0};

    (void)state;
    for (uint64_t now_ms = 0; now_ms < UINT64_C(10000) * MINUTE; now_ms += MINUTE) {
        hb_damping_fall(&damping, &preset, now_ms);
        assert_false(hb_damping_holds(&damping, &preset, now_ms));
    }
}

static void test_off(void **state)
{
    struct hb_damping_config off = preset;
    struct hb_damping damping = {0};

    (void)state;
    off.enabled = false;
    for (int i = 0; i < 100; i++)
        hb_damping_fall(&damping, &off, 0);
    assert_false(hb_damping_holds(&damping, &off, 0));
    /* Turned off while a backend is held: it is free at once. */
    for (int i = 0; i < 3; i++)
        hb_damping_fall(&damping, &preset, 0);
    assert_true(hb_damping_holds(&damping, &preset, 0));
    assert_false(hb_damping_holds(&damping, &off, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_held_until_below_reuse),
        cmocka_unit_test(test_never_longer_than_max_hold),
        cmocka_unit_test(test_mild),
        cmocka_unit_test(test_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
