/* SPDX-License-Identifier: BSD-3-Clause */
#include "model_fixture.h"

#include <string.h>

#include "rewrite.h"
#include "rewrite_check.h"

static const struct hb_address unset = {0};
static const struct hb_address_prefix no_prefix = {0};
static const struct hb_forwarding_options plain = {.gue = {.port = HB_GUE_PORT},
                                                   .vxlan = {.port = HB_VXLAN_PORT},
                                                   .vxlan_vni = 0x123456,
                                                   .dscp = 10};

static char problem[192];

static struct hb_rewrite_wish wish_of(enum hb_forwarding forwarding)
{
    return (struct hb_rewrite_wish){forwarding, &plain, &unset, &no_prefix};
}

static bool make(const char *to, const struct hb_next_hop *hop, const struct hb_rewrite_wish *wish,
                 struct hb_rewrite *rewrite)
{
    struct hb_address address = address_of(to);

    return hb_rewrite_make(&address, hop, wish, one_port, rewrite, problem, sizeof(problem));
}

static void test_ipv4_by_hand(void **state)
{
    static const uint8_t expected[34] = {
        2,    0, 0,   0,  0,   1,  2,   0, 0,  0, 0, 0x10, 0x08, 0x00, /* Ethernet */
        0x45, 0, 0,   0,  0,   0,  0,   0, 64, 0, 0, 0,                /* patched fields are zero */
        203,  0, 113, 10, 198, 51, 100, 11};
    struct hb_rewrite_wish wish = wish_of(HB_FORWARDING_IPIP);
    struct hb_next_hop hop = resolved_hop();
    struct hb_rewrite rewrite;

    (void)state;
    problem[0] = 'x';
    assert_true(make("198.51.100.11", &hop, &wish, &rewrite));
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
    struct hb_rewrite_wish wish = wish_of(HB_FORWARDING_IPIP);
    struct hb_next_hop hop = resolved_hop();
    struct hb_rewrite rewrite;

    (void)state;
    hop.mtu = 9000; /* the port's 1500 is what fits */
    wish.source = &source;
    assert_true(make("2001:db8:b::1", &hop, &wish, &rewrite));
    assert_int_equal(rewrite.size, 54);
    assert_int_equal(rewrite.inner_max, 1460);
    assert_int_equal(rewrite.bytes[12], 0x86);
    assert_int_equal(rewrite.bytes[14], 0x60);
    assert_int_equal(rewrite.bytes[14 + 7], 64);
    assert_memory_equal(rewrite.bytes + 14 + 8, source.bytes, 16);
    assert_memory_equal(rewrite.bytes + 14 + 24, to.bytes, 16);
}

/* What stands behind the outer IP header, byte by byte, and the table of overheads (BL-19). */
static void test_every_tunnel(void **state)
{
    static const struct {
        enum hb_forwarding forwarding;
        uint32_t inner4, inner6, size;
        uint8_t shim[30];
    } rows[] = {
        {HB_FORWARDING_IPIP, 1480, 1460, 0, {0}},
        {HB_FORWARDING_GRE, 1476, 1456, 4, {0}},
        {HB_FORWARDING_GUE1, 1472, 1452, 8, {0, 0, 0x17, 0xc0}},
        {HB_FORWARDING_GUE, 1468, 1448, 12, {0, 0, 0x17, 0xc0}},
        {HB_FORWARDING_VXLAN,
         1450,
         1430,
         30,
         {0, 0, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0x12, 0x34, 0x56}},
    };
    struct hb_next_hop hop = resolved_hop();
    struct hb_rewrite rewrite;

    (void)state;
    for (uint32_t i = 0; i < 10; i++) {
        struct hb_rewrite_wish wish = wish_of(rows[i / 2].forwarding);
        const char *to = i % 2 ? "2001:db8:b::1" : "198.51.100.11";
        struct hb_address source = address_of("2001:db8:1::1:2:3");
        uint32_t ip = i % 2 ? 40 : 20;
        uint8_t shim[30];

        if (i % 2)
            wish.source = &source;
        memcpy(shim, rows[i / 2].shim, sizeof(shim));
        if (wish.forwarding == HB_FORWARDING_VXLAN) /* made of the addresses' last four bytes */
            memcpy(shim + 16,
                   i % 2 ? (uint8_t[]){2, 'H', 0, 0, 0, 1, 2, 'H', 0, 2, 0, 3}
                         : (uint8_t[]){2, 'H', 198, 51, 100, 11, 2, 'H', 203, 0, 113, 10},
                   12);
        assert_true(make(to, &hop, &wish, &rewrite));
        assert_int_equal(rewrite.forwarding, wish.forwarding);
        assert_int_equal(rewrite.size, 14 + ip + rows[i / 2].size);
        assert_int_equal(rewrite.inner_max, i % 2 ? rows[i / 2].inner6 : rows[i / 2].inner4);
        assert_memory_equal(rewrite.bytes + 14 + ip, shim, rows[i / 2].size);
        assert_int_equal(rewrite.flags, 0);
    }
}

