/* SPDX-License-Identifier: BSD-3-Clause */
/* What is read from a frame, what is wrong with it, and whose it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

/* Rows run twice: without a way to the kernel, then with one and in buffers that end with
 * the frame. */
static void run_with_and_without_punt(void **state, const struct row *rows, uint32_t count)
{
    struct rig *rig = *state;

    publish_one_backend(rig, 4);
    run_rows(rig, rows, count, 4);
    rig->worker->config.kernel[0] = (struct hb_kernel_way){true, PUNT_PORT};
    rig->tight = true;
    run_rows(rig, rows, count, 4);
}
#define RUN(rows) run_with_and_without_punt(state, (rows), sizeof(rows) / sizeof((rows)[0]))

static void ordinary_packets(void **state)
{
    const struct row rows[] = {
        {"TCP SYN over IPv4", TCP4(), SENT},
        {"TCP data over IPv4", TCP4(.flags = ACK | PSH, .payload = 1000), SENT},
        {"UDP over IPv4", UDP4(.payload = 20), SENT},
        {"TCP SYN over IPv6", TCP6(), SENT},
        {"UDP over IPv6", UDP6(.payload = 1200), SENT},
        {"Ethernet padding behind a 40-byte packet", pad(TCP4(), 60), SENT},
        {"padding behind an empty datagram", pad(UDP4(), 60), SENT},
        {"padding behind IPv6", pad(UDP6(), 90), SENT},
    };
    RUN(rows);
}

/* BL-12 */
static void ipv4_options(void **state)
{
    const struct row rows[] = {
        {"IHL 6", TCP4(.options = 4), SENT},
        {"IHL 15", TCP4(.options = 40), SENT},
        {"IHL 15, UDP", UDP4(.options = 40, .payload = 3), SENT},
        {"IHL 4", fix4(poke8(TCP4(), IP4_VERSION, 0x44)), DROP(IPV4_HEADER)},
        {"IHL 0", poke8(TCP4(), IP4_VERSION, 0x40), DROP(IPV4_HEADER)},
        {"IHL 6, total length 20", fix4(poke16(TCP4(.options = 4), IP4_LENGTH, 20)),
         DROP(IPV4_HEADER)},
        {"IHL 15 in a packet of 40 bytes", poke8(TCP4(), IP4_VERSION, 0x4f), DROP(IPV4_HEADER)},
    };
    RUN(rows);
}

/* BL-12: options don't change the choice. */
static void options_are_not_hashed(void **state)
{
    struct rig *rig = *state;

    for (uint16_t id = 1; id <= 10; id++)
        add_backend(rig, id, 0, 4);
    share_table(rig, 0);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    publish(rig);
    for (uint16_t port = 1000; port < 1100; port++) {
        uint16_t plain = B(rig, TCP4(.source_port = port, .flags = RST));

        assert_int_equal(B(rig, TCP4(.source_port = port, .flags = RST, .options = 4)), plain);
        assert_int_equal(B(rig, TCP4(.source_port = port, .flags = RST, .options = 40)), plain);
        assert_int_equal(B(rig, TCP4(.source_port = port, .flags = RST, .tags = 2)), plain);
    }
}

