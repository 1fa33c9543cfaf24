/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "token_bucket.h"

/* How many of `tries` in one millisecond get a token. */
static uint32_t take(struct hb_token_bucket *bucket, uint32_t rate, uint32_t now_ms, uint32_t tries)
{
    uint32_t taken = 0;

    while (tries-- > 0)
        taken += hb_token_take(bucket, rate, now_ms);
    return taken;
}

/* By hand: 100 a second, so a burst of 10, then one each 10 ms. */
static void a_burst_then_the_rate(void **state)
{
    struct hb_token_bucket bucket = {0};

    (void)state;
    assert_int_equal(take(&bucket, 100, 5000, 50), 10);
    assert_int_equal(take(&bucket, 100, 5009, 50), 0);
    assert_int_equal(take(&bucket, 100, 5010, 50), 1);
    assert_int_equal(take(&bucket, 100, 5035, 50), 2);
    assert_int_equal(take(&bucket, 100, 5040, 50), 1); /* the half of before is not lost */
    assert_int_equal(take(&bucket, 100, 9000, 50), 10);
}

static void one_a_second_and_none(void **state)
{
    struct hb_token_bucket slow = {0}, none = {0};

    (void)state;
    assert_int_equal(take(&slow, 1, 7, 9), 1);
    assert_int_equal(take(&slow, 1, 1006, 9), 0);
    assert_int_equal(take(&slow, 1, 1007, 9), 1);
    assert_int_equal(take(&none, 0, 1000, 9), 0);
}

static void the_clock_may_wrap(void **state)
{
    struct hb_token_bucket bucket = {0};

    (void)state;
    assert_int_equal(take(&bucket, 1000, UINT32_MAX - 1, 500), 100);
    assert_int_equal(take(&bucket, 1000, 3, 500), 5);
}

/* Over any time, at most the rate and one burst. */
static void never_more_than_the_rate(void **state)
{
    struct hb_token_bucket bucket = {0};
    uint32_t taken = 0, rate = 777;

    (void)state;
    for (uint32_t ms = 0; ms < 100000; ms++)
        taken += take(&bucket, rate, ms, 3);
    assert_in_range(taken, 100 * rate, 100 * rate + rate / 10 + 1);
}

/* Another unit: three a second shared by two, so one and a half each, and a second's worth at
 * once. */
static void parts_of_a_token(void **state)
{
    const struct hb_token_rate rate = {.step = 3, .depth = 3000, .token = 2000};
    struct hb_token_bucket bucket = {0};

    (void)state;
    assert_true(hb_token_take_at(&bucket, &rate, 0));
    assert_false(hb_token_take_at(&bucket, &rate, 333));
    assert_true(hb_token_take_at(&bucket, &rate, 334));
    for (uint32_t ms = 335, taken = 0; ms <= 334 + 2000; ms++) {
        taken += hb_token_take_at(&bucket, &rate, ms);
        if (ms == 334 + 2000)
            assert_int_equal(taken, 3);
    }
}

/* A bucket that was left alone for weeks holds no more than it can, at the fastest rate there is.
 */
static void a_long_time_brings_no_more(void **state)
{
    const uint64_t token = UINT64_C(1) << 24;
    const struct hb_token_rate rate = {
        .step = UINT32_MAX * token / 1000, .depth = 2 * token, .token = token};
    struct hb_token_bucket bucket = {0};

    (void)state;
    assert_true(hb_token_take_at(&bucket, &rate, 1));
    assert_true(hb_token_take_at(&bucket, &rate, 0)); /* the whole way round the clock */
    assert_true(hb_token_take_at(&bucket, &rate, 0));
    assert_false(hb_token_take_at(&bucket, &rate, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_then_the_rate), cmocka_unit_test(one_a_second_and_none),
        cmocka_unit_test(the_clock_may_wrap),    cmocka_unit_test(never_more_than_the_rate),
        cmocka_unit_test(parts_of_a_token),      cmocka_unit_test(a_long_time_brings_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
