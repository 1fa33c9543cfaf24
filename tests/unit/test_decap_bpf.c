/* SPDX-License-Identifier: BSD-3-Clause */
/* The decapsulation program packet by packet: what goes in, the verdict, what comes out, the
 * counter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/bpf.h>

#include "bpf_run.h"
#include "decap.skel.h"
#include "decap_maps.h"

#define BALANCER4 "198.51.100.10"
#define BALANCER6 "2001:db8:0:1::10"
#define HOST4     "198.51.100.11"
#define HOST6     "2001:db8:0:b::12"
#define CLIENT4   "203.0.113.7"
#define CLIENT6   "2001:db8:0:c::7"
#define VIP4      "192.0.2.10"
#define VIP6      "2001:db8:0:a::10"

#define UDP_DATA 12

enum {
    NOT_ECT = 0,
    ECT1 = 1,
    ECT0 = 2,
    CE = 3,
    DSCP = 0xb8, /* "expedited forwarding": must survive in the inner header */
};

static struct bpf_object *object;
static int program;

static int map_fd(const char *name)
{
    int fd = bpf_object__find_map_fd_by_name(object, name);

    assert_true(fd >= 0);
    return fd;
}

static void set_address(const char *map_name, const char *text)
{
    struct hb_decap_prefix key = {.family = strchr(text, ':') ? 6 : 4};

    key.bits = key.family == 4 ? 8 + 32 : 8 + 128;

    if (inet_pton(key.family == 4 ? AF_INET : AF_INET6, text, key.bytes) != 1)
        abort();
    if (bpf_map_update_elem(map_fd(map_name), &key, &(uint8_t){1}, BPF_ANY) != 0)
        abort();
}

/* A tunnel packet by its parts; zeros are the plain case. */
struct shape {
    uint16_t tags[3];         /* EtherTypes of VLAN tags, outermost first */
    const char *source, *vip; /* outer source and inner destination; their families say the kind */
    uint8_t outer_tos, tos;   /* traffic classes, ECN included */
    uint8_t options;          /* bytes of options in an outer IPv4 header */
    uint8_t inner_options;    /* the same in an inner IPv4 header */
    uint8_t padding;          /* bytes behind the packet, as Ethernet pads short frames */
};

struct offsets {
    uint32_t outer, inner; /* where the headers start */
};

static int is_six(const char *address)
{
    return strchr(address, ':') != NULL;
}

static void put_link(struct packet *packet, const struct shape *shape, uint16_t ip_type)
{
    put_ethernet(packet, shape->tags[0] ? shape->tags[0] : ip_type);
    for (int i = 0; shape->tags[i]; i++)
        put_vlan(packet, (uint16_t)(0xa123 + i), shape->tags[i + 1] ? shape->tags[i + 1] : ip_type);
}

static void put_options(struct packet *packet, uint8_t *ip, uint8_t size)
{
    for (int i = 0; i < size; i++)
        put_bytes(packet, &(uint8_t){1} /* no operation */, 1);
    ip[0] = (uint8_t)(0x45 + size / 4);
    set_ipv4_checksum(ip);
}

static void put_inner(struct packet *packet, const struct shape *shape, uint8_t tos)
{
    uint32_t size = 8 + UDP_DATA;

    if (is_six(shape->vip)) {
        put_ipv6(packet, CLIENT6, shape->vip, 17, tos, size);
    } else {
        uint8_t *ip = put_ipv4(packet, CLIENT4, shape->vip, 17, tos, shape->inner_options + size);

        put_options(packet, ip, shape->inner_options);
    }
    put_udp(packet, UDP_DATA);
}

static void put_padding(struct packet *packet, uint8_t size)
{
    for (int i = 0; i < size; i++)
        put_bytes(packet, &(uint8_t){0xee}, 1);
}

static struct offsets build_tunnel(const struct shape *shape, struct packet *packet)
{
    uint32_t size = (is_six(shape->vip) ? 40 : 20 + shape->inner_options) + 8 + UDP_DATA;
    uint8_t protocol = is_six(shape->vip) ? 41 : 4;
    struct offsets at;

