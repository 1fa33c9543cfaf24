/* SPDX-License-Identifier: BSD-3-Clause */
/* What the dataplane sends, by every forwarding mode, through the decapsulation program: the packet
 * that the client sent comes out. The frames are those of the dataplane's own tests
 * (tests/packets/wrap.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/bpf.h>

#include "bpf_run.h"
#include "decap.skel.h"
#include "decap_maps.h"
#include "wrap.h"

static struct bpf_object *object;
static int program;

static int map_fd(const char *name)
{
    int fd = bpf_object__find_map_fd_by_name(object, name);

    assert_true(fd >= 0);
    return fd;
}

static struct hb_decap_address address_of(const char *text)
{
    struct hb_decap_address address = {.family = strchr(text, ':') ? 6 : 4};

    if (inet_pton(address.family == 4 ? AF_INET : AF_INET6, text, address.bytes) != 1)
        abort();
    return address;
}

static void set_prefix(const char *map_name, const char *text, uint32_t length)
{
    struct hb_decap_address address = address_of(text);
    struct hb_decap_prefix key = {.bits = 8 + length, .family = address.family};

    memcpy(key.bytes, address.bytes, sizeof(key.bytes));
    if (bpf_map_update_elem(map_fd(map_name), &key, &(uint8_t){1}, BPF_ANY) != 0)
        abort();
}

static void set_mark(const char *host, uint32_t dscp, const char *vip)
{
    struct hb_decap_mark mark = {.host = address_of(host), .dscp = dscp};
    struct hb_decap_address address = address_of(vip);

    if (bpf_map_update_elem(map_fd(HB_DECAP_MARK_MAP), &mark, &address, BPF_ANY) != 0)
        abort();
}

static void set_tunnels(uint32_t tunnels)
{
    struct hb_decap_settings settings = {.tunnels = tunnels,
                                         .gue_port = htons(HB_DECAP_GUE_PORT),
                                         .vxlan_port = htons(HB_DECAP_VXLAN_PORT)};

    if (bpf_map_update_elem(map_fd(HB_DECAP_SETTINGS_MAP), &(uint32_t){0}, &settings, BPF_ANY) != 0)
        abort();
}

/* All tunnels over both families. */
#define KINDS 10

static struct wrap kind(uint32_t number)
{
    return (struct wrap){.forwarding = (uint8_t)(1 + number / 2),
                         .family = number % 2 ? 6 : 4,
                         .number = 1,
                         .checksum = true,
                         .label = 0x12345,
                         .source_port = 50000};
}

static struct frame run(const struct frame *in, int *verdict)
{
    struct frame out = {0};
    LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = in->bytes, .data_size_in = in->length,
                .data_out = out.bytes, .data_size_out = sizeof(out.bytes), .repeat = 1);
    int err = bpf_prog_test_run_opts(program, &opts);

    if (err)
        fail_msg("running the program on %u bytes fails: %s", in->length, strerror(-err));
    out.length = opts.data_size_out;
    *verdict = (int)opts.retval;
    return out;
}

/* Runs the program on `in`; what comes out must be `want`, and the counter must rise. */
static void expect(const char *text, const struct frame *in, const struct frame *want,
                   uint32_t counter)
{
    uint64_t before[HB_DECAP_COUNT];
    struct frame out;
    int verdict;

    for (uint32_t i = 0; i < HB_DECAP_COUNT; i++)
        before[i] = read_counter(map_fd(HB_DECAP_COUNTER_MAP), i);
    out = run(in, &verdict);
    if (verdict != (counter == HB_DECAP_ECN_DROPPED ? XDP_DROP : XDP_PASS))
        fail_msg("%s: verdict %d", text, verdict);
    if (want && (out.length != want->length || memcmp(out.bytes, want->bytes, want->length) != 0)) {
        print_packet("in", in->bytes, in->length);
        print_packet("out", out.bytes, out.length);
        print_packet("wanted", want->bytes, want->length);
        fail_msg("%s: wrong packet out", text);
    }
    for (uint32_t i = 0; i < HB_DECAP_COUNT; i++) {
        uint64_t rise = read_counter(map_fd(HB_DECAP_COUNTER_MAP), i) - before[i];

        if (rise != (i == counter))
            fail_msg("%s: counter %u rose by %d instead of counter %u", text, i, (int)rise,
                     counter);
    }
}

