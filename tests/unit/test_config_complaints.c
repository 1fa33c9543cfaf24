/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a configuration is refused for, one row a fault: a line of a good configuration is replaced,
 * and one complaint must come, word for word.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "config_fixture.h"

struct row {
    int line;
    const char *replacement;
    const char *complaint; /* NULL: accepted, without a warning */
};

#define BACKEND "      - { name: web1, address: 198.51.100.11 }\n"
#define SERVICE "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web }\n"

/* Every row must give exactly its complaint and no configuration. */
static void check_rows(const struct row *rows, size_t count, bool warning)
{
    for (size_t i = 0; i < count; i++) {
        struct complaints complaints = {0};
        char *text = edit_base(rows[i].line, rows[i].replacement);
        struct hb_config *config = parse(text, &complaints);
        bool expect_config = rows[i].complaint == NULL || warning;
        int expect_count = rows[i].complaint != NULL;

        if ((config != NULL) != expect_config || complaints.count != expect_count ||
            (rows[i].complaint != NULL &&
             !has_complaint(&complaints, warning, rows[i].complaint))) {
            print_complaints(&complaints);
            fail_msg("row %zu, \"%s\": expected \"%s\"", i, rows[i].replacement,
                     rows[i].complaint != NULL ? rows[i].complaint : "no complaint");
        }
        hb_config_free(config);
        drop_complaints(&complaints);
        free(text);
    }
}

#define CHECK_ROWS(rows, warning) check_rows(rows, sizeof(rows) / sizeof((rows)[0]), warning)

/* clang-format off */
#define SEED_EXPECTED "expected a secret of 8 to 63 characters, the same on all balancers of a fleet"

static const struct row seed_rows[] = {
    {1, "seed: 12345678", NULL}, /* looks like a number, is a text */
    {1, "seed: \"01234567\"", NULL},
    {1, "seed: 012345678901234567890123456789012345678901234567890123456789012", NULL},
    {1, "seed: 0123456789012345678901234567890123456789012345678901234567890123",
     "t:1: seed: " SEED_EXPECTED ", found 64"},
    {1, "seed: 1234567", "t:1: seed: " SEED_EXPECTED ", found 7"},
    {1, "seed: \"\"", "t:1: seed: " SEED_EXPECTED ", found 0"},
    {1, "seed:", "t:1: seed: it has no value; " SEED_EXPECTED},
    {1, "seed: null", "t:1: seed: it has no value; " SEED_EXPECTED},
    {1, "# no seed", "t:2: \"seed\" is missing; " SEED_EXPECTED},
    {1, "seed: \"0123 4567\"", "t:1: seed: " SEED_EXPECTED "; character 5 is a space or not ASCII"},
    {1, "seed: \"0123456\xc3\xa9\"",
     "t:1: seed: " SEED_EXPECTED "; character 8 is a space or not ASCII"},
    {1, "seed: \"01234567\\n\"",
     "t:1: seed: " SEED_EXPECTED "; character 9 is a space or not ASCII"},
    {1, "seed: \"01234567\\0\"", "t:1: seed: " SEED_EXPECTED ", found 9"},
    {1, "seed: [a, b]", "t:1: seed: " SEED_EXPECTED ", found a list"},
    {1, "seed: { a: b }", "t:1: seed: " SEED_EXPECTED ", found a mapping"},
};

static const struct row tunnel_rows[] = {
    {1, "seed: 0123456789abcdef\ntunnel: { source: 198.51.100.10, source6: \"2001:db8::10\" }", NULL},
    {1, "seed: 0123456789abcdef\ntunnel: { source: \"2001:db8::10\" }",
     "t:2: tunnel.source: expected an IPv4 address, but 2001:db8::10 is IPv6; the IPv6 source is source6"},
    {1, "seed: 0123456789abcdef\ntunnel: { source6: 198.51.100.10 }",
     "t:2: tunnel.source6: expected an IPv6 address, but 198.51.100.10 is IPv4; the IPv4 source is source"},
    {1, "seed: 0123456789abcdef\ntunnel: { source: 127.0.0.1 }",
     "t:2: tunnel.source: expected the unicast address of a host or a service, but 127.0.0.1 is loopback "
     "(127.0.0.0/8)"},
    {1, "seed: 0123456789abcdef\ntunnel: 198.51.100.10",
     "t:2: tunnel: expected a mapping of source, source6, source_prefix and source_prefix6"},
};

#define PRIME_EXPECTED "t:4: pools[0].table_size: expected a prime from 7 to 5000011, such as 65537, found "

/* BL-60 */
static const struct row table_size_rows[] = {
    {4, "    table_size: 0", PRIME_EXPECTED "\"0\""},
    {4, "    table_size: 1", PRIME_EXPECTED "\"1\""},
    {4, "    table_size: 2", PRIME_EXPECTED "\"2\""},
    {4, "    table_size: 3", PRIME_EXPECTED "\"3\""},
    {4, "    table_size: 4", PRIME_EXPECTED "\"4\""},
    {4, "    table_size: 100",
     "t:4: pools[0].table_size: 100 is not prime; the nearest primes are 97 and 101"},
    {4, "    table_size: 256",
     "t:4: pools[0].table_size: 256 is not prime; the nearest primes are 251 and 257"},
    {4, "    table_size: 65536",
     "t:4: pools[0].table_size: 65536 is not prime; the nearest primes are 65521 and 65537"},
    {4, "    table_size: 65537", NULL},
    {4, "    table_size: 65537 ", NULL}, /* YAML drops the space */
    {4, "    table_size: 65538",
     "t:4: pools[0].table_size: 65538 is not prime; the nearest primes are 65537 and 65539"},
    {4, "    table_size: 5000011", NULL},
    {4, "    table_size: 5000012", PRIME_EXPECTED "\"5000012\""},
    {4, "    table_size: 2147483647", PRIME_EXPECTED "\"2147483647\""},
    {4, "    table_size: 2147483648", PRIME_EXPECTED "\"2147483648\""},
    {4, "    table_size: 4294967291", PRIME_EXPECTED "\"4294967291\""},
    {4, "    table_size: 4295032833", PRIME_EXPECTED "\"4295032833\""}, /* 65537 in 32 bits */
    {4, "    table_size: 18446744073709617153", PRIME_EXPECTED "\"18446744073709617153\""},
    {4, "    table_size: -1", PRIME_EXPECTED "\"-1\""},
    {4, "    table_size: \"65537 \"", PRIME_EXPECTED "\"65537 \" in quotes; write it without"},
    {4, "    table_size: \"65537\"", PRIME_EXPECTED "\"65537\" in quotes; write it without"},
    {4, "    table_size: 65537.0", PRIME_EXPECTED "\"65537.0\""},
    {4, "    table_size: 1e5", PRIME_EXPECTED "\"1e5\""},
    {4, "    table_size: 065537", PRIME_EXPECTED "\"065537\""},
    {4, "    table_size: 0x10001", PRIME_EXPECTED "\"0x10001\""},
    {4, "    table_size: +65537", PRIME_EXPECTED "\"+65537\""},
    {4, "    table_size: 65_537", PRIME_EXPECTED "\"65_537\""},
    {4, "    table_size:", "t:4: pools[0].table_size: it has no value; expected a prime from 7 to "
     "5000011, such as 65537"},
};

