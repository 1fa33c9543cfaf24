/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of NAT and the rules between them: one row a configuration, word for word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "config_fixture.h"

struct row {
    const char *pool;     /* behind the pool's name */
    const char *services; /* beside www */
    const char *complaint;
};

#define FULL        "forwarding: full_nat\n    nat: { sources: [198.51.100.64/28] }"
#define NOT_BETWEEN "NAT does not translate between them"

/* clang-format off */
static const struct row rows[] = {
    {"forwarding: nat", "", NULL},
    {"forwarding: nat\n    nat: { port: 8080 }", "", NULL},
    {"forwarding: full_nat\n    nat: { sources: [198.51.100.64/28, 198.51.100.9] }", "", NULL},
    {"forwarding: full_nat\n    nat: { sources: [198.51.100.64/28], ports: 1-65535, "
     "client_address: proxy_v2 }", "", NULL},
    {"nat: { port: 8080 }", "",
     "t:3: pools[0].nat: it is for pools with \"forwarding: nat\" or \"full_nat\"; set that, or remove it"},
    {"forwarding: nat\n    nat: { client_address: proxy_v2 }", "",
     "t:3: pools[0].nat: sources, ports and client_address are for \"forwarding: full_nat\"; with nat the "
     "backends see the client itself"},
    {"forwarding: full_nat", "",
     "t:3: pools[0].nat: full_nat needs \"sources\": addresses that are routed to this balancer and belong "
     "to no host, such as [198.51.100.64/28]"},
    {"forwarding: full_nat\n    nat: { sources: [198.51.100.65/28] }", "",
     "t:5: pools[0].nat.sources: expected an address or a prefix of up to 1024 addresses, the bits behind it "
     "zero, such as 198.51.100.64/28, found \"198.51.100.65/28\""},
    {"forwarding: full_nat\n    nat: { sources: [10.0.0.0/21] }", "",
     "t:5: pools[0].nat.sources: expected an address or a prefix of up to 1024 addresses, the bits behind it "
     "zero, such as 198.51.100.64/28, found \"10.0.0.0/21\""},
    {"forwarding: full_nat\n    nat: { sources: 198.51.100.64/28 }", "",
     "t:5: pools[0].nat.sources: expected a list of addresses and prefixes, such as [198.51.100.64/28], "
     "found \"198.51.100.64/28\""},
    {"forwarding: full_nat\n    nat: { sources: [198.51.100.64/28], ports: 0-10 }", "",
     "t:5: pools[0].nat.ports: expected a range of ports, such as 1024-65535, found \"0-10\""},
    {"forwarding: full_nat\n    nat: { sources: [198.51.100.64/28], ports: 10-9 }", "",
     "t:5: pools[0].nat.ports: expected a range of ports, such as 1024-65535, found \"10-9\""},
    {"forwarding: full_nat\n    nat: { sources: [198.51.100.64/28], ports: 1-65536 }", "",
     "t:5: pools[0].nat.ports: expected a range of ports, such as 1024-65535, found \"1-65536\""},
    {"forwarding: full_nat\n    nat: { sources: [198.51.100.8/29] }", "",
     "t:5: pools[0].nat.sources: 198.51.100.11 is the backend at line 9 as well; leave it out"},
    {"forwarding: full_nat\n    nat: { sources: [192.0.2.10] }", "",
     "t:5: pools[0].nat.sources: 192.0.2.10 is the VIP of service www as well; leave it out"},
    {"forwarding: full_nat\n    nat: { sources: [\"2001:db8::/120\"] }", "",
     "t:5: pools[0].nat.sources: an IPv6 source for IPv4 backends; " NOT_BETWEEN},
    /* an answer must be of one service */
    {"forwarding: nat", "  - { name: two, vip: 192.0.2.11, protocol: tcp, port: 81, pool: web }\n", NULL},
    {"forwarding: nat", "  - { name: two, vip: 192.0.2.11, protocol: udp, port: 80, pool: web }\n", NULL},
    {"forwarding: nat", "  - { name: two, vip: 192.0.2.11, protocol: tcp, port: 80, pool: web }\n",
     "t:11: services[1]: answers of backend 198.51.100.11 from its port 80 would be of this service or of www "
     "at line 10; with nat a backend's port must name one service, so give each a pool of its own with "
     "another \"nat: { port: ... }\", or use full_nat"},
    {"forwarding: nat\n    nat: { port: 8080 }",
     "  - { name: two, vip: 192.0.2.11, protocol: tcp, port: 81, pool: web }\n",
     "t:12: services[1]: answers of backend 198.51.100.11 from its port 8080 would be of this service or of "
     "www at line 11; with nat a backend's port must name one service, so give each a pool of its own with "
     "another \"nat: { port: ... }\", or use full_nat"},
    /* what a pool's NAT can't serve */
    {"forwarding: nat", "  - { name: two, vip: 192.0.2.11, protocol: sctp, port: 81, pool: web }\n",
     "t:11: services[1].protocol: service two is SCTP, but pool web has \"forwarding: nat\", which carries TCP "
     "and UDP alone; use a pool with a tunnel, l2 or l3dsr"},
    {FULL, "  - { name: two, vip: 192.0.2.11, protocol: sctp, port: 81, pool: web }\n",
     "t:12: services[1].protocol: service two is SCTP, but pool web has \"forwarding: full_nat\", which "
     "carries TCP and UDP alone; use a pool with a tunnel, l2 or l3dsr"},
    {"forwarding: nat", "  - { name: two, vip: 192.0.2.128/25, protocol: tcp, port: 81, pool: web }\n",
     "t:11: services[1].vip: service two is the prefix 192.0.2.128/25, but pool web has \"forwarding: nat\", "
     "where answers need one VIP; use full_nat or a tunnel"},
    {"forwarding: nat", "  - { name: two, vip: 192.0.2.11, protocol: udp, port: any, pool: web }\n",
     "t:11: services[1].port: service two has the ports any, but pool web has \"forwarding: nat\", where "
     "answers need one port; use full_nat or a tunnel"},
    {"forwarding: nat\n    nat: { port: 8080 }",
     "  - { name: two, vip: 192.0.2.11, protocol: tcp, port: 8000-8999, pool: web }\n",
     "t:12: services[1].port: service two has the ports 8000-8999, but pool web has \"forwarding: nat\", "
     "where answers need one port; use full_nat or a tunnel"},
    {FULL, "  - { name: two, vip: 192.0.2.128/25, protocol: tcp, port: any, pool: web }\n", NULL},
    {FULL, "  - { name: two, vip: 198.51.100.64/26, protocol: tcp, port: 81, pool: web }\n",
     "t:5: pools[0].nat.sources: 198.51.100.64/26 is the VIP of service two as well; leave it out"},
    {"forwarding: nat", "  - { name: two, vip: \"2001:db8::1\", protocol: tcp, port: 81, pool: web }\n",
     "t:11: services[1].vip: an IPv6 VIP, but pool web reaches IPv4 backends by NAT, which does not translate "
     "between them; use a tunnel, or backends of the VIP's family"},
};
/* clang-format on */

