/* SPDX-License-Identifier: BSD-3-Clause */
/* Services with prefixes and ranges: by hand, then beside a model that asks every one of them. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "service_map.h"

static struct hb_service_record make(const char *vip, uint8_t length, uint8_t protocol,
                                     uint16_t first, uint16_t last)
{
    struct hb_service_record record = {.protocol = protocol,
                                       .prefix_length = length,
                                       .port = htons(first),
                                       .port_last = htons(last)};

    record.family = strchr(vip, ':') != NULL ? HB_FAMILY_IPV6 : HB_FAMILY_IPV4;
    inet_pton(record.family == HB_FAMILY_IPV6 ? AF_INET6 : AF_INET, vip, record.address);
    return record;
}

static struct hb_service_map *build(const struct hb_service_record *records, uint32_t count)
{
    size_t bytes = (hb_service_map_bytes(records, count) + 63) & ~(size_t)63;
    uint32_t duplicate;
    struct hb_service_map *map =
        hb_service_map_build(aligned_alloc(64, bytes), records, count, &duplicate);

    assert_non_null(map);
    return map;
}

static int32_t find(const struct hb_service_map *map, const char *address, uint8_t protocol,
                    uint16_t port)
{
    struct hb_service_record to = make(address, 0, protocol, port, port);
    struct hb_flow_key key = {
        .destination_port = to.port, .protocol = protocol, .family = to.family};

    memcpy(key.destination, to.address, sizeof(key.destination));
    return hb_service_map_find(map, &key);
}

/* The longest prefix first, whatever its ranges; then the smallest range; one address and one port
 * is the most specific of all. */
static void the_most_specific_wins(void **state)
{
    const struct hb_service_record records[] = {
        make("192.0.2.0", 24, 6, 0, 65535),    make("192.0.2.10", 32, 6, 80, 80),
        make("192.0.2.10", 32, 6, 8000, 8999), make("192.0.2.10", 32, 6, 8080, 8090),
        make("192.0.0.0", 16, 6, 80, 80),      make("192.0.2.10", 32, 17, 0, 65535),
        make("192.0.2.0", 24, 132, 7, 7),
    };
    struct hb_service_map *map = build(records, 7);

    (void)state;
    assert_int_equal(find(map, "192.0.2.10", 6, 80), 1);
    assert_int_equal(find(map, "192.0.2.10", 6, 81), 0);
    assert_int_equal(find(map, "192.0.2.10", 6, 7999), 0);
    assert_int_equal(find(map, "192.0.2.10", 6, 8000), 2);
    assert_int_equal(find(map, "192.0.2.10", 6, 8079), 2);
    assert_int_equal(find(map, "192.0.2.10", 6, 8080), 3);
    assert_int_equal(find(map, "192.0.2.10", 6, 8090), 3);
    assert_int_equal(find(map, "192.0.2.10", 6, 8091), 2);
    assert_int_equal(find(map, "192.0.2.10", 6, 8999), 2);
    assert_int_equal(find(map, "192.0.2.10", 6, 9000), 0);
    assert_int_equal(find(map, "192.0.2.10", 6, 0), 0);
    assert_int_equal(find(map, "192.0.2.10", 6, 65535), 0);
    assert_int_equal(find(map, "192.0.2.11", 6, 80), 0);
    assert_int_equal(find(map, "192.0.3.11", 6, 80), 4);
    assert_int_equal(find(map, "192.0.3.11", 6, 81), HB_SERVICE_NONE);
    assert_int_equal(find(map, "192.0.2.10", 17, 53), 5);
    assert_int_equal(find(map, "192.0.2.11", 17, 53), HB_SERVICE_NONE);
    assert_int_equal(find(map, "192.0.2.11", 132, 7), 6);
    assert_int_equal(find(map, "192.0.2.11", 132, 8), HB_SERVICE_NONE);
    assert_int_equal(find(map, "192.0.2.11", 1, 0), HB_SERVICE_NONE);
    assert_int_equal(find(map, "192.1.0.0", 6, 80), HB_SERVICE_NOT_VIP);
    assert_int_equal(find(map, "c000:20a::", 6, 80), HB_SERVICE_NOT_VIP);
    free(map);
}

/* A VIP of one port alone is a VIP too where prefixes are configured elsewhere. */
static void single_addresses_are_vips_still(void **state)
{
    const struct hb_service_record records[] = {make("2001:db8:0:a::", 64, 6, 0, 65535),
                                                make("2001:db8:0:b::1", 128, 6, 80, 80)};
    struct hb_service_map *map = build(records, 2);

    (void)state;
    assert_int_equal(find(map, "2001:db8:0:a:ffff::1", 6, 9), 0);
    assert_int_equal(find(map, "2001:db8:0:b::1", 6, 80), 1);
    assert_int_equal(find(map, "2001:db8:0:b::1", 6, 81), HB_SERVICE_NONE);
    assert_int_equal(find(map, "2001:db8:0:b::2", 6, 80), HB_SERVICE_NOT_VIP);
    free(map);
}

