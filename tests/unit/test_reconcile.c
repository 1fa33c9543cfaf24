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
        else /* closed, with a table for the old flows */
            assert_int_equal(plan.pools[0].flags, HB_POOL_CLOSED);
        assert_int_equal(model->pools[0].usable, weight);
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

/* BL-68 (d): a pool whose members all drain is closed and keeps its table, so that flows without an
 * entry find their backend; BL-92: taken back, it has the old table, to the digest. */
static void test_all_draining(void **state)
{
    struct hb_model *model = working(state, 3);
    struct hb_plan plan = {0};
    uint8_t owners[HB_DIGEST_SIZE];

    reconcile(model, &plan);
    memcpy(owners, model->pools[0].owners, sizeof(owners));
    drain(model, "198.51.100.1", true);
    reconcile(model, &plan);
    assert_int_equal(plan.pools[0].flags, 0);
    drain(model, "198.51.100.2", true);
    drain(model, "198.51.100.3", true);
    reconcile(model, &plan);
    assert_int_equal(plan.pools[0].flags, HB_POOL_CLOSED);
    assert_int_equal(plan.pools[0].table, 0);
    assert_memory_equal(model->pools[0].owners, owners, sizeof(owners));
    assert_int_equal(model->pools[0].usable, 0);
    assert_int_equal(record_of(&plan, 1)->use, HB_BACKEND_DRAINING);

    /* One of them fails: its slots go to the others, nobody gets a dead one. */
    probe(model, "web", "198.51.100.2", false);
    probe(model, "web", "198.51.100.2", false);
    reconcile(model, &plan);
    assert_int_equal(slots_of(model, "web", "198.51.100.2"), 0);
    /* The deadline of another one passes: it gets nothing at all. */
    hb_backend_state_apply(&backend_at(model, "web", "198.51.100.1")->state, HB_EVENT_DEADLINE, 2,
                           2, NOW_MS, NOW_MS);
    reconcile(model, &plan);
    assert_int_equal(slots_of(model, "web", "198.51.100.3"), 251);
    assert_int_equal(record_of(&plan, 1)->use, HB_BACKEND_DOWN);
    /* And when none is left that works, there is no table. */
    probe(model, "web", "198.51.100.3", false);
    probe(model, "web", "198.51.100.3", false);
    reconcile(model, &plan);
    assert_int_equal(plan.pools[0].table, HB_POOL_NO_TABLE);
    assert_int_equal(plan.pools[0].flags, 0);

    for (int b = 1; b <= 3; b++) {
        char address[16] = "198.51.100.0";

        address[11] = (char)('0' + b);
        drain(model, address, false);
        probe(model, "web", address, true);
        probe(model, "web", address, true);
    }
    reconcile(model, &plan);
    assert_int_equal(plan.pools[0].flags, 0);
    assert_memory_equal(model->pools[0].owners, owners, sizeof(owners));
    hb_plan_clear(&plan);
}

/* BL-68 "open": below half of the backends all are used that no operator took out, and their
 * records say so; a flow that was set up on a failed one is not selected anew with each packet. */
static void test_panic(void **state)
{
    struct hb_model *model = *state;
    struct hb_config *config = make_web(4);
    struct hb_plan plan = {0};

    config->pools[0].failure.panic = HB_PANIC_ONE / 2;
    apply(model, config);
    resolve_all(model);
    reconcile(model, &plan);
    assert_int_equal(plan.pools[0].table, HB_POOL_NO_TABLE); /* nothing was probed yet */
    all_up(model);
    drain(model, "198.51.100.4", true);
    for (int times = 0; times < 2; times++) {
        probe(model, "web", "198.51.100.1", false);
        probe(model, "web", "198.51.100.2", false);
    }
    reconcile(model, &plan);
    assert_int_equal(model->pools[0].mode, HB_POOL_MODE_PANIC);
    assert_in_range(slots_of(model, "web", "198.51.100.1"), 80, 87);
    assert_int_equal(record_of(&plan, 1)->use, HB_BACKEND_ACTIVE);
    assert_int_equal(slots_of(model, "web", "198.51.100.4"), 0);
    probe(model, "web", "198.51.100.1", true);
    probe(model, "web", "198.51.100.1", true);
    reconcile(model, &plan);
    assert_int_equal(model->pools[0].mode, HB_POOL_MODE_NORMAL);
    assert_int_equal(record_of(&plan, 2)->use, HB_BACKEND_DOWN);
    assert_int_equal(slots_of(model, "web", "198.51.100.2"), 0);
    hb_plan_clear(&plan);
}

