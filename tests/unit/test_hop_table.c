/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hop_table.c: next hops as routes, links and neighbours come and go; first by hand, then
 * against a model over thousands of random changes (BL-105).
 */
#include "net_test.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>

#include "hop_table.h"

static int set_up(void **state)
{
    *state = hb_hop_table_new();
    return *state ? 0 : -1;
}

static int tear_down(void **state)
{
    hb_hop_table_free(*state);
    return 0;
}

static void tell_link(struct hb_hop_table *table, uint32_t ifindex, uint8_t last_byte, bool up)
{
    struct hb_netlink_link news = {.ifindex = ifindex,
                                   .up = up,
                                   .ethernet = true,
                                   .name = "eth",
                                   .mac = {2, 0, 0, 0, 1, last_byte},
                                   .mtu = 1500};

    news.name[3] = (char)('0' + ifindex);
    hb_hop_table_link(table, &news, false, 0);
}

static struct hb_netlink_neighbour resolved(uint32_t ifindex, const char *address,
                                            uint8_t last_byte)
{
    return (struct hb_netlink_neighbour){.ifindex = ifindex,
                                         .address = address_of(address),
                                         .state = NUD_REACHABLE,
                                         .has_mac = true,
                                         .mac = {2, 0, 0, 0, 2, last_byte}};
}

static void tell_neighbour(struct hb_hop_table *table, uint32_t ifindex, const char *address,
                           uint8_t last_byte)
{
    struct hb_netlink_neighbour news = resolved(ifindex, address, last_byte);

    hb_hop_table_neighbour(table, &news, false, 0);
}

static struct hb_netlink_route route_to(const char *destination, uint32_t ifindex,
                                        const char *gateway)
{
    struct hb_netlink_route route = {.destination = address_of(destination),
                                     .type = RTN_UNICAST,
                                     .ifindex = ifindex,
                                     .source = address_of("198.51.100.10")};

    if (gateway)
        route.gateway = address_of(gateway);
    return route;
}

static void tell_route(struct hb_hop_table *table, const char *destination, uint32_t ifindex,
                       const char *gateway)
{
    struct hb_netlink_route route = route_to(destination, ifindex, gateway);

    hb_hop_table_route(table, &route, 0);
}

static void watch(struct hb_hop_table *table, const char *address)
{
    struct hb_address to = address_of(address);

    assert_int_equal(hb_hop_table_watch(table, &to), 0);
}

static struct hb_next_hop hop_of(struct hb_hop_table *table, const char *address)
{
    struct hb_address to = address_of(address);
    struct hb_next_hop hop;

    assert_true(hb_hop_table_get(table, &to, &hop));
    return hop;
}

static uint32_t count_changes(struct hb_hop_table *table)
{
    struct hb_address address;
    uint32_t count = 0;

    while (hb_hop_table_next_change(table, &address))
        count++;
    return count;
}

/* --- By hand --- */

static void test_resolves(void **state)
{
    struct hb_next_hop hop;

    tell_link(*state, 3, 3, true);
    watch(*state, "203.0.113.9");
    assert_string_equal(hop_of(*state, "203.0.113.9").problem,
                        "the route to 203.0.113.9 has not been looked up yet");
    assert_int_equal(count_changes(*state), 0);

    tell_route(*state, "203.0.113.9", 3, "198.51.100.1");
    assert_int_equal(count_changes(*state), 1);
    hop = hop_of(*state, "203.0.113.9");
    assert_false(hop.resolved);
    assert_string_equal(hop.problem, "198.51.100.1 has not yet answered ARP on eth3");

    tell_neighbour(*state, 3, "198.51.100.1", 1);
    assert_int_equal(count_changes(*state), 1);
    hop = hop_of(*state, "203.0.113.9");
    assert_true(hop.resolved);
    assert_string_equal(hop.problem, "");
    assert_int_equal(hop.ifindex, 3);
    assert_string_equal(hop.ifname, "eth3");
    assert_int_equal(hop.mtu, 1500);
    assert_int_equal(hop.source_mac[5], 3);
    assert_int_equal(hop.gateway_mac[5], 1);
    assert_address_equal(hop.gateway, "198.51.100.1");
    assert_address_equal(hop.source, "198.51.100.10");
}

