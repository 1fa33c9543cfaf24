/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP headers that the balancer writes: resets at the end of a drain, and a lower MSS. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

#define CHECKSUM 16 /* in the TCP header */

static const struct hb_worker_counters *counters(const struct rig *rig)
{
    return hb_counters_worker(rig->region, 0);
}

static uint32_t get32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static struct frame poke32(struct frame frame, uint32_t at, uint32_t value)
{
    return poke16(poke16(frame, at, (uint16_t)(value >> 16)), at + 2, (uint16_t)value);
}

/* The checksum made right. */
static struct frame fix_tcp(struct frame frame)
{
    uint32_t at = frame.l3 + (frame.family == 6 ? 40 : (frame.bytes[frame.l3] & 0xfu) * 4);

    frame = poke16(frame, at + CHECKSUM, 0);
    return poke16(frame, at + CHECKSUM, checksum_l4(&frame, 6));
}

/* ---- resets ---- */

/* A flow on backend 1, whose drain then ends by reset; new flows go to backend 2. */
static void end_drain(struct rig *rig)
{
    publish_one_backend(rig, 4);
    add_backend(rig, 2, 0, 4);
    B(rig, TCP4());
    B(rig, TCP4(.flags = ACK));
    B(rig, TCP6());
    B(rig, TCP6(.flags = ACK));
    B(rig, UDP4());
    rig->backend[1].use = HB_BACKEND_RESET;
    share_table(rig, 0);
    publish(rig);
}

/* The bare TCP packet that a reset is: from the packet that it is about, turned round or not. */
static struct frame reset_of(const struct frame *in, bool back, uint32_t seq, uint32_t ack,
                             uint8_t flags)
{
    uint32_t header = in->family == 6 ? 40 : 20, address = in->family == 6 ? 16 : 4;
    uint32_t at = in->family == 6 ? 8 : 12, from = in->l3;
    struct frame out = in->family == 6 ? TCP6() : TCP4(.fragment = DF);
    uint8_t *ip = out.bytes + L3, *tcp = ip + header;
    const uint8_t *was = in->bytes + from + header;

    memcpy(ip + at, in->bytes + from + at, 2 * address);
    memcpy(tcp, was, 4);
    if (back) {
        memcpy(out.bytes, in->bytes + 6, 6);
        memcpy(out.bytes + 6, in->bytes, 6);
        memcpy(ip + at, in->bytes + from + at + address, address);
        memcpy(ip + at + address, in->bytes + from + at, address);
        memcpy(tcp, was + 2, 2);
        memcpy(tcp + 2, was, 2);
    }
    memset(tcp + 4, 0, 16);
    out = poke32(poke32(out, L3 + header + 4, seq), L3 + header + 8, ack);
    out = poke8(poke8(out, L3 + header + 12, 0x50), L3 + header + 13, flags);
    if (in->family == 6)
        out = poke32(out, L3, 0x60000000);
    else
        out = fix4(out);
    return fix_tcp(out);
}

static void expect_resets(struct rig *rig, const char *text, const struct frame *in,
                          const struct frame *to_client, const struct frame *to_backend)
{
    struct hb_worker_counters before = *counters(rig);
    struct frame out, want = tunnel(to_backend, 4, 1, 0, 0);

    send_frame(rig, in);
    turn(rig);
    assert_true(receive(rig, PORT, &out));
    assert_frame(text, &out, &want);
    assert_true(receive(rig, PORT, &out));
    assert_frame(text, &out, to_client);
    assert_false(receive(rig, PORT, &out));
    assert_int_equal(counters(rig)->drops[HB_DROP_RESET] - before.drops[HB_DROP_RESET], 1);
    assert_int_equal(counters(rig)->drain_resets - before.drain_resets, 1);
    assert_int_equal(counters(rig)->made_packets - before.made_packets, 2);
    assert_int_equal(before.flows - counters(rig)->flows, 1);
}

