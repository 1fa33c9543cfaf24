/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP of the balancer's own: answers to pings, and what senders of packets that are too big are
 * told. */
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

/* ---- echo ---- */

/* What an echo request comes back as: Ethernet and IP addresses changed places, no options. */
static struct frame answer_to(struct frame request)
{
    struct frame answer = request;
    uint32_t l3 = request.l3, size = request.family == 6 ? 40 : 20;
    uint32_t options = request.family == 6 ? 0 : (request.bytes[l3] & 0xfu) * 4 - 20;
    uint32_t address = request.family == 6 ? 16 : 4, at = request.family == 6 ? 8 : 12;
    uint8_t *ip = answer.bytes + l3, *icmp = ip + size;

    memcpy(answer.bytes, request.bytes + 6, 6);
    memcpy(answer.bytes + 6, request.bytes, 6);
    answer.length = l3 + request.ip_length - options;
    answer.ip_length = request.ip_length - options;
    memcpy(icmp, request.bytes + l3 + size + options, answer.ip_length - size);
    memcpy(ip + at, request.bytes + l3 + at + address, address);
    memcpy(ip + at + address, request.bytes + l3 + at, address);
    memset(icmp + 2, 0, 2);
    if (request.family == 6) {
        ip[7] = 64;
        ip[1] &= 0xf0; /* no flow label */
        ip[2] = ip[3] = 0;
        icmp[0] = 129;
        return poke16(answer, l3 + size + 2, checksum_l4(&answer, 58));
    }
    ip[0] = 0x45;
    ip[8] = 64;
    answer = poke16(answer, l3 + 2, (uint16_t)answer.ip_length);
    answer = poke16(answer, l3 + 4, 0);
    answer = poke16(answer, l3 + 6, DF);
    answer = poke16(answer, l3 + 10, 0);
    answer = poke16(answer, l3 + 10, checksum(answer.bytes + l3, 20));
    icmp = answer.bytes + l3 + size;
    icmp[0] = 0;
    return poke16(answer, l3 + size + 2, checksum(icmp, answer.ip_length - size));
}

/* Whatever TTL they have left, one included (BL-05). */
static void echoes_are_answered(void **state)
{
    struct rig *rig = *state;
    const struct frame requests[] = {
        ICMP4(.type = 8, .word = 0x12340001, .payload = 56),
        ICMP4(.type = 8, .word = 0x12340002, .payload = 1),
        pad(ICMP4(.type = 8, .word = 0x12340003), 60),
        ICMP4(.type = 8, .payload = 1400, .tos = 0xb8),
        ICMP4(.type = 8, .payload = 56, .tags = 2),
        ICMP4(.type = 8, .payload = 57, .options = 12),
        ICMP4(.type = 8, .payload = 9, .ttl = 1),
        ICMP6(.type = 128, .word = 0xabcd0001, .payload = 56),
        ICMP6(.type = 128, .payload = 1, .tos = 0xb9),
        ICMP6(.type = 128, .payload = 1400, .tags = 1),
    };
    uint32_t count = sizeof(requests) / sizeof(requests[0]);

    set_up(rig, 4);
    for (uint32_t round = 0; round < 2; round++) {
        rig->tight = round == 1;
        for (uint32_t i = 0; i < count; i++) {
            struct frame out, want = answer_to(requests[i]);

            send_frame(rig, &requests[i]);
            turn(rig);
            assert_true(receive(rig, PORT, &out));
            assert_frame("echo", &out, &want);
        }
    }
    assert_int_equal(counters(rig)->icmp_sent, 2 * count);
    assert_int_equal(counters(rig)->made_packets, 0); /* the requests turned round */
    assert_int_equal(counters(rig)->tx_packets, 2 * count);
}

