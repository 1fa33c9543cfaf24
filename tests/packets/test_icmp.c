/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP: errors about flows reach the flow's backend. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

#define ROUTER4   "203.0.113.254"
#define ROUTER6   "2001:db8:0:c::254"
#define VIP4      "192.0.2.10"
#define VIP6      "2001:db8:0:a::10"
#define CLIENT4   "203.0.113.9"
#define CLIENT6   "2001:db8:0:c::9"
#define ICMP_OF_4 L4_OF_4
#define ICMP_OF_6 L4_OF_6

static const struct hb_worker_counters *counters(const struct rig *rig)
{
    return hb_counters_worker(rig->region, 0);
}

/* What backends send to the client, where the test does not say else. */
static struct frame build_answer(struct spec spec)
{
    bool ipv6 = spec.family == 6;

    spec.protocol = 6;
    spec.flags = ACK;
    spec.fragment = spec.fragment != 0 ? spec.fragment : DF;
    spec.payload = ipv6 ? 1440 : 1460;
    spec.source = spec.source != NULL ? spec.source : ipv6 ? VIP6 : VIP4;
    spec.destination = ipv6 ? CLIENT6 : CLIENT4;
    spec.source_port = 80;
    spec.destination_port = spec.destination_port != 0 ? spec.destination_port : 40000;
    return build(&spec);
}
#define ANSWER4(...) build_answer((struct spec){.family = 4, ##__VA_ARGS__})
#define ANSWER6(...) build_answer((struct spec){.family = 6, ##__VA_ARGS__})

static struct frame build_too_big(struct icmp icmp)
{
    bool ipv6 = icmp.family == 6;