static void test_on_link_gateway_is_the_address(void **state)
{
    tell_link(*state, 3, 3, true);
    watch(*state, "2001:db8::9");
    tell_route(*state, "2001:db8::9", 3, NULL);
    tell_neighbour(*state, 3, "2001:db8::9", 9);
    count_changes(*state);
    assert_true(hop_of(*state, "2001:db8::9").resolved);
    assert_address_equal(hop_of(*state, "2001:db8::9").gateway, "2001:db8::9");
}

static void test_mtu_is_the_smaller(void **state)
{
    struct hb_netlink_route route = route_to("203.0.113.9", 3, NULL);

    tell_link(*state, 3, 3, true);
    watch(*state, "203.0.113.9");
    route.mtu = 1400;
    hb_hop_table_route(*state, &route, 0);
    count_changes(*state);
    assert_int_equal(hop_of(*state, "203.0.113.9").mtu, 1400);
    route.mtu = 9000;
    hb_hop_table_route(*state, &route, 0);
    assert_int_equal(count_changes(*state), 1);
    assert_int_equal(hop_of(*state, "203.0.113.9").mtu, 1500);
}

/* Every obstacle has its own sentence; BL-14 is the one of a backend that is this machine. */
static void test_problems(void **state)
{
    static const struct {
        int error;
        uint8_t type;
        const char *problem;
    } rows[] = {
        {ENETUNREACH, 0, "no route to 203.0.113.9"},
        {EHOSTUNREACH, 0, "the route to 203.0.113.9 is of the type 'unreachable'"},
        {EACCES, 0, "the route to 203.0.113.9 is of the type 'prohibit'"},
        {EINVAL, 0, "the route to 203.0.113.9 is of the type 'blackhole'"},
        {0, RTN_LOCAL, "203.0.113.9 is an address of this machine"},
        {0, RTN_BROADCAST, "203.0.113.9 is a broadcast address"},
        {0, RTN_MULTICAST, "203.0.113.9 is a multicast address"},
        {0, RTN_UNREACHABLE, "the route to 203.0.113.9 is of the type 'unreachable'"},
        {0, RTN_ANYCAST, "the route to 203.0.113.9 is not one to a single machine"},
    };

    tell_link(*state, 3, 3, true);
    watch(*state, "203.0.113.9");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hb_netlink_route route = route_to("203.0.113.9", 3, NULL);

        route.error = rows[i].error;
        route.type = rows[i].type;
        hb_hop_table_route(*state, &route, 0);
        count_changes(*state);
        assert_false(hop_of(*state, "203.0.113.9").resolved);
        assert_string_equal(hop_of(*state, "203.0.113.9").problem, rows[i].problem);
    }
}

