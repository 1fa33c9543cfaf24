/* SPDX-License-Identifier: BSD-3-Clause */
/* Every tunnel, over IPv4 and IPv6, around both: what leaves, byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <rte_ethdev.h>

#include "rig.h"

static const uint8_t tunnels[] = {HB_FORWARDING_IPIP, HB_FORWARDING_GUE, HB_FORWARDING_GUE1,
                                  HB_FORWARDING_GRE, HB_FORWARDING_VXLAN};

/* Every tunnel over both families, the UDP ones with and without checksum. */
#define FOR_EACH_TUNNEL(wrap)                                                                      \
    for (uint32_t kind_ = 0; kind_ < 20; kind_++)                                                  \
        if (pick_tunnel(&(wrap), kind_))

static bool pick_tunnel(struct wrap *wrap, uint32_t kind)
{
    *wrap = (struct wrap){.forwarding = tunnels[kind / 4],
                          .family = kind % 2 == 0 ? 4 : 6,
                          .number = 1,
                          .checksum = kind / 2 % 2 != 0};
    return !wrap->checksum || wrap->forwarding == HB_FORWARDING_GUE ||
           wrap->forwarding == HB_FORWARDING_GUE1 || wrap->forwarding == HB_FORWARDING_VXLAN;
}

static void expect(struct rig *rig, struct wrap *wrap, const struct frame *in)
{
    struct frame out, want;

    wrap->id = rig->worker->ipv4_id;
    out = exchange(rig, in);
    read_free_fields(wrap, &out);
    want = wrap_frame(in, wrap);
    assert_frame(wrap_name(wrap), &out, &want);
    if (wrap->source_port != 0)
        assert_in_range(wrap->source_port, 49152, 65535);
}

/* BL-02, BL-09: every mode, 4 in 4, 6 in 4, 4 in 6, 6 in 6; lengths odd and even. */
static void all_kinds(void **state)
{
    struct rig *rig = *state;
    struct wrap wrap;

    FOR_EACH_TUNNEL(wrap)
    {
        const struct frame frames[] = {
            TCP4(),
            TCP4(.fragment = DF),
            TCP4(.flags = ACK, .payload = 1),
            TCP4(.flags = ACK, .payload = 2, .fragment = DF),
            TCP4(.flags = ACK, .payload = wrap.forwarding == HB_FORWARDING_VXLAN ? 1379 : 1399),
            UDP4(.payload = 33),
            TCP6(),
            TCP6(.flags = ACK, .payload = 1),
            TCP6(.flags = ACK, .payload = 2),
            TCP6(.flags = ACK, .payload = 1359),
            UDP6(.payload = 1001),
            UDP6(.chain = {0, 60}, .chain_count = 2),
            TCP4(.options = 40, .payload = 3),
            TCP6(.tags = 2),
        };

        use_mode(rig, &wrap);
        for (uint32_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++)
            expect(rig, &wrap, &frames[i]);
    }
}

