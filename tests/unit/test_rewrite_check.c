/* SPDX-License-Identifier: BSD-3-Clause */
/* The ready-made headers of every forwarding mode, byte by byte: what is free, and what the packet
 * path takes for granted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "rewrite_check.h"
#include "wrap.h"

/* Modes over both families, with and without a tag. */
#define KINDS 28

static struct wrap kind(uint32_t number)
{
    return (struct wrap){.forwarding = (uint8_t)(1 + number / 4),
                         .family = number % 2 ? 6 : 4,
                         .number = 1,
                         .tags = number / 2 % 2,
                         .dscp = 1 + number / 4 == HB_FORWARDING_L3DSR ? 10 : 0};
}

static bool is_tunnel(const struct wrap *wrap)
{
    return wrap->forwarding <= HB_FORWARDING_VXLAN;
}

static bool has_udp(const struct wrap *wrap)
{
    return wrap->forwarding == HB_FORWARDING_GUE || wrap->forwarding == HB_FORWARDING_GUE1 ||
           wrap->forwarding == HB_FORWARDING_VXLAN;
}

static struct hb_backend_record record_of(const struct wrap *wrap)
{
    struct hb_backend_record record = {.id = 1, .use = HB_BACKEND_ACTIVE, .family = wrap->family};
    struct wrap address = {.forwarding = HB_FORWARDING_L3DSR, .family = wrap->family, .number = 1};
    uint8_t bytes[64] = {0};

    memcpy(record.address, bytes + write_wrap(bytes, &address), wrap->family == 6 ? 16 : 4);
    record.rewrite = (struct hb_rewrite){.l2_size = (uint8_t)(14 + 4 * wrap->tags),
                                         .family = wrap->family,
                                         .forwarding = wrap->forwarding,
                                         .spread = wrap->spread,
                                         .dscp = wrap->dscp};
    record.rewrite.inner_max = (uint16_t)(1500 - wrap_overhead(wrap));
    record.rewrite.size = (uint8_t)write_wrap(record.rewrite.bytes, wrap);
    return record;
}

static bool accepts(const struct hb_backend_record *record)
{
    char problem[256] = "";
    bool good = hb_rewrite_check(record, problem, sizeof(problem));

    assert_int_equal(good, problem[0] == '\0');
    return good;
}

static void what_control_makes_is_accepted(void **state)
{
    (void)state;
    for (uint32_t number = 0; number < KINDS; number++) {
        struct wrap wrap = kind(number);
        struct hb_backend_record record = record_of(&wrap);

        assert_true(accepts(&record));
    }
}

/* Whether any value but zero may stand in this byte of the headers. */
static bool is_free(const struct wrap *wrap, uint32_t at)
{
    uint32_t link = 14 + 4u * wrap->tags, ip = wrap->family == 6 ? 40 : 20, shim = link + ip;

    if (at < 12 || (wrap->tags != 0 && (at == 14 || at == 15)))
        return true; /* MAC addresses, tag */
    if (!is_tunnel(wrap))
        return false;
    if (wrap->family == 4 && (at == link + 8 || (at >= link + 12 && at < link + 16)))
        return true; /* TTL, source */
    if (wrap->family == 6 && (at == link + 7 || (at >= link + 8 && at < link + 24)))
        return true;
    if (has_udp(wrap) && (at == shim + 2 || at == shim + 3))
        return true; /* destination port */
    /* VNI, inner MAC addresses; a source address of a group is refused. */
    return wrap->forwarding == HB_FORWARDING_VXLAN &&
           ((at >= shim + 12 && at < shim + 15) || (at >= shim + 16 && at < shim + 28));
}

/* Each bit of all 96 bytes turned over: accepted in the free fields, refused everywhere else. */
static void every_bit_is_checked(void **state)
{
    (void)state;
    for (uint32_t number = 0; number < KINDS; number++) {
        struct wrap wrap = kind(number);
        uint32_t shim = 14 + 4u * wrap.tags + (wrap.family == 6 ? 40 : 20);

        for (uint32_t at = 0; at < HB_REWRITE_BYTES; at++) {
            for (uint32_t bit = 0; bit < 8; bit++) {
                struct hb_backend_record record = record_of(&wrap);
                bool group = wrap.forwarding == HB_FORWARDING_VXLAN && at == shim + 22 && bit == 0;
                bool no_ttl = is_tunnel(&wrap) && record.rewrite.bytes[at] == 64 && bit == 6;

                record.rewrite.bytes[at] ^= (uint8_t)(1 << bit);
                if (accepts(&record) != (is_free(&wrap, at) && !group && !no_ttl))
                    fail_msg("%s over IPv%u, %u tags: byte %u, bit %u", wrap_name(&wrap),
                             wrap.family, wrap.tags, at, bit);
            }
        }
    }
}