    packet->size = 0;
    put_link(packet, shape, is_six(shape->source) ? 0x86dd : 0x0800);
    at.outer = packet->size;
    if (is_six(shape->source)) {
        put_ipv6(packet, shape->source, HOST6, protocol, shape->outer_tos, size);
    } else {
        uint8_t *ip = put_ipv4(packet, shape->source, HOST4, protocol, shape->outer_tos,
                               shape->options + size);

        put_options(packet, ip, shape->options);
    }
    at.inner = packet->size;
    put_inner(packet, shape, shape->tos);
    put_padding(packet, shape->padding);
    return at;
}

/* What must come out: the same link header with the inner EtherType, then the inner packet. */
static void build_unwrapped(const struct shape *shape, uint8_t tos, struct packet *packet)
{
    packet->size = 0;
    put_link(packet, shape, is_six(shape->vip) ? 0x86dd : 0x0800);
    put_inner(packet, shape, tos);
    put_padding(packet, shape->padding);
}

static void check_run(const char *text, const struct packet *in, int verdict,
                      const struct packet *want, uint32_t counter)
{
    uint64_t before[HB_DECAP_COUNT];
    struct packet out;
    int got;

    for (uint32_t i = 0; i < HB_DECAP_COUNT; i++)
        before[i] = read_counter(map_fd(HB_DECAP_COUNTER_MAP), i);
    got = run_program(program, in, &out);
    if (got != verdict)
        fail_msg("%s: verdict %d instead of %d", text, got, verdict);
    if (want && (out.size != want->size || memcmp(out.bytes, want->bytes, want->size) != 0)) {
        print_packet("in", in->bytes, in->size);
        print_packet("out", out.bytes, out.size);
        print_packet("wanted", want->bytes, want->size);
        fail_msg("%s: wrong packet out", text);
    }
    for (uint32_t i = 0; i < HB_DECAP_COUNT; i++) {
        uint64_t rise = read_counter(map_fd(HB_DECAP_COUNTER_MAP), i) - before[i];

        if (rise != (i == counter))
            fail_msg("%s: counter %u rose by %d", text, i, (int)rise);
    }
}

static void check_unwrapped(const char *text, const struct shape *shape, uint8_t tos)
{
    struct packet in, want;

    build_tunnel(shape, &in);
    build_unwrapped(shape, tos, &want);
    check_run(text, &in, XDP_PASS, &want, HB_DECAP_DECAPSULATED);
}

static void check_untouched(const char *text, const struct packet *in, uint32_t counter)
{
    check_run(text, in, XDP_PASS, in, counter);
}

/* The four kinds, named as "inner in outer". */
static const struct kind {
    const char *text;
    const char *source, *vip;
} kinds[] = {
    {"IPv4 in IPv4", BALANCER4, VIP4},
    {"IPv6 in IPv4", BALANCER4, VIP6},
    {"IPv4 in IPv6", BALANCER6, VIP4},
    {"IPv6 in IPv6", BALANCER6, VIP6},
};

#define FOR_EACH_KIND(kind) for (const struct kind *kind = kinds; kind < kinds + 4; kind++)

static void test_all_kinds_are_unwrapped(void **state)
{
    (void)state;
    FOR_EACH_KIND(kind)
    {
        struct shape plain = {.source = kind->source, .vip = kind->vip, .tos = DSCP};
        struct shape vlan = {.tags = {0x8100}, .source = kind->source, .vip = kind->vip};
        struct shape service = {.tags = {0x88a8}, .source = kind->source, .vip = kind->vip};
        struct shape padded = {.source = kind->source, .vip = kind->vip, .padding = 9};

        check_unwrapped(kind->text, &plain, DSCP);
        check_unwrapped(kind->text, &vlan, 0);
        check_unwrapped(kind->text, &service, 0);
        check_unwrapped(kind->text, &padded, 0);
    }
}