static void test_options_of_tunnels(void **state)
{
    struct hb_forwarding_options options = plain;
    struct hb_rewrite_wish wish = wish_of(HB_FORWARDING_GUE);
    struct hb_address source = address_of("2001:db8:1::99");
    struct hb_next_hop hop = resolved_hop();
    struct hb_rewrite rewrite;

    (void)state;
    wish.options = &options;
    options.gue = (struct hb_udp_options){.port = 4321, .checksum = true, .zero_checksum6 = true};
    options.fragment = HB_REWRITE_FRAGMENT_INNER;
    assert_true(make("198.51.100.11", &hop, &wish, &rewrite));
    assert_int_equal(rewrite.bytes[36] << 8 | rewrite.bytes[37], 4321);
    assert_int_equal(rewrite.flags, HB_REWRITE_UDP_CHECKSUM | HB_REWRITE_FRAGMENT_INNER);
    wish.source = &source;
    assert_true(make("2001:db8:b::1", &hop, &wish, &rewrite));
    assert_int_equal(rewrite.flags, HB_REWRITE_NO_UDP_CHECKSUM6 | HB_REWRITE_FRAGMENT_INNER);
    wish.source = &unset;
    wish.forwarding = HB_FORWARDING_VXLAN;
    memcpy(options.vxlan_mac, "\x02\x01\x02\x03\x04\x05", 6);
    memcpy(options.vxlan_source_mac, "\x02\x0a\x0b\x0c\x0d\x0e", 6);
    assert_true(make("198.51.100.11", &hop, &wish, &rewrite));
    assert_memory_equal(rewrite.bytes + 50, options.vxlan_mac, 6);
    assert_memory_equal(rewrite.bytes + 56, options.vxlan_source_mac, 6);
    assert_int_equal(rewrite.flags, HB_REWRITE_FRAGMENT_INNER);
}

/* BL-08: the prefix is the source of headers without ports; nobody else may live in it. */
static void test_spread_sources(void **state)
{
    struct hb_address_prefix prefix = {address_of("198.51.100.128"), 25};
    struct hb_address source = address_of("198.51.100.10");
    struct hb_next_hop hop = resolved_hop();
    struct hb_rewrite rewrite;

    (void)state;
    for (enum hb_forwarding mode = HB_FORWARDING_IPIP; mode <= HB_FORWARDING_VXLAN; mode++) {
        struct hb_rewrite_wish wish = wish_of(mode);
        bool spread = mode == HB_FORWARDING_IPIP || mode == HB_FORWARDING_GRE;

        wish.prefix = &prefix;
        wish.source = &source;
        assert_true(make("198.51.100.11", &hop, &wish, &rewrite));
        assert_int_equal(rewrite.spread, spread ? 7 : 0);
        assert_memory_equal(rewrite.bytes + 26, spread ? prefix.address.bytes : source.bytes, 4);
        hop.gateway = address_of("198.51.100.129");
        assert_int_equal(make("198.51.100.11", &hop, &wish, &rewrite), !spread);
        if (spread)
            assert_non_null(strstr(problem, "holds 198.51.100.129, which is the next hop"));
        hop = resolved_hop();
        hop.source = address_of("198.51.100.200");
        assert_int_equal(make("198.51.100.11", &hop, &wish, &rewrite), !spread);
        hop = resolved_hop();
    }
}

/* BL-35: the tag of the next hop's VLAN; its bytes are none of the MTU's. */
static void test_vlan(void **state)
{
    static const uint8_t expected[18] = {2, 0, 0,    0,    0,    1,    2,    0,    0,
                                         0, 0, 0x10, 0x81, 0x00, 0x04, 0x92, 0x08, 0x00};
    struct hb_next_hop hop = resolved_hop();
    struct hb_rewrite rewrite;

    (void)state;
    strcpy(hop.ifname, "eth0.1170");
    hop.ifindex = 12;
    hop.port_ifindex = 7;
    hop.vlan_type = 0x8100;
    hop.vlan_id = 1170;
    for (enum hb_forwarding mode = HB_FORWARDING_IPIP; mode <= HB_FORWARDING_L3DSR; mode++) {
        struct hb_rewrite_wish wish = wish_of(mode);
        struct hb_next_hop untagged = resolved_hop();
        struct hb_rewrite plain_one;

        hop.gateway = untagged.gateway = address_of("198.51.100.11");
        assert_true(make("198.51.100.11", &untagged, &wish, &plain_one));
        assert_true(make("198.51.100.11", &hop, &wish, &rewrite));
        assert_int_equal(rewrite.l2_size, 18);
        assert_int_equal(rewrite.size, plain_one.size + 4);
        assert_int_equal(rewrite.inner_max, plain_one.inner_max);
        assert_memory_equal(rewrite.bytes, expected, 16);
        assert_memory_equal(rewrite.bytes + 16, plain_one.bytes + 12, sizeof(rewrite.bytes) - 16);
    }
    hop.port_ifindex = 8;
    assert_false(make("198.51.100.11", &hop, &(struct hb_rewrite_wish[]){wish_of(1)}[0], &rewrite));
    assert_non_null(strstr(problem, "leaves by eth0.1170, which is not a port"));
}

