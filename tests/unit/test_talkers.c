/* SPDX-License-Identifier: BSD-3-Clause */
/* The sketch of top talkers: exact while there is room, within its bounds after that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "talkers.h"

#define SAMPLES 1000000

static struct hb_talkers sketch;
static struct hb_talker entries[HB_TALKERS_MAX];

static void begin(uint32_t size)
{
    memset(entries, 0, sizeof(entries));
    hb_talkers_init(&sketch, entries, size, 0x1234567890abcdef);
}

static void add4(uint32_t source, uint16_t service)
{
    hb_talkers_add(&sketch, HB_FAMILY_IPV4, &source, service, 100);
}

static const struct hb_talker *find4(uint32_t source, uint16_t service)
{
    for (uint32_t e = 0; e < HB_TALKERS_MAX; e++) {
        if (entries[e].family == HB_FAMILY_IPV4 && entries[e].service == service &&
            memcmp(entries[e].source, &source, sizeof(source)) == 0)
            return &entries[e];
    }
    return NULL;
}

/* By hand: three places, A A B C, then D takes the place of B or C, whose count was 1. */
static void test_by_hand(void **state)
{
    (void)state;
    begin(3);
    add4('A', 0);
    add4('A', 0);
    add4('B', 0);
    add4('C', 0);
    assert_int_equal(find4('A', 0)->count, 2);
    assert_int_equal(find4('A', 0)->bytes, 200);
    assert_int_equal(find4('A', 0)->error, 0);
    add4('D', 0);
    assert_int_equal(find4('D', 0)->count, 2);
    assert_int_equal(find4('D', 0)->error, 1);
    assert_int_equal(find4('D', 0)->bytes, 100);
    assert_true((find4('B', 0) == NULL) != (find4('C', 0) == NULL));
    /* The other one of them is next. */
    add4('E', 0);
    assert_null(find4('B', 0));
    assert_null(find4('C', 0));
    /* All have 2 now: whoever comes takes over 2. */
    add4('F', 0);
    assert_int_equal(find4('F', 0)->count, 3);
    assert_int_equal(find4('F', 0)->error, 2);
}

static void test_keys_are_source_family_and_service(void **state)
{
    const uint8_t six[16] = {'A'};

    (void)state;
    begin(HB_TALKERS_MAX);
    add4('A', 1);
    add4('A', 2);
    hb_talkers_add(&sketch, HB_FAMILY_IPV6, six, 1, 1);
    hb_talkers_add(&sketch, HB_FAMILY_IPV6, six, 1, 1);
    assert_int_equal(sketch.used, 3);
    assert_int_equal(find4('A', 1)->count, 1);
    assert_int_equal(find4('A', 2)->count, 1);
    for (uint32_t e = 0; e < 3; e++)
        assert_int_equal(entries[e].version % 2, 0);
}

static uint64_t next_random(uint64_t *x)
{
    *x = *x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *x >> 33;
}

/* One source in ten samples, and all others once each: it is found, and so are the bounds. */
static void test_a_tenth_is_found_among_a_million(void **state)
{
    uint64_t random = 7, true_count = 0, least = UINT64_MAX, sum = 0;
    const struct hb_talker *hot;

    (void)state;
    begin(HB_TALKERS_MAX);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        bool is_hot = next_random(&random) % 10 == 0;

        true_count += is_hot;
        add4(is_hot ? 1 : i + 1000, 3);
    }
    hot = find4(1, 3);
    assert_non_null(hot);
    assert_true(hot->count >= true_count);
    assert_true(hot->count - hot->error <= true_count);
    assert_true(hot->error <= SAMPLES / HB_TALKERS_MAX);
    for (uint32_t e = 0; e < HB_TALKERS_MAX; e++) {
        assert_true(entries[e].count <= hot->count);
        assert_int_equal(entries[e].count, sketch.count[e]);
        least = entries[e].count < least ? entries[e].count : least;
        sum += entries[e].count;
    }
    /* What makes the bound: the counts add up to the samples, so the least is at most n / m. */
    assert_int_equal(sum, SAMPLES);
    assert_true(least <= SAMPLES / HB_TALKERS_MAX);
    print_message("true %lu, told %lu to %lu of %u samples\n", (unsigned long)true_count,
                  (unsigned long)(hot->count - hot->error), (unsigned long)hot->count, SAMPLES);
}

/* Bounds hold for every entry under any order of samples; here against an exact count. */
static void test_bounds_for_all(void **state)
{
    enum { SOURCES = 2000 };
    static uint64_t exact[SOURCES];

    (void)state;
    for (uint32_t size = 1; size <= HB_TALKERS_MAX; size = size * 2 + 1) {
        uint64_t random = size, n = 0;

        begin(size);
        memset(exact, 0, sizeof(exact));
        for (uint32_t i = 0; i < 50000; i++) {
            /* The product of two: small numbers come often. */
            uint32_t source = (uint32_t)(next_random(&random) % SOURCES *
                                         (next_random(&random) % SOURCES) / SOURCES);

            exact[source]++;
            add4(source, 0);
            n++;
        }
        for (uint32_t s = 0; s < SOURCES; s++) {
            const struct hb_talker *entry = find4(s, 0);

            if (entry != NULL) {
                assert_true(entry->count >= exact[s]);
                assert_true(entry->count - entry->error <= exact[s]);
                assert_true(entry->error <= n / size);
            } else {
                assert_true(exact[s] <= n / size);
            }
        }
    }
}

static void test_each_packet_of_a_burst_is_as_likely(void **state)
{
    uint32_t seen[64] = {0};

    (void)state;
    begin(1);
    for (uint32_t i = 0; i < 640000; i++) {
        uint32_t choice = hb_talkers_choose(&sketch, 64);

        assert_true(choice < 64);
        seen[choice]++;
    }
    for (uint32_t p = 0; p < 64; p++)
        assert_in_range(seen[p], 9400, 10600); /* six standard deviations */
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(hb_talkers_choose(&sketch, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_keys_are_source_family_and_service),
        cmocka_unit_test(test_a_tenth_is_found_among_a_million),
        cmocka_unit_test(test_bounds_for_all),
        cmocka_unit_test(test_each_packet_of_a_burst_is_as_likely),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
