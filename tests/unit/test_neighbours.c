/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_neighbours.c: what is remembered of a neighbour, and when it is asked about. The clock is a
 * number.
 */
#include "net_test.h"

#include <linux/neighbour.h>

#include "neighbours.h"

#define IFINDEX 7

static const struct hb_address gateway = {HB_FAMILY_IPV4, {198, 51, 100, 1}};

static int set_up(void **state)
{
    *state = hb_neighbours_new();
    return *state ? 0 : -1;
}

static int tear_down(void **state)
{
    hb_neighbours_free(*state);
    return 0;
}

static struct hb_netlink_neighbour news_of(const struct hb_address *address, uint16_t nud,
                                           uint8_t last_byte)
{
    struct hb_netlink_neighbour news = {
        .ifindex = IFINDEX, .address = *address, .state = nud, .gone = nud == 0};

    if (nud & (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT)) {
        news.has_mac = true;
        news.mac[0] = 2;
        news.mac[5] = last_byte;
    }
    return news;
}

static struct hb_neighbour *tell(struct hb_neighbours *neighbours, uint16_t nud, uint8_t last_byte,
                                 uint64_t now_ms)
{
    struct hb_netlink_neighbour news = news_of(&gateway, nud, last_byte);

    return hb_neighbours_apply(neighbours, &news, now_ms);
}

static struct hb_neighbour *use(struct hb_neighbours *neighbours, uint64_t now_ms)
{
    struct hb_neighbour *neighbour = hb_neighbours_use(neighbours, IFINDEX, &gateway, now_ms);

    assert_non_null(neighbour);
    return neighbour;
}

/* Asserts that the next question comes at `at_ms` and not before, and takes it. */
static void assert_asked_at(struct hb_neighbours *neighbours, uint64_t at_ms)
{
    assert_int_equal(hb_neighbours_next_due(neighbours), at_ms);
    if (at_ms > 0)
        assert_null(hb_neighbours_next_question(neighbours, at_ms - 1));
    assert_non_null(hb_neighbours_next_question(neighbours, at_ms));
    assert_null(hb_neighbours_next_question(neighbours, at_ms));
}

static void test_pauses_grow_while_there_is_no_answer(void **state)
{
    uint64_t at_ms = 1000;
    static const uint32_t pauses[] = {100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000};

    assert_int_equal(hb_neighbours_next_due(*state), UINT64_MAX);
    use(*state, at_ms);
    assert_asked_at(*state, at_ms);
    for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
        tell(*state, NUD_FAILED, 0, at_ms); /* changes nothing about the pauses */
        at_ms += pauses[i];
        assert_asked_at(*state, at_ms);
    }
}

static void test_resolved_one_is_confirmed(void **state)
{
    use(*state, 0);
    assert_asked_at(*state, 0);
    tell(*state, NUD_REACHABLE, 1, 10);
    assert_asked_at(*state, 15010);
    tell(*state, NUD_STALE, 1, 16000); /* still resolved: the turn stays */
    assert_asked_at(*state, 30010);
    tell(*state, NUD_FAILED, 1, 31000); /* lost: at once, then with growing pauses again */
    assert_asked_at(*state, 31000);
    assert_asked_at(*state, 31100);
}

/* NTF_USE would turn a permanent entry into a dynamic one. */
static void test_static_one_is_left_alone(void **state)
{
    tell(*state, NUD_PERMANENT, 1, 0);
    use(*state, 0);
    assert_null(hb_neighbours_next_question(*state, 0));
    assert_null(hb_neighbours_next_question(*state, 100000));
    tell(*state, NUD_STALE, 1, 100000); /* no more */
    assert_non_null(hb_neighbours_next_question(*state, 200000));
}

static void test_nothing_is_asked_for_nobody(void **state)
{
    struct hb_neighbour *neighbour;

    tell(*state, NUD_STALE, 1, 0);
    assert_int_equal(hb_neighbours_next_due(*state), UINT64_MAX);
    neighbour = use(*state, 0);
    assert_ptr_equal(use(*state, 0), neighbour);
    hb_neighbours_release(*state, neighbour);
    assert_asked_at(*state, 0);
    hb_neighbours_release(*state, neighbour);
    assert_int_equal(hb_neighbours_next_due(*state), UINT64_MAX);
    assert_null(hb_neighbours_next_question(*state, 100000));
}

static void test_mac_stays_until_another_is_learned(void **state)
{
    struct hb_neighbour *neighbour = use(*state, 0);

    assert_false(neighbour->known);
    assert_ptr_equal(tell(*state, NUD_REACHABLE, 1, 0), neighbour);
    assert_true(neighbour->known);
    assert_int_equal(neighbour->mac[5], 1);
    assert_null(tell(*state, NUD_STALE, 1, 0));
    assert_null(tell(*state, NUD_FAILED, 0, 0));
    assert_null(tell(*state, 0, 0, 0)); /* the kernel has removed it */
    assert_true(neighbour->known && !neighbour->silent);
    assert_int_equal(neighbour->mac[5], 1);
    assert_ptr_equal(tell(*state, NUD_REACHABLE, 2, 0), neighbour);
    assert_int_equal(neighbour->mac[5], 2);
}

