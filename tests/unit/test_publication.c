/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "halbach/protocol.h"
#include "publication.h"

static const uint8_t A[HB_DIGEST_SIZE] = {0xa}, B[HB_DIGEST_SIZE] = {0xb}, NONE[HB_DIGEST_SIZE];

/* A plan is only asked for its tables here. */
static struct hb_plan_table two_tables[2] = {{.digest = {1}}, {.digest = {2}}};
static const struct hb_plan plan = {.tables = two_tables, .tables_count = 2};

static bool answer(struct hb_publication *publication, enum hb_reject reason, uint64_t now_ms)
{
    struct hb_publish_reply reply = {.reason = reason, .adopt_ns = 3000, .grace_ns = 2000};

    strcpy(reply.text, "backend record 3");
    return hb_publication_answered(publication, &reply, now_ms);
}

/* Connected to an empty dataplane, A wanted and adopted as number 1. */
static void serve_a(struct hb_publication *publication)
{
    hb_publication_connected(publication, 0, NONE, NULL, 0);
    assert_true(hb_publication_want(publication, A));
    assert_true(hb_publication_due(publication, 0));
    assert_int_equal(hb_publication_sent(publication, &plan), 0);
    assert_false(hb_publication_due(publication, 0));
    answer(publication, HB_REJECT_NONE, 0);
    assert_true(hb_publication_in_sync(publication));
}

static void test_a_new_number_only_for_new_content(void **state)
{
    struct hb_publication p = {0};

    (void)state;
    serve_a(&p);
    assert_int_equal(p.serving, 1);
    assert_int_equal(p.adopt_us, 3);
    assert_false(hb_publication_want(&p, A));
    assert_int_equal(p.wanted, 1);
    assert_false(hb_publication_due(&p, 0));
    assert_true(hb_publication_want(&p, B));
    assert_int_equal(p.wanted, 2);
    assert_int_equal(p.held.count, 2);
    hb_publication_clear(&p);
}

static void test_restarted_control_publishes_nothing(void **state)
{
    struct hb_publication p = {.highest = 40};

    (void)state;
    hb_publication_connected(&p, 41, A, NULL, 0);
    assert_false(hb_publication_want(&p, A));
    assert_int_equal(p.wanted, 41);
    assert_true(hb_publication_in_sync(&p));
    assert_false(hb_publication_due(&p, 0));
    assert_true(hb_publication_want(&p, B));
    assert_int_equal(p.wanted, 42);
    hb_publication_clear(&p);
}

static void test_restarted_dataplane_gets_it_again(void **state)
{
    struct hb_publication p = {0};

    (void)state;
    serve_a(&p);
    hb_publication_disconnected(&p);
    assert_false(hb_publication_in_sync(&p));
    assert_false(hb_publication_due(&p, 0));
    hb_publication_connected(&p, 0, NONE, NULL, 0);
    assert_true(hb_publication_due(&p, 0));
    assert_int_equal(p.wanted, 1);
    assert_int_equal(p.held.count, 0);
    hb_publication_clear(&p);
}

/* BL-80: somebody else's generation, with a higher number. */
static void test_a_foreign_generation_is_replaced(void **state)
{
    struct hb_publication p = {0};

    (void)state;
    serve_a(&p);
    hb_publication_disconnected(&p);
    hb_publication_connected(&p, 90, B, NULL, 0);
    assert_int_equal(p.wanted, 91);
    assert_true(hb_publication_due(&p, 0));
    hb_publication_clear(&p);
}

/* BL-81: refused is not applied; retried with growing pauses, told once. */
static void test_rejects_are_retried_with_growing_pauses(void **state)
{
    struct hb_publication p = {0};
    uint64_t now = 0;
    uint32_t pause = HB_RETRY_FIRST_MS;

    (void)state;
    serve_a(&p);
    hb_publication_want(&p, B);
    for (int i = 0; i < 8; i++) {
        assert_true(hb_publication_due(&p, now));
        hb_publication_sent(&p, &plan);
        assert_int_equal(answer(&p, HB_REJECT_BACKEND, now), i == 0);
        assert_int_equal(p.serving, 1);
        assert_int_equal(p.wanted, 2);
        assert_false(hb_publication_due(&p, now + pause - 1));
        now += pause;
        pause = pause * 2 < HB_RETRY_LAST_MS ? pause * 2 : HB_RETRY_LAST_MS;
    }
    assert_int_equal(p.rejects, 8);
    assert_string_equal(p.last_reject, "generation 2: backend record 3");
    /* The next change is tried at once, and so is going back. */
    assert_true(hb_publication_want(&p, A));
    assert_true(hb_publication_due(&p, now - pause));
    hb_publication_clear(&p);
}

static void test_unknown_table_is_carried_at_once_but_only_once(void **state)
{
    struct hb_publication p = {0};

    (void)state;
    serve_a(&p);
    hb_publication_want(&p, B);
    hb_publication_sent(&p, &plan);
    answer(&p, HB_REJECT_TABLE_UNKNOWN, 0);
    assert_int_equal(p.held.count, 0);
    assert_true(hb_publication_due(&p, 0));
    hb_publication_sent(&p, &plan);
    answer(&p, HB_REJECT_TABLE_UNKNOWN, 0);
    assert_false(hb_publication_due(&p, 0));
    hb_publication_clear(&p);
}

static void test_a_change_while_one_is_under_way(void **state)
{
    struct hb_publication p = {0};

    (void)state;
    hb_publication_connected(&p, 0, NONE, NULL, 0);
    hb_publication_want(&p, A);
    hb_publication_sent(&p, &plan);
    hb_publication_want(&p, B);
    assert_false(hb_publication_due(&p, 0));
    answer(&p, HB_REJECT_NONE, 0);
    assert_int_equal(p.serving, 1);
    assert_true(hb_publication_due(&p, 0));
    /* The connection breaks with B under way: nobody knows, so it is sent again. */
    hb_publication_sent(&p, &plan);
    hb_publication_disconnected(&p);
    hb_publication_connected(&p, 1, A, NULL, 0);
    assert_true(hb_publication_due(&p, 0));
    /* ... or it arrived after all. */
    hb_publication_sent(&p, &plan);
    hb_publication_disconnected(&p);
    hb_publication_connected(&p, 2, B, NULL, 0);
    assert_true(hb_publication_in_sync(&p));
    hb_publication_clear(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_new_number_only_for_new_content),
        cmocka_unit_test(test_restarted_control_publishes_nothing),
        cmocka_unit_test(test_restarted_dataplane_gets_it_again),
        cmocka_unit_test(test_a_foreign_generation_is_replaced),
        cmocka_unit_test(test_rejects_are_retried_with_growing_pauses),
        cmocka_unit_test(test_unknown_table_is_carried_at_once_but_only_once),
        cmocka_unit_test(test_a_change_while_one_is_under_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