static void test_l2_and_l3dsr(void **state)
{
    struct hb_rewrite_wish l2 = wish_of(HB_FORWARDING_L2), l3dsr = wish_of(HB_FORWARDING_L3DSR);
    struct hb_address six = address_of("2001:db8:b::1");
    struct hb_next_hop hop = resolved_hop();
    struct hb_rewrite rewrite;

    (void)state;
    assert_true(make("198.51.100.11", &hop, &l3dsr, &rewrite));
    assert_int_equal(rewrite.size, 14);
    assert_int_equal(rewrite.inner_max, 1500);
    assert_int_equal(rewrite.dscp, 10);
    assert_memory_equal(rewrite.bytes + 14, ((uint8_t[]){198, 51, 100, 11, 0}), 5);
    assert_true(make("2001:db8:b::1", &hop, &l3dsr, &rewrite));
    assert_int_equal(rewrite.bytes[12], 0x86);
    assert_memory_equal(rewrite.bytes + 14, six.bytes, 16);

    hop.gateway = address_of("198.51.100.1");
    assert_false(make("198.51.100.11", &hop, &l2, &rewrite));
    assert_non_null(strstr(problem, "198.51.100.11 is behind 198.51.100.1; forwarding by l2"));
    hop.gateway = address_of("198.51.100.11");
    assert_true(make("198.51.100.11", &hop, &l2, &rewrite));
    assert_int_equal(rewrite.size, 14);
    assert_int_equal(rewrite.dscp, 0);
    assert_memory_equal(rewrite.bytes + 12, "\0\0\0\0", 4);
}

/* The dataplane takes every rewrite that is made here. */
static void test_the_dataplane_accepts_them(void **state)
{
    static const uint8_t fragments[] = {0, HB_REWRITE_FRAGMENT_INNER, HB_REWRITE_FRAGMENT_OUTER};
    struct hb_address source6 = address_of("2001:db8:1::99");

    (void)state;
    for (uint32_t i = 0; i < 7 * 2 * 3 * 4; i++) {
        enum hb_forwarding mode = 1 + i % 7;
        struct hb_rewrite_wish wish = wish_of(mode);
        struct hb_forwarding_options options = plain;
        struct hb_backend_record record = {.use = HB_BACKEND_ACTIVE};
        const char *to = i / 7 % 2 ? "2001:db8:b::1" : "198.51.100.11";
        struct hb_next_hop hop = resolved_hop();
        struct hb_address address = address_of(to);

        options.fragment = fragments[i / 14 % (hb_forwarding_is_tunnel(mode) ? 3 : 2)];
        options.gue.checksum = options.vxlan.checksum = (i / 42 & 1) != 0;
        options.gue.zero_checksum6 = options.vxlan.zero_checksum6 = (i / 42 & 2) != 0;
        wish.options = &options;
        if (address.family == HB_FAMILY_IPV6)
            wish.source = &source6;
        hop.gateway = address;
        record.family = address.family;
        memcpy(record.address, address.bytes, sizeof(record.address));
        assert_true(make(to, &hop, &wish, &record.rewrite));
        if (!hb_rewrite_check(&record, problem, sizeof(problem)))
            fail_msg("%s to %s: %s", hb_forwarding_name(mode), to, problem);
    }
}

static void test_problems_name_the_remedy(void **state)
{
    struct hb_rewrite_wish wish = wish_of(HB_FORWARDING_IPIP);
    struct hb_next_hop hop = resolved_hop();
    struct hb_rewrite rewrite, before;

    (void)state;
    memset(&rewrite, 0x5a, sizeof(rewrite));
    before = rewrite;
    hop.source = unset;
    assert_false(make("198.51.100.11", &hop, &wish, &rewrite));
    assert_non_null(strstr(problem, "tunnel.source "));
    /* The same name with another index is an interface of another namespace. */
    hop.ifindex = 8;
    assert_false(make("198.51.100.11", &hop, &wish, &rewrite));
    assert_non_null(strstr(problem, "--interface eth0"));
    hop.resolved = false;
    strcpy(hop.problem, "no route");
    assert_false(make("198.51.100.11", &hop, &wish, &rewrite));
    assert_string_equal(problem, "no route");
    assert_memory_equal(&rewrite, &before, sizeof(rewrite));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ipv4_by_hand),
        cmocka_unit_test(test_ipv6_and_configured_source),
        cmocka_unit_test(test_every_tunnel),
        cmocka_unit_test(test_options_of_tunnels),
        cmocka_unit_test(test_spread_sources),
        cmocka_unit_test(test_vlan),
        cmocka_unit_test(test_l2_and_l3dsr),
        cmocka_unit_test(test_the_dataplane_accepts_them),
        cmocka_unit_test(test_problems_name_the_remedy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
