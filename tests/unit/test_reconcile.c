/* SPDX-License-Identifier: BSD-3-Clause */
#include "model_fixture.h"

#include <string.h>

#include "pool_table.h"

static int open_model(void **state)
{
    *state = hb_model_new();
    return *state == NULL;
}

static int close_model(void **state)
{
    hb_model_free(*state);
    return 0;
}

static struct hb_model *working(void **state, unsigned backends)
{
    struct hb_model *model = *state;

    apply(model, make_web(backends));
    resolve_all(model);
    all_up(model);
    return model;
}

static void drain(struct hb_model *model, const char *address, bool on)
{
    hb_backend_state_apply(&backend_at(model, "web", address)->state,
                           on ? HB_EVENT_DRAIN : HB_EVENT_UNDRAIN, 2, 2, NOW_MS, NOW_MS);
}

static const struct hb_backend_record *record_of(const struct hb_plan *plan, uint32_t id)
{
    for (uint32_t b = 0; b < plan->backends_count; b++) {
        if (plan->backends[b].id == id)
            return &plan->backends[b];
    }
    fail_msg("no record of id %u", id);
    return NULL;
}

static void test_plan_of_a_working_pool(void **state)
{
    struct hb_model *model = working(state, 3);
    struct hb_plan plan = {0};

    reconcile(model, &plan);
    assert_int_equal(plan.services_count, 2);
    assert_int_equal(plan.pools_count, 1);
    assert_int_equal(plan.backends_count, 3);
    assert_int_equal(plan.tables_count, 1);
    assert_int_equal(plan.pools[0].table, 0);
    assert_int_equal(plan.backends[1].use, HB_BACKEND_ACTIVE);
    assert_int_equal(plan.backends[1].rewrite.size, 34);
    for (int b = 1; b <= 3; b++) {
        char address[16] = "198.51.100.0";

        address[11] = (char)('0' + b);
        assert_in_range(slots_of(model, "web", address), 83, 84);
    }
    hb_plan_clear(&plan);
}

/* BL-62: order in the file never matters; and the same again is the same again. */
static void test_order_never_matters(void **state)
{
    struct hb_model *model = working(state, 2), *other = hb_model_new();
    struct hb_config *config = make_config();
    struct hb_plan plan = {0}, reversed = {0};

    reconcile(model, &plan);
    add_pool(config, "web");
    add_backend(config, "web", "198.51.100.2", 1);
    add_backend(config, "web", "198.51.100.1", 1);
    add_service(config, "2001:db8:a::10", HB_PROTOCOL_TCP, 80, "web");
    add_service(config, "192.0.2.10", HB_PROTOCOL_TCP, 80, "web");
    apply(other, config);
    resolve_all(other);
    all_up(other);
    reconcile(other, &reversed);
    /* Ids were given in another order, so contents differ; who owns which slot does not. */
    assert_memory_equal(plan.pools[0].owners, reversed.pools[0].owners, HB_DIGEST_SIZE);
    reconcile(model, &reversed);
    assert_memory_equal(plan.content, reversed.content, HB_DIGEST_SIZE);
    hb_plan_clear(&plan);
    hb_plan_clear(&reversed);
    hb_model_free(other);
}

static void test_reordered_file_is_no_change(void **state)
{
    struct hb_model *model = working(state, 2);
    struct hb_config *config = make_config();
    struct hb_plan before = {0}, after = {0};

    reconcile(model, &before);
    add_pool(config, "web");
    add_backend(config, "web", "198.51.100.2", 1);
    add_backend(config, "web", "198.51.100.1", 1);
    add_service(config, "2001:db8:a::10", HB_PROTOCOL_TCP, 80, "web");
    add_service(config, "192.0.2.10", HB_PROTOCOL_TCP, 80, "web");
    apply(model, config);
    reconcile(model, &after);
    assert_memory_equal(before.content, after.content, HB_DIGEST_SIZE);
    assert_false(model->pools[0].changed);
    hb_plan_clear(&before);
    hb_plan_clear(&after);
}

