/* SPDX-License-Identifier: BSD-3-Clause */
/* The map from VIP, protocol and port to the service. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "service_map.h"

static hb_be16 be16(uint16_t value)
{
    return (hb_be16)__builtin_bswap16(value);
}

/* A service on 192.0.2.N, or 2001:db8::N. */
static struct hb_service_record make_service(uint8_t family, uint8_t n, uint8_t protocol,
                                             uint16_t port)
{
    struct hb_service_record record = {.family = family,
                                       .protocol = protocol,
                                       .port = be16(port),
                                       .port_last = be16(port),
                                       .prefix_length = hb_address_bits(family)};

    if (family == HB_FAMILY_IPV4)
        memcpy(record.address, (uint8_t[]){192, 0, 2, n}, 4);
    else
        memcpy(record.address, (uint8_t[]){0x20, 1, 0xd, 0xb8, [15] = n}, 16);
    return record;
}

/* A packet to that service. The memory of the key held `fill` before (BL-39). */
static struct hb_flow_key make_packet(const struct hb_service_record *to, int fill)
{
    struct hb_flow_key key;

    memset(&key, fill, sizeof(key));
    memcpy(key.destination, to->address, sizeof(key.destination));
    key.destination_port = to->port;
    key.protocol = to->protocol;
    key.family = to->family;
    return key;
}

struct fixture {
    void *memory;
    struct hb_service_map *map;
};

static struct fixture build(const struct hb_service_record *records, uint32_t count)
{
    struct fixture fixture = {
        .memory = aligned_alloc(64, (hb_service_map_bytes(records, count) + 63) & ~63)};
    uint32_t duplicate;

    fixture.map = hb_service_map_build(fixture.memory, records, count, &duplicate);
    assert_non_null(fixture.map);
    return fixture;
}

static int32_t find(const struct hb_service_map *map, struct hb_service_record to)
{
    struct hb_flow_key key = make_packet(&to, 0);

    return hb_service_map_find(map, &key);
}

static void an_empty_map_knows_no_vip(void **state)
{
    struct fixture fixture = build(NULL, 0);

    (void)state;
    assert_int_equal(find(fixture.map, make_service(4, 10, 6, 80)), HB_SERVICE_NOT_VIP);
    free(fixture.memory);
}

/* BL-72, BL-73: ports and protocols of one address are services of their own. */
static void tells_services_of_one_address_apart(void **state)
{
    struct hb_service_record records[] = {
        make_service(4, 10, 6, 53), make_service(4, 10, 17, 53), make_service(4, 10, 6, 443),
        make_service(6, 10, 6, 53), make_service(4, 20, 6, 80),
    };
    struct fixture fixture = build(records, 5);

    (void)state;
    for (int32_t i = 0; i < 5; i++)
        assert_int_equal(find(fixture.map, records[i]), i);
    assert_int_equal(find(fixture.map, make_service(4, 10, 17, 443)), HB_SERVICE_NONE);
    assert_int_equal(find(fixture.map, make_service(4, 10, 6, 80)), HB_SERVICE_NONE);
    assert_int_equal(find(fixture.map, make_service(6, 10, 17, 53)), HB_SERVICE_NONE);
    assert_int_equal(find(fixture.map, make_service(6, 20, 6, 80)), HB_SERVICE_NOT_VIP);
    assert_int_equal(find(fixture.map, make_service(4, 30, 6, 80)), HB_SERVICE_NOT_VIP);
    assert_int_equal(find(fixture.map, make_service(4, 10, 0, 0)), HB_SERVICE_NONE);
    free(fixture.memory);
}

/* The IPv6 address whose first bytes are those of an IPv4 VIP is not that VIP. */
static void families_do_not_mix(void **state)
{
    struct hb_service_record v4 = make_service(4, 10, 6, 80), look_alike = v4;
    struct fixture fixture = build(&v4, 1);

    (void)state;
    look_alike.family = HB_FAMILY_IPV6;
    assert_int_equal(find(fixture.map, look_alike), HB_SERVICE_NOT_VIP);
    free(fixture.memory);
}

static void names_the_second_of_two_equal_services(void **state)
{
    struct hb_service_record records[] = {make_service(4, 10, 6, 80), make_service(4, 11, 6, 80),
                                          make_service(4, 10, 6, 80)};
    void *memory = aligned_alloc(64, (hb_service_map_bytes(records, 3) + 63) & ~63);
    uint32_t duplicate = 0;

    (void)state;
    assert_null(hb_service_map_build(memory, records, 3, &duplicate));
    assert_int_equal(duplicate, 2);
    free(memory);
}

/* As many services as a generation may have, and BL-39: every look-up hits, whatever the memory of
 * the rest of the key held. */
static void holds_the_largest_generation(void **state)
{
    struct hb_service_record *records = calloc(HB_SERVICES_MAX, sizeof(*records));
    struct fixture fixture;

    (void)state;
    for (uint32_t i = 0; i < HB_SERVICES_MAX; i++)
        records[i] = make_service(i % 2 ? 4 : 6, (uint8_t)(i / 512), i % 4 < 2 ? 6 : 17,
                                  (uint16_t)(1 + i / 4));
    fixture = build(records, HB_SERVICES_MAX);
    for (uint32_t i = 0; i < 3 * HB_SERVICES_MAX; i++) {
        static const int fill[] = {0, 0xff, 0xa5};
        struct hb_flow_key key = make_packet(&records[i / 3], fill[i % 3]);

        assert_int_equal(hb_service_map_find(fixture.map, &key), (int32_t)(i / 3));
    }
    free(fixture.memory);
    free(records);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_knows_no_vip),
        cmocka_unit_test(tells_services_of_one_address_apart),
        cmocka_unit_test(families_do_not_mix),
        cmocka_unit_test(names_the_second_of_two_equal_services),
        cmocka_unit_test(holds_the_largest_generation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
