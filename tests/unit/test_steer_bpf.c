/* SPDX-License-Identifier: BSD-3-Clause */
/* The steering program packet by packet, and its loader on a veth pair in a namespace of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "bpf_run.h"
#include "halbach/protocol.h"
#include "steer.h"
#include "steer_maps.h"

#define VIP4   "192.0.2.10"
#define VIP6   "2001:db8:0:a::10"
#define OTHER4 "192.0.2.11"
#define OTHER6 "2001:db8:0:a::11"

static struct bpf_object *object;
static int program;

static int map_fd(const char *name)
{
    int fd = bpf_object__find_map_fd_by_name(object, name);

    assert_true(fd >= 0);
    return fd;
}

static struct hb_vip make_vip(const char *text)
{
    struct hb_vip vip = {.family = strchr(text, ':') ? HB_FAMILY_IPV6 : HB_FAMILY_IPV4};

    assert_int_equal(inet_pton(vip.family == 4 ? AF_INET : AF_INET6, text, vip.bytes), 1);
    return vip;
}

static void set_vip(const char *text)
{
    struct hb_vip vip = make_vip(text);
    struct hb_steer_vip key = {.family = vip.family};

    memcpy(key.bytes, vip.bytes, sizeof(key.bytes));
    assert_int_equal(bpf_map_update_elem(map_fd(HB_STEER_VIP_MAP), &key, &(uint8_t){1}, BPF_ANY),
                     0);
}

/* A prefix whose address is cut to its length. */
static void set_prefix(const char *text, uint8_t length)
{
    struct hb_vip vip = make_vip(text);
    struct hb_steer_prefix key = {.bits = 8u + length, .family = vip.family};

    memcpy(key.bytes, vip.bytes, sizeof(key.bytes));
    assert_int_equal(bpf_map_update_elem(map_fd(HB_STEER_PREFIX_MAP), &key, &(uint8_t){1}, BPF_ANY),
                     0);
}

/* ---- the program ---- */

struct row {
    const char *text;
    uint16_t tags[6]; /* EtherTypes of VLAN tags, outermost first */
    const char *source, *destination;
    uint8_t protocol;
    uint8_t payload[2]; /* its first bytes */
    uint8_t hop_limit;  /* 0: 64 */
    int to_vip;         /* 0: passed, 1: the dataplane's, -1: too many tags */
};