/* Three of them written out, so that wrap_frame() itself can be checked by eye. */
static void frames_written_out(void **state)
{
    static const uint8_t gue[] = {
        0x45, 0xb9, 0x00, 0x48, 0x00, 0x00, 0x40, 0x00, /* TOS 0xb9, 40 + 32 bytes, DF */
        0x40, 0x11, 0xe5, 0x6f, 198,  51,   100,  10,   198, 51, 100, 11, /* UDP */
        0,    0,    0x17, 0xc0, 0x00, 0x34, 0,    0, /* port 6080, 52 bytes, no checksum */
        0x00, 0x04, 0x00, 0x00,                      /* variant 0, data, IPv4 */
    };
    static const uint8_t gre[] = {
        0x45, 0x00, 0x00, 0x54, 0x00, 0x00, 0x40, 0x00,                   /* 60 + 24 bytes, DF */
        0x40, 0x2f, 0xe5, 0xfe, 198,  51,   100,  10,   198, 51, 100, 11, /* GRE */
        0x00, 0x00, 0x86, 0xdd,                                           /* no options, IPv6 */
    };
    static const uint8_t vxlan[] = {
        0x00, 0x00, 0x12, 0xb5, 0x00, 0x46, 0x00, 0x00, /* port 4789, 70 bytes, no checksum */
        0x08, 0x00, 0x00, 0x00, 0x12, 0x34, 0x56, 0x00, /* a VNI, which is 0x123456 */
        0x02, 0x01, 0x01, 0x01, 0x01, 0x01, 0x02, 0x02, /* Ethernet */
        0x02, 0x02, 0x02, 0x02, 0x08, 0x00,
    };
    struct rig *rig = *state;
    struct frame in = TCP4(.fragment = DF, .tos = 0xb9), in6 = TCP6(), out;
    struct wrap wrap = {.forwarding = HB_FORWARDING_GUE, .family = 4, .number = 1};

    use_mode(rig, &wrap);
    out = exchange(rig, &in);
    memset(out.bytes + 34, 0, 2); /* the source port has its own test */
    assert_memory_equal(out.bytes + 14, gue, sizeof(gue));
    assert_int_equal(out.length, 14 + sizeof(gue) + 40);

    wrap.forwarding = HB_FORWARDING_GRE;
    use_mode(rig, &wrap);
    out = exchange(rig, &in6);
    assert_memory_equal(out.bytes + 14, gre, sizeof(gre));
    assert_memory_equal(out.bytes + 14 + sizeof(gre), in6.bytes + 14, 60);

    wrap.forwarding = HB_FORWARDING_VXLAN;
    wrap.family = 6;
    use_mode(rig, &wrap);
    out = exchange(rig, &in);
    assert_int_equal(out.bytes[IP6_NEXT], 17);
    memset(out.bytes + 54, 0, 2);
    assert_memory_equal(out.bytes + 54, vxlan, sizeof(vxlan));
    assert_memory_equal(out.bytes + 54 + sizeof(vxlan), in.bytes + 14, 40);
}

/* BL-04, BL-11: DSCP and ECN of every packet reach the outer header of every mode. */
static void the_traffic_class_is_copied(void **state)
{
    struct rig *rig = *state;
    struct wrap wrap;

    FOR_EACH_TUNNEL(wrap)
    {
        use_mode(rig, &wrap);
        for (uint32_t tos = 0; tos < 256; tos++) {
            expect(rig, &wrap, &(struct frame[]){TCP4(.tos = (uint8_t)tos)}[0]);
            expect(rig, &wrap, &(struct frame[]){TCP6(.tos = (uint8_t)tos)}[0]);
        }
    }
}

/* BL-06, BL-15: from mbufs full of 0xff (as the rig makes them), addresses of random bytes. */
static void nothing_is_left_from_the_buffer(void **state)
{
    struct rig *rig = *state;
    uint64_t random = 1;
    struct wrap wrap;

    FOR_EACH_TUNNEL(wrap)
    {
        use_mode(rig, &wrap);
        for (uint32_t i = 0; i < 1000; i++) {
            struct frame in = TCP6(.source = "2001:db8:ffff:fffe:fdfc:fbfa:f9f8:f7f6");

            for (uint32_t byte = 4; byte < 16; byte++) {
                random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
                in.bytes[IP6_SOURCE + byte] = (uint8_t)(random >> 56);
            }
            expect(rig, &wrap, &in);
        }
    }
}

/* BL-17, BL-19: what fits a link of 1,500 bytes, by the table of overheads; one byte more does not.
 */
