/* SPDX-License-Identifier: BSD-3-Clause */
/* QUIC services: connection ids that name their backend, and all the others. */
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

/* Packets of service 0 that were so. */
static uint64_t outcome(const struct rig *rig, enum hb_quic_outcome outcome)
{
    return hb_counters_quic(rig->region, 0)[0].packets[outcome];
}

/* A datagram to a QUIC service, from a client's port. */
static struct frame datagram(uint8_t family, uint16_t source_port, const uint8_t *payload,
                             uint32_t length)
{
    struct spec spec = {
        .family = family, .protocol = 17, .source_port = source_port, .payload = length};
    struct frame frame = build(&spec);

    memcpy(frame.bytes + frame.length - length, payload, length);
    return frame;
}

/* A short header with a plain connection id of configuration 0: three bytes of server id, eight of
 * nonce, and something behind. */
static struct frame short_header(uint8_t family, uint16_t source_port, uint32_t server)
{
    uint8_t payload[32] = {
        0x40, 0x07, (uint8_t)(server >> 16), (uint8_t)(server >> 8), (uint8_t)server, 0x99};

    return datagram(family, source_port, payload, sizeof(payload));
}

/* Backend n of ten has the server id 0x000100 + n, of three bytes. */
static void publish_quic(struct rig *rig)
{
    const struct hb_quic_record plain = {.config_id = 0, .server_id_length = 3, .nonce_length = 8};

    for (uint16_t id = 1; id <= 10; id++) {
        add_backend(rig, id, 0, 4);
        name_server(rig, id, (const uint8_t[]){0, 1, (uint8_t)id}, 3);
    }
    share_table(rig, 0);
    add_service(rig, 4, HB_PROTOCOL_UDP, 443, 0);
    add_quic(rig, &plain);
    add_service(rig, 6, HB_PROTOCOL_UDP, 443, 0);
    add_quic(rig, &plain);
    add_service(rig, 4, HB_PROTOCOL_TCP, 443, 0);
    publish(rig);
}

static uint16_t go(struct rig *rig, struct frame frame)
{
    return backend_of(rig, &frame);
}

/* BL-57 (a): the id decides, wherever the client is, and makes no entry. */
static void a_client_that_moves(void **state)
{
    struct rig *rig = *state;

    publish_quic(rig);
    for (uint16_t port = 40000; port < 40100; port++) {
        assert_int_equal(go(rig, short_header(4, port, 0x107)), 7);
        assert_int_equal(go(rig, short_header(6, port, 0x103)), 3);
    }
    assert_int_equal(counters(rig)->quic_routed, 200);
    assert_int_equal(counters(rig)->quic_unroutable, 0);
    assert_int_equal(counters(rig)->flows, 0);
    assert_int_equal(hb_counters_services(rig->region, 0)[0].packets, 100);
    assert_int_equal(hb_counters_backends(rig->region, 0)[7].packets, 100);
}

/* Where the 5-tuple leads from this port. */
static uint16_t by_tuple(struct rig *rig, uint16_t port)
{
    return go(rig, datagram(4, port, (const uint8_t[]){0}, 0));
}

/* BL-57 (b): ids that name nobody fall back; a draining backend keeps its connections. */
static void ids_that_name_nobody(void **state)
{
    static const uint32_t nobody[] = {0, 0x10000, 0x1ff, 0xffffff, 0x10b};
    struct rig *rig = *state;
    uint16_t port = 50000;

    publish_quic(rig);
    for (uint32_t i = 0; i < 5; i++, port++) {
        uint16_t other = by_tuple(rig, port);

        assert_int_equal(go(rig, short_header(4, port, nobody[i])), other);
        assert_int_equal(counters(rig)->quic_unroutable, i + 1);
    }
    rig->backend[7].use = HB_BACKEND_DRAINING;
    share_table(rig, 0);
    publish(rig);
    assert_int_equal(go(rig, short_header(4, port, 0x107)), 7);
    rig->backend[7].use = HB_BACKEND_DOWN;
    publish(rig);
    assert_int_not_equal(go(rig, short_header(4, ++port, 0x107)), 7);
    assert_int_equal(counters(rig)->quic_unroutable, 6);

    /* (e) Back again: the id counts, not the entry that was made meanwhile. */
    rig->backend[7].use = HB_BACKEND_ACTIVE;
    publish(rig);
    assert_int_equal(go(rig, short_header(4, port, 0x107)), 7);

    /* Its id is another's now. */
    rig->server[6].server_id[2] = 8;
    rig->server[7].server_id[2] = 7;
    publish(rig);
    assert_int_equal(go(rig, short_header(4, port, 0x107)), 8);
}

