/* SPDX-License-Identifier: BSD-3-Clause */
/* Configurations at and over every limit, and ones that are made to use up memory or time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "config_fixture.h"
#include "config_internal.h"

struct text {
    char *bytes;
    size_t length, room;
};

/* Appends; one piece is shorter than 128 bytes. */
static void add(struct text *text, const char *format, ...)
{
    va_list arguments;

    if (text->room - text->length < 128) {
        text->room = text->room * 2 + 256;
        text->bytes = realloc(text->bytes, text->room);
        assert_non_null(text->bytes);
    }
    va_start(arguments, format);
    text->length += (size_t)vsnprintf(text->bytes + text->length, 128, format, arguments);
    va_end(arguments);
}

/* A configuration with so many of everything; the caller frees it. */
static char *make_large(unsigned pools, unsigned backends, unsigned services)
{
    struct text text = {0};

    add(&text, "seed: 0123456789abcdef\npools:\n");
    for (unsigned p = 0; p < pools; p++) {
        add(&text, "- name: p%u\n  table_size: 5000011\n  health: {type: none}\n  backends:\n", p);
        for (unsigned b = 0; b < backends; b++)
            add(&text, "  - {name: b%u, address: 10.%u.%u.%u}\n", b, b >> 16 & 255, b >> 8 & 255,
                b & 255);
    }
    add(&text, "services:\n");
    for (unsigned s = 0; s < services; s++)
        add(&text, "- {name: s%u, vip: 192.0.2.1, protocol: tcp, port: %u, pool: p%u}\n", s, s + 1,
            s % pools);
    return text.bytes;
}

static void check_limit(unsigned pools, unsigned backends, unsigned services, const char *complaint)
{
    struct complaints complaints = {0};
    char *text = make_large(pools, backends, services);
    struct hb_config *config = parse(text, &complaints);

    if (complaint == NULL) {
        print_complaints(&complaints);
        assert_non_null(config);
        assert_int_equal(complaints.errors, 0);
    } else {
        assert_null(config);
        if (!has_complaint(&complaints, false, complaint)) {
            print_complaints(&complaints);
            fail_msg("expected \"%s\"", complaint);
        }
    }
    hb_config_free(config);
    drop_complaints(&complaints);
    free(text);
}

/* Services with so many denied sources, all different; then one with the list of the first again.
 */
static char *make_lists(unsigned services, unsigned prefixes)
{
    struct text text = {0};

    add(&text, "seed: 0123456789abcdef\npools:\n- name: p0\n  health: {type: none}\n"
               "  backends:\n  - {name: b, address: 198.51.100.1}\n");
    add(&text, "services:\n");
    for (unsigned s = 0; s <= services; s++) {
        add(&text, "- {name: s%u, vip: 192.0.2.1, protocol: tcp, port: %u, pool: p0, deny: [", s,
            s + 1);
        for (unsigned i = 0; i < prefixes; i++)
            add(&text, "%s10.%u.%u.%u", i > 0 ? "," : "", s % services << 2 | i >> 16, i >> 8 & 255,
                i & 255);
        add(&text, "]}\n");
    }
    return text.bytes;
}

