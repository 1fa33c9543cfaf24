/* SPDX-License-Identifier: BSD-3-Clause */
/* Forwarding modes in the configuration: what is read, and what is refused, word for word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "config_fixture.h"

/* A row is the text of a whole file between these. */
#define SEED "seed: 0123456789abcdef\n"
#define POOL "pools:\n  - name: web\n    table_size: 251\n    health: { type: none }\n"
#define BACKENDS                                                                                   \
    "    backends: [ { name: web1, address: 198.51.100.11 }, { name: web2, address: "              \
    "198.51.100.12 } ]\n"
#define SERVICES                                                                                   \
    "services:\n  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web }\n"
#define FILE_OF(keys) SEED POOL keys BACKENDS SERVICES

static struct hb_config *accept(const char *text)
{
    struct complaints complaints = {0};
    struct hb_config *config = parse(text, &complaints);

    if (config == NULL || complaints.count != 0) {
        print_complaints(&complaints);
        fail_msg("refused: %s", text);
    }
    drop_complaints(&complaints);
    return config;
}

static void test_what_is_read(void **state)
{
    static const struct {
        const char *word;
        enum hb_forwarding forwarding;
    } words[] = {
        {"ipip", HB_FORWARDING_IPIP},
        {"gue", HB_FORWARDING_GUE},
        {"gre", HB_FORWARDING_GRE},
        {"l2", HB_FORWARDING_L2},
    };
    const struct hb_forwarding_options *encap;
    struct hb_config *config;
    char text[1024];

    (void)state;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        snprintf(text, sizeof(text), SEED POOL "    forwarding: %s\n" BACKENDS SERVICES,
                 words[i].word);
        config = accept(text);
        assert_int_equal(config->pools[0].forwarding, words[i].forwarding);
        assert_int_equal(config->pools[0].encap.fragment, 0);
        assert_int_equal(config->pools[0].encap.gue.port, 6080);
        assert_int_equal(config->pools[0].encap.vxlan.port, 4789);
        hb_config_free(config);
    }
    config = accept(
        FILE_OF("    forwarding: gue\n    fragment: inner\n"
                "    gue: { port: 7000, variant: 1, checksum: true, zero_checksum6: true }\n"));
    encap = &config->pools[0].encap;
    assert_int_equal(config->pools[0].forwarding, HB_FORWARDING_GUE1);
    assert_int_equal(encap->gue.port, 7000);
    assert_true(encap->gue.checksum && encap->gue.zero_checksum6);
    assert_int_equal(encap->fragment, HB_REWRITE_FRAGMENT_INNER);
    hb_config_free(config);

    config = accept(FILE_OF("    forwarding: vxlan\n    fragment: outer\n"
                            "    vxlan: { vni: 16777215, mac: 02:00:5e:AA:bb:01, "
                            "source_mac: 02:00:00:00:00:02 }\n"));
    encap = &config->pools[0].encap;
    assert_int_equal(config->pools[0].forwarding, HB_FORWARDING_VXLAN);
    assert_int_equal(encap->vxlan_vni, 16777215);
    assert_memory_equal(encap->vxlan_mac, "\x02\x00\x5e\xaa\xbb\x01", 6);
    assert_memory_equal(encap->vxlan_source_mac, "\x02\x00\x00\x00\x00\x02", 6);
    assert_int_equal(encap->fragment, HB_REWRITE_FRAGMENT_OUTER);
    assert_false(encap->vxlan.checksum);
    hb_config_free(config);

    config = accept(FILE_OF("    forwarding: l3dsr\n    l3dsr: { dscp: 63 }\n"));
    assert_int_equal(config->pools[0].forwarding, HB_FORWARDING_L3DSR);
    assert_int_equal(config->pools[0].encap.dscp, 63);
    hb_config_free(config);

    config = accept("tunnel: { source_prefix: 198.51.100.128/25, "
                    "source_prefix6: \"2001:db8:0:2::/64\" }\n" FILE_OF(""));
    assert_int_equal(config->tunnel_prefix.length, 25);
    assert_int_equal(config->tunnel_prefix6.length, 64);
    hb_config_free(config);
}

