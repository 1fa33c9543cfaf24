/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_tunnel_netns.c: what leaves this machine when a marked socket sends, byte by byte, for each
 * kind of tunnel. Needs root; exits 77 when it may not.
 *
 *     this process, in a namespace of its own
 *     probe0   198.51.100.10/24, 2001:db8:1::10/64  ----  probe1: every frame is read here
 */
#include "net_test.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "health/probe_socket.h"
#include "health/tunnel.h"

#define LIMIT_MS 20000
#define SKIPPED  77

static struct hb_tunnels *tunnels;
static uint32_t out_ifindex;
static int wire; /* a packet socket on probe1 */

struct frame {
    uint8_t bytes[2048];
    size_t size;
};

/* ---- frames ---- */

static uint32_t add_up(const uint8_t *bytes, size_t size, uint32_t sum)
{
    for (size_t i = 0; i + 1 < size; i += 2)
        sum += (uint32_t)(bytes[i] << 8 | bytes[i + 1]);
    if (size % 2)
        sum += (uint32_t)bytes[size - 1] << 8;
    return sum;
}

/* RFC 1071: a region with a right checksum in it. */
static bool is_right(uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return sum == 0xffff;
}

static bool transport_is_right(const uint8_t *ip, size_t size)
{
    bool is_ipv4 = ip[0] >> 4 == 4;
    size_t header = is_ipv4 ? 20 : 40, length = size - header;
    uint8_t protocol = is_ipv4 ? ip[9] : ip[6];
    uint32_t pseudo = add_up(is_ipv4 ? ip + 12 : ip + 8, is_ipv4 ? 8 : 32, 0);

    if (protocol == IPPROTO_ICMP)
        return is_right(add_up(ip + header, length, 0));
    return is_right(add_up(ip + header, length, pseudo + (uint32_t)length + protocol));
}

/* Reads frames until one goes to `mac`; neighbour discovery and the like are not ours. */
static void read_frame(struct frame *frame, const uint8_t *mac)
{
    struct pollfd poll_wire = {.fd = wire, .events = POLLIN};

    do {
        ssize_t got;

        assert_int_equal(poll(&poll_wire, 1, LIMIT_MS), 1);
        got = recv(wire, frame->bytes, sizeof(frame->bytes), 0);
        assert_true(got > 0);
        frame->size = (size_t)got;
    } while (memcmp(frame->bytes, mac, 6) != 0);
}

/* ---- rewrites, as the dataplane's ---- */

#define TO_MAC "\x02\x00\x00\x00\x00\x01"

struct mode {
    const char *name;
    uint8_t forwarding;
    uint8_t flags;
    uint8_t protocol; /* of the outer header; 0: of the inner packet */
    uint8_t tail;     /* bytes between outer and inner IP header */
    bool sums_up;     /* over IPv4; over IPv6 too, unless the flags say no */
};

static const struct mode modes[] = {
    {"ipip", HB_FORWARDING_IPIP, 0, 0, 0, false},
    {"gre", HB_FORWARDING_GRE, 0, IPPROTO_GRE, 4, false},
    {"gue", HB_FORWARDING_GUE, 0, IPPROTO_UDP, 12, false},
    {"gue with checksum", HB_FORWARDING_GUE, HB_REWRITE_UDP_CHECKSUM, IPPROTO_UDP, 12, true},
    {"gue without checksum", HB_FORWARDING_GUE, HB_REWRITE_NO_UDP_CHECKSUM6, IPPROTO_UDP, 12,
     false},
    {"gue variant 1", HB_FORWARDING_GUE1, HB_REWRITE_UDP_CHECKSUM, IPPROTO_UDP, 8, true},
    {"vxlan", HB_FORWARDING_VXLAN, HB_REWRITE_UDP_CHECKSUM, IPPROTO_UDP, 30, true},
};

static struct hb_rewrite make_rewrite(const struct mode *mode, uint8_t family)
{
    struct hb_address source = address_of(family == 4 ? "198.51.100.10" : "2001:db8:1::10");
    struct hb_address to = address_of(family == 4 ? "198.51.100.77" : "2001:db8:1::77");
    struct hb_rewrite rewrite = {
        .l2_size = 14, .family = family, .forwarding = mode->forwarding, .flags = mode->flags};
    uint8_t *ip = rewrite.bytes + 14, *tail = ip + (family == 4 ? 20 : 40);