static void test_drain_moves_its_own_slots(void **state)
{
    struct hb_model *model = working(state, 4);
    struct hb_plan plan = {0};
    uint8_t before[HB_DIGEST_SIZE], owners[HB_DIGEST_SIZE];
    uint64_t all[4];
    uint32_t own;

    reconcile(model, &plan);
    memcpy(before, plan.content, sizeof(before));
    memcpy(owners, plan.pools[0].owners, sizeof(owners));
    own = slots_of(model, "web", "198.51.100.3");
    drain(model, "198.51.100.3", true);
    reconcile(model, &plan);
    assert_int_equal(slots_of(model, "web", "198.51.100.3"), 0);
    assert_int_equal(record_of(&plan, 3)->use, HB_BACKEND_DRAINING);
    assert_true(record_of(&plan, 3)->rewrite.size > 0);
    assert_true(model->pools[0].changed);
    assert_int_equal(model->pools[0].change.ideal, own);
    assert_int_equal(model->pools[0].change.moved, own + model->pools[0].change.collateral);
    /* Undrain gives the old owners back, exactly; what moved stays marked until it has settled. */
    drain(model, "198.51.100.3", false);
    reconcile(model, &plan);
    assert_memory_equal(plan.pools[0].owners, owners, sizeof(owners));
    assert_int_equal(model->pools[0].history.unsettled_count, model->pools[0].change.moved);
    assert_memory_not_equal(plan.content, before, sizeof(before));
    memset(all, 0xff, sizeof(all));
    assert_int_equal(hb_pool_table_settle(&model->pools[0], all, 0, 251),
                     model->pools[0].change.moved);
    reconcile(model, &plan);
    assert_memory_equal(plan.content, before, sizeof(before));
    hb_plan_clear(&plan);
}

/* BL-66: weight 0 takes no new flows and keeps its old ones; all zero is "no usable backend". */
static void test_weight_zero(void **state)
{
    struct hb_model *model = *state;
    struct hb_plan plan = {0};

    for (uint32_t weight = 1; weight + 1 > 0; weight--) {
        struct hb_config *config = make_config();

        add_pool(config, "web");
        add_backend(config, "web", "198.51.100.1", weight);
        add_backend(config, "web", "198.51.100.2", 0);
        apply(model, config);
        resolve_all(model);
        all_up(model);
        reconcile(model, &plan);
        assert_int_equal(plan.backends[1].use, HB_BACKEND_ACTIVE);
        if (weight == 1)
            assert_int_equal(slots_of(model, "web", "198.51.100.1"), 251);
        else
            assert_int_equal(plan.pools[0].table, HB_POOL_NO_TABLE);
    }
    hb_plan_clear(&plan);
}

/* BL-67 and BL-68: every set of dead members; never a slot for one of them, no table when all are
 * dead. */
static void test_dead_members_own_nothing(void **state)
{
    static const char *const address[] = {"198.51.100.1", "198.51.100.2", "198.51.100.3",
                                          "198.51.100.4"};
    struct hb_model *model = working(state, 4);
    struct hb_plan plan = {0};

    for (unsigned dead = 0; dead < 16; dead++) {
        unsigned alive = 4 - (unsigned)__builtin_popcount(dead);

        for (unsigned b = 0; b < 4; b++) {
            for (int times = 0; times < 2; times++)
                probe(model, "web", address[b], !(dead & 1u << b));
        }
        reconcile(model, &plan);
        for (unsigned b = 0; b < 4; b++) {
            uint32_t slots = slots_of(model, "web", address[b]);

            assert_int_equal(backend_at(model, "web", address[b])->slots, slots);
            if (dead & 1u << b)
                assert_int_equal(slots, 0);
            else
                assert_in_range(slots, 251 / alive - 2, 251 / alive + 2);
            assert_int_equal(record_of(&plan, b + 1)->use,
                             dead & 1u << b ? HB_BACKEND_DOWN : HB_BACKEND_ACTIVE);
        }
        assert_int_equal(plan.pools[0].table == HB_POOL_NO_TABLE, alive == 0);
        assert_int_equal(plan.tables_count, alive > 0);
    }
    hb_plan_clear(&plan);
}