static void test_silence_is_told_once(void **state)
{
    struct hb_neighbour *neighbour = use(*state, 0);

    assert_null(tell(*state, NUD_INCOMPLETE, 0, 0));
    assert_ptr_equal(tell(*state, NUD_FAILED, 0, 0), neighbour);
    assert_true(neighbour->silent);
    assert_null(tell(*state, NUD_INCOMPLETE, 0, 0));
    assert_null(tell(*state, NUD_FAILED, 0, 0));
    assert_ptr_equal(tell(*state, NUD_REACHABLE, 1, 0), neighbour);
    assert_false(neighbour->silent);
}

static void test_refusal(void **state)
{
    struct hb_neighbour *neighbour = use(*state, 0);

    assert_ptr_equal(hb_neighbours_refused(*state, IFINDEX, &gateway, 1), neighbour);
    assert_null(hb_neighbours_refused(*state, IFINDEX, &gateway, 1));
    assert_null(hb_neighbours_refused(*state, IFINDEX + 1, &gateway, 1));
    assert_int_equal(neighbour->ask_error, 1);
    assert_ptr_equal(tell(*state, NUD_INCOMPLETE, 0, 0), neighbour);
    assert_int_equal(neighbour->ask_error, 0);
}

/* An event that comes while a dump is read is newer than the dump, also when it says "gone". */
static void test_event_beats_dump(void **state)
{
    struct hb_netlink_neighbour old = news_of(&gateway, NUD_STALE, 1);
    struct hb_neighbour *neighbour;

    tell(*state, NUD_STALE, 1, 0);
    hb_neighbours_dump_begin(*state);
    tell(*state, NUD_REACHABLE, 2, 0);
    assert_null(hb_neighbours_apply_dumped(*state, &old, 0));
    hb_neighbours_dump_end(*state, 0);
    neighbour = use(*state, 0);
    assert_int_equal(neighbour->mac[5], 2);
    hb_neighbours_release(*state, neighbour);

    hb_neighbours_dump_begin(*state);
    tell(*state, 0, 0, 0);
    assert_null(hb_neighbours_apply_dumped(*state, &old, 0));
    hb_neighbours_dump_end(*state, 0);
    assert_false(use(*state, 0)->known);
}

/* What a complete dump does not show is gone: forgotten when unused, asked for when used. */
static void test_lost_removal(void **state)
{
    struct hb_address other = address_of("198.51.100.2");
    struct hb_netlink_neighbour news = news_of(&other, NUD_STALE, 9);
    struct hb_neighbour *neighbour = use(*state, 0);

    tell(*state, NUD_REACHABLE, 1, 0);
    hb_neighbours_apply(*state, &news, 0);
    hb_neighbours_dump_begin(*state);
    hb_neighbours_dump_end(*state, 5000);
    assert_true(neighbour->known);
    assert_asked_at(*state, 5000);
    assert_false(hb_neighbours_use(*state, IFINDEX, &other, 0)->known);
}

static void count_change(void *context, struct hb_neighbour *neighbour)
{
    (void)neighbour;
    (*(int *)context)++;
}

static void test_link_gone(void **state)
{
    struct hb_netlink_neighbour elsewhere = news_of(&gateway, NUD_STALE, 3);
    struct hb_neighbour *neighbour = use(*state, 0);
    int changes = 0;

    elsewhere.ifindex = IFINDEX + 1;
    hb_neighbours_apply(*state, &elsewhere, 0);
    tell(*state, NUD_REACHABLE, 1, 0);
    hb_neighbours_forget_link(*state, IFINDEX, 0, count_change, &changes);
    assert_int_equal(changes, 1);
    assert_false(neighbour->known);
    assert_true(hb_neighbours_use(*state, IFINDEX + 1, &gateway, 0)->known);
}

/* Thousands that fall due together come one by one, and each has its own next turn. */
static void test_many_are_due(void **state)
{
    for (uint32_t i = 0; i < 10000; i++) {
        struct hb_address address = address_no(i);

        assert_non_null(hb_neighbours_use(*state, IFINDEX, &address, i / 100));
    }
    for (int round = 0; round < 8; round++) {
        uint32_t asked = 0;

        while (hb_neighbours_next_question(*state, 100000 * (uint64_t)(round + 1)))
            asked++;
        assert_int_equal(asked, 10000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pauses_grow_while_there_is_no_answer, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_resolved_one_is_confirmed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_static_one_is_left_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_is_asked_for_nobody, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_mac_stays_until_another_is_learned, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_silence_is_told_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refusal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_event_beats_dump, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lost_removal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_link_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_are_due, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
