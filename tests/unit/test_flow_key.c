/* SPDX-License-Identifier: BSD-3-Clause */
/* The keyed hash of a 5-tuple: pinned values, and how well it spreads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "halbach/flow_key.h"

/* word[i] = 0x0123456789abcdef * (2 i + 1), mod 2^64 */
static struct hb_hash_key make_hash_key(void)
{
    struct hb_hash_key key;

    for (uint64_t i = 0; i < HB_HASH_KEY_WORDS; i++)
        key.word[i] = UINT64_C(0x0123456789abcdef) * (2 * i + 1);
    return key;
}

static struct hb_flow_key make_flow(const char *source, const char *destination,
                                    uint16_t source_port, uint16_t destination_port,
                                    uint8_t protocol)
{
    bool v6 = strchr(source, ':') != NULL;
    struct hb_flow_key flow = {
        .source_port = htons(source_port),
        .destination_port = htons(destination_port),
        .protocol = protocol,
        .family = v6 ? HB_FAMILY_IPV6 : HB_FAMILY_IPV4,
    };

    assert_int_equal(inet_pton(v6 ? AF_INET6 : AF_INET, source, flow.source), 1);
    assert_int_equal(inet_pton(v6 ? AF_INET6 : AF_INET, destination, flow.destination), 1);
    return flow;
}

/*
 * Computed apart from the C code, with Python's big integers, by this recipe:
 *     ports = little-endian integer of (source port, destination port, protocol, family, 0, 0) as
 * they stand in the key IPv4: a = source << 32 | destination, both little-endian integers of their
 * 4 bytes s = ((a + k0) mod 2^64) * ((ports + k1) mod 2^64) IPv6: s0 s1 d0 d1 = the halves of the
 * addresses, little-endian s = (s0+k0)(s1+k1) + (d0+k2)(d1+k3) + (ports+k4) k5, sums mod 2^64, s
 * mod 2^128 mix(a, b) = low half of a*b xor high half of it hash = mix(mix(low(s) xor k6, high(s)
 * xor k7) xor k6, 0x9e3779b97f4a7c15) A change of any value moves flows of a running fleet: it
 * needs a new version of the contract.
 */
static void values_are_pinned(void **state)
{
    static const struct {
        const char *source, *destination;
        uint16_t source_port, destination_port;
        uint8_t protocol;
        uint64_t hash;
    } rows[] = {
        {"203.0.113.9", "192.0.2.10", 40000, 80, 6, 0xedf22022cc3c4612},
        {"203.0.113.9", "192.0.2.10", 40000, 80, 17, 0x897fc20480f9f80e},
        {"203.0.113.9", "192.0.2.10", 40001, 80, 6, 0xe596c2b39fe9c09e},
        {"2001:db8:0:c::9", "2001:db8:0:a::10", 40000, 80, 6, 0x1e1b00df6667fb50},
        {"2001:db8:0:c::9", "2001:db8:0:a::10", 40000, 443, 17, 0xde8ee3899cecd052},
        /* the same bits as the first row, in the other family */
        {"cb00:7109::", "c000:20a::", 40000, 80, 6, 0xe1565ea594c82d78},
        {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
         65535, 65535, 255, 0xbef8ee565fafb64f},
    };
    struct hb_hash_key key = make_hash_key();

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hb_flow_key flow =
            make_flow(rows[i].source, rows[i].destination, rows[i].source_port,
                      rows[i].destination_port, rows[i].protocol);

        assert_true(hb_flow_hash(&flow, &key) == rows[i].hash);
    }
}

/* BL-39: what lay in the key's memory before, also in the half of the address that IPv4 does not
 * use. */
static void only_the_fields_count(void **state)
{
    struct hb_hash_key key = make_hash_key();
    struct hb_flow_key flow = make_flow("203.0.113.9", "192.0.2.10", 40000, 80, 6);
    uint64_t hash = hb_flow_hash(&flow, &key);

    (void)state;
    for (int fill = 0; fill < 256; fill += 51) {
        struct hb_flow_key again;

        memset(&again, fill, sizeof(again));
        again = make_flow("203.0.113.9", "192.0.2.10", 40000, 80, 6);
        assert_true(hb_flow_hash(&again, &key) == hash);
    }
}

/* BL-40: 65,536 clients that differ in two bytes at `offset` of their address. Ten equal backends
 * by the slot, and sixteen parts of the flow cache by the lower half, each within a tenth of its
 * share. */
