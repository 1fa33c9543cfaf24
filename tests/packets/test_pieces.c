/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv4 packets without DF that do not fit: cut inside or outside, and put together again here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

enum { INNER = HB_REWRITE_FRAGMENT_INNER, OUTER = HB_REWRITE_FRAGMENT_OUTER };

static const uint8_t modes[] = {HB_FORWARDING_IPIP, HB_FORWARDING_GUE,   HB_FORWARDING_GUE1,
                                HB_FORWARDING_GRE,  HB_FORWARDING_VXLAN, HB_FORWARDING_L2,
                                HB_FORWARDING_L3DSR};

static bool is_tunnel(uint8_t forwarding)
{
    return forwarding <= HB_FORWARDING_VXLAN;
}

static uint16_t get16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

/* Fragments as they come in order; adds up to one packet. */
struct whole {
    uint8_t header[80]; /* of the first one, up to the payload */
    uint32_t header_size;
    uint8_t payload[9000];
    uint32_t length;
    uint32_t pieces;
    bool more;
};

/* One IPv4 fragment, which must follow the one before. */
static void join_ipv4(struct whole *whole, const uint8_t *ip, uint32_t length)
{
    uint32_t size = (ip[0] & 0xfu) * 4;
    uint16_t word = get16(ip + 6);

    assert_int_equal(checksum(ip, size), 0);
    assert_int_equal(get16(ip + 2), length);
    assert_int_equal((word & 0x1fff) * 8, whole->length);
    assert_int_equal(word & 0xc000, 0);
    if (whole->pieces++ == 0) {
        memcpy(whole->header, ip, size);
        whole->header_size = size;
    } else {
        assert_int_equal(get16(ip + 4), get16(whole->header + 4));
        assert_memory_equal(ip + 8, whole->header + 8, 2);
        assert_memory_equal(ip + 12, whole->header + 12, 8);
    }
    memcpy(whole->payload + whole->length, ip + size, length - size);
    whole->length += length - size;
    whole->more = (word & 0x2000) != 0;
    if (whole->more)
        assert_int_equal((length - size) % 8, 0);
}

/* The same for IPv6 with a fragment header. */
static void join_ipv6(struct whole *whole, const uint8_t *ip, uint32_t length)
{
    uint16_t word = get16(ip + 42);

    assert_int_equal(ip[6], 44);
    assert_int_equal(get16(ip + 4), length - 40);
    assert_int_equal(word & 0xfff8, whole->length);
    if (whole->pieces++ == 0) {
        memcpy(whole->header, ip, 48);
        whole->header[6] = ip[40];
        whole->header_size = 40;
    } else {
        assert_memory_equal(ip, whole->header, 4);
        assert_memory_equal(ip + 44, whole->header + 44, 4);
        assert_int_equal(ip[40], whole->header[6]);
    }
    memcpy(whole->payload + whole->length, ip + 48, length - 48);
    whole->length += length - 48;
    whole->more = (word & 1) != 0;
    if (whole->more)
        assert_int_equal((length - 48) % 8, 0);
}

/* A datagram of `payload` bytes whose bytes all differ from those a few later. */
static struct frame datagram(uint32_t payload, uint8_t options)
{
    struct frame in = UDP4(.payload = payload, .options = options, .id = 0x1234, .tos = 0x28);

    return fix_l4(in);
}

/* Takes all that left, in order. Returns how many. */
static uint32_t take(struct rig *rig, struct frame *out, uint32_t room)
{
    uint32_t count = 0;

    while (count < room && receive(rig, PORT, &out[count]))
        count++;
    if (count == 0)
        fail_msg("nothing left: backend of mode %u", rig->backend[1].forwarding);
    assert_int_equal(hb_counters_worker(rig->region, 0)->made_packets, count - 1);
    assert_int_equal(hb_counters_worker(rig->region, 0)->tx_packets, count);
    assert_int_equal(hb_counters_services(rig->region, 0)[1].packets, 1);
    assert_int_equal(hb_counters_backends(rig->region, 0)[1].packets, 1);
    return count;
}

