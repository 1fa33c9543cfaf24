/* SPDX-License-Identifier: BSD-3-Clause */
#include "model_fixture.h"

#include <string.h>

#include "rewrite.h"

static const struct hb_address unset = {0};

static void test_ipv4_by_hand(void **state)
{
    static const uint8_t expected[34] = {
        2,    0, 0,   0,  0,   1,  2,   0, 0,  0, 0, 0x10, 0x08, 0x00, /* Ethernet */
        0x45, 0, 0,   0,  0,   0,  0,   0, 64, 0, 0, 0,                /* patched fields are zero */
        203,  0, 113, 10, 198, 51, 100, 11};
    struct hb_address to = address_of("198.51.100.11");
    struct hb_next_hop hop = resolved_hop();
    struct hb_rewrite rewrite;
    char problem[128] = "x";

    (void)state;
    assert_true(hb_rewrite_make(&to, &hop, &unset, one_port, &rewrite, problem, sizeof(problem)));
    assert_string_equal(problem, "");
    assert_int_equal(rewrite.size, 34);
    assert_int_equal(rewrite.l2_size, 14);
    assert_int_equal(rewrite.family, HB_FAMILY_IPV4);
    assert_int_equal(rewrite.port, 3);
    assert_int_equal(rewrite.inner_max, 1480);
    assert_memory_equal(rewrite.bytes, expected, sizeof(expected));
    assert_int_equal(rewrite.bytes[34], 0);
}

static void test_ipv6_and_configured_source(void **state)
{
    struct hb_address to = address_of("2001:db8:b::1"), source = address_of("2001:db8:1::99");
    struct hb_next_hop hop = resolved_hop();
    struct hb_rewrite rewrite;
    char problem[128];

    (void)state;
    hop.mtu = 9000; /* the port's 1500 is what fits */
    assert_true(hb_rewrite_make(&to, &hop, &source, one_port, &rewrite, problem, sizeof(problem)));
    assert_int_equal(rewrite.size, 54);
    assert_int_equal(rewrite.inner_max, 1460);
    assert_int_equal(rewrite.bytes[12], 0x86);
    assert_int_equal(rewrite.bytes[14], 0x60);
    assert_int_equal(rewrite.bytes[14 + 7], 64);
    assert_memory_equal(rewrite.bytes + 14 + 8, source.bytes, 16);
    assert_memory_equal(rewrite.bytes + 14 + 24, to.bytes, 16);
}

static void test_problems_name_the_remedy(void **state)
{
    struct hb_address to = address_of("198.51.100.11");
    struct hb_next_hop hop = resolved_hop();
    struct hb_rewrite rewrite, before;
    char problem[192];

    (void)state;
    memset(&rewrite, 0x5a, sizeof(rewrite));
    before = rewrite;
    hop.source = unset;
    assert_false(hb_rewrite_make(&to, &hop, &unset, one_port, &rewrite, problem, sizeof(problem)));
    assert_non_null(strstr(problem, "tunnel.source "));
    /* The same name with another index is an interface of another namespace. */
    hop.ifindex = 8;
    assert_false(hb_rewrite_make(&to, &hop, &unset, one_port, &rewrite, problem, sizeof(problem)));
    assert_non_null(strstr(problem, "--interface eth0"));
    hop.resolved = false;
    strcpy(hop.problem, "no route");
    assert_false(hb_rewrite_make(&to, &hop, &unset, one_port, &rewrite, problem, sizeof(problem)));
    assert_string_equal(problem, "no route");
    assert_memory_equal(&rewrite, &before, sizeof(rewrite));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ipv4_by_hand),
        cmocka_unit_test(test_ipv6_and_configured_source),
        cmocka_unit_test(test_problems_name_the_remedy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
