/* SPDX-License-Identifier: BSD-3-Clause */
/* What is put in front of a packet, and that the packet itself leaves as it came. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "rig.h"

/* Every combination of families, TCP and UDP, odd and even lengths (BL-09). Expected frames are
 * built by tunnel(), byte for byte; these rows are for each outer family. */
static void run_all_kinds(struct rig *rig, uint8_t outer_family)
{
    const struct row rows[] = {
        {"SYN over IPv4", TCP4(), SENT},
        {"SYN over IPv4 with DF", TCP4(.fragment = DF), SENT},
        {"one byte of data", TCP4(.flags = ACK, .payload = 1), SENT},
        {"a datagram over IPv4", UDP4(.payload = 33), SENT},
        {"SYN over IPv6", TCP6(), SENT},
        {"a datagram over IPv6", UDP6(.payload = 1001), SENT},
        {"extension headers go along", UDP6(.chain = {0, 60}, .chain_count = 2), SENT},
        {"options go along", TCP4(.options = 40, .payload = 3), SENT},
        {"tags don't", TCP6(.tags = 2), SENT},
    };

    publish_one_backend(rig, outer_family);
    RUN_ROWS(rig, rows, outer_family);
}

static void over_ipv4(void **state)
{
    run_all_kinds(*state, 4);
}

static void over_ipv6(void **state)
{
    run_all_kinds(*state, 6);
}

/* One of each, written out, so that tunnel() itself can be checked by eye. */
static void frames_written_out(void **state)
{
    static const uint8_t four_in_four[] = {
        0x02, 0,    0,    0,    0,    0x01, 0x02, 0,    0,   0,  0,   0x10,
        0x08, 0x00,                                     /* Ethernet */
        0x45, 0xb9, 0x00, 0x3c, 0x00, 0x00, 0x40, 0x00, /* TOS 0xb9, 60 bytes, DF */
        0x40, 0x04, 0xe5, 0x88, 198,  51,   100,  10,   198, 51, 100, 11, /* TTL 64, protocol 4 */
    };
    static const uint8_t six_in_six[] = {
        0x02, 0,    0,    0,    0,    0x01, 0x02, 0,    0, 0, 0, 0x10, 0x86, 0xdd, /* Ethernet */
        0x60, 0x00, 0x00, 0x00, 0x00, 0x3c, 0x29, 0x40,                            /* 60, 41, 64 */
        0x20, 0x01, 0x0d, 0xb8, 0,    0,    0,    1,    0, 0, 0, 0,    0,    0,
        0,    0x10, /* source */
        0x20, 0x01, 0x0d, 0xb8, 0,    0,    0,    0x0b, 0, 0, 0, 0,    0,    0,
        0,    0x11, /* backend 1 */
    };
    struct rig *rig = *state;
    struct frame in = TCP4(.fragment = DF, .tos = 0xb9), in6 = TCP6(), out;

    publish_one_backend(rig, 4);
    send_frame(rig, &in);
    turn(rig);
    assert_true(receive(rig, PORT, &out));
    assert_int_equal(out.length, 34 + 40);
    assert_memory_equal(out.bytes, four_in_four, 34);
    assert_memory_equal(out.bytes + 34, in.bytes + 14, 40);

    add_backend(rig, 1, 0, 6);
    publish(rig);
    send_frame(rig, &in6);
    turn(rig);
    assert_true(receive(rig, PORT, &out));
    out.bytes[L3 + 1] &= 0xf0; /* the flow label has its own test */
    out.bytes[L3 + 2] = out.bytes[L3 + 3] = 0;
    assert_int_equal(out.length, 54 + 60);
    assert_memory_equal(out.bytes, six_in_six, 54);
    assert_memory_equal(out.bytes + 54, in6.bytes + 14, 60);
}