static void echoes_by_setting(void **state)
{
    struct rig *rig = *state;
    struct frame ping = ICMP4(.type = 8, .payload = 56), ping6 = ICMP6(.type = 128, .payload = 56);
    struct frame broadcast = ping;
    const struct row dropped[] = {
        {"drop", ping, DROP(ECHO)},
        {"drop, IPv6", ping6, DROP(ECHO)},
    };
    const struct row forwarded[] = {
        {"forward", ping, SENT},
        {"forward, IPv6", ping6, SENT},
    };

    memset(broadcast.bytes, 0xff, 6);
    const struct row unfit[] = {
        {"wrong checksum", poke16(ping, ICMP_OF_4 + 2, 1), DROP(ICMP_CHECKSUM)},
        {"wrong checksum, IPv6", poke16(ping6, ICMP_OF_6 + 2, 1), DROP(ICMP_CHECKSUM)},
        {"a code", ICMP4(.type = 8, .code = 1), DROP(ICMP_TYPE)},
        {"BL-27: by broadcast", broadcast, DROP(BROADCAST)},
        {"BL-27: from 0.0.0.0", ICMP4(.type = 8, .source = "0.0.0.0"), DROP(MARTIAN)},
        {"BL-27: from a group", ICMP4(.type = 8, .source = "224.0.0.1"), DROP(MARTIAN)},
        {"BL-27: from the VIP itself", ICMP4(.type = 8, .source = VIP4), DROP(MARTIAN)},
        {"in fragments", IP4(1, .fragment = MF), DROP(FRAGMENT)},
    };

    set_up(rig, 4);
    RUN_ROWS(rig, unfit, 4);
    rig->settings.echo = HB_ECHO_DROP;
    publish(rig);
    RUN_ROWS(rig, dropped, 4);
    rig->settings.echo = HB_ECHO_FORWARD;
    publish(rig);
    RUN_ROWS(rig, forwarded, 4);
    assert_int_equal(counters(rig)->icmp_sent, 0);
}

/* All pings of a client reach one backend of the VIP's first service, those of many all of them. */
static void forwarded_echoes_spread(void **state)
{
    struct rig *rig = *state;
    bool seen[11] = {false};
    char source[32];

    set_up_ten(rig);
    rig->settings.echo = HB_ECHO_FORWARD;
    publish(rig);
    for (uint32_t i = 1; i < 200; i++) {
        uint16_t first;

        snprintf(source, sizeof(source), "203.0.113.%u", i);
        first = B(rig, ICMP4(.type = 8, .source = source, .payload = 8));
        assert_in_range(first, 1, 10);
        assert_int_equal(B(rig, ICMP4(.type = 8, .word = i, .source = source, .payload = 99)),
                         first);
        seen[first] = true;
    }
    for (uint32_t id = 1; id <= 10; id++)
        assert_true(seen[id]);
    rig->pool[0].slots = 0;
    publish(rig);
    assert_int_equal(B(rig, ICMP4(.type = 8)), 0);
    assert_int_equal(counters(rig)->drops[HB_DROP_NO_BACKEND], 1);
}

static void echoes_have_a_limit(void **state)
{
    struct rig *rig = *state;
    struct frame ping = ICMP4(.type = 8, .payload = 56);

    set_up(rig, 4);
    rig->settings.icmp_rate = 160;
    publish(rig);
    for (uint32_t ms = 0; ms < 1000; ms++) {
        rig->now_ms++;
        for (uint32_t i = 0; i < 3; i++)
            send_frame(rig, &ping);
        turn(rig);
        take_all(rig, PORT);
    }
    assert_in_range(counters(rig)->icmp_sent, 160, 180);
    assert_int_equal(counters(rig)->drops[HB_DROP_ICMP_LIMIT], 3000 - counters(rig)->icmp_sent);
}

/* An answer that the port does not take is a drop like any other. */
static void answers_to_a_full_port(void **state)
{
    struct rig *rig = *state;
    struct frame ping = ICMP4(.type = 8, .payload = 56), out;

    set_up(rig, 4);
    rig->worker->config.ports[0] = NARROW_PORT;
    for (uint32_t i = 0; i < 64; i++)
        send_frame(rig, &ping);
    turn(rig);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(receive(rig, NARROW_PORT, &out));
    assert_false(receive(rig, NARROW_PORT, &out));
    assert_int_equal(counters(rig)->drops[HB_DROP_TX_FULL], 61);
    rig->worker->config.ports[0] = PORT;
}

/* ---- too big ---- */

/* What a sender is told about `big`: from the VIP unless `source` is given. */
static struct frame told(const struct frame *big, uint32_t mtu, const char *source)
{
    bool ipv6 = big->family == 6;
    uint32_t quoted = ipv6 ? 1232 : 548;
    struct icmp icmp = {.family = big->family,
                        .type = ipv6 ? 2 : 3,
                        .code = ipv6 ? 0 : 4,
                        .word = mtu,
                        .quote = big,
                        .quoted = quoted < big->ip_length ? quoted : big->ip_length,
                        .source = source != NULL ? source : (ipv6 ? VIP6 : VIP4),
                        .destination = ipv6 ? CLIENT6 : CLIENT4,
                        .tos = 0xc0};
    struct frame frame = build_icmp(&icmp);

