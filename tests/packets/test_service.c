/* SPDX-License-Identifier: BSD-3-Clause */
/* Services of one address, ports that are full, no generation: whose packet it is, and the
 * accounts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

static const struct hb_worker_counters *counters(const struct rig *rig)
{
    return hb_counters_worker(rig->region, 0);
}

/* Pool n has backend n + 1 alone. */
static void make_pools(struct rig *rig, uint16_t count)
{
    for (uint16_t n = 0; n < count; n++) {
        add_backend(rig, n + 1, n, 4);
        share_table(rig, n);
    }
}

/* Before control has published anything. */
static void no_generation(void **state)
{
    struct rig *rig = *state;
    const struct row rows[] = {
        {"SYN", TCP4(), PUNT(NO_GENERATION)},
        {"ARP", build_arp(), PUNT(NO_GENERATION)},
        {"one byte", cut(TCP4(), 1), PUNT(NO_GENERATION)},
    };

    RUN_ROWS(rig, rows, 4);
    rig->worker->config.kernel[0] = (struct hb_kernel_way){true, PUNT_PORT};
    RUN_ROWS(rig, rows, 4);
    rig->worker->config.kernel[0].there = false;
    publish_one_backend(rig, 4);
    assert_int_equal(B(rig, TCP4()), 1);
    assert_int_equal(counters(rig)->generation_number, 1);
}

/* A generation without any service: all is the kernel's. */
static void an_empty_generation(void **state)
{
    struct rig *rig = *state;
    const struct row rows[] = {{"SYN", TCP4(), PUNT(NOT_VIP)}, {"datagram", UDP6(), PUNT(NOT_VIP)}};

    publish(rig);
    RUN_ROWS(rig, rows, 4);
}

/* BL-73, BL-113: TCP and UDP of one port are two services, with flows and counters of their own. */
static void tcp_and_udp_on_one_port(void **state)
{
    struct rig *rig = *state;

    make_pools(rig, 4);
    add_service(rig, 4, HB_PROTOCOL_TCP, 53, 0);
    add_service(rig, 4, HB_PROTOCOL_UDP, 53, 1);
    add_service(rig, 4, HB_PROTOCOL_TCP, 443, 2);
    add_service(rig, 4, HB_PROTOCOL_UDP, 443, 3);
    publish(rig);
    for (uint32_t twice = 0; twice < 2; twice++) {
        assert_int_equal(B(rig, TCP4(.destination_port = 53)), 1);
        assert_int_equal(B(rig, UDP4(.destination_port = 53)), 2);
        assert_int_equal(B(rig, TCP4(.destination_port = 443)), 3);
        assert_int_equal(B(rig, UDP4(.destination_port = 443)), 4);
    }
    assert_int_equal(counters(rig)->flows, 4);
    for (uint32_t id = 0; id < 4; id++)
        assert_int_equal(hb_counters_services(rig->region, 0)[id].packets, 2);

    rig->services = 1; /* only TCP 53 is left */
    publish(rig);
    assert_int_equal(B(rig, TCP4(.destination_port = 53)), 1);
    assert_int_equal(B(rig, UDP4(.destination_port = 53)), 0);
    assert_int_equal(counters(rig)->drops[HB_DROP_NO_SERVICE], 1);
}

/* BL-72: ports of one address come and go in any order; the others don't notice. Bit n of `live`
 * says whether the port is configured. */
static void ports_come_and_go(void **state)
{
    static const uint16_t port[] = {80, 443, 8080};
    static const uint8_t steps[] = {1, 3, 7, 6, 2, 3, 1, 5, 4, 0, 7, 5, 1, 0, 2, 6, 7, 3, 2, 0, 4};
    struct rig *rig = *state;

    make_pools(rig, 3);
    for (uint32_t step = 0; step < sizeof(steps); step++) {
        rig->services = 0;
        for (uint32_t i = 0; i < 3; i++) {
            if (steps[step] >> i & 1)
                add_service(rig, 4, HB_PROTOCOL_TCP, port[i], i);
        }
        add_service(rig, 6, HB_PROTOCOL_TCP, 80, 1); /* an address that stays */
        publish(rig);
        for (uint16_t i = 0; i < 3; i++)
            assert_int_equal(B(rig, TCP4(.destination_port = port[i])),
                             steps[step] >> i & 1 ? i + 1 : 0);
        assert_int_equal(B(rig, TCP6()), 2);
        assert_true(counters(rig)->drops[HB_DROP_NOT_VIP] == 0 || step >= 9);
    }
}

