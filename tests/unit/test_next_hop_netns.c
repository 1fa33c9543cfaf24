/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_next_hop_netns.c: next hops from the kernel itself. Needs root; exits 77 when it may not.
 *
 *     this process: a namespace of its own             peer: a second one (held by a descriptor)
 *     up0   198.51.100.10/24, 2001:db8:1::10/64  ----  up1   198.51.100.1 and .2, 2001:db8:1::1
 *     alt0  192.0.2.10/24                        ----  alt1  192.0.2.1
 *
 * Both vanish with the process. Links, addresses and routes are made by ip(8); each test waits for
 * the events that must come, never for a time to pass.
 */
#include "net_test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "next_hop.h"

#define LIMIT_S 60
#define SKIPPED 77

static int home_ns, peer_ns;

struct bench {
    struct event_base *base;
    struct hb_next_hops *hops;
    uint32_t changes;
    const char *watch_too; /* an address to watch when something changes */
};

/* --- The two namespaces --- */

static void enter(int ns)
{
    if (setns(ns, CLONE_NEWNET) < 0) {
        perror("setns");
        abort();
    }
}

static bool run(const char *command)
{
    int status = system(command);

    if (status != 0)
        print_error("'%s' ended with status %d\n", command, status);
    return status == 0;
}

#define ip(command) assert_true(run("ip " command))

static void ip_peer(const char *command)
{
    bool ran;

    enter(peer_ns);
    ran = run(command);
    enter(home_ns);
    assert_true(ran);
}

static int open_own_namespace(void)
{
    if (unshare(CLONE_NEWNET) < 0)
        return -1;
    return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

/* Starts every test from the same state. DAD is off: an address can be used at once. */
static int set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    char command[160];

    enter(peer_ns);
    snprintf(command, sizeof(command),
             "ip link add up1 type veth peer name up0 netns /proc/%d/fd/%d && "
             "ip link add alt1 type veth peer name alt0 netns /proc/%d/fd/%d",
             getpid(), home_ns, getpid(), home_ns);
    if (!run(command) ||
        !run("ip link set lo up && ip link set up1 up && ip link set alt1 up && "
             "ip addr add 198.51.100.1/24 dev up1 && ip addr add 198.51.100.2/24 dev up1 && "
             "ip addr add 192.0.2.1/24 dev alt1 && ip addr add 2001:db8:1::1/64 dev up1 nodad"))
        return -1;
    enter(home_ns);
    if (!run("ip link set lo up && ip link set up0 up && ip link set alt0 up && "
             "ip addr add 198.51.100.10/24 dev up0 && ip addr add 192.0.2.10/24 dev alt0 && "
             "ip addr add 2001:db8:1::10/64 dev up0 nodad"))
        return -1;
    bench->base = event_base_new();
    *state = bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;

    enter(home_ns);
    hb_next_hops_close(bench->hops);
    event_base_free(bench->base);
    free(bench);
    return run("ip link del up0 2>/dev/null; ip link del alt0; ip rule del pref 100 2>/dev/null; "
               "true")
               ? 0
               : -1;
}

/* --- Waiting --- */

static void watch(struct bench *bench, const char *text)
{
    struct hb_address address = address_of(text);

    assert_int_equal(hb_next_hops_watch(bench->hops, &address), 0);
}

static void on_changed(void *context, const struct hb_address *address)
{
    struct bench *bench = context;
    struct hb_next_hop hop;

    bench->changes++;
    assert_true(hb_next_hops_get(bench->hops, address, &hop));
    if (hop.resolved && bench->watch_too) {
        watch(bench, bench->watch_too);
        bench->watch_too = NULL;
    }
}

static void open_hops(struct bench *bench)
{
    bench->hops = hb_next_hops_open(bench->base, on_changed, bench);
    assert_non_null(bench->hops);
}

static struct hb_next_hop hop_of(struct bench *bench, const char *text)
{
    struct hb_address address = address_of(text);
    struct hb_next_hop hop;

    assert_true(hb_next_hops_get(bench->hops, &address, &hop));
    return hop;
}

static void turn_loop(struct bench *bench)
{
    static const struct timeval most = {.tv_usec = 50000};

    event_base_loopexit(bench->base, &most);
    event_base_loop(bench->base, EVLOOP_ONCE);
}