#define WEIGHT_EXPECTED "t:7: pools[0].backends[0].weight: expected a whole number from 0 to 65535, found "

/* BL-66, BL-86 */
static const struct row weight_rows[] = {
    {7, "      - { name: web1, address: 198.51.100.11, weight: 1 }", NULL},
    {7, "      - { name: web1, address: 198.51.100.11, weight: 65535 }", NULL},
    {7, "      - { name: web1, address: 198.51.100.11, weight: 65536 }", WEIGHT_EXPECTED "\"65536\""},
    {7, "      - { name: web1, address: 198.51.100.11, weight: -1 }", WEIGHT_EXPECTED "\"-1\""},
    {7, "      - { name: web1, address: 198.51.100.11, weight: 0.5 }", WEIGHT_EXPECTED "\"0.5\""},
    {7, "      - { name: web1, address: 198.51.100.11, weight: \"0\" }",
     WEIGHT_EXPECTED "\"0\" in quotes; write it without"},
    {7, "      - { name: web1, address: 198.51.100.11, weight: 4294967297 }",
     WEIGHT_EXPECTED "\"4294967297\""},
    {7, "      - { name: web1, address: 198.51.100.11, weight: heavy }", WEIGHT_EXPECTED "\"heavy\""},
};

#define PORT_EXPECTED                                                                              \
    "t:9: services[0].port: expected a port from 1 to 65535, a range such as 8000-8999, or any, "   \
    "found "
#define PORT(text)    "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: " text ", pool: web }"

/* BL-86 */
static const struct row port_rows[] = {
    {9, PORT("0"), PORT_EXPECTED "\"0\""},
    {9, PORT("1"), NULL},
    {9, PORT("32768"), NULL},
    {9, PORT("65535"), NULL},
    {9, PORT("65536"), PORT_EXPECTED "\"65536\""},
    {9, PORT("-1"), PORT_EXPECTED "\"-1\""},
    {9, PORT("http"), PORT_EXPECTED "\"http\""},
    {9, PORT("\"80\""), PORT_EXPECTED "\"80\" in quotes; write it without"},
    {9, PORT("[80]"), PORT_EXPECTED "a list"},
};

#define TIME(text)      "    health: { interval: " text " }"
#define TIME_EXPECTED   "t:5: pools[0].health.interval: expected a time from 10ms to 60m, such as 500ms or " \
                        "1s, found "

#define HEALTH(text)    "    health: { type: " text " }"
#define STATUS_EXPECTED "t:5: pools[0].health.status: expected up to 8 HTTP status codes or ranges such as 200 or " \
                        "200-299,404, found "
#define UNUSED(key, type) "t:5: pools[0].health." key ": type " type " has no use for it; remove it or choose " \
                          "another type"