static void test_problems_of_link_and_neighbour(void **state)
{
    struct hb_netlink_link tunnel = {.ifindex = 4, .up = true, .name = "tun0", .mtu = 1500};
    struct hb_netlink_route route = route_to("203.0.113.9", 3, NULL);
    struct hb_address to = route.destination;

    watch(*state, "203.0.113.9");
    hb_hop_table_route(*state, &route, 0);
    count_changes(*state);
    assert_string_equal(hop_of(*state, "203.0.113.9").problem,
                        "203.0.113.9 leaves by the unknown interface 3");
    tell_link(*state, 3, 3, false);
    count_changes(*state);
    assert_string_equal(hop_of(*state, "203.0.113.9").problem,
                        "203.0.113.9 leaves by eth3, which is down");
    tell_link(*state, 3, 3, true);
    hb_hop_table_neighbour_refused(*state, 3, &to, EPERM);
    count_changes(*state);
    assert_string_equal(hop_of(*state, "203.0.113.9").problem,
                        "may not resolve 203.0.113.9: CAP_NET_ADMIN is missing");
    hb_hop_table_neighbour_refused(*state, 3, &to, ENOBUFS);
    count_changes(*state);
    assert_string_equal(hop_of(*state, "203.0.113.9").problem,
                        "no room in the kernel for 203.0.113.9: raise gc_thresh3");
    hb_hop_table_neighbour(
        *state, &(struct hb_netlink_neighbour){.ifindex = 3, .address = to, .state = NUD_FAILED},
        false, 0);
    count_changes(*state);
    assert_string_equal(hop_of(*state, "203.0.113.9").problem,
                        "203.0.113.9 does not answer ARP on eth3");

    hb_hop_table_link(*state, &tunnel, false, 0);
    route.ifindex = 4;
    hb_hop_table_route(*state, &route, 0);
    count_changes(*state);
    assert_string_equal(hop_of(*state, "203.0.113.9").problem,
                        "203.0.113.9 leaves by tun0: not Ethernet");
    route.ifindex = 3;
    route.source.family = 0;
    hb_hop_table_route(*state, &route, 0);
    count_changes(*state);
    assert_string_equal(hop_of(*state, "203.0.113.9").problem,
                        "no source address to reach 203.0.113.9 from");
}

static void test_changes_are_real(void **state)
{
    tell_link(*state, 3, 3, true);
    watch(*state, "203.0.113.9");
    tell_route(*state, "203.0.113.9", 3, "198.51.100.1");
    tell_neighbour(*state, 3, "198.51.100.1", 1);
    assert_int_equal(count_changes(*state), 1);
    tell_link(*state, 3, 3, true);
    tell_route(*state, "203.0.113.9", 3, "198.51.100.1");
    tell_neighbour(*state, 3, "198.51.100.1", 1);
    assert_int_equal(count_changes(*state), 0);
    tell_neighbour(*state, 3, "198.51.100.1", 2);
    tell_neighbour(*state, 3, "198.51.100.1", 1); /* there and back again */
    assert_int_equal(count_changes(*state), 0);
    tell_neighbour(*state, 4, "198.51.100.1", 7); /* the same address on another link */
    assert_int_equal(count_changes(*state), 0);
}

static void test_watches_are_counted(void **state)
{
    struct hb_address address = address_of("203.0.113.9");
    struct hb_next_hop hop;

    hb_hop_table_unwatch(*state, &address); /* not watched: nothing happens */
    watch(*state, "203.0.113.9");
    watch(*state, "203.0.113.9");
    hb_hop_table_unwatch(*state, &address);
    assert_true(hb_hop_table_get(*state, &address, &hop));
    tell_route(*state, "203.0.113.9", 3, NULL); /* marks it */
    hb_hop_table_unwatch(*state, &address);
    assert_false(hb_hop_table_get(*state, &address, &hop));
    assert_int_equal(count_changes(*state), 0);
    tell_route(*state, "203.0.113.9", 3, NULL); /* a late answer */
    assert_int_equal(hb_hop_table_next_due(*state), UINT64_MAX);
}

/* A change while an answer is under way puts the question again; a lost answer does, too. */
static void test_questions(void **state)
{
    struct hb_address address;

    assert_false(hb_hop_table_next_route_question(*state, &address));
    watch(*state, "203.0.113.9");
    assert_true(hb_hop_table_next_route_question(*state, &address));
    assert_address_equal(address, "203.0.113.9");
    assert_false(hb_hop_table_next_route_question(*state, &address));
    assert_true(hb_hop_table_awaits_routes(*state));
    hb_hop_table_ask_all(*state);
    assert_false(hb_hop_table_next_route_question(*state, &address));
    tell_route(*state, "203.0.113.9", 3, NULL);
    assert_false(hb_hop_table_awaits_routes(*state));
    assert_true(hb_hop_table_next_route_question(*state, &address));
    hb_hop_table_answers_lost(*state);
    assert_false(hb_hop_table_awaits_routes(*state));
    assert_true(hb_hop_table_next_route_question(*state, &address));
    hb_hop_table_unwatch(*state, &address);
    assert_false(hb_hop_table_awaits_routes(*state));
}