static void test_bl85_prefixes(void **state)
{
    static const struct {
        unsigned prefixes;
        const char *complaint;
    } rows[] = {
        {HB_PREFIXES_MAX / 2, NULL},
        {HB_PREFIXES_MAX / 2 + 1,
         "t: services: 262146 prefixes in all \"allow\" and \"deny\" lists, equal lists counted "
         "once, but the limit is 262144; join some"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct complaints complaints = {0};
        char *text = make_lists(2, rows[i].prefixes);
        struct hb_config *config = parse(text, &complaints);

        print_complaints(&complaints);
        assert_int_equal(config != NULL, rows[i].complaint == NULL);
        assert_int_equal(complaints.errors, rows[i].complaint != NULL);
        if (rows[i].complaint != NULL)
            assert_true(has_complaint(&complaints, false, rows[i].complaint));
        hb_config_free(config);
        drop_complaints(&complaints);
        free(text);
    }
}

/* BL-85: one more than the limit is refused as a whole, and the limit is named. */
static void test_bl85_limits(void **state)
{
    (void)state;
    check_limit(1, 1, HB_SERVICES_MAX, NULL);
    check_limit(1, 1, HB_SERVICES_MAX + 1,
                "t:9: services: 4097 entries, but the limit is 4096; remove some");
    check_limit(HB_POOLS_MAX, 1, HB_POOLS_MAX, NULL);
    check_limit(HB_POOLS_MAX + 1, 1, 1,
                "t:3: pools: 4097 entries, but the limit is 4096; remove some");
    check_limit(1, HB_BACKENDS_MAX, 1, NULL);
    check_limit(1, HB_BACKENDS_MAX + 1, 1,
                "t:7: pools[0].backends: 65536 entries, but the limit is 65535; remove some");
    check_limit(2, 32768, 2,
                "t: pools: 65536 backends in all, but the limit is 65535; remove some");
}

/* BL-61 */
static void test_bl61_more_backends_than_slots(void **state)
{
    struct complaints complaints = {0};
    char *text = make_large(1, 252, 1);
    struct hb_config *config;

    (void)state;
    memcpy(strstr(text, "5000011"), "    251", 7);
    config = parse(text, &complaints);
    assert_null(config);
    assert_true(
        has_complaint(&complaints, false,
                      "t:4: pools[0].table_size: 251 slots are too few for 252 backends with a "
                      "weight; the smallest prime that will do is 257"));
    drop_complaints(&complaints);
    memcpy(strstr(text, "    251"), "    257", 7);
    config = parse(text, &complaints);
    assert_non_null(config);
    assert_true(
        has_complaint(&complaints, true,
                      "t:4: pools[0].table_size: 257 slots for 252 backends: shares can be off "
                      "by about 98.1 %; 25219 or more keeps that below 1 %"));
    hb_config_free(config);
    drop_complaints(&complaints);
    free(text);
}

/* More weight than a ring may have points, whatever the virtual nodes; and more backends than the
 * largest table has room for, where chance decides. */
static void test_ring_limits(void **state)
{
    struct complaints complaints = {0};
    struct text text = {0};

    (void)state;
    add(&text, "seed: 0123456789abcdef\npools:\n- name: p\n  algorithm: ring\n  virtual_nodes: 1\n"
               "  table_size: 65537\n");
    add(&text, "  backends:\n");
    for (unsigned b = 0; b < 257; b++)
        add(&text, "  - {name: b%u, address: 10.0.%u.%u, weight: 65535}\n", b, b >> 8, b & 255);
    add(&text, "services:\n- {name: s, vip: 192.0.2.1, protocol: tcp, port: 1, pool: p}\n");
    assert_null(parse(text.bytes, &complaints));
    print_complaints(&complaints);
    assert_true(has_complaint(&complaints, false,
                              "t:5: pools[0].virtual_nodes: weights of 16842495 in all are more "
                              "than the 16777216 points that a ring may have; lower all weights"));
    drop_complaints(&complaints);
    free(text.bytes);
}

/* A file of nothing but faults: what is kept is bounded, and it says so. */
static void test_complaints_are_bounded(void **state)
{
    struct complaints complaints = {0};
    struct text text = {0};

    (void)state;
    for (int i = 0; i < 5000; i++)
        add(&text, "unknown-key-%d: 1\n", i);
    assert_null(parse(text.bytes, &complaints));
    assert_int_equal(complaints.count, HB_CONFIG_COMPLAINTS_MAX + 1);
    assert_string_equal(complaints.messages[HB_CONFIG_COMPLAINTS_MAX],
                        "t: there is more; mend these first");
    drop_complaints(&complaints);
    free(text.bytes);
}

/* A few hundred bytes that would stand for a billion values. */
static void test_billion_laughs(void **state)
{
    char text[4096] = "a: &a [x, x, x, x, x, x, x, x, x]\n";
    struct complaints complaints = {0};

    (void)state;
    for (char c = 'b'; c < 'k'; c++) {
        char before = (char)(c - 1);

        snprintf(text + strlen(text), sizeof(text) - strlen(text),
                 "%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c, before, before,
                 before, before, before, before, before, before, before);
    }
    assert_null(parse(text, &complaints));
    assert_int_equal(complaints.errors, 10 + 9 * 9);
    drop_complaints(&complaints);
}

static void test_deep_nesting(void **state)
{
    struct complaints complaints = {0};
    char *text = malloc(100001);

    (void)state;
    memset(text, '[', 100000);
    text[99999] = '\n';
    text[100000] = '\0';
    assert_null(parse(text, &complaints));
    assert_int_equal(complaints.errors, 1);
    drop_complaints(&complaints);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bl85_limits),
        cmocka_unit_test(test_bl85_prefixes),
        cmocka_unit_test(test_bl61_more_backends_than_slots),
        cmocka_unit_test(test_ring_limits),
        cmocka_unit_test(test_complaints_are_bounded),
        cmocka_unit_test(test_billion_laughs),
        cmocka_unit_test(test_deep_nesting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
