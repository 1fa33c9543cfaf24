/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_plan.c: probes are spread evenly, and stay on their grid (BL-96).
 */
#include "net_test.h"

#include "health/plan.h"

#define INTERVAL_US UINT64_C(1000000)
#define BINS        10

static void assert_spread(const uint32_t *bins)
{
    uint32_t least = bins[0], most = bins[0];

    for (int i = 1; i < BINS; i++) {
        least = bins[i] < least ? bins[i] : least;
        most = bins[i] > most ? bins[i] : most;
    }
    assert_true(most <= 2 * least);
}

/* At most twice as many starts in one tenth of the interval as in another, for any number of
 * targets. */
static void test_starts_are_spread(void **state)
{
    static const uint32_t counts[] = {50, 200, 777, 2000, 10000};

    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        uint32_t first[BINS] = {0}, regular[BINS] = {0};

        for (uint32_t n = 0; n < counts[i]; n++) {
            uint32_t phase = hb_plan_phase(n);
            uint64_t first_us = hb_plan_first_delay_us(phase, INTERVAL_US);

            assert_true(first_us < HB_PLAN_FIRST_US);
            first[first_us * BINS / HB_PLAN_FIRST_US]++;
            regular[hb_plan_next_us(phase, INTERVAL_US, 0) % INTERVAL_US * BINS / INTERVAL_US]++;
        }
        assert_spread(first);
        assert_spread(regular);
    }
}

static void test_first_probe_of_a_short_interval(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 100; n++)
        assert_true(hb_plan_first_delay_us(hb_plan_phase(n), 20000) < 20000);
}

/* However late (or early) each start is, within half an interval, the next one is on the grid
 * again, and no time of the grid is used twice. */
static void test_grid_is_kept(void **state)
{
    uint32_t phase = hb_plan_phase(5), random = 1;
    uint64_t grid_us = hb_plan_next_us(phase, INTERVAL_US, 123456789);

    (void)state;
    for (int i = 0; i < 1000; i++) {
        uint64_t late_us, next_us;

        random = random * 1664525 + 1013904223;
        late_us = (uint64_t)(random >> 16) * INTERVAL_US / 2 / 65536;
        next_us = hb_plan_next_us(phase, INTERVAL_US, grid_us + late_us);
        assert_int_equal(next_us, grid_us + INTERVAL_US);
        next_us = hb_plan_next_us(phase, INTERVAL_US, grid_us - 3000);
        assert_int_equal(next_us, grid_us + INTERVAL_US);
        grid_us = next_us;
    }
}

/* After a long stall there is one probe, not one for each that was missed. */
static void test_missed_times_are_left_out(void **state)
{
    uint32_t phase = hb_plan_phase(3);
    uint64_t grid_us = hb_plan_next_us(phase, INTERVAL_US, 0);
    uint64_t now_us = grid_us + 5 * INTERVAL_US + INTERVAL_US / 10;

    (void)state;
    assert_int_equal(hb_plan_next_us(phase, INTERVAL_US, now_us), grid_us + 6 * INTERVAL_US);
}

static void test_next_is_half_an_interval_away_at_least(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 1000; n++) {
        for (uint64_t now_us = 0; now_us < 3 * INTERVAL_US; now_us += 99991) {
            uint64_t next_us = hb_plan_next_us(hb_plan_phase(n), INTERVAL_US, now_us);

            assert_in_range(next_us - now_us, INTERVAL_US / 2, INTERVAL_US * 3 / 2);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_starts_are_spread),
        cmocka_unit_test(test_first_probe_of_a_short_interval),
        cmocka_unit_test(test_grid_is_kept),
        cmocka_unit_test(test_missed_times_are_left_out),
        cmocka_unit_test(test_next_is_half_an_interval_away_at_least),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