/* Ten thousand backends behind one gateway: one neighbour, one question, one message moves them
 * all. */
static void test_many_behind_one_gateway(void **state)
{
    struct hb_address address;
    uint32_t ifindex, asked = 0;

    tell_link(*state, 3, 3, true);
    for (uint32_t i = 0; i < 10000; i++) {
        struct hb_netlink_route route = route_to("0.0.0.0", 3, "198.51.100.1");

        route.destination = address_no(i);
        assert_int_equal(hb_hop_table_watch(*state, &route.destination), 0);
        hb_hop_table_route(*state, &route, 0);
    }
    assert_int_equal(count_changes(*state), 10000);
    while (hb_hop_table_next_neighbour_question(*state, 0, &ifindex, &address))
        asked++;
    assert_int_equal(asked, 1);
    tell_neighbour(*state, 3, "198.51.100.1", 1);
    assert_int_equal(count_changes(*state), 10000);
    tell_neighbour(*state, 3, "198.51.100.1", 2);
    assert_int_equal(count_changes(*state), 10000);
}

/* A link that went while the dump was read stays gone, though the dump still shows it. */
static void test_link_gone_during_dump(void **state)
{
    struct hb_netlink_link gone = {.ifindex = 3, .gone = true};
    struct hb_netlink_link old = {.ifindex = 3, .up = true, .ethernet = true, .name = "eth3"};

    tell_link(*state, 3, 3, true);
    watch(*state, "203.0.113.9");
    tell_route(*state, "203.0.113.9", 3, NULL);
    hb_hop_table_dump_begin(*state);
    hb_hop_table_link(*state, &gone, false, 0);
    hb_hop_table_link(*state, &old, true, 0);
    hb_hop_table_dump_end(*state, 0);
    count_changes(*state);
    assert_string_equal(hop_of(*state, "203.0.113.9").problem,
                        "203.0.113.9 leaves by the unknown interface 3");
}

/* --- Against a model (BL-105) --- */

#define LINKS      4
#define GATEWAYS   1000
#define WATCHES    500
#define OPERATIONS 10000

struct model {
    struct hb_hop_table *table;
    uint32_t random;
    struct {
        bool there, up;
        uint8_t byte;
    } links[LINKS];
    struct {
        bool in_kernel, known;
        uint8_t byte;        /* as last learned */
        uint8_t kernel_byte; /* as the kernel has it */
        uint32_t users;
    } gateways[LINKS][GATEWAYS];
    struct {
        bool watched, routed;
        uint32_t link, gateway;
        struct hb_next_hop told; /* as of the last change reported */
    } watches[WATCHES];
};

static uint32_t pick(struct model *model, uint32_t below)
{
    model->random = model->random * 1664525 + 1013904223;
    return (uint32_t)(((uint64_t)model->random * below) >> 32);
}

static struct hb_address gateway_address(uint32_t gateway)
{
    return address_no(0x10000 + gateway);
}

static struct hb_netlink_link describe_link(const struct model *model, uint32_t link)
{
    struct hb_netlink_link news = {.ifindex = link + 1, .gone = !model->links[link].there};

    if (!news.gone) {
        news.up = model->links[link].up;
        news.ethernet = true;
        news.mtu = 1500;
        news.name[0] = 'e';
        news.mac[5] = model->links[link].byte;
    }
    return news;
}

static void send_gateway(struct model *model, uint32_t link, uint32_t gateway, bool in_kernel,
                         uint8_t byte, bool dumped)
{
    struct hb_netlink_neighbour news = {.ifindex = link + 1,
                                        .address = gateway_address(gateway),
                                        .gone = !in_kernel,
                                        .state = in_kernel ? NUD_STALE : 0,
                                        .has_mac = in_kernel};

    if (in_kernel)
        news.mac[5] = byte;
    hb_hop_table_neighbour(model->table, &news, dumped, 0);
}

