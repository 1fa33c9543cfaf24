/* SPDX-License-Identifier: BSD-3-Clause */
/* Which datagram a fragment belongs to: limits, order, overlaps, and the whole against a model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fragment_table.h"

static const struct hb_hash_key secret = {{3, 5, 7, 11, 13, 17, 19, 23}};

static int set_up(void **state)
{
    size_t bytes = (hb_fragment_table_bytes() + 63) / 64 * 64;
    void *memory = aligned_alloc(64, bytes);

    memset(memory, 0, bytes);
    *state = hb_fragment_table_init(memory);
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

static struct hb_fragment_key key_of(uint32_t id)
{
    return (struct hb_fragment_key){.address = {id % 7}, .id = id, .protocol = 17, .family = 4};
}

static struct hb_datagram *find(struct hb_fragment_table *table, uint32_t id, uint32_t now_ms)
{
    struct hb_fragment_key key = key_of(id);

    return hb_fragment_find(table, &key, hb_fragment_hash(&key, &secret), now_ms);
}

static struct hb_datagram *begin(struct hb_fragment_table *table, uint32_t id, uint32_t now_ms)
{
    struct hb_fragment_key key = key_of(id);

    assert_null(find(table, id, now_ms));
    return hb_fragment_begin(table, &key, hb_fragment_hash(&key, &secret), now_ms);
}

static void *packet(uintptr_t number)
{
    return (void *)number;
}

static void begun_found_and_forgotten(void **state)
{
    struct hb_fragment_table *table = *state;
    struct hb_datagram *one = begin(table, 1, 100), *two = begin(table, 2, 100);

    assert_ptr_not_equal(one, two);
    assert_ptr_equal(find(table, 1, 200), one);
    assert_ptr_equal(find(table, 2, 200), two);
    hb_fragment_forget(table, one);
    assert_null(find(table, 1, 200));
    assert_ptr_equal(find(table, 2, 100 + HB_FRAGMENT_KEEP_MS - 1), two);
    assert_null(find(table, 2, 100 + HB_FRAGMENT_KEEP_MS));
    assert_null(find(table, 2, 200)); /* for good */
}

/* Every field of the key counts. */
static void keys_are_compared_whole(void **state)
{
    struct hb_fragment_table *table = *state;
    struct hb_fragment_key key = key_of(1), other;
    uint8_t *bytes = (uint8_t *)&other;

    hb_fragment_begin(table, &key, 42, 0);
    assert_non_null(hb_fragment_find(table, &key, 42, 0));
    for (size_t at = 0; at < sizeof(key); at++) {
        other = key;
        bytes[at] ^= 1;
        assert_null(hb_fragment_find(table, &other, 42, 0)); /* the same hash */
    }
}

/* BL-30: of ten per cent too many the oldest ten per cent are lost. */
static void the_oldest_makes_way(void **state)
{
    struct hb_fragment_table *table = *state;
    uint32_t all = HB_FRAGMENTS_MAX + HB_FRAGMENTS_MAX / 10;

    for (uint32_t id = 1; id <= all; id++)
        hb_fragment_know(table, begin(table, id, 5));
    for (uint32_t id = 1; id <= all; id++)
        assert_int_equal(find(table, id, 6) != NULL, id > all - HB_FRAGMENTS_MAX);
}

static void held_packets_go_in_order(void **state)
{
    struct hb_fragment_table *table = *state;
    struct hb_datagram *datagram = begin(table, 1, 0), *other = begin(table, 2, 0);

    for (uintptr_t i = 1; i <= 5; i++) {
        assert_true(hb_fragment_hold(table, datagram, packet(i), 0));
        assert_true(hb_fragment_hold(table, other, packet(100 + i), 0));
    }
    assert_int_equal(hb_fragment_held(table), 10);
    hb_fragment_know(table, datagram);
    hb_fragment_release(table, datagram);
    assert_int_equal(hb_fragment_held(table), 5);
    for (uintptr_t i = 1; i <= 5; i++)
        assert_ptr_equal(hb_fragment_next_out(table, HB_FRAGMENT_READY), packet(i));
    assert_null(hb_fragment_next_out(table, HB_FRAGMENT_READY));
    assert_ptr_equal(find(table, 1, 0), datagram); /* which is known now */
    hb_fragment_forget(table, other);
    for (uintptr_t i = 1; i <= 5; i++)
        assert_ptr_equal(hb_fragment_next_out(table, HB_FRAGMENT_LOST), packet(100 + i));
    assert_int_equal(hb_fragment_held(table), 0);
}

