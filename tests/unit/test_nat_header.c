/* SPDX-License-Identifier: BSD-3-Clause */
/* Checksums after a change, against a full computation; headers found behind options and extension
 * headers, and damaged ones refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nat_checksum.h"
#include "nat_header.h"
#include "nat_quote.h"
#include "proxy_v2.h"

/* RFC 1071 in another way: by remainder. Never 0xffff for words that are not all zero. */
static uint16_t full(const uint8_t *bytes, size_t count)
{
    uint64_t sum = 0;
    uint16_t result;

    for (size_t i = 0; i < count; i += 2)
        sum += (uint64_t)bytes[i] << 8 | (i + 1 < count ? bytes[i + 1] : 0);
    sum = sum == 0 ? 0 : (sum - 1) % 0xffff + 1;
    result = (uint16_t)~sum;
    return (uint16_t)(result >> 8 | result << 8); /* as loaded */
}

/* RFC 1624, section 4: the example that equation 2 got wrong. */
static void the_example_of_the_rfc(void **state)
{
    const uint8_t old[] = {0x55, 0x55}, new[] = {0x32, 0x85};
    uint16_t check, result;

    (void)state;
    memcpy(&check, (uint8_t[]){0xdd, 0x2f}, 2);
    result = hb_checksum_update(check, old, new, 2);
    assert_memory_equal(&result, ((uint8_t[]){0x00, 0x00}), 2);
}

/* BL-11: every TOS to every other, every TTL one less, in headers whose checksum before was one of
 * the corner cases or any other. */
static void every_tos_and_ttl(void **state)
{
    static const uint16_t wanted[] = {0xfeff, 0xffff, 0x0000, 0x1234};
    uint8_t ip[20];

    (void)state;
    srand(11);
    for (size_t w = 0; w < 4; w++) {
        for (int from = 0; from < 256; from++) {
            for (int to = 0; to < 256; to++) {
                uint16_t check, before, after;

                for (int i = 0; i < 20; i++)
                    ip[i] = (uint8_t)rand();
                ip[1] = (uint8_t)from;
                /* make the checksum what is wanted, by the ID */
                memset(ip + 4, 0, 2);
                memset(ip + 10, 0, 2);
                check = full(ip, 20);
                before = hb_checksum_replace(check, 0, 0);
                assert_int_equal(before, check);
                check = (uint16_t)(wanted[w] >> 8 | wanted[w] << 8);
                before = hb_checksum_fold((uint64_t)(uint16_t)~check + full(ip, 20));
                memcpy(ip + 4, &before, 2);
                if (w != 1) /* 0xffff is what no full computation gives */
                    check = full(ip, 20);
                before = hb_checksum_load(ip);
                ip[1] = (uint8_t)to;
                after = hb_checksum_load(ip);
                assert_int_equal(hb_checksum_replace(check, before, after), full(ip, 20));
            }
        }
    }
    /* 0xffff before, and all that was added to it goes: both forms of zero become the one */
    assert_int_equal(hb_checksum_replace(0xffff, 0xffff, 0), 0);
    for (int ttl = 2; ttl < 256; ttl++) {
        struct hb_nat_header header;
        uint16_t check;

        for (int i = 0; i < 20; i++)
            ip[i] = (uint8_t)rand();
        ip[0] = 0x45;
        ip[8] = (uint8_t)ttl;
        memset(ip + 10, 0, 2);
        check = full(ip, 20);
        memcpy(ip + 10, &check, 2);
        assert_true(hb_nat_read(&header, ip, 20));
        assert_true(hb_nat_take_hop(&header));
        assert_int_equal(ip[8], ttl - 1);
        check = hb_checksum_load(ip + 10);
        memset(ip + 10, 0, 2);
        assert_int_equal(check, full(ip, 20));
    }
    ip[8] = 1;
    assert_true(hb_nat_take_hop(&(struct hb_nat_header){.l3 = ip, .family = 4}) == false);
    assert_int_equal(ip[8], 1);
}