static const struct row health_rows[] = {
    {5, TIME("1s"), NULL},
    {5, TIME("501ms"), NULL},
    {5, TIME("2m"), NULL},
    {5, TIME("60m"), NULL},
    {5, TIME("\"2m\""), NULL},
    {5, TIME("61m"), TIME_EXPECTED "\"61m\""},
    {5, TIME("9ms"), TIME_EXPECTED "\"9ms\""},
    {5, TIME("0s"), TIME_EXPECTED "\"0s\""},
    {5, TIME("5"), TIME_EXPECTED "\"5\"; add a unit: ms, s, m or h"},
    {5, TIME("2h"), TIME_EXPECTED "\"2h\""},
    {5, TIME("1.5s"), TIME_EXPECTED "\"1.5s\""},
    {5, TIME("1 s"), TIME_EXPECTED "\"1 s\""},
    {5, TIME("-1s"), TIME_EXPECTED "\"-1s\""},
    {5, TIME("2147483648s"), TIME_EXPECTED "\"2147483648s\""},
    {5, TIME("4294967296ms"), TIME_EXPECTED "\"4294967296ms\""}, /* BL-86: 0 in 32 bits */
    {5, TIME("4294967297s"), TIME_EXPECTED "\"4294967297s\""},
    {5, TIME("s"), TIME_EXPECTED "\"s\""},
    {5, "    health: { rise: 0 }", "t:5: pools[0].health.rise: expected a count from 1 to 1000, found \"0\""},
    {5, "    health: { fall: 1001 }",
     "t:5: pools[0].health.fall: expected a count from 1 to 1000, found \"1001\""},
    {5, "    health: { port: 65536 }",
     "t:5: pools[0].health.port: expected a port from 1 to 65535, found \"65536\""},
    {5, "    health: { type: ping }", "t:5: pools[0].health.type: expected tcp, http, https, udp, icmp, grpc, "
     "grpcs, exec or none, found \"ping\""},
    {5, HEALTH("http"), NULL},
    {5, HEALTH("http, path: \"/up?x=1\", host: www.example.org, status: 200, body: ok"), NULL},
    {5, HEALTH("https, status: \"200-299,404\", verify: false, ca: /etc/ssl/own.pem"), NULL},
    {5, HEALTH("udp, port: 53, send: \"hex:00 01ff\", expect: pong"), NULL},
    {5, HEALTH("icmp, via: tunnel"), NULL},
    {5, HEALTH("grpc, grpc_service: shop.Cart"), NULL},
    {5, HEALTH("grpcs, grpc_service: shop.Cart, host: www.example.org, verify: false"), NULL},
    {5, HEALTH("grpc, verify: false"),
     "t:5: pools[0].health.verify: type grpc has no use for it; remove it or choose another type"},
    {5, HEALTH("grpcs, path: /up"),
     "t:5: pools[0].health.path: type grpcs has no use for it; remove it or choose another type"},
    {5, HEALTH("exec, command: /bin/true --fast"), NULL},
    {5, HEALTH("tcp, via: tunnel, vip: 192.0.2.10, jitter: 500ms"), NULL},
    {5, HEALTH("tcp, damping: { enabled: false }"), NULL},
    {5, HEALTH("tcp, damping: { half_life: 30s, suppress: 5.5, reuse: 0.5, max_hold: 10m }"), NULL},
    {5, HEALTH("http, path: up"),
     "t:5: pools[0].health.path: expected a path of 1 to 255 visible characters that begins with /, found \"up\""},
    {5, HEALTH("http, path: \"/a b\""),
     "t:5: pools[0].health.path: expected a path of 1 to 255 visible characters that begins with /, found \"/a b\""},
    {5, HEALTH("http, host: \"www:80\""),
     "t:5: pools[0].health.host: expected a host name without port, found \"www:80\""},
    {5, HEALTH("http, status: 99"), STATUS_EXPECTED "\"99\""},
    {5, HEALTH("http, status: 600"), STATUS_EXPECTED "\"600\""},
    {5, HEALTH("http, status: 299-200"), STATUS_EXPECTED "\"299-200\""},
    {5, HEALTH("http, status: \"200,\""), STATUS_EXPECTED "\"200,\""},
    {5, HEALTH("http, status: 2xx"), STATUS_EXPECTED "\"2xx\""},
    {5, HEALTH("http, status: \"200 \""), STATUS_EXPECTED "\"200 \""},
    {5, HEALTH("http, status: [200]"), STATUS_EXPECTED "a list"},
    {5, HEALTH("http, status: \"200,201,202,203,204,205,206,207,208\""),
     STATUS_EXPECTED "\"200,201,202,203,204,205,206,207,208\""},
    {5, HEALTH("http, body: \"\""),
     "t:5: pools[0].health.body: expected 1 to 254 characters, or \"hex:\" and pairs of hexadecimal digits, "
     "found \"\""},
    {5, HEALTH("udp, expect: a, send: \"hex:0\""),
     "t:5: pools[0].health.send: expected 1 to 254 characters, or \"hex:\" and pairs of hexadecimal digits, "
     "found \"hex:0\""},
    {5, HEALTH("udp, expect: a, send: \"hex:\""),
     "t:5: pools[0].health.send: expected 1 to 254 characters, or \"hex:\" and pairs of hexadecimal digits, "
     "found \"hex:\""},
    {5, HEALTH("udp, expect: \"hex:0g\", send: a"),
     "t:5: pools[0].health.expect: expected 1 to 254 characters, or \"hex:\" and pairs of hexadecimal digits, "
     "found \"hex:0g\""},
    {5, HEALTH("udp, expect: a"),
     "t:5: pools[0].health: \"send\" is missing; expected the bytes to send, 1 to 254 characters, or \"hex:\" and "
     "pairs of hexadecimal digits"},
    {5, HEALTH("exec"),
     "t:5: pools[0].health: \"command\" is missing; expected the absolute path of a program and its arguments"},
    {5, HEALTH("exec, command: true"),
     "t:5: pools[0].health.command: expected the absolute path of a program and its arguments, 511 characters at "
     "most, found \"true\""},
    {5, HEALTH("https, verify: 1"), "t:5: pools[0].health.verify: expected true or false, found \"1\""},
    {5, HEALTH("https, ca: own.pem"),
     "t:5: pools[0].health.ca: expected the absolute path of a file with certificates (PEM), found \"own.pem\""},
    {5, HEALTH("grpc, grpc_service: \"a b\""),
     "t:5: pools[0].health.grpc_service: expected the name of a gRPC service, such as shop.Cart, found \"a b\""},
    {5, HEALTH("tcp, path: /"), UNUSED("path", "tcp")},
    {5, HEALTH("http, verify: true"), UNUSED("verify", "http")},
    {5, HEALTH("http, send: a"), UNUSED("send", "http")},
    {5, HEALTH("icmp, port: 80"), UNUSED("port", "icmp")},
    {5, HEALTH("exec, command: /bin/true, via: direct"), UNUSED("via", "exec")},
    {5, HEALTH("none, command: /bin/true"), UNUSED("command", "none")},
    {5, HEALTH("tcp, via: tunel"), "t:5: pools[0].health.via: expected direct or tunnel, found \"tunel\""},
    {5, HEALTH("tcp, vip: 192.0.2.10"),
     "t:5: pools[0].health.vip: only a check through the tunnel goes to a VIP; add \"via: tunnel\" or remove it"},
    {5, HEALTH("tcp, via: tunnel, vip: 192.0.2.11"),
     "t:5: pools[0].health.vip: expected the VIP of a service that uses this pool, but 192.0.2.11 is none"},
    {5, HEALTH("tcp, jitter: 501ms"),
     "t:5: pools[0].health: the jitter (501 ms) must be at most half the interval (1000 ms)"},
    {5, HEALTH("tcp, jitter: 5"),
     "t:5: pools[0].health.jitter: expected a time from 0ms to 30m, such as 100ms, found \"5\"; add a unit: ms, s, m "
     "or h"},
    {5, HEALTH("tcp, damping: off"),
     "t:5: pools[0].health.damping: expected a mapping such as { half_life: 1m, suppress: 3, reuse: 1 }, or "
     "{ enabled: false }"},
    {5, HEALTH("tcp, damping: { suppress: 1 }"),
     "t:5: pools[0].health.damping.suppress: expected a number of falls from 1.1 to 1000, such as 3, found \"1\""},
    {5, HEALTH("tcp, damping: { reuse: 3 }"),
     "t:5: pools[0].health.damping: \"reuse\" must be less than \"suppress\""},
    {5, HEALTH("tcp, damping: { halflife: 1m }"),
     "t:5: pools[0].health.damping: unknown key \"halflife\"; did you mean \"half_life\"?"},
    {5, "    health: { timeout: 1s }",
     "t:5: pools[0].health: the timeout (1000 ms) must be less than the interval (1000 ms)"},
    {5, "    health: { interval: 400ms }",
     "t:5: pools[0].health: the timeout (500 ms) must be less than the interval (400 ms)"},
    {5, "    health: { type: none, timeout: 1s }", NULL},
    {5, "    health: {}", NULL},
    {5, "    health:", "t:5: pools[0].health: expected a health check such as { type: tcp, interval: 1s }"},
};