static void patience_ends(void **state)
{
    struct hb_fragment_table *table = *state;
    uint32_t start = UINT32_MAX - 10; /* the clock wraps */
    struct hb_datagram *datagram = begin(table, 1, start);

    hb_fragment_hold(table, datagram, packet(1), start);
    hb_fragment_hold(table, datagram, packet(2), start + 100);
    hb_fragment_expire(table, start + HB_FRAGMENT_HOLD_MS - 1);
    assert_null(hb_fragment_next_out(table, HB_FRAGMENT_LATE));
    hb_fragment_expire(table, start + HB_FRAGMENT_HOLD_MS);
    assert_ptr_equal(hb_fragment_next_out(table, HB_FRAGMENT_LATE), packet(1));
    assert_null(hb_fragment_next_out(table, HB_FRAGMENT_LATE));
    assert_non_null(find(table, 1, start + HB_FRAGMENT_HOLD_MS));
    hb_fragment_expire(table, start + 100 + HB_FRAGMENT_HOLD_MS);
    assert_ptr_equal(hb_fragment_next_out(table, HB_FRAGMENT_LATE), packet(2));
    assert_null(find(table, 1, start + 100 + HB_FRAGMENT_HOLD_MS)); /* it went with the last */
}

/* BL-29: a flood of lone fragments holds no more than it may, and takes no place of a datagram
 * whose first fragment is known. */
static void a_flood_of_lone_fragments(void **state)
{
    struct hb_fragment_table *table = *state;
    uint32_t known = HB_FRAGMENTS_MAX;
    uintptr_t next = 1;

    for (uint32_t id = 1; id <= known; id++)
        hb_fragment_know(table, begin(table, id, 0));
    for (uint32_t id = 1000000; id < 1100000; id++) {
        void *lost;

        assert_true(hb_fragment_hold(table, begin(table, id, 1), packet(id), 1));
        assert_true(hb_fragment_held(table) <= HB_FRAGMENTS_HELD);
        while ((lost = hb_fragment_next_out(table, HB_FRAGMENT_LOST)) != NULL) {
            assert_ptr_equal(lost, packet(999999 + next));
            next++;
        }
    }
    assert_int_equal(next - 1, 100000 - HB_FRAGMENTS_HELD);
    for (uint32_t id = 1; id <= known; id++)
        assert_non_null(find(table, id, 1));
}

/* Nobody takes what goes out: the table has places for a burst and then says no. */
static void places_run_out(void **state)
{
    struct hb_fragment_table *table = *state;
    struct hb_datagram *datagram = begin(table, 1, 0);
    uint32_t held = 0, out = 0;

    while (held < 10000 && hb_fragment_hold(table, datagram, packet(1), 0))
        held++;
    assert_true(held >= HB_FRAGMENTS_HELD + 64 && held < 10000);
    while (hb_fragment_next_out(table, HB_FRAGMENT_LOST) != NULL)
        out++;
    hb_fragment_flush(table);
    while (hb_fragment_next_out(table, HB_FRAGMENT_LOST) != NULL)
        out++;
    assert_int_equal(out, held);
    assert_null(find(table, 1, 0));
}

static void bytes_of_a_datagram(void **state)
{
    struct hb_datagram d = {0};

    (void)state;
    assert_int_equal(hb_fragment_note(&d, 0, 1480, false), HB_FRAGMENT_GOOD);
    assert_int_equal(hb_fragment_note(&d, 0, 1480, false), HB_FRAGMENT_DUPLICATE);
    assert_int_equal(hb_fragment_note(&d, 1472, 1480, false), HB_FRAGMENT_DUPLICATE);
    assert_int_equal(hb_fragment_note(&d, 2960, 3008, true), HB_FRAGMENT_GOOD);
    assert_int_equal(hb_fragment_note(&d, 2960, 3008, true), HB_FRAGMENT_DUPLICATE);
    assert_int_equal(hb_fragment_note(&d, 1480, 2960, false), HB_FRAGMENT_COMPLETE);
}

/* Each makes a datagram of 0 to 1480 and 2960 to 3008, its end, bad. */
static void what_makes_it_bad(void **state)
{
    static const struct {
        uint32_t start, end;
        bool last;
    } rows[] = {
        {1472, 2000, false}, {0, 1488, false},    {2952, 3000, false}, {1480, 2968, false},
        {3008, 3016, false}, {3008, 3016, true},  {1480, 1488, true},  {2968, 3000, true},
        {2960, 3008, false}, {1400, 3000, false},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hb_datagram d = {0};

        assert_int_equal(hb_fragment_note(&d, 0, 1480, false), HB_FRAGMENT_GOOD);
        assert_int_equal(hb_fragment_note(&d, 2960, 3008, true), HB_FRAGMENT_GOOD);
        assert_int_equal(hb_fragment_note(&d, rows[i].start, rows[i].end, rows[i].last),
                         HB_FRAGMENT_OVERLAPS);
        assert_int_equal(hb_fragment_note(&d, 1480, 2960, false), HB_FRAGMENT_REFUSED);
        assert_int_equal(hb_fragment_note(&d, 0, 1480, false), HB_FRAGMENT_REFUSED);
    }
}

/* The end is before what came already. */
static void a_last_fragment_too_early(void **state)
{
    struct hb_datagram d = {0};

    (void)state;
    assert_int_equal(hb_fragment_note(&d, 800, 1600, false), HB_FRAGMENT_GOOD);
    assert_int_equal(hb_fragment_note(&d, 0, 800, true), HB_FRAGMENT_OVERLAPS);
    assert_int_equal(hb_fragment_note(&d, 0, 800, false), HB_FRAGMENT_REFUSED);
}

