/* SPDX-License-Identifier: BSD-3-Clause */
/* From a configured NAT pool to a generation that the dataplane's own checker takes; and what that
 * one refuses when a record of it is damaged. */
#include <stdlib.h>
#include <string.h>

#include "generation_check.h"
#include "model_fixture.h"

struct scene {
    struct hb_model *model;
    struct hb_plan plan;
    struct hb_generation_header *blob;
    size_t size;
};

/* Encodes the plan and lets the dataplane judge it. */
static enum hb_reject judge(struct scene *s, struct hb_generation_fault *fault)
{
    static const struct hb_held_tables nothing;
    struct hb_generation_limits limits = {
        .services_max = HB_SERVICES_MAX, .backends_max = HB_BACKENDS_MAX + 1, .ports_count = 1};
    void *blob;

    limits.ports[0] = one_port.port[0].id;
    free(s->blob);
    assert_int_equal(hb_generation_encode(&s->plan, 7, &nothing, &blob, &s->size), 0);
    s->blob = blob;
    return hb_generation_check(blob, s->size, &limits, fault);
}

/* One pool `web` of two backends, one TCP service. */
static void make(struct scene *s, enum hb_forwarding forwarding)
{
    struct hb_config *config = make_config();
    struct hb_pool_config *pool = add_pool(config, "web");

    memset(s, 0, sizeof(*s));
    pool->forwarding = forwarding;
    pool->nat.port = 8080;
    if (forwarding == HB_FORWARDING_FULL_NAT) {
        pool->nat.ports = (struct hb_nat_ports){1024, 65535};
        pool->nat.sources.count = 1;
        pool->nat.sources.prefix[0].address = address_of("198.51.100.64");
        pool->nat.sources.prefix[0].length = 28;
        pool->nat.client_address = HB_CLIENT_BY_PROXY_V2;
    }
    add_backend(config, "web", "198.51.100.11", 1);
    add_backend(config, "web", "198.51.100.12", 1);
    add_service(config, "192.0.2.10", HB_PROTOCOL_TCP, 80, "web");
    s->model = hb_model_new();
    apply(s->model, config);
    resolve_all(s->model);
    s->model->client[0] = address_of("240.0.0.1");
    s->model->to_clients[0] = resolved_hop();
    s->model->own[0] = address_of("198.51.100.10");
    s->model->own_count = 1;
    all_up(s->model);
    reconcile(s->model, &s->plan);
}

static void done(struct scene *s)
{
    hb_plan_clear(&s->plan);
    hb_model_free(s->model);
    free(s->blob);
}

static void nat(void **state)
{
    struct hb_generation_fault fault;
    const struct hb_rewrite *rewrite;
    struct scene s;

    (void)state;
    make(&s, HB_FORWARDING_NAT);
    rewrite = &s.plan.backends[0].rewrite;
    assert_int_equal(rewrite->forwarding, HB_FORWARDING_NAT);
    assert_int_equal(rewrite->size, 14);
    assert_int_equal(rewrite->inner_max, resolved_hop().mtu);
    assert_memory_equal(rewrite->bytes + 14, ((uint8_t[]){198, 51, 100, 11}), 4);
    assert_memory_equal(&rewrite->nat_port, ((uint8_t[]){0x1f, 0x90}), 2);
    assert_int_equal(s.plan.sources_count, 1);
    assert_int_equal(s.plan.sources[0].own, 1);
    assert_int_equal(s.plan.settings.to_clients[0].size, 14);
    assert_int_equal(s.plan.settings.to_clients[1].size, 0); /* no default route there */
    assert_int_equal(judge(&s, &fault), HB_REJECT_NONE);
    done(&s);
}

static void full_nat(void **state)
{
    struct hb_generation_fault fault;
    struct scene s;

    (void)state;
    make(&s, HB_FORWARDING_FULL_NAT);
    assert_int_equal(s.plan.sources_count, 17);
    assert_int_equal(s.plan.pools[0].sources_count, 16);
    assert_int_equal(s.plan.sources[15].address[3], 79);
    assert_int_equal(s.plan.backends[0].rewrite.flags, HB_REWRITE_PROXY_V2);
    assert_int_equal(judge(&s, &fault), HB_REJECT_NONE);
    done(&s);
}

