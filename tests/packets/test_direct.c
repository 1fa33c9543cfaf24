/* SPDX-License-Identifier: BSD-3-Clause */
/* Backends that get the packet without a tunnel: by MAC address alone, and by a new destination. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

static const struct wrap l2 = {.forwarding = HB_FORWARDING_L2, .family = 4, .number = 1};
static const struct wrap l3dsr4 = {
    .forwarding = HB_FORWARDING_L3DSR, .family = 4, .number = 1, .dscp = 10};
static const struct wrap l3dsr6 = {
    .forwarding = HB_FORWARDING_L3DSR, .family = 6, .number = 1, .dscp = 63};

static void expect(struct rig *rig, const char *text, const struct wrap *wrap,
                   const struct frame *in)
{
    struct frame out = exchange(rig, in), want = wrap_frame(in, wrap);

    assert_frame(text, &out, &want);
}

static void refuse(struct rig *rig, const char *text, const struct frame *in, unsigned reason)
{
    const struct hb_worker_counters *counters = hb_counters_worker(rig->region, 0);
    uint64_t before = counters->drops[reason];
    struct frame out;

    send_frame(rig, in);
    turn(rig);
    if (receive(rig, PORT, &out) || counters->drops[reason] != before + 1)
        fail_msg("%s: not dropped for %s", text, hb_drop_name(reason));
}

/* L2: both families by a backend of either, the packet as it came (BL-10), tags of the egress link
 * (BL-35). */
static void l2_leaves_the_packet_alone(void **state)
{
    struct rig *rig = *state;
    struct wrap wrap = l2;

    for (uint32_t kind = 0; kind < 4; kind++) {
        wrap.family = kind % 2 ? 6 : 4;
        wrap.tags = kind / 2;
        use_mode(rig, &wrap);
        for (uint32_t payload = 0; payload < 21; payload++) {
            expect(rig, "TCP over IPv4", &wrap,
                   &(struct frame[]){TCP4(.tos = 0xb9, .payload = payload)}[0]);
            expect(rig, "UDP over IPv4", &wrap,
                   &(struct frame[]){UDP4(.tags = 2, .payload = payload)}[0]);
            expect(rig, "TCP over IPv6", &wrap,
                   &(struct frame[]){TCP6(.tags = 1, .payload = payload)}[0]);
            expect(rig, "UDP over IPv6", &wrap,
                   &(struct frame[]){UDP6(.payload = payload, .ttl = 1)}[0]);
        }
        expect(rig, "options", &wrap, &(struct frame[]){TCP4(.options = 40)}[0]);
        expect(rig, "1,500 bytes", &wrap,
               &(struct frame[]){TCP4(.flags = ACK, .payload = 1460)}[0]);
        refuse(rig, "1,501 bytes", &(struct frame[]){TCP4(.flags = ACK, .payload = 1461)}[0],
               HB_DROP_OVERSIZE);
    }
}

/* BL-10: the sum of TCP at 16, that of UDP at 6, no other byte of the payload; a UDP sum of zero
 * stays zero over IPv4. */
static void l3dsr_changes_only_what_it_must(void **state)
{
    static const uint32_t payloads[] = {0, 1, 7, 8, 9, 20, 1399};
    struct rig *rig = *state;

    for (uint32_t i = 0; i < 7; i++) {
        struct frame tcp4 = fix_l4(TCP4(.flags = ACK, .payload = payloads[i]));
        struct frame udp4 = fix_l4(UDP4(.payload = payloads[i], .fragment = DF));
        struct frame none = poke16(UDP4(.payload = payloads[i]), L4_OF_4 + 6, 0);
        struct frame options = fix_l4(TCP4(.options = 12, .payload = payloads[i] % 100));
        struct frame tcp6 = fix_l4(TCP6(.flags = ACK, .payload = payloads[i]));
        struct frame udp6 = fix_l4(UDP6(.payload = payloads[i]));

        use_mode(rig, &l3dsr4);
        expect(rig, "TCP over IPv4", &l3dsr4, &tcp4);
        expect(rig, "UDP over IPv4", &l3dsr4, &udp4);
        expect(rig, "UDP over IPv4 without a checksum", &l3dsr4, &none);
        expect(rig, "IPv4 with options", &l3dsr4, &options);
        use_mode(rig, &l3dsr6);
        expect(rig, "TCP over IPv6", &l3dsr6, &tcp6);
        expect(rig, "UDP over IPv6", &l3dsr6, &udp6);
    }
}

/* One written out. */
static void l3dsr_by_hand(void **state)
{
    static const uint8_t ip[] = {
        0x45, 0x2a, 0x00, 0x28, 0x00, 0x00, 0x00, 0x00, /* DSCP 10, ECN 2, 40 bytes */
        0x40, 0x06, 0x14, 0x5e, 203,  0,    113,  9,    198, 51, 100, 11, /* to backend 1 */
    };
    struct rig *rig = *state;
    struct frame in = fix_l4(TCP4(.tos = 0xb2)), out;

    use_mode(rig, &l3dsr4);
    out = exchange(rig, &in);
    assert_int_equal(out.length, 54);
    assert_memory_equal(out.bytes + 14, ip, sizeof(ip));
    assert_int_equal(checksum(out.bytes + 14, 20), 0);
    assert_int_equal(pseudo_checksum(out.bytes + 14, 6, out.bytes + 34, 20), 0);
}