/* What the table must know of a gateway after it was told what the kernel has. */
static void learn(struct model *model, uint32_t link, uint32_t gateway)
{
    if (model->gateways[link][gateway].in_kernel) {
        model->gateways[link][gateway].known = true;
        model->gateways[link][gateway].byte = model->gateways[link][gateway].kernel_byte;
    } else if (model->gateways[link][gateway].users == 0) {
        model->gateways[link][gateway].known = false;
    }
}

static void change_kernel_gateway(struct model *model, uint32_t link, uint32_t gateway)
{
    model->gateways[link][gateway].in_kernel = pick(model, 4) != 0;
    model->gateways[link][gateway].kernel_byte = (uint8_t)(1 + pick(model, 3));
}

static void operate_gateway(struct model *model)
{
    uint32_t link = pick(model, LINKS), gateway = pick(model, GATEWAYS);

    if (!model->links[link].there)
        return;
    change_kernel_gateway(model, link, gateway);
    send_gateway(model, link, gateway, model->gateways[link][gateway].in_kernel,
                 model->gateways[link][gateway].kernel_byte, false);
    learn(model, link, gateway);
}

static void leave_route(struct model *model, uint32_t watch_index)
{
    uint32_t link = model->watches[watch_index].link;
    uint32_t gateway = model->watches[watch_index].gateway;

    if (!model->watches[watch_index].routed)
        return;
    model->watches[watch_index].routed = false;
    if (--model->gateways[link][gateway].users == 0 && !model->gateways[link][gateway].in_kernel)
        model->gateways[link][gateway].known = false;
}

static void operate_watch(struct model *model)
{
    uint32_t i = pick(model, WATCHES);
    struct hb_address address = address_no(i);

    if (model->watches[i].watched && pick(model, 4) == 0) {
        hb_hop_table_unwatch(model->table, &address);
        leave_route(model, i);
        model->watches[i].watched = false;
        return;
    }
    if (!model->watches[i].watched) {
        assert_int_equal(hb_hop_table_watch(model->table, &address), 0);
        model->watches[i].watched = true;
        assert_true(hb_hop_table_get(model->table, &address, &model->watches[i].told));
    }
}

static void operate_route(struct model *model)
{
    uint32_t i = pick(model, WATCHES), link = pick(model, LINKS), gateway = pick(model, GATEWAYS);
    struct hb_netlink_route answer = {.destination = address_no(i)};

    if (!model->watches[i].watched)
        return;
    answer.error = pick(model, 5) == 0 ? ENETUNREACH : 0;
    answer.type = RTN_UNICAST;
    answer.ifindex = link + 1;
    answer.gateway = gateway_address(gateway);
    answer.source = address_no(0x20000);
    hb_hop_table_route(model->table, &answer, 0);
    if (!answer.error)
        model->gateways[link][gateway]
            .users++; /* before the old one is left, which may be the same */
    leave_route(model, i);
    model->watches[i].routed = !answer.error;
    model->watches[i].link = link;
    model->watches[i].gateway = gateway;
}

static void forget_gateways(struct model *model, uint32_t link)
{
    for (uint32_t i = 0; i < GATEWAYS; i++) {
        model->gateways[link][i].in_kernel = false;
        model->gateways[link][i].known = false;
    }
}

static void change_link(struct model *model, uint32_t link, bool told)
{
    struct hb_netlink_link news;

    model->links[link].there = pick(model, 8) != 0;
    model->links[link].up = pick(model, 4) != 0;
    model->links[link].byte = (uint8_t)pick(model, 3);
    news = describe_link(model, link);
    if (told)
        hb_hop_table_link(model->table, &news, false, 0);
    if (!model->links[link].there)
        forget_gateways(model, link);
}

/* A dump of the links, of which one changes after the kernel has written it down. */
static void dump_links(struct model *model)
{
    struct hb_netlink_link dump[LINKS];

    for (uint32_t link = 0; link < LINKS; link++)
        dump[link] = describe_link(model, link);
    if (pick(model, 2) == 0)
        change_link(model, pick(model, LINKS), true);
    for (uint32_t link = 0; link < LINKS; link++) {
        if (!dump[link].gone)
            hb_hop_table_link(model->table, &dump[link], true, 0);
    }
}

