/* SPDX-License-Identifier: BSD-3-Clause */
/* Services in all their forms: what a configuration may say of them, and what it is refused for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "config_fixture.h"

/* The last line of the base becomes this service; more may follow. */
#define SERVICE(keys) "  - { name: www, pool: web, " keys " }"
#define QUIC(keys)    SERVICE("vip: 192.0.2.10, protocol: udp, port: 443, quic: [ " keys " ]")

static struct hb_config *load(int line, const char *replacement, struct complaints *complaints)
{
    char *text = edit_base(line, replacement);
    struct hb_config *config = parse(text, complaints);

    free(text);
    return config;
}

static struct hb_config *accept_service(const char *replacement)
{
    struct complaints complaints = {0};
    struct hb_config *config = load(9, replacement, &complaints);

    print_complaints(&complaints);
    assert_non_null(config);
    assert_int_equal(complaints.errors, 0);
    drop_complaints(&complaints);
    return config;
}

static void prefixes_and_ports(void **state)
{
    static const struct {
        const char *text;
        uint8_t length;
        uint16_t first, last;
    } rows[] = {
        {SERVICE("vip: 192.0.2.10, protocol: tcp, port: 80"), 32, 80, 80},
        {SERVICE("vip: 192.0.2.0/24, protocol: tcp, port: 8000-8999"), 24, 8000, 8999},
        {SERVICE("vip: 192.0.2.0/24, protocol: sctp, port: \"8000-8999\""), 24, 8000, 8999},
        {SERVICE("vip: \"2001:db8::/32\", protocol: udp, port: 65535"), 32, 65535, 65535},
        {SERVICE("vip: \"2001:db8::1/128\", protocol: udp, port: 1-65535"), 128, 1, 65535},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hb_config *config = accept_service(rows[i].text);

        assert_int_equal(config->services[0].prefix_length, rows[i].length);
        assert_int_equal(config->services[0].port, rows[i].first);
        assert_int_equal(config->services[0].port_last, rows[i].last);
        hb_config_free(config);
    }
}

/* Any port, with a health check that says which. */
static void any_port(void **state)
{
    struct hb_config *config = accept_service(SERVICE(
        "vip: 192.0.2.10, protocol: tcp, port: 80") "\n"
                                                    "  - { name: all, pool: web, vip: "
                                                    "192.0.2.0/24, protocol: tcp, port: any }");

    (void)state;
    assert_int_equal(config->services[1].port, 0);
    assert_int_equal(config->services[1].port_last, 65535);
    hb_config_free(config);
}

static void affinity(void **state)
{
    struct hb_config *config =
        accept_service(SERVICE("vip: 192.0.2.10, protocol: tcp, port: 80, affinity: "
                               "source") "\n"
                                         "  - { name: b, pool: web, vip: "
                                         "\"2001:db8::1\", protocol: tcp, port: 80, "
                                         "affinity: source_port, affinity_prefix: 64 }\n"
                                         "  - { name: c, pool: web, vip: 192.0.2.11, "
                                         "protocol: tcp, port: 80, affinity: flow }");

    (void)state;
    assert_int_equal(config->services[0].rules.affinity, HB_AFFINITY_SOURCE);
    assert_int_equal(config->services[0].rules.affinity_prefix, 32);
    assert_int_equal(config->services[1].rules.affinity, HB_AFFINITY_SOURCE_PORT);
    assert_int_equal(config->services[1].rules.affinity_prefix, 64);
    assert_int_equal(config->services[2].rules.affinity_prefix, 0);
    hb_config_free(config);
}