/* BL-11: every TOS and traffic class on arrival, every DSCP; ECN stays. Every value of a word of
 * the header: no sum is off at its ends. */
static void l3dsr_of_every_tos(void **state)
{
    struct rig *rig = *state;

    for (uint32_t dscp = 1; dscp < 64; dscp++) {
        struct wrap four = l3dsr4, six = l3dsr6;

        four.dscp = six.dscp = (uint8_t)dscp;
        use_mode(rig, &four);
        for (uint32_t tos = 0; tos < 256; tos++) {
            struct frame in = fix_l4(TCP4(.tos = (uint8_t)tos));

            expect(rig, "every TOS", &four, &in);
        }
        use_mode(rig, &six);
        for (uint32_t tos = 0; tos < 256; tos++) {
            struct frame in = fix_l4(UDP6(.tos = (uint8_t)tos));

            expect(rig, "every traffic class", &six, &in);
        }
    }
}

static void l3dsr_of_every_sum(void **state)
{
    struct rig *rig = *state;

    use_mode(rig, &l3dsr4);
    for (uint32_t word = 0; word < 65536; word++) {
        struct frame in = fix_l4(poke16(fix4(poke16(UDP4(.payload = 2), L3 + 4, (uint16_t)word)),
                                        L4_OF_4 + 8, (uint16_t)word));

        expect(rig, "every value of a word", &l3dsr4, &in);
    }
}

/* A wrong checksum stays wrong: damage from before is still seen by the backend. */
static void l3dsr_hides_no_damage(void **state)
{
    struct rig *rig = *state;
    struct frame in = fix_l4(TCP4(.flags = ACK, .payload = 9)), out;

    use_mode(rig, &l3dsr4);
    in.bytes[L4_OF_4 + 25] ^= 1;
    out = exchange(rig, &in);
    assert_int_not_equal(pseudo_checksum(out.bytes + 14, 6, out.bytes + 34, 29), 0);
}

/* IPv6 extension headers, as many as there may be: the sum is where the last one ends. */
static void l3dsr_behind_extension_headers(void **state)
{
    struct rig *rig = *state;

    use_mode(rig, &l3dsr6);
    for (uint8_t count = 1; count <= 8; count++) {
        struct frame in = UDP6(.chain = {0, 60, 60, 60, 60, 60, 60, 60}, .chain_count = count,
                               .payload = 5),
                     out;
        uint32_t l4 = L4_OF_6 + 8u * count;

        in = poke16(in, l4 + 6, 0);
        in = poke16(in, l4 + 6, pseudo_checksum(in.bytes + L3, 17, in.bytes + l4, 13));
        out = exchange(rig, &in);
        assert_int_equal(pseudo_checksum(out.bytes + L3, 17, out.bytes + l4, 13), 0);
        assert_memory_equal(out.bytes + L4_OF_6, in.bytes + L4_OF_6, l4 + 6 - L4_OF_6);
        assert_memory_equal(out.bytes + l4 + 8, in.bytes + l4 + 8, 5);
    }
}

static void l3dsr_of_the_other_family(void **state)
{
    struct rig *rig = *state;

    use_mode(rig, &l3dsr4);
    refuse(rig, "IPv6 to an IPv4 backend", &(struct frame[]){TCP6()}[0], HB_DROP_NAT_PROTOCOL);
    use_mode(rig, &l3dsr6);
    refuse(rig, "IPv4 to an IPv6 backend", &(struct frame[]){TCP4()}[0], HB_DROP_NAT_PROTOCOL);
}

/* Nothing is needed in front but a tag; and a packet that others hold is copied before it is
 * changed. */
static void room_and_shared_packets(void **state)
{
    struct rig *rig = *state;
    struct frame in = fix_l4(TCP4(.flags = ACK, .payload = 7)), out, want;
    struct wrap wrap = l3dsr4;

    for (wrap.tags = 0; wrap.tags < 2; wrap.tags++) {
        struct rte_mbuf *mbuf = make_mbuf(&in, RTE_PKTMBUF_HEADROOM, 0);

        use_mode(rig, &wrap);
        for (uint32_t headroom = 0; headroom < 8; headroom++) {
            send_mbuf(rig, make_mbuf(&in, headroom, 0));
            turn(rig);
            assert_int_equal(receive(rig, PORT, &out), headroom >= 4u * wrap.tags);
        }
        rte_pktmbuf_refcnt_update(mbuf, 1);
        send_mbuf(rig, mbuf);
        turn(rig);
        want = wrap_frame(&in, &wrap);
        assert_true(receive(rig, PORT, &out));
        assert_frame("shared", &out, &want);
        assert_memory_equal(rte_pktmbuf_mtod(mbuf, void *), in.bytes, in.length);
        rte_pktmbuf_free(mbuf);
    }
    assert_int_equal(hb_counters_worker(rig->region, 0)->drops[HB_DROP_NO_HEADROOM], 4);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(l2_leaves_the_packet_alone),
        TEST(l3dsr_changes_only_what_it_must),
        TEST(l3dsr_by_hand),
        TEST(l3dsr_of_every_tos),
        TEST(l3dsr_of_every_sum),
        TEST(l3dsr_hides_no_damage),
        TEST(l3dsr_behind_extension_headers),
        TEST(l3dsr_of_the_other_family),
        TEST(room_and_shared_packets),
    };
    int failed = rig_open();

    if (failed == 0)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return failed;
}