static const struct row pool_rows[] = {
    {3, "  - name: web\n    algorithm: maglev\n    forwarding: ipip", NULL},
    {3, "  - name: web\n    algorithm: ring", NULL},
    {3, "  - name: web\n    algorithm: rendezvous", NULL},
    {3, "  - name: web\n    algorithm: Maglev", "t:4: pools[0].algorithm: expected maglev, ring, rendezvous, "
     "jump or modulo, found \"Maglev\""},
    {3, "  - name: web\n    forwarding: ipop", "t:4: pools[0].forwarding: expected ipip, gue, gre, vxlan, l2, "
     "l3dsr, nat or full_nat, found \"ipop\""},
};

#define POOL_KEYS "the keys here are name, algorithm, table_size, virtual_nodes, ketama, jump_replacement, " \
                  "bounded_load, forwarding, gue, vxlan, l3dsr, fragment, nat, health, failure, slow_start and backends"

static const struct row policy_rows[] = {
    {4, "    failure: { below: some }",
     "t:4: pools[0].failure.below: expected rest, all, backup or close, found \"some\""},
    {4, "    failure: { minimum: 0 }",
     "t:4: pools[0].failure.minimum: expected a whole number from 1 to 65535, found \"0\""},
    {4, "    failure: { minimum: 9 }",
     "t:4: pools[0].failure.minimum: 9, but the pool has 1 backends; lower it"},
    {4, "    failure: { panic: 1.5 }",
     "t:4: pools[0].failure.panic: expected a number from 0 to 1, such as 0.5 for half of the "
     "backends, found \"1.5\""},
    {4, "    failure: { panic: 50% }",
     "t:4: pools[0].failure.panic: expected a number from 0 to 1, such as 0.5 for half of the "
     "backends, found \"50%\"; write 25 % as 0.25"},
    {4, "    failure: { below: backup }",
     "t:4: pools[0].failure.below: \"backup\", but no backup pool is named; add \"backup: POOL\""},
    {4, "    failure: { below: backup, backup: nowhere }",
     "t:4: pools[0].failure.backup: no pool is named \"nowhere\"; name one of those under "
     "\"pools\""},
    {4, "    failure: { below: backup, backup: web }",
     "t:4: pools[0].failure.backup: a pool cannot be its own backup; name another one"},
    {4, "    slow_start: 100ms",
     "t:4: pools[0].slow_start: expected a time from 1s to 60m, such as 60s, found \"100ms\""},
    {2, "maintenance: { on_withdraw: \"\" }\npools:",
     "t:2: maintenance.on_withdraw: expected a shell command of at most 255 characters, found "
     "\"\""},
    {2, "maintenance: { on_announce: \"a\\nb\" }\npools:",
     "t:2: maintenance.on_announce: expected a shell command of at most 255 characters, found "
     "\"a?b\"; it must be one line"},
};

static const struct row key_rows[] = {
    {4, "    tablesize: 251", "t:4: pools[0]: unknown key \"tablesize\"; did you mean \"table_size\"?"},
    {4, "    algo_rithm: maglev", "t:4: pools[0]: unknown key \"algo_rithm\"; did you mean \"algorithm\"?"},
    {4, "    colour: red", "t:4: pools[0]: unknown key \"colour\"; " POOL_KEYS},
    {4, "    <<: x", "t:4: pools[0]: unknown key \"<<\"; " POOL_KEYS},
    {4, "    [a, b]: 251", "t:4: pools[0]: expected a key, found a list or mapping"},
    {5, "    health: { tyqe: tcp }", "t:5: pools[0].health: unknown key \"tyqe\"; did you mean \"type\"?"},
    {7, "      - { name: web1, address: 198.51.100.11, rack: b }",
     "t:7: pools[0].backends[0]: unknown key \"rack\"; the keys here are name, address, weight, zone, "
     "bucket and server_id"},
    {4, "    table_size: 251\n    table_size: 1021",
     "t:5: pools[0].table_size: it is given already at line 4; remove one of them"},
    {1, "seed: 0123456789abcdef\nseed: 0123456789abcdef",
     "t:2: seed: it is given already at line 1; remove one of them"},
    {9, "  - { vip: 192.0.2.10, protocol: tcp, port: 80, pool: web }",
     "t:9: services[0]: \"name\" is missing; expected a name of 1 to 63 letters, digits and . _ -"},
    {9, "  - { name: www, vip: 192.0.2.10, port: 80, pool: web }",
     "t:9: services[0]: \"protocol\" is missing; expected tcp, udp or sctp"},
    {9, "  - { name: www, vip: 192.0.2.10, protocol: dccp, port: 80, pool: web }",
     "t:9: services[0].protocol: expected tcp, udp or sctp, found \"dccp\""},
    {9, "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web, tracking: changed }", NULL},
    {9, "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web, tracking: off }", NULL},
    {9, "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web, tracking: some }",
     "t:9: services[0].tracking: expected all, changed or off, found \"some\""},
    {1, "seed: 0123456789abcdef\nsettle_after: 1h", NULL},
    {1, "seed: 0123456789abcdef\nsettle_after: 999ms",
     "t:2: settle_after: expected a time from 1s to 24h, such as 1h, found \"999ms\""},
    {9, "  - www", "t:9: services[0]: expected a service with name, vip, protocol, port and pool"},
    {9, "  []", "t:9: services: the list is empty; expected a list of at least one service"}, /* BL-91 */
    {9, "  {}", "t:9: services: expected a list of at least one service; each starts with \"- \""},
    {9, "", "t:8: services: expected a list of at least one service; each starts with \"- \""},
    {7, "      []", "t:7: pools[0].backends: the list is empty; expected a list of at least one backend"},
    {7, "      - web1", "t:7: pools[0].backends[0]: expected a backend such as { name: web1, address: "
     "198.51.100.11 }"},
};