/* Lets the loop turn until `condition` about `hop` of `text` holds. */
#define wait_until(bench, text, condition)                                                         \
    do {                                                                                           \
        time_t limit_ = time(NULL) + LIMIT_S;                                                      \
        struct hb_next_hop hop = hop_of(bench, text);                                              \
        while (!(condition)) {                                                                     \
            if (time(NULL) > limit_)                                                               \
                fail_msg("%s: not within %d s: %s (problem: '%s')", text, LIMIT_S, #condition,     \
                         hop.problem);                                                             \
            turn_loop(bench);                                                                      \
            hop = hop_of(bench, text);                                                             \
        }                                                                                          \
    } while (0)

static bool is_address(struct hb_address address, const char *text)
{
    struct hb_address expected = address_of(text);

    return memcmp(&address, &expected, sizeof(expected)) == 0;
}

/* --- Tests --- */

/* Nobody has spoken to the gateway yet: it is resolved because it is watched. */
static void test_gateway(void **state)
{
    struct hb_next_hop found;

    ip_peer("ip link set up1 address 02:00:00:00:00:01");
    ip("link set up0 address 02:00:00:00:00:10");
    ip("route add 203.0.113.0/24 via 198.51.100.1");
    open_hops(*state);
    watch(*state, "203.0.113.9");
    wait_until(*state, "203.0.113.9", hop.resolved);
    found = hop_of(*state, "203.0.113.9");
    assert_string_equal(found.ifname, "up0");
    assert_int_equal(found.mtu, 1500);
    assert_memory_equal(found.source_mac, "\x02\0\0\0\0\x10", 6);
    assert_memory_equal(found.gateway_mac, "\x02\0\0\0\0\x01", 6);
    assert_address_equal(found.gateway, "198.51.100.1");
    assert_address_equal(found.source, "198.51.100.10");
}

static void test_ipv6_on_link_and_by_gateway(void **state)
{
    ip("route add 2001:db8:9::/48 via 2001:db8:1::1");
    open_hops(*state);
    watch(*state, "2001:db8:1::1");
    watch(*state, "2001:db8:9::9");
    wait_until(*state, "2001:db8:1::1", hop.resolved);
    wait_until(*state, "2001:db8:9::9", hop.resolved);
    assert_address_equal(hop_of(*state, "2001:db8:1::1").gateway, "2001:db8:1::1");
    assert_address_equal(hop_of(*state, "2001:db8:9::9").gateway, "2001:db8:1::1");
    assert_address_equal(hop_of(*state, "2001:db8:9::9").source, "2001:db8:1::10");
}

/* RFC 5549. */
static void test_ipv4_by_ipv6_gateway(void **state)
{
    ip("route add 203.0.113.0/24 via inet6 2001:db8:1::1 dev up0");
    open_hops(*state);
    watch(*state, "203.0.113.9");
    wait_until(*state, "203.0.113.9", hop.resolved);
    assert_address_equal(hop_of(*state, "203.0.113.9").gateway, "2001:db8:1::1");
}

static void test_source_and_mtu_of_the_route(void **state)
{
    ip("addr add 198.51.100.77/32 dev lo");
    ip("route add 203.0.113.0/24 via 198.51.100.1 src 198.51.100.77 mtu 1400");
    open_hops(*state);
    watch(*state, "203.0.113.9");
    wait_until(*state, "203.0.113.9", hop.resolved);
    assert_address_equal(hop_of(*state, "203.0.113.9").source, "198.51.100.77");
    assert_int_equal(hop_of(*state, "203.0.113.9").mtu, 1400);
    ip("link set up0 mtu 1300");
    wait_until(*state, "203.0.113.9", hop.mtu == 1300);
    ip("addr del 198.51.100.77/32 dev lo");
    wait_until(*state, "203.0.113.9", !hop.resolved); /* its route went with its source */
}

/* Obstacles in the kernel's own words; BL-14 is the one of this machine. Each goes when its cause
 * goes. */