static const struct row rows[] = {
    {"IPv4 to a VIP", {0}, "198.51.100.1", VIP4, 17, {0}, 0, 1},
    {"IPv6 to a VIP", {0}, "2001:db8::1", VIP6, 17, {0}, 0, 1},
    {"IPv4 to another address", {0}, "198.51.100.1", OTHER4, 17, {0}, 0, 0},
    {"IPv6 to another address", {0}, "2001:db8::1", OTHER6, 17, {0}, 0, 0},
    {"from a VIP", {0}, VIP4, OTHER4, 17, {0}, 0, 0},
    {"IPv4 to the first address of a prefix", {0}, "198.51.100.1", "203.0.113.64", 17, {0}, 0, 1},
    {"IPv4 to its last one, VLAN", {0x8100}, "198.51.100.1", "203.0.113.127", 17, {0}, 0, 1},
    {"IPv4 below the prefix", {0}, "198.51.100.1", "203.0.113.63", 17, {0}, 0, 0},
    {"IPv4 above the prefix", {0}, "198.51.100.1", "203.0.113.128", 17, {0}, 0, 0},
    {"IPv6 to an address of a prefix", {0}, "2001:db8::1", "2001:db8:77:ffff::9", 17, {0}, 0, 1},
    {"IPv6 beside the prefix", {0}, "2001:db8::1", "2001:db8:78::", 17, {0}, 0, 0},
    {"the bits of an IPv4 prefix in IPv6", {0}, "2001:db8::1", "cb00:7140::", 17, {0}, 0, 0},
    {"IPv4 to a VIP, VLAN", {0x8100}, "198.51.100.1", VIP4, 17, {0}, 0, 1},
    {"IPv6 to a VIP, VLAN", {0x8100}, "2001:db8::1", VIP6, 17, {0}, 0, 1},
    {"IPv4 to a VIP, 802.1ad and VLAN", {0x88a8, 0x8100}, "198.51.100.1", VIP4, 17, {0}, 0, 1},
    {"IPv4 to another address, VLAN", {0x8100}, "198.51.100.1", OTHER4, 17, {0}, 0, 0},
    {"BL-36: three tags", {0x88a8, 0x8100, 0x8100}, "198.51.100.1", VIP4, 17, {0}, 0, -1},
    {"BL-36: five tags",
     {0x8100, 0x8100, 0x8100, 0x8100, 0x8100},
     "198.51.100.1",
     VIP4,
     17,
     {0},
     0,
     -1},
    {"ICMP to a VIP", {0}, "198.51.100.1", VIP4, 1, {3, 4}, 0, 1},
    {"ICMPv6 packet too big to a VIP", {0}, "2001:db8::1", VIP6, 58, {2, 0}, 255, 1},
    {"neighbour solicitation to a VIP", {0}, "2001:db8::1", VIP6, 58, {135, 0}, 255, 0},
    {"neighbour solicitation that was forwarded", {0}, "2001:db8::1", VIP6, 58, {135, 0}, 254, 1},
    {"neighbour solicitation, multicast",
     {0},
     "2001:db8::1",
     "ff02::1:ff00:10",
     58,
     {135, 0},
     255,
     0},
    {"echo request to a VIP", {0}, "2001:db8::1", VIP6, 58, {128, 0}, 255, 1},
};

static void build_row(const struct row *row, struct packet *packet)
{
    int six = strchr(row->destination, ':') != NULL;
    uint16_t ip_type = six ? 0x86dd : 0x0800;
    uint8_t payload[16] = {row->payload[0], row->payload[1]};
    uint8_t *ip;

    packet->size = 0;
    put_ethernet(packet, row->tags[0] ? row->tags[0] : ip_type);
    for (int i = 0; row->tags[i]; i++)
        put_vlan(packet, (uint16_t)(100 + i), row->tags[i + 1] ? row->tags[i + 1] : ip_type);
    if (six)
        ip = put_ipv6(packet, row->source, row->destination, row->protocol, 0, sizeof(payload));
    else
        ip = put_ipv4(packet, row->source, row->destination, row->protocol, 0, sizeof(payload));
    if (row->hop_limit)
        ip[7] = row->hop_limit;
    put_bytes(packet, payload, sizeof(payload));
}

static void check_run(const char *text, const struct packet *in, int verdict, uint32_t counter)
{
    uint64_t before = read_counter(map_fd(HB_STEER_COUNTER_MAP), counter);
    struct packet out;
    int got = run_program(program, in, &out);
    uint64_t after = read_counter(map_fd(HB_STEER_COUNTER_MAP), counter);

    if (got != verdict || after != before + 1 || out.size != in->size ||
        memcmp(out.bytes, in->bytes, in->size) != 0) {
        print_packet(text, in->bytes, in->size);
        fail_msg("%s: verdict %d instead of %d, counter %u rose by %d", text, got, verdict, counter,
                 (int)(after - before));
    }
}

static void check_rows(int vip_verdict, uint32_t vip_counter)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        struct packet packet;

        build_row(row, &packet);
        if (row->to_vip > 0)
            check_run(row->text, &packet, vip_verdict, vip_counter);
        else
            check_run(row->text, &packet, XDP_PASS, row->to_vip ? HB_STEER_TAGS : HB_STEER_PASSED);
    }
}

static void test_vip_packets_are_dropped_without_a_socket(void **state)
{
    (void)state;
    check_rows(XDP_DROP, HB_STEER_NO_SOCKET);
}