/* BL-32 */
static void fragments(void **state)
{
    const struct row rows[] = {
        {"DF", TCP4(.fragment = DF), SENT},
        {"reserved bit", TCP4(.fragment = 0x8000), SENT},
        {"reserved bit and DF", TCP4(.fragment = 0xc000), SENT},
        {"MF", IP4(1, .fragment = MF), DROP(FRAGMENT)},
        {"offset 1", IP4(1, .fragment = 1), DROP(FRAGMENT)},
        {"offset 1 and MF", IP4(1, .fragment = MF | 1), DROP(FRAGMENT)},
        {"DF and MF", IP4(1, .fragment = DF | MF), DROP(FRAGMENT)},
        {"reserved bit and offset 1", IP4(1, .fragment = 0x8001), DROP(FRAGMENT)},
        {"IPv6 fragment header of a whole packet", UDP6(.chain = {44}, .chain_count = 1), SENT},
        {"the same behind another header", UDP6(.chain = {60, 44}, .chain_count = 2), SENT},
        {"with reserved bits", poke8(UDP6(.chain = {44}, .chain_count = 1), L4_OF_6 + 3, 6), SENT},
        {"first IPv6 fragment of ICMPv6",
         poke8(IP6(58, .chain = {44}, .chain_count = 1), L4_OF_6 + 3, 1), DROP(FRAGMENT)},
        {"IPv6 fragment header cut short",
         poke16(UDP6(.chain = {44}, .chain_count = 1), IP6_LENGTH, 7), DROP(IPV6_EXTENSION)},
        {"a fragment that is not for a VIP", TCP4(.fragment = MF, .destination = "198.51.100.10"),
         PUNT(NOT_VIP)},
        {"an IPv6 one", UDP6(.chain = {44}, .chain_count = 1, .destination = "2001:db8::1"),
         PUNT(NOT_VIP)},
    };
    RUN(rows);
}

/* BL-05: nothing is decremented, so 1 is as good as 2; 0 is never forwarded. What is for this
 * machine is the kernel's, who asks for no other hop. */
static void time_to_live(void **state)
{
    const struct row rows[] = {
        {"TTL 2", TCP4(.ttl = 2), SENT},
        {"TTL 1", TCP4(.ttl = 1), SENT},
        {"TTL 0", fix4(poke8(TCP4(), IP4_TTL, 0)), DROP(TTL_EXPIRED)},
        {"hop limit 2", TCP6(.ttl = 2), SENT},
        {"hop limit 1", TCP6(.ttl = 1), SENT},
        {"hop limit 0", poke8(TCP6(), IP6_HOPS, 0), DROP(TTL_EXPIRED)},
        {"BGP to the balancer itself with TTL 1",
         TCP4(.ttl = 1, .destination = "198.51.100.10", .destination_port = 179), PUNT(NOT_VIP)},
        {"the same with hop limit 1",
         TCP6(.ttl = 1, .destination = "2001:db8:0:1::10", .destination_port = 179), PUNT(NOT_VIP)},
        {"the answer to the balancer's own connection",
         TCP4(.ttl = 1, .flags = SYN | ACK, .destination = "198.51.100.10", .source_port = 179),
         PUNT(NOT_VIP)},
    };
    RUN(rows);
}

/* BL-36 */
static void vlan_tags(void **state)
{
    const struct row rows[] = {
        {"one tag", TCP4(.tags = 1), SENT},
        {"two tags, 802.1ad outside", TCP4(.tags = 2), SENT},
        {"two tags, IPv6", UDP6(.tags = 2, .payload = 9), SENT},
        {"three tags", TCP4(.tags = 3), PUNT(ETHERTYPE)},
        {"four tags", TCP4(.tags = 4), PUNT(ETHERTYPE)},
        {"five tags", TCP4(.tags = 5), PUNT(ETHERTYPE)},
        {"ends inside the first tag", cut(TCP4(.tags = 1), 16), DROP(RUNT)},
        {"ends inside the second tag", cut(TCP4(.tags = 2), 21), DROP(RUNT)},
        {"one tag and padding", pad(TCP4(.tags = 1), 64), SENT},
    };
    RUN(rows);
}