/* The client's packet behind the link header of the tunnel packet. */
static struct frame unwrapped(const struct frame *in, const struct frame *wrapped)
{
    struct frame want = {.length = wrapped->l3 + in->ip_length, .l3 = wrapped->l3};

    memcpy(want.bytes, wrapped->bytes, want.l3);
    memcpy(want.bytes + want.l3 - 2, in->family == 6 ? "\x86\xdd" : "\x08\x00", 2);
    memcpy(want.bytes + want.l3, in->bytes + in->l3, in->ip_length);
    return want;
}

static void test_every_tunnel_is_opened(void **state)
{
    const struct frame frames[] = {
        TCP4(),
        TCP4(.fragment = DF, .tos = 0xb9),
        UDP4(.payload = 333),
        TCP4(.flags = 16, .payload = 1399, .options = 8),
        TCP6(.tos = 0x2a),
        UDP6(.payload = 1200),
        UDP4(.payload = 40, .fragment = MF), /* the client's own fragment */
    };

    (void)state;
    for (uint32_t number = 0; number < KINDS; number++) {
        for (uint32_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
            struct wrap wrap = kind(number);

            for (wrap.tags = 0; wrap.tags < 2; wrap.tags++) {
                struct frame wrapped = wrap_frame(&frames[i], &wrap);
                struct frame want = unwrapped(&frames[i], &wrapped);

                expect(wrap_name(&wrap), &wrapped, &want, HB_DECAP_DECAPSULATED);
            }
        }
    }
}

/* A spread source is one of a prefix; one next to it is a stranger. */
static void test_sources_by_prefix(void **state)
{
    struct frame in = TCP4();

    (void)state;
    for (uint64_t source = 0; source < 128; source++) {
        struct wrap wrap = kind(source % 2 ? 6 : 0); /* GRE, IPIP */
        struct frame wrapped, want;

        wrap.spread = 7;
        wrap.source = source;
        wrapped = wrap_frame(&in, &wrap);
        want = unwrapped(&in, &wrapped);
        expect("inside the prefix", &wrapped, &want, HB_DECAP_DECAPSULATED);
        wrapped.bytes[IP4_SOURCE + 3] &= 0x7f;
        if (wrapped.bytes[IP4_SOURCE + 3] != 10)
            expect("outside the prefix", &wrapped, &wrapped, HB_DECAP_NOT_SOURCE);
    }
}

static void change_prefix(const char *text, uint32_t length, bool add)
{
    struct hb_decap_address address = address_of(text);
    struct hb_decap_prefix key = {.bits = 8 + length, .family = address.family};
    int fd = map_fd(HB_DECAP_VIP_MAP);

    memcpy(key.bytes, address.bytes, sizeof(key.bytes));
    if (add)
        set_prefix(HB_DECAP_VIP_MAP, text, length);
    else
        assert_int_equal(bpf_map_delete_elem(fd, &key), 0);
}

/* VIPs by prefix, for every tunnel: its ends are inside, their neighbours are not; a prefix of one
 * family says nothing about the other. */
static void test_vips_by_prefix(void **state)
{
    static const struct {
        const char *destination;
        bool inside;
    } rows[] = {
        {"203.0.113.63", false},  {"203.0.113.64", true},         {"203.0.113.100", true},
        {"203.0.113.127", true},  {"203.0.113.128", false},       {"192.0.2.10", true},
        {"2001:db8:0:b::", true}, {"2001:db8:0:b:ffff::9", true}, {"2001:db8:0:c::", false},
        {"cb00:7140::", false},
    };

    (void)state;
    change_prefix("203.0.113.64", 26, true);
    change_prefix("203.0.113.100", 32, true); /* an address within a prefix */
    change_prefix("2001:db8:0:b::", 64, true);
    for (uint32_t number = 0; number < KINDS; number++) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            struct wrap wrap = kind(number);
            struct frame in = strchr(rows[i].destination, ':')
                                  ? TCP6(.destination = rows[i].destination)
                                  : TCP4(.destination = rows[i].destination);
            struct frame wrapped = wrap_frame(&in, &wrap), want = unwrapped(&in, &wrapped);

            expect(rows[i].destination, &wrapped, rows[i].inside ? &want : &wrapped,
                   rows[i].inside ? HB_DECAP_DECAPSULATED : HB_DECAP_NOT_VIP);
        }
    }
    change_prefix("203.0.113.64", 26, false);
    change_prefix("203.0.113.100", 32, false);
    change_prefix("2001:db8:0:b::", 64, false);
}