static void test_options_are_cut_or_kept(void **state)
{
    (void)state;
    for (uint8_t size = 0; size <= 40; size += 4) {
        struct shape outer4 = {.source = BALANCER4, .vip = VIP4, .options = size};
        struct shape outer6 = {.source = BALANCER4, .vip = VIP6, .options = size};
        struct shape tagged = {.tags = {0x8100}, .source = BALANCER4, .vip = VIP4, .options = size};
        struct shape inner = {
            .source = BALANCER6, .vip = VIP4, .inner_options = size, .tos = ECT0, .outer_tos = CE};

        check_unwrapped("options outside", &outer4, 0);
        check_unwrapped("options outside, IPv6 inside", &outer6, 0);
        check_unwrapped("options outside, VLAN", &tagged, 0);
        check_unwrapped("options inside", &inner, CE);
    }
}

/* RFC 6040, section 4.2: figure 4, row by row. */
static void test_congestion_marks_are_carried_over(void **state)
{
    static const int table[4][4] = {
        /* outer: NOT_ECT, ECT1, ECT0, CE */
        [NOT_ECT] = {NOT_ECT, NOT_ECT, NOT_ECT, -1},
        [ECT1] = {ECT1, ECT1, ECT1, CE},
        [ECT0] = {ECT0, ECT1, ECT0, CE},
        [CE] = {CE, CE, CE, CE},
    };

    (void)state;
    FOR_EACH_KIND(kind)
    {
        for (uint8_t inner = 0; inner < 4; inner++) {
            for (uint8_t outer = 0; outer < 4; outer++) {
                struct shape shape = {.source = kind->source,
                                      .vip = kind->vip,
                                      .outer_tos = outer,
                                      .tos = (uint8_t)(DSCP | inner)};
                struct packet in;

                if (table[inner][outer] >= 0) {
                    check_unwrapped(kind->text, &shape, (uint8_t)(DSCP | table[inner][outer]));
                    continue;
                }
                build_tunnel(&shape, &in);
                check_run(kind->text, &in, XDP_DROP, NULL, HB_DECAP_ECN_DROPPED);
            }
        }
    }
}

/* Every value of the checksum field's neighbourhood: the incremental update must agree with the
 * full sum. */
static void test_checksum_update_is_exact(void **state)
{
    struct shape shape = {.source = BALANCER4, .vip = VIP4, .outer_tos = CE, .tos = ECT0};

    (void)state;
    for (uint32_t id = 0; id < 65536; id += 5) {
        struct packet in, want, out;
        struct offsets at = build_tunnel(&shape, &in);

        build_unwrapped(&shape, CE, &want);
        put_be16(in.bytes + at.inner + 4, (uint16_t)id);
        set_ipv4_checksum(in.bytes + at.inner);
        put_be16(want.bytes + 14 + 4, (uint16_t)id);
        set_ipv4_checksum(want.bytes + 14);
        assert_int_equal(run_program(program, &in, &out), XDP_PASS);
        assert_int_equal(out.size, want.size);
        assert_memory_equal(out.bytes, want.bytes, want.size);
    }
}