static void test_vip_packets_go_to_the_socket_of_their_queue(void **state)
{
    uint32_t queue = 0;
    int xsk = socket(AF_XDP, SOCK_RAW, 0);

    (void)state;
    if (xsk < 0) {
        printf("the kernel has no AF_XDP (%s)\n", strerror(errno));
        skip();
    }
    assert_int_equal(bpf_map_update_elem(map_fd(HB_STEER_QUEUE_MAP), &queue, &xsk, BPF_ANY), 0);
    check_rows(XDP_REDIRECT, HB_STEER_REDIRECTED);
    close(xsk);
    check_rows(XDP_DROP, HB_STEER_NO_SOCKET);
}

/* The kernel's test run takes no frame below 14 bytes, nor does a network. */
static void test_cut_packets_are_passed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        uint32_t tags = 0, header;
        struct packet packet;

        if (row->to_vip < 1)
            continue;
        while (row->tags[tags])
            tags++;
        header = 14 + 4 * tags + (strchr(row->destination, ':') ? 40 : 20);
        build_row(row, &packet);
        for (uint32_t size = packet.size; size >= 14; size--) {
            packet.size = size;
            if (size >= header)
                check_run(row->text, &packet, XDP_DROP, HB_STEER_NO_SOCKET);
            else
                check_run(row->text, &packet, XDP_PASS, HB_STEER_PASSED);
        }
    }
}

/* One packet by hand: its verdict alone. */
static int verdict_of(const char *source, const char *destination, uint8_t protocol, uint16_t port)
{
    struct packet packet = {0}, out;
    uint8_t l4[16] = {0, 99, (uint8_t)(port >> 8), (uint8_t)port};
    int six = strchr(destination, ':') != NULL;

    put_ethernet(&packet, six ? 0x86dd : 0x0800);
    if (six)
        put_ipv6(&packet, source, destination, protocol, 0, sizeof(l4));
    else
        put_ipv4(&packet, source, destination, protocol, 0, sizeof(l4));
    put_bytes(&packet, l4, sizeof(l4));
    return run_program(program, &packet, &out);
}

static void set_limit(uint64_t rate)
{
    int cpus = libbpf_num_possible_cpus();
    struct hb_steer_limit *values = calloc((size_t)cpus, sizeof(*values));

    for (int cpu = 0; cpu < cpus; cpu++)
        values[cpu].rate = rate;
    assert_int_equal(bpf_map_update_elem(map_fd(HB_STEER_LIMIT_MAP), &(uint32_t){0}, values, 0), 0);
    free(values);
}

/* One packet a second: of each class one passes, the next does not; a VIP's are not counted. */
static void test_the_way_to_the_kernel_is_limited(void **state)
{
    uint64_t limited = read_counter(map_fd(HB_STEER_COUNTER_MAP), HB_STEER_LIMITED);
    cpu_set_t cpu, before;

    (void)state;
    sched_getaffinity(0, sizeof(before), &before);
    CPU_ZERO(&cpu);
    CPU_SET(sched_getcpu(), &cpu);
    sched_setaffinity(0, sizeof(cpu), &cpu);
    set_limit(1);
    assert_int_equal(verdict_of("198.51.100.1", OTHER4, 17, 9), XDP_PASS);
    assert_int_equal(verdict_of("198.51.100.1", OTHER4, 17, 9), XDP_DROP);
    assert_int_equal(verdict_of("2001:db8::1", OTHER6, 6, 22), XDP_DROP);
    assert_int_equal(verdict_of("198.51.100.1", OTHER4, 6, 179), XDP_PASS); /* BGP */
    assert_int_equal(verdict_of("198.51.100.1", OTHER4, 6, 179), XDP_DROP);
    assert_int_equal(verdict_of("2001:db8::1", OTHER6, 17, 3784),
                     XDP_DROP);                                          /* BFD: the same class */
    assert_int_equal(verdict_of("198.51.100.1", VIP4, 17, 9), XDP_DROP); /* no socket */
    assert_int_equal(read_counter(map_fd(HB_STEER_COUNTER_MAP), HB_STEER_LIMITED), limited + 4);
    set_limit(0);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(verdict_of("198.51.100.1", OTHER4, 17, 9), XDP_PASS);
    sched_setaffinity(0, sizeof(before), &before);
}