/* RFC 6040, section 4.2, for every tunnel. */
static void test_congestion_marks_are_carried_over(void **state)
{
    static const int table[4][4] = {
        /* by the inner mark; outer: 0 to 3 */
        {0, 0, 0, -1},
        {1, 1, 1, 3},
        {2, 1, 2, 3},
        {3, 3, 3, 3},
    };

    (void)state;
    for (uint32_t number = 0; number < KINDS; number++) {
        for (uint32_t marks = 0; marks < 32; marks++) {
            uint8_t inner = marks & 3, outer = marks >> 2 & 3;
            struct frame in = marks < 16 ? TCP4(.tos = 0xb8 | inner) : TCP6(.tos = 0xb8 | inner);
            struct wrap wrap = kind(number);
            struct frame wrapped = wrap_frame(&in, &wrap), want;
            int merged = table[inner][outer];

            if (wrap.family == 4)
                wrapped = fix4(poke8(wrapped, IP4_TOS, 0xb8 | outer));
            else
                wrapped.bytes[L3 + 1] = (uint8_t)((wrapped.bytes[L3 + 1] & 0xcf) | outer << 4);
            if (merged < 0) {
                expect(wrap_name(&wrap), &wrapped, NULL, HB_DECAP_ECN_DROPPED);
                continue;
            }
            in = marks < 16 ? TCP4(.tos = (uint8_t)(0xb8 | merged))
                            : TCP6(.tos = (uint8_t)(0xb8 | merged));
            want = unwrapped(&in, &wrapped);
            expect(wrap_name(&wrap), &wrapped, &want, HB_DECAP_DECAPSULATED);
        }
    }
}

/* Cut anywhere: passed as it is. */
static void test_cut_packets_are_passed(void **state)
{
    struct frame in = TCP4(.payload = 8);

    (void)state;
    for (uint32_t number = 0; number < KINDS; number++) {
        struct wrap wrap = kind(number);
        struct frame whole = wrap_frame(&in, &wrap);
        uint32_t ip = L3 + (wrap.family == 6 ? 40 : 20);
        /* From here on it is known to be ours. */
        uint32_t known = ip + (wrap.forwarding == HB_FORWARDING_GRE    ? 4
                               : wrap.forwarding == HB_FORWARDING_IPIP ? 0
                                                                       : 8);

        for (uint32_t length = 14; length < whole.length; length++) {
            struct frame part = cut(whole, length);

            expect(wrap_name(&wrap), &part, &part,
                   length >= known ? HB_DECAP_MALFORMED : HB_DECAP_PASSED);
        }
    }
}

/* Fields between the outer and the inner header. */
static void test_other_tunnels_are_passed(void **state)
{
    static const struct {
        uint32_t kind, at; /* behind the outer IP header */
        uint8_t value;
        uint32_t counter;
    } rows[] = {
        {2, 8, 0x20, HB_DECAP_MALFORMED},  /* GUE: control message */
        {2, 8, 0x01, HB_DECAP_MALFORMED},  /* options */
        {2, 8, 0x80, HB_DECAP_MALFORMED},  /* variant 2 */
        {2, 9, 17, HB_DECAP_MALFORMED},    /* not an IP packet */
        {2, 10, 0x80, HB_DECAP_MALFORMED}, /* a flag */
        {2, 11, 1, HB_DECAP_MALFORMED},
        {2, 3, 0xc1, HB_DECAP_PASSED},    /* port 6081 */
        {4, 8, 0x95, HB_DECAP_MALFORMED}, /* GUE variant 1 with neither version */
        {4, 8, 0x55, HB_DECAP_MALFORMED},
        {2, 5, 0xff, HB_DECAP_MALFORMED}, /* UDP length beyond the packet */
        {2, 5, 12, HB_DECAP_MALFORMED},   /* nothing inside */
        {2, 5, 20, HB_DECAP_MALFORMED},   /* less than the inner packet */
        {6, 0, 0x80, HB_DECAP_PASSED},    /* GRE with a checksum, a key, a version, another type */
        {6, 0, 0x20, HB_DECAP_PASSED},
        {6, 1, 0x01, HB_DECAP_PASSED},
        {6, 2, 0x65, HB_DECAP_PASSED},
        {8, 8, 0x00, HB_DECAP_MALFORMED}, /* VXLAN without a VNI */
        {8, 28, 0x06, HB_DECAP_PASSED},   /* not an IP packet inside */
        {8, 3, 0xb6, HB_DECAP_PASSED},    /* port 4790 */
    };
    struct frame in = TCP4(.payload = 8);

    (void)state;
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (uint32_t six = 0; six < 2; six++) {
            struct wrap wrap = kind(rows[i].kind + six);
            struct frame wrapped = wrap_frame(&in, &wrap);
            char text[64];

            snprintf(text, sizeof(text), "row %u over IPv%u", i, wrap.family);
            wrapped.bytes[L3 + (six ? 40 : 20) + rows[i].at] = rows[i].value;
            expect(text, &wrapped, &wrapped, rows[i].counter);
        }
    }
}