/* The counters of one case. */
static void reset_counters(struct rig *rig)
{
    struct hb_worker_counters *counters = rig->worker->counters;

    counters->made_packets = counters->tx_packets = counters->rx_packets = 0;
    rig->worker->services[1].packets = rig->worker->backends[1].packets = 0;
    memset(counters->drops, 0, sizeof(counters->drops));
}

static struct wrap wrap_of(uint32_t mode, uint8_t family, uint8_t fragment)
{
    return (struct wrap){.forwarding = modes[mode],
                         .family = family,
                         .number = 1,
                         .dscp = modes[mode] == HB_FORWARDING_L3DSR ? 10 : 0,
                         .checksum = modes[mode] == HB_FORWARDING_GUE,
                         .fragment = fragment};
}

/* What the backend's stack makes of the pieces. */
static void check_joined(const struct whole *whole, const struct frame *in, const struct wrap *wrap)
{
    struct frame want = *in;
    const uint8_t *ip;
    uint32_t size;

    assert_false(whole->more);
    if (wrap->forwarding == HB_FORWARDING_L3DSR)
        want = wrap_frame(in, wrap);
    ip = want.bytes + want.l3;
    size = (ip[0] & 0xfu) * 4;
    assert_int_equal(whole->header_size, size);
    assert_int_equal(whole->length, want.ip_length - size);
    assert_memory_equal(whole->payload, ip + size, whole->length);
    assert_memory_equal(whole->header + 12, ip + 12, size - 12);
    assert_int_equal(whole->header[1], ip[1]);
}

/* Inner: every piece is a packet of its own with all headers, and fits; together they are what came
 * in. */
static void run_inner(struct rig *rig, uint32_t mode, uint8_t family, uint32_t payload,
                      uint8_t options)
{
    struct wrap wrap = wrap_of(mode, family, INNER);
    struct frame in = datagram(payload, options), out[8];
    struct whole whole = {0};
    uint32_t count;

    use_mode(rig, &wrap);
    reset_counters(rig);
    send_frame(rig, &in);
    turn(rig);
    count = take(rig, out, 8);
    assert_int_equal(count, 2);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size = rig->backend[1].size;
        struct frame piece = {.length = out[i].length - size + 14,
                              .l3 = 14,
                              .ip_length = out[i].length - size,
                              .family = 4,
                              .tos = in.tos};
        struct frame want;

        memcpy(piece.bytes + 14, out[i].bytes + size, piece.ip_length);
        assert_in_range(piece.ip_length, 21, rig->backend[1].inner_max);
        join_ipv4(&whole, piece.bytes + 14, piece.ip_length);
        if (!is_tunnel(wrap.forwarding))
            continue;
        read_free_fields(&wrap, &out[i]);
        wrap.id = (uint16_t)(rig->worker->ipv4_id - count + i);
        want = wrap_frame(&piece, &wrap);
        assert_frame(wrap_name(&wrap), &out[i], &want);
    }
    check_joined(&whole, &in, &wrap);
}

static void inner(void **state)
{
    struct rig *rig = *state;

    for (uint32_t mode = 0; mode < 7; mode++) {
        for (uint8_t family = 4; family <= 6; family += 2) {
            if (modes[mode] == HB_FORWARDING_L3DSR && family == 6)
                continue;
            for (uint32_t payload = 1473; payload < 1490; payload++)
                run_inner(rig, mode, family, payload, 0);
            run_inner(rig, mode, family, 1470, 40);
        }
    }
    reset_counters(rig);
}