static void sizes_at_the_limit(void **state)
{
    static const struct {
        uint8_t forwarding;
        uint32_t over4, over6;
    } rows[] = {
        {HB_FORWARDING_IPIP, 1480, 1460},  {HB_FORWARDING_GRE, 1476, 1456},
        {HB_FORWARDING_GUE1, 1472, 1452},  {HB_FORWARDING_GUE, 1468, 1448},
        {HB_FORWARDING_VXLAN, 1450, 1430},
    };
    struct rig *rig = *state;
    const uint64_t *drops = &hb_counters_worker(rig->region, 0)->drops[HB_DROP_OVERSIZE];

    for (uint32_t i = 0; i < 10; i++) {
        struct wrap wrap = {
            .forwarding = rows[i / 2].forwarding, .family = i % 2 ? 6 : 4, .number = 1};
        uint32_t most = i % 2 ? rows[i / 2].over6 : rows[i / 2].over4;
        uint64_t before = *drops;
        struct frame frames[] = {TCP4(.flags = ACK, .payload = most - 40, .fragment = DF),
                                 TCP4(.flags = ACK, .payload = most - 40),
                                 TCP6(.flags = ACK, .payload = most - 60)};
        struct frame longer[] = {TCP4(.flags = ACK, .payload = most - 39, .fragment = DF),
                                 TCP4(.flags = ACK, .payload = most - 39),
                                 TCP6(.flags = ACK, .payload = most - 59)};

        use_mode(rig, &wrap);
        assert_int_equal(rig->backend[1].inner_max, most);
        for (uint32_t k = 0; k < 3; k++) {
            struct frame out = exchange(rig, &frames[k]);

            assert_int_equal(out.length, 14 + 1500);
            send_frame(rig, &longer[k]);
            turn(rig);
            assert_false(receive(rig, PORT, &out));
        }
        assert_int_equal(*drops - before, 3);
    }
}

/* BL-16: every headroom: what is missing must be in front of the old Ethernet header. */
static void too_little_headroom(void **state)
{
    struct rig *rig = *state;
    struct frame in = TCP4(.flags = ACK), out;
    struct wrap wrap;

    FOR_EACH_TUNNEL(wrap)
    {
        for (wrap.tags = 0; wrap.tags < 2; wrap.tags++) {
            uint32_t needed = wrap_overhead(&wrap) + 4u * wrap.tags;

            use_mode(rig, &wrap);
            for (uint32_t headroom = 0; headroom <= 100; headroom++) {
                uint64_t drops = count_drops(rig);
                bool fits = headroom >= needed;

                send_mbuf(rig, make_mbuf(&in, headroom, 0));
                turn(rig);
                assert_int_equal(receive(rig, PORT, &out), fits);
                assert_int_equal(count_drops(rig) - drops, !fits);
                if (fits)
                    assert_int_equal(out.length, 14 + needed + 40);
            }
        }
    }
    assert_true(hb_counters_worker(rig->region, 0)->drops[HB_DROP_NO_HEADROOM] > 0);
}

/* BL-35: the tag of the backend's link, once, whatever tags the packet came with. */
static void tags_of_the_egress_link(void **state)
{
    struct rig *rig = *state;
    struct wrap wrap;

    FOR_EACH_TUNNEL(wrap)
    {
        wrap.tags = 1;
        use_mode(rig, &wrap);
        for (uint8_t tags = 0; tags < 3; tags++) {
            expect(rig, &wrap, &(struct frame[]){TCP4(.tags = tags, .payload = 5)}[0]);
            expect(rig, &wrap, &(struct frame[]){TCP6(.tags = tags)}[0]);
        }
    }
}

/* RFC 768: a UDP checksum that comes out as zero is sent as 0xffff; all sums verify. */
static void a_checksum_is_never_zero(void **state)
{
    struct rig *rig = *state;
    struct wrap wrap = {
        .forwarding = HB_FORWARDING_GUE, .family = 4, .number = 1, .checksum = true};
    struct frame in = TCP4(.flags = ACK);
    uint32_t all_ones = 0;

    use_mode(rig, &wrap);
    for (uint32_t word = 0; word < 65536; word++) {
        struct frame out;
        uint16_t sum;

        in = poke16(in, L4_OF_4 + 6, (uint16_t)word);
        out = exchange(rig, &in);
        sum = (uint16_t)(out.bytes[40] << 8 | out.bytes[41]);
        assert_int_not_equal(sum, 0);
        all_ones += sum == 0xffff;
        assert_int_equal(pseudo_checksum(out.bytes + L3, 17, out.bytes + 34, out.length - 34), 0);
    }
    assert_in_range(all_ones, 1, 2); /* 0x0000 and 0xffff are one number */
}