static void check_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct complaints complaints = {0};
        char text[2048];
        struct hb_config *config;

        snprintf(text, sizeof(text),
                 "seed: 0123456789abcdef\npools:\n  - name: web\n    %s\n    table_size: 251\n"
                 "    health: { type: tcp, port: 80 }\n    backends:\n"
                 "      - { name: web1, address: 198.51.100.11 }\nservices:\n"
                 "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web }\n%s",
                 rows[i].pool, rows[i].services);
        config = parse(text, &complaints);
        if ((config != NULL) != (rows[i].complaint == NULL) ||
            complaints.errors != (rows[i].complaint != NULL) ||
            (rows[i].complaint != NULL && !has_complaint(&complaints, false, rows[i].complaint))) {
            print_complaints(&complaints);
            fail_msg("row %zu: expected \"%s\"", i,
                     rows[i].complaint ? rows[i].complaint : "no complaint");
        }
        hb_config_free(config);
        drop_complaints(&complaints);
    }
}

static void what_is_read(void **state)
{
    static const char text[] =
        "seed: 0123456789abcdef\npools:\n  - name: web\n    forwarding: full_nat\n"
        "    nat: { port: 8080, sources: [198.51.100.64/28, 198.51.100.9], ports: 2000-2999, "
        "client_address: tcp_option_28 }\n"
        "    backends: [ { name: web1, address: 198.51.100.11 } ]\nservices:\n"
        "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web }\n";
    struct complaints complaints = {0};
    struct hb_config *config = parse(text, &complaints);
    const struct hb_nat_config *nat;

    (void)state;
    assert_non_null(config);
    nat = &config->pools[0].nat;
    assert_int_equal(nat->port, 8080);
    assert_int_equal(nat->sources.count, 2);
    assert_int_equal(nat->sources.prefix[0].length, 28);
    assert_int_equal(nat->sources.prefix[1].length, 32);
    assert_int_equal(hb_nat_count_sources(nat), 17);
    assert_int_equal(nat->ports.first, 2000);
    assert_int_equal(nat->ports.last, 2999);
    assert_int_equal(nat->client_address, HB_CLIENT_BY_OPTION_28);
    hb_config_free(config);
    drop_complaints(&complaints);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(check_rows),
                                       cmocka_unit_test(what_is_read)};

    return cmocka_run_group_tests_name("config_nat", tests, NULL, NULL);
}