static void test_strangers_are_passed(void **state)
{
    static const struct {
        const char *text, *source, *vip;
        uint32_t counter;
    } rows[] = {
        {"IPv4, wrong source", "198.51.100.99", VIP4, HB_DECAP_NOT_SOURCE},
        {"IPv6, wrong source", "2001:db8:0:1::99", VIP4, HB_DECAP_NOT_SOURCE},
        {"a VIP as source", VIP4, VIP4, HB_DECAP_NOT_SOURCE},
        {"IPv4 in IPv4, wrong VIP", BALANCER4, "192.0.2.99", HB_DECAP_NOT_VIP},
        {"IPv6 in IPv4, wrong VIP", BALANCER4, "2001:db8:0:a::99", HB_DECAP_NOT_VIP},
        {"IPv4 in IPv6, wrong VIP", BALANCER6, "192.0.2.99", HB_DECAP_NOT_VIP},
        {"IPv6 in IPv6, wrong VIP", BALANCER6, "2001:db8:0:a::99", HB_DECAP_NOT_VIP},
        {"a source as VIP", BALANCER4, BALANCER4, HB_DECAP_NOT_VIP},
        /* The same bits in the other family are another address. */
        {"IPv6 with the bits of a VIP of IPv4", BALANCER4, "c000:020a::", HB_DECAP_NOT_VIP},
        {"IPv6 with the bits of a source of IPv4", "c633:640a::", VIP4, HB_DECAP_NOT_SOURCE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct shape shape = {.source = rows[i].source, .vip = rows[i].vip, .outer_tos = CE};
        struct packet in;

        build_tunnel(&shape, &in);
        check_untouched(rows[i].text, &in, rows[i].counter);
    }
}

/* Below the tunnel's protocol field nobody can tell what it is: passed. From there on: malformed.
 */
static void test_cut_packets_are_passed(void **state)
{
    (void)state;
    FOR_EACH_KIND(kind)
    {
        struct shape shape = {.source = kind->source, .vip = kind->vip, .outer_tos = CE};
        struct packet in;
        struct offsets at = build_tunnel(&shape, &in);

        for (uint32_t size = in.size - 1; size >= 14; size--) {
            in.size = size;
            check_untouched(kind->text, &in,
                            size >= at.inner ? HB_DECAP_MALFORMED : HB_DECAP_PASSED);
        }
    }
}

/* The frame is whole, a length field is not. */
static void test_lying_lengths_are_passed(void **state)
{
    (void)state;
    FOR_EACH_KIND(kind)
    {
        struct shape shape = {.source = kind->source, .vip = kind->vip, .padding = 4};
        struct packet good, in;
        struct offsets at = build_tunnel(&shape, &good);
        uint32_t outer_field = at.outer + (is_six(kind->source) ? 4 : 2);
        uint32_t inner_field = at.inner + (is_six(kind->vip) ? 4 : 2);
        uint32_t outer_least = is_six(kind->source) ? 0 : 20;
        uint32_t inner_size = good.size - 4 - at.inner;
        uint32_t inner_most = inner_size - (is_six(kind->vip) ? 40 : 0);
        uint32_t outer_most = outer_least + inner_size;

        for (uint32_t length = 0; length <= 65535; length += length < 200 ? 1 : 65335) {
            in = good;
            put_be16(in.bytes + outer_field, (uint16_t)length);
            if (length < outer_most || length > outer_most + 4)
                check_untouched("outer length", &in, HB_DECAP_MALFORMED);
            in = good;
            put_be16(in.bytes + inner_field, (uint16_t)length);
            if (length > inner_most || (!is_six(kind->vip) && length < 20))
                check_untouched("inner length", &in, HB_DECAP_MALFORMED);
        }
    }
}

static void test_wrong_header_fields_are_passed(void **state)
{
    (void)state;
    FOR_EACH_KIND(kind)
    {
        struct shape shape = {.source = kind->source, .vip = kind->vip};
        struct packet good, in;
        struct offsets at = build_tunnel(&shape, &good);

        for (uint32_t first = 0; first < 256; first++) {
            int version = is_six(kind->source) ? 6 : 4, inner_version = is_six(kind->vip) ? 6 : 4;

            in = good;
            in.bytes[at.outer] = (uint8_t)first;
            if ((int)(first >> 4) != version || (version == 4 && (first & 15) < 5))
                check_untouched("outer version or IHL", &in, HB_DECAP_MALFORMED);
            in = good;
            in.bytes[at.inner] = (uint8_t)first;
            if ((int)(first >> 4) != inner_version || (inner_version == 4 && (first & 15) < 5))
                check_untouched("inner version or IHL", &in, HB_DECAP_MALFORMED);
        }
    }
}

static void test_outer_fragments_are_passed(void **state)
{
    static const uint16_t fields[] = {0x2000 /* more */, 0x0001, 0x1fff, 0x2010, 0x6000};
    struct shape shape = {.source = BALANCER4, .vip = VIP4};
    struct shape shape6 = {.source = BALANCER6, .vip = VIP4};
    struct packet in;
    struct offsets at;

    (void)state;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        at = build_tunnel(&shape, &in);
        put_be16(in.bytes + at.outer + 6, fields[i]);
        set_ipv4_checksum(in.bytes + at.outer);
        check_untouched("fragment", &in, HB_DECAP_MALFORMED);
    }
    /* "Don't fragment" alone is no fragment. */
    at = build_tunnel(&shape, &in);
    put_be16(in.bytes + at.outer + 6, 0x4000);
    check_run("don't fragment", &in, XDP_PASS, NULL, HB_DECAP_DECAPSULATED);

    /* IPv6: the fragment header's first byte names the protocol. */
    at = build_tunnel(&shape6, &in);
    in.bytes[at.outer + 6] = 44;
    in.bytes[at.inner] = 4;
    check_untouched("IPv6 fragment of a tunnel packet", &in, HB_DECAP_MALFORMED);
    in.bytes[at.inner] = 17;
    check_untouched("IPv6 fragment of something else", &in, HB_DECAP_PASSED);
}