/* BL-01: 72 bytes, TOS 0, ID 0, to two addresses at which one fold of the sum is not enough. */
static void the_checksum_is_folded_to_the_end(void **state)
{
    static const struct {
        const char *backend;
        uint16_t fragment;
        uint16_t checksum;
    } rows[] = {
        {"198.18.74.99", DF, 0xfffe},
        {"198.18.74.100", DF, 0xfffd},
        {"198.18.138.99", 0, 0xfffe},
        {"198.18.138.100", 0, 0xfffd},
    };
    struct rig *rig = *state;

    publish_one_backend(rig, 4);
    for (uint32_t i = 0; i < 4; i++) {
        struct frame in = TCP4(.flags = ACK, .fragment = rows[i].fragment, .payload = 12), out;

        inet_pton(AF_INET, rows[i].backend, rig->backend[1].bytes + IP4_DESTINATION);
        publish(rig);
        rig->worker->ipv4_id = 0;
        send_frame(rig, &in);
        turn(rig);
        assert_true(receive(rig, PORT, &out));
        assert_int_equal(out.bytes[IP4_LENGTH + 1], 72);
        assert_int_equal(out.bytes[IP4_CHECKSUM] << 8 | out.bytes[IP4_CHECKSUM + 1],
                         rows[i].checksum);
    }
}

/* BL-01 as a property: all 65,536 values of one header word, the ID; every checksum verifies.
 * BL-06: the IDs of packets that may be fragmented differ. */
static void every_id_has_a_right_checksum(void **state)
{
    struct rig *rig = *state;
    struct frame in = TCP4(.flags = ACK), out;

    publish_one_backend(rig, 4);
    rig->worker->ipv4_id = 0;
    for (uint32_t id = 0; id < 65536; id++) {
        send_frame(rig, &in);
        turn(rig);
        assert_true(receive(rig, PORT, &out));
        assert_int_equal(out.bytes[L3 + 4] << 8 | out.bytes[L3 + 5], id);
        assert_int_equal(checksum(out.bytes + L3, 20), 0);
    }
}

/* BL-04, BL-11: all values of TOS and traffic class reach the outer header, DSCP and ECN alike. */
static void the_traffic_class_is_copied(void **state)
{
    struct rig *rig = *state;

    publish_one_backend(rig, 4);
    for (uint32_t tos = 0; tos < 256; tos++) {
        const struct row rows[] = {
            {"TOS", TCP4(.tos = (uint8_t)tos), SENT},
            {"traffic class", TCP6(.tos = (uint8_t)tos), SENT},
        };

        RUN_ROWS(rig, rows, 4);
    }
    add_backend(rig, 1, 0, 6);
    publish(rig);
    for (uint32_t tos = 0; tos < 256; tos++) {
        const struct row rows[] = {
            {"TOS", TCP4(.tos = (uint8_t)tos), SENT},
            {"traffic class", TCP6(.tos = (uint8_t)tos), SENT},
        };

        RUN_ROWS(rig, rows, 6);
    }
}