/* Outer: the pieces are one tunnel packet, which is the one that would have been sent whole. */
static void run_outer(struct rig *rig, uint32_t mode, uint8_t family, uint32_t payload)
{
    struct wrap wrap = wrap_of(mode, family, OUTER);
    struct frame in = datagram(payload, 0), out[8], joined = {0}, want;
    struct whole whole = {0};
    uint32_t count;

    use_mode(rig, &wrap);
    reset_counters(rig);
    wrap.id = rig->worker->ipv4_id;
    send_frame(rig, &in);
    turn(rig);
    count = take(rig, out, 8);
    assert_int_equal(count, 2);
    for (uint32_t i = 0; i < count; i++) {
        assert_in_range(out[i].length, 14 + 21, 14 + 1500);
        (family == 4 ? join_ipv4 : join_ipv6)(&whole, out[i].bytes + 14, out[i].length - 14);
        assert_memory_equal(out[i].bytes, rig->backend[1].bytes, 14);
    }
    assert_false(whole.more);
    memcpy(joined.bytes, rig->backend[1].bytes, 14);
    memcpy(joined.bytes + 14, whole.header, whole.header_size);
    memcpy(joined.bytes + 14 + whole.header_size, whole.payload, whole.length);
    joined.length = 14 + whole.header_size + whole.length;
    joined = family == 4 ? fix4(poke16(poke16(joined, IP4_LENGTH, (uint16_t)(joined.length - 14)),
                                       IP4_FRAGMENT, 0))
                         : poke16(joined, IP6_LENGTH, (uint16_t)(joined.length - 54));
    read_free_fields(&wrap, &joined);
    want = wrap_frame(&in, &wrap);
    assert_frame(wrap_name(&wrap), &joined, &want);
}

static void outer(void **state)
{
    struct rig *rig = *state;

    for (uint32_t mode = 0; mode < 5; mode++) {
        for (uint8_t family = 4; family <= 6; family += 2) {
            for (uint32_t payload = 1473; payload < 1490; payload++)
                run_outer(rig, mode, family, payload);
        }
    }
    reset_counters(rig);
}

/* DF, IPv6 and a pool that does not say: never cut. */
static void what_is_not_cut(void **state)
{
    struct rig *rig = *state;
    const struct row rows[] = {
        {"DF", UDP4(.payload = 1600, .fragment = DF), DROP(OVERSIZE)},
        {"IPv6", UDP6(.payload = 1600), DROP(OVERSIZE)},
    };
    const struct row no_flag[] = {{"no flag", UDP4(.payload = 1600), DROP(OVERSIZE)}};
    struct wrap wrap = wrap_of(0, 4, INNER);

    use_mode(rig, &wrap);
    RUN_ROWS(rig, rows, 4);
    wrap.fragment = OUTER;
    use_mode(rig, &wrap);
    RUN_ROWS(rig, rows, 4);
    wrap.fragment = 0;
    use_mode(rig, &wrap);
    RUN_ROWS(rig, no_flag, 4);
}

/* RFC 791, section 3.1: options with the copy bit go into every fragment, the others into the first
 * alone. */
static void options_that_are_copied(void **state)
{
    static const uint8_t options[12] = {7, 3, 4, 0x94, 4, 0, 0, 1, 7, 3, 4, 0};
    static const uint8_t copied[4] = {0x94, 4, 0, 0};
    struct rig *rig = *state;
    struct wrap wrap = wrap_of(0, 4, INNER);
    struct frame in = UDP4(.payload = 1500, .options = 12), out;

    memcpy(in.bytes + L3 + 20, options, sizeof(options));
    in = fix4(in);
    use_mode(rig, &wrap);
    send_frame(rig, &in);
    turn(rig);
    assert_true(receive(rig, PORT, &out));
    assert_int_equal(out.bytes[34], 0x48);
    assert_memory_equal(out.bytes + 34 + 20, options, sizeof(options));
    assert_true(receive(rig, PORT, &out));
    assert_int_equal(out.bytes[34], 0x46);
    assert_memory_equal(out.bytes + 34 + 20, copied, sizeof(copied));
    assert_int_equal(checksum(out.bytes + 34, 24), 0);
}