static void udp_without_checksum(void **state)
{
    (void)state;
    assert_int_equal(hb_checksum_replace_udp(0, 1, 2, true), 0);
    assert_int_not_equal(hb_checksum_replace_udp(0, 1, 2, false), 0);
    /* what would be zero is sent as all ones */
    for (uint32_t check = 1; check < 0x10000; check++) {
        uint64_t removed = (uint16_t)~check, added = 0xffff;

        assert_int_equal(hb_checksum_replace_udp((uint16_t)check, removed, added, true), 0xffff);
    }
}

static void bytes_at_odd_places(void **state)
{
    uint8_t bytes[64];

    (void)state;
    srand(12);
    for (int round = 0; round < 20000; round++) {
        size_t at = (size_t)rand() % 50, count = 1 + (size_t)rand() % 8;
        uint8_t put[8];
        uint16_t check;

        for (int i = 0; i < 64; i++)
            bytes[i] = (uint8_t)rand();
        for (int i = 0; i < 8; i++)
            put[i] = (uint8_t)rand();
        check = full(bytes, 64);
        check = hb_checksum_put(check, bytes + at, at, put, count);
        assert_memory_equal(bytes + at, put, count);
        assert_int_equal(check, full(bytes, 64));
    }
}

/* Random headers of all kinds: nothing is read that is not at hand (sanitizers watch), and what is
 * found lies within. */
static void damaged_headers(void **state)
{
    (void)state;
    srand(13);
    for (int round = 0; round < 200000; round++) {
        uint32_t size = (uint32_t)rand() % 120;
        uint8_t *bytes = malloc(size + !size);
        struct hb_nat_header header, quote;

        for (uint32_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)rand();
        if (size > 0)
            bytes[0] = (uint8_t)(rand() & 1 ? 0x40 | (rand() & 15) : 0x60);
        if (size > 9 && rand() & 1)
            bytes[bytes[0] >> 4 == 4 ? 9 : 6] =
                (uint8_t[]){1, 6, 17, 44, 58, 0, 43, 60}[rand() & 7];
        if (hb_nat_read(&header, bytes, size)) {
            assert_true(header.l4 == NULL ||
                        (header.l4 >= bytes && header.l4 + header.l4_length == bytes + size));
            if (hb_nat_is_error(&header) && hb_nat_read_quote(&header, &quote)) {
                const struct hb_nat_exchange one = {HB_NAT_SOURCE_END, (uint8_t[16]){1}, 7};

                hb_nat_translate_error(&header, &one, 1, &quote, &one, 1);
            }
            hb_nat_set_end(&header, HB_NAT_SOURCE_END, (uint8_t[16]){1, 2, 3, 4}, 99);
            hb_nat_take_hop(&header);
        }
        free(bytes);
    }
}

/* The example of the specification's text, by hand: TCP over IPv4. */
static void a_proxy_header(void **state)
{
    const struct hb_flow_key flow = {.source = {203, 0, 113, 9},
                                     .destination = {192, 0, 2, 10},
                                     .source_port = 0x5000, /* 80, as in the packet */
                                     .destination_port = 0xbb01,
                                     .protocol = HB_PROTOCOL_TCP,
                                     .family = HB_FAMILY_IPV4};
    static const uint8_t wanted[28] = {0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49,
                                       0x54, 0x0a, 0x21, 0x11, 0,    12,   203,  0,    113,  9,
                                       192,  0,    2,    10,   0,    80,   1,    187};
    struct hb_flow_key six = flow;
    uint8_t out[HB_PROXY_V2_MAX];

    (void)state;
    assert_int_equal(hb_proxy_v2_write(out, &flow), 28);
    assert_memory_equal(out, wanted, 28);
    six.family = HB_FAMILY_IPV6;
    six.protocol = HB_PROTOCOL_UDP;
    assert_int_equal(hb_proxy_v2_write(out, &six), 52);
    assert_int_equal(out[13], 0x22);
    assert_int_equal(out[15], 36);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_rfc), cmocka_unit_test(every_tos_and_ttl),
        cmocka_unit_test(udp_without_checksum),   cmocka_unit_test(bytes_at_odd_places),
        cmocka_unit_test(damaged_headers),        cmocka_unit_test(a_proxy_header),
    };

    return cmocka_run_group_tests_name("nat_header", tests, NULL, NULL);
}
