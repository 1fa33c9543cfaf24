/* SPDX-License-Identifier: BSD-3-Clause */
/* decap_program.c on a veth pair in a namespace of its own, with real packets on the wire. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "bpf_run.h"
#include "decap.skel.h"
#include "decap_program.h"

#define BALANCER4 "198.51.100.10"
#define BALANCER6 "2001:db8:0:1::10"
#define HOST4     "198.51.100.11"
#define HOST6     "2001:db8:0:1::11"
#define CLIENT4   "203.0.113.7"
#define CLIENT6   "2001:db8:0:c::7"
#define VIP4      "192.0.2.10"
#define VIP6      "2001:db8:0:a::10"

#define DEADLINE_MS 5000

static struct hb_decap_prefix address_of(const char *text)
{
    struct hb_decap_prefix address = {.family = strchr(text, ':') ? 6 : 4};

    address.bits = address.family == 4 ? 8 + 32 : 8 + 128;
    if (inet_pton(address.family == 4 ? AF_INET : AF_INET6, text, address.bytes) != 1)
        abort();
    return address;
}

/* Attaches for up to two VIPs and the two balancers; what must go well goes well. */
static struct hb_decap_outcome attach(const char *vip, const char *other_vip,
                                      enum hb_decap_wish wish)
{
    struct hb_decap_prefix vips[2] = {address_of(vip), address_of(other_vip ? other_vip : vip)};
    struct hb_decap_prefix sources[2] = {address_of(BALANCER4), address_of(BALANCER6)};
    struct hb_decap_wanted wanted = {.vips = {vips, other_vip ? 2 : 1},
                                     .sources = {sources, 2},
                                     .settings = {.tunnels = HB_DECAP_TUNNEL_ALL}};
    struct hb_decap_outcome outcome;
    char problem[HB_XDP_TEXT_SIZE] = "";

    if (hb_decap_attach("hbt0", &wanted, wish, &outcome, problem))
        fail_msg("attach: %s", problem);
    return outcome;
}

static int fail_to_attach(const char *ifname, enum hb_decap_wish wish, char *problem)
{
    struct hb_decap_prefix one = address_of(VIP4);
    struct hb_decap_wanted wanted = {.vips = {&one, 1}, .sources = {&one, 1}};
    struct hb_decap_outcome outcome;

    problem[0] = 0;
    return hb_decap_attach(ifname, &wanted, wish, &outcome, problem);
}

static struct hb_decap_status read_status(void)
{
    struct hb_decap_status status;
    char problem[HB_XDP_TEXT_SIZE] = "";

    if (hb_decap_read("hbt0", &status, problem) != 1)
        fail_msg("status: %s", problem);
    return status;
}

static void check_list(const struct hb_decap_prefixes *list, const char *first, const char *second)
{
    struct hb_decap_prefix want = address_of(first);

    assert_int_equal(list->count, second ? 2 : 1);
    assert_memory_equal(&list->list[0], &want, sizeof(want));
    if (second) {
        want = address_of(second);
        assert_memory_equal(&list->list[1], &want, sizeof(want));
    }
}

static int add_links(void **state)
{
    (void)state;
    return system("ip link set lo up && ip link add hbt0 type veth peer name hbt1 &&"
                  "ip link set hbt0 up && ip link set hbt1 up &&"
                  "ip link set hbt0 address 02:00:00:00:00:01 &&"
                  "ip addr add " HOST4 "/24 dev hbt0 && ip addr add " HOST6 "/64 dev hbt0 nodad &&"
                  "ip addr replace " VIP4 "/32 dev lo && ip addr replace " VIP6
                  "/128 dev lo nodad &&"
                  "ip route add 203.0.113.0/24 via " BALANCER4 " &&"
                  "ip route add 2001:db8:0:c::/64 via " BALANCER6);
}

static int remove_links(void **state)
{
    (void)state;
    return system("ip link del hbt0");
}

/* ---- attach, change, detach ---- */

