/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plan that is patched by way of what was touched, against one that is made anew: equal in every
 * byte, whatever has happened to a model of many kinds of pools, in whatever order.
 */
#include "model_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool_table.h"

#define STEPS   4000
#define MEMBERS 7

static const char *const names[] = {"backup", "closing", "fullnat", "jump",
                                    "nat",    "panic",   "plain",   "slow"};
#define POOLS (sizeof(names) / sizeof(*names))

struct play {
    struct hb_model *model;
    struct hb_plan plan;
    uint64_t random;
    uint32_t settled; /* times that marks were taken away */
    uint32_t patched, made;
};

static uint32_t below(struct play *play, uint32_t limit)
{
    play->random = play->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((play->random >> 33) % limit);
}

/* --- the model --- */

static void shape_pool(struct hb_pool_config *pool)
{
    if (strcmp(pool->name, "jump") == 0)
        pool->algorithm = HB_ALGORITHM_JUMP;
    if (strcmp(pool->name, "slow") == 0)
        pool->slow_start_ms = 20000;
    if (strcmp(pool->name, "panic") == 0)
        pool->failure.panic = 512;
    if (strcmp(pool->name, "closing") == 0 || strcmp(pool->name, "backup") == 0)
        pool->failure.minimum = 3;
    if (strcmp(pool->name, "closing") == 0)
        pool->failure.below = HB_BELOW_CLOSE;
    if (strcmp(pool->name, "backup") == 0)
        pool->failure.below = HB_BELOW_BACKUP;
    if (strcmp(pool->name, "nat") == 0 || strcmp(pool->name, "fullnat") == 0) {
        pool->forwarding = HB_FORWARDING_NAT;
        pool->nat.port = 8080;
    }
    if (strcmp(pool->name, "fullnat") == 0) {
        pool->forwarding = HB_FORWARDING_FULL_NAT;
        pool->nat.ports = (struct hb_nat_ports){1024, 65535};
        pool->nat.sources.count = 1;
        pool->nat.sources.prefix[0].address = address_of("198.51.100.64");
        pool->nat.sources.prefix[0].length = 30;
    }
}

/* Some of the members. */
static struct hb_config *random_config(struct play *play, bool all)
{
    struct hb_config *config = make_config();
    char address[32];

    for (uint32_t p = 0; p < POOLS; p++) {
        shape_pool(add_pool(config, names[p]));
        for (uint32_t m = 1; m <= MEMBERS; m++) {
            struct hb_backend_config *backend;

            if (!all && below(play, 8) == 0 && strcmp(names[p], "jump") != 0)
                continue;
            snprintf(address, sizeof(address), "203.0.%u.%u", p, m);
            backend = add_backend(config, names[p], address, 1 + below(play, 2));
            backend->bucket = m - 1;
            backend->backup = strcmp(names[p], "backup") == 0 && m > 5;
        }
        snprintf(address, sizeof(address), "192.0.2.%u", p + 1);
        add_service(config, address, HB_PROTOCOL_TCP, 80, names[p]);
    }
    return config;
}

/* A random member, whose pool is touched. */
static struct hb_model_backend *any_member(struct play *play)
{
    struct hb_model_pool *pool;

    do
        pool = &play->model->pools[below(play, play->model->pools_count)];
    while (pool->backends_count == 0);
    hb_pool_touch(pool);
    return pool->backends[below(play, pool->backends_count)];
}

/* --- what happens to it --- */

static void verdict(struct play *play)
{
    struct hb_model_backend *backend = any_member(play);
    bool up = backend->state.health != HB_BACKEND_UP;

    hb_backend_state_apply(&backend->state, up ? HB_EVENT_PROBE_SUCCEEDED : HB_EVENT_PROBE_FAILED,
                           1, 1, play->model->now_ms, play->model->now_ms);
    backend->unused = below(play, 2) == 0;
}

