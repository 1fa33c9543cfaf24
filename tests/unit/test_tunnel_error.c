/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP errors about tunnel packets, in every mode and at every length of the quote. The tunnel
 * packets are those that the packet tests demand of the dataplane. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tunnel_error.h"
#include "wrap.h"

/* Modes, outer and inner families; ipip and gre with a spread source as well. */
#define KINDS 28

struct kind {
    struct wrap wrap;
    struct frame inner, sent;
    struct hb_rewrite rewrite;
    uint32_t outer; /* size of the outer IP header */
    uint32_t shim;  /* and of what is behind it in front of the client's packet */
};

static struct hb_rewrite rewrite_of(const struct wrap *wrap)
{
    struct hb_rewrite rewrite = {.l2_size = 14,
                                 .family = wrap->family,
                                 .forwarding = wrap->forwarding,
                                 .spread = wrap->spread};

    rewrite.size = (uint8_t)write_wrap(rewrite.bytes, wrap);
    return rewrite;
}

static struct kind kind_of(uint32_t number)
{
    static const uint8_t modes[] = {HB_FORWARDING_IPIP, HB_FORWARDING_GUE,   HB_FORWARDING_GUE1,
                                    HB_FORWARDING_GRE,  HB_FORWARDING_VXLAN, HB_FORWARDING_IPIP,
                                    HB_FORWARDING_GRE};
    struct kind kind = {.wrap = {.forwarding = modes[number / 4],
                                 .family = number % 2 ? 6 : 4,
                                 .number = 1,
                                 .source_port = 50000,
                                 .spread = number >= 20 ? 7 : 0,
                                 .source = number >= 20 ? 77 : 0}};

    kind.inner = number / 2 % 2 ? TCP6(.payload = 1200) : TCP4(.payload = 1200);
    kind.sent = wrap_frame(&kind.inner, &kind.wrap);
    kind.rewrite = rewrite_of(&kind.wrap);
    kind.outer = kind.wrap.family == 6 ? 40 : 20;
    kind.shim = kind.rewrite.size - 14 - kind.outer;
    return kind;
}

/* An error of the outer family; `quoted` 0: as much as there is. */
static struct frame error_about(const struct kind *kind, uint8_t type, uint8_t code, uint32_t word,
                                uint32_t quoted)
{
    struct icmp icmp = {.family = kind->wrap.family,
                        .type = type,
                        .code = code,
                        .word = word,
                        .quote = &kind->sent,
                        .quoted = quoted};

    return build_icmp(&icmp);
}

static struct frame too_big(const struct kind *kind, uint32_t mtu, uint32_t quoted)
{
    return kind->wrap.family == 6 ? error_about(kind, 2, 0, mtu, quoted)
                                  : error_about(kind, 3, 4, mtu, quoted);
}

static bool read_frame(const struct frame *frame, struct hb_tunnel_error *error)
{
    uint32_t header = frame->family == 6 ? 40 : 20;

    return hb_tunnel_error_read(frame->family, frame->bytes + frame->l3 + header,
                                frame->ip_length - header, error);
}

static void assert_vip(const struct kind *kind, const struct hb_address *inner)
{
    uint32_t size = kind->inner.family == 6 ? 16 : 4;

    assert_int_equal(inner->family, kind->inner.family);
    assert_memory_equal(inner->bytes, kind->inner.bytes + L3 + (size == 16 ? 24 : 16), size);
}

static void test_every_mode(void **state)
{
    (void)state;
    for (uint32_t number = 0; number < KINDS; number++) {
        struct kind kind = kind_of(number);
        struct frame message = too_big(&kind, 1400, 0);
        struct hb_tunnel_error error;
        struct hb_address inner;

        assert_true(read_frame(&message, &error));
        assert_int_equal(error.kind, HB_TUNNEL_TOO_BIG);
        assert_int_equal(error.mtu, 1400);
        assert_true(hb_tunnel_error_is_of(&error, &kind.rewrite, &inner));
        assert_vip(&kind, &inner);
    }
}

/* RFC 792: the IP header and 8 bytes. Every length from 0 on, in a buffer that ends there. */
static void test_every_length(void **state)
{
    (void)state;
    for (uint32_t number = 0; number < KINDS; number++) {
        struct kind kind = kind_of(number);
        uint32_t header = kind.inner.family == 6 ? 40 : 20;

        for (uint32_t quoted = 1; quoted < 140; quoted++) {
            struct frame message = too_big(&kind, 1400, quoted);
            struct hb_tunnel_error error;
            struct hb_address inner;

            assert_int_equal(read_frame(&message, &error), quoted >= kind.outer + 8);
            if (quoted < kind.outer + 8)
                continue;
            assert_true(hb_tunnel_error_is_of(&error, &kind.rewrite, &inner));
            if (quoted < kind.outer + kind.shim + header)
                assert_int_equal(inner.family, 0);
            else
                assert_vip(&kind, &inner);
        }
    }
}