    icmp.type = ipv6 ? 2 : 3;
    icmp.code = ipv6 ? 0 : 4;
    icmp.source = icmp.source != NULL ? icmp.source : ipv6 ? ROUTER6 : ROUTER4;
    return build_icmp(&icmp);
}
#define TOO_BIG4(quote_, quoted_, mtu, ...)                                                        \
    build_too_big((struct icmp){                                                                   \
        .family = 4, .word = (mtu), .quote = (quote_), .quoted = (quoted_), ##__VA_ARGS__})
#define TOO_BIG6(quote_, quoted_, mtu, ...)                                                        \
    build_too_big((struct icmp){                                                                   \
        .family = 6, .word = (mtu), .quote = (quote_), .quoted = (quoted_), ##__VA_ARGS__})

static void set_up(struct rig *rig, uint8_t outer_family)
{
    rig->settings = (struct hb_settings){
        .icmp_rate = 1000, .icmp_relay_rate = 100000, .mtu_floor4 = 552, .mtu_floor6 = 1280};
    publish_one_backend(rig, outer_family);
}

static void set_up_ten(struct rig *rig)
{
    for (uint16_t id = 1; id <= 10; id++)
        add_backend(rig, id, 0, 4);
    share_table(rig, 0);
    set_up(rig, 4);
}

/* BL-21, BL-04: all kinds of error, the shortest quotes, TOS and tags; each goes on as it came. */
static void errors_are_relayed(void **state)
{
    struct rig *rig = *state;
    struct frame answer = ANSWER4(), answer6 = ANSWER6(), options = ANSWER4(.options = 8);
    struct frame udp =
        UDP4(.source = VIP4, .destination = CLIENT4, .source_port = 443, .destination_port = 40000);
    struct frame extended = ANSWER6(.chain = {0, 60}, .chain_count = 2);
    struct frame atomic = ANSWER6(.chain = {44}, .chain_count = 1);
    const struct row rows[] = {
        {"too big, 8 bytes behind the IP header", TOO_BIG4(&answer, 28, 1400), SENT},
        {"too big, 20 bytes", TOO_BIG4(&answer, 40, 1400), SENT},
        {"too big, 548 bytes", TOO_BIG4(&answer, 548, 1400), SENT},
        {"with congestion experienced", TOO_BIG4(&answer, 28, 1400, .tos = 3), SENT},
        {"with TTL 1", TOO_BIG4(&answer, 28, 1400, .ttl = 1), SENT},
        {"tagged", TOO_BIG4(&answer, 28, 1400, .tags = 1), SENT},
        {"with IPv4 options of its own", TOO_BIG4(&answer, 28, 1400, .options = 4), SENT},
        {"about a packet with options", TOO_BIG4(&options, 36, 1400), SENT},
        {"about UDP", TOO_BIG4(&udp, 28, 1400), SENT},
        {"host unreachable", ICMP4(.type = 3, .code = 1, .quote = &answer, .quoted = 28), SENT},
        {"time exceeded", ICMP4(.type = 11, .quote = &answer, .quoted = 28), SENT},
        {"parameter problem", ICMP4(.type = 12, .quote = &answer, .quoted = 28), SENT},
        {"IPv6 too big", TOO_BIG6(&answer6, 48, 1400), SENT},
        {"IPv6 too big, 1,232 bytes", TOO_BIG6(&answer6, 1232, 1400), SENT},
        {"with a traffic class", TOO_BIG6(&answer6, 48, 1400, .tos = 0xb9), SENT},
        {"about a packet with extension headers", TOO_BIG6(&extended, 64, 1400), SENT},
        {"about an atomic fragment", TOO_BIG6(&atomic, 56, 1400), SENT},
        {"IPv6 unreachable", ICMP6(.type = 1, .quote = &answer6, .quoted = 48), SENT},
        {"IPv6 time exceeded", ICMP6(.type = 3, .quote = &answer6, .quoted = 48), SENT},
        {"IPv6 parameter problem", ICMP6(.type = 4, .quote = &answer6, .quoted = 48), SENT},
    };

    set_up(rig, 4);
    RUN_ROWS(rig, rows, 4);
    rig->tight = true;
    RUN_ROWS(rig, rows, 4);
    assert_int_equal(counters(rig)->icmp_relayed, 2 * sizeof(rows) / sizeof(rows[0]));
    assert_int_equal(counters(rig)->icmp_sent, 0);
    assert_int_equal(counters(rig)->flows, 0);
}

/* The same through IPv6 tunnels, where the flow label comes from the flow. */
static void errors_through_ipv6_tunnels(void **state)
{
    struct rig *rig = *state;
    struct frame answer = ANSWER4(), answer6 = ANSWER6();
    const struct row rows[] = {
        {"IPv4", TOO_BIG4(&answer, 28, 1400, .tos = 3), SENT},
        {"IPv6", TOO_BIG6(&answer6, 48, 1400, .tos = 0xb9), SENT},
    };

    set_up(rig, 6);
    RUN_ROWS(rig, rows, 6);
}

static void unfit_errors(void **state)
{
    struct rig *rig = *state;
    struct frame answer = ANSWER4(), answer6 = ANSWER6();
    struct frame later = ANSWER4(.fragment = 100), foreign = ANSWER4(.source = "192.0.2.99");
    struct frame port = TCP4(.source = VIP4, .source_port = 81), icmp = IP4(1, .source = VIP4);
    struct frame good = TOO_BIG4(&answer, 28, 1400), good6 = TOO_BIG6(&answer6, 48, 1400);
    struct frame bad_version = answer, chained = ANSWER6(.chain = {60}, .chain_count = 1);

    bad_version.bytes[L3] = 0x55;
    const struct row rows[] = {
        {"7 bytes behind the IP header", TOO_BIG4(&answer, 27, 1400), DROP(ICMP_QUOTE)},
        {"the IP header cut", TOO_BIG4(&answer, 19, 1400), DROP(ICMP_QUOTE)},
        {"no quote", ICMP4(.type = 3, .code = 4, .word = 1400), DROP(ICMP_QUOTE)},
        {"another version", TOO_BIG4(&bad_version, 28, 1400), DROP(ICMP_QUOTE)},
        {"about a later fragment", TOO_BIG4(&later, 28, 1400), DROP(ICMP_QUOTE)},
        {"IPv6: 7 bytes", TOO_BIG6(&answer6, 47, 1400), DROP(ICMP_QUOTE)},
        {"IPv6: ends in an extension header", TOO_BIG6(&chained, 47, 1400), DROP(ICMP_QUOTE)},
        {"IPv6: an IPv4 packet", TOO_BIG6(&answer, 48, 1400), DROP(ICMP_QUOTE)},
        {"a packet of somebody else", TOO_BIG4(&foreign, 28, 1400), DROP(ICMP_NO_FLOW)},
        {"a port without service", TOO_BIG4(&port, 28, 1400), DROP(ICMP_NO_FLOW)},
        {"about ICMP", TOO_BIG4(&icmp, 28, 1400), DROP(ICMP_NO_FLOW)},
        {"wrong checksum", poke16(good, ICMP_OF_4 + 2, 0x1234), DROP(ICMP_CHECKSUM)},
        {"a quote that was changed", poke8(good, good.length - 1, 1), DROP(ICMP_CHECKSUM)},
        {"IPv6: wrong checksum", poke16(good6, ICMP_OF_6 + 2, 0x1234), DROP(ICMP_CHECKSUM)},
        {"redirect", ICMP4(.type = 5, .quote = &answer, .quoted = 28), DROP(ICMP_TYPE)},
        {"source quench", ICMP4(.type = 4, .quote = &answer, .quoted = 28), DROP(ICMP_TYPE)},
        {"echo reply", ICMP4(.type = 0), DROP(ICMP_TYPE)},
        {"timestamp", ICMP4(.type = 13, .payload = 12), DROP(ICMP_TYPE)},
        {"IPv6 echo reply", ICMP6(.type = 129), DROP(ICMP_TYPE)},
        {"neighbour solicitation", ICMP6(.type = 135, .payload = 16), DROP(ICMP_TYPE)},
        {"from nowhere", TOO_BIG4(&answer, 28, 1400, .source = "127.0.0.1"), DROP(MARTIAN)},
    };

    set_up(rig, 4);
    RUN_ROWS(rig, rows, 4);
    rig->tight = true;
    RUN_ROWS(rig, rows, 4);
    assert_int_equal(counters(rig)->icmp_relayed, 0);
}

/* BL-25 */
static void absurd_mtus(void **state)
{
    struct rig *rig = *state;
    struct frame answer = ANSWER4(), answer6 = ANSWER6();
    const struct row rows[] = {
        {"MTU 0", TOO_BIG4(&answer, 28, 0), DROP(ICMP_MTU)},
        {"MTU 67", TOO_BIG4(&answer, 28, 67), DROP(ICMP_MTU)},
        {"MTU 68", TOO_BIG4(&answer, 28, 68), DROP(ICMP_MTU)},
        {"MTU 551", TOO_BIG4(&answer, 28, 551), DROP(ICMP_MTU)},
        {"MTU 552", TOO_BIG4(&answer, 28, 552), SENT},
        {"MTU 576", TOO_BIG4(&answer, 28, 576), SENT},
        {"MTU 1279", TOO_BIG4(&answer, 28, 1279), SENT},
        {"MTU 65535", TOO_BIG4(&answer, 28, 65535), SENT},
        {"the same number in another message",
         ICMP4(.type = 3, .code = 1, .word = 60, .quote = &answer, .quoted = 28), SENT},
        {"IPv6 MTU 0", TOO_BIG6(&answer6, 48, 0), DROP(ICMP_MTU)},
        {"IPv6 MTU 1279", TOO_BIG6(&answer6, 48, 1279), DROP(ICMP_MTU)},
        {"IPv6 MTU 1280", TOO_BIG6(&answer6, 48, 1280), SENT},
        {"IPv6 MTU 65536 + 100", TOO_BIG6(&answer6, 48, 65636), SENT},
    };
    const struct row without[] = {
        {"MTU 0 without a floor", TOO_BIG4(&answer, 28, 0), SENT},
        {"IPv6 MTU 0 without a floor", TOO_BIG6(&answer6, 48, 0), SENT},
    };

    set_up(rig, 4);
    RUN_ROWS(rig, rows, 4);
    rig->settings.mtu_floor4 = rig->settings.mtu_floor6 = 0;
    publish(rig);
    RUN_ROWS(rig, without, 4);
}

/* BL-22: on another balancer, which has no entry: where the table says, and no entry is made. */
static void errors_follow_the_table(void **state)
{
    struct rig *rig = *state;

    set_up_ten(rig);
    for (uint16_t port = 1000; port < 1200; port++) {
        struct frame answer = ANSWER4(.destination_port = port);
        struct frame answer6 = ANSWER6(.destination_port = port);
        uint16_t told = B(rig, TOO_BIG4(&answer, 28, 1400));
        uint16_t told6 = B(rig, TOO_BIG6(&answer6, 48, 1400));

        assert_int_equal(told, B(rig, TCP4(.source_port = port, .flags = RST)));
        assert_int_equal(told6, B(rig, TCP6(.source_port = port, .flags = RST)));
    }
    assert_int_equal(counters(rig)->flows, 0);
    assert_int_equal(counters(rig)->icmp_relayed, 400);
    assert_int_equal(counters(rig)->icmp_elsewhere, 400);
}

/* BL-22: a flow that is pinned by its entry; the error finds that and does not keep it alive. */
static void errors_follow_the_entry(void **state)
{
    struct rig *rig = *state;
    struct frame answer = ANSWER4();
    uint16_t pinned;

    set_up_ten(rig);
    pinned = B(rig, TCP4());
    B(rig, TCP4(.flags = ACK));
    rig->backend[pinned].use = HB_BACKEND_DRAINING;
    share_table(rig, 0);
    publish(rig);
    assert_int_equal(B(rig, TOO_BIG4(&answer, 28, 1400)), pinned);
    assert_int_equal(counters(rig)->icmp_elsewhere, 0);
    rig->now_ms += 3599000;
    assert_int_equal(B(rig, TOO_BIG4(&answer, 28, 1400)), pinned);
    advance(rig, 1000);
    assert_int_equal(counters(rig)->flows, 0);
    assert_int_not_equal(B(rig, TOO_BIG4(&answer, 28, 1400)), pinned);
}

/* A drain: the slots of `drained` go to others and are unsettled. */
static void drain(struct rig *rig, uint16_t drained)
{
    uint16_t before[RIG_SLOTS];

    memcpy(before, rig->pool[0].owner, sizeof(before));
    rig->backend[drained].use = HB_BACKEND_DRAINING;
    share_table(rig, 0);
    for (uint32_t slot = 0; slot < RIG_SLOTS; slot++)
        unsettle(rig, 0, slot, before[slot]);
    publish(rig);
}

/* BL-23: the entry is on another worker. */
static void errors_on_another_worker(void **state)
{
    struct rig *rig = *state;
    struct frame answer =
        UDP4(.source = VIP4, .destination = CLIENT4, .source_port = 443, .destination_port = 40000);
    uint16_t pinned;

    add_worker(rig);
    set_up_ten(rig);
    pinned = B(rig, UDP4());
    change_worker(rig);
    assert_int_equal(B(rig, TOO_BIG4(&answer, 28, 1400)), pinned); /* settled: by the table */
    assert_int_equal(counters(rig)->icmp_elsewhere, 1);
    drain(rig, pinned);
    assert_int_equal(B(rig, TOO_BIG4(&answer, 28, 1400)), pinned); /* by the other's entry */
    assert_int_equal(counters(rig)->icmp_elsewhere, 1);
    assert_int_equal(counters(rig)->flows, 0);
    rig->backend[pinned].use = HB_BACKEND_DOWN;
    publish(rig);
    assert_int_not_equal(B(rig, TOO_BIG4(&answer, 28, 1400)), pinned);
    assert_int_equal(counters(rig)->icmp_elsewhere, 2);
}

/* Without an entry, as a packet in the middle of the flow: TCP to the previous owner. */
static void errors_on_unsettled_slots(void **state)
{
    struct rig *rig = *state;
    struct frame tcp = ANSWER4();
    struct frame udp =
        UDP4(.source = VIP4, .destination = CLIENT4, .source_port = 443, .destination_port = 40000);
    uint16_t before, before_udp;

    set_up_ten(rig);
    before = B(rig, TOO_BIG4(&tcp, 28, 1400));
    before_udp = B(rig, TOO_BIG4(&udp, 28, 1400));
    drain(rig, before);
    assert_int_equal(B(rig, TOO_BIG4(&tcp, 28, 1400)), before);
    rig->backend[before].use = HB_BACKEND_DOWN;
    drain(rig, before_udp);
    assert_int_not_equal(B(rig, TOO_BIG4(&tcp, 28, 1400)), before);
    assert_int_not_equal(B(rig, TOO_BIG4(&udp, 28, 1400)), before_udp);
}

/* Untracked flows are the table's: nothing is missed on this worker. */
static void errors_about_untracked_flows(void **state)
{
    struct rig *rig = *state;
    struct frame answer = ANSWER4();

    set_up_ten(rig);
    rig->service[0].tracking = HB_TRACKING_CHANGED;
    publish(rig);
    assert_int_equal(B(rig, TOO_BIG4(&answer, 28, 1400)), B(rig, TCP4(.flags = ACK)));
    rig->service[0].tracking = HB_TRACKING_OFF;
    publish(rig);
    assert_int_equal(B(rig, TOO_BIG4(&answer, 28, 1400)), B(rig, TCP4(.flags = ACK)));
    assert_int_equal(counters(rig)->icmp_elsewhere, 0);
    rig->pool[0].slots = 0;
    publish(rig);
    assert_int_equal(B(rig, TOO_BIG4(&answer, 28, 1400)), 0);
    assert_int_equal(counters(rig)->drops[HB_DROP_NO_BACKEND], 1);
}

/* BL-25: a flood of errors leaves data alone, and the limit is by time. */
static void errors_have_a_limit(void **state)
{
    struct rig *rig = *state;
    struct frame answer = ANSWER4(), error = TOO_BIG4(&answer, 28, 1400);
    uint64_t relayed;

    set_up(rig, 4);
    rig->settings.icmp_relay_rate = 80;
    publish(rig);
    for (uint32_t ms = 0; ms < 1000; ms++) {
        rig->now_ms++;
        for (uint32_t i = 0; i < 5; i++)
            send_frame(rig, &error);
        assert_int_equal(B(rig, TCP4()), 1);
        take_all(rig, PORT);
    }
    relayed = counters(rig)->icmp_relayed;
    assert_in_range(relayed, 80, 90);
    assert_int_equal(counters(rig)->drops[HB_DROP_ICMP_LIMIT], 5000 - relayed);
    rig->settings.icmp_relay_rate = 0;
    publish(rig);
    rig->now_ms += 60000;
    assert_int_equal(B(rig, TOO_BIG4(&answer, 28, 1400)), 0);
}

/* ---- tunnels ---- */

/* Errors about tunnel packets go to the tunnel's source, which is no VIP: the kernel has all of
 * them, whole, and control reads them there (unit/test_tunnel_error.c). */
static void errors_about_tunnels(void **state)
{
    struct rig *rig = *state;
    struct frame in = TCP4(), in6 = TCP6();
    struct frame sent = tunnel(&in, 4, 1, 0, 0), sent6 = tunnel(&in6, 6, 1, 0, 0);
#define ABOUT(type_, code_, quoted_)                                                               \
    ICMP4(.type = (type_), .code = (code_), .word = 1400, .quote = &sent, .quoted = (quoted_),     \
          .source = "198.51.100.11", .destination = "198.51.100.10")
#define ABOUT6(type_, quoted_)                                                                     \
    ICMP6(.type = (type_), .word = 1400, .quote = &sent6, .quoted = (quoted_),                     \
          .source = "2001:db8:0:b::11", .destination = "2001:db8:0:1::10")
    const struct row rows[] = {
        {"protocol unreachable", ABOUT(3, 2, 0), PUNT(NOT_VIP)},
        {"too big, as short as may be", ABOUT(3, 4, 28), PUNT(NOT_VIP)},
        {"too big, whole", ABOUT(3, 4, 0), PUNT(NOT_VIP)},
        {"time exceeded", ABOUT(11, 0, 0), PUNT(NOT_VIP)},
        {"wrong checksum", poke16(ABOUT(3, 4, 0), ICMP_OF_4 + 2, 1), PUNT(NOT_VIP)},
        {"IPv6 unreachable", ABOUT6(1, 0), PUNT(NOT_VIP)},
        {"IPv6 too big, as short as may be", ABOUT6(2, 48), PUNT(NOT_VIP)},
        {"IPv6 time exceeded", ABOUT6(3, 0), PUNT(NOT_VIP)},
    };

    set_up(rig, 4);
    rig->worker->punt_port = PUNT_PORT;
    RUN_ROWS(rig, rows, 4);
    assert_int_equal(counters(rig)->icmp_relayed, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(errors_are_relayed),
        TEST(errors_through_ipv6_tunnels),
        TEST(unfit_errors),
        TEST(absurd_mtus),
        TEST(errors_follow_the_table),
        TEST(errors_follow_the_entry),
        TEST(errors_on_another_worker),
        TEST(errors_on_unsettled_slots),
        TEST(errors_about_untracked_flows),
        TEST(errors_have_a_limit),
        TEST(errors_about_tunnels),
    };
    int failed = rig_open();

    if (failed == 0)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return failed;
}