static void test_other_protocols_are_passed(void **state)
{
    static const uint16_t types[] = {0x0806 /* ARP */, 0x88cc /* LLDP */, 0x8847 /* MPLS */, 0, 64};

    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct packet packet = {.size = 0};

        put_ethernet(&packet, types[i]);
        put_ipv4(&packet, "198.51.100.1", VIP4, 17, 0, 8);
        put_udp(&packet, 0);
        check_run("another EtherType", &packet, XDP_PASS, HB_STEER_PASSED);
    }
}

/* ---- the loader ---- */

static void run_command(const char *command)
{
    if (system(command) != 0)
        fail_msg("this failed: %s", command);
}

/* What net_af_xdp does with the path. Returns the program's descriptor. */
static int attach_like_dpdk(const char *ifname, const char *path)
{
    struct bpf_object *other = bpf_object__open_file(path, NULL);
    int fd;

    assert_non_null(other);
    assert_int_equal(bpf_object__load(other), 0);
    fd = dup(bpf_program__fd(bpf_object__next_program(other, NULL)));
    bpf_object__close(other);
    assert_int_equal(
        bpf_xdp_attach((int)if_nametoindex(ifname), fd, XDP_FLAGS_UPDATE_IF_NOEXIST, NULL), 0);
    return fd;
}

static uint32_t attached_id(const char *ifname)
{
    uint32_t id;

    assert_int_equal(bpf_xdp_query_id((int)if_nametoindex(ifname), 0, &id), 0);
    return id;
}

static int add_links(void **state)
{
    (void)state;
    return system(
        "ip link add hbt0 type veth peer name hbt1 && ip link set hbt0 up && ip link set hbt1 up");
}

static int remove_links(void **state)
{
    (void)state;
    return system("ip link del hbt0");
}

/* Whether the maps that the attached program uses have this VIP, or a prefix around it; found
 * without the code under test.
 */
static bool has_vip(const char *ifname, const char *text)
{
    struct bpf_prog_info info = {0};
    struct hb_vip vip = make_vip(text);
    struct hb_steer_vip key = {.family = vip.family};
    struct hb_steer_prefix prefix = {.bits = vip.family == 4 ? 8 + 32 : 8 + 128,
                                     .family = vip.family};
    uint32_t ids[8], size = sizeof(info);
    bool found = false;
    int fd = bpf_prog_get_fd_by_id(attached_id(ifname));

    memcpy(key.bytes, vip.bytes, sizeof(key.bytes));
    memcpy(prefix.bytes, vip.bytes, sizeof(prefix.bytes));
    info.map_ids = (uintptr_t)ids;
    info.nr_map_ids = 8;
    assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &size), 0);
    for (uint32_t i = 0; i < info.nr_map_ids; i++) {
        struct bpf_map_info map = {0};
        int map_fd = bpf_map_get_fd_by_id(ids[i]);
        uint8_t value;

        size = sizeof(map);
        assert_int_equal(bpf_obj_get_info_by_fd(map_fd, &map, &size), 0);
        if (strcmp(map.name, HB_STEER_VIP_MAP) == 0)
            found = found || bpf_map_lookup_elem(map_fd, &key, &value) == 0;
        if (strcmp(map.name, HB_STEER_PREFIX_MAP) == 0)
            found = found || bpf_map_lookup_elem(map_fd, &prefix, &value) == 0;
        close(map_fd);
    }
    close(fd);
    return found;
}