static void too_many_runs(void **state)
{
    struct hb_datagram d = {0};

    (void)state;
    for (uint32_t i = 0; i < HB_FRAGMENT_RUNS; i++)
        assert_int_equal(hb_fragment_note(&d, 16 * i, 16 * i + 8, false), HB_FRAGMENT_GOOD);
    assert_int_equal(hb_fragment_note(&d, 16000, 16008, false), HB_FRAGMENT_TOO_MANY_RUNS);
    assert_int_equal(hb_fragment_note(&d, 8, 16, false), HB_FRAGMENT_GOOD); /* fills a gap */
    assert_int_equal(hb_fragment_note(&d, 16000, 16008, false), HB_FRAGMENT_GOOD);
}

/* All of its units are there: then they are in one run. */
static bool are_side_by_side(uint32_t have, uint32_t mask)
{
    return (have & mask) == mask;
}

/* Datagrams of 16 units in a random order, with overlaps, against a bit for each unit. */
static void any_order_against_a_model(void **state)
{
    uint64_t seed = 1;

    (void)state;
    for (uint32_t round = 0; round < 20000; round++) {
        struct hb_datagram d = {0};
        uint32_t have = 0;
        bool ended = false, bad = false;

        for (uint32_t step = 0; step < 40; step++) {
            uint32_t start, length, mask;
            enum hb_fragment_verdict verdict;
            bool last;

            seed = seed * 6364136223846793005 + 1442695040888963407;
            start = seed >> 33 & 15;
            length = 1 + (seed >> 40 & 3);
            if (start + length > 16)
                length = 16 - start;
            last = start + length == 16;
            mask = ((1u << length) - 1) << start;
            verdict = hb_fragment_note(&d, start * 8, (start + length) * 8, last);
            if (bad || (have & mask) != 0) {
                bool overlaps = !are_side_by_side(have, mask);

                assert_int_equal(verdict, bad        ? HB_FRAGMENT_REFUSED
                                          : overlaps ? HB_FRAGMENT_OVERLAPS
                                                     : HB_FRAGMENT_DUPLICATE);
                bad |= overlaps;
                continue;
            }
            assert_true(verdict == HB_FRAGMENT_GOOD || verdict == HB_FRAGMENT_COMPLETE);
            have |= mask;
            ended |= last;
            assert_int_equal(verdict == HB_FRAGMENT_COMPLETE, have == 0xffff && ended);
        }
    }
}

/* A long random life: what goes in comes out exactly once, and a datagram is found when a plain
 * list says so. */
static void a_long_life_against_a_model(void **state)
{
    enum { IDS = 700 };
    struct hb_fragment_table *table = *state;
    uint32_t held[IDS] = {0}, in = 0, out = 0, now_ms = 0;
    uint64_t seed = 7;

    for (uint32_t step = 0; step < 300000; step++) {
        uint32_t id;
        struct hb_datagram *datagram;
        void *gone;

        seed = seed * 6364136223846793005 + 1442695040888963407;
        id = (uint32_t)(seed >> 33) % IDS;
        now_ms += (seed >> 60) == 0;
        datagram = find(table, id, now_ms);
        if (held[id] > 0)
            assert_non_null(datagram);
        switch (seed >> 56 & 7) {
        case 0:
            if (datagram != NULL && !datagram->known) {
                hb_fragment_know(table, datagram);
                hb_fragment_release(table, datagram);
                if ((seed >> 20 & 1) != 0)
                    hb_fragment_forget(table, datagram);
            }
            break;
        case 1:
            hb_fragment_expire(table, now_ms);
            break;
        default:
            if (datagram != NULL && datagram->known)
                hb_fragment_forget(table, datagram);
            if (find(table, id, now_ms) == NULL)
                datagram = begin(table, id, now_ms);
            assert_true(hb_fragment_hold(table, datagram, packet(id + 1), now_ms));
            held[id]++;
            in++;
        }
        for (int cause = 0; cause < HB_FRAGMENT_OUTS; cause++) {
            while ((gone = hb_fragment_next_out(table, cause)) != NULL) {
                assert_true(held[(uintptr_t)gone - 1] > 0);
                held[(uintptr_t)gone - 1]--;
                out++;
            }
        }
        assert_int_equal(hb_fragment_held(table), in - out);
    }
    assert_true(out > 1000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(begun_found_and_forgotten),
        TEST(keys_are_compared_whole),
        TEST(the_oldest_makes_way),
        TEST(held_packets_go_in_order),
        TEST(patience_ends),
        TEST(a_flood_of_lone_fragments),
        TEST(places_run_out),
        TEST(bytes_of_a_datagram),
        TEST(what_makes_it_bad),
        TEST(a_last_fragment_too_early),
        TEST(too_many_runs),
        TEST(any_order_against_a_model),
        TEST(a_long_life_against_a_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