static void the_second_of_two_equal_ones_is_named(void **state)
{
    const struct hb_service_record records[] = {
        make("10.0.0.0", 8, 6, 1, 9), make("10.0.0.0", 8, 6, 2, 3), make("10.0.0.0", 8, 6, 1, 9)};
    void *memory = aligned_alloc(64, (hb_service_map_bytes(records, 3) + 63) & ~(size_t)63);
    uint32_t duplicate = 0;

    (void)state;
    assert_null(hb_service_map_build(memory, records, 3, &duplicate));
    assert_int_equal(duplicate, 2);
    free(memory);
}

static uint32_t random_state = 1;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 1664525 + 1013904223;
    return (uint32_t)(((uint64_t)random_state * limit) >> 32);
}

static bool holds(const struct hb_service_record *record, const struct hb_flow_key *key)
{
    uint16_t port = ntohs(key->destination_port);

    if (record->family != key->family)
        return false;
    for (uint32_t bit = 0; bit < record->prefix_length; bit++)
        if (((record->address[bit / 8] ^ key->destination[bit / 8]) & 0x80 >> bit % 8) != 0)
            return false;
    return record->protocol == key->protocol && ntohs(record->port) <= port &&
           port <= ntohs(record->port_last);
}

static int32_t find_slowly(const struct hb_service_record *records, uint32_t count,
                           const struct hb_flow_key *key)
{
    int32_t best = HB_SERVICE_NONE;

    for (uint32_t i = 0; i < count; i++) {
        const struct hb_service_record *a = &records[i], *b = &records[best];

        if (!holds(a, key))
            continue;
        if (best < 0 || a->prefix_length > b->prefix_length ||
            (a->prefix_length == b->prefix_length &&
             ntohs(a->port_last) - ntohs(a->port) < ntohs(b->port_last) - ntohs(b->port)))
            best = (int32_t)i;
    }
    return best;
}

/* Ranges whose ends are of a grid of halves nest or lie apart. */
static struct hb_service_record make_random(void)
{
    static const uint8_t protocols[] = {6, 17, 132};
    uint8_t ipv6 = random_below(2), bits = (uint8_t)(8 * (1 + random_below(4)));
    uint32_t size = 65536u >> random_below(17), at = random_below(65536 / size) * size;
    struct hb_service_record record = {.family = ipv6 ? 6 : 4,
                                       .prefix_length = bits,
                                       .protocol = protocols[random_below(3)],
                                       .port = htons((uint16_t)at),
                                       .port_last = htons((uint16_t)(at + size - 1))};

    for (uint32_t i = 0; i < bits / 8u; i++)
        record.address[i] = (uint8_t)(10 + random_below(2));
    if (ipv6 && random_below(4) == 0) {
        record.prefix_length = 128;
        record.address[15] = (uint8_t)random_below(3);
    }
    return record;
}

static void random_services_match_a_model(void **state)
{
    enum { SERVICES = 300 };
    static struct hb_service_record records[SERVICES];
    struct hb_service_map *map;
    uint32_t count = 0;

    (void)state;
    while (count < SERVICES) {
        struct hb_service_record record = make_random();
        bool known = record.port == 0 && record.port_last == 0;

        for (uint32_t i = 0; i < count; i++)
            known |= memcmp(&record, &records[i], sizeof(record)) == 0;
        if (!known)
            records[count++] = record;
    }
    map = build(records, SERVICES);
    for (uint32_t round = 0; round < 200000; round++) {
        struct hb_service_record near = records[random_below(SERVICES)];
        struct hb_flow_key key = {.family = near.family,
                                  .protocol = near.protocol,
                                  .destination_port = random_below(2) ? near.port : near.port_last};
        int32_t want, got;

        memcpy(key.destination, near.address, sizeof(key.destination));
        key.destination[random_below(near.family == 4 ? 4 : 16)] = (uint8_t)(9 + random_below(3));
        key.destination_port = htons((uint16_t)(ntohs(key.destination_port) + random_below(3) - 1));
        want = find_slowly(records, SERVICES, &key);
        got = hb_service_map_find(map, &key);
        if (got == HB_SERVICE_NOT_VIP)
            got = HB_SERVICE_NONE;
        assert_int_equal(got, want);
    }
    free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_specific_wins),
        cmocka_unit_test(single_addresses_are_vips_still),
        cmocka_unit_test(the_second_of_two_equal_ones_is_named),
        cmocka_unit_test(random_services_match_a_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