#define NAME_EXPECTED "t:7: pools[0].backends[0].name: expected a name of 1 to 63 letters, digits and . _ -, found "
#define NAMED(text)   "      - { name: " text ", address: 198.51.100.11 }"
#define DIGITS63      "012345678901234567890123456789012345678901234567890123456789012"

static const struct row name_rows[] = {
    {7, NAMED("a"), NULL},
    {7, NAMED("Web-1_b.example"), NULL},
    {7, NAMED("80"), NULL},
    {7, NAMED(DIGITS63), NULL},
    {7, NAMED(DIGITS63 "3"), NAME_EXPECTED "\"" DIGITS63 "3\""},
    {7, NAMED("\"\""), NAME_EXPECTED "\"\""},
    {7, NAMED("web 1"), NAME_EXPECTED "\"web 1\""},
    {7, NAMED("web/1"), NAME_EXPECTED "\"web/1\""},
    {7, NAMED("\"web1\\n\""), NAME_EXPECTED "\"web1?\""},
    {7, NAMED("\"web1\\0x\""), NAME_EXPECTED "\"web1\""},
    {7, NAMED("w\xc3\xa9" "b"), NAME_EXPECTED "\"w\xc3\xa9" "b\""},
    {7, NAMED(DIGITS63 "345678"), NAME_EXPECTED "\"" DIGITS63 "34567...\""},
    {7, NAMED(DIGITS63 "3456\xc3\xa9" "9"), NAME_EXPECTED "\"" DIGITS63 "3456...\""}, /* no half characters */
    {7, NAMED("~"), "t:7: pools[0].backends[0].name: it has no value; expected a name of 1 to 63 letters, "
     "digits and . _ -"},
};

#define ADDRESS_EXPECTED "t:7: pools[0].backends[0].address: expected an IPv4 or IPv6 address, found "
#define UNICAST_EXPECTED "t:7: pools[0].backends[0].address: expected the unicast address of a host or a service, but "
#define AT(text)         "      - { name: web1, address: " text " }"

static const struct row address_rows[] = {
    {7, AT("\"2001:db8::11\""), NULL},
    {7, AT("2001:db8::11"), NULL},
    {7, AT("198.51.100.011"), ADDRESS_EXPECTED "\"198.51.100.011\"; four numbers from 0 to 255 without "
     "leading zeros (octal to some programs)"}, /* BL-75 */
    {7, AT("198.51.100.256"), ADDRESS_EXPECTED "\"198.51.100.256\"; four numbers from 0 to 255 without "
     "leading zeros (octal to some programs)"},
    {7, AT("198.51.100.11/32"), ADDRESS_EXPECTED "\"198.51.100.11/32\"; write it without a prefix length"},
    {7, AT("\"198.51.100.11:80\""),
     ADDRESS_EXPECTED "\"198.51.100.11:80\"; write it without brackets or port"}, /* BL-63 */
    {7, AT("\"[2001:db8::11]\""),
     ADDRESS_EXPECTED "\"[2001:db8::11]\"; write it without brackets or port"},
    {7, AT("fe80::1%eth0"),
     ADDRESS_EXPECTED "\"fe80::1%eth0\"; an address with an interface cannot be used"},
    {7, AT("web1.example.com"),
     ADDRESS_EXPECTED "\"web1.example.com\"; names are not looked up, write the address itself"}, /* BL-75 */
    {7, AT("0.0.0.0"), UNICAST_EXPECTED "0.0.0.0 is unspecified (0.0.0.0/8)"},
    {7, AT("127.1.2.3"), UNICAST_EXPECTED "127.1.2.3 is loopback (127.0.0.0/8)"},
    {7, AT("224.0.0.1"), UNICAST_EXPECTED "224.0.0.1 is multicast (224.0.0.0/4)"},
    {7, AT("239.255.255.255"), UNICAST_EXPECTED "239.255.255.255 is multicast (224.0.0.0/4)"},
    {7, AT("255.255.255.255"), UNICAST_EXPECTED "255.255.255.255 is broadcast"},
    {7, AT("\"::\""), UNICAST_EXPECTED ":: is unspecified (::)"},
    {7, AT("\"::1\""), UNICAST_EXPECTED "::1 is loopback (::1)"},
    {7, AT("ff02::1"), UNICAST_EXPECTED "ff02::1 is multicast (ff00::/8)"},
    {7, AT("fe80::1"), UNICAST_EXPECTED "fe80::1 is link-local (fe80::/10), which needs an interface"},
    {7, AT("\"::ffff:192.0.2.1\""),
     UNICAST_EXPECTED "::ffff:192.0.2.1 is IPv4-mapped (::ffff:0:0/96); write it as IPv4"},
    {9, "  - { name: www, vip: 224.0.0.1, protocol: tcp, port: 80, pool: web }",
     "t:9: services[0].vip: expected the unicast address of a host or a service, but 224.0.0.1 is multicast "
     "(224.0.0.0/4)"},
};

static const struct row syntax_rows[] = {
    {4, "\ttable_size: 251", "t:4:1: a tab; YAML is indented with spaces"},
    {4, "   table_size: 251", "t:4:4: expected \"- \": indent the line like the other entries of the "
     "list"},
    {4, "     table_size: 251", "t:4:16: a \": \" cannot stand here; indent the line like its neighbours, "
     "or put the value in quotes"},
    {7, "      - { name: web1, address: 198.51.100.11",
     "t:8:9: expected \",\" or \"}\": is a \"{\" never closed?"},
    {7, "      - { name: web1, address: ::11 }", "t:7:32: expected a value here (an IPv6 address that "
     "begins or ends with \"::\" needs quotes)"},
    {1, "seed: @0123456789", "t:1:7: a value cannot start with this character; put it in quotes"},
    {9, SERVICE "x: \"open", "t:11:1: the file ends inside quotes: close them"},
    {1, "seed: \x01", "t:1:7: a control character; remove it"},
    {1, "seed: &x 0123456789", "t:1:7: anchors (&x) and aliases are not supported; write the value out"},
    {4, "    table_size: *x", "t:4:17: aliases (*x) are not supported; write the value out"},
    {4, "    table_size: !!int \"251\"",
     "t:4:17: tags (tag:yaml.org,2002:int) are not supported; remove it"},
    {9, SERVICE "---\nseed: x", "t:10:1: a second document starts here; a configuration is one document: "
     "remove the \"---\""},
    {9, SERVICE "...\nseed: x", "t:11:1: something follows the end of the document (\"...\"); remove it"},
    {4, "    x: [[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]", "t:4:21: nested deeper than 16 levels"},
};