static void no_way_to_a_backend(void **state)
{
    struct scene s;

    (void)state;
    make(&s, HB_FORWARDING_NAT);
    s.model->pools[0].backends[0]->hop.resolved = false;
    s.model->pools[0].backends[0]->rewrite.size = 0;
    reconcile(s.model, &s.plan);
    assert_int_equal(s.plan.backends[0].rewrite.size, 0);
    assert_int_equal(s.plan.backends[0].use, HB_BACKEND_DOWN);
    done(&s);
}

#define REFUSED(forwarding, reason, word, change)                                                  \
    do {                                                                                           \
        struct hb_generation_fault fault;                                                          \
        struct scene s;                                                                            \
                                                                                                   \
        make(&s, forwarding);                                                                      \
        change;                                                                                    \
        assert_int_equal(judge(&s, &fault), reason);                                               \
        if (strstr(fault.text, word) == NULL)                                                      \
            fail_msg("\"%s\" says nothing of \"%s\"", fault.text, word);                           \
        done(&s);                                                                                  \
    } while (0)

static void what_the_dataplane_refuses(void **state)
{
    const enum hb_forwarding some = HB_FORWARDING_NAT, full = HB_FORWARDING_FULL_NAT;

    (void)state;
    REFUSED(some, HB_REJECT_REWRITE, "not the backend's",
            s.plan.backends[0].rewrite.bytes[17] ^= 1);
    REFUSED(some, HB_REJECT_REWRITE, "Ethernet header alone", s.plan.backends[0].rewrite.size = 34);
    REFUSED(some, HB_REJECT_REWRITE, "NAT none",
            s.plan.backends[0].rewrite.flags = HB_REWRITE_PROXY_V2);
    REFUSED(full, HB_REJECT_REWRITE, "one of PROXY v2",
            s.plan.backends[0].rewrite.flags |= HB_REWRITE_TCP_OPTION);
    REFUSED(some, HB_REJECT_REWRITE, "576", s.plan.backends[0].rewrite.inner_max = 500);
    REFUSED(some, HB_REJECT_REWRITE, "EtherType", s.plan.backends[0].rewrite.bytes[12] = 0x86);
    REFUSED(full, HB_REJECT_SOURCE, "no source addresses", s.plan.pools[0].sources_count = 0);
    REFUSED(full, HB_REJECT_SOURCE, "own address", s.plan.pools[0].sources_count = 17);
    REFUSED(full, HB_REJECT_SOURCE, "there are 17", s.plan.pools[0].sources_first = 12);
    REFUSED(full, HB_REJECT_SOURCE, "not an address", s.plan.sources[3].family = 5);
    REFUSED(full, HB_REJECT_SOURCE, "in order", s.plan.sources[3].port_last = 1);
    REFUSED(full, HB_REJECT_SOURCE, "no ports", s.plan.sources[16].port_last = 1);
    REFUSED(full, HB_REJECT_SOURCE, "own 2", s.plan.sources[16].own = 2);
}

/* Two services whose answers would be alike, should control ever publish them. */
static void answers_that_are_alike(void **state)
{
    struct hb_generation_fault fault;
    struct hb_service_record *services;
    struct scene s;

    (void)state;
    make(&s, HB_FORWARDING_NAT);
    services = calloc(2, sizeof(*services));
    services[0] = services[1] = s.plan.services[0];
    services[1].id++;
    services[1].address[3]++;
    free(s.plan.services);
    s.plan.services = services;
    s.plan.services_count = 2;
    assert_int_equal(judge(&s, &fault), HB_REJECT_REWRITE);
    assert_non_null(strstr(fault.text, "use full NAT"));
    done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nat),
        cmocka_unit_test(full_nat),
        cmocka_unit_test(no_way_to_a_backend),
        cmocka_unit_test(what_the_dataplane_refuses),
        cmocka_unit_test(answers_that_are_alike),
    };

    return cmocka_run_group_tests_name("plan_nat", tests, NULL, NULL);
}