static void test_problems(void **state)
{
    ip("route add unreachable 203.0.113.1");
    ip("route add prohibit 203.0.113.2");
    ip("route add blackhole 203.0.113.3");
    ip("-6 route add unreachable 2001:db8:9::1");
    open_hops(*state);
    watch(*state, "198.51.100.10");
    watch(*state, "2001:db8:1::10");
    watch(*state, "203.0.113.1");
    watch(*state, "203.0.113.2");
    watch(*state, "203.0.113.3");
    watch(*state, "203.0.113.9");
    watch(*state, "198.51.100.255");
    watch(*state, "2001:db8:9::1");
    watch(*state, "2001:db8:9::2");
#define wait_problem(text, expected) wait_until(*state, text, strcmp(hop.problem, expected) == 0)
    wait_problem("198.51.100.10", "198.51.100.10 is an address of this machine");
    wait_problem("2001:db8:1::10", "2001:db8:1::10 is an address of this machine");
    wait_problem("203.0.113.1", "the route to 203.0.113.1 is of the type 'unreachable'");
    wait_problem("203.0.113.2", "the route to 203.0.113.2 is of the type 'prohibit'");
    wait_problem("203.0.113.3", "the route to 203.0.113.3 is of the type 'blackhole'");
    wait_problem("203.0.113.9", "no route to 203.0.113.9");
    wait_problem("198.51.100.255", "198.51.100.255 is a broadcast address");
    wait_problem("2001:db8:9::1", "the route to 2001:db8:9::1 is of the type 'unreachable'");
    wait_problem("2001:db8:9::2", "no route to 2001:db8:9::2");
    ip("route add default via 198.51.100.1");
    wait_until(*state, "203.0.113.9", hop.resolved);
    ip("route del 203.0.113.3");
    wait_until(*state, "203.0.113.3", hop.resolved);
    ip("addr del 198.51.100.10/24 dev up0");
    wait_problem("198.51.100.10", "no route to 198.51.100.10");
}

static void test_route_moves_to_another_gateway(void **state)
{
    ip("route add 203.0.113.0/24 via 198.51.100.1");
    open_hops(*state);
    watch(*state, "203.0.113.9");
    wait_until(*state, "203.0.113.9", hop.resolved);
    ip("route replace 203.0.113.0/24 via 192.0.2.1");
    wait_until(*state, "203.0.113.9", hop.resolved && is_address(hop.gateway, "192.0.2.1"));
    assert_string_equal(hop_of(*state, "203.0.113.9").ifname, "alt0");
    ip("route del 203.0.113.0/24");
    wait_until(*state, "203.0.113.9", !hop.resolved);
}

/* A policy rule alone moves it, too. */
static void test_rule(void **state)
{
    ip("route add 203.0.113.0/24 via 198.51.100.1");
    ip("route add 203.0.113.0/24 via 192.0.2.1 table 100");
    open_hops(*state);
    watch(*state, "203.0.113.9");
    wait_until(*state, "203.0.113.9", hop.resolved);
    ip("rule add pref 100 to 203.0.113.0/24 lookup 100");
    wait_until(*state, "203.0.113.9", hop.resolved && is_address(hop.gateway, "192.0.2.1"));
    ip("rule del pref 100");
    wait_until(*state, "203.0.113.9", hop.resolved && is_address(hop.gateway, "198.51.100.1"));
}

/* The gateway is replaced by another machine, which says so (gratuitous ARP, as VRRP does). */
static void test_gateway_changes_its_mac(void **state)
{
    ip_peer("ip link set up1 address 02:00:00:00:00:01");
    open_hops(*state);
    watch(*state, "198.51.100.1");
    wait_until(*state, "198.51.100.1", hop.resolved && hop.gateway_mac[5] == 1);
    ip("neigh replace 198.51.100.1 lladdr 02:00:00:00:00:02 dev up0 nud stale");
    wait_until(*state, "198.51.100.1", hop.resolved && hop.gateway_mac[5] == 2);
    ip("neigh del 198.51.100.1 dev up0"); /* kept, and asked for again: the old one answers */
    wait_until(*state, "198.51.100.1", hop.gateway_mac[5] == 1);
    assert_true(hop_of(*state, "198.51.100.1").resolved);
}

/* The gateway is replaced by another machine, which says nothing. Only because we ask for
 * confirmation does the kernel find that the old one is gone; without that the entry would stay as
 * it is for ever. */