static const struct row {
    const char *text;
    const char *complaint;
} rows[] = {
    /* Keys and values. */
    {FILE_OF("    forwarding: nut\n"),
     "t:6: pools[0].forwarding: expected ipip, gue, gre, vxlan, l2, l3dsr, nat or full_nat, found "
     "\"nut\""},
    {FILE_OF("    forwarding: gue\n    gue: { variant: 2 }\n"),
     "t:7: pools[0].gue.variant: expected 0 (with the GUE header) or 1 (without), found \"2\""},
    {FILE_OF("    forwarding: gue\n    gue: { port: 0 }\n"),
     "t:7: pools[0].gue.port: expected a port from 1 to 65535, found \"0\""},
    {FILE_OF("    forwarding: gue\n    gue: { checksums: true }\n"),
     "t:7: pools[0].gue: unknown key \"checksums\"; did you mean \"checksum\"?"},
    {FILE_OF("    forwarding: gue\n    gue: 6080\n"),
     "t:7: pools[0].gue: expected a mapping such as { port: 6080, variant: 0 }"},
    {FILE_OF("    forwarding: gue\n    fragment: both\n"),
     "t:7: pools[0].fragment: expected drop, inner or outer, found \"both\""},
    {FILE_OF("    forwarding: vxlan\n    vxlan: { vni: 16777216 }\n"),
     "t:7: pools[0].vxlan.vni: expected a network identifier from 1 to 16777215, found "
     "\"16777216\""},
    {FILE_OF("    forwarding: vxlan\n    vxlan: { vni: 1, mac: 01:00:00:00:00:01 }\n"),
     "t:7: pools[0].vxlan.mac: expected the MAC address of the backends' VXLAN interfaces, such as "
     "02:00:00:00:00:01, found \"01:00:00:00:00:01\"; it must be that of one interface"},
    {FILE_OF("    forwarding: vxlan\n    vxlan: { vni: 1, source_mac: 02:00:00:00:00 }\n"),
     "t:7: pools[0].vxlan.source_mac: expected a MAC address such as 02:00:00:00:00:01, found "
     "\"02:00:00:00:00\""},
    {FILE_OF("    forwarding: l3dsr\n    l3dsr: { dscp: 64 }\n"),
     "t:7: pools[0].l3dsr.dscp: expected a DSCP from 1 to 63, found \"64\""},
    {FILE_OF("    forwarding: l3dsr\n    l3dsr: { dscp: 0 }\n"),
     "t:7: pools[0].l3dsr.dscp: expected a DSCP from 1 to 63, found \"0\""},

    /* Between keys of a pool. */
    {FILE_OF("    forwarding: gre\n    gue: { port: 6080 }\n"),
     "t:7: pools[0].gue: the pool forwards by gre; remove it, or set \"forwarding: gue\""},
    {FILE_OF("    l3dsr: { dscp: 10 }\n"),
     "t:6: pools[0].l3dsr: the pool forwards by ipip; remove it, or set \"forwarding: l3dsr\""},
    {FILE_OF("    forwarding: vxlan\n"), "t:6: pools[0].vxlan: \"forwarding: vxlan\" needs it; "
                                         "expected a mapping such as { vni: 100 }"},
    {FILE_OF("    forwarding: l3dsr\n"), "t:6: pools[0].l3dsr: \"forwarding: l3dsr\" needs it; "
                                         "expected a mapping such as { dscp: 10 }"},
    {FILE_OF("    forwarding: l2\n    fragment: outer\n"),
     "t:7: pools[0].fragment: \"outer\", but l2 has no outer packet; expected drop or inner"},

    /* Prefixes of sources (BL-08). */
    {"tunnel: { source_prefix: 198.51.100.129/25 }\n" FILE_OF(""),
     "t:1: tunnel.source_prefix: expected an IPv4 prefix from /8 to /31, such as "
     "198.51.100.128/25, "
     "found \"198.51.100.129/25\"; bits behind the prefix are set, write its first address"},
    {"tunnel: { source_prefix: 198.51.100.128 }\n" FILE_OF(""),
     "t:1: tunnel.source_prefix: expected an IPv4 prefix from /8 to /31, such as "
     "198.51.100.128/25, "
     "found \"198.51.100.128\""},
    {"tunnel: { source_prefix: \"2001:db8::/64\" }\n" FILE_OF(""),
     "t:1: tunnel.source_prefix: expected an IPv4 prefix, but 2001:db8::/64 is IPv6"},
    {"tunnel: { source_prefix: 198.51.100.128/32 }\n" FILE_OF(""),
     "t:1: tunnel.source_prefix: expected a length from /8 to /31, found /32"},
    {"tunnel: { source_prefix6: \"2001:db8::/48\" }\n" FILE_OF(""),
     "t:1: tunnel.source_prefix6: expected a length from /64 to /127, found /48"},
    {"tunnel: { source_prefix: 224.0.0.0/8 }\n" FILE_OF(""),
     "t:1: tunnel.source_prefix: expected the unicast address of a host or a service, but "
     "224.0.0.0 "
     "is multicast (224.0.0.0/4)"},
    {"tunnel: { source: 198.51.100.130, source_prefix: 198.51.100.128/25 }\n" FILE_OF(""),
     "t:1: tunnel.source_prefix: 198.51.100.128/25 holds 198.51.100.130 at line 1, which is the "
     "tunnel source; use a prefix that nothing else is in"},
    {"tunnel: { source_prefix: 192.0.2.0/28 }\n" FILE_OF(""),
     "t:1: tunnel.source_prefix: 192.0.2.0/28 holds 192.0.2.10 at line 9, which is a VIP; use a "
     "prefix that nothing else is in"},
    {"tunnel: { source_prefix: 198.51.100.12/31 }\n" FILE_OF(""),
     "t:1: tunnel.source_prefix: 198.51.100.12/31 holds 198.51.100.12 at line 7, which is a "
     "backend; "
     "use a prefix that nothing else is in"},

    /* L3DSR: one number, one VIP, one family. */
    {FILE_OF("    forwarding: l3dsr\n    l3dsr: { dscp: 10 }\n") "  - { name: www2, vip: "
                                                                 "192.0.2.20, protocol: tcp, port: "
                                                                 "80, pool: web }\n",
     "t:11: services[1].vip: its l3dsr pool web serves 192.0.2.10 already, and one DSCP stands for "
     "one VIP; make a pool with another DSCP"},
    {SEED POOL "    forwarding: l3dsr\n    l3dsr: { dscp: 10 }\n" BACKENDS
               "services:\n  - { name: www, vip: \"2001:db8:0:a::10\", protocol: tcp, port: 80, "
               "pool: web }\n",
     "t:10: services[0].vip: it is IPv6, but web1 of its l3dsr pool web is 198.51.100.11, and "
     "l3dsr "
     "cannot change the family; make a pool for each family"},
    {SEED POOL
     "    forwarding: l3dsr\n    l3dsr: { dscp: 10 }\n" BACKENDS
     "  - name: api\n    table_size: 251\n    health: { type: none }\n    forwarding: l3dsr\n"
     "    l3dsr: { dscp: 10 }\n    backends: [ { name: api1, address: 198.51.100.12 } ]\n" SERVICES
     "  - { name: api, vip: 192.0.2.20, protocol: tcp, port: 80, pool: api }\n",
     "t:14: pools: 198.51.100.12 is in the l3dsr pools web and api, whose DSCP 10 stands for two "
     "VIPs; give one of them another"},
};