/* Fields that must not be zero are refused when they are. */
static void zeroes_are_refused(void **state)
{
    (void)state;
    for (uint32_t number = 0; number < KINDS; number++) {
        struct wrap wrap = kind(number);
        struct hb_backend_record good = record_of(&wrap);
        uint32_t link = 14 + 4u * wrap.tags, shim = link + (wrap.family == 6 ? 40 : 20);
        struct {
            uint32_t at, size;
            bool here;
        } fields[] = {
            {0, 6, true},
            {link + (wrap.family == 6 ? 7 : 8), 1, is_tunnel(&wrap)},
            {link + (wrap.family == 6 ? 8 : 12), wrap.family == 6 ? 16 : 4, is_tunnel(&wrap)},
            {shim + 2, 2, has_udp(&wrap)},
            {shim + 16, 6, wrap.forwarding == HB_FORWARDING_VXLAN},
            {shim + 22, 6, wrap.forwarding == HB_FORWARDING_VXLAN},
        };

        for (uint32_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
            struct hb_backend_record record = good;

            memset(record.rewrite.bytes + fields[i].at, 0, fields[i].here ? fields[i].size : 0);
            assert_int_equal(accepts(&record), !fields[i].here);
        }
    }
}

/* All values of the small fields, against what a mode has. */
static void fields_of_other_modes_are_refused(void **state)
{
    (void)state;
    for (uint32_t number = 0; number < KINDS; number++) {
        struct wrap wrap = kind(number);
        uint32_t fragment = is_tunnel(&wrap) ? HB_REWRITE_FRAGMENT_OUTER | HB_REWRITE_FRAGMENT_INNER
                                             : HB_REWRITE_FRAGMENT_INNER;
        uint32_t udp = !has_udp(&wrap)    ? 0
                       : wrap.family == 4 ? HB_REWRITE_UDP_CHECKSUM
                                          : HB_REWRITE_NO_UDP_CHECKSUM6;
        uint32_t both = HB_REWRITE_FRAGMENT_OUTER | HB_REWRITE_FRAGMENT_INNER;

        for (uint32_t value = 0; value < 256; value++) {
            struct hb_backend_record flags = record_of(&wrap), dscp = flags, spread = flags;
            struct hb_backend_record size = flags, l2 = flags, mode = flags, family = flags;
            bool zero = value == 0, l3dsr = wrap.forwarding == HB_FORWARDING_L3DSR;

            flags.rewrite.flags = (uint8_t)value;
            assert_int_equal(accepts(&flags),
                             (value & ~(fragment | udp)) == 0 && (value & both) != both);
            dscp.rewrite.dscp = (uint8_t)value;
            assert_int_equal(accepts(&dscp), l3dsr ? value > 0 && value < 64 : zero);
            /* The test's source ends in 0x0a or 0x10, so one or four bits are free. */
            spread.rewrite.spread = (uint8_t)value;
            assert_int_equal(accepts(&spread),
                             zero || (is_tunnel(&wrap) && value <= (wrap.family == 4 ? 1 : 4)));
            size.rewrite.size = (uint8_t)value;
            assert_int_equal(accepts(&size), value == record_of(&wrap).rewrite.size);
            l2.rewrite.l2_size = (uint8_t)value;
            assert_int_equal(accepts(&l2), value == 14 + 4u * wrap.tags);
            mode.rewrite.forwarding = (uint8_t)value;
            assert_int_equal(accepts(&mode), value == wrap.forwarding);
            family.rewrite.family = (uint8_t)value;
            assert_int_equal(accepts(&family), value == wrap.family);
        }
    }
}

static void reserved_fields_and_sizes(void **state)
{
    (void)state;
    for (uint32_t number = 0; number < KINDS; number++) {
        struct wrap wrap = kind(number);
        uint32_t most = 65535 - wrap_overhead(&wrap);

        for (uint32_t inner = 0; inner < 65536; inner++) {
            struct hb_backend_record record = record_of(&wrap);

            record.rewrite.inner_max = (uint16_t)inner;
            assert_int_equal(accepts(&record), inner >= 68 && inner <= most);
        }
        for (uint32_t i = 0; i < 3; i++) {
            struct hb_backend_record record = record_of(&wrap);

            record.rewrite.reserved = i == 0;
            record.rewrite.reserved16 = i == 1;
            record.rewrite.nat_port = i == 2;
            assert_false(accepts(&record));
        }
    }
}

/* A source that is spread has free bits, and no more than a prefix of /8 or /64 leaves. */
static void spread_sources(void **state)
{
    (void)state;
    for (uint8_t family = 4; family <= 6; family += 2) {
        for (uint8_t spread = 0; spread < 128; spread++) {
            struct wrap wrap = {.forwarding = HB_FORWARDING_GRE, .family = family, .number = 1};
            struct hb_backend_record record = record_of(&wrap);
            uint8_t *source = record.rewrite.bytes + 14 + (family == 6 ? 8 : 12);

            memset(source, 0, family == 6 ? 16 : 4);
            source[0] = 10;
            record.rewrite.spread = spread;
            assert_int_equal(accepts(&record), spread <= (family == 6 ? 64 : 24));
            if (spread == 0)
                continue;
            source[(family == 6 ? 15 : 3) - (spread - 1) / 8] |= (uint8_t)(1 << (spread - 1) % 8);
            assert_false(accepts(&record));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_control_makes_is_accepted),
        cmocka_unit_test(every_bit_is_checked),
        cmocka_unit_test(zeroes_are_refused),
        cmocka_unit_test(fields_of_other_modes_are_refused),
        cmocka_unit_test(reserved_fields_and_sizes),
        cmocka_unit_test(spread_sources),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