/* The backups serve when too few own ones do, and keep their flows when these are back. */
static void test_backups(void **state)
{
    struct hb_model *model = *state;
    struct hb_config *config = make_web(2);
    struct hb_plan plan = {0};

    config->pools[0].failure = (struct hb_failure_config){2, HB_BELOW_BACKUP, 0, "spare"};
    add_backend(config, "web", "198.51.100.9", 1)->backup = true;
    apply(model, config);
    resolve_all(model);
    all_up(model);
    reconcile(model, &plan);
    assert_int_equal(slots_of(model, "web", "198.51.100.9"), 0);
    assert_int_equal(model->pools[0].usable, 2);
    probe(model, "web", "198.51.100.1", false);
    probe(model, "web", "198.51.100.1", false);
    reconcile(model, &plan);
    assert_int_equal(model->pools[0].mode, HB_POOL_MODE_BACKUP);
    assert_int_equal(slots_of(model, "web", "198.51.100.9"), 251);
    assert_int_equal(record_of(&plan, 2)->use, HB_BACKEND_ACTIVE); /* its old flows stay */
    /* A backup that has failed is no help: what is left serves. */
    probe(model, "web", "198.51.100.9", false);
    probe(model, "web", "198.51.100.9", false);
    reconcile(model, &plan);
    assert_int_equal(slots_of(model, "web", "198.51.100.2"), 251);
    probe(model, "web", "198.51.100.1", true);
    probe(model, "web", "198.51.100.1", true);
    reconcile(model, &plan);
    assert_int_equal(model->pools[0].mode, HB_POOL_MODE_NORMAL);
    hb_plan_clear(&plan);
}

/* BL-71: 10 backends, an eleventh joins with a ramp of a minute; second by second. */
static void test_slow_start(void **state)
{
    struct hb_model *model = working(state, 10);
    struct hb_config *config = make_web(11);
    uint32_t share = 0, moved = 0, in_the_end;
    struct hb_plan plan = {0};
    uint8_t before[HB_DIGEST_SIZE];

    model->pools[0].table_size = 65537;
    reconcile(model, &plan);
    memcpy(before, model->pools[0].owners, sizeof(before));
    config->pools[0].table_size = 65537;
    config->pools[0].slow_start_ms = 60000;
    apply(model, config);
    resolve_all(model);
    model->now_ms = NOW_MS;
    reconcile(model, &plan); /* the old ones are in no ramp by the new key */
    assert_memory_equal(model->pools[0].owners, before, sizeof(before));
    probe(model, "web", "198.51.100.11", true);
    for (uint32_t second = 0; second <= 60; second++) {
        uint32_t now;

        model->now_ms = NOW_MS + 1000 * second;
        reconcile(model, &plan);
        now = slots_of(model, "web", "198.51.100.11");
        assert_true(now > share); /* from the first second on */
        assert_int_equal(model->pools[0].changed, true);
        moved += model->pools[0].change.moved;
        share = now;
        in_the_end = backend_at(model, "web", "198.51.100.11")->slots_to_come;
        assert_in_range(in_the_end, 65537 / 11 - 60, 65537 / 11 + 60);
    }
    assert_int_equal(share, in_the_end);
    assert_true(moved <= 2 * share);
    assert_int_equal(backend_at(model, "web", "198.51.100.11")->ramp_since_ms, 0);
    assert_int_equal(hb_model_next_ms(model, model->now_ms), UINT64_MAX);
    hb_plan_clear(&plan);
    memcpy(before, model->pools[0].owners, sizeof(before));
    /* To the digest the table of a pool that never had a ramp. */
    model->pools[0].slow_start_ms = 0;
    drain(model, "198.51.100.11", true);
    reconcile(model, &plan);
    drain(model, "198.51.100.11", false);
    reconcile(model, &plan);
    assert_memory_equal(model->pools[0].owners, before, sizeof(before));
    hb_plan_clear(&plan);
}