static void duty(struct play *play)
{
    static const enum hb_backend_event events[] = {HB_EVENT_DRAIN, HB_EVENT_UNDRAIN,
                                                   HB_EVENT_DEADLINE, HB_EVENT_UNDRAIN};
    struct hb_model_backend *backend = any_member(play);

    backend->state.reset = below(play, 2) == 0;
    hb_backend_state_apply(&backend->state, events[below(play, 4)], 1, 1, play->model->now_ms,
                           play->model->now_ms);
    backend->drain.deadline_ms = play->model->now_ms + 1 + below(play, 5000);
}

static void weigh(struct play *play)
{
    hb_backend_set_weight(any_member(play), below(play, 3) > 0, below(play, 4));
}

static void hop(struct play *play)
{
    struct hb_model_backend *backend = any_member(play);

    backend->hop = resolved_hop();
    backend->hop.resolved = below(play, 3) > 0;
    backend->hop.gateway_mac[5] = (uint8_t)below(play, 4);
}

/* Nobody is touched by what concerns NAT as a whole, or by time. */
static void nat(struct play *play)
{
    play->model->client[0] = address_of("240.0.0.1");
    play->model->to_clients[0] = resolved_hop();
    play->model->to_clients[0].resolved = below(play, 3) > 0;
    play->model->own_count = below(play, 3);
    for (uint32_t i = 0; i < play->model->own_count; i++)
        play->model->own[i] = address_of(i == 0 ? "198.51.100.10" : "198.51.100.11");
}

static void wait(struct play *play)
{
    uint32_t ms = below(play, 4000);

    play->model->now_ms += ms;
    play->model->now_unix_ms += ms;
}

/* As control does it: the plan has pointers into what changes. */
static void settle(struct play *play)
{
    struct hb_model_pool *pool = &play->model->pools[below(play, play->model->pools_count)];
    uint64_t all[8];

    memset(all, 0xff, sizeof(all));
    if (pool->owner != NULL && hb_pool_table_settle(pool, all, 0, pool->slots) > 0) {
        hb_plan_clear(&play->plan);
        play->settled++;
    }
}

static void reload(struct play *play)
{
    if (below(play, 8) > 0)
        return;
    apply(play->model, random_config(play, false));
    resolve_all(play->model);
}

static void (*const happenings[])(struct play *play) = {verdict, verdict, duty, weigh,  hop,
                                                        nat,     wait,    wait, settle, reload};
#define HAPPENINGS (sizeof(happenings) / sizeof(*happenings))

/* --- the comparison --- */