    memcpy(rewrite.bytes, TO_MAC "\x02\x00\x00\x00\x00\x02", 12);
    memcpy(rewrite.bytes + 12, family == 4 ? "\x08\x00" : "\x86\xdd", 2);
    ip[0] = family == 4 ? 0x45 : 0x60;
    ip[family == 4 ? 8 : 7] = 64;
    memcpy(ip + (family == 4 ? 12 : 8), source.bytes, family == 4 ? 4 : 16);
    memcpy(ip + (family == 4 ? 16 : 24), to.bytes, family == 4 ? 4 : 16);
    if (mode->protocol == IPPROTO_UDP)
        memcpy(tail + 2, "\x17\xc0", 2); /* port 6080 */
    if (mode->forwarding == HB_FORWARDING_VXLAN)
        memcpy(tail + 8, "\x08\0\0\0\0\0\x2a\0", 8);
    rewrite.size = (uint8_t)(tail + mode->tail - rewrite.bytes);
    return rewrite;
}

/* ---- what is checked of each frame ---- */

static void check_outer(const struct frame *frame, const struct hb_rewrite *rewrite,
                        const struct mode *mode, bool inner_is_ipv4)
{
    bool is_ipv4 = rewrite->family == 4;
    const uint8_t *ip = frame->bytes + 14;
    size_t header = is_ipv4 ? 20 : 40, size = frame->size - 14;
    uint8_t expected =
        mode->protocol ? mode->protocol : (inner_is_ipv4 ? IPPROTO_IPIP : IPPROTO_IPV6);

    assert_memory_equal(frame->bytes, rewrite->bytes, 14);
    assert_int_equal(is_ipv4 ? ip[9] : ip[6], expected);
    assert_int_equal(is_ipv4 ? ip[8] : ip[7], 64);
    if (is_ipv4) {
        assert_int_equal(ip[2] << 8 | ip[3], size);
        assert_true(is_right(add_up(ip, 20, 0)));
    } else {
        assert_int_equal(ip[4] << 8 | ip[5], size - 40);
    }
    assert_memory_equal(ip + (is_ipv4 ? 12 : 8), rewrite->bytes + 14 + (is_ipv4 ? 12 : 8),
                        is_ipv4 ? 8 : 32);
    if (expected == IPPROTO_UDP)
        assert_int_equal(ip[header + 4] << 8 | ip[header + 5], size - header);
}

static void check_tail(const struct frame *frame, const struct hb_rewrite *rewrite,
                       const struct mode *mode, bool inner_is_ipv4)
{
    const uint8_t *ip = frame->bytes + 14;
    const uint8_t *tail = ip + (rewrite->family == 4 ? 20 : 40);
    bool sums_up =
        rewrite->family == 4 ? mode->sums_up : (mode->flags & HB_REWRITE_NO_UDP_CHECKSUM6) == 0;
    unsigned type = inner_is_ipv4 ? 0x0800 : 0x86dd;

    if (mode->forwarding == HB_FORWARDING_GRE)
        assert_int_equal(tail[2] << 8 | tail[3], type);
    if (mode->forwarding == HB_FORWARDING_GUE)
        assert_int_equal(tail[9], inner_is_ipv4 ? IPPROTO_IPIP : IPPROTO_IPV6);
    if (mode->forwarding == HB_FORWARDING_VXLAN) {
        assert_int_equal(tail[28] << 8 | tail[29], type);
        assert_int_equal(tail[14], 0x2a); /* the network's number is as it was */
    }
    if (mode->protocol != IPPROTO_UDP)
        return;
    assert_int_equal(tail[2] << 8 | tail[3], 6080);
    assert_true((tail[0] << 8 | tail[1]) != 0);
    if (!sums_up)
        assert_int_equal(tail[6] << 8 | tail[7], 0);
    else
        assert_true(transport_is_right(ip, frame->size - 14));
}