static void test_unknown_backends_get_no_traffic(void **state)
{
    struct hb_model *model = *state;
    struct hb_plan plan = {0};

    apply(model, make_web(2));
    resolve_all(model);
    probe(model, "web", "198.51.100.1", true);
    reconcile(model, &plan);
    assert_int_equal(slots_of(model, "web", "198.51.100.1"), 251);
    assert_int_equal(record_of(&plan, 2)->use, HB_BACKEND_DOWN);
    hb_plan_clear(&plan);
}

static void test_unresolved_next_hop(void **state)
{
    struct hb_model *model = working(state, 2);
    struct hb_plan plan = {0};
    struct hb_model_backend *lost = backend_at(model, "web", "198.51.100.2");

    memset(&lost->hop, 0, sizeof(lost->hop));
    strcpy(lost->hop.problem, "no route to 198.51.100.2");
    reconcile(model, &plan);
    assert_int_equal(slots_of(model, "web", "198.51.100.1"), 251);
    assert_int_equal(record_of(&plan, 2)->use, HB_BACKEND_DOWN);
    assert_int_equal(record_of(&plan, 2)->rewrite.size, 0);
    assert_string_equal(lost->problem, "no route to 198.51.100.2");
    /* Once it was known, losing it is a matter for health checks. */
    lost->hop = resolved_hop();
    reconcile(model, &plan);
    lost->hop.resolved = false;
    reconcile(model, &plan);
    assert_int_equal(record_of(&plan, 2)->use, HB_BACKEND_ACTIVE);
    assert_true(slots_of(model, "web", "198.51.100.2") > 0);
    hb_plan_clear(&plan);
}

/* BL-55: another mode reaches every backend with the next generation; a backend that can't have it
 * gets nothing, rather than what it does not expect. */
static void test_another_mode(void **state)
{
    struct hb_model *model = working(state, 2);
    struct hb_plan plan = {0};
    struct hb_model_backend *far = backend_at(model, "web", "198.51.100.2");
    struct hb_model_backend *near = backend_at(model, "web", "198.51.100.1");

    model->pools[0].encap.gue.port = 6080;
    model->pools[0].forwarding = HB_FORWARDING_GUE;
    reconcile(model, &plan);
    assert_int_equal(record_of(&plan, 1)->rewrite.forwarding, HB_FORWARDING_GUE);
    assert_int_equal(record_of(&plan, 1)->rewrite.size, 46);
    assert_int_equal(record_of(&plan, 2)->rewrite.forwarding, HB_FORWARDING_GUE);
    model->pools[0].forwarding = HB_FORWARDING_L2;
    near->hop.gateway = near->address;
    reconcile(model, &plan);
    assert_int_equal(record_of(&plan, 1)->rewrite.size, 14);
    assert_int_equal(record_of(&plan, 2)->rewrite.size, 0);
    assert_int_equal(record_of(&plan, 2)->use, HB_BACKEND_DOWN);
    assert_non_null(strstr(far->problem, "l2 needs it on a link"));
    assert_int_equal(slots_of(model, "web", "198.51.100.1"), 251);
    hb_plan_clear(&plan);
}

static void test_only_changed_pools_are_rebuilt(void **state)
{
    struct hb_model *model = *state;
    struct hb_config *config = make_web(3);
    struct hb_plan plan = {0};
    const uint16_t *web, *api;

    add_pool(config, "api");
    add_backend(config, "api", "198.51.100.1", 1);
    add_backend(config, "api", "198.51.100.2", 1);
    apply(model, config);
    resolve_all(model);
    all_up(model);
    reconcile(model, &plan);
    web = hb_model_pool(model, "web")->owner;
    api = hb_model_pool(model, "api")->owner;
    drain(model, "198.51.100.3", true);
    reconcile(model, &plan);
    assert_ptr_not_equal(hb_model_pool(model, "web")->owner, web);
    assert_ptr_equal(hb_model_pool(model, "api")->owner, api);
    assert_false(hb_model_pool(model, "api")->changed);
    hb_plan_clear(&plan);
}