static void test_vips_follow_the_generation(void **state)
{
    const struct hb_vip first[] = {make_vip(VIP4), make_vip(VIP6)};
    const struct hb_vip second[] = {make_vip(VIP6), make_vip(OTHER4)};
    uint64_t counters[HB_STEER_COUNT];
    char problem[HB_TEXT_SIZE];
    struct hb_steer *steer;

    (void)state;
    assert_int_equal(hb_steer_prepare("hbt0", problem), 0);
    assert_null(hb_steer_open("hbt0", problem));
    assert_non_null(strstr(problem, "hbt0"));
    close(attach_like_dpdk("hbt0", hb_steer_object_path()));
    steer = hb_steer_open("hbt0", problem);
    assert_non_null(steer);
    assert_string_equal(hb_steer_mode(steer), "native");

    assert_int_equal(hb_steer_add(steer, first, 2), 0);
    assert_int_equal(hb_steer_add(steer, second, 2), 0);
    assert_true(has_vip("hbt0", VIP4) && has_vip("hbt0", VIP6) && has_vip("hbt0", OTHER4));
    assert_int_equal(hb_steer_keep_only(steer, second, 2), 0);
    assert_false(has_vip("hbt0", VIP4));
    assert_true(has_vip("hbt0", VIP6) && has_vip("hbt0", OTHER4));
    assert_int_equal(hb_steer_keep_only(steer, NULL, 0), 0);
    assert_false(has_vip("hbt0", VIP6) || has_vip("hbt0", OTHER4));
    assert_int_equal(hb_steer_read_counters(steer, counters), 0);
    assert_int_equal(counters[HB_STEER_REDIRECTED], 0);

    hb_steer_close(steer);
    assert_int_equal(attached_id("hbt0"), 0);
}

static struct hb_vip make_prefix(const char *text, uint8_t length)
{
    struct hb_vip vip = make_vip(text);

    vip.length = length;
    return vip;
}

/* Prefixes come and go as addresses do, and one that grows or shrinks is another one. */
static void test_prefixes_follow_the_generation(void **state)
{
    const struct hb_vip first[] = {make_prefix("203.0.113.64", 26), make_prefix(VIP4, 32),
                                   make_prefix("2001:db8:77::", 48)};
    const struct hb_vip second[] = {make_prefix("203.0.113.64", 27), make_prefix(VIP4, 32)};
    char problem[HB_TEXT_SIZE];
    struct hb_steer *steer;

    (void)state;
    assert_int_equal(hb_steer_prepare("hbt0", problem), 0);
    close(attach_like_dpdk("hbt0", hb_steer_object_path()));
    steer = hb_steer_open("hbt0", problem);
    assert_non_null(steer);
    assert_int_equal(hb_steer_add(steer, first, 3), 0);
    assert_true(has_vip("hbt0", "203.0.113.127") && has_vip("hbt0", "2001:db8:77:1::1"));
    assert_true(has_vip("hbt0", VIP4));
    assert_false(has_vip("hbt0", "203.0.113.128"));
    assert_int_equal(hb_steer_add(steer, second, 2), 0);
    assert_int_equal(hb_steer_keep_only(steer, second, 2), 0);
    assert_true(has_vip("hbt0", "203.0.113.95") && has_vip("hbt0", VIP4));
    assert_false(has_vip("hbt0", "203.0.113.96") || has_vip("hbt0", "2001:db8:77:1::1"));
    assert_int_equal(hb_steer_keep_only(steer, NULL, 0), 0);
    assert_false(has_vip("hbt0", "203.0.113.64"));
    hb_steer_close(steer);
}