static void test_attach_update_detach(void **state)
{
    struct hb_decap_status status;
    char problem[HB_XDP_TEXT_SIZE];
    uint32_t id;

    (void)state;
    assert_int_equal(hb_decap_read("hbt0", &status, problem), 0);
    assert_int_equal(hb_decap_detach("hbt0", problem), 0);

    assert_int_equal(attach(VIP4, NULL, HB_DECAP_ANY_MODE).change, HB_DECAP_ATTACHED);
    status = read_status();
    id = status.program_id;
    assert_int_equal(status.mode, HB_XDP_NATIVE);
    check_list(&status.now.vips, VIP4, NULL);
    check_list(&status.now.sources, BALANCER4, BALANCER6);
    hb_decap_status_free(&status);

    assert_int_equal(attach(VIP6, "192.0.2.99", HB_DECAP_ANY_MODE).change, HB_DECAP_UPDATED);
    status = read_status();
    assert_int_equal(status.program_id, id);
    check_list(&status.now.vips, "192.0.2.99", VIP6);
    hb_decap_status_free(&status);

    assert_int_equal(hb_decap_detach("hbt0", problem), 1);
    assert_int_equal(hb_decap_read("hbt0", &status, problem), 0);
}

static void test_generic_mode_is_had_and_told(void **state)
{
    struct hb_decap_outcome outcome = attach(VIP4, NULL, HB_DECAP_GENERIC_ONLY);
    char problem[HB_XDP_TEXT_SIZE];

    (void)state;
    assert_int_equal(outcome.mode, HB_XDP_GENERIC);
    assert_string_equal(outcome.note, "");
    assert_int_equal(fail_to_attach("hbt0", HB_DECAP_NATIVE_ONLY, problem), -EBUSY);
    assert_non_null(strstr(problem, "hbt0 decapsulates in generic mode already"));
    assert_int_equal(hb_decap_detach("hbt0", problem), 1);
}

/* BL-110: no silent fallback. The loopback device has no native XDP. */
static void test_fallback_is_explained(void **state)
{
    struct hb_decap_prefix one = address_of(VIP4);
    struct hb_decap_wanted wanted = {.vips = {&one, 1}, .sources = {&one, 1}};
    struct hb_decap_outcome outcome;
    char problem[HB_XDP_TEXT_SIZE];

    (void)state;
    assert_int_equal(fail_to_attach("lo", HB_DECAP_NATIVE_ONLY, problem), -EOPNOTSUPP);
    assert_non_null(strstr(problem, "the driver of lo has no native XDP"));
    assert_int_equal(hb_decap_attach("lo", &wanted, HB_DECAP_ANY_MODE, &outcome, problem), 0);
    assert_int_equal(outcome.mode, HB_XDP_GENERIC);
    assert_non_null(strstr(outcome.note, "the driver of lo has no native XDP"));
    assert_int_equal(hb_decap_detach("lo", problem), 1);
}

/* BL-110: veth takes single-buffer programs up to about 3,500 bytes only; ours copes with any. */
static void test_jumbo_frames_keep_native_mode(void **state)
{
    char problem[HB_XDP_TEXT_SIZE];

    (void)state;
    assert_int_equal(system("ip link set hbt0 mtu 9000 && ip link set hbt1 mtu 9000"), 0);
    assert_int_equal(attach(VIP4, NULL, HB_DECAP_ANY_MODE).mode, HB_XDP_NATIVE);
    assert_int_equal(hb_decap_detach("hbt0", problem), 1);
}

static int load_pass_program(const char *name)
{
    struct bpf_insn pass[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = XDP_PASS},
        {.code = BPF_JMP | BPF_EXIT},
    };
    int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, name, "GPL", pass, 2, NULL);

    assert_true(fd >= 0);
    return fd;
}

static void test_foreign_program_is_never_touched(void **state)
{
    int fd = load_pass_program("somebody_else");
    int ifindex = (int)if_nametoindex("hbt0");
    char problem[HB_XDP_TEXT_SIZE];
    struct hb_decap_status status;
    uint32_t id, id_after;

    (void)state;
    assert_int_equal(bpf_xdp_attach(ifindex, fd, XDP_FLAGS_DRV_MODE, NULL), 0);
    assert_int_equal(bpf_xdp_query_id(ifindex, 0, &id), 0);
    assert_int_equal(fail_to_attach("hbt0", HB_DECAP_ANY_MODE, problem), -EBUSY);
    assert_non_null(strstr(problem, "somebody_else"));
    assert_non_null(strstr(problem, "'ip link set dev hbt0 xdpdrv off'"));
    assert_int_equal(hb_decap_detach("hbt0", problem), -EBUSY);
    assert_int_equal(hb_decap_read("hbt0", &status, problem), -EBUSY);
    assert_int_equal(bpf_xdp_query_id(ifindex, 0, &id_after), 0);
    assert_int_equal(id, id_after);
    close(fd);
}