/* A long header of version 1. */
static struct frame long_header(uint16_t source_port, uint8_t first, uint32_t version,
                                uint8_t id_length, uint32_t server)
{
    uint8_t payload[48] = {first,
                           (uint8_t)(version >> 24),
                           (uint8_t)(version >> 16),
                           (uint8_t)(version >> 8),
                           (uint8_t)version,
                           id_length};

    payload[6] = 0x07;
    payload[7] = (uint8_t)(server >> 16);
    payload[8] = (uint8_t)(server >> 8);
    payload[9] = (uint8_t)server;
    return datagram(4, source_port, payload, sizeof(payload));
}

/* BL-57 (c, d): an id that the client may have made up says nothing, even if it looks like one of
 * ours; those of Handshake packets do. */
static void ids_of_clients(void **state)
{
    static const uint8_t lengths[] = {0, 7, 8, 12, 20, 21, 255};
    struct rig *rig = *state;
    uint16_t port = 30000;

    publish_quic(rig);
    for (uint32_t i = 0; i < sizeof(lengths); i++, port++) {
        uint16_t other = by_tuple(rig, port);

        assert_int_equal(go(rig, long_header(port, 0xc0, 1, lengths[i], 0x107)), other);
        assert_int_equal(go(rig, long_header(port, 0xc0, 1, lengths[i], 0x107)), other);
        assert_int_equal(go(rig, long_header(port, 0xd0, 1, lengths[i], 0x107)), other);
        assert_int_equal(go(rig, long_header(port, 0xe0, 0, lengths[i], 0x107)), other);
        assert_int_equal(go(rig, long_header(port, 0xe0, 0xfaceb001, lengths[i], 0x107)), other);
    }
    assert_int_equal(counters(rig)->quic_routed + counters(rig)->quic_unroutable, 0);
    assert_int_equal(go(rig, long_header(port, 0xe0, 1, 12, 0x107)), 7);
    assert_int_equal(go(rig, long_header(port, 0xf0, 0x6b3343cf, 12, 0x104)), 4);
    assert_int_equal(counters(rig)->quic_routed, 2);
    /* Too short for server id and nonce, and it says so. */
    assert_int_equal(go(rig, long_header(port, 0xe0, 1, 11, 0x107)), by_tuple(rig, port));
    assert_int_equal(counters(rig)->quic_unroutable, 1);
}

/* BL-38: payloads of 0 bytes and up, in buffers that end with the packet; what UDP says counts. */
static void payloads_that_are_cut_short(void **state)
{
    struct rig *rig = *state;
    struct frame whole = short_header(4, 4000, 0x107), in;
    uint16_t other;

    publish_quic(rig);
    rig->tight = true;
    for (uint32_t length = 0; length <= 24; length++) {
        uint16_t port = (uint16_t)(20000 + length);

        in = datagram(4, port, whole.bytes + whole.length - 32, length);
        other = by_tuple(rig, port);
        assert_int_equal(go(rig, in), length >= 13 ? 7 : other);
        in = datagram(6, port, whole.bytes + whole.length - 32, length);
        assert_int_not_equal(go(rig, in), 0);
    }
    /* UDP says 8 bytes, and there are 32 more: an id that is none of the datagram's. */
    other = by_tuple(rig, 4000);
    in = poke16(whole, L4_OF_4 + UDP_LENGTH, 8);
    assert_int_equal(go(rig, in), other);
    in = poke16(whole, L4_OF_4 + UDP_LENGTH, 8 + 12);
    assert_int_equal(go(rig, in), other);
    in = poke16(whole, L4_OF_4 + UDP_LENGTH, 8 + 13);
    assert_int_equal(go(rig, in), 7);
    /* And a length that lies. */
    in = poke16(whole, L4_OF_4 + UDP_LENGTH, 8 + 33);
    assert_int_equal(go(rig, in), 0);
    assert_int_equal(counters(rig)->drops[HB_DROP_L4_HEADER], 1);
}

/* An id that reaches into a second segment of the buffer is not read. */
static void an_id_in_two_segments(void **state)
{
    struct rig *rig = *state;
    struct frame in = short_header(4, 4000, 0x107), out;

    publish_quic(rig);
    for (uint32_t split = L4_OF_4 + 8; split < L4_OF_4 + 40; split++) {
        send_mbuf(rig, make_mbuf(&in, RTE_PKTMBUF_HEADROOM, split < 54 ? 54 : split));
        turn(rig);
        assert_true(receive(rig, PORT, &out));
    }
    assert_int_equal(counters(rig)->quic_routed + counters(rig)->quic_unroutable, 32);
    assert_true(counters(rig)->quic_routed > 0 && counters(rig)->quic_unroutable > 0);
}