static void test_tunnels_that_are_not_wanted(void **state)
{
    static const uint32_t bits[] = {HB_DECAP_TUNNEL_IPIP, HB_DECAP_TUNNEL_GUE, HB_DECAP_TUNNEL_GUE,
                                    HB_DECAP_TUNNEL_GRE, HB_DECAP_TUNNEL_VXLAN};
    struct frame in = TCP6();

    (void)state;
    for (uint32_t number = 0; number < KINDS; number++) {
        struct wrap wrap = kind(number);
        struct frame wrapped = wrap_frame(&in, &wrap), want = unwrapped(&in, &wrapped);

        set_tunnels(HB_DECAP_TUNNEL_ALL & ~bits[number / 2]);
        expect(wrap_name(&wrap), &wrapped, &wrapped, HB_DECAP_PASSED);
        set_tunnels(bits[number / 2]);
        expect(wrap_name(&wrap), &wrapped, &want, HB_DECAP_DECAPSULATED);
    }
    set_tunnels(HB_DECAP_TUNNEL_ALL);
}

static void test_strangers_are_passed(void **state)
{
    (void)state;
    for (uint32_t number = 0; number < KINDS; number++) {
        struct wrap wrap = kind(number);
        struct frame in = TCP4(.destination = "192.0.2.99"), mine = TCP4();
        struct frame wrapped = wrap_frame(&in, &wrap);

        expect("not a VIP", &wrapped, &wrapped, HB_DECAP_NOT_VIP);
        wrapped = wrap_frame(&mine, &wrap);
        wrapped.bytes[wrap.family == 6 ? IP6_SOURCE + 4 : IP4_SOURCE + 1] ^= 1;
        expect("not a source", &wrapped, &wrapped, HB_DECAP_NOT_SOURCE);
    }
}

/* ---- L3DSR ---- */

/* The client's packet with DSCP 0: the mark was the balancer's. */
static struct frame restored(const struct frame *in, const struct frame *marked)
{
    struct frame want = *in, all = unwrapped(in, marked);

    if (in->family == 4)
        want = fix4(poke8(want, IP4_TOS, in->tos & 3));
    else
        want = poke16(want, L3, (uint16_t)(0x6000 | (in->tos & 3) << 4));
    memcpy(all.bytes + all.l3, want.bytes + want.l3, want.ip_length);
    return all;
}

static void test_marked_packets_get_their_vip_back(void **state)
{
    struct frame frames[] = {
        fix_l4(TCP4()),
        fix_l4(TCP4(.tos = 0xb9, .payload = 7)),
        fix_l4(UDP4(.payload = 100, .fragment = DF)),
        poke16(UDP4(.payload = 3), L4_OF_4 + 6, 0), /* no checksum: stays so */
        fix_l4(TCP4(.options = 12)),
        fix_l4(TCP6(.tos = 0x2a, .payload = 1200)),
        fix_l4(UDP6(.payload = 9)),
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
        struct wrap wrap = {.forwarding = HB_FORWARDING_L3DSR,
                            .family = frames[i].family,
                            .number = 1,
                            .dscp = frames[i].family == 4 ? 10 : 63};

        for (wrap.tags = 0; wrap.tags < 2; wrap.tags++) {
            struct frame marked = wrap_frame(&frames[i], &wrap);
            struct frame want = restored(&frames[i], &marked);

            expect("marked", &marked, &want, HB_DECAP_RESTORED);
        }
        wrap.tags = 0;
        wrap.dscp = 12;
        frames[i] = wrap_frame(&frames[i], &wrap);
        expect("another DSCP", &frames[i], &frames[i], HB_DECAP_PASSED);
        wrap.dscp = frames[i].family == 4 ? 10 : 63;
        wrap.number = 2;
        frames[i] = wrap_frame(&frames[i], &wrap);
        expect("another host's address", &frames[i], &frames[i], HB_DECAP_PASSED);
    }
}

