/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "address_prefix.h"

static void test_good_prefixes(void **state)
{
    static const char *const texts[] = {
        "0.0.0.0/0", "198.51.100.128/25", "10.0.0.0/8",      "198.51.100.10/32",
        "::/0",      "2001:db8:0:2::/64", "2001:db8::1/128", "2001:db8::8000/113"};
    struct hb_address_prefix prefix;
    char text[HB_ADDRESS_PREFIX_TEXT];
    bool stray;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_true(hb_address_prefix_parse(texts[i], &prefix, &stray));
        assert_false(stray);
        assert_string_equal(hb_address_prefix_print(&prefix, text), texts[i]);
    }
}

static void test_bad_prefixes(void **state)
{
    static const struct {
        const char *text;
        bool stray;
    } rows[] = {
        {"", false},
        {"198.51.100.0", false},
        {"198.51.100.0/", false},
        {"198.51.100.0/33", false},
        {"198.51.100.0/024", false},
        {"198.51.100.0/-1", false},
        {"198.51.100.0/24 ", false},
        {"198.51.100.0/1000000024", false},
        {"/24", false},
        {"2001:db8::/129", false},
        {"2001:db8::/64/64", false},
        {"198.51.100.129/25", true},
        {"198.51.100.128/24", true},
        {"2001:db8::1/64", true},
    };
    struct hb_address_prefix prefix;
    bool stray;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_false(hb_address_prefix_parse(rows[i].text, &prefix, &stray));
        assert_int_equal(stray, rows[i].stray);
    }
}

/* Every length of both families: the bit before the end of the prefix counts, the one behind does
 * not. */
static void test_what_it_holds(void **state)
{
    (void)state;
    for (uint8_t family = 4; family <= 6; family += 2) {
        for (uint32_t length = 0; length <= (family == 4 ? 32u : 128u); length++) {
            struct hb_address_prefix prefix = {.address = {.family = family},
                                               .length = (uint8_t)length};

            for (uint32_t bit = 0; bit < (family == 4 ? 32u : 128u); bit++) {
                struct hb_address address = {.family = family};

                address.bytes[bit / 8] = (uint8_t)(0x80 >> bit % 8);
                assert_int_equal(hb_address_prefix_holds(&prefix, &address), bit >= length);
                address.family = family == 4 ? 6 : 4;
                assert_false(hb_address_prefix_holds(&prefix, &address));
            }
        }
    }
    assert_false(hb_address_prefix_holds(&(struct hb_address_prefix){0}, &(struct hb_address){0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_prefixes),
        cmocka_unit_test(test_bad_prefixes),
        cmocka_unit_test(test_what_it_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
