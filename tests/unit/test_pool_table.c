/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of live pools: every algorithm, what makes a table a new one, and what jump does with
 * backends that are away. */
#include "model_fixture.h"

#include <string.h>

#include "pool_table.h"

static const enum hb_algorithm algorithms[] = {HB_ALGORITHM_MAGLEV, HB_ALGORITHM_RING,
                                               HB_ALGORITHM_RENDEZVOUS, HB_ALGORITHM_JUMP,
                                               HB_ALGORITHM_MODULO};
#define ALGORITHMS (sizeof(algorithms) / sizeof(algorithms[0]))

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

/* A pool "web" of this kind; bucket b belongs to 198.51.100.(b + 1). */
static struct hb_config *make_pool(enum hb_algorithm algorithm, unsigned backends)
{
    struct hb_config *config = make_web(backends);

    config->pools[0].algorithm = algorithm;
    for (unsigned b = 0; b < backends; b++)
        config->pools[0].backends[b].bucket = b;
    return config;
}

static struct hb_model_pool *bring_up(struct hb_model *model, struct hb_config *config,
                                      struct hb_plan *plan)
{
    apply(model, config);
    resolve_all(model);
    all_up(model);
    reconcile(model, plan);
    return hb_model_pool(model, "web");
}

/* Five different tables, each with all members in it, none of them built twice. */
static void test_every_algorithm_builds_its_own_table(void **state)
{
    struct hb_model *model = *state;
    uint8_t digests[ALGORITHMS][HB_DIGEST_SIZE];
    struct hb_plan plan = {0};

    for (size_t a = 0; a < ALGORITHMS; a++) {
        struct hb_model_pool *pool = bring_up(model, make_pool(algorithms[a], 4), &plan);

        assert_true(pool->changed);
        assert_int_equal(pool->slots, 251);
        for (uint32_t b = 0; b < 4; b++)
            assert_in_range(pool->backends[b]->slots, 30, 100);
        memcpy(digests[a], pool->owners, HB_DIGEST_SIZE);
        for (size_t other = 0; other < a; other++)
            assert_memory_not_equal(digests[a], digests[other], HB_DIGEST_SIZE);
        reconcile(model, &plan);
        assert_false(pool->changed);
    }
    hb_plan_clear(&plan);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(hb_algorithm_name(HB_ALGORITHM_RENDEZVOUS), "rendezvous");
    assert_string_equal(hb_algorithm_name(0), "unknown");
}

static void test_options_are_inputs(void **state)
{
    struct hb_model *model = *state;
    struct hb_plan plan = {0};
    uint8_t before[HB_DIGEST_SIZE];

    memcpy(before, bring_up(model, make_pool(HB_ALGORITHM_RING, 4), &plan)->owners, sizeof(before));
    for (int option = 0; option < 2; option++) {
        struct hb_config *config = make_pool(HB_ALGORITHM_RING, 4);
        struct hb_model_pool *pool;

        config->pools[0].options.virtual_nodes = option == 0 ? 7 : 0;
        config->pools[0].options.ketama = option == 1;
        pool = bring_up(model, config, &plan);
        assert_true(pool->changed);
        assert_memory_not_equal(pool->owners, before, sizeof(before));
        pool = bring_up(model, make_pool(HB_ALGORITHM_RING, 4), &plan);
        assert_memory_equal(pool->owners, before, sizeof(before));
    }
    hb_plan_clear(&plan);
}

/* Which slots changed hands, and from whom. */
static uint32_t count_moved(const struct hb_model_pool *pool, const uint16_t *before, uint32_t from,
                            uint32_t *others)
{
    uint32_t own = 0;

    *others = 0;
    for (uint32_t slot = 0; slot < pool->slots; slot++) {
        if (before[slot] == pool->owner[slot])
            continue;
        own += before[slot] == from;
        *others += before[slot] != from;
    }
    return own;
}

/* One of a jump pool goes away, whichever it is and for whichever reason: its own slots go to all
 * the others, no other slot moves, and they come back with it. */