/* A port that takes three packets of a burst: the others are dropped under their name, and for
 * their service; what was sent is counted as sent, only. */
static void a_full_port(void **state)
{
    struct rig *rig = *state;
    struct frame in = TCP4(.flags = ACK, .payload = 60), out;

    publish_one_backend(rig, 4);
    rig->backend[1].port = NARROW_PORT;
    publish(rig);
    for (uint32_t i = 0; i < 10; i++)
        send_frame(rig, &in);
    turn(rig);
    assert_int_equal(counters(rig)->rx_packets, 10);
    assert_int_equal(counters(rig)->rx_bytes, 10 * 114);
    assert_int_equal(counters(rig)->tx_packets, 3);
    assert_int_equal(counters(rig)->tx_bytes, 3 * 134);
    assert_int_equal(counters(rig)->drops[HB_DROP_TX_FULL], 7);
    assert_int_equal(hb_counters_services(rig->region, 0)[0].packets, 3);
    assert_int_equal(hb_counters_services(rig->region, 0)[0].bytes, 3 * 100);
    assert_int_equal(hb_counters_services(rig->region, 0)[0].drops, 7);
    assert_int_equal(hb_counters_backends(rig->region, 0)[1].packets, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(receive(rig, NARROW_PORT, &out));
    assert_false(receive(rig, NARROW_PORT, &out));
}

/* The same of a port whose link is known to be down: for that reason, and for no other port's. */
static void a_port_without_a_link(void **state)
{
    _Atomic uint32_t links_down = UINT32_C(1) << NARROW_PORT;
    struct rig *rig = *state;
    struct frame in = TCP4(.flags = ACK, .payload = 60), out;

    rig->worker->config.links_down = &links_down;
    make_pools(rig, 2);
    rig->backend[1].port = NARROW_PORT;
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    add_service(rig, 4, HB_PROTOCOL_TCP, 81, 1);
    publish(rig);
    for (uint32_t mixed = 0; mixed < 2; mixed++) { /* all by one port, then by two */
        for (uint32_t i = 0; i < 10; i++)
            send_frame(rig, &in);
        if (mixed)
            send_frame(rig, &(struct frame[]){TCP4(.destination_port = 81)}[0]);
        turn(rig);
        take_all(rig, NARROW_PORT);
        assert_int_equal(receive(rig, PORT, &out), mixed);
        assert_int_equal(counters(rig)->drops[HB_DROP_LINK_DOWN], 7 * (mixed + 1));
    }
    links_down = UINT32_C(1) << PORT; /* another's */
    for (uint32_t i = 0; i < 10; i++)
        send_frame(rig, &in);
    turn(rig);
    take_all(rig, NARROW_PORT);
    assert_int_equal(counters(rig)->drops[HB_DROP_LINK_DOWN], 14);
    assert_int_equal(counters(rig)->drops[HB_DROP_TX_FULL], 7);
    rig->worker->config.links_down = NULL;
}

static void a_full_punt_port(void **state)
{
    struct rig *rig = *state;
    struct frame arp = build_arp();

    publish_one_backend(rig, 4);
    rig->worker->config.kernel[0] = (struct hb_kernel_way){true, PUNT_PORT};
    for (uint32_t i = 0; i < 10; i++)
        send_frame(rig, &arp);
    turn(rig);
    assert_int_equal(counters(rig)->punted_packets, 3);
    assert_int_equal(counters(rig)->punted_bytes, 3 * 60);
    assert_int_equal(counters(rig)->drops[HB_DROP_PUNT_FULL], 7);
}

/* One burst of everything: each packet finds its own end, in spite of its neighbours, and those
 * that leave keep their order on each port. */
static void a_mixed_burst(void **state)
{
    struct rig *rig = *state;
    struct frame out;
    uint32_t sent[2] = {0};

    make_pools(rig, 2);
    rig->backend[2].port = NARROW_PORT;
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    add_service(rig, 4, HB_PROTOCOL_TCP, 81, 1);
    publish(rig);
    rig->worker->config.kernel[0] = (struct hb_kernel_way){true, PUNT_PORT};
    for (uint16_t i = 0; i < 64; i++) {
        struct frame kinds[] = {
            TCP4(.source_port = 1 + i),
            TCP4(.destination_port = 9),
            IP4(50),
            i < 16 ? build_arp() : IP4(1),
            i < 16 ? TCP4(.destination_port = 81, .id = i) : UDP6(),
            cut(TCP4(), 20),
            TCP4(.source_port = 1 + i, .flags = ACK),
        };

        if (i % 7 == 4 && i >= 16) /* not a VIP: would overfill the punt port */
            kinds[4] = cut(TCP4(), 9);
        send_frame(rig, &kinds[i % 7]);
    }
    turn(rig);
    for (uint32_t port = 0; port < 2; port++) {
        uint32_t last = 0;

        while (receive(rig, port, &out)) {
            uint32_t source_port = out.bytes[34 + 20] << 8 | out.bytes[34 + 21];

            sent[port]++;
            assert_true(port == 1 || source_port > last);
            last = source_port;
        }
    }
    assert_int_equal(sent[0], 10 + 9);
    assert_int_equal(sent[1], 2);
    assert_int_equal(counters(rig)->punted_packets, 2);
    assert_int_equal(counters(rig)->drops[HB_DROP_NO_SERVICE], 9);
    assert_int_equal(counters(rig)->drops[HB_DROP_PROTOCOL], 9);
    assert_int_equal(counters(rig)->drops[HB_DROP_ICMP_TYPE], 7);
    assert_int_equal(counters(rig)->drops[HB_DROP_RUNT], 9 + 7);
    assert_int_equal(counters(rig)->rx_packets, 64);
}

/* BL-40: 2,000 clients that differ only in one place of their address spread over ten backends. */
static void clients_of_one_network_spread(void **state)
{
    static const uint32_t where[] = {0, 6, 14}; /* the first bits, the /64 number, the last bits */
    struct rig *rig = *state;

    for (uint16_t id = 1; id <= 10; id++)
        add_backend(rig, id, 0, 4);
    share_table(rig, 0);
    add_service(rig, 6, HB_PROTOCOL_TCP, 80, 0);
    publish(rig);
    for (uint32_t set = 0; set < 3; set++) {
        uint32_t got[11] = {0};

        for (uint32_t n = 0; n < 2000; n++) {
            struct frame in = TCP6(.flags = RST);
            uint8_t *at = in.bytes + IP6_SOURCE + where[set];

            at[0] = (uint8_t)(0x20 + (n >> 8));
            at[1] = (uint8_t)n;
            got[backend_of(rig, &in)]++;
        }
        assert_int_equal(got[0], 0);
        for (uint32_t id = 1; id <= 10; id++)
            assert_in_range(got[id], 140, 260);
    }
}

/* BL-06: a thousand packets of noise first, so that nothing in the buffers is what it should be. */
static void noise_leaves_nothing_behind(void **state)
{
    struct rig *rig = *state;
    uint32_t seed = 1;
    const struct row rows[] = {{"SYN", TCP4(), SENT}, {"datagram", UDP6(.payload = 5), SENT}};

    publish_one_backend(rig, 4);
    for (uint32_t i = 0; i < 1000; i++) {
        rig->tight = i % 8 < 4;
        struct frame noise = {.length = 1 + i % 300}, out;

        for (uint32_t at = 0; at < noise.length; at++) {
            seed = seed * 1664525 + 1013904223;
            noise.bytes[at] = (uint8_t)(seed >> 24);
        }
        if (i % 2 == 0 && noise.length > 40) { /* noise inside a packet for a VIP */
            struct frame real = i % 4 == 0 ? TCP4() : TCP6();
            uint32_t keep = i % 4 == 0 ? 34 : 54;

            memcpy(noise.bytes, real.bytes, noise.length < keep ? noise.length : keep);
        }
        send_frame(rig, &noise);
        turn(rig);
        while (receive(rig, PORT, &out))
            continue;
        RUN_ROWS(rig, rows, 4);
    }
}

/* BL-115: what a healthy network brings counts as no drop, and every packet has one end. */
static void clean_traffic_drops_nothing(void **state)
{
    struct frame nd = IP6(58, .source = "fe80::1", .destination = "ff02::1:ff00:10");
    const struct frame day[] = {
        build_arp(),
        poke16(build_arp(), ETHERTYPE, 0x88cc), /* LLDP */
        nd,
        TCP4(.ttl = 1, .destination = "198.51.100.10", .destination_port = 179),
        TCP6(.flags = ACK, .destination = "2001:db8:0:1::10", .source_port = 80), /* a probe's */
        ICMP4(.type = 8, .payload = 56),
        TCP4(),
        TCP4(.flags = ACK | PSH, .payload = 700),
        TCP4(.flags = FIN | ACK),
        TCP4(.flags = ACK),
        TCP6(.source_port = 9),
        TCP6(.source_port = 9, .flags = RST),
        UDP4(.payload = 1200), /* the first of a QUIC connection */
        UDP6(.payload = 1200),
    };
    struct rig *rig = *state;
    uint32_t count = sizeof(day) / sizeof(day[0]), rounds = 20;

    rig->settings.echo = HB_ECHO_ANSWER;
    rig->settings.icmp_rate = 1000;
    publish_one_backend(rig, 4);
    rig->worker->config.kernel[0] = (struct hb_kernel_way){true, PUNT_PORT};
    for (uint32_t round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < count; i++) {
            send_frame(rig, &day[i]);
            if (i % 3 == 2 || i == count - 1) /* what the punt port takes at a time */
                turn(rig);
            take_all(rig, PUNT_PORT);
        }
        take_all(rig, PORT);
        if (round % 5 == 4)
            publish(rig);
        advance(rig, 1000);
    }
    assert_int_equal(count_drops(rig), 0);
    assert_int_equal(counters(rig)->rx_packets, rounds * count);
    assert_int_equal(counters(rig)->punted_packets, rounds * 5);
    assert_int_equal(counters(rig)->tx_packets, rounds * (count - 5));
    assert_int_equal(hb_counters_services(rig->region, 0)[0].drops, 0);
}