static void sources_and_limits(void **state)
{
    struct hb_config *config = accept_service(SERVICE(
        "vip: 192.0.2.10, protocol: tcp, port: 80, deny: [ 203.0.113.0/24, \"2001:db8:9::/48\" ], "
        "allow: [ 10.0.0.0/8, 203.0.113.9 ], new_flows: 1000, flows: 4294967295"));
    const struct hb_source_list *list = config->services[0].rules.sources;
    static const struct {
        uint8_t family, first, length, allow;
    } want[] = {{4, 10, 8, 1}, {4, 203, 24, 0}, {4, 203, 32, 1}, {6, 0x20, 48, 0}};

    (void)state;
    assert_int_equal(list->count, 4);
    assert_true(list->denies_others);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(list->prefix[i].family, want[i].family);
        assert_int_equal(list->prefix[i].address[0], want[i].first);
        assert_int_equal(list->prefix[i].length, want[i].length);
        assert_int_equal(list->prefix[i].allow, want[i].allow);
    }
    assert_int_equal(config->services[0].rules.new_flows, 1000);
    assert_int_equal(config->services[0].rules.flows, 4294967295);
    hb_config_free(config);
    config = accept_service(
        SERVICE("vip: 192.0.2.10, protocol: tcp, port: 80, deny: [ 203.0.113.0/24 ]"));
    assert_false(config->services[0].rules.sources->denies_others);
    hb_config_free(config);
}

static void quic(void **state)
{
    struct complaints complaints = {0};
    struct hb_config *config =
        parse("seed: 0123456789abcdef\n"
              "pools:\n"
              "  - name: web\n"
              "    backends:\n"
              "      - { name: a, address: 198.51.100.11, server_id: \"000107\" }\n"
              "      - { name: b, address: 198.51.100.12, server_id: 0001Fe }\n"
              "services:\n"
              "  - name: h3\n"
              "    vip: 192.0.2.10\n"
              "    protocol: udp\n"
              "    port: 443\n"
              "    pool: web\n"
              "    quic:\n"
              "      - { id: 0 }\n"
              "      - { id: 6, key: 8f95f09245765f80256934e50c66207f, nonce: 16 }\n",
              &complaints);
    const struct hb_quic_record *record;

    (void)state;
    print_complaints(&complaints);
    assert_non_null(config);
    assert_int_equal(config->pools[0].backends[1].server_id_length, 3);
    assert_memory_equal(config->pools[0].backends[1].server_id, "\x00\x01\xfe", 4);
    record = config->services[0].rules.quic;
    assert_int_equal(config->services[0].rules.quic_count, 2);
    assert_int_equal(record[0].config_id, 0);
    assert_int_equal(record[0].server_id_length, 3);
    assert_int_equal(record[0].nonce_length, 8);
    assert_int_equal(record[0].encrypted, 0);
    assert_int_equal(record[1].config_id, 6);
    assert_int_equal(record[1].nonce_length, 16);
    assert_int_equal(record[1].encrypted, 1);
    assert_int_equal(record[1].key[0], 0x8f);
    assert_int_equal(record[1].key[15], 0x7f);
    hb_config_free(config);
    drop_complaints(&complaints);
}

