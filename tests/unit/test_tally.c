/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tally.h"

static struct hb_counts packets(uint64_t count)
{
    return (struct hb_counts){.packets = count};
}

static void test_a_reused_id_starts_at_zero(void **state)
{
    struct hb_tally tally;

    (void)state;
    hb_tally_start(&tally, 1, packets(100));
    assert_int_equal(hb_tally_last(&tally).packets, 0);
    assert_int_equal(hb_tally_read(&tally, 1, packets(130)).packets, 30);
}

static void test_counts_survive_the_dataplane(void **state)
{
    struct hb_tally tally;

    (void)state;
    hb_tally_start(&tally, 1, packets(100));
    hb_tally_read(&tally, 1, packets(130));
    assert_int_equal(hb_tally_last(&tally).packets, 30);
    assert_int_equal(hb_tally_read(&tally, 2, packets(5)).packets, 35);
    assert_int_equal(hb_tally_read(&tally, 2, packets(7)).packets, 37);
    assert_int_equal(hb_tally_read(&tally, 3, packets(0)).packets, 37);
}

static void test_an_id_got_without_a_dataplane(void **state)
{
    struct hb_tally tally;

    (void)state;
    hb_tally_start(&tally, 0, packets(0));
    assert_int_equal(hb_tally_read(&tally, 9, packets(4)).packets, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_reused_id_starts_at_zero),
        cmocka_unit_test(test_counts_survive_the_dataplane),
        cmocka_unit_test(test_an_id_got_without_a_dataplane),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