/* BL-71: it fails in the middle, and comes back: the ramp begins anew. Who comes where nobody else
 * serves has all at once. */
static void test_slow_start_is_broken_off(void **state)
{
    struct hb_model *model = *state;
    struct hb_config *config = make_web(2);
    struct hb_plan plan = {0};

    config->pools[0].slow_start_ms = 10000;
    apply(model, config);
    resolve_all(model);
    model->now_ms = NOW_MS;
    all_up(model);
    reconcile(model, &plan);
    assert_in_range(slots_of(model, "web", "198.51.100.2"), 120, 130); /* they came together */
    probe(model, "web", "198.51.100.2", false);
    probe(model, "web", "198.51.100.2", false);
    reconcile(model, &plan);
    probe(model, "web", "198.51.100.2", true);
    probe(model, "web", "198.51.100.2", true);
    reconcile(model, &plan);
    assert_in_range(slots_of(model, "web", "198.51.100.2"), 1, 30);
    assert_int_equal(hb_model_next_ms(model, NOW_MS), NOW_MS + 1000);
    model->now_ms = NOW_MS + 5000;
    reconcile(model, &plan);
    assert_in_range(slots_of(model, "web", "198.51.100.2"), 50, 90);
    /* The other one fails: nobody is left to take a share from. */
    probe(model, "web", "198.51.100.1", false);
    probe(model, "web", "198.51.100.1", false);
    reconcile(model, &plan);
    assert_int_equal(slots_of(model, "web", "198.51.100.2"), 251);
    hb_plan_clear(&plan);
}

/* BL-64: whatever weights an operator gave in between, the table is that of the weights. */
static void test_weights_of_operators(void **state)
{
    static const uint32_t steps[][3] = {{100, 100, 100}, {100, 100, 1}, {50, 50, 1}, {3, 7, 0}};
    struct hb_model *model = working(state, 3);
    struct hb_plan plan = {0};

    for (size_t s = 0; s < sizeof(steps) / sizeof(*steps); s++) {
        struct hb_model *fresh = hb_model_new();
        struct hb_config *config = make_web(3);

        for (uint32_t b = 0; b < 3; b++) {
            hb_backend_set_weight(model->pools[0].backends[b], true, steps[s][b]);
            config->pools[0].backends[b].weight = steps[s][b];
        }
        reconcile(model, &plan);
        apply(fresh, config);
        resolve_all(fresh);
        all_up(fresh);
        reconcile(fresh, &plan);
        assert_memory_equal(model->pools[0].owners, fresh->pools[0].owners, HB_DIGEST_SIZE);
        hb_model_free(fresh);
    }
    apply(model, make_web(3)); /* a reload leaves them alone */
    assert_int_equal(model->pools[0].backends[1]->weight, 7);
    assert_int_equal(model->pools[0].backends[1]->configured_weight, 1);
    hb_backend_set_weight(model->pools[0].backends[1], false, 0);
    assert_int_equal(model->pools[0].backends[1]->weight, 1);
    hb_plan_clear(&plan);
}

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
        CASE(test_only_changed_pools_are_rebuilt),
        CASE(test_whole_pool_replaced_without_a_gap),
        CASE(test_leaving_members_do_not_outlast_the_verdict),
        CASE(test_a_leaving_member_can_return),
        cmocka_unit_test(test_ideal_by_hand),
        cmocka_unit_test_setup_teardown(test_all_draining, open_model, close_model),
        cmocka_unit_test_setup_teardown(test_panic, open_model, close_model),
        cmocka_unit_test_setup_teardown(test_backups, open_model, close_model),
        cmocka_unit_test_setup_teardown(test_slow_start, open_model, close_model),
        cmocka_unit_test_setup_teardown(test_slow_start_is_broken_off, open_model, close_model),
        cmocka_unit_test_setup_teardown(test_weights_of_operators, open_model, close_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