/* BL-33 */
static void lying_lengths(void **state)
{
    const struct row rows[] = {
        {"total length 0", fix4(poke16(TCP4(), IP4_LENGTH, 0)), DROP(IPV4_HEADER)},
        {"total length 19", fix4(poke16(TCP4(), IP4_LENGTH, 19)), DROP(IPV4_HEADER)},
        {"total length 20", fix4(poke16(TCP4(), IP4_LENGTH, 20)), DROP(L4_HEADER)},
        {"total length 39", fix4(poke16(TCP4(), IP4_LENGTH, 39)), DROP(L4_HEADER)},
        {"one more than the frame has", fix4(poke16(TCP4(), IP4_LENGTH, 41)), DROP(IPV4_HEADER)},
        {"total length 65535", fix4(poke16(TCP4(), IP4_LENGTH, 65535)), DROP(IPV4_HEADER)},
        {"IPv4 of version 5", fix4(poke8(TCP4(), IP4_VERSION, 0x55)), DROP(IPV4_HEADER)},
        {"IPv6 payload length 0", poke16(TCP6(), IP6_LENGTH, 0), DROP(L4_HEADER)},
        {"IPv6 payload length 19", poke16(TCP6(), IP6_LENGTH, 19), DROP(L4_HEADER)},
        {"IPv6 payload one too long", poke16(TCP6(), IP6_LENGTH, 21), DROP(IPV6_HEADER)},
        {"IPv6 payload length 65535", poke16(TCP6(), IP6_LENGTH, 65535), DROP(IPV6_HEADER)},
        {"IPv6 of version 4", poke8(TCP6(), L3, 0x40), DROP(IPV6_HEADER)},
        {"TCP data offset 0", poke8(TCP4(), L4_OF_4 + TCP_OFFSET, 0x00), DROP(L4_HEADER)},
        {"TCP data offset 4", poke8(TCP4(), L4_OF_4 + TCP_OFFSET, 0x40), DROP(L4_HEADER)},
        {"TCP data offset 15, no options", poke8(TCP4(), L4_OF_4 + TCP_OFFSET, 0xf0),
         DROP(L4_HEADER)},
        {"TCP data offset 15, 40 bytes there",
         poke8(TCP4(.payload = 40), L4_OF_4 + TCP_OFFSET, 0xf0), SENT},
        {"TCP data offset 15, 39 bytes there",
         poke8(TCP4(.payload = 39), L4_OF_4 + TCP_OFFSET, 0xf0), DROP(L4_HEADER)},
        {"the options are only in the padding", pad(poke8(TCP4(), L4_OF_4 + TCP_OFFSET, 0x60), 60),
         DROP(L4_HEADER)},
        {"wrong header checksum", poke16(TCP4(), IP4_CHECKSUM, 0x1234), DROP(IPV4_CHECKSUM)},
        {"header checksum 0", poke16(TCP4(), IP4_CHECKSUM, 0), DROP(IPV4_CHECKSUM)},
    };
    RUN(rows);
}

/* BL-38 */
static void udp_lengths(void **state)
{
    const struct row rows[] = {
        {"payload 0", UDP4(), SENT},
        {"payload 1", UDP4(.payload = 1), SENT},
        {"payload 7", UDP4(.payload = 7), SENT},
        {"payload 8", UDP6(.payload = 8), SENT},
        {"payload 20", UDP6(.payload = 20), SENT},
        {"length 0", poke16(UDP4(), L4_OF_4 + UDP_LENGTH, 0), DROP(L4_HEADER)},
        {"length 7", poke16(UDP4(), L4_OF_4 + UDP_LENGTH, 7), DROP(L4_HEADER)},
        {"length 9 with 8 there", poke16(UDP4(), L4_OF_4 + UDP_LENGTH, 9), DROP(L4_HEADER)},
        {"length 65535", poke16(UDP6(), L4_OF_6 + UDP_LENGTH, 65535), DROP(L4_HEADER)},
        {"length 8 with 100 bytes more", poke16(UDP4(.payload = 100), L4_OF_4 + UDP_LENGTH, 8),
         SENT},
        {"IP payload of 7 bytes", fix4(poke16(UDP4(), IP4_LENGTH, 27)), DROP(L4_HEADER)},
    };
    RUN(rows);
}