static void test_full_vip_map_is_an_error(void **state)
{
    struct hb_vip *vips = calloc(HB_STEER_VIPS_MAX + 1, sizeof(*vips));
    char problem[HB_TEXT_SIZE];
    struct hb_steer *steer;

    (void)state;
    for (uint32_t i = 0; i <= HB_STEER_VIPS_MAX; i++) {
        vips[i].family = HB_FAMILY_IPV6;
        memcpy(vips[i].bytes, &i, sizeof(i));
    }
    assert_int_equal(hb_steer_prepare("hbt0", problem), 0);
    close(attach_like_dpdk("hbt0", hb_steer_object_path()));
    steer = hb_steer_open("hbt0", problem);
    assert_non_null(steer);
    assert_int_equal(hb_steer_add(steer, vips, HB_STEER_VIPS_MAX), 0);
    assert_int_equal(hb_steer_add(steer, vips + HB_STEER_VIPS_MAX, 1), -E2BIG);
    assert_int_equal(hb_steer_keep_only(steer, vips + 7, 1), 0);
    assert_int_equal(hb_steer_keep_only(steer, NULL, 0), 0);
    hb_steer_close(steer);
    free(vips);
}

/* The left-over of a killed dataplane goes, its VIPs stay: see steer.h. */
static void test_left_over_is_replaced_and_its_vips_are_kept(void **state)
{
    const struct hb_vip vips[] = {make_vip(VIP4), make_vip(VIP6), make_prefix("203.0.113.64", 26)};
    char problem[HB_TEXT_SIZE];
    struct hb_steer *steer;
    pid_t child = fork();
    int status;

    (void)state;
    if (child == 0) {
        if (hb_steer_prepare("hbt0", problem) != 0)
            _exit(1);
        attach_like_dpdk("hbt0", hb_steer_object_path());
        steer = hb_steer_open("hbt0", problem);
        _exit(!steer || hb_steer_add(steer, vips, 3) != 0); /* no close: as if killed */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_not_equal(attached_id("hbt0"), 0);
    assert_true(has_vip("hbt0", VIP4));

    assert_int_equal(hb_steer_prepare("hbt0", problem), 0);
    assert_int_equal(attached_id("hbt0"), 0);
    close(attach_like_dpdk("hbt0", hb_steer_object_path()));
    assert_false(has_vip("hbt0", VIP4));
    steer = hb_steer_open("hbt0", problem);
    assert_non_null(steer);
    assert_true(has_vip("hbt0", VIP4) && has_vip("hbt0", VIP6));
    assert_true(has_vip("hbt0", "203.0.113.100"));
    hb_steer_close(steer);
}

/* Another process: it has none of our claims, and exec closes the sockets it got from us. */
static pid_t start_prepare(void)
{
    char *const arguments[] = {"test_steer_bpf", "--prepare", "hbt0", NULL};
    pid_t child = fork();

    if (child == 0) {
        execv("/proc/self/exe", arguments);
        _exit(9);
    }
    return child;
}

static void test_second_dataplane_is_refused(void **state)
{
    char problem[HB_TEXT_SIZE] = "";
    pid_t child;
    int status;

    (void)state;
    assert_int_equal(hb_steer_prepare("hbt0", problem), 0);
    close(attach_like_dpdk("hbt0", hb_steer_object_path()));
    child = start_prepare();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), EBUSY);
    assert_int_not_equal(attached_id("hbt0"), 0);

    hb_steer_close(hb_steer_open("hbt0", problem));
    assert_int_equal(attached_id("hbt0"), 0);
}