static void both_ends_are_told(void **state)
{
    struct rig *rig = *state;
    struct frame in = poke32(poke32(TCP4(.flags = ACK, .payload = 50), L4_OF_4 + 4, 0x11223344),
                             L4_OF_4 + 8, 0x99aabbcc);
    struct frame in6 = poke32(poke32(TCP6(.flags = ACK | PSH, .payload = 9), L4_OF_6 + 4, 7),
                              L4_OF_6 + 8, UINT32_MAX);
    struct frame client = reset_of(&in, true, 0x99aabbcc, 0, RST);
    struct frame backend = reset_of(&in, false, 0x11223344, 0, RST);
    struct frame client6 = reset_of(&in6, true, UINT32_MAX, 0, RST);
    struct frame backend6 = reset_of(&in6, false, 7, 0, RST);

    end_drain(rig);
    expect_resets(rig, "IPv4", &in, &client, &backend);
    expect_resets(rig, "IPv6", &in6, &client6, &backend6);
    assert_int_equal(hb_counters_services(rig->region, 0)[0].drops, 1);
    assert_int_equal(live_flows(rig, 1), 1); /* the UDP flow */
    /* The entry is gone: what comes now is of no flow that is known. */
    assert_int_equal(backend_of(rig, &in), 2);
    assert_int_equal(counters(rig)->drain_resets, 2);
}

/* Without ACK the client's own sequence numbers are acknowledged, data and FIN counted. */
static void a_packet_without_ack(void **state)
{
    struct rig *rig = *state;
    struct frame in = poke32(TCP4(.flags = FIN, .payload = 50), L4_OF_4 + 4, 1000);
    struct frame client = reset_of(&in, true, 0, 1051, RST | ACK);
    struct frame backend = reset_of(&in, false, 1000, 0, RST);

    end_drain(rig);
    expect_resets(rig, "FIN without ACK", &in, &client, &backend);
}

static void what_is_not_reset(void **state)
{
    struct rig *rig = *state;
    struct frame reset = TCP6(.flags = RST), out, want;

    end_drain(rig);
    assert_int_equal(B(rig, UDP4()), 2); /* selected anew */
    assert_int_equal(B(rig, TCP4()), 2); /* a SYN begins anew */
    assert_int_equal(B(rig, TCP4(.flags = ACK)), 2);
    /* The client's own reset goes to where the flow was. */
    send_frame(rig, &reset);
    turn(rig);
    assert_true(receive(rig, PORT, &out));
    want = tunnel(&reset, 4, 1, 0, 0);
    assert_frame("the client's RST", &out, &want);
    assert_int_equal(counters(rig)->drain_resets, 0);
    assert_int_equal(counters(rig)->made_packets, 0);
    assert_int_equal(live_flows(rig, 1), 0);
}

/* The id was given to another backend since, or no backend is left. */
static void entries_of_others(void **state)
{
    struct rig *rig = *state;
    struct frame out;

    end_drain(rig);
    rig->backend[1].incarnation = 2;
    publish(rig);
    assert_int_equal(B(rig, TCP4(.flags = ACK)), 2);
    assert_int_equal(counters(rig)->drain_resets, 0);
    rig->backend[1].incarnation = 1;
    rig->pool[0].slots = 0;
    publish(rig);
    send_frame(rig, &(struct frame[]){TCP6(.flags = ACK)}[0]);
    turn(rig);
    assert_true(receive(rig, PORT, &out));
    assert_true(receive(rig, PORT, &out));
    assert_int_equal(counters(rig)->drain_resets, 1);
}

/* Many in one burst, with others between them. */
static void a_burst_of_resets(void **state)
{
    struct rig *rig = *state;
    struct frame out;
    uint32_t got = 0;

    publish_one_backend(rig, 4);
    add_backend(rig, 2, 0, 4);
    for (uint16_t port = 1; port <= 64; port++) {
        B(rig, TCP4(.source_port = port));
        B(rig, TCP4(.source_port = port, .flags = ACK));
    }
    rig->backend[1].use = HB_BACKEND_RESET;
    share_table(rig, 0);
    publish(rig);
    for (uint16_t port = 1; port <= 64; port++)
        send_frame(rig, &(struct frame[]){TCP4(.source_port = port, .flags = ACK)}[0]);
    turn(rig);
    while (receive(rig, PORT, &out))
        got++;
    assert_int_equal(got, 128);
    assert_int_equal(counters(rig)->drain_resets, 64);
    assert_int_equal(counters(rig)->flows, 0);
}