static void ipv6_extension_headers(void **state)
{
    struct frame routed = TCP6(.chain = {43}, .chain_count = 1);
    struct frame long_one = TCP6(.chain = {60}, .chain_count = 1);
    const struct row rows[] = {
        {"hop by hop", TCP6(.chain = {0}, .chain_count = 1), SENT},
        {"hop by hop, destination, routing done", UDP6(.chain = {0, 60, 43}, .chain_count = 3),
         SENT},
        {"eight of them", TCP6(.chain = {60, 60, 60, 60, 60, 60, 60, 60}, .chain_count = 8), SENT},
        {"nine of them", TCP6(.chain = {60, 60, 60, 60, 60, 60, 60, 60, 60}, .chain_count = 9),
         DROP(IPV6_EXTENSION)},
        {"hop by hop not in front", TCP6(.chain = {60, 0}, .chain_count = 2), DROP(IPV6_EXTENSION)},
        {"routing with a segment left", poke8(routed, L4_OF_6 + 3, 1), DROP(IPV6_EXTENSION)},
        {"longer than the packet", poke8(long_one, L4_OF_6 + 1, 255), DROP(IPV6_EXTENSION)},
        {"swallows the TCP header", poke8(long_one, L4_OF_6 + 1, 2), DROP(L4_HEADER)},
        {"4 bytes longer than the packet", poke8(long_one, L4_OF_6 + 1, 3), DROP(IPV6_EXTENSION)},
        {"ends inside", poke16(long_one, IP6_LENGTH, 7), DROP(IPV6_EXTENSION)},
        {"nothing behind it", poke16(long_one, IP6_LENGTH, 8), DROP(L4_HEADER)},
        {"no next header", IP6(59), DROP(PROTOCOL)},
        {"authentication header", IP6(51), DROP(PROTOCOL)},
    };
    RUN(rows);
}

static void martians(void **state)
{
    const struct row rows[] = {
        {"from 0.0.0.0", TCP4(.source = "0.0.0.0"), DROP(MARTIAN)},
        {"from 0.1.2.3", TCP4(.source = "0.1.2.3"), DROP(MARTIAN)},
        {"from 127.0.0.1", TCP4(.source = "127.0.0.1"), DROP(MARTIAN)},
        {"from 224.0.0.1", TCP4(.source = "224.0.0.1"), DROP(MARTIAN)},
        {"from 239.255.255.255", TCP4(.source = "239.255.255.255"), DROP(MARTIAN)},
        {"from 255.255.255.255", TCP4(.source = "255.255.255.255"), DROP(MARTIAN)},
        {"from the VIP itself", TCP4(.source = "192.0.2.10"), DROP(MARTIAN)},
        {"from 223.255.255.255", TCP4(.source = "223.255.255.255"), SENT},
        {"from ::", TCP6(.source = "::"), DROP(MARTIAN)},
        {"from ::1", TCP6(.source = "::1"), DROP(MARTIAN)},
        {"from ff02::1", TCP6(.source = "ff02::1"), DROP(MARTIAN)},
        {"from ::ffff:203.0.113.9", TCP6(.source = "::ffff:203.0.113.9"), DROP(MARTIAN)},
        {"from fe80::1", TCP6(.source = "fe80::1"), DROP(MARTIAN)},
        {"from the VIP itself", TCP6(.source = "2001:db8:0:a::10"), DROP(MARTIAN)},
        {"from ::2", TCP6(.source = "::2"), SENT},
        {"DHCP is the kernel's", UDP4(.source = "0.0.0.0", .destination = "255.255.255.255"),
         PUNT(NOT_VIP)},
        {"OSPF is the kernel's", IP4(89, .destination = "224.0.0.5"), PUNT(NOT_VIP)},
        {"ND is the kernel's", IP6(58, .source = "fe80::1", .destination = "ff02::1:ff00:10"),
         PUNT(NOT_VIP)},
    };
    RUN(rows);
}