/* Messages are lost, and everything is read again; while it is, events go on and are newer than the
 * dump. */
static void operate_overrun(struct model *model)
{
    for (uint32_t i = 0; i < 50; i++) {
        uint32_t link = pick(model, LINKS);

        if (model->links[link].there)
            change_kernel_gateway(model, link, pick(model, GATEWAYS));
    }
    change_link(model, pick(model, LINKS), false);
    hb_hop_table_dump_begin(model->table);
    dump_links(model);
    for (uint32_t link = 0; link < LINKS; link++) {
        for (uint32_t i = 0; i < GATEWAYS; i++) {
            bool old_in_kernel = model->gateways[link][i].in_kernel;
            uint8_t old_byte = model->gateways[link][i].kernel_byte;

            if (model->links[link].there && pick(model, 100) == 0) {
                change_kernel_gateway(model, link, i);
                send_gateway(model, link, i, model->gateways[link][i].in_kernel,
                             model->gateways[link][i].kernel_byte, false);
            }
            if (old_in_kernel) /* the dump still shows what was there when it began */
                send_gateway(model, link, i, true, old_byte, true);
        }
    }
    hb_hop_table_dump_end(model->table, 0);
    for (uint32_t link = 0; link < LINKS; link++) {
        for (uint32_t i = 0; i < GATEWAYS; i++)
            learn(model, link, i);
    }
}

/* The table says of a watched address what the model says, and has told of every difference. */
static void check_watch(struct model *model, uint32_t i)
{
    struct hb_address address = address_no(i);
    uint32_t link = model->watches[i].link, gateway = model->watches[i].gateway;
    struct hb_next_hop hop;
    bool expected;

    assert_int_equal(hb_hop_table_get(model->table, &address, &hop), model->watches[i].watched);
    if (!model->watches[i].watched)
        return;
    expected = model->watches[i].routed && model->links[link].there && model->links[link].up &&
               model->gateways[link][gateway].known;
    assert_int_equal(hop.resolved, expected);
    if (expected) {
        assert_int_equal(hop.ifindex, link + 1);
        assert_int_equal(hop.gateway_mac[5], model->gateways[link][gateway].byte);
        assert_int_equal(hop.source_mac[5], model->links[link].byte);
    }
    assert_memory_equal(&hop, &model->watches[i].told, sizeof(hop));
}

static void take_changes(struct model *model)
{
    struct hb_address address;
    struct hb_next_hop hop;

    while (hb_hop_table_next_change(model->table, &address)) {
        uint32_t i = (uint32_t)address.bytes[2] << 8 | address.bytes[3];

        assert_true(model->watches[i].watched);
        assert_true(hb_hop_table_get(model->table, &address, &hop));
        assert_memory_not_equal(&hop, &model->watches[i].told, sizeof(hop));
        model->watches[i].told = hop;
    }
}

static void test_equals_model(void **state)
{
    struct model *model = calloc(1, sizeof(*model));

    model->table = *state;
    model->random = 105;
    for (uint32_t operation = 0; operation < OPERATIONS; operation++) {
        uint32_t kind = pick(model, 1000);

        if (kind < 3)
            operate_overrun(model);
        else if (kind < 20)
            change_link(model, pick(model, LINKS), true);
        else if (kind < 200)
            operate_watch(model);
        else if (kind < 500)
            operate_route(model);
        else
            operate_gateway(model);
        take_changes(model);
        for (uint32_t i = 0; operation % 20 == 0 && i < WATCHES; i++)
            check_watch(model, i);
    }
    free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_resolves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_on_link_gateway_is_the_address, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_mtu_is_the_smaller, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_problems, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_problems_of_link_and_neighbour, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_changes_are_real, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_watches_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_questions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_behind_one_gateway, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_link_gone_during_dump, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_equals_model, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
