/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses: what is accepted, and the one text that comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "address.h"

static void test_canonical_text(void **state)
{
    static const char *const rows[][2] = {
        {"192.0.2.10", "192.0.2.10"},
        {"0.0.0.0", "0.0.0.0"},
        {"255.255.255.255", "255.255.255.255"},
        {"::", "::"},
        {"::1", "::1"},
        {"2001:db8::11", "2001:db8::11"},
        {"2001:0db8:0:0::11", "2001:db8::11"}, /* BL-58, BL-75 */
        {"2001:DB8:0:0:0:0:0:11", "2001:db8::11"},
        {"2001:db8:0:1:0:0:0:10", "2001:db8:0:1::10"},
        {"2001:db8::1:0:0:1", "2001:db8::1:0:0:1"},       /* of equal runs the first */
        {"2001:0:0:1:0:0:0:1", "2001:0:0:1::1"},          /* the longest run */
        {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"}, /* a single zero group stays */
        {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
        {"::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"},
        {"1::", "1::"},
        {"::ffff:192.0.2.1", "::ffff:192.0.2.1"},
        {"::ffff:c000:201", "::ffff:192.0.2.1"},
        {"::192.0.2.1", "::c000:201"}, /* no special form for the obsolete kind */
        {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    };
    struct hb_address address, again;
    char text[HB_ADDRESS_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(hb_address_parse(rows[i][0], &address));
        assert_string_equal(hb_address_print(&address, text), rows[i][1]);
        assert_true(hb_address_parse(text, &again));
        assert_int_equal(hb_address_compare(&address, &again), 0);
    }
}

static void test_refused(void **state)
{
    static const char *const texts[] = {
        "",
        " ",
        "192.0.2",
        "192.0.2.10 ",
        " 192.0.2.10",
        "192.0.2.256",
        "192.0.2.-1",
        "192.0.2.1.",
        "192.0.2.10.1",
        "192.0.2.10/32",
        "192.0.2.10:80",
        "0x7f.0.0.1",
        "3221225994",
        "web1",
        "198.51.100.011",
        "01.2.3.4",
        "1.2.3.00",
        "1..2.3",
        ":",
        ":::",
        "1::2::3",
        "12345::",
        "1:2:3:4:5:6:7",
        "g::1",
        "1:2:3:4:5:6:7:8:9",
        "fe80::1%eth0",
        "2001:db8::/32",
        "[2001:db8::1]",
        "::ffff:192.0.2.01",
        "::1.2.3",
    };
    struct hb_address address = {.family = 99};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (hb_address_parse(texts[i], &address))
            fail_msg("\"%s\" was accepted", texts[i]);
        assert_int_equal(address.family, 99); /* untouched */
    }
}

static void test_bytes_and_family(void **state)
{
    static const uint8_t ipv4[HB_ADDRESS_SIZE] = {192, 0, 2, 10};
    static const uint8_t ipv6[HB_ADDRESS_SIZE] = {0x20, 1, 0xd, 0xb8, [15] = 0x10};
    struct hb_address address;
    char text[HB_ADDRESS_TEXT];

    (void)state;
    memset(&address, 0xff, sizeof(address));
    assert_true(hb_address_parse("192.0.2.10", &address));
    assert_int_equal(address.family, HB_FAMILY_IPV4);
    assert_memory_equal(address.bytes, ipv4, sizeof(ipv4)); /* the rest is zero */
    assert_true(hb_address_parse("2001:db8::10", &address));
    assert_int_equal(address.family, HB_FAMILY_IPV6);
    assert_memory_equal(address.bytes, ipv6, sizeof(ipv6));
    address.family = 0;
    assert_string_equal(hb_address_print(&address, text), "none");
}

static void test_compare(void **state)
{
    struct hb_address low, high, other;

    (void)state;
    assert_true(hb_address_parse("192.0.2.9", &low));
    assert_true(hb_address_parse("192.0.2.200", &high));
    assert_true(hb_address_parse("c000:209::", &other)); /* the bytes of `low`, another family */
    assert_int_equal(hb_address_compare(&low, &high), -1);
    assert_int_equal(hb_address_compare(&high, &low), 1);
    assert_int_equal(hb_address_compare(&low, &low), 0);
    assert_memory_equal(low.bytes, other.bytes, 4);
    assert_int_equal(hb_address_compare(&high, &other), -1);
    assert_int_equal(hb_address_compare(&other, &high), 1);
}

static void test_address_and_port(void **state)
{
    static const struct {
        const char *text, *address;
        int port; /* -1: refused */
    } rows[] = {
        {"192.0.2.10:80", "192.0.2.10", 80},
        {"192.0.2.10:0", "192.0.2.10", 0},
        {"192.0.2.10:40000", "192.0.2.10", 40000}, /* BL-86 */
        {"192.0.2.10:65535", "192.0.2.10", 65535},
        {"[2001:db8::1]:443", "2001:db8::1", 443},
        {"[::]:1", "::", 1},
        {"192.0.2.10:65536", "", -1},
        {"192.0.2.10:99999", "", -1},
        {"192.0.2.10:4294967376", "", -1},
        {"192.0.2.10:-1", "", -1},
        {"192.0.2.10:+80", "", -1},
        {"192.0.2.10:080", "", -1},
        {"192.0.2.10:80 ", "", -1},
        {"192.0.2.10:http", "", -1},
        {"192.0.2.10:", "", -1},
        {"192.0.2.10", "", -1},
        {":80", "", -1},
        {"", "", -1},
        {"[", "", -1},
        {"[]", "", -1},
        {"[]:80", "", -1},
        {"[192.0.2.10]:80", "", -1},
        {"2001:db8::1:443", "", -1},
        {"[2001:db8::1]443", "", -1},
        {"[2001:db8::1]", "", -1},
        {"[2001:db8::1", "", -1},
        {"[1111:1111:1111:1111:1111:1111:1111:1111:1111:1111:1111]:80", "", -1},
    };
    struct hb_address address;
    char text[HB_ADDRESS_TEXT];
    uint16_t port;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool accepted = hb_address_port_parse(rows[i].text, &address, &port);

        if (accepted != (rows[i].port >= 0))
            fail_msg("\"%s\" was %s", rows[i].text, accepted ? "accepted" : "refused");
        if (accepted) {
            assert_int_equal(port, rows[i].port);
            assert_string_equal(hb_address_print(&address, text), rows[i].address);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canonical_text),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bytes_and_family), cmocka_unit_test(test_compare),
        cmocka_unit_test(test_address_and_port),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
