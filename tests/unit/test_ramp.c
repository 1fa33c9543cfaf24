/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "ramp.h"

/* By hand: seven slots, 3 joins 1 and 2; the last slot is collateral. */
static void test_seven_slots(void **state)
{
    static const uint16_t from[7] = {1, 1, 2, 2, 1, 2, 1}, to[7] = {1, 3, 2, 3, 1, 2, 2};
    uint32_t progress[4] = {HB_RAMP_FULL, HB_RAMP_FULL, HB_RAMP_FULL, 1}, first[4];
    uint16_t owner[7];

    (void)state;
    memcpy(owner, from, sizeof(owner));
    hb_ramp_blend(owner, to, 7, 42, progress, 3, first);
    assert_int_equal((owner[1] == 3) + (owner[3] == 3), 1); /* one slot at once */
    assert_int_equal(owner[6], 1);
    assert_int_equal(owner[0], 1);
    progress[3] = HB_RAMP_FULL - 1;
    memcpy(owner, from, sizeof(owner));
    hb_ramp_blend(owner, to, 7, 42, progress, 3, first);
    assert_memory_equal(owner, to, sizeof(owner));
}

static void test_progress(void **state)
{
    static const uint32_t ramps[] = {1000, 1500, 10000, 60000, 3600000};

    (void)state;
    for (size_t r = 0; r < sizeof(ramps) / sizeof(*ramps); r++) {
        uint32_t last = 0, steps = 0;
        uint64_t at = 0;

        while (at < ramps[r]) {
            uint32_t progress = hb_ramp_progress(at, ramps[r]);
            uint64_t next = hb_ramp_next_step(at, ramps[r]);

            assert_true(progress > last && progress < HB_RAMP_FULL);
            assert_true(next > 0);
            assert_int_equal(hb_ramp_progress(at + next - 1, ramps[r]), progress);
            last = progress;
            at += next;
            steps++;
        }
        assert_int_equal(at, ramps[r]);
        assert_true(steps <= 60);
        assert_int_equal(hb_ramp_progress(at, ramps[r]), HB_RAMP_FULL);
        assert_int_equal(hb_ramp_next_step(at, ramps[r]), 0);
    }
}

/* Two newcomers, one behind the other: each slot changes hands at most once in all steps. */
static void test_two_newcomers(void **state)
{
    enum { SLOTS = 1009 };
    static uint16_t from[SLOTS], to[SLOTS], last[SLOTS], owner[SLOTS];
    uint32_t progress[6] = {HB_RAMP_FULL, HB_RAMP_FULL, HB_RAMP_FULL, HB_RAMP_FULL}, first[6];
    unsigned moved = 0, differ = 0;

    (void)state;
    for (unsigned s = 0; s < SLOTS; s++) {
        from[s] = (uint16_t)(1 + s % 3);
        to[s] = (uint16_t)(s % 5 == 0 ? 4 : s % 7 == 0 ? 5 : s % 11 == 0 ? 1 : from[s]);
        differ += from[s] != to[s];
    }
    memcpy(last, from, sizeof(last));
    for (unsigned step = 1; step <= 100; step++) {
        progress[4] = step * 600 < HB_RAMP_FULL ? step * 600 : HB_RAMP_FULL - 1;
        progress[5] = step * 655;
        memcpy(owner, from, sizeof(owner));
        hb_ramp_blend(owner, to, SLOTS, 7, progress, 5, first);
        for (unsigned s = 0; s < SLOTS; s++) {
            moved += owner[s] != last[s];
            assert_true(owner[s] == from[s] || owner[s] == to[s]);
            assert_true(last[s] != to[s] || owner[s] == to[s]);
        }
        memcpy(last, owner, sizeof(last));
    }
    assert_true(moved <= differ);
    assert_true(moved > differ * 8 / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seven_slots),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_two_newcomers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