static void test_what_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct complaints complaints = {0};
        struct hb_config *config = parse(rows[i].text, &complaints);

        if (config != NULL || complaints.count != 1 ||
            !has_complaint(&complaints, false, rows[i].complaint)) {
            print_complaints(&complaints);
            fail_msg("row %zu: expected \"%s\"", i, rows[i].complaint);
        }
        drop_complaints(&complaints);
    }
}

/* The same pools are right when they differ in one of the two. */
static void test_two_l3dsr_pools(void **state)
{
    (void)state;
    hb_config_free(accept(
        SEED POOL
        "    forwarding: l3dsr\n    l3dsr: { dscp: 10 }\n" BACKENDS
        "  - name: api\n    table_size: 251\n    health: { type: none }\n    forwarding: l3dsr\n"
        "    l3dsr: { dscp: 11 }\n    backends: [ { name: api1, address: 198.51.100.12 } "
        "]\n" SERVICES "  - { name: api, vip: 192.0.2.20, protocol: tcp, port: 80, pool: api }\n"));
    hb_config_free(accept(
        SEED POOL
        "    forwarding: l3dsr\n    l3dsr: { dscp: 10 }\n" BACKENDS
        "  - name: api\n    table_size: 251\n    health: { type: none }\n    forwarding: l3dsr\n"
        "    l3dsr: { dscp: 10 }\n    backends: [ { name: api1, address: 198.51.100.13 } "
        "]\n" SERVICES "  - { name: api, vip: 192.0.2.20, protocol: tcp, port: 80, pool: api }\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_read),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_two_l3dsr_pools),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
