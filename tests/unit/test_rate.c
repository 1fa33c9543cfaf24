/* SPDX-License-Identifier: BSD-3-Clause */
/* A limit on events a second. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rate.h"

static bool take(struct hb_rate *bucket, uint32_t rate, uint32_t now_ms)
{
    if (!hb_rate_has(bucket, rate, now_ms))
        return false;
    hb_rate_take(bucket);
    return true;
}

/* Rate 2: one now, the next half a second later. */
static void by_hand(void **state)
{
    struct hb_rate bucket = {0};

    (void)state;
    assert_true(take(&bucket, 2, 1000));
    assert_false(take(&bucket, 2, 1000));
    assert_false(take(&bucket, 2, 1499));
    assert_true(take(&bucket, 2, 1500));
    assert_false(take(&bucket, 2, 1500));
}

static void none_at_all(void **state)
{
    struct hb_rate bucket = {0};

    (void)state;
    for (uint32_t ms = 0; ms < 10000; ms++)
        assert_false(take(&bucket, 0, ms));
    assert_true(take(&bucket, 1, 11000));
}

/* Any second, whatever was saved up before, and over the end of the clock. */
static void any_second(void **state)
{
    static const uint32_t rates[] = {1, 7, 8, 9, 100, 1000, 12345, 1000000};

    (void)state;
    for (uint32_t r = 0; r < sizeof(rates) / sizeof(rates[0]); r++) {
        struct hb_rate bucket = {0};
        uint32_t rate = rates[r], now_ms = UINT32_MAX - 3500, burst = rate / 8 > 1 ? rate / 8 : 1;

        for (uint32_t second = 0; second < 5; second++) {
            uint64_t taken = 0;

            for (uint32_t ms = 0; ms < 1000; ms++, now_ms++)
                while (take(&bucket, rate, now_ms))
                    taken++;
            assert_in_range(taken, rate, rate + burst + 1);
        }
        now_ms += 100000; /* a long silence saves no more than the burst */
        burst = 0;
        while (take(&bucket, rate, now_ms))
            burst++;
        assert_true(burst <= (rate / 8 > 1 ? rate / 8 : 1));
    }
}

/* The largest rate does not overflow. */
static void the_largest_rate(void **state)
{
    struct hb_rate bucket = {0};

    (void)state;
    for (uint32_t ms = 0; ms < 5000; ms++)
        assert_true(take(&bucket, UINT32_MAX, ms * 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(none_at_all),
        cmocka_unit_test(any_second),
        cmocka_unit_test(the_largest_rate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