static void check_spread(struct hb_flow_key flow, uint32_t offset)
{
    struct hb_hash_key key = make_hash_key();
    uint32_t backend[10] = {0}, part[16] = {0};

    for (uint32_t n = 0; n < 65536; n++) {
        uint64_t hash;

        flow.source[offset] = (uint8_t)(n >> 8);
        flow.source[offset + 1] = (uint8_t)n;
        hash = hb_flow_hash(&flow, &key);
        backend[hb_slot_of(hash, 10)]++;
        part[(uint32_t)hash >> 28]++;
    }
    for (uint32_t i = 0; i < 10; i++)
        assert_in_range(backend[i], 5899, 7208);
    for (uint32_t i = 0; i < 16; i++)
        assert_in_range(part[i], 3687, 4505);
}

static void clients_that_differ_little_spread_well(void **state)
{
    (void)state;
    for (uint32_t offset = 0; offset <= 2; offset++)
        check_spread(make_flow("203.0.113.9", "192.0.2.10", 40000, 80, 6), offset);
    for (uint32_t offset = 0; offset <= 14; offset++)
        check_spread(make_flow("2001:db8:0:c::9", "2001:db8:0:a::10", 40000, 80, 6), offset);
}

/* BL-40 (c): the first 32 bits of the address. */
static void the_first_32_bits_count(void **state)
{
    struct hb_hash_key key = make_hash_key();
    struct hb_flow_key flow = make_flow("2001:db8:0:c::9", "2001:db8:0:a::10", 40000, 80, 6);
    uint32_t backend[10] = {0};

    (void)state;
    for (uint32_t n = 0; n < 65536; n++) {
        uint32_t word = n * 0x10001;

        memcpy(flow.source, &word, 4);
        backend[hb_slot_of(hb_flow_hash(&flow, &key), 10)]++;
    }
    for (uint32_t i = 0; i < 10; i++)
        assert_in_range(backend[i], 5899, 7208);
}

/* Every input bit reaches about half of the output bits, in either family. */
static void check_avalanche(struct hb_flow_key flow, uint32_t address_bytes)
{
    struct hb_hash_key key = make_hash_key();

    for (uint32_t bit = 0; bit < 8 * 38; bit++) {
        uint32_t byte = bit / 8;
        uint32_t flipped = 0;

        if ((byte < 16 && byte >= address_bytes) ||
            (byte >= 16 && byte < 32 && byte >= 16 + address_bytes) || byte == 37)
            continue; /* unused by this family, or the family itself */
        for (uint16_t port = 0; port < 64; port++) {
            struct hb_flow_key other;

            flow.source_port = htons((uint16_t)(40000 + port));
            other = flow;
            ((uint8_t *)&other)[byte] ^= (uint8_t)(1u << bit % 8);
            flipped += (uint32_t)__builtin_popcountll(hb_flow_hash(&flow, &key) ^
                                                      hb_flow_hash(&other, &key));
        }
        assert_in_range(flipped / 64, 28, 36);
    }
}

static void every_bit_reaches_half_the_hash(void **state)
{
    (void)state;
    check_avalanche(make_flow("203.0.113.9", "192.0.2.10", 40000, 80, 6), 4);
    check_avalanche(make_flow("2001:db8:0:c::9", "2001:db8:0:a::10", 40000, 80, 6), 16);
}

static void slots_are_in_range_and_even(void **state)
{
    uint32_t slot[7] = {0};

    (void)state;
    assert_int_equal(hb_slot_of(0, 65537), 0);
    assert_int_equal(hb_slot_of(UINT64_MAX, 65537), 65536);
    assert_int_equal(hb_slot_of(UINT64_MAX, 5000011), 5000010);
    assert_int_equal(hb_slot_of(UINT64_MAX, 0), 0);
    for (uint64_t n = 0; n < 7000; n++)
        slot[hb_slot_of(n * (UINT64_MAX / 7000), 7)]++;
    for (uint32_t i = 0; i < 7; i++)
        assert_in_range(slot[i], 999, 1001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_pinned),
        cmocka_unit_test(only_the_fields_count),
        cmocka_unit_test(clients_that_differ_little_spread_well),
        cmocka_unit_test(the_first_32_bits_count),
        cmocka_unit_test(every_bit_reaches_half_the_hash),
        cmocka_unit_test(slots_are_in_range_and_even),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