/* Sent to a link-layer group: every station of that link has it, and one answer is enough. */
static void link_layer_groups(void **state)
{
    struct frame broadcast = TCP4(), multicast = TCP6(.tags = 1), ping = IP4(1);
    struct frame foreign = UDP4(.destination = "198.51.100.10"), broken, out;
    struct rig *rig = *state;

    memset(broadcast.bytes, 0xff, 6);
    memset(ping.bytes, 0xff, 6);
    memset(foreign.bytes, 0xff, 6);
    memcpy(multicast.bytes, (uint8_t[]){0x33, 0x33, 0, 0, 0, 1}, 6);
    broken = poke16(broadcast, IP4_CHECKSUM, 1);
    const struct row rows[] = {
        {"IPv4 by broadcast", broadcast, DROP(BROADCAST)},
        {"IPv6 by multicast, tagged", multicast, DROP(BROADCAST)},
        {"a ping by broadcast", ping, DROP(BROADCAST)},
        {"a broken one", broken, DROP(IPV4_CHECKSUM)},
        {"one that is not for a VIP", foreign, PUNT(NOT_VIP)},
    };
    RUN(rows);
    /* One among many that are read side by side. */
    for (uint32_t i = 0; i < 24; i++)
        send_frame(rig, i == 13 ? &broadcast : &(struct frame[]){TCP4()}[0]);
    turn(rig);
    for (uint32_t i = 0; i < 23; i++)
        assert_true(receive(rig, PORT, &out));
    assert_false(receive(rig, PORT, &out));
    assert_int_equal(hb_counters_worker(rig->region, 0)->drops[HB_DROP_BROADCAST], 7);
}

/* BL-41: a stray packet to a VIP ends here, the kernel's traffic goes to the kernel, broken or not.
 */
static void whose_packet_it_is(void **state)
{
    const struct row rows[] = {
        {"a port without service", TCP4(.destination_port = 81), DROP(NO_SERVICE)},
        {"RST to it", TCP4(.destination_port = 81, .flags = RST), DROP(NO_SERVICE)},
        {"the right port by the other protocol", UDP4(.destination_port = 80), DROP(NO_SERVICE)},
        {"IPv6 port without service", UDP6(.destination_port = 53), DROP(NO_SERVICE)},
        {"ICMP of a type that nobody has", IP4(1), DROP(ICMP_TYPE)},
        {"ICMPv6 of such a type", IP6(58), DROP(ICMP_TYPE)},
        {"ICMPv6 by IPv4", IP4(58), DROP(PROTOCOL)},
        {"ICMP by IPv6", IP6(1), DROP(PROTOCOL)},
        {"ICMP of 7 bytes", fix4(poke16(IP4(1), IP4_LENGTH, 27)), DROP(L4_HEADER)},
        {"SCTP to a VIP", IP4(132, .payload = 4), DROP(NO_SERVICE)},
        {"SCTP by IPv6", IP6(132, .payload = 4), DROP(NO_SERVICE)},
        {"SCTP of 11 bytes", IP4(132, .payload = 3), DROP(L4_HEADER)},
        {"UDP-Lite to a VIP", IP4(136), DROP(UDP_LITE)},
        {"UDP-Lite by IPv6", IP6(136), DROP(UDP_LITE)},
        {"DCCP to a VIP", IP4(33), DROP(PROTOCOL)},
        {"ESP to a VIP", IP4(50), DROP(PROTOCOL)},
        {"ARP", build_arp(), PUNT(ETHERTYPE)},
        {"LLDP", poke16(build_arp(), ETHERTYPE, 0x88cc), PUNT(ETHERTYPE)},
        {"a length for an ethertype", poke16(build_arp(), ETHERTYPE, 46), PUNT(ETHERTYPE)},
        {"SSH to the balancer", TCP4(.destination = "198.51.100.10", .destination_port = 22),
         PUNT(NOT_VIP)},
        {"ping of the balancer", IP4(1, .destination = "198.51.100.10"), PUNT(NOT_VIP)},
        {"the same with padding, unchanged", pad(IP4(1, .destination = "198.51.100.10"), 60),
         PUNT(NOT_VIP)},
        {"ping over IPv6, tagged", IP6(58, .destination = "2001:db8:0:1::10", .tags = 1),
         PUNT(NOT_VIP)},
        {"a wrong checksum to the balancer",
         poke16(TCP4(.destination = "198.51.100.10"), IP4_CHECKSUM, 1), PUNT(NOT_VIP)},
        {"a bad length to the balancer",
         poke16(TCP4(.destination = "198.51.100.10"), IP4_LENGTH, 9999), PUNT(NOT_VIP)},
    };
    RUN(rows);
}