/* Source ports and flow labels: one for all packets of a flow, spread over flows. */
static void flows_are_spread(void **state)
{
    struct rig *rig = *state;
    struct wrap wrap = {.forwarding = HB_FORWARDING_GUE, .family = 6, .number = 1};
    uint32_t ports[16] = {0}, labels[16] = {0};

    use_mode(rig, &wrap);
    for (uint16_t port = 1; port <= 1024; port++) {
        struct frame first = TCP4(.source_port = port, .flags = RST), second, out;
        struct wrap again = wrap;

        second = TCP4(.source_port = port, .flags = FIN, .payload = 9);
        out = exchange(rig, &first);
        read_free_fields(&wrap, &out);
        out = exchange(rig, &second);
        read_free_fields(&again, &out);
        assert_int_equal(wrap.source_port, again.source_port);
        assert_int_equal(wrap.label, again.label);
        ports[wrap.source_port >> 10 & 15]++;
        labels[wrap.label >> 16]++;
    }
    for (uint32_t i = 0; i < 16; i++) {
        assert_in_range(ports[i], 30, 110); /* 64 each, and a little luck */
        assert_in_range(labels[i], 30, 110);
    }
}

/* BL-08: outer sources inside the prefix, the same for a flow, many values; others fixed. */
static void sources_are_spread(void **state)
{
    static const uint8_t bits[] = {0, 1, 5, 7, 7, 12, 64};
    struct rig *rig = *state;

    for (uint32_t row = 0; row < 7; row++) {
        struct wrap wrap = {.forwarding = row % 2 ? HB_FORWARDING_GRE : HB_FORWARDING_IPIP,
                            .family = row < 4 ? 4 : 6,
                            .number = 1,
                            .spread = bits[row]};
        bool seen[128] = {false};
        uint32_t values = 0;

        use_mode(rig, &wrap);
        for (uint16_t flow = 0; flow < 1000; flow++) {
            struct frame in = UDP4(.source_port = (uint16_t)(1000 + flow), .fragment = DF);
            uint64_t source;

            expect(rig, &wrap, &in); /* all but the low bits as configured */
            source = wrap.source;
            expect(rig, &wrap, &in);
            assert_int_equal(wrap.source, source);
            values += !seen[source & 127];
            seen[source & 127] = true;
        }
        if (wrap.spread < 6)
            assert_int_equal(values, 1u << wrap.spread);
        else
            assert_in_range(values, 64, 128);
    }
}

/* BL-18: the port that the packet leaves by decides, not another one; the field then holds the sum
 * of the pseudo-header, as drivers want it. */
static void checksums_by_the_port(void **state)
{
    struct rig *rig = *state;
    struct frame in = TCP4(.payload = 9), out, want;
    struct wrap wrap;

    FOR_EACH_TUNNEL(wrap)
    {
        bool udp = wrap.checksum;
        uint64_t asks =
            RTE_MBUF_F_TX_UDP_CKSUM | (wrap.family == 4 ? RTE_MBUF_F_TX_IPV4 : RTE_MBUF_F_TX_IPV6);

        use_mode(rig, &wrap);
        for (uint32_t ports = 0; ports < 4; ports++) {
            struct rte_mbuf *mbuf = make_mbuf(&in, RTE_PKTMBUF_HEADROOM, 0);
            bool by_port = udp && (ports & 1 << PORT) != 0;
            uint32_t at = L3 + (wrap.family == 4 ? 20 : 40) + 6;

            rig->worker->config.udp_checksum_ports = ports;
            wrap.id = rig->worker->ipv4_id;
            send_mbuf(rig, mbuf);
            turn(rig);
            assert_int_equal(mbuf->ol_flags, by_port ? asks : 0); /* it waits in the ring now */
            assert_int_equal(mbuf->l2_len, by_port ? 14 : 0);
            assert_int_equal(mbuf->l3_len, by_port ? at - 6 - L3 : 0);
            assert_true(receive(rig, PORT, &out));
            read_free_fields(&wrap, &out);
            want = wrap_frame(&in, &wrap);
            if (by_port) { /* the sum of the pseudo-header, not complemented */
                uint16_t sum =
                    (uint16_t)~pseudo_checksum_of(want.bytes + L3, 17, want.length - at + 6);

                want = poke16(want, at, sum);
            }
            assert_frame("checksum by the port", &out, &want);
        }
        rig->worker->config.udp_checksum_ports = 0;
    }
}