/* No buffer is to be had: counted, and nothing else goes wrong. */
static void no_buffers(void **state)
{
    struct rig *rig = *state;
    struct rte_mbuf *all[MBUFS], *mbuf;
    struct frame in = TCP4(.flags = ACK), out;
    uint32_t count = 0;

    end_drain(rig);
    send_frame(rig, &in);
    while (count < MBUFS && (mbuf = rte_pktmbuf_alloc(rig_pool())) != NULL)
        all[count++] = mbuf;
    turn(rig);
    while (count > 0)
        rte_pktmbuf_free(all[--count]);
    /* The packet's own buffer is free by then: the client is told. */
    assert_true(receive(rig, PORT, &out));
    assert_false(receive(rig, PORT, &out));
    assert_int_equal(counters(rig)->drops[HB_DROP_NO_MBUF], 1);
    assert_int_equal(counters(rig)->drain_resets, 1);
}

/* ---- MSS ---- */

/* A SYN with these bytes of options, a multiple of four. */
static struct frame syn(uint8_t family, const uint8_t *options, uint32_t size)
{
    struct frame frame = family == 6 ? TCP6(.payload = size) : TCP4(.payload = size);
    uint32_t at = family == 6 ? L4_OF_6 : L4_OF_4;

    memcpy(frame.bytes + at + 20, options, size);
    return fix_tcp(poke8(frame, at + TCP_OFFSET, (uint8_t)((20 + size) / 4 << 4)));
}
#define SYN_WITH(family, ...)                                                                      \
    syn((family), (uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__}))

static void expect_mss(struct rig *rig, const char *text, const struct frame *in,
                       const struct frame *inner)
{
    struct frame out, want = tunnel(inner, 4, 1, rig->worker->ipv4_id, 0);

    send_frame(rig, in);
    turn(rig);
    assert_true(receive(rig, PORT, &out));
    assert_frame(text, &out, &want);
}

static void the_mss_is_lowered(void **state)
{
    struct rig *rig = *state;
    const struct {
        const char *text;
        struct frame in, out;
    } rows[] = {
        {"first option", SYN_WITH(4, 2, 4, 5, 180), SYN_WITH(4, 2, 4, 4, 196)},
        {"at an odd offset", SYN_WITH(4, 1, 2, 4, 5, 180, 0, 0, 0),
         SYN_WITH(4, 1, 2, 4, 4, 196, 0, 0, 0)},
        {"behind others", SYN_WITH(4, 1, 3, 3, 7, 4, 2, 1, 1, 2, 4, 255, 255),
         SYN_WITH(4, 1, 3, 3, 7, 4, 2, 1, 1, 2, 4, 4, 196)},
        {"IPv6", SYN_WITH(6, 2, 4, 5, 160, 1, 1, 1, 1), SYN_WITH(6, 2, 4, 4, 196, 1, 1, 1, 1)},
        {"equal", SYN_WITH(4, 2, 4, 4, 196), SYN_WITH(4, 2, 4, 4, 196)},
        {"lower", SYN_WITH(4, 2, 4, 2, 24), SYN_WITH(4, 2, 4, 2, 24)},
        {"none", SYN_WITH(4, 1, 1, 1, 1), SYN_WITH(4, 1, 1, 1, 1)},
        {"behind the end", SYN_WITH(4, 0, 2, 4, 5, 180, 0, 0, 0),
         SYN_WITH(4, 0, 2, 4, 5, 180, 0, 0, 0)},
        {"of a wrong size", SYN_WITH(4, 2, 3, 5, 1), SYN_WITH(4, 2, 3, 5, 1)},
        {"an option of size 0", SYN_WITH(4, 3, 0, 2, 4, 255, 255, 0, 0),
         SYN_WITH(4, 3, 0, 2, 4, 255, 255, 0, 0)},
        {"an option of size 1", SYN_WITH(4, 3, 1, 2, 4, 255, 255, 0, 0),
         SYN_WITH(4, 3, 1, 2, 4, 255, 255, 0, 0)},
        {"an option longer than the header", SYN_WITH(4, 3, 9, 2, 4, 255, 255, 0, 0),
         SYN_WITH(4, 3, 9, 2, 4, 255, 255, 0, 0)},
        {"cut short", SYN_WITH(4, 1, 1, 1, 2), SYN_WITH(4, 1, 1, 1, 2)},
    };

    publish_one_backend(rig, 4);
    rig->service[0].mss_max = 1220;
    rig->service[2].mss_max = 1220;
    publish(rig);
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rig->tight = i % 2 == 1;
        expect_mss(rig, rows[i].text, &rows[i].in, &rows[i].out);
    }
}