static void test_dying_dataplane_is_waited_for(void **state)
{
    int ready[2], status;
    pid_t old, successor;
    char byte;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    old = fork();
    if (old == 0) {
        char problem[HB_TEXT_SIZE];

        if (hb_steer_prepare("hbt0", problem) == 0 && write(ready[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    successor = start_prepare();
    kill(old, SIGKILL);
    assert_int_equal(waitpid(successor, &status, 0), successor);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(waitpid(old, &status, 0), old);
    close(ready[0]);
    close(ready[1]);
}

/* BL-110: never replaced; the text says what is there, where, and how it is detached. */
static void test_foreign_program_is_never_touched(void **state)
{
    struct bpf_insn pass[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = XDP_PASS},
        {.code = BPF_JMP | BPF_EXIT},
    };
    int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "somebody_else", "GPL", pass, 2, NULL);
    int ifindex = (int)if_nametoindex("hbt0");
    char problem[HB_TEXT_SIZE] = "", id[32];
    struct hb_steer *steer;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(bpf_xdp_attach(ifindex, fd, XDP_FLAGS_SKB_MODE, NULL), 0);
    snprintf(id, sizeof(id), "id %u", attached_id("hbt0"));
    assert_int_equal(hb_steer_prepare("hbt0", problem), -EBUSY);
    assert_non_null(strstr(problem, "somebody_else"));
    assert_non_null(strstr(problem, id));
    assert_non_null(strstr(problem, "'ip link set dev hbt0 xdpgeneric off'"));
    assert_null(hb_steer_open("hbt0", problem));
    assert_non_null(strstr(problem, "somebody_else"));
    assert_int_not_equal(attached_id("hbt0"), 0);
    run_command("ip link set dev hbt0 xdpgeneric off");

    /* Ours is detached by somebody and theirs put in its place: we notice, and leave it alone. */
    assert_int_equal(hb_steer_prepare("hbt0", problem), 0);
    close(attach_like_dpdk("hbt0", hb_steer_object_path()));
    steer = hb_steer_open("hbt0", problem);
    assert_non_null(steer);
    assert_true(hb_steer_attached(steer));
    run_command("ip link set dev hbt0 xdp off");
    assert_false(hb_steer_attached(steer));
    assert_int_equal(bpf_xdp_attach(ifindex, fd, XDP_FLAGS_DRV_MODE, NULL), 0);
    assert_false(hb_steer_attached(steer));
    hb_steer_close(steer);
    assert_int_not_equal(attached_id("hbt0"), 0);
    close(fd);
}

static void test_missing_interface_is_named(void **state)
{
    char problem[HB_TEXT_SIZE] = "";

    (void)state;
    assert_int_equal(hb_steer_prepare("nosuch0", problem), -ENODEV);
    assert_non_null(strstr(problem, "nosuch0"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vip_packets_are_dropped_without_a_socket),
        cmocka_unit_test(test_vip_packets_go_to_the_socket_of_their_queue),
        cmocka_unit_test(test_cut_packets_are_passed),
        cmocka_unit_test(test_other_protocols_are_passed),
        cmocka_unit_test(test_the_way_to_the_kernel_is_limited),
        cmocka_unit_test_setup_teardown(test_vips_follow_the_generation, add_links, remove_links),
        cmocka_unit_test_setup_teardown(test_prefixes_follow_the_generation, add_links,
                                        remove_links),
        cmocka_unit_test_setup_teardown(test_full_vip_map_is_an_error, add_links, remove_links),
        cmocka_unit_test_setup_teardown(test_left_over_is_replaced_and_its_vips_are_kept, add_links,
                                        remove_links),
        cmocka_unit_test_setup_teardown(test_second_dataplane_is_refused, add_links, remove_links),
        cmocka_unit_test_setup_teardown(test_dying_dataplane_is_waited_for, add_links,
                                        remove_links),
        cmocka_unit_test_setup_teardown(test_foreign_program_is_never_touched, add_links,
                                        remove_links),
        cmocka_unit_test(test_missing_interface_is_named),
    };

    if (argc == 3 && strcmp(argv[1], "--prepare") == 0) {
        char problem[HB_TEXT_SIZE];

        return -hb_steer_prepare(argv[2], problem);
    }
    object = bpf_object__open_file(hb_steer_object_path(), NULL);
    if (!object)
        return 1;
    program = load_program_or_skip(object);
    set_prefix("203.0.113.64", 26);
    set_prefix("2001:db8:77::", 48);
    set_vip(VIP4);
    set_vip(VIP6);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
