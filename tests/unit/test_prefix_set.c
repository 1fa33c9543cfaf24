/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of source prefixes: by hand, then beside a model that asks every prefix. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "prefix_set.h"

static struct hb_prefix_record make(const char *address, uint8_t length, bool allow)
{
    struct hb_prefix_record record = {.list = 1, .length = length, .allow = allow};

    record.family = strchr(address, ':') != NULL ? HB_FAMILY_IPV6 : HB_FAMILY_IPV4;
    inet_pton(record.family == HB_FAMILY_IPV6 ? AF_INET6 : AF_INET, address, record.address);
    return record;
}

static int compare(const void *a, const void *b)
{
    return hb_prefix_compare(a, b);
}

static void *build(struct hb_prefix_set *set, struct hb_prefix_record *prefixes, uint32_t count,
                   bool others)
{
    void *memory;

    qsort(prefixes, count, sizeof(*prefixes), compare);
    memory = malloc(hb_prefix_set_bytes(prefixes, count) + 1);
    hb_prefix_set_build(set, memory, prefixes, count, others);
    return memory;
}

static bool ask(const struct hb_prefix_set *set, const char *address)
{
    struct hb_prefix_record record = make(address, 0, false);
    bool allowed;

    if (record.family == HB_FAMILY_IPV4) {
        uint32_t number;

        memcpy(&number, record.address, sizeof(number));
        number = ntohl(number);
        hb_prefix_set_find4(&set, &number, 1, &allowed);
    } else {
        struct hb_prefix_edge6 number = hb_prefix_address6(record.address);

        hb_prefix_set_find6(&set, &number, 1, &allowed);
    }
    return allowed;
}

static void the_longest_prefix_decides(void **state)
{
    struct hb_prefix_record prefixes[] = {
        make("10.0.0.0", 8, false),        make("10.1.0.0", 16, true),
        make("10.1.2.3", 32, false),       make("255.255.255.0", 24, false),
        make("2001:db8::", 32, false),     make("2001:db8:1::", 48, true),
        make("2001:db8:1::9", 128, false),
    };
    struct hb_prefix_set set;
    void *memory = build(&set, prefixes, 7, true);

    (void)state;
    assert_true(ask(&set, "9.255.255.255"));
    assert_false(ask(&set, "10.0.0.0"));
    assert_false(ask(&set, "10.0.255.255"));
    assert_true(ask(&set, "10.1.0.0"));
    assert_true(ask(&set, "10.1.2.2"));
    assert_false(ask(&set, "10.1.2.3"));
    assert_true(ask(&set, "10.1.2.4"));
    assert_true(ask(&set, "10.1.255.255"));
    assert_false(ask(&set, "10.2.0.0"));
    assert_true(ask(&set, "11.0.0.0"));
    assert_true(ask(&set, "255.255.254.255"));
    assert_false(ask(&set, "255.255.255.255"));
    assert_true(ask(&set, "0.0.0.0"));
    assert_false(ask(&set, "2001:db8::"));
    assert_true(ask(&set, "2001:db8:1::8"));
    assert_false(ask(&set, "2001:db8:1::9"));
    assert_true(ask(&set, "2001:db8:1:ffff:ffff:ffff:ffff:ffff"));
    assert_false(ask(&set, "2001:db8:2::"));
    assert_true(ask(&set, "2001:db9::"));
    free(memory);
}

/* 0.0.0.0/0 and ::/0 take the place of what is said about others; of one family alone the other
 * keeps it. */
static void all_of_a_family(void **state)
{
    struct hb_prefix_record prefixes[] = {make("0.0.0.0", 0, true), make("10.0.0.0", 8, false)};
    struct hb_prefix_set set;
    void *memory = build(&set, prefixes, 2, false);

    (void)state;
    assert_true(ask(&set, "0.0.0.0"));
    assert_false(ask(&set, "10.9.9.9"));
    assert_true(ask(&set, "255.255.255.255"));
    assert_false(ask(&set, "::1"));
    free(memory);
}