/* Not of other packets, not of other services; a wrong checksum stays wrong by as much. */
static void other_packets_keep_theirs(void **state)
{
    struct rig *rig = *state;
    struct frame in = SYN_WITH(4, 2, 4, 5, 180), ack, wrong, lowered, udp;
    uint16_t sum;

    publish_one_backend(rig, 4);
    rig->service[2].mss_max = 1220;
    publish(rig);
    expect_mss(rig, "another service", &in, &in);
    rig->service[0].mss_max = 1220;
    publish(rig);
    ack = fix_tcp(poke8(in, L4_OF_4 + TCP_FLAGS, ACK));
    expect_mss(rig, "an ACK", &ack, &ack);
    udp = UDP4(.payload = 40);
    expect_mss(rig, "a datagram", &udp, &udp);
    lowered = SYN_WITH(4, 2, 4, 4, 196);
    sum = (uint16_t)(in.bytes[L4_OF_4 + CHECKSUM] << 8 | in.bytes[L4_OF_4 + CHECKSUM + 1]);
    wrong = poke16(in, L4_OF_4 + CHECKSUM, (uint16_t)(sum + 5));
    sum =
        (uint16_t)(lowered.bytes[L4_OF_4 + CHECKSUM] << 8 | lowered.bytes[L4_OF_4 + CHECKSUM + 1]);
    lowered = poke16(lowered, L4_OF_4 + CHECKSUM, (uint16_t)(sum + 5));
    expect_mss(rig, "a wrong checksum", &wrong, &lowered);
}

/* Every value, at an even and an odd offset: equal to a checksum made anew. */
static void every_mss(void **state)
{
    struct rig *rig = *state;

    publish_one_backend(rig, 4);
    rig->service[0].mss_max = 600;
    publish(rig);
    for (uint32_t mss = 1; mss < 65536; mss += 13) {
        uint8_t high = (uint8_t)(mss >> 8), low = (uint8_t)mss;
        uint32_t least = mss < 600 ? mss : 600;
        uint8_t to_high = (uint8_t)(least >> 8), to_low = (uint8_t)least;
        struct frame even = SYN_WITH(4, 2, 4, high, low);
        struct frame odd = SYN_WITH(4, 1, 2, 4, high, low, 1, 1, 1);
        struct frame even_out = SYN_WITH(4, 2, 4, to_high, to_low);
        struct frame odd_out = SYN_WITH(4, 1, 2, 4, to_high, to_low, 1, 1, 1);

        expect_mss(rig, "even", &even, &even_out);
        expect_mss(rig, "odd", &odd, &odd_out);
    }
    assert_int_equal(get32(TCP4().bytes + L4_OF_4 + 4), 0x55555555); /* the builder's filling */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(both_ends_are_told), TEST(a_packet_without_ack),      TEST(what_is_not_reset),
        TEST(entries_of_others),  TEST(a_burst_of_resets),         TEST(no_buffers),
        TEST(the_mss_is_lowered), TEST(other_packets_keep_theirs), TEST(every_mss),
    };
    int failed = rig_open();

    if (failed == 0)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return failed;
}