/* BL-108: buffers of two pools in one burst, and of both in one packet, as they come from ports of
 * two NUMA nodes: whatever becomes of a packet, each pool has all of its own back. */
static void buffers_go_back_to_their_pools(void **state)
{
    struct rig *rig = *state;
    struct rte_mempool *other =
        rte_pktmbuf_pool_create("other", 127, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    struct frame kinds[] = {TCP4(.flags = ACK, .payload = 60), TCP4(.destination_port = 9),
                            cut(TCP4(), 20), build_arp(), ICMP4(.type = 8, .payload = 60)};

    assert_non_null(other);
    publish_one_backend(rig, 4);
    rig->worker->config.kernel[0] = (struct hb_kernel_way){true, PUNT_PORT}; /* soon full */
    for (uint32_t round = 0; round < 200; round++) {
        for (uint32_t i = 0; i < 30; i++) {
            const struct frame *frame = &kinds[i % 5];
            struct rte_mbuf *mbuf = rte_pktmbuf_alloc(other);

            if (i % 3 != 0) {
                memcpy(rte_pktmbuf_append(mbuf, (uint16_t)frame->length), frame->bytes,
                       frame->length);
            } else { /* the end of a packet that begins in the rig's pool */
                struct rte_mbuf *first = make_mbuf(frame, RTE_PKTMBUF_HEADROOM, 0);

                rte_pktmbuf_append(mbuf, 8);
                assert_int_equal(rte_pktmbuf_chain(first, mbuf), 0);
                mbuf = first;
            }
            send_mbuf(rig, mbuf);
        }
        turn(rig);
        take_all(rig, PORT);
        if (round % 2 == 0)
            take_all(rig, PUNT_PORT);
    }
    take_all(rig, PUNT_PORT);
    assert_true(counters(rig)->drops[HB_DROP_PUNT_FULL] > 0);
    assert_true(counters(rig)->tx_packets > 0);
    assert_int_equal(rte_mempool_avail_count(other), 127);
    rte_mempool_free(other);
}

/* The worker's own ageing, turn by turn: every entry goes within one sweep after its time. */
static void ageing_keeps_up_by_itself(void **state)
{
    struct rig *rig = *state;

    publish_one_backend(rig, 4);
    for (uint16_t port = 1; port <= 500; port++)
        B(rig, TCP4(.source_port = port));
    assert_int_equal(live_flows(rig, 1), counters(rig)->flows);
    for (uint32_t ms = 1; ms <= 3000 + HB_SWEEP_MS; ms++) {
        rig->now_ms++;
        turn(rig);
        if (ms == 2999)
            assert_int_equal(counters(rig)->flow_expiries, 0);
    }
    assert_int_equal(counters(rig)->flow_expiries, counters(rig)->flow_inserts);
    assert_int_equal(live_flows(rig, 1), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(no_generation),
        TEST(an_empty_generation),
        TEST(tcp_and_udp_on_one_port),
        TEST(ports_come_and_go),
        TEST(a_full_port),
        TEST(a_port_without_a_link),
        TEST(a_full_punt_port),
        TEST(a_mixed_burst),
        TEST(clients_of_one_network_spread),
        TEST(noise_leaves_nothing_behind),
        TEST(clean_traffic_drops_nothing),
        TEST(buffers_go_back_to_their_pools),
        TEST(ageing_keeps_up_by_itself),
    };
    int failed = rig_open();

    if (failed == 0)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return failed;
}