static const struct row duplicate_rows[] = {
    {9, SERVICE "  - { name: www2, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web }",
     "t:10: services[1]: 192.0.2.10 tcp 80 is defined already at line 9; remove one of them"},
    {9, SERVICE "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 81, pool: web }",
     "t:10: services[1].name: \"www\" is the name of services[0] at line 9 already; choose another"},
    {9, SERVICE "  - { name: www2, vip: 192.0.2.10, protocol: udp, port: 80, pool: web }", NULL}, /* BL-73 */
    {9, SERVICE "  - { name: www2, vip: 192.0.2.10, protocol: tcp, port: 81, pool: web }", NULL},
    {9, SERVICE "  - { name: www2, vip: \"c000:20a::\", protocol: tcp, port: 80, pool: web }", NULL},
    /* BL-75, BL-63 */
    {7, BACKEND "      - { name: web2, address: 198.51.100.11, weight: 7 }",
     "t:8: pools[0].backends[1].address: 198.51.100.11 is the address of backend \"web1\" at line 7 already; "
     "with direct server return a port cannot tell two backends apart, so remove one of them"},
    {7, "      - { name: web1, address: 2001:db8::11 }\n"
        "      - { name: web2, address: 2001:0db8:0:0::11 }",
     "t:8: pools[0].backends[1].address: 2001:db8::11 is the address of backend \"web1\" at line 7 already; "
     "with direct server return a port cannot tell two backends apart, so remove one of them"},
    {7, BACKEND "      - { name: web1, address: 198.51.100.12 }",
     "t:8: pools[0].backends[1].name: \"web1\" is the name of another backend of this pool at line 7 already; "
     "choose another"},
    {9, "  - { name: www, vip: 198.51.100.11, protocol: tcp, port: 80, pool: web }",
     "t:9: services[0].vip: 198.51.100.11 is the address of a backend at line 7 too; its tunnel would lead "
     "back here, so use another address for one of them"},
    {1, "seed: 0123456789abcdef\ntunnel: { source: 192.0.2.10 }",
     "t:10: services[0].vip: 192.0.2.10 is the tunnel source at line 2, the balancer's own address; use "
     "another"},
    {1, "seed: 0123456789abcdef\ntunnel: { source: 198.51.100.11 }",
     "t:8: pools[0].backends[0].address: 198.51.100.11 is the tunnel source at line 2, the balancer's own "
     "address; use another"},
    {9, "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: wbe }",
     "t:9: services[0].pool: no pool is named \"wbe\"; did you mean \"web\"?"},
    {9, "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: dns }",
     "t:9: services[0].pool: no pool is named \"dns\"; add it under \"pools\" or name one of those"},
    {9, "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: a/b }",
     "t:9: services[0].pool: expected the name of a pool, found \"a/b\""},
};

#define ALGORITHM(lines)  "  - name: web\n    algorithm: " lines
#define NODES_EXPECTED    "t:5: pools[0].virtual_nodes: expected a whole number from 1 to 65535, found "
#define BOUND(text)       "  - name: web\n    bounded_load: " text
#define BOUND_EXPECTED    "t:4: pools[0].bounded_load: expected a number from 0.01 to 10, such as 0.25 for a " \
                          "quarter above the mean, found "
#define MORE(n, more)     "      - { name: w" n ", address: 198.51.100.2" n more " }\n"

static const struct row hashing_rows[] = {
    {3, ALGORITHM("ring\n    virtual_nodes: 1"), NULL},
    {3, ALGORITHM("ring\n    virtual_nodes: 65535"), NULL},
    {3, ALGORITHM("ring\n    ketama: true"), NULL},
    {3, ALGORITHM("ring\n    ketama: false"), NULL},
    {3, ALGORITHM("ring\n    virtual_nodes: 0"), NODES_EXPECTED "\"0\""},
    {3, ALGORITHM("ring\n    virtual_nodes: 65536"), NODES_EXPECTED "\"65536\""},
    {3, ALGORITHM("ring\n    ketama: yes"),
     "t:5: pools[0].ketama: expected true or false, found \"yes\""},
    {3, ALGORITHM("ring\n    ketama: True"),
     "t:5: pools[0].ketama: expected true or false, found \"True\""},
    {3, ALGORITHM("ring\n    ketama: \"true\""),
     "t:5: pools[0].ketama: expected true or false, found \"true\" in quotes; write it without"},
    {3, ALGORITHM("ring\n    ketama: 1"), "t:5: pools[0].ketama: expected true or false, found \"1\""},
    {3, BOUND("0.25"), NULL},
    {3, BOUND("0.01"), NULL},
    {3, BOUND("10"), NULL},
    {3, BOUND("10.000000"), NULL},
    {3, BOUND("0.009999"), BOUND_EXPECTED "\"0.009999\""},
    {3, BOUND("10.000001"), BOUND_EXPECTED "\"10.000001\""},
    {3, BOUND("0.0000001"), BOUND_EXPECTED "\"0.0000001\""},
    {3, BOUND("0"), BOUND_EXPECTED "\"0\""},
    {3, BOUND("1."), BOUND_EXPECTED "\"1.\""},
    {3, BOUND(".5"), BOUND_EXPECTED "\".5\""},
    {3, BOUND("-0.5"), BOUND_EXPECTED "\"-0.5\""},
    {3, BOUND("1e0"), BOUND_EXPECTED "\"1e0\""},
    {3, BOUND("25%"), BOUND_EXPECTED "\"25%\"; write 25 % as 0.25"},
    {3, BOUND("\"0.25\""), BOUND_EXPECTED "\"0.25\" in quotes; write it without"},
    {3, BOUND("4294967296"), BOUND_EXPECTED "\"4294967296\""}, /* BL-86 */
    {7, "      - { name: web1, address: 198.51.100.11, zone: rack-7 }", NULL},
    {7, "      - { name: web1, address: 198.51.100.11, zone: \"rack 7\" }",
     "t:7: pools[0].backends[0].zone: expected a name of 1 to 63 letters, digits and . _ -, found "
     "\"rack 7\""},
    {7, "      - { name: web1, address: 198.51.100.11, bucket: 65535 }",
     "t:7: pools[0].backends[0].bucket: expected a whole number from 0 to 65534, found \"65535\""},
    {7, "      - { name: web1, address: 198.51.100.11, weight: 41944 }", NULL}, /* no ring */
};