static void test_kinds_of_errors(void **state)
{
    static const struct {
        uint8_t family, type, code;
        bool good;
        enum hb_tunnel_error_kind kind;
    } rows[] = {
        {4, 3, 0, true, HB_TUNNEL_UNREACHABLE},   {4, 3, 2, true, HB_TUNNEL_UNREACHABLE},
        {4, 3, 4, true, HB_TUNNEL_TOO_BIG},       {4, 11, 0, true, HB_TUNNEL_TIME_EXCEEDED},
        {4, 12, 0, false, HB_TUNNEL_UNREACHABLE}, {4, 8, 0, false, HB_TUNNEL_UNREACHABLE},
        {4, 5, 0, false, HB_TUNNEL_UNREACHABLE},  {6, 1, 4, true, HB_TUNNEL_UNREACHABLE},
        {6, 2, 0, true, HB_TUNNEL_TOO_BIG},       {6, 3, 0, true, HB_TUNNEL_TIME_EXCEEDED},
        {6, 4, 0, false, HB_TUNNEL_UNREACHABLE},  {6, 128, 0, false, HB_TUNNEL_UNREACHABLE},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct kind kind = kind_of(rows[i].family == 6);
        struct frame message = error_about(&kind, rows[i].type, rows[i].code, 1300, 0);
        struct hb_tunnel_error error;

        assert_int_equal(read_frame(&message, &error), rows[i].good);
        if (rows[i].good) {
            assert_int_equal(error.kind, rows[i].kind);
            assert_int_equal(error.mtu, rows[i].kind == HB_TUNNEL_TOO_BIG ? 1300 : 0);
        }
    }
}

/* What an attacker has to guess. */
static void test_packets_of_others(void **state)
{
    (void)state;
    for (uint32_t number = 0; number < KINDS; number++) {
        struct kind kind = kind_of(number), other = kind;
        struct hb_tunnel_error error;
        struct hb_address inner;
        struct frame message;

        other.wrap.number = 2; /* another backend */
        other.sent = wrap_frame(&kind.inner, &other.wrap);
        message = too_big(&other, 1400, 0);
        assert_true(read_frame(&message, &error));
        assert_false(hb_tunnel_error_is_of(&error, &kind.rewrite, &inner));
        other = kind; /* another source */
        other.sent.bytes[L3 + (kind.outer == 40 ? 8 : 12)] ^= 1;
        message = too_big(&other, 1400, kind.outer + 8);
        assert_true(read_frame(&message, &error));
        assert_false(hb_tunnel_error_is_of(&error, &kind.rewrite, &inner));
        for (uint32_t mode = 0; mode < 20; mode += 4) { /* another mode */
            struct kind of = kind_of(mode + number % 2);
            bool both_gue =
                of.rewrite.bytes[14 + kind.outer + 3] == kind.rewrite.bytes[14 + kind.outer + 3] &&
                of.shim >= 8 && kind.shim >= 8;

            message = too_big(&of, 1400, kind.outer + 8);
            assert_true(read_frame(&message, &error));
            if (of.wrap.forwarding != kind.wrap.forwarding && !both_gue)
                assert_false(hb_tunnel_error_is_of(&error, &kind.rewrite, &inner));
        }
        message = too_big(&(struct kind){.wrap = kind.wrap, .sent = kind.inner}, 1400, 0);
        if (kind.wrap.family == kind.inner.family) { /* without a tunnel */
            assert_true(read_frame(&message, &error));
            assert_false(hb_tunnel_error_is_of(&error, &kind.rewrite, &inner));
        }
    }
}

static void test_unsound_messages(void **state)
{
    struct kind kind = kind_of(0), kind6 = kind_of(1);
    struct frame message = too_big(&kind, 1400, 0), later, options, version;
    struct hb_tunnel_error error;
    struct hb_address inner;

    (void)state;
    message.bytes[message.length - 1] ^= 1;
    assert_false(read_frame(&message, &error));
    kind.sent.bytes[IP4_FRAGMENT + 1] = 9;
    later = too_big(&kind, 1400, 0);
    assert_false(read_frame(&later, &error));
    kind = kind_of(0);
    kind.sent.bytes[IP4_VERSION] = 0x46;
    options = too_big(&kind, 1400, 0);
    assert_false(read_frame(&options, &error));
    kind6.sent.bytes[L3] = 0x45;
    version = too_big(&kind6, 1400, 0);
    assert_false(read_frame(&version, &error));
    /* A backend that cannot be forwarded to has no rewrite. */
    kind = kind_of(0);
    message = too_big(&kind, 1400, 0);
    assert_true(read_frame(&message, &error));
    assert_false(hb_tunnel_error_is_of(&error, &(struct hb_rewrite){.size = 0}, &inner));
    assert_false(hb_tunnel_error_is_of(&error, &(struct hb_rewrite){.family = 4}, &inner));
}

/* fragment: outer over IPv6 puts a fragment header in between. */
static void test_a_tunnel_packet_that_was_cut(void **state)
{
    struct kind kind = kind_of(1);
    uint8_t *ip = kind.sent.bytes + L3;
    struct hb_tunnel_error error;
    struct hb_address inner;
    struct frame message;

    (void)state;
    memmove(ip + 48, ip + 40, 400);
    memset(ip + 40, 0, 8);
    ip[40] = ip[6];
    ip[6] = 44;
    ip[43] = 1; /* the first one, more follow */
    message = too_big(&kind, 1400, 400);
    assert_true(read_frame(&message, &error));
    assert_true(hb_tunnel_error_is_of(&error, &kind.rewrite, &inner));
    assert_vip(&kind, &inner);
    message = too_big(&kind, 1400, 48); /* nothing behind it: the protocol is known */
    assert_true(read_frame(&message, &error));
    assert_true(hb_tunnel_error_is_of(&error, &kind.rewrite, &inner));
    ip[42] = 1;
    message = too_big(&kind, 1400, 400);
    assert_false(read_frame(&message, &error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_mode),
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_kinds_of_errors),
        cmocka_unit_test(test_packets_of_others),
        cmocka_unit_test(test_unsound_messages),
        cmocka_unit_test(test_a_tunnel_packet_that_was_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
