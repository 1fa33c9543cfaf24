/* SPDX-License-Identifier: BSD-3-Clause */
/* Blobs as control builds them, judged by the dataplane's own checker. */
#include "model_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "generation_check.h"

static const struct hb_held_tables nothing_held = {0};

struct holder {
    const struct hb_plan *plan;
};

static bool find_table(void *context, const uint8_t digest[HB_DIGEST_SIZE],
                       struct hb_held_table *table)
{
    const struct hb_plan *plan = ((struct holder *)context)->plan;

    for (uint32_t t = 0; plan != NULL && t < plan->tables_count; t++) {
        if (memcmp(plan->tables[t].digest, digest, HB_DIGEST_SIZE) != 0)
            continue;
        table->column.owner = plan->tables[t].column.owner;
        table->slots = plan->tables[t].slots;
        return true;
    }
    return false;
}

static enum hb_reject check(const void *blob, size_t size, const struct hb_plan *held)
{
    struct holder holder = {held};
    struct hb_generation_limits limits = {.services_max = HB_SERVICES_MAX,
                                          .backends_max = HB_BACKENDS_MAX + 1,
                                          .ports = {3},
                                          .ports_count = 1,
                                          .find_table = find_table,
                                          .context = &holder};
    struct hb_generation_fault fault = {0};
    enum hb_reject reason = hb_generation_check(blob, size, &limits, &fault);

    if (reason != HB_REJECT_NONE)
        print_message("reject: %s\n", fault.text);
    return reason;
}

static struct hb_model *working(struct hb_plan *plan)
{
    struct hb_model *model = hb_model_new();
    struct hb_config *config = make_web(3);

    add_pool(config, "six")->bounded_load = 256;
    add_backend(config, "six", "2001:db8:b::1", 2);
    add_backend(config, "six", "198.51.100.1", 1);
    add_service(config, "192.0.2.10", HB_PROTOCOL_UDP, 53, "six");
    apply(model, config);
    resolve_all(model);
    all_up(model);
    reconcile(model, plan);
    return model;
}

static void test_accepted_by_the_dataplane(void **state)
{
    struct hb_plan plan = {0};
    struct hb_model *model = working(&plan);
    const struct hb_generation_header *header;
    void *blob;
    size_t size;

    (void)state;
    assert_int_equal(hb_generation_encode(&plan, 7, &nothing_held, &blob, &size), 0);
    header = blob;
    assert_int_equal(header->number, 7);
    assert_int_equal(header->total_size, size);
    assert_memory_equal(header->content, plan.content, HB_DIGEST_SIZE);
    assert_int_equal(check(blob, size, NULL), HB_REJECT_NONE);
    assert_int_equal(plan.pools[0].bounded_load, 256); /* "six" */
    assert_int_equal(plan.pools[1].bounded_load, 0);
    free(blob);
    hb_plan_clear(&plan);
    hb_model_free(model);
}

static struct hb_source_list *make_list(uint8_t third, bool denies_others)
{
    struct hb_source_list *list = calloc(1, sizeof(*list) + 2 * sizeof(list->prefix[0]));

    *list = (struct hb_source_list){.holders = 1, .count = 2, .denies_others = denies_others};
    for (uint32_t i = 0; i < 2; i++)
        list->prefix[i] = (struct hb_prefix_record){.address = {10, (uint8_t)i, third},
                                                    .family = HB_FAMILY_IPV4,
                                                    .length = 24,
                                                    .allow = denies_others};
    return list;
}

/* Services in all their forms, in this order or turned around. */
static void add_all_forms(struct hb_config *config, bool turned)
{
    for (uint32_t i = 0; i < 6; i++) {
        uint32_t which = turned ? 5 - i : i;
        struct hb_service_config *service;

        add_service(config, which < 3 ? "198.18.0.0" : "198.19.0.1",
                    which == 5 ? HB_PROTOCOL_SCTP : HB_PROTOCOL_UDP, (uint16_t)(1000 + which),
                    "web");
        service = &config->services[config->services_count - 1];
        service->prefix_length = which < 3 ? 16 : 32;
        if (which == 0)
            service->port_last = 1100;
        if (which == 1 || which == 3 || which == 4) /* the first two are equal */
            service->rules.sources = make_list(which == 4, which == 4);
        if (which == 2) {
            service->rules.quic_count = 2;
            service->rules.quic[0] =
                (struct hb_quic_record){.server_id_length = 2, .nonce_length = 8};
            service->rules.quic[1] = (struct hb_quic_record){
                .config_id = 1, .server_id_length = 2, .nonce_length = 14, .encrypted = 1};
        }
        if (which == 5) {
            service->rules.affinity = HB_AFFINITY_SOURCE;
            service->rules.affinity_prefix = 24;
            service->rules.flows = 9;
            service->rules.new_flows = 8;
        }
    }
    for (uint32_t b = 0; b < config->pools[0].backends_count; b++) {
        config->pools[0].backends[b].server_id_length = 2;
        config->pools[0].backends[b].server_id[1] = (uint8_t)b;
    }
}

static const struct hb_service_record *find_service(const struct hb_plan *plan, uint16_t port)
{
    for (uint32_t s = 0; s < plan->services_count; s++)
        if (plan->services[s].port == __builtin_bswap16(port))
            return &plan->services[s];
    fail_msg("no service has port %u", port);
    return NULL;
}

/* All of it reaches the dataplane and is accepted; equal lists travel once; ids stay with VIP,
 * protocol and ports, and the order of the file says nothing (BL-75). */