static void test_gateway_changes_its_mac_silently(void **state)
{
    assert_true(run("cd /proc/sys/net/ipv4/neigh/up0 && echo 4000 >base_reachable_time_ms && "
                    "echo 1 >delay_first_probe_time && echo 100 >retrans_time_ms"));
    ip_peer("ip link set up1 address 02:00:00:00:00:01");
    open_hops(*state);
    watch(*state, "198.51.100.1");
    wait_until(*state, "198.51.100.1", hop.resolved && hop.gateway_mac[5] == 1);
    /* The kernel has stopped to look by itself. */
    wait_until(*state, "198.51.100.1",
               system("ip neigh show 198.51.100.1 dev up0 | grep -q STALE") == 0);
    ip_peer("ip link set up1 address 02:00:00:00:00:02");
    wait_until(*state, "198.51.100.1", hop.gateway_mac[5] == 2);
}

/* It is not there at first; then it comes up, without a word of its own. */
static void test_unresolved_then_resolved(void **state)
{
    open_hops(*state);
    watch(*state, "198.51.100.3");
    watch(*state, "2001:db8:1::3");
    wait_problem("198.51.100.3", "198.51.100.3 does not answer ARP on up0");
    wait_problem("2001:db8:1::3", "2001:db8:1::3 does not answer ND on up0");
    ip_peer("ip addr add 198.51.100.3/24 dev up1");
    ip_peer("ip addr add 2001:db8:1::3/64 dev up1 nodad");
    wait_until(*state, "198.51.100.3", hop.resolved);
    wait_until(*state, "2001:db8:1::3", hop.resolved);
}

static void test_interface_down_and_up(void **state)
{
    open_hops(*state);
    watch(*state, "198.51.100.1");
    wait_until(*state, "198.51.100.1", hop.resolved);
    ip("link set up0 down");
    wait_until(*state, "198.51.100.1", !hop.resolved);
    ip("link set up0 up");
    wait_until(*state, "198.51.100.1", hop.resolved);
    ip("link set up0 address 02:00:00:00:00:55");
    wait_until(*state, "198.51.100.1", hop.resolved && hop.source_mac[5] == 0x55);
    ip_peer("ip link del up1");
    wait_until(*state, "198.51.100.1", !hop.resolved);
}

/* An interface that comes later, with its routes. */
static void test_interface_appears(void **state)
{
    open_hops(*state);
    watch(*state, "10.1.0.1");
    wait_problem("10.1.0.1", "no route to 10.1.0.1");
    ip("link add late0 type veth peer name late1");
    ip("addr add 10.1.0.2/24 dev late0");
    ip("link set late1 up");
    ip("link set late0 up");
    ip("neigh replace 10.1.0.1 lladdr 02:00:00:00:00:09 dev late0");
    wait_until(*state, "10.1.0.1", hop.resolved && strcmp(hop.ifname, "late0") == 0);
    assert_int_equal(hop_of(*state, "10.1.0.1").gateway_mac[5], 9);
    ip("link del late0");
}

/* An entry set by hand is used and left alone: asking for it would make it a dynamic one. */
static void test_permanent_neighbour_stays(void **state)
{
    ip("neigh replace 198.51.100.1 lladdr 02:00:00:00:00:07 dev up0 nud permanent");
    open_hops(*state);
    watch(*state, "198.51.100.1");
    watch(*state, "198.51.100.2");
    wait_until(*state, "198.51.100.1", hop.resolved);
    wait_until(*state, "198.51.100.2", hop.resolved); /* this one was asked for */
    assert_int_equal(hop_of(*state, "198.51.100.1").gateway_mac[5], 7);
    assert_true(run("ip neigh show 198.51.100.1 dev up0 | grep -q PERMANENT"));
}

/* What is watched from within `changed` is looked up at once, not at the next turn for some other
 * reason. */
static void test_watch_from_within(void **state)
{
    struct bench *bench = *state;

    /* With entries that need no asking nothing else wakes it up meanwhile. */
    ip("neigh replace 198.51.100.1 lladdr 02:00:00:00:00:07 dev up0 nud permanent");
    ip("neigh replace 192.0.2.1 lladdr 02:00:00:00:00:08 dev alt0 nud permanent");
    open_hops(bench);
    bench->watch_too = "192.0.2.1";
    watch(bench, "198.51.100.1");
    wait_until(bench, "198.51.100.1", hop.resolved);
    for (int turn = 0; turn < 5; turn++) /* one for the question, one for its answer */
        turn_loop(bench);
    assert_true(hop_of(bench, "192.0.2.1").resolved);
}