    memcpy(frame.bytes, big->bytes + 6, 6);
    memcpy(frame.bytes + 6, big->bytes, 6);
    if (!ipv6)
        return fix4(poke16(frame, IP4_FRAGMENT, DF));
    return poke16(frame, L3 + 2, 0); /* no flow label */
}

static void expect_told(struct rig *rig, const char *text, const struct frame *in, uint32_t mtu,
                        const char *source)
{
    struct hb_worker_counters before = *counters(rig);
    struct frame out, want = told(in, mtu, source);

    send_frame(rig, in);
    turn(rig);
    assert_true(receive(rig, PORT, &out));
    assert_frame(text, &out, &want);
    assert_false(receive(rig, PORT, &out));
    assert_int_equal(counters(rig)->icmp_sent - before.icmp_sent, 1);
    assert_int_equal(counters(rig)->made_packets - before.made_packets, 1);
    assert_int_equal(counters(rig)->drops[HB_DROP_OVERSIZE] - before.drops[HB_DROP_OVERSIZE], 1);
    assert_int_equal(counters(rig)->tx_packets - before.tx_packets, 1);
    assert_int_equal(counters(rig)->tx_bytes - before.tx_bytes, out.length);
}

static struct frame tcp4_of(uint32_t length)
{
    return TCP4(.flags = ACK, .fragment = DF, .payload = length - 40);
}

static struct frame tcp6_of(uint32_t length)
{
    return TCP6(.flags = ACK, .payload = length - 60);
}

/* BL-19, BL-20: the MTU is what is left of the link for each encapsulation. */
static void senders_are_told_the_mtu(void **state)
{
    static const uint16_t inner_max[] = {1480, 1460, 1476, 1456, 1472, 1452, 1468, 1448, 8980};
    struct rig *rig = *state;
    const struct hb_service_counters *services = hb_counters_services(rig->region, 0);
    uint32_t count = sizeof(inner_max) / sizeof(inner_max[0]) - 1; /* a frame holds no 9,000 */

    set_up(rig, 4);
    for (uint32_t i = 0; i < count; i++) {
        uint16_t max = inner_max[i];
        struct frame big[] = {tcp4_of(1500), tcp4_of(max + 1u), tcp6_of(1500), tcp6_of(max + 1u)};
        struct frame fits[] = {tcp4_of(max), tcp6_of(max)};

        rig->backend[1].inner_max = max;
        publish(rig);
        for (uint32_t b = 0; b < 4; b++)
            expect_told(rig, "too big", &big[b], max, NULL);
        for (uint32_t f = 0; f < 2; f++)
            assert_int_equal(backend_of(rig, &fits[f]), 1);
    }
    assert_int_equal(services[0].too_big, 2 * count);
    assert_int_equal(services[2].too_big, 2 * count);
    assert_int_equal(services[0].drops, 2 * count);
}

/* IPv6: nothing below 1,280 is said, and nothing about packets that are no larger. */
static void small_links(void **state)
{
    struct rig *rig = *state;
    struct frame big = tcp6_of(1281), big4 = tcp4_of(1281);
    const struct row rows[] = {
        {"1,280 bytes", tcp6_of(1280), DROP(OVERSIZE)},
        {"1,201 bytes", tcp6_of(1201), DROP(OVERSIZE)},
    };

    set_up(rig, 4);
    rig->backend[1].inner_max = 1200;
    publish(rig);
    expect_told(rig, "IPv6 to 1,280", &big, 1280, NULL);
    expect_told(rig, "IPv4 to 1,200", &big4, 1200, NULL);
    RUN_ROWS(rig, rows, 4);
}

static void who_tells(void **state)
{
    struct rig *rig = *state;
    struct frame big = tcp4_of(1500), big6 = tcp6_of(1500), out;
    struct frame tagged = TCP4(.flags = ACK, .fragment = DF, .payload = 1460, .tags = 1);

    set_up(rig, 4);
    memcpy(rig->settings.icmp_source4, (uint8_t[]){198, 51, 100, 10}, 4);
    memcpy(rig->settings.icmp_source6,
           (uint8_t[]){0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x10}, 16);
    publish(rig);
    expect_told(rig, "by the balancer's address", &big, 1480, "198.51.100.10");
    expect_told(rig, "by its IPv6 address", &big6, 1480, "2001:db8:0:1::10");
    rig->tight = true;
    expect_told(rig, "in a tight buffer", &big, 1480, "198.51.100.10");
    /* The way it came: with its tag. */
    send_frame(rig, &tagged);
    turn(rig);
    assert_true(receive(rig, PORT, &out));
    assert_memory_equal(out.bytes + 12, tagged.bytes + 12, 6);
    assert_int_equal(out.length, 18 + 576);
}