/* BL-15: with real addresses, not only those full of zeroes, flags and offset are 0 or DF. */
static void addresses_do_not_reach_the_fragment_word(void **state)
{
    struct rig *rig = *state;
    const struct row rows[] = {
        {"mostly zero", TCP6(.source = "2001:db8::1"), SENT},
        {"no zero byte", TCP6(.source = "2001:db8:ffff:fffe:fdfc:fbfa:f9f8:f7f6"), SENT},
        {"all ones", TCP6(.source = "2fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), SENT},
    };

    publish_one_backend(rig, 4);
    RUN_ROWS(rig, rows, 4);
}

/* BL-17, BL-19: up to the last byte that fits; DF as inside. */
static void sizes_at_the_limit(void **state)
{
    struct rig *rig = *state;
    const struct row over4[] = {
        {"1400 bytes", TCP4(.flags = ACK, .payload = 1360), SENT},
        {"1400 bytes, DF", TCP4(.flags = ACK, .fragment = DF, .payload = 1360), SENT},
        {"1480 bytes", TCP4(.flags = ACK, .payload = 1440), SENT},
        {"1480 bytes, DF", TCP4(.flags = ACK, .fragment = DF, .payload = 1440), SENT},
        {"1480 bytes of IPv6", UDP6(.payload = 1432), SENT},
        {"1481 bytes", TCP4(.flags = ACK, .payload = 1441), DROP(OVERSIZE)},
        {"1481 bytes of IPv6", UDP6(.payload = 1433), DROP(OVERSIZE)},
        {"1500 bytes, DF", TCP4(.flags = ACK, .fragment = DF, .payload = 1460), DROP(OVERSIZE)},
        {"padding does not count", pad(TCP4(.flags = ACK, .payload = 1440), 1600), SENT},
    };
    const struct row over6[] = {
        {"1460 bytes", TCP4(.flags = ACK, .payload = 1420), SENT},
        {"1461 bytes", TCP4(.flags = ACK, .payload = 1421), DROP(OVERSIZE)},
    };

    publish_one_backend(rig, 4);
    RUN_ROWS(rig, over4, 4);
    add_backend(rig, 1, 0, 6);
    publish(rig);
    RUN_ROWS(rig, over6, 6);
    assert_int_equal(hb_counters_services(rig->region, 0)[0].drops, 3);
    assert_int_equal(hb_counters_services(rig->region, 0)[3].drops, 1);
}

/* BL-16: the old Ethernet header makes 14 bytes of room; what is missing must be in front of it.
 * Never sent bare. */
static void run_headrooms(struct rig *rig, uint32_t needed)
{
    static const uint32_t headrooms[] = {0, 19, 20, 39, 40, 51, 52};
    struct frame in = TCP4(.flags = ACK), out;

    for (uint32_t i = 0; i < 7; i++) {
        uint64_t drops = count_drops(rig);
        bool fits = headrooms[i] >= needed;

        send_mbuf(rig, make_mbuf(&in, headrooms[i], 0));
        turn(rig);
        assert_int_equal(receive(rig, PORT, &out), fits);
        assert_int_equal(count_drops(rig) - drops, !fits);
        if (fits)
            assert_int_equal(out.length, 14 + needed + 40);
    }
}

static void too_little_headroom(void **state)
{
    struct rig *rig = *state;
    const struct hb_worker_counters *counters = hb_counters_worker(rig->region, 0);

    publish_one_backend(rig, 4);
    run_headrooms(rig, 20);
    assert_int_equal(counters->drops[HB_DROP_NO_HEADROOM], 2);
    add_backend(rig, 1, 0, 6);
    publish(rig);
    run_headrooms(rig, 40);
    assert_int_equal(counters->drops[HB_DROP_NO_HEADROOM], 2 + 4);
}

/* BL-16: 10,000 times, and with a pool that has nothing left; rig_teardown counts the mbufs. */
static void failing_loses_no_mbuf(void **state)
{
    struct rig *rig = *state;
    struct frame in = TCP4(.flags = ACK), out;

    publish_one_backend(rig, 4);
    for (uint32_t i = 0; i < 10000; i++) {
        send_mbuf(rig, make_mbuf(&in, 0, 0));
        turn(rig);
    }
    assert_int_equal(hb_counters_worker(rig->region, 0)->drops[HB_DROP_NO_HEADROOM], 10000);
    assert_false(receive(rig, PORT, &out));
}

/* A packet that someone else still holds is copied before anything is written. */
static void shared_packets_are_copied(void **state)
{
    struct rig *rig = *state;
    struct frame in = pad(TCP4(.flags = ACK, .payload = 7), 100), out, want;
    struct rte_mbuf *mbuf = make_mbuf(&in, RTE_PKTMBUF_HEADROOM, 70);
    struct rte_mbuf *clone = rte_pktmbuf_clone(mbuf, mbuf->pool);

    publish_one_backend(rig, 4);
    assert_non_null(clone);
    for (uint32_t i = 0; i < 2; i++) {
        want = tunnel(&in, 4, 1, rig->worker->ipv4_id, 0);
        if (i == 0) {
            send_mbuf(rig, clone);
        } else {
            rte_pktmbuf_refcnt_update(mbuf, 1);
            send_mbuf(rig, mbuf);
        }
        turn(rig);
        assert_true(receive(rig, PORT, &out));
        assert_frame("shared", &out, &want);
        assert_int_equal(rte_pktmbuf_pkt_len(mbuf), 100);
        assert_memory_equal(rte_pktmbuf_mtod(mbuf, void *), in.bytes, 70);
    }
    rte_pktmbuf_free(mbuf);
}

/* BL-18: what the receiving port found, and what it was asked to do, does not go on to the sending
 * one. */
static void offload_flags_do_not_go_along(void **state)
{
    struct rig *rig = *state;
    struct frame in = TCP4(), out;
    struct rte_mbuf *mbuf = make_mbuf(&in, RTE_PKTMBUF_HEADROOM, 0);

    publish_one_backend(rig, 4);
    mbuf->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_TX_IP_CKSUM |
                      RTE_MBUF_F_TX_TCP_CKSUM | RTE_MBUF_F_TX_VLAN;
    mbuf->vlan_tci = 99;
    mbuf->tx_offload = 0x1234;
    send_mbuf(rig, mbuf);
    turn(rig);
    assert_int_equal(mbuf->ol_flags, 0); /* it waits in the ring now */
    assert_int_equal(mbuf->vlan_tci, 0);
    assert_int_equal(mbuf->tx_offload, 0);
    assert_true(receive(rig, PORT, &out));
}

/* The flow label is one for all packets of a flow and differs between flows; the bytes of the flow
 * hash are not in it. */
static void flow_labels_spread_flows(void **state)
{
    struct rig *rig = *state;
    uint32_t seen[16] = {0};

    add_backend(rig, 1, 0, 6);
    share_table(rig, 0);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    publish(rig);
    for (uint16_t port = 1; port <= 1024; port++) {
        struct frame in[] = {TCP4(.source_port = port, .flags = RST),
                             TCP4(.source_port = port, .flags = FIN, .payload = 9)};
        uint32_t label[2];

        for (uint32_t i = 0; i < 2; i++) {
            struct frame out;

            send_frame(rig, &in[i]);
            turn(rig);
            assert_true(receive(rig, PORT, &out));
            label[i] =
                (out.bytes[L3 + 1] & 0xfu) << 16 | out.bytes[L3 + 2] << 8 | out.bytes[L3 + 3];
        }
        assert_int_equal(label[0], label[1]);
        seen[label[0] >> 16]++;
    }
    for (uint32_t i = 0; i < 16; i++)
        assert_in_range(seen[i], 30, 110); /* 64 each, and a little luck */
}

/* Every cut between two segments, payload and padding in either: the padding goes, the rest stays.
 */
static void padding_in_another_segment(void **state)
{
    struct rig *rig = *state;
    struct frame in = pad(UDP4(.payload = 30), 120), out, want;

    publish_one_backend(rig, 4);
    for (uint32_t split = L4_OF_4 + 8; split < in.length; split++) {
        want = tunnel(&in, 4, 1, rig->worker->ipv4_id, 0);
        send_mbuf(rig, make_mbuf(&in, RTE_PKTMBUF_HEADROOM, split));
        turn(rig);
        assert_true(receive(rig, PORT, &out));
        assert_frame("padding", &out, &want);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(over_ipv4),
        TEST(over_ipv6),
        TEST(frames_written_out),
        TEST(the_checksum_is_folded_to_the_end),
        TEST(every_id_has_a_right_checksum),
        TEST(the_traffic_class_is_copied),
        TEST(addresses_do_not_reach_the_fragment_word),
        TEST(sizes_at_the_limit),
        TEST(too_little_headroom),
        TEST(failing_loses_no_mbuf),
        TEST(shared_packets_are_copied),
        TEST(offload_flags_do_not_go_along),
        TEST(flow_labels_spread_flows),
        TEST(padding_in_another_segment),
    };
    int failed = rig_open();

    if (failed == 0)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return failed;
}