/* Without CAP_NET_ADMIN nobody can be asked for; the problem says so, and goes when the right
 * comes. */
static void test_without_permission(void **state)
{
    open_hops(*state);
    watch(*state, "198.51.100.1");
    assert_int_equal(seteuid(65534), 0);
    wait_problem("198.51.100.1", "may not resolve 198.51.100.1: CAP_NET_ADMIN is missing");
    assert_int_equal(seteuid(0), 0);
    wait_until(*state, "198.51.100.1", hop.resolved);
}

/* Ten thousand watched addresses and a thousand route changes: all follow, without a call for
 * nothing. */
static void test_many(void **state)
{
    struct bench *bench = *state;
    FILE *batch = popen("ip -batch -", "w");

    ip("route add 10.0.0.0/8 via 198.51.100.1");
    open_hops(bench);
    for (uint32_t i = 0; i < 10000; i++) {
        struct hb_address address = address_no(i);

        assert_int_equal(hb_next_hops_watch(bench->hops, &address), 0);
    }
    for (uint32_t i = 0; i < 10000; i += 3333) {
        char text[HB_ADDRESS_TEXT];
        struct hb_address address = address_no(i);

        inet_ntop(AF_INET, address.bytes, text, sizeof(text));
        wait_until(bench, text, hop.resolved);
    }
    for (int i = 0; i < 1000; i++)
        fprintf(batch, "route add 172.16.%d.%d/32 via 198.51.100.2\n", i / 250, i % 250);
    fprintf(batch, "route replace 10.0.0.0/8 via 192.0.2.1\n");
    assert_int_equal(pclose(batch), 0);
    bench->changes = 0;
    wait_until(bench, "10.0.39.15", hop.resolved && is_address(hop.gateway, "192.0.2.1"));
    wait_until(bench, "10.0.0.0", hop.resolved && is_address(hop.gateway, "192.0.2.1"));
    wait_until(bench, "10.0.0.0", bench->changes >= 10000);
    assert_in_range(bench->changes, 10000, 20000); /* the new route, then perhaps its gateway */
}

/* So many events that some are lost, and with them the one that counts: everything is read again.
 * What was in the queue before the loss is older than that, and must not win. */
static void test_lost_events(void **state)
{
    struct bench *bench = *state;
    FILE *batch = popen("ip -batch -", "w");

    open_hops(bench);
    watch(bench, "198.51.100.1");
    wait_until(bench, "198.51.100.1", hop.resolved);
    for (int i = 0; i < 20000; i++) {
        fprintf(batch, "route add 172.16.%d.%d/32 via 198.51.100.2\n", i / 250, i % 250);
        if (i == 2000)
            fprintf(batch, "neigh replace 198.51.100.1 lladdr 02:00:00:00:00:08 dev up0\n");
    }
    fprintf(batch, "neigh replace 198.51.100.1 lladdr 02:00:00:00:00:09 dev up0\n");
    assert_int_equal(pclose(batch), 0); /* the event loop has not turned since */
    wait_until(bench, "198.51.100.1", hop.gateway_mac[5] == 9);
    ip("link set up0 mtu 1400");
    wait_until(bench, "198.51.100.1", hop.mtu == 1400);
    assert_int_equal(hop_of(bench, "198.51.100.1").gateway_mac[5], 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_gateway, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ipv6_on_link_and_by_gateway, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ipv4_by_ipv6_gateway, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_source_and_mtu_of_the_route, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_problems, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_route_moves_to_another_gateway, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_rule, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_gateway_changes_its_mac, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_gateway_changes_its_mac_silently, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unresolved_then_resolved, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_interface_down_and_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_interface_appears, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_permanent_neighbour_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_watch_from_within, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_permission, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lost_events, set_up, tear_down),
    };

    peer_ns = open_own_namespace();
    home_ns = peer_ns < 0 ? -1 : open_own_namespace();
    if (home_ns < 0) {
        printf("skipped: no network namespace of its own (%s); run it as root\n", strerror(errno));
        return SKIPPED;
    }
    if (system("ip link add try0 type veth peer name try1 && ip link del try0") != 0) {
        printf("skipped: ip (iproute2) cannot make veth links here\n");
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