/* A datagram of 8,000 bytes in many segments, on a link of 600: fifteen pieces. */
static void a_jumbo_packet_in_many_pieces(void **state)
{
    struct rig *rig = *state;
    struct wrap wrap = wrap_of(0, 4, INNER);
    struct frame head = UDP4(.payload = 992, .id = 7), out;
    struct rte_mbuf *mbuf = make_mbuf(&head, RTE_PKTMBUF_HEADROOM, 0);
    static uint8_t sent[8000], joined[8100];
    struct whole whole = {0};

    for (uint8_t i = 1; i < 8; i++) {
        struct rte_mbuf *next = rte_pktmbuf_alloc(rig_pool());

        memset(rte_pktmbuf_append(next, 1000), i, 1000);
        assert_int_equal(rte_pktmbuf_chain(mbuf, next), 0);
    }
    head = fix4(poke16(head, IP4_LENGTH, 8020));
    memcpy(rte_pktmbuf_mtod(mbuf, uint8_t *), head.bytes, 34);
    memcpy(sent, (const uint8_t *)rte_pktmbuf_read(mbuf, 0, 8034, joined) + 34, 8000);
    use_mode(rig, &wrap);
    rig->backend[1].inner_max = 580;
    publish(rig);
    send_mbuf(rig, mbuf);
    turn(rig);
    while (receive(rig, PORT, &out))
        join_ipv4(&whole, out.bytes + 34, out.length - 34);
    assert_int_equal(whole.pieces, 15);
    assert_false(whole.more);
    assert_int_equal(whole.length, 8000);
    assert_memory_equal(whole.payload, sent, 8000);
    assert_int_equal(hb_counters_worker(rig->region, 0)->made_packets, 14);
}

/* BL-16: no buffer for a piece: the packet is dropped whole, and none is lost. More pieces than are
 * allowed: the same. */
static void no_piece_without_the_others(void **state)
{
    struct rig *rig = *state;
    const struct hb_worker_counters *counters = hb_counters_worker(rig->region, 0);
    struct wrap wrap = wrap_of(0, 4, INNER);
    struct frame in = datagram(1600, 0), out;
    struct rte_mbuf *hoard[MBUFS];
    uint32_t hoarded = 0;

    use_mode(rig, &wrap);
    send_frame(rig, &in);
    while (hoarded < MBUFS && rte_mempool_avail_count(rig_pool()) > 1)
        assert_non_null(hoard[hoarded++] = rte_pktmbuf_alloc(rig_pool()));
    turn(rig);
    assert_false(receive(rig, PORT, &out));
    assert_int_equal(counters->drops[HB_DROP_NO_MBUF], 1);
    assert_int_equal(rte_mempool_avail_count(rig_pool()), 2);
    rte_pktmbuf_free_bulk(hoard, hoarded);

    rig->backend[1].inner_max = 44; /* 67 pieces of 24 */
    publish(rig);
    send_frame(rig, &in);
    turn(rig);
    assert_false(receive(rig, PORT, &out));
    assert_int_equal(counters->drops[HB_DROP_OVERSIZE], 1);
    assert_int_equal(counters->made_packets, 0);
}

/* A port that takes some pieces only: each piece is counted once, the packet is not forwarded. */
static void a_port_that_is_full(void **state)
{
    struct rig *rig = *state;
    const struct hb_worker_counters *counters = hb_counters_worker(rig->region, 0);
    struct wrap wrap = wrap_of(0, 4, INNER);
    struct frame in = datagram(1600, 0);

    use_mode(rig, &wrap);
    rig->backend[1].port = NARROW_PORT;
    rig->backend[1].inner_max = 500;
    publish(rig);
    send_frame(rig, &in);
    turn(rig);
    assert_int_equal(counters->made_packets, 3);
    assert_int_equal(counters->tx_packets, 3);
    assert_int_equal(counters->drops[HB_DROP_TX_FULL], 1);
    assert_int_equal(hb_counters_services(rig->region, 0)[1].packets, 0);
    assert_int_equal(hb_counters_services(rig->region, 0)[1].drops, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(inner),
        TEST(outer),
        TEST(what_is_not_cut),
        TEST(options_that_are_copied),
        TEST(a_jumbo_packet_in_many_pieces),
        TEST(no_piece_without_the_others),
        TEST(a_port_that_is_full),
    };
    int failed = rig_open();

    if (failed == 0)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return failed;
}