/* clang-format off */
#define AT9 "t:9: services[0]"
#define TCP80 "vip: 192.0.2.10, protocol: tcp, port: 80"
static const struct {
    int line;
    const char *text, *complaint;
} refused[] = {
    {9, SERVICE("vip: 192.0.2.0/33, protocol: tcp, port: 80"),
     AT9 ".vip: expected an IPv4 or IPv6 address, or a prefix such as 192.0.2.0/24, found \"192.0.2.0/33\""},
    {9, SERVICE("vip: 192.0.2.10/24, protocol: tcp, port: 80"),
     AT9 ".vip: 192.0.2.10 is an address within a prefix of 24 bits; write 192.0.2.0/24 for the prefix, or the "
     "address alone"},
    {9, SERVICE("vip: 0.0.0.0/0, protocol: tcp, port: 80"),
     AT9 ".vip: a VIP prefix of 0 bits, at least 8 are needed; name smaller ones"},
    {9, SERVICE("vip: 127.0.0.0/8, protocol: tcp, port: 80"),
     AT9 ".vip: expected the unicast address of a host or a service, but 127.0.0.0 is loopback (127.0.0.0/8)"},
    {9, SERVICE("vip: 198.51.100.0/24, protocol: tcp, port: 80"),
     AT9 ".vip: 198.51.100.0/24 holds 198.51.100.11, a backend at line 7; its tunnel would lead back here, so move "
     "the backend out of the prefix"},
    {1, "seed: 0123456789abcdef\ntunnel: { source: 192.0.2.10 }\n",
     "t:11: services[0].vip: 192.0.2.10 is the tunnel source at line 2, the balancer's own address; use another"},
    {9, SERVICE("vip: 192.0.2.10, protocol: tcp, port: 9-8"),
     AT9 ".port: the range 9-8 goes down; write 8-9"},
    {9, SERVICE("vip: 192.0.2.10, protocol: tcp, port: 0-9"),
     AT9 ".port: expected a port from 1 to 65535, a range such as 8000-8999, or any, found \"0-9\""},
    {9, SERVICE("vip: 192.0.2.10, protocol: tcp, port: any"),
     "t:3: pools[0].health: the first service of this pool takes any port, so there is no port to check; add "
     "\"port\" here"},
    {9, SERVICE(TCP80) "\n  - { name: b, pool: web, vip: 192.0.2.10, protocol: tcp, port: 80-80 }",
     "t:10: services[1]: 192.0.2.10 tcp 80 is defined already at line 9; remove one of them"},
    {9, SERVICE("vip: 192.0.2.0/24, protocol: tcp, port: 80-90") "\n"
        "  - { name: b, pool: web, vip: 192.0.2.0/24, protocol: tcp, port: 85-95 }",
     "t:10: services[1]: ports 85-95 of 192.0.2.0/24 tcp overlap ports 80-90 at line 9 in part, so neither is the "
     "more specific; let one lie within the other, or apart"},
    {9, SERVICE(TCP80 ", affinity: client"),
     AT9 ".affinity: expected flow, source or source_port, found \"client\""},
    {9, SERVICE(TCP80 ", affinity_prefix: 24"),
     AT9 ".affinity_prefix: without affinity there is no source to take 24 bits of; add \"affinity: source\" or "
     "remove it"},
    {9, SERVICE(TCP80 ", affinity: source, affinity_prefix: 64"),
     AT9 ".affinity_prefix: 64 bits, but addresses of IPv4 have 32; use fewer"},
    {9, SERVICE(TCP80 ", allow: [ 10.0.0.0/8 ], deny: [ 10.0.0.0/8 ]"),
     AT9 ": 10.0.0.0/8 is both allowed and denied; remove one of them"},
    {9, SERVICE(TCP80 ", deny: [ 10.0.0.0/8, 10.0.0.0/8 ]"),
     AT9 ": 10.0.0.0/8 is listed twice; remove one of them"},
    {9, SERVICE(TCP80 ", deny: [ 10.0.0.1/8 ]"),
     AT9 ".deny[0]: 10.0.0.1 is an address within a prefix of 8 bits; write 10.0.0.0/8 for the prefix, or the "
     "address alone"},
    {9, SERVICE(TCP80 ", deny: []"), AT9 ".deny: the list is empty; name a prefix, or leave the key out"},
    {9, SERVICE(TCP80 ", deny: 10.0.0.0/8"),
     AT9 ".deny: expected a list of source prefixes such as [ 203.0.113.0/24 ]"},
    {9, SERVICE(TCP80 ", deny: [ bad.example ]"),
     AT9 ".deny[0]: expected a prefix of source addresses such as 203.0.113.0/24, found \"bad.example\""},
    {9, SERVICE(TCP80 ", flows: 0"), AT9 ".flows: expected a number of flows, from 1 on, found \"0\""},
    {9, SERVICE(TCP80 ", flows: 9, tracking: changed"),
     AT9 ".flows: flows without an entry can't be counted; it needs \"tracking: all\""},
    {9, SERVICE("vip: 192.0.2.10, protocol: udp, port: 443, new_flows: 9, tracking: off"),
     AT9 ".new_flows: without entries nothing tells a new flow of this protocol; it needs \"tracking: all\""},
    {9, SERVICE(TCP80 ", quic: [ { id: 0 } ]"), AT9 ".quic: QUIC goes over UDP; set \"protocol: udp\""},
    {9, QUIC("{ id: 0 }"),
     "t:7: services[0].quic: backend web1 of pool web has no \"server_id\", so no connection id can name it; give "
     "it one"},
    {9, QUIC("{ id: 7 }"), AT9 ".quic[0].id: expected a configuration id from 0 to 6, found \"7\""},
    {9, QUIC("{ id: 0, key: 8f95 }"),
     AT9 ".quic[0].key: expected an AES key of 32 hexadecimal digits, such as from: openssl rand -hex 16"},
    {7, "      - { name: web1, address: 198.51.100.11, server_id: 1 }",
     "t:7: pools[0].backends[0].server_id: expected 2 to 30 hexadecimal digits, in pairs, found \"1\""},
    {7, "      - { name: web1, address: 198.51.100.11, server_id: 01 }\n"
        "      - { name: web2, address: 198.51.100.12, server_id: 01 }",
     "t:8: pools[0].backends[1].server_id: it is the server id of backend \"web1\" at line 7 already; choose another"},
};
/* clang-format on */