/* Sends by the tunnel in one protocol, and checks what comes out. */
static void send_and_check(uint32_t number, const struct hb_rewrite *rewrite,
                           const struct mode *mode, const char *vip, int kind, int protocol)
{
    struct hb_check_way way = {.to = address_of(vip), .mark = hb_tunnels_mark(number)};
    bool is_ipv4 = way.to.family == HB_FAMILY_IPV4;
    static const uint8_t echo[] = {8, 0, 0xf7, 0xff, 0, 0, 0, 0};
    struct frame frame;
    const uint8_t *inner;
    size_t size;
    int fd;

    way.from = address_of(is_ipv4 ? "198.51.100.10" : "2001:db8:1::10");
    fd = hb_probe_socket_open(&way, kind, protocol, 80);
    assert_true(fd >= 0);
    if (kind == SOCK_DGRAM)
        assert_int_equal(send(fd, "hello", 5, 0), 5);
    else if (kind == SOCK_RAW)
        assert_int_equal(send(fd, echo, sizeof(echo), 0), sizeof(echo));
    read_frame(&frame, (const uint8_t *)TO_MAC);
    close(fd);

    check_outer(&frame, rewrite, mode, is_ipv4);
    check_tail(&frame, rewrite, mode, is_ipv4);
    inner = frame.bytes + rewrite->size;
    size = frame.size - rewrite->size;
    assert_int_equal(inner[0] >> 4, is_ipv4 ? 4 : 6);
    assert_int_equal(is_ipv4 ? inner[9] : inner[6], protocol);
    assert_memory_equal(inner + (is_ipv4 ? 16 : 24), way.to.bytes, is_ipv4 ? 4 : 16);
    assert_int_equal(is_ipv4 ? inner[2] << 8 | inner[3] : (inner[4] << 8 | inner[5]) + 40, size);
    assert_true(transport_is_right(inner, size));
}

static void test_every_kind_of_tunnel(void **state)
{
    static const uint8_t families[] = {4, 6};
    char problem[200] = "";

    (void)state;
    for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
        for (size_t f = 0; f < 2; f++) {
            struct hb_rewrite rewrite = make_rewrite(&modes[m], families[f]);
            uint32_t number = hb_tunnels_claim(tunnels);

            print_message("%s over IPv%u\n", modes[m].name, families[f]);
            assert_int_not_equal(number, 0);
            assert_true(
                hb_tunnels_set(tunnels, number, out_ifindex, &rewrite, problem, sizeof(problem)));
            send_and_check(number, &rewrite, &modes[m], "192.0.2.10", SOCK_STREAM, IPPROTO_TCP);
            send_and_check(number, &rewrite, &modes[m], "192.0.2.10", SOCK_DGRAM, IPPROTO_UDP);
            send_and_check(number, &rewrite, &modes[m], "192.0.2.10", SOCK_RAW, IPPROTO_ICMP);
            send_and_check(number, &rewrite, &modes[m], "2001:db8:a::10", SOCK_STREAM, IPPROTO_TCP);
            send_and_check(number, &rewrite, &modes[m], "2001:db8:a::10", SOCK_DGRAM, IPPROTO_UDP);
            hb_tunnels_release(tunnels, number);
        }
    }
}

/* Without a tunnel only the link header changes. */
static void test_l2(void **state)
{
    struct hb_rewrite rewrite = {
        .size = 14, .l2_size = 14, .family = 4, .forwarding = HB_FORWARDING_L2};
    struct hb_check_way way = {.to = address_of("2001:db8:a::10")};
    uint32_t number = hb_tunnels_claim(tunnels);
    char problem[200] = "";
    struct frame frame;
    int fd;

    (void)state;
    memcpy(rewrite.bytes, "\x02\x00\x00\x00\x00\x09\x02\x00\x00\x00\x00\x02\x08\x00", 14);
    assert_true(hb_tunnels_set(tunnels, number, out_ifindex, &rewrite, problem, sizeof(problem)));
    way.mark = hb_tunnels_mark(number);
    fd = hb_probe_socket_open(&way, SOCK_DGRAM, IPPROTO_UDP, 80);
    assert_int_equal(send(fd, "hello", 5, 0), 5);
    read_frame(&frame, rewrite.bytes);
    close(fd);
    assert_int_equal(frame.bytes[12] << 8 | frame.bytes[13], ETH_P_IPV6);
    assert_int_equal(frame.size, 14 + 40 + 8 + 5);
    hb_tunnels_release(tunnels, number);
}

