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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_then_the_rate),
        cmocka_unit_test(one_a_second_and_none),
        cmocka_unit_test(the_clock_may_wrap),
        cmocka_unit_test(never_more_than_the_rate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