/* Options, extension headers and VLAN tags in front: the id is found behind them. */
static void headers_in_front(void **state)
{
    struct rig *rig = *state;
    struct frame id = short_header(4, 1, 0x105);

    publish_quic(rig);
    for (uint32_t kind = 0; kind < 4; kind++) {
        struct frame frames[] = {UDP4(.options = 40, .payload = 32), UDP4(.tags = 2, .payload = 32),
                                 UDP6(.chain = {0, 60}, .chain_count = 2, .payload = 32),
                                 UDP6(.tags = 1, .payload = 32)};

        memcpy(frames[kind].bytes + frames[kind].length - 32, id.bytes + id.length - 32, 32);
        assert_int_equal(backend_of(rig, &frames[kind]), 5);
    }
    assert_int_equal(counters(rig)->quic_routed, 4);
}

/* Two configurations at a time, one of them encrypted (a test vector of the draft), while keys are
 * changed; ids of a third, and those that say they can't be routed, fall back. */
static void configurations_at_a_time(void **state)
{
    static const uint8_t vector[] = {0x20, 0xb1, 0xd0, 0x7b, 0x35, 0x9d, 0x3c};
    const struct hb_quic_record encrypted = {.config_id = 5,
                                             .server_id_length = 3,
                                             .nonce_length = 4,
                                             .encrypted = 1,
                                             .key = {0x8f, 0x95, 0xf0, 0x92, 0x45, 0x76, 0x5f, 0x80,
                                                     0x25, 0x69, 0x34, 0xe5, 0x0c, 0x66, 0x20,
                                                     0x7f}};
    struct rig *rig = *state;
    uint8_t payload[32] = {0x40, 5 << 5};

    publish_quic(rig);
    rig->services = 1;
    add_quic(rig, &encrypted);
    rig->quic[1] = encrypted;
    memcpy(rig->server[2].server_id, (const uint8_t[]){0xed, 0x79, 0x3a}, 3);
    publish(rig);
    memcpy(payload + 2, vector, sizeof(vector));
    assert_int_equal(go(rig, datagram(4, 1234, payload, sizeof(payload))), 3);
    assert_int_equal(go(rig, short_header(4, 1234, 0x107)), 7);
    assert_int_equal(counters(rig)->quic_routed, 2);
    payload[1] = 4 << 5;
    assert_int_equal(go(rig, datagram(4, 1235, payload, sizeof(payload))), by_tuple(rig, 1235));
    payload[1] = 7 << 5;
    assert_int_equal(go(rig, datagram(4, 1235, payload, sizeof(payload))), by_tuple(rig, 1235));
    assert_int_equal(counters(rig)->quic_unroutable, 2);
}

/* A burst of routed and other packets: all leave, and the accounts hold (see teardown). */
static void a_mixed_burst(void **state)
{
    struct rig *rig = *state;
    struct frame out;
    uint32_t sent = 0;

    publish_quic(rig);
    for (uint16_t i = 0; i < 64; i++) {
        struct frame frames[] = {short_header(4, 100 + i, 0x101 + i % 10), UDP4(.payload = 1),
                                 TCP4(.destination_port = 443), short_header(6, i, 0x999)};

        send_frame(rig, &frames[i % 4]);
    }
    turn(rig);
    while (receive(rig, PORT, &out))
        sent++;
    assert_int_equal(sent, 64);
    assert_int_equal(counters(rig)->quic_routed, 16);
    assert_int_equal(counters(rig)->quic_unroutable, 16);
}