static void test_other_version_is_exchanged(void **state)
{
    int fd = load_pass_program(HB_DECAP_PROGRAM);
    char problem[HB_XDP_TEXT_SIZE];
    struct hb_decap_status status;

    (void)state;
    assert_int_equal(bpf_xdp_attach((int)if_nametoindex("hbt0"), fd, XDP_FLAGS_DRV_MODE, NULL), 0);
    assert_int_equal(hb_decap_read("hbt0", &status, problem), -ENOENT);
    assert_non_null(strstr(problem, "another version"));
    assert_int_equal(attach(VIP4, NULL, HB_DECAP_ANY_MODE).change, HB_DECAP_REPLACED);
    status = read_status();
    check_list(&status.now.vips, VIP4, NULL);
    hb_decap_status_free(&status);
    assert_int_equal(hb_decap_detach("hbt0", problem), 1);
    close(fd);
}

static void test_missing_interface_is_named(void **state)
{
    char problem[HB_XDP_TEXT_SIZE];

    (void)state;
    assert_int_equal(fail_to_attach("nosuch0", HB_DECAP_ANY_MODE, problem), -ENODEV);
    assert_non_null(strstr(problem, "nosuch0"));
}

/* Looks at the VIP map all the time and counts how often the address that stays is missing. */
struct watch {
    int map_fd;
    atomic_bool stop;
    uint64_t looks, misses;
};

static void *watch_vip(void *argument)
{
    struct watch *watch = argument;
    struct hb_decap_prefix vip = address_of(VIP4);
    uint8_t value;

    while (!atomic_load(&watch->stop)) {
        watch->looks++;
        watch->misses += bpf_map_lookup_elem(watch->map_fd, &vip, &value) != 0;
    }
    return NULL;
}

static void test_what_stays_is_never_missing(void **state)
{
    struct hb_xdp_program program;
    struct watch watch = {0};
    char problem[HB_XDP_TEXT_SIZE];
    pthread_t thread;

    (void)state;
    attach(VIP4, VIP6, HB_DECAP_ANY_MODE);
    assert_int_equal(hb_xdp_find("hbt0", HB_DECAP_PROGRAM, &program, problem), 1);
    watch.map_fd = hb_xdp_open_map(&program, HB_DECAP_VIP_MAP, problem);
    assert_true(watch.map_fd >= 0);
    assert_int_equal(pthread_create(&thread, NULL, watch_vip, &watch), 0);
    for (int i = 0; i < 20; i++) {
        attach(VIP4, i % 2 ? "192.0.2.98" : "192.0.2.99", HB_DECAP_ANY_MODE);
        attach(VIP4, NULL, HB_DECAP_ANY_MODE);
    }
    atomic_store(&watch.stop, true);
    pthread_join(thread, NULL);
    assert_true(watch.looks > 0);
    assert_int_equal(watch.misses, 0);
    close(watch.map_fd);
    hb_xdp_release(&program);
    assert_int_equal(hb_decap_detach("hbt0", problem), 1);
}

/* ---- real packets ---- */

static void put_tunnel(struct packet *packet, const char *source, const char *vip)
{
    int six = strchr(source, ':') != NULL, inner_six = strchr(vip, ':') != NULL;
    uint8_t protocol = inner_six ? 41 : 4;
    uint32_t inner_size = (inner_six ? 40 : 20) + 8 + 4;
    uint8_t *ip;

    packet->size = 0;
    put_ethernet(packet, six ? 0x86dd : 0x0800);
    /* put_ethernet's first address is the destination: hbt0's. */
    if (six)
        put_ipv6(packet, source, HOST6, protocol, 0, inner_size);
    else
        put_ipv4(packet, source, HOST4, protocol, 0, inner_size);
    if (inner_six)
        ip = put_ipv6(packet, CLIENT6, vip, 17, 0, 8 + 4);
    else
        ip = put_ipv4(packet, CLIENT4, vip, 17, 0, 8 + 4);
    put_udp(packet, 4);
    if (inner_six) { /* UDP over IPv6 needs a checksum (RFC 8200, section 8.1) */
        uint32_t sum = 17 + 12;

        for (uint32_t i = 8; i < 40 + 12; i += 2)
            sum += (uint32_t)ip[i] << 8 | ip[i + 1];
        while (sum >> 16)
            sum = (sum & 0xffff) + (sum >> 16);
        put_be16(ip + 40 + 6, (uint16_t)~sum);
    }
}