/* A ring of weight 41,943 has 16,777,200 points. */
static const struct row ring_rows[] = {
    {7, MORE("0", ", weight: 41943"), NULL},
    {7, MORE("0", ", weight: 41944"),
     "t:3: pools[0].virtual_nodes: weights of 41944 in all with 400 points each are more than the 16777216 that "
     "a ring may have; set it to 399 or less, or lower all weights"},
};

/* BL-61: where chance decides, few slots mean another thing than with Maglev. */
static const struct row scatter_rows[] = {
    {7, MORE("0", ""), NULL},
    {7, MORE("0", "") MORE("1", "") MORE("2", ""),
     "t:5: pools[0].table_size: 251 slots for 3 backends: shares scatter by about 10.9 %; 307 or more keeps that "
     "below 10 %"},
    {7, MORE("0", "") MORE("1", ", weight: 251"),
     "t:5: pools[0].table_size: a backend of weight 1 has a share of less than one slot and may get none; bring "
     "the weights closer together or use a larger table"},
};

/* Jump: lines 4 and 5 of the pool are taken, so its backends are on 7 and after. */
static const struct row jump_rows[] = {
    {7, MORE("0", ", bucket: 0") MORE("1", ", bucket: 1"), NULL},
    {7, MORE("0", ", bucket: 1") MORE("1", ", bucket: 0"), NULL},
    {7, MORE("0", ", bucket: 0, weight: 7") MORE("1", ", bucket: 1, weight: 7"), NULL},
    {7, MORE("0", ", bucket: 0") MORE("1", ", bucket: 1, weight: 0"), NULL},
    {7, MORE("0", ", bucket: 0") MORE("1", ""),
     "t:8: pools[0].backends[1].bucket: it is missing; with jump each backend has a number, 0, 1, 2, ... in "
     "the order in which they joined"},
    {7, MORE("0", ", bucket: 0") MORE("1", ", bucket: x"),
     "t:8: pools[0].backends[1].bucket: expected a whole number from 0 to 65534, found \"x\""},
    {7, MORE("0", ", bucket: 0") MORE("1", ", bucket: 0"),
     "t:8: pools[0].backends[1].bucket: 0 is the bucket of the backend at line 7 already"},
    {7, MORE("0", ", bucket: 0") MORE("1", ", bucket: 3") MORE("2", ", bucket: 1"),
     "t:8: pools[0].backends: no backend has bucket 2, but one has 3; number them without gaps (only the last "
     "may go), or set jump_replacement: true so that others take its place"},
    {7, MORE("0", ", bucket: 1"),
     "t:7: pools[0].backends: no backend has bucket 0, but one has 1; number them without gaps (only the last "
     "may go), or set jump_replacement: true so that others take its place"},
    {7, MORE("0", ", bucket: 0, weight: 2") MORE("1", ", bucket: 1, weight: 3"),
     "t:8: pools[0].backends[1].weight: 3 here and 2 before, but jump has no weights; give all backends the "
     "same or choose another algorithm"},
    {7, MORE("0", ", bucket: 0, weight: 2") MORE("1", ", bucket: 1, weight: x") MORE("2", ", bucket: 2, weight: 2"),
     "t:8: pools[0].backends[1].weight: expected a whole number from 0 to 65535, found \"x\""},
    {7, MORE("0", ", bucket: 0, weight: 0") MORE("1", ", bucket: 1"),
     "t:7: pools[0].backends[0].weight: with jump only the last backend (bucket 1) can go out of service; set "
     "jump_replacement: true so that others take its place"},
};

/* With jump_replacement gaps and weight 0 are fine, different weights are not. */
static const struct row replacement_rows[] = {
    {7, MORE("0", ", bucket: 0") MORE("1", ", bucket: 7"), NULL},
    {7, MORE("0", ", bucket: 0, weight: 0") MORE("1", ", bucket: 1"), NULL},
    {7, MORE("0", ", bucket: 5") MORE("1", ", bucket: 5"),
     "t:9: pools[0].backends[1].bucket: 5 is the bucket of the backend at line 8 already"},
    {7, MORE("0", ", bucket: 0, weight: 2") MORE("1", ", bucket: 1, weight: 3"),
     "t:9: pools[0].backends[1].weight: 3 here and 2 before, but jump has no weights; give all backends the "
     "same or choose another algorithm"},
};

static const struct row hashing_warning_rows[] = {
    {3, ALGORITHM("modulo"),
     "t:4: pools[0].algorithm: modulo is for comparison: any change of the backends moves nearly all new flows "
     "(80 % from 4 backends to 5); use maglev"},
    {3, ALGORITHM("maglev\n    virtual_nodes: 400"),
     "t:5: pools[0].virtual_nodes: algorithm maglev has no use for it; remove it or choose ring"},
    {3, "  - name: web\n    ketama: true",
     "t:4: pools[0].ketama: algorithm maglev has no use for it; remove it or choose ring"},
    {3, ALGORITHM("rendezvous\n    jump_replacement: true"),
     "t:5: pools[0].jump_replacement: algorithm rendezvous has no use for it; remove it or choose jump"},
    {3, ALGORITHM("ring\n    virtual_nodes: 100\n    ketama: true"),
     "t:5: pools[0].virtual_nodes: ketama has its own number of points, so this has no effect; remove it"},
    {7, "      - { name: web1, address: 198.51.100.11, bucket: 0 }",
     "t:7: pools[0].backends[0].bucket: algorithm maglev has no use for it; remove it or choose jump"},
};