#define SAME(list)                                                                                 \
    do {                                                                                           \
        assert_int_equal(a->list##_count, b->list##_count);                                        \
        if (a->list##_count > 0)                                                                   \
            assert_memory_equal(a->list, b->list, a->list##_count * sizeof(*a->list));             \
    } while (0)

static void expect_equal(const struct hb_plan *a, const struct hb_plan *b)
{
    SAME(services);
    SAME(pools);
    SAME(backends);
    SAME(tables);
    SAME(prefixes);
    SAME(quic);
    SAME(sources);
    assert_memory_equal(&a->hash_key, &b->hash_key, sizeof(a->hash_key));
    assert_memory_equal(&a->settings, &b->settings, sizeof(a->settings));
    assert_memory_equal(a->content, b->content, HB_DIGEST_SIZE);
}

static void expect_as_anew(struct play *play)
{
    uint64_t next_ms = hb_model_next_ms(play->model, play->model->now_ms);
    struct hb_plan anew;
    char problem[256];

    assert_int_equal(hb_reconcile(play->model, one_port, &anew, problem, sizeof(problem)), 0);
    expect_equal(&play->plan, &anew);
    for (uint32_t p = 0; p < play->model->pools_count; p++)
        assert_false(play->model->pools[p].changed);
    hb_model_touch(play->model);
    assert_int_equal(next_ms, hb_model_next_ms(play->model, play->model->now_ms));
    play->model->touched = false;
    hb_plan_clear(&anew);
}

static void follow(struct play *play)
{
    bool patch = !play->model->touched && play->plan.pools != NULL;
    const struct hb_pool_record *pools = play->plan.pools;
    char problem[256];

    assert_int_equal(
        hb_reconcile_touched(play->model, one_port, &play->plan, problem, sizeof(problem)), 0);
    play->patched += patch && play->plan.pools == pools;
    play->made += play->plan.pools != pools;
}

static void start(struct play *play, uint64_t seed)
{
    memset(play, 0, sizeof(*play));
    play->random = seed;
    play->model = hb_model_new();
    play->model->now_ms = play->model->now_unix_ms = NOW_MS;
    apply(play->model, random_config(play, true));
    resolve_all(play->model);
    all_up(play->model);
    follow(play);
}

static void end(struct play *play)
{
    hb_plan_clear(&play->plan);
    hb_model_free(play->model);
}

static void test_patched_is_as_made_anew(void **state)
{
    struct play play;

    (void)state;
    start(&play, 1);
    for (uint32_t step = 0; step < STEPS; step++) {
        for (uint32_t n = below(&play, 4); n > 0; n--)
            happenings[below(&play, HAPPENINGS)](&play);
        follow(&play);
        if (below(&play, 2) == 0)
            expect_as_anew(&play);
    }
    /* It was about something. */
    assert_true(play.patched > STEPS / 2);
    assert_true(play.made > 20 && play.settled > 20);
    end(&play);
}

/* What nobody has touched is not looked at: that is the point of it, and why touching matters. */
static void test_untouched_pools_are_not_looked_at(void **state)
{
    struct hb_model_pool *pool;
    struct play play;
    uint8_t before[HB_DIGEST_SIZE];

    (void)state;
    start(&play, 2);
    pool = hb_model_pool(play.model, "plain");
    memcpy(before, play.plan.content, sizeof(before));
    pool->backends[0]->state.health = HB_BACKEND_FAILED;
    follow(&play);
    assert_memory_equal(play.plan.content, before, sizeof(before));
    hb_pool_touch(pool);
    follow(&play);
    assert_memory_not_equal(play.plan.content, before, sizeof(before));
    assert_true(pool->changed);
    assert_false(hb_model_pool(play.model, "slow")->changed);
    expect_as_anew(&play);
    end(&play);
}

/* A pool without a table is told again and again, also when nobody has touched it. */
static void test_a_problem_is_told_until_it_is_gone(void **state)
{
    struct hb_model *model = hb_model_new();
    struct hb_config *config = make_config();
    struct hb_plan plan = {0};
    char problem[256];

    (void)state;
    add_pool(config, "small")->table_size = 7;
    for (uint32_t m = 1; m <= 9; m++) {
        char address[32];

        snprintf(address, sizeof(address), "203.0.113.%u", m);
        add_backend(config, "small", address, 1);
    }
    add_service(config, "192.0.2.1", HB_PROTOCOL_TCP, 80, "small");
    apply(model, config);
    resolve_all(model);
    all_up(model);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hb_reconcile_touched(model, one_port, &plan, problem, sizeof(problem)), 0);
        assert_non_null(strstr(problem, "pool small has no table: "));
    }
    for (uint32_t m = 1; m <= 4; m++)
        model->pools[0].backends[m]->state.health = HB_BACKEND_FAILED;
    hb_pool_touch(&model->pools[0]);
    assert_int_equal(hb_reconcile_touched(model, one_port, &plan, problem, sizeof(problem)), 0);
    assert_string_equal(problem, "");
    hb_plan_clear(&plan);
    hb_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patched_is_as_made_anew),
        cmocka_unit_test(test_untouched_pools_are_not_looked_at),
        cmocka_unit_test(test_a_problem_is_told_until_it_is_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
