/* SPDX-License-Identifier: BSD-3-Clause */
/* Which service an answer is of; which sources a pool has; when two services can't be told apart.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nat_map.h"

#define PORT(number) ((hb_be16)((number) >> 8 | ((number)&0xff) << 8))

struct scene {
    struct hb_service_record services[4];
    struct hb_pool_record pools[2];
    struct hb_backend_record backends[4];
    struct hb_source_record sources[4];
    struct hb_nat_input input;
};

static void add_service(struct scene *s, uint8_t vip, uint16_t port, uint32_t pool)
{
    s->services[s->input.services_count++] = (struct hb_service_record){.address = {192, 0, 2, vip},
                                                                        .port = PORT(port),
                                                                        .protocol = HB_PROTOCOL_TCP,
                                                                        .family = HB_FAMILY_IPV4,
                                                                        .pool = pool};
}

static void add_backend(struct scene *s, uint8_t number, uint32_t pool, uint8_t forwarding,
                        uint16_t nat_port)
{
    uint32_t count = s->input.backends_count++;

    s->backends[count] = (struct hb_backend_record){
        .id = count + 1, .pool = pool, .family = 4, .address = {198, 51, 100, number}};
    s->backends[count].rewrite.size = 14;
    s->backends[count].rewrite.forwarding = forwarding;
    s->backends[count].rewrite.nat_port = PORT(nat_port);
}

static struct hb_nat *build(struct scene *s, struct hb_nat_conflict *conflict)
{
    size_t bytes;
    void *memory;

    s->input.services = s->services;
    s->input.pools = s->pools;
    s->input.backends = s->backends;
    s->input.sources = s->sources;
    s->input.pools_count = 2;
    bytes = (hb_nat_bytes(&s->input) + 63) & ~(size_t)63;
    if (bytes == 0)
        return NULL;
    memory = aligned_alloc(64, bytes);
    memset(memory, 0, bytes);
    if (hb_nat_build(memory, &s->input, conflict) == NULL) {
        free(memory);
        return NULL;
    }
    return memory;
}

static const struct hb_nat_slot *find(const struct hb_nat *nat, uint8_t number, uint16_t port,
                                      uint8_t protocol)
{
    const struct hb_nat_key key = {
        .address = {198, 51, 100, number}, .port = PORT(port), .protocol = protocol, .family = 4};

    return hb_nat_find(nat, &key);
}

static void nothing_to_translate(void **state)
{
    struct scene s = {0};
    struct hb_nat_conflict conflict;

    (void)state;
    add_service(&s, 10, 80, 0);
    add_backend(&s, 11, 0, HB_FORWARDING_IPIP, 0);
    assert_null(build(&s, &conflict));
    assert_int_equal(hb_nat_bytes(&s.input), 0);
}

static void answers_by_port(void **state)
{
    struct scene s = {0};
    struct hb_nat_conflict conflict;
    struct hb_nat *nat;

    (void)state;
    add_service(&s, 10, 80, 0);
    add_service(&s, 11, 443, 0);
    add_backend(&s, 11, 0, HB_FORWARDING_NAT, 0);
    add_backend(&s, 12, 0, HB_FORWARDING_NAT, 0);
    nat = build(&s, &conflict);
    assert_non_null(nat);
    assert_int_equal(find(nat, 11, 80, 6)->service, 0);
    assert_int_equal(find(nat, 11, 443, 6)->service, 1);
    assert_int_equal(find(nat, 12, 443, 6)->backend, 2);
    assert_null(find(nat, 11, 81, 6));
    assert_null(find(nat, 11, 80, 17));
    assert_null(find(nat, 13, 80, 6));
    /* two VIPs behind one address: without a port nobody knows */
    assert_int_equal(find(nat, 11, 0, 6)->service, HB_NAT_MANY);
    assert_int_equal(find(nat, 11, 0, 1)->kind, HB_NAT_ADDRESS);
    assert_null(find(nat, 11, 0, 58));
    free(nat);
}

static void answers_that_are_alike(void **state)
{
    struct scene s = {0};
    struct hb_nat_conflict conflict;
    struct hb_nat *nat;

    (void)state;
    add_service(&s, 10, 80, 0);
    add_service(&s, 11, 81, 0);
    add_backend(&s, 11, 0, HB_FORWARDING_NAT, 0);
    nat = build(&s, &conflict);
    assert_non_null(nat);
    free(nat);
    s.backends[0].rewrite.nat_port = PORT(8080);
    assert_null(build(&s, &conflict));
    assert_int_equal(conflict.first, 0);
    assert_int_equal(conflict.second, 1);
    /* full NAT does not mind */
    s.backends[0].rewrite.forwarding = HB_FORWARDING_FULL_NAT;
    nat = build(&s, &conflict);
    assert_non_null(nat);
    free(nat);
}

/* Workers divide the ports; each port has one owner, whichever way it is asked. */
static void ports_and_their_workers(void **state)
{
    struct hb_nat_conflict conflict;

    (void)state;
    for (uint32_t workers = 1; workers <= 130; workers++) {
        struct scene s = {0};
        struct hb_nat *nat;

        add_service(&s, 10, 80, 0);
        add_backend(&s, 11, 0, HB_FORWARDING_FULL_NAT, 0);
        s.sources[0] = (struct hb_source_record){
            .address = {198, 51, 100, 64}, .family = 4, .port_first = 1024, .port_last = 65535};
        s.sources[1] = (struct hb_source_record){
            .address = {198, 51, 100, 65}, .family = 4, .port_first = 65535, .port_last = 65535};
        s.sources[2] =
            (struct hb_source_record){.address = {198, 51, 100, 10}, .family = 4, .own = 1};
        s.input.sources_count = 3;
        s.input.workers = workers;
        s.pools[0].sources_count = 2;
        nat = build(&s, &conflict);
        assert_non_null(nat);
        assert_true(nat->full);
        for (uint32_t port = 0; port < 65536; port++)
            assert_int_equal(hb_nat_worker_of(nat, (uint16_t)port), port % workers);
        for (uint32_t i = 0; i < 2; i++) {
            const struct hb_nat_source *source = &nat->sources[i];
            uint32_t last = source->first + source->each * workers - 1;

            assert_int_equal(source->first % workers, 0);
            if (source->each != 0) {
                assert_true(source->first >= s.sources[i].port_first && last <= 65535);
                assert_true(last + workers > 65535);
            }
        }
        assert_int_equal(find(nat, 64, 0, 0)->kind, HB_NAT_SOURCE);
        assert_int_equal(find(nat, 10, 0, 0)->kind, HB_NAT_OWN);
        free(nat);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_to_translate), cmocka_unit_test(answers_by_port),
        cmocka_unit_test(answers_that_are_alike), cmocka_unit_test(ports_and_their_workers)};

    return cmocka_run_group_tests_name("nat_map", tests, NULL, NULL);
}