static uint32_t random_state = 3;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 1664525 + 1013904223;
    return (uint32_t)(((uint64_t)random_state * limit) >> 32);
}

static bool ask_slowly(const struct hb_prefix_record *prefixes, uint32_t count, bool others,
                       uint8_t family, const uint8_t address[HB_ADDRESS_SIZE])
{
    int best = -1;
    bool allowed = others;

    for (uint32_t i = 0; i < count; i++) {
        bool holds = prefixes[i].family == family && prefixes[i].length > best;

        for (uint32_t bit = 0; holds && bit < prefixes[i].length; bit++)
            holds = ((prefixes[i].address[bit / 8] ^ address[bit / 8]) & 0x80 >> bit % 8) == 0;
        if (!holds)
            continue;
        best = prefixes[i].length;
        allowed = prefixes[i].allow != 0;
    }
    return allowed;
}

static struct hb_prefix_record make_random(void)
{
    struct hb_prefix_record record = {.family = random_below(2) ? 6 : 4,
                                      .allow = (uint8_t)random_below(2)};

    record.length = (uint8_t)random_below(hb_address_bits(record.family) + 1u);
    for (uint32_t bit = 0; bit < record.length; bit++)
        if (random_below(bit < 4 ? 2 : 12) == 0)
            record.address[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
    return record;
}

/* Sets of many sizes, 64 questions at once, each to a set of its own. */
static void random_sets_match_a_model(void **state)
{
    enum { SETS = 16, PREFIXES = 200 };
    static struct hb_prefix_record prefixes[SETS][PREFIXES];
    struct hb_prefix_set set[SETS];
    uint32_t count[SETS] = {0};
    void *memory[SETS];

    (void)state;
    for (uint32_t s = 0; s < SETS; s++) {
        uint32_t wanted = s == 0 ? 0 : 1 + random_below(PREFIXES - 1);

        while (count[s] < wanted) {
            struct hb_prefix_record record = make_random();
            bool known = false;

            for (uint32_t i = 0; i < count[s]; i++)
                known |= hb_prefix_compare(&record, &prefixes[s][i]) == 0;
            if (!known)
                prefixes[s][count[s]++] = record;
        }
        memory[s] = build(&set[s], prefixes[s], count[s], s % 2 == 0);
    }
    for (uint32_t round = 0; round < 3000; round++) {
        const struct hb_prefix_set *asked4[64], *asked6[64];
        struct hb_prefix_edge6 number6[64];
        uint32_t number4[64];
        bool allowed4[64], allowed6[64], want4[64], want6[64];

        for (uint32_t i = 0; i < 64; i++) {
            uint32_t s = random_below(SETS);
            struct hb_prefix_record near =
                count[s] > 0 ? prefixes[s][random_below(count[s])] : make("10.0.0.0", 8, false);
            uint8_t address[HB_ADDRESS_SIZE];

            memcpy(address, near.address, sizeof(address));
            address[random_below(16)] ^= (uint8_t)(1u << random_below(8));
            asked4[i] = asked6[i] = &set[s];
            want6[i] = ask_slowly(prefixes[s], count[s], s % 2 == 0, 6, address);
            want4[i] = ask_slowly(prefixes[s], count[s], s % 2 == 0, 4, address);
            number6[i] = hb_prefix_address6(address);
            memcpy(&number4[i], address, sizeof(number4[i]));
            number4[i] = ntohl(number4[i]);
        }
        hb_prefix_set_find4(asked4, number4, 64, allowed4);
        hb_prefix_set_find6(asked6, number6, 64, allowed6);
        assert_memory_equal(allowed4, want4, sizeof(want4));
        assert_memory_equal(allowed6, want6, sizeof(want6));
    }
    for (uint32_t s = 0; s < SETS; s++)
        free(memory[s]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_prefix_decides),
        cmocka_unit_test(all_of_a_family),
        cmocka_unit_test(random_sets_match_a_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