/* All values of a word of the packet: no sum is off at its ends. */
static void test_marked_checksums(void **state)
{
    struct wrap wrap = {.forwarding = HB_FORWARDING_L3DSR, .family = 4, .number = 1, .dscp = 10};

    (void)state;
    for (uint32_t word = 0; word < 65536; word += 3) {
        struct frame in = fix4(poke16(UDP4(.payload = 2), L3 + 4, (uint16_t)word)), marked, want;
        struct frame out;
        int verdict;

        in = fix_l4(poke16(in, L4_OF_4 + 8, (uint16_t)word));
        marked = wrap_frame(&in, &wrap);
        want = restored(&in, &marked);
        out = run(&marked, &verdict);
        assert_int_equal(out.length, want.length);
        assert_memory_equal(out.bytes, want.bytes, want.length);
    }
}

/* Later fragments have no layer above to be mended; the first one has. */
static void test_marked_fragments(void **state)
{
    struct wrap wrap = {.forwarding = HB_FORWARDING_L3DSR, .family = 4, .number = 1, .dscp = 10};
    struct frame first = fix_l4(UDP4(.payload = 32)), later = UDP4(.payload = 32), marked, want;

    (void)state;
    marked = fix4(poke16(wrap_frame(&first, &wrap), IP4_FRAGMENT, MF));
    first = fix4(poke16(first, IP4_FRAGMENT, MF));
    want = restored(&first, &marked);
    expect("first fragment", &marked, &want, HB_DECAP_RESTORED);

    later = fix4(poke16(later, IP4_FRAGMENT, 5));
    marked = poke_address(poke8(later, IP4_TOS, 10 << 2), IP4_DESTINATION, "198.51.100.11");
    marked = fix4(marked);
    memcpy(marked.bytes, (uint8_t[]){2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0x10}, 12);
    want = restored(&later, &marked);
    expect("later fragment", &marked, &want, HB_DECAP_RESTORED);
}

/* BL-13: of the copied DSCP of a tunnel packet no mark is made: a balancer's tunnel comes first. */
static void test_tunnels_come_before_marks(void **state)
{
    struct frame in = TCP4(.tos = 10 << 2);

    (void)state;
    for (uint32_t number = 0; number < KINDS; number += 2) {
        struct wrap wrap = kind(number);
        struct frame wrapped = wrap_frame(&in, &wrap), want = unwrapped(&in, &wrapped);

        expect(wrap_name(&wrap), &wrapped, &want, HB_DECAP_DECAPSULATED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_tunnel_is_opened),
        cmocka_unit_test(test_sources_by_prefix),
        cmocka_unit_test(test_vips_by_prefix),
        cmocka_unit_test(test_congestion_marks_are_carried_over),
        cmocka_unit_test(test_cut_packets_are_passed),
        cmocka_unit_test(test_other_tunnels_are_passed),
        cmocka_unit_test(test_tunnels_that_are_not_wanted),
        cmocka_unit_test(test_strangers_are_passed),
        cmocka_unit_test(test_marked_packets_get_their_vip_back),
        cmocka_unit_test(test_marked_checksums),
        cmocka_unit_test(test_marked_fragments),
        cmocka_unit_test(test_tunnels_come_before_marks),
    };
    size_t size;
    const void *bytes = decap__elf_bytes(&size);

    object = bpf_object__open_mem(bytes, size, NULL);
    if (!object)
        return 1;
    program = load_program_or_skip(object);
    set_prefix(HB_DECAP_SOURCE_MAP, "198.51.100.10", 32);
    set_prefix(HB_DECAP_SOURCE_MAP, "198.51.100.128", 25);
    set_prefix(HB_DECAP_SOURCE_MAP, "2001:db8:0:1::10", 128);
    set_prefix(HB_DECAP_VIP_MAP, "192.0.2.10", 32);
    set_prefix(HB_DECAP_VIP_MAP, "2001:db8:0:a::", 64);
    set_mark("198.51.100.11", 10, "192.0.2.10");
    set_mark("2001:db8:0:b::11", 63, "2001:db8:0:a::10");
    set_tunnels(HB_DECAP_TUNNEL_ALL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