/* BL-57 (b): each reason has a counter of its own, of the packet's own service. */
static void reasons_are_told_apart(void **state)
{
    static const struct {
        const char *what;
        uint8_t payload[16];
        uint32_t length;
        enum hb_quic_outcome outcome;
    } rows[] = {
        {"names backend 7", {0x40, 0x07, 0, 1, 7}, 16, HB_QUIC_ROUTED},
        {"an empty datagram", {0}, 0, HB_QUIC_NO_ID},
        {"one byte", {0x40}, 1, HB_QUIC_NO_ID},
        {"a long header that ends before its id", {0xe0, 0, 0, 0, 1, 12, 7}, 16, HB_QUIC_NO_ID},
        {"Initial", {0xc0, 0, 0, 0, 1, 8, 7, 0, 1, 7}, 16, HB_QUIC_OF_CLIENT},
        {"a version that nobody knows", {0xe0, 0xfa, 0xce, 0xb0, 1, 8, 7}, 16, HB_QUIC_OF_CLIENT},
        {"a short header, a byte too short", {0x40, 0x07, 0, 1, 7}, 12, HB_QUIC_TOO_SHORT},
        {"Handshake with eight bytes of id",
         {0xe0, 0, 0, 0, 1, 8, 7, 0, 1, 7},
         16,
         HB_QUIC_TOO_SHORT},
        {"configuration 3", {0x40, 0x67, 0, 1, 7}, 16, HB_QUIC_UNKNOWN_CONFIGURATION},
        {"configuration 7", {0x40, 0xe7, 0, 1, 7}, 16, HB_QUIC_NOT_ROUTABLE},
        {"nobody's server id", {0x40, 0x07, 0, 1, 99}, 16, HB_QUIC_UNKNOWN_SERVER},
        {"a backend that is down", {0x40, 0x07, 0, 1, 9}, 16, HB_QUIC_BACKEND_DOWN},
    };
    uint64_t want[HB_QUIC_OUTCOME_COUNT] = {0}, failed = 0;
    struct rig *rig = *state;

    publish_quic(rig);
    rig->backend[9].use = HB_BACKEND_DOWN;
    publish(rig);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint16_t backend = go(rig, datagram(4, 5000, rows[i].payload, rows[i].length));

        want[rows[i].outcome]++;
        failed += rows[i].outcome >= HB_QUIC_TOO_SHORT;
        if (memcmp(hb_counters_quic(rig->region, 0)[0].packets, want, sizeof(want)) != 0)
            fail_msg("%s: not counted as %s", rows[i].what, hb_quic_outcome_name(rows[i].outcome));
        if (rows[i].outcome != HB_QUIC_ROUTED)
            assert_int_equal(backend, by_tuple(rig, 5000));
        want[HB_QUIC_NO_ID] += rows[i].outcome != HB_QUIC_ROUTED; /* by_tuple()'s */
    }
    assert_int_equal(counters(rig)->quic_unroutable, failed);
    assert_int_equal(counters(rig)->quic_routed, 1);
    go(rig, short_header(6, 1, 0x107));
    assert_int_equal(outcome(rig, HB_QUIC_ROUTED), 1); /* that was another service */
    assert_int_equal(hb_counters_quic(rig->region, 0)[1].packets[HB_QUIC_ROUTED], 1);
}

/* Keys are changed under a connection: its ids of the old configuration are good until that is
 * removed, those of the new one from the moment it is there. */
static void rotation_under_a_connection(void **state)
{
    const struct hb_quic_record next = {.config_id = 1, .server_id_length = 3, .nonce_length = 4};
    const uint8_t old_id[16] = {0x40, 0x07, 0, 1, 7}, new_id[16] = {0x40, 0x27, 0, 1, 7};
    struct rig *rig = *state;

    publish_quic(rig);
    assert_int_equal(go(rig, datagram(4, 6000, old_id, 16)), 7);
    assert_int_equal(go(rig, datagram(4, 6001, new_id, 16)), by_tuple(rig, 6001));
    assert_int_equal(outcome(rig, HB_QUIC_UNKNOWN_CONFIGURATION), 1);
    rig->services = 1;
    add_quic(rig, &next); /* both, as services.md wants it */
    rig->quic[1] = next;
    publish(rig);
    assert_int_equal(go(rig, datagram(4, 6002, old_id, 16)), 7);
    assert_int_equal(go(rig, datagram(4, 6003, new_id, 16)), 7);
    rig->quic[0] = next; /* the new one alone */
    rig->service[0].quic_count = 1;
    publish(rig);
    assert_int_equal(go(rig, datagram(4, 6004, new_id, 16)), 7);
    assert_int_equal(go(rig, datagram(4, 6005, old_id, 16)), by_tuple(rig, 6005));
    assert_int_equal(outcome(rig, HB_QUIC_UNKNOWN_CONFIGURATION), 2);
    assert_int_equal(outcome(rig, HB_QUIC_ROUTED), 4);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_client_that_moves),      TEST(ids_that_name_nobody),
        TEST(ids_of_clients),           TEST(payloads_that_are_cut_short),
        TEST(an_id_in_two_segments),    TEST(headers_in_front),
        TEST(configurations_at_a_time), TEST(a_mixed_burst),
        TEST(reasons_are_told_apart),   TEST(rotation_under_a_connection),
    };
    int failed = rig_open();

    if (failed == 0)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return failed;
}