/* Of a packet in two segments the first one is quoted. */
static void quotes_of_segments(void **state)
{
    struct rig *rig = *state;
    struct frame big = tcp4_of(1500), out, part = big, want;

    set_up(rig, 4);
    send_mbuf(rig, make_mbuf(&big, RTE_PKTMBUF_HEADROOM, 100));
    turn(rig);
    assert_true(receive(rig, PORT, &out));
    part.ip_length = 100 - L3;
    want = told(&part, 1480, NULL);
    assert_frame("two segments", &out, &want);
}

/* BL-27 */
static void nothing_is_told(void **state)
{
    struct rig *rig = *state;
    struct frame answer = ANSWER4(), broadcast = tcp4_of(1500);
    struct frame whole = UDP4(.payload = 3000 - 1400);

    memset(broadcast.bytes, 0xff, 6);
    const struct row rows[] = {
        {"without DF", TCP4(.flags = ACK, .payload = 1460), DROP(OVERSIZE)},
        {"about an ICMP error",
         fix4(poke16(ICMP4(.type = 3, .code = 1, .quote = &answer, .quoted = 1470), IP4_FRAGMENT,
                     DF)),
         DROP(OVERSIZE)},
        {"by broadcast", broadcast, DROP(BROADCAST)},
        {"from 0.0.0.0", TCP4(.source = "0.0.0.0", .fragment = DF, .payload = 1460), DROP(MARTIAN)},
        {"from 224.0.0.1", TCP4(.source = "224.0.0.1", .fragment = DF, .payload = 1460),
         DROP(MARTIAN)},
        {"from 127.0.0.1", TCP4(.source = "127.0.0.1", .fragment = DF, .payload = 1460),
         DROP(MARTIAN)},
        {"from the VIP", TCP4(.source = VIP4, .fragment = DF, .payload = 1460), DROP(MARTIAN)},
    };
    struct frame first = fragment(&whole, 7, 0, 16), later = fragment(&whole, 7, 16, 1480);

    set_up(rig, 4);
    RUN_ROWS(rig, rows, 4);
    assert_int_equal(backend_of(rig, &first), 1);
    later = fix4(poke16(later, IP4_FRAGMENT, DF | MF | 2));
    assert_int_equal(backend_of(rig, &later), 0); /* about a later fragment */
    assert_int_equal(counters(rig)->drops[HB_DROP_OVERSIZE], 3);
    assert_int_equal(counters(rig)->icmp_sent, 0);
    rig->settings.icmp_rate = 0;
    publish(rig);
    send_frame(rig, &(struct frame[]){tcp4_of(1500)}[0]);
    turn(rig);
    assert_int_equal(counters(rig)->icmp_sent, 0);
}

/* BL-27: at most the rate and its burst, whoever asks. */
static void a_flood_of_big_packets(void **state)
{
    struct rig *rig = *state;

    set_up(rig, 4);
    rig->settings.icmp_rate = 100;
    publish(rig);
    for (uint32_t ms = 0; ms < 1000; ms++) {
        struct frame big = tcp4_of(1500);

        rig->now_ms++;
        for (uint32_t i = 0; i < 4; i++) {
            big.bytes[IP4_SOURCE + 2] = (uint8_t)ms;
            big.bytes[IP4_SOURCE + 3] = (uint8_t)(ms >> 8 | i << 4);
            send_frame(rig, &(struct frame[]){fix4(big)}[0]);
        }
        turn(rig);
        take_all(rig, PORT);
    }
    assert_int_equal(counters(rig)->drops[HB_DROP_OVERSIZE], 4000);
    assert_in_range(counters(rig)->icmp_sent, 100, 113);
    assert_int_equal(hb_counters_services(rig->region, 0)[0].too_big, counters(rig)->icmp_sent);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(echoes_are_answered),
        TEST(echoes_by_setting),
        TEST(forwarded_echoes_spread),
        TEST(echoes_have_a_limit),
        TEST(answers_to_a_full_port),
        TEST(senders_are_told_the_mtu),
        TEST(small_links),
        TEST(who_tells),
        TEST(quotes_of_segments),
        TEST(nothing_is_told),
        TEST(a_flood_of_big_packets),
    };
    int failed = rig_open();

    if (failed == 0)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return failed;
}