static void test_services_in_all_forms(void **state)
{
    struct hb_model *model = hb_model_new();
    struct hb_config *config = make_web(3), *turned = make_web(3);
    struct hb_plan plan = {0}, again = {0};
    void *blob;
    size_t size;

    (void)state;
    add_all_forms(config, false);
    add_all_forms(turned, true);
    apply(model, config);
    resolve_all(model);
    all_up(model);
    reconcile(model, &plan);
    assert_int_equal(hb_generation_encode(&plan, 7, &nothing_held, &blob, &size), 0);
    assert_int_equal(check(blob, size, NULL), HB_REJECT_NONE);
    free(blob);
    assert_int_equal(plan.prefixes_count, 4);
    assert_int_equal(plan.quic_count, 2);
    assert_int_equal(find_service(&plan, 1000)->prefix_length, 16);
    assert_int_equal(find_service(&plan, 1000)->port_last, __builtin_bswap16(1100));
    assert_int_equal(find_service(&plan, 1001)->prefix_list,
                     find_service(&plan, 1003)->prefix_list);
    assert_int_not_equal(find_service(&plan, 1001)->prefix_list, 0);
    assert_int_not_equal(find_service(&plan, 1001)->prefix_list,
                         find_service(&plan, 1004)->prefix_list);
    assert_int_equal(find_service(&plan, 1001)->flags, 0);
    assert_int_equal(find_service(&plan, 1004)->flags, HB_SERVICE_DENY_OTHERS);
    assert_int_equal(find_service(&plan, 1002)->quic_count, 2);
    assert_int_equal(find_service(&plan, 1005)->flows_max, 9);
    assert_int_equal(plan.backends[1].server_id_length, 2);

    assert_int_equal(apply(model, turned).services_changed, 0);
    reconcile(model, &again);
    assert_memory_equal(again.content, plan.content, HB_DIGEST_SIZE);
    hb_plan_clear(&plan);
    hb_plan_clear(&again);
    hb_model_free(model);
}

static void test_held_tables_are_left_out(void **state)
{
    struct hb_plan plan = {0};
    struct hb_model *model = working(&plan);
    struct hb_held_tables held = {calloc(1, HB_DIGEST_SIZE), 1};
    void *full, *part;
    size_t full_size, part_size;

    (void)state;
    assert_int_equal(plan.tables_count, 2);
    memcpy(held.digest[0], plan.tables[1].digest, HB_DIGEST_SIZE);
    assert_int_equal(hb_generation_encode(&plan, 7, &nothing_held, &full, &full_size), 0);
    assert_int_equal(hb_generation_encode(&plan, 7, &held, &part, &part_size), 0);
    assert_int_equal(full_size - part_size, 512); /* 251 slots, aligned */
    assert_int_equal(check(part, part_size, &plan), HB_REJECT_NONE);
    assert_int_equal(check(part, part_size, NULL), HB_REJECT_TABLE_UNKNOWN);
    free(full);
    free(part);
    free(held.digest);
    hb_plan_clear(&plan);
    hb_model_free(model);
}

static void test_equal_plans_make_equal_blobs(void **state)
{
    struct hb_plan plan = {0}, again = {0};
    struct hb_model *model = working(&plan), *other = working(&again);
    void *one, *two;
    size_t one_size, two_size;

    (void)state;
    assert_int_equal(hb_generation_encode(&plan, 9, &nothing_held, &one, &one_size), 0);
    assert_int_equal(hb_generation_encode(&again, 9, &nothing_held, &two, &two_size), 0);
    assert_int_equal(one_size, two_size);
    assert_memory_equal(one, two, one_size);
    free(one);
    free(two);
    hb_plan_clear(&plan);
    hb_plan_clear(&again);
    hb_model_free(model);
    hb_model_free(other);
}

/* Pools of the same members share one table only when ids are equal, so never; the same digest
 * twice would be one record. What matters: no usable backend at all is a good generation too
 * (BL-68). */
static void test_nothing_usable_is_accepted(void **state)
{
    struct hb_plan plan = {0};
    struct hb_model *model = hb_model_new();
    void *blob;
    size_t size;

    (void)state;
    apply(model, make_web(2));
    reconcile(model, &plan);
    assert_int_equal(plan.tables_count, 0);
    assert_int_equal(hb_generation_encode(&plan, 1, &nothing_held, &blob, &size), 0);
    assert_int_equal(check(blob, size, NULL), HB_REJECT_NONE);
    free(blob);
    hb_plan_clear(&plan);
    hb_model_free(model);
}

static void test_any_changed_byte_is_refused(void **state)
{
    struct hb_plan plan = {0};
    struct hb_model *model = working(&plan);
    void *blob;
    size_t size;

    (void)state;
    assert_int_equal(hb_generation_encode(&plan, 1, &nothing_held, &blob, &size), 0);
    ((uint8_t *)blob)[size / 2] ^= 1;
    assert_int_equal(check(blob, size, NULL), HB_REJECT_CHECKSUM);
    free(blob);
    hb_plan_clear(&plan);
    hb_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted_by_the_dataplane),
        cmocka_unit_test(test_services_in_all_forms),
        cmocka_unit_test(test_held_tables_are_left_out),
        cmocka_unit_test(test_equal_plans_make_equal_blobs),
        cmocka_unit_test(test_nothing_usable_is_accepted),
        cmocka_unit_test(test_any_changed_byte_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
