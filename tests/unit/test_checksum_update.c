/* SPDX-License-Identifier: BSD-3-Clause */
/* Checksums brought up to date, against the sum made anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "checksum_update.h"

static uint16_t word_at(const uint8_t *at)
{
    uint16_t word;

    memcpy(&word, at, sizeof(word));
    return word;
}

/* By remainder instead of folding. */
static uint16_t anew(uint8_t *header, uint32_t size)
{
    uint64_t sum = 0;

    memset(header + 10, 0, 2);
    for (uint32_t i = 0; i < size; i += 2)
        sum += word_at(header + i);
    return (uint16_t) ~(sum == 0 ? 0 : (sum - 1) % 65535 + 1);
}

static void put_checksum(uint8_t *header, uint16_t checksum)
{
    memcpy(header + 10, &checksum, sizeof(checksum));
}

/* BL-11: all 256 x 256 changes of TOS, the rest of the header at random. */
static void every_change_of_tos(void **state)
{
    (void)state;
    srandom(1);
    for (uint32_t before = 0; before < 256; before++) {
        for (uint32_t after = 0; after < 256; after++) {
            uint8_t header[20];
            uint16_t old_word, checksum;

            for (uint32_t i = 0; i < 20; i++)
                header[i] = (uint8_t)random();
            header[0] = 0x45;
            header[1] = (uint8_t)before;
            checksum = anew(header, 20);
            old_word = word_at(header);
            header[1] = (uint8_t)after;
            checksum = hb_checksum_update(checksum, old_word, word_at(header));
            assert_int_equal(checksum, anew(header, 20));
        }
    }
}

/* BL-11: the ends of the range: headers whose checksum is 0xfeff, 0xffff (which no sum gives) or
 * 0x0000 before; every TTL one less, and every value of a word. */
static void the_ends_of_the_range(void **state)
{
    static const uint16_t checksums[] = {0xfeff, 0xfffe, 0x0000, 0x0001, 0x8000, 0x7fff};

    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        uint8_t header[20] = {0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 203, 0, 113, 9};
        uint16_t fill;

        /* The ID makes up for what is missing to the checksum wanted. */
        fill = (uint16_t)~hb_checksum_fold((uint64_t)(uint16_t)~anew(header, 20) + checksums[i]);
        memcpy(header + 4, &fill, 2);
        assert_int_equal(anew(header, 20) % 65535, checksums[i] % 65535);
        for (uint32_t ttl = 1; ttl < 256; ttl++) {
            uint16_t before, checksum;

            header[8] = (uint8_t)ttl;
            checksum = anew(header, 20);
            before = word_at(header + 8);
            header[8]--;
            checksum = hb_checksum_update(checksum, before, word_at(header + 8));
            assert_int_equal(checksum, anew(header, 20));
        }
        for (uint32_t word = 0; word < 65536; word++) {
            uint16_t before = word_at(header + 18), value = (uint16_t)word, checksum;

            checksum = anew(header, 20);
            memcpy(header + 18, &value, 2);
            checksum = hb_checksum_update(checksum, before, value);
            assert_int_equal(checksum, anew(header, 20));
        }
    }
}

/* Addresses of 4 and 16 bytes, as the pseudo-header has them. */
static void every_address(void **state)
{
    (void)state;
    srandom(2);
    for (uint32_t round = 0; round < 100000; round++) {
        uint8_t header[40], old_address[16];
        uint32_t size = round % 2 ? 4 : 16;
        uint16_t checksum;

        for (uint32_t i = 0; i < 40; i++)
            header[i] = (uint8_t)(random() % 4 ? random() : (random() % 2 ? 0xff : 0));
        header[0] = 0x45;
        checksum = anew(header, 40);
        memcpy(old_address, header + 16, size);
        for (uint32_t i = 0; i < size; i++)
            header[16 + i] = (uint8_t)(random() % 4 ? random() : (random() % 2 ? 0xff : 0));
        checksum = hb_checksum_update(checksum, hb_checksum_add(old_address, size),
                                      hb_checksum_add(header + 16, size));
        assert_int_equal(checksum, anew(header, 40));
        put_checksum(header, checksum);
    }
}

static void zero_of_udp(void **state)
{
    (void)state;
    assert_int_equal(hb_checksum_update_udp(0, 1, 2), 0);
    for (uint32_t before = 0; before < 65536; before++)
        assert_int_not_equal(hb_checksum_update_udp(0x1234, before, 0x4321), 0);
    assert_int_equal(hb_checksum_update_udp(0x0001, 0, 1), 0xffff);
}

static void folding_goes_to_the_end(void **state)
{
    (void)state;
    assert_int_equal(hb_checksum_fold(0), 0);
    assert_int_equal(hb_checksum_fold(0x2fffe), 1); /* BL-01 */
    assert_int_equal(hb_checksum_fold(0x1ffff), 1);
    assert_int_equal(hb_checksum_fold(UINT64_MAX), 0xffff);
    assert_int_equal(hb_checksum_fold(UINT64_C(0xffffffff00000001)), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_change_of_tos),     cmocka_unit_test(the_ends_of_the_range),
        cmocka_unit_test(every_address),           cmocka_unit_test(zero_of_udp),
        cmocka_unit_test(folding_goes_to_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