static void test_jump_hands_on_what_is_away(void **state)
{
    struct hb_model *model = *state;
    struct hb_plan plan = {0};
    struct hb_model_pool *pool = bring_up(model, make_pool(HB_ALGORITHM_JUMP, 5), &plan);
    uint16_t before[251];

    memcpy(before, pool->owner, sizeof(before));
    for (int b = 0; b < 5; b++) {
        for (int reason = 0; reason < 2; reason++) {
            struct hb_model_backend *backend = pool->backends[b];
            uint32_t slots = backend->slots, others;

            hb_backend_state_apply(&backend->state,
                                   reason == 0 ? HB_EVENT_DRAIN : HB_EVENT_PROBE_FAILED, 1, 1,
                                   NOW_MS + 1, NOW_MS + 1);
            reconcile(model, &plan);
            assert_int_equal(pool->usable, 4);
            assert_int_equal(count_moved(pool, before, backend->id, &others), slots);
            assert_int_equal(others, 0);
            assert_int_equal(pool->change.moved, pool->change.ideal);
            for (int other = 0; other < 5; other++)
                assert_true(other == b || pool->backends[other]->slots > 251 / 5 / 2);
            hb_backend_state_apply(&backend->state,
                                   reason == 0 ? HB_EVENT_UNDRAIN : HB_EVENT_PROBE_SUCCEEDED, 1, 1,
                                   NOW_MS + 2, NOW_MS + 2);
            reconcile(model, &plan);
            assert_memory_equal(pool->owner, before, sizeof(before));
        }
    }
    hb_plan_clear(&plan);
}

/* Not as if the pool had four: the fifth holds its bucket. */
static void test_jump_counts_what_is_away(void **state)
{
    struct hb_model *model = *state, *other = hb_model_new();
    struct hb_plan plan = {0};
    struct hb_model_pool *pool = bring_up(model, make_pool(HB_ALGORITHM_JUMP, 5), &plan);
    struct hb_model_pool *four = bring_up(other, make_pool(HB_ALGORITHM_JUMP, 4), &plan);

    hb_backend_state_apply(&pool->backends[4]->state, HB_EVENT_DRAIN, 1, 1, NOW_MS, NOW_MS);
    reconcile(model, &plan);
    assert_int_equal(pool->usable, 4);
    assert_memory_not_equal(pool->owners, four->owners, HB_DIGEST_SIZE);
    hb_plan_clear(&plan);
    hb_model_free(other);
}

/* A jump pool whose members are all replaced keeps serving by the old ones (BL-79), although old
 * and new ones have the same buckets. */
static void test_jump_with_leaving_members(void **state)
{
    struct hb_model *model = *state;
    struct hb_plan plan = {0};
    struct hb_config *config = make_config();
    struct hb_model_pool *pool;

    bring_up(model, make_pool(HB_ALGORITHM_JUMP, 2), &plan);
    add_pool(config, "web")->algorithm = HB_ALGORITHM_JUMP;
    add_backend(config, "web", "198.51.100.8", 1)->bucket = 0;
    add_backend(config, "web", "198.51.100.9", 1)->bucket = 1;
    add_service(config, "192.0.2.10", HB_PROTOCOL_TCP, 80, "web");
    apply(model, config);
    reconcile(model, &plan);
    pool = hb_model_pool(model, "web");
    assert_int_equal(pool->usable, 2);
    assert_int_equal(
        slots_of(model, "web", "198.51.100.1") + slots_of(model, "web", "198.51.100.2"), 251);
    resolve_all(model);
    all_up(model);
    reconcile(model, &plan);
    assert_int_equal(pool->backends_count, 2);
    assert_int_equal(
        slots_of(model, "web", "198.51.100.8") + slots_of(model, "web", "198.51.100.9"), 251);
    hb_plan_clear(&plan);
}

/* A table that cannot be built is a problem as long as it cannot be built, not only once. */
static void test_a_problem_is_told_until_it_is_gone(void **state)
{
    struct hb_model *model = *state;
    struct hb_config *config = make_pool(HB_ALGORITHM_RING, 2);
    struct hb_plan plan = {0};
    char problem[256];

    config->pools[0].options.virtual_nodes = 65535;
    config->pools[0].backends[0].weight = config->pools[0].backends[1].weight = 65535;
    apply(model, config);
    resolve_all(model);
    all_up(model);
    for (int time = 0; time < 2; time++) {
        hb_plan_clear(&plan);
        assert_int_equal(hb_reconcile(model, one_port, &plan, problem, sizeof(problem)), 0);
        assert_non_null(strstr(problem, "pool web has no table: "));
        assert_int_equal(plan.pools[0].table, HB_POOL_NO_TABLE);
    }
    apply(model, make_pool(HB_ALGORITHM_RING, 2));
    reconcile(model, &plan);
    assert_int_equal(plan.pools[0].table, 0);
    hb_plan_clear(&plan);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_model, close_model)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_every_algorithm_builds_its_own_table),
        CASE(test_names),
        CASE(test_options_are_inputs),
        CASE(test_jump_hands_on_what_is_away),
        CASE(test_jump_counts_what_is_away),
        CASE(test_jump_with_leaving_members),
        CASE(test_a_problem_is_told_until_it_is_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