/* A mark without a tunnel leads nowhere: no packet goes another way. */
static void test_unknown_marks_go_nowhere(void **state)
{
    struct hb_rewrite rewrite = make_rewrite(&modes[0], 4);
    struct hb_check_way way = {.to = address_of("192.0.2.10"), .mark = hb_tunnels_mark(60000)};
    uint32_t number = hb_tunnels_claim(tunnels);
    char problem[200] = "";
    struct frame frame;
    int fd = hb_probe_socket_open(&way, SOCK_DGRAM, IPPROTO_UDP, 80);

    (void)state;
    assert_true(fd >= 0);
    send(fd, "lost!", 5, 0);
    close(fd);
    assert_true(hb_tunnels_set(tunnels, number, out_ifindex, &rewrite, problem, sizeof(problem)));
    way.mark = hb_tunnels_mark(number);
    fd = hb_probe_socket_open(&way, SOCK_DGRAM, IPPROTO_UDP, 80);
    assert_int_equal(send(fd, "found", 5, 0), 5);
    close(fd);
    /* The first of the two that comes is the second. */
    read_frame(&frame, (const uint8_t *)TO_MAC);
    assert_memory_equal(frame.bytes + frame.size - 5, "found", 5);
    hb_tunnels_release(tunnels, number);
}

static void test_what_has_no_tunnel(void **state)
{
    static const uint8_t without[] = {
        HB_FORWARDING_L3DSR, HB_FORWARDING_NAT, HB_FORWARDING_FULL_NAT, 0, HB_FORWARDINGS, 255};
    uint32_t number = hb_tunnels_claim(tunnels);
    char problem[200];

    (void)state;
    for (size_t i = 0; i < sizeof(without); i++) {
        struct hb_rewrite rewrite = make_rewrite(&modes[0], 4);

        rewrite.forwarding = without[i];
        problem[0] = '\0';
        assert_false(
            hb_tunnels_set(tunnels, number, out_ifindex, &rewrite, problem, sizeof(problem)));
        assert_non_null(strstr(problem, "via: direct"));
    }
    hb_tunnels_release(tunnels, number);
}

static void test_only_one_at_a_time(void **state)
{
    char problem[200] = "";

    (void)state;
    assert_null(hb_tunnels_open(problem, sizeof(problem)));
    assert_non_null(strstr(problem, "does another halbach-control run here?"));
}

static int open_all(void **state)
{
    struct sockaddr_ll on = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    char problem[200] = "";

    (void)state;
    if (system("sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0 &&"
               "ip link set lo up &&"
               "ip link add probe0 type veth peer name probe1 &&"
               "ip addr add 198.51.100.10/24 dev probe0 &&"
               "ip addr add 2001:db8:1::10/64 dev probe0 nodad &&"
               "ip link set probe0 up && ip link set probe1 up &&"
               "ethtool -K probe0 tx off >/dev/null") != 0)
        return -1;
    out_ifindex = if_nametoindex("probe0");
    on.sll_ifindex = (int)if_nametoindex("probe1");
    wire = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
    if (wire < 0 || bind(wire, (struct sockaddr *)&on, sizeof(on)) < 0)
        return -1;
    tunnels = hb_tunnels_open(problem, sizeof(problem));
    if (tunnels == NULL)
        print_error("%s\n", problem);
    return tunnels != NULL ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    hb_tunnels_close(tunnels);
    close(wire);
    return system("! ip rule | grep -q fwmark && ! ip -6 rule | grep -q fwmark &&"
                  "! ip -br link | grep -q halbach");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_of_tunnel),     cmocka_unit_test(test_l2),
        cmocka_unit_test(test_unknown_marks_go_nowhere), cmocka_unit_test(test_what_has_no_tunnel),
        cmocka_unit_test(test_only_one_at_a_time),
    };

    if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0 || access("/dev/net/tun", R_OK | W_OK) < 0) {
        printf("skipped: needs root, a network namespace of its own and /dev/net/tun\n");
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, open_all, close_all);
}