/* BL-33: frames of every length, cut from valid ones: never forwarded, never read past their end.
 * What is left of the IP header decides. */
static void frames_of_every_length(void **state)
{
    struct rig *rig = *state;
    const struct frame whole[] = {
        TCP4(),
        UDP4(.payload = 5),
        TCP6(),
        UDP6(.chain = {0, 60}, .chain_count = 2),
        TCP4(.tags = 2, .options = 8),
    };

    rig->tight = true;
    publish_one_backend(rig, 4);
    for (uint32_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        uint32_t minimum = whole[i].l3 + (whole[i].family == 6 ? 40 : 20);

        for (uint32_t length = 1; length < whole[i].length; length++) {
            unsigned header = whole[i].family == 6 ? HB_DROP_IPV6_HEADER : HB_DROP_IPV4_HEADER;
            struct row row = {"cut", cut(whole[i], length), DROPPED,
                              length < minimum ? HB_DROP_RUNT : header};

            run_rows(rig, &row, 1, 4);
        }
    }
}

/* Headers must be in the first segment, payload need not be: cut at every byte. */
static void cut_in_two(struct rig *rig, struct frame in, uint32_t headers)
{
    uint64_t runts = hb_counters_worker(rig->region, 0)->drops[HB_DROP_RUNT];

    for (uint32_t split = 1; split < in.length; split++) {
        uint16_t id = rig->worker->ipv4_id;
        struct frame out, want;

        send_mbuf(rig, make_mbuf(&in, RTE_PKTMBUF_HEADROOM, split));
        turn(rig);
        assert_int_equal(receive(rig, PORT, &out), split >= headers);
        if (split < headers)
            continue;
        want = tunnel(&in, 4, 1, id, 0);
        assert_frame("two segments", &out, &want);
    }
    runts = hb_counters_worker(rig->region, 0)->drops[HB_DROP_RUNT] - runts;
    assert_int_equal(runts, headers - 1);
}

static void packets_in_two_segments(void **state)
{
    struct rig *rig = *state;
    struct frame extended = TCP6(.flags = ACK, .chain = {0, 60, 43}, .chain_count = 3);

    publish_one_backend(rig, 4);
    cut_in_two(rig, pad(TCP4(.flags = ACK, .payload = 100), 300), L4_OF_4 + 20);
    cut_in_two(rig, UDP4(.options = 8, .payload = 9), L4_OF_4 + 8 + 8);
    cut_in_two(rig, extended, L4_OF_6 + 24 + 20);
}

/* A port that has checked the checksum is believed when it says "good". */
static void checksum_offload(void **state)
{
    struct rig *rig = *state;
    struct frame bad = poke16(TCP4(), IP4_CHECKSUM, 0x1234);
    struct frame out;
    struct rte_mbuf *mbuf = make_mbuf(&bad, RTE_PKTMBUF_HEADROOM, 0);

    publish_one_backend(rig, 4);
    mbuf->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_GOOD;
    send_mbuf(rig, mbuf);
    turn(rig);
    assert_true(receive(rig, PORT, &out));
    mbuf = make_mbuf(&bad, RTE_PKTMBUF_HEADROOM, 0);
    mbuf->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_BAD;
    send_mbuf(rig, mbuf);
    turn(rig);
    assert_false(receive(rig, PORT, &out));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(ordinary_packets),       TEST(ipv4_options),
        TEST(options_are_not_hashed), TEST(fragments),
        TEST(time_to_live),           TEST(vlan_tags),
        TEST(lying_lengths),          TEST(udp_lengths),
        TEST(ipv6_extension_headers), TEST(martians),
        TEST(link_layer_groups),      TEST(whose_packet_it_is),
        TEST(frames_of_every_length), TEST(packets_in_two_segments),
        TEST(checksum_offload),
    };
    int failed = rig_open();

    if (failed == 0)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return failed;
}