/* Warnings may come beside the one complaint. */
static void what_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct complaints complaints = {0};
        struct hb_config *config = load(refused[i].line, refused[i].text, &complaints);

        if (config != NULL || !has_complaint(&complaints, false, refused[i].complaint)) {
            print_complaints(&complaints);
            fail_msg("%s: expected \"%s\"", refused[i].text, refused[i].complaint);
        }
        drop_complaints(&complaints);
    }
}

/* Two configurations that can't live side by side. */
static void quic_configurations(void **state)
{
    static const char head[] = "seed: 0123456789abcdef\npools:\n  - name: web\n    backends:\n";
    static const struct {
        const char *text, *complaint;
    } rows[] = {
        {"      - { name: a, address: 198.51.100.11, server_id: 01 }\n"
         "services:\n"
         "  - { name: h3, vip: 192.0.2.10, protocol: udp, port: 443, pool: web,\n"
         "      quic: [ { id: 1 }, { id: 1, nonce: 9 } ] }\n",
         "t:8: services[0].quic[1]: id 1 is that of the configuration at line 8 already; use "
         "another"},
        {"      - { name: a, address: 198.51.100.11, server_id: 0102030405 }\n"
         "services:\n"
         "  - { name: h3, vip: 192.0.2.10, protocol: udp, port: 443, pool: web, quic: [ { id: 1, "
         "nonce: 15 } ] }\n",
         "t:7: services[0].quic[0]: a nonce of 15 and server ids of 5 bytes make 20, but 5 to 19 "
         "fit a connection id; change the nonce"},
        {"      - { name: a, address: 198.51.100.11, server_id: 01 }\n"
         "      - { name: b, address: 198.51.100.12, server_id: 0203 }\n"
         "services:\n"
         "  - { name: h3, vip: 192.0.2.10, protocol: udp, port: 443, pool: web, quic: [ { id: 1 } "
         "] "
         "}\n",
         "t:6: services[0].quic: the server id of backend b of pool web has 2 bytes, those of "
         "others have 1; make all equally long"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct complaints complaints = {0};
        char text[1024];

        snprintf(text, sizeof(text), "%s%s", head, rows[i].text);
        assert_null(parse(text, &complaints));
        if (!has_complaint(&complaints, false, rows[i].complaint)) {
            print_complaints(&complaints);
            fail_msg("expected \"%s\"", rows[i].complaint);
        }
        drop_complaints(&complaints);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes_and_ports),
        cmocka_unit_test(any_port),
        cmocka_unit_test(affinity),
        cmocka_unit_test(sources_and_limits),
        cmocka_unit_test(quic),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(quic_configurations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