static const struct row warning_rows[] = {
    {1, "seed: change-me-to-something-secret",
     "t:1: seed: it is the example of the documentation, which everybody knows; take the output of "
     "'openssl rand -hex 16'"},
    {7, "      - { name: web1, address: 198.51.100.11, weight: 0 }",
     "t:3: pools[0]: every backend has weight 0, so new flows are dropped; give one a weight"}, /* BL-66 */
    {4, "    table_size: 97", "t:4: pools[0].table_size: 97 slots for 1 backend: shares can be off by about "
     "1.0 %; 101 or more keeps that below 1 %"}, /* BL-61 */
    {2, "pools:\n  - { name: old, health: { port: 1 }, backends: [ { name: a, address: 198.51.100.9 } ] }",
     "t:3: pools[0]: no service uses it"},
    {7, BACKEND "      - { name: web2, address: 198.51.100.12, weight: 65535 }",
     "t:4: pools[0].table_size: a backend of weight 1 has a share of less than one slot and gets one all the "
     "same; bring the weights closer together or use a larger table"}, /* BL-61 */
    {9, "  - { name: www, vip: 192.0.2.10, protocol: udp, port: 80, pool: web }",
     "t:3: pools[0].health: TCP port 80 is checked because the first service of this pool is there, but "
     "that service is UDP; set \"port\" if nothing accepts TCP on it"},
};
/* clang-format on */

#define ROWS_TEST(name, rows)                                                                      \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        CHECK_ROWS(rows, false);                                                                   \
    }

ROWS_TEST(test_seed, seed_rows)
ROWS_TEST(test_tunnel, tunnel_rows)
ROWS_TEST(test_bl60_table_size, table_size_rows)
ROWS_TEST(test_bl66_weight, weight_rows)
ROWS_TEST(test_bl86_port, port_rows)
ROWS_TEST(test_health, health_rows)
ROWS_TEST(test_pool, pool_rows)
ROWS_TEST(test_keys, key_rows)
ROWS_TEST(test_policies, policy_rows)
ROWS_TEST(test_names, name_rows)
ROWS_TEST(test_addresses, address_rows)
ROWS_TEST(test_syntax, syntax_rows)
ROWS_TEST(test_bl75_duplicates, duplicate_rows)

ROWS_TEST(test_hashing, hashing_rows)

static void test_warnings(void **state)
{
    (void)state;
    CHECK_ROWS(warning_rows, true);
    CHECK_ROWS(hashing_warning_rows, true);
}

/* Rows with other lines 4 and 5: `fourth` and no health check. */
static void check_pool_rows(const struct row *rows, size_t count, const char *fourth, bool warning)
{
    for (size_t i = 0; i < count; i++) {
        struct complaints complaints = {0};
        char text[1024];
        struct hb_config *config;

        snprintf(text, sizeof(text),
                 "seed: 0123456789abcdef\npools:\n  - name: web\n    %s\n"
                 "    health: { type: none }\n    backends:\n%sservices:\n%s",
                 fourth, rows[i].replacement, SERVICE);
        config = parse(text, &complaints);
        if ((config != NULL) != (rows[i].complaint == NULL || warning) ||
            complaints.count != (rows[i].complaint != NULL) ||
            (rows[i].complaint != NULL &&
             !has_complaint(&complaints, warning, rows[i].complaint))) {
            print_complaints(&complaints);
            fail_msg("row %zu: expected \"%s\"", i,
                     rows[i].complaint != NULL ? rows[i].complaint : "no complaint");
        }
        hb_config_free(config);
        drop_complaints(&complaints);
    }
}

static void test_ring(void **state)
{
    (void)state;
    check_pool_rows(ring_rows, sizeof(ring_rows) / sizeof(ring_rows[0]), "algorithm: ring", false);
}

static void test_bl61_scatter(void **state)
{
    (void)state;
    check_pool_rows(scatter_rows, sizeof(scatter_rows) / sizeof(scatter_rows[0]),
                    "algorithm: rendezvous\n    table_size: 251", true);
}

static void test_jump(void **state)
{
    (void)state;
    check_pool_rows(jump_rows, sizeof(jump_rows) / sizeof(jump_rows[0]), "algorithm: jump", false);
    check_pool_rows(replacement_rows, sizeof(replacement_rows) / sizeof(replacement_rows[0]),
                    "algorithm: jump\n    jump_replacement: true", false);
}

/* Bounded load places flows off their slots, where only an entry finds them. */
static void test_bounded_load_tracks_all(void **state)
{
    static const char *const words[] = {"all", "changed", "off"};
    char text[512];

    (void)state;
    for (int i = 0; i < 6; i++) {
        struct complaints complaints = {0};
        struct hb_config *config;

        snprintf(
            text, sizeof(text),
            "seed: 0123456789abcdef\n"
            "pools:\n"
            "  - { name: web, health: { type: none }, bounded_load: 0.25, backends: [{ name: a, "
            "address: 198.51.100.1 }] "
            "}\n"
            "  - { name: api, health: { type: none }, backends: [{ name: a, address: 198.51.100.1 "
            "}] }\n"
            "services:\n"
            "  - { name: w, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web }\n"
            "  - { name: a, vip: 192.0.2.10, protocol: tcp, port: 81, pool: %s, tracking: %s }\n",
            i < 3 ? "web" : "api", words[i % 3]);
        config = parse(text, &complaints);
        assert_int_equal(config != NULL, i == 0 || i >= 3);
        if (i == 1)
            assert_true(has_complaint(
                &complaints, false,
                "t:7: services[1].tracking: \"changed\", but its pool web has bounded_load, which "
                "places flows off their slots and so needs \"all\"; change one of them"));
        hb_config_free(config);
        drop_complaints(&complaints);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seed),
        cmocka_unit_test(test_tunnel),
        cmocka_unit_test(test_bl60_table_size),
        cmocka_unit_test(test_bl66_weight),
        cmocka_unit_test(test_bl86_port),
        cmocka_unit_test(test_health),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_policies),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_syntax),
        cmocka_unit_test(test_bl75_duplicates),
        cmocka_unit_test(test_hashing),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_bl61_scatter),
        cmocka_unit_test(test_jump),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_bounded_load_tracks_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