/* Jumbo frames: many segments in, the same bytes out behind the headers, and right sums over all of
 * them. */
static void jumbo_frames(void **state)
{
    struct rig *rig = *state;
    struct wrap wrap;

    FOR_EACH_TUNNEL(wrap)
    {
        use_mode(rig, &wrap);
        rig->backend[1].inner_max = 9000;
        publish(rig);
        for (uint32_t segments = 2; segments < 9; segments++) {
            static uint8_t sent[9200], joined[9200];
            struct frame head = UDP4(.payload = 1, .fragment = DF);
            struct rte_mbuf *mbuf = make_mbuf(&head, RTE_PKTMBUF_HEADROOM, 0), *got;
            uint32_t length = L3 + 28 + 1 + (segments - 1) * 1001u, size = rig->backend[1].size;
            const uint8_t *frame;

            for (uint32_t i = 1; i < segments; i++) {
                struct rte_mbuf *next = rte_pktmbuf_alloc(rig_pool());

                memset(rte_pktmbuf_append(next, 1001), (int)i, 1001);
                assert_int_equal(rte_pktmbuf_chain(mbuf, next), 0);
            }
            rte_pktmbuf_mtod(mbuf, uint8_t *)[L4_OF_4 + 4] = (uint8_t)((length - 34) >> 8);
            rte_pktmbuf_mtod(mbuf, uint8_t *)[L4_OF_4 + 5] = (uint8_t)(length - 34);
            head = fix4(poke16(head, IP4_LENGTH, (uint16_t)(length - 14)));
            memcpy(rte_pktmbuf_mtod(mbuf, uint8_t *), head.bytes, 34);
            memcpy(sent, rte_pktmbuf_read(mbuf, 0, length, joined), length);
            send_mbuf(rig, mbuf);
            turn(rig);
            got = take_mbuf(rig, PORT);
            assert_non_null(got);
            rte_mbuf_sanity_check(got, 1);
            assert_int_equal(rte_pktmbuf_pkt_len(got), size + length - 14);
            frame = rte_pktmbuf_read(got, 0, size + length - 14, joined);
            assert_memory_equal(frame + size, sent + 14, length - 14);
            if (wrap.checksum) {
                uint32_t ip = wrap.family == 4 ? 20 : 40, behind = size - 14 - ip + length - 14;

                assert_int_equal(pseudo_checksum(frame + L3, 17, frame + L3 + ip, behind), 0);
            }
            rte_pktmbuf_free(got);
        }
    }
}

/* BL-55: another mode from the next packet on; the flow stays where it is. */
static void a_change_of_mode(void **state)
{
    struct rig *rig = *state;
    struct frame syn = TCP4(), more = TCP4(.flags = ACK, .payload = 9);
    struct wrap wrap;

    wrap = (struct wrap){.forwarding = HB_FORWARDING_IPIP, .family = 4, .number = 1};
    use_mode(rig, &wrap);
    expect(rig, &wrap, &syn);
    assert_int_equal(live_flows(rig, 1), 1);
    FOR_EACH_TUNNEL(wrap)
    {
        use_mode(rig, &wrap);
        expect(rig, &wrap, &more);
        assert_int_equal(live_flows(rig, 1), 1);
    }
    assert_int_equal(hb_counters_worker(rig->region, 0)->flow_inserts, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(all_kinds),
        TEST(frames_written_out),
        TEST(the_traffic_class_is_copied),
        TEST(nothing_is_left_from_the_buffer),
        TEST(sizes_at_the_limit),
        TEST(too_little_headroom),
        TEST(tags_of_the_egress_link),
        TEST(a_checksum_is_never_zero),
        TEST(flows_are_spread),
        TEST(sources_are_spread),
        TEST(checksums_by_the_port),
        TEST(jumbo_frames),
        TEST(a_change_of_mode),
    };
    int failed = rig_open();

    if (failed == 0)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return failed;
}
