/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a drain takes yet, and times as people write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "drain.h"
#include "duration.h"

static void test_estimate(void **state)
{
    struct hb_drain drain = {0};

    (void)state;
    assert_int_equal(hb_drain_estimate(&drain, 100), HB_DRAIN_ENDLESS);
    hb_drain_observe(&drain, 100, 1000);
    assert_int_equal(hb_drain_estimate(&drain, 100), HB_DRAIN_ENDLESS);
    hb_drain_observe(&drain, 0, 1500); /* too early: passed over */
    hb_drain_observe(&drain, 90, 2000);
    assert_int_equal(hb_drain_estimate(&drain, 90), 9);
    assert_int_equal(hb_drain_estimate(&drain, 0), 0);
    /* From now on nothing ends: that shows once half a minute is over, and not before. */
    for (unsigned second = 3; second < 32; second++) {
        hb_drain_observe(&drain, 90, second * 1000);
        assert_true(hb_drain_estimate(&drain, 90) < HB_DRAIN_ENDLESS);
    }
    hb_drain_observe(&drain, 90, 32000);
    assert_int_equal(hb_drain_estimate(&drain, 90), HB_DRAIN_ENDLESS);
    hb_drain_observe(&drain, 200, 33000); /* more than before: no rate below zero */
    assert_int_equal(hb_drain_estimate(&drain, 200), HB_DRAIN_ENDLESS);
}

static void test_words(void **state)
{
    enum hb_at_deadline at_deadline = HB_AT_DEADLINE_KEEP;

    (void)state;
    for (int i = 0; i < HB_AT_DEADLINES; i++) {
        assert_true(
            hb_at_deadline_parse(hb_at_deadline_name((enum hb_at_deadline)i), &at_deadline));
        assert_int_equal(at_deadline, i);
    }
    assert_false(hb_at_deadline_parse("Reset", &at_deadline));
    assert_false(hb_at_deadline_parse("", &at_deadline));
}

static void test_durations(void **state)
{
    static const struct {
        const char *text;
        uint64_t ms; /* UINT64_MAX: refused */
    } rows[] = {
        {"500ms", 500},
        {"30s", 30000},
        {"10m", 600000},
        {"2h", 7200000},
        {"0s", 0},
        {"8760h", 31536000000},
        {"8761h", UINT64_MAX},
        {"10", UINT64_MAX},
        {"", UINT64_MAX},
        {"s", UINT64_MAX},
        {"1 s", UINT64_MAX},
        {"-1s", UINT64_MAX},
        {"1.5h", UINT64_MAX},
        {"1S", UINT64_MAX},
        {"10mm", UINT64_MAX},
        {"99999999999999999999s", UINT64_MAX},
    };

    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
        uint64_t ms = UINT64_MAX;

        assert_int_equal(hb_duration_parse(rows[r].text, &ms), rows[r].ms != UINT64_MAX);
        assert_int_equal(ms, rows[r].ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_estimate),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_durations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