static int open_server(const char *vip)
{
    struct sockaddr_in6 name6 = {.sin6_family = AF_INET6, .sin6_port = htons(53)};
    struct sockaddr_in name4 = {.sin_family = AF_INET, .sin_port = htons(53)};
    int six = strchr(vip, ':') != NULL;
    int fd = socket(six ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);

    inet_pton(AF_INET6, vip, &name6.sin6_addr);
    inet_pton(AF_INET, vip, &name4.sin_addr);
    assert_int_equal(six ? bind(fd, (struct sockaddr *)&name6, sizeof(name6))
                         : bind(fd, (struct sockaddr *)&name4, sizeof(name4)),
                     0);
    return fd;
}

static void send_frame(const struct packet *packet)
{
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex("hbt1")};
    int fd = socket(AF_PACKET, SOCK_RAW, 0);

    assert_true(fd >= 0);
    assert_int_equal(sendto(fd, packet->bytes, packet->size, 0, (struct sockaddr *)&to, sizeof(to)),
                     packet->size);
    close(fd);
}

/* A server on the VIP gets the datagram of a client, as if no balancer were there. */
static void check_delivery(const char *source, const char *vip)
{
    struct packet packet;
    struct sockaddr_storage from = {0};
    socklen_t size = sizeof(from);
    char data[16], text[INET6_ADDRSTRLEN];
    int server = open_server(vip);
    struct pollfd wait = {.fd = server, .events = POLLIN};

    put_tunnel(&packet, source, vip);
    send_frame(&packet);
    if (poll(&wait, 1, DEADLINE_MS) != 1)
        fail_msg("from %s to %s: nothing arrived", source, vip);
    assert_int_equal(recvfrom(server, data, sizeof(data), 0, (struct sockaddr *)&from, &size), 4);
    assert_memory_equal(data, "\0\1\2\3", 4);
    if (from.ss_family == AF_INET)
        inet_ntop(AF_INET, &((struct sockaddr_in *)&from)->sin_addr, text, sizeof(text));
    else
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&from)->sin6_addr, text, sizeof(text));
    assert_string_equal(text, from.ss_family == AF_INET ? CLIENT4 : CLIENT6);
    close(server);
}

static void check_real_packets(enum hb_decap_wish wish)
{
    struct hb_decap_status status;
    char problem[HB_XDP_TEXT_SIZE];

    attach(VIP4, VIP6, wish);
    check_delivery(BALANCER4, VIP4);
    check_delivery(BALANCER4, VIP6);
    check_delivery(BALANCER6, VIP4);
    check_delivery(BALANCER6, VIP6);
    status = read_status();
    assert_int_equal(status.counters[HB_DECAP_DECAPSULATED], 4);
    assert_int_equal(status.counters[HB_DECAP_MALFORMED], 0);
    hb_decap_status_free(&status);
    assert_int_equal(hb_decap_detach("hbt0", problem), 1);
}

static void test_real_packets_native(void **state)
{
    (void)state;
    check_real_packets(HB_DECAP_NATIVE_ONLY);
}

static void test_real_packets_generic(void **state)
{
    (void)state;
    check_real_packets(HB_DECAP_GENERIC_ONLY);
}

#define ON_LINKS(test) cmocka_unit_test_setup_teardown(test, add_links, remove_links)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_LINKS(test_attach_update_detach),
        ON_LINKS(test_generic_mode_is_had_and_told),
        ON_LINKS(test_fallback_is_explained),
        ON_LINKS(test_jumbo_frames_keep_native_mode),
        ON_LINKS(test_foreign_program_is_never_touched),
        ON_LINKS(test_other_version_is_exchanged),
        cmocka_unit_test(test_missing_interface_is_named),
        ON_LINKS(test_what_stays_is_never_missing),
        ON_LINKS(test_real_packets_native),
        ON_LINKS(test_real_packets_generic),
    };
    size_t size;
    const void *bytes = decap__elf_bytes(&size);
    struct bpf_object *object = bpf_object__open_mem(bytes, size, NULL);

    if (!object)
        return 1;
    load_program_or_skip(object);
    bpf_object__close(object);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