static struct hb_config *make_replacement(void)
{
    struct hb_config *config = make_config();

    add_pool(config, "web");
    add_backend(config, "web", "198.51.100.201", 1);
    add_backend(config, "web", "198.51.100.202", 1);
    add_service(config, "192.0.2.10", HB_PROTOCOL_TCP, 80, "web");
    return config;
}

/* BL-79: all members replaced at once. */
static void test_whole_pool_replaced_without_a_gap(void **state)
{
    struct hb_model *model = working(state, 2);
    struct hb_plan plan = {0};

    reconcile(model, &plan);
    assert_int_equal(apply(model, make_replacement()).backends_removed, 2);
    resolve_all(model);
    reconcile(model, &plan);
    assert_int_equal(plan.backends_count, 4);
    assert_true(slots_of(model, "web", "198.51.100.1") > 0);
    probe(model, "web", "198.51.100.201", true);
    reconcile(model, &plan);
    assert_int_equal(slots_of(model, "web", "198.51.100.201"), 251);
    assert_int_equal(plan.backends_count, 2);
    assert_null(backend_at(model, "web", "198.51.100.1"));
    assert_int_equal(hb_ids_used(model->backend_ids), 2);
    hb_plan_clear(&plan);
}

static void test_leaving_members_do_not_outlast_the_verdict(void **state)
{
    struct hb_model *model = working(state, 2);
    struct hb_plan plan = {0};

    reconcile(model, &plan);
    apply(model, make_replacement());
    resolve_all(model);
    probe(model, "web", "198.51.100.201", false);
    reconcile(model, &plan);
    assert_int_equal(plan.backends_count, 4);
    probe(model, "web", "198.51.100.202", false);
    reconcile(model, &plan);
    assert_int_equal(plan.backends_count, 2);
    assert_int_equal(plan.pools[0].table, HB_POOL_NO_TABLE);
    hb_plan_clear(&plan);
}

static void test_a_leaving_member_can_return(void **state)
{
    struct hb_model *model = working(state, 2);
    struct hb_plan plan = {0};
    uint32_t id = backend_at(model, "web", "198.51.100.1")->id;

    reconcile(model, &plan);
    apply(model, make_replacement());
    reconcile(model, &plan);
    apply(model, make_web(2));
    reconcile(model, &plan);
    assert_int_equal(backend_at(model, "web", "198.51.100.1")->id, id);
    assert_false(backend_at(model, "web", "198.51.100.1")->leaving);
    assert_int_equal(plan.backends_count, 2);
    assert_true(slots_of(model, "web", "198.51.100.1") > 0);
    hb_plan_clear(&plan);
}

/* By hand, 7 slots: owner 1 has two too many, of three that moved. */
static void test_ideal_by_hand(void **state)
{
    static const uint16_t from[7] = {1, 1, 1, 1, 2, 2, 2};
    static const uint16_t to[7] = {1, 2, 3, 3, 1, 2, 2};

    (void)state;
    assert_int_equal(hb_table_ideal(from, to, 7), 2);
    assert_int_equal(hb_table_ideal(from, from, 7), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_model, close_model)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_plan_of_a_working_pool),
        CASE(test_order_never_matters),
        CASE(test_reordered_file_is_no_change),
        CASE(test_drain_moves_its_own_slots),
        CASE(test_weight_zero),
        CASE(test_dead_members_own_nothing),
        CASE(test_unknown_backends_get_no_traffic),
        CASE(test_unresolved_next_hop),
        CASE(test_another_mode),
        CASE(test_only_changed_pools_are_rebuilt),
        CASE(test_whole_pool_replaced_without_a_gap),
        CASE(test_leaving_members_do_not_outlast_the_verdict),
        CASE(test_a_leaving_member_can_return),
        cmocka_unit_test(test_ideal_by_hand),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