static void test_everything_else_is_passed(void **state)
{
    static const uint8_t protocols[] = {1, 6, 17, 47, 50, 58, 0, 43, 60, 255};
    struct packet in;

    (void)state;
    for (size_t i = 0; i < sizeof(protocols); i++) {
        for (int six = 0; six < 2; six++) {
            struct shape shape = {.source = six ? BALANCER6 : BALANCER4, .vip = VIP4};
            struct offsets at = build_tunnel(&shape, &in);

            in.bytes[at.outer + (six ? 6 : 9)] = protocols[i];
            check_untouched("another protocol", &in, HB_DECAP_PASSED);
        }
    }
    in.size = 0;
    put_ethernet(&in, 0x0806);
    put_padding(&in, 46);
    check_untouched("ARP", &in, HB_DECAP_PASSED);

    build_tunnel(&(struct shape){.tags = {0x88a8, 0x8100}, .source = BALANCER4, .vip = VIP4}, &in);
    check_untouched("two VLAN tags", &in, HB_DECAP_PASSED);
}

/* A tunnel packet in a tunnel packet loses its outer header only if the inner one is a VIP's. */
static void test_only_one_header_is_cut(void **state)
{
    struct packet in = {.size = 0}, want = {.size = 0};

    (void)state;
    put_ethernet(&in, 0x0800);
    put_ipv4(&in, BALANCER4, HOST4, 4, 0, 20 + 20 + 8);
    put_ipv4(&in, BALANCER4, VIP4, 4, 0, 20 + 8);
    put_ipv4(&in, CLIENT4, VIP4, 17, 0, 8);
    put_udp(&in, 0);
    put_ethernet(&want, 0x0800);
    put_bytes(&want, in.bytes + 34, in.size - 34);
    check_run("tunnel in tunnel", &in, XDP_PASS, &want, HB_DECAP_DECAPSULATED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_kinds_are_unwrapped),
        cmocka_unit_test(test_options_are_cut_or_kept),
        cmocka_unit_test(test_congestion_marks_are_carried_over),
        cmocka_unit_test(test_checksum_update_is_exact),
        cmocka_unit_test(test_strangers_are_passed),
        cmocka_unit_test(test_cut_packets_are_passed),
        cmocka_unit_test(test_lying_lengths_are_passed),
        cmocka_unit_test(test_wrong_header_fields_are_passed),
        cmocka_unit_test(test_outer_fragments_are_passed),
        cmocka_unit_test(test_everything_else_is_passed),
        cmocka_unit_test(test_only_one_header_is_cut),
    };
    size_t size;
    const void *bytes = decap__elf_bytes(&size);

    object = bpf_object__open_mem(bytes, size, NULL);
    if (!object)
        return 1;
    program = load_program_or_skip(object);
    set_address(HB_DECAP_SOURCE_MAP, BALANCER4);
    set_address(HB_DECAP_SOURCE_MAP, BALANCER6);
    set_address(HB_DECAP_VIP_MAP, VIP4);
    set_address(HB_DECAP_VIP_MAP, VIP6);
    if (bpf_map_update_elem(map_fd(HB_DECAP_SETTINGS_MAP), &(uint32_t){0},
                            &(struct hb_decap_settings){.tunnels = HB_DECAP_TUNNEL_ALL}, BPF_ANY))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
