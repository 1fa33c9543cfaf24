/* SPDX-License-Identifier: BSD-3-Clause */
/* What a reload does to the model: the difference between a configuration and what runs. */
#include "model_fixture.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

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

static void test_ids_and_objects_are_kept(void **state)
{
    struct hb_model *model = *state;
    struct hb_model_backend *second;
    struct hb_model_diff diff;

    diff = apply(model, make_web(3));
    assert_int_equal(diff.backends_added, 3);
    assert_int_equal(diff.services_added, 2);
    second = backend_at(model, "web", "198.51.100.2");
    diff = apply(model, make_web(2));
    assert_int_equal(diff.backends_removed, 1);
    assert_int_equal(diff.backends_added + diff.backends_changed, 0);
    assert_ptr_equal(backend_at(model, "web", "198.51.100.2"), second);
    assert_int_equal(second->id, 2);
    assert_null(backend_at(model, "web", "198.51.100.3"));
    /* Back again: the id was free, the incarnation tells them apart. */
    apply(model, make_web(3));
    assert_int_equal(backend_at(model, "web", "198.51.100.3")->id, 3);
    assert_int_equal(backend_at(model, "web", "198.51.100.3")->incarnation, 2);
}

/* An id that one reload frees is not given to what the same reload adds. */
static void test_no_reuse_within_one_reload(void **state)
{
    struct hb_model *model = *state;
    struct hb_config *config = make_config();

    apply(model, make_web(1));
    add_pool(config, "web");
    add_backend(config, "web", "198.51.100.99", 1);
    apply(model, config);
    assert_int_equal(backend_at(model, "web", "198.51.100.99")->id, 2);
    assert_null(backend_at(model, "web", "198.51.100.1"));
}

/* BL-76 (a), (e), (f): the same file, another interval, another order. */
static void test_health_is_kept(void **state)
{
    struct hb_model *model = *state;
    struct hb_config *config = make_config();

    apply(model, make_web(2));
    probe(model, "web", "198.51.100.1", false);
    probe(model, "web", "198.51.100.2", true);
    apply(model, make_web(2));
    add_pool(config, "web")->health.interval_ms = 3000;
    add_backend(config, "web", "198.51.100.2", 1);
    add_backend(config, "web", "198.51.100.1", 5);
    assert_int_equal(apply(model, config).backends_changed, 1);
    assert_int_equal(backend_at(model, "web", "198.51.100.1")->state.health, HB_BACKEND_FAILED);
    assert_int_equal(backend_at(model, "web", "198.51.100.2")->state.health, HB_BACKEND_UP);
    /* It still comes back by `rise` successes. */
    probe(model, "web", "198.51.100.1", true);
    probe(model, "web", "198.51.100.1", true);
    assert_int_equal(backend_at(model, "web", "198.51.100.1")->state.health, HB_BACKEND_UP);
}

/* BL-76 (c): a pool whose check is removed has members that are up. */
static void test_no_health_check_means_up(void **state)
{
    struct hb_model *model = *state;
    struct hb_config *config = make_web(1);

    apply(model, make_web(1));
    probe(model, "web", "198.51.100.1", false);
    config->pools[0].health.type = HB_HEALTH_NONE;
    apply(model, config);
    assert_int_equal(backend_at(model, "web", "198.51.100.1")->state.health, HB_BACKEND_UP);
}

/* BL-78: whatever state a member is in, removing it removes it, and it starts anew when it returns.
 */
static void test_removed_is_gone_in_any_state(void **state)
{
    struct hb_model *model = *state;
    struct hb_plan plan = {0};

    for (int kind = 0; kind < 4; kind++) {
        struct hb_config *config = make_web(2);
        struct hb_model_backend *removed;

        if (kind == 3)
            config->pools[0].backends[1].weight = 0;
        apply(model, config);
        resolve_all(model);
        probe(model, "web", "198.51.100.1", true);
        removed = backend_at(model, "web", "198.51.100.2");
        if (kind == 1)
            probe(model, "web", "198.51.100.2", false);
        if (kind == 2)
            hb_backend_state_apply(&removed->state, HB_EVENT_DRAIN, 2, 2, NOW_MS, NOW_MS);
        apply(model, make_web(1));
        reconcile(model, &plan);
        assert_int_equal(plan.backends_count, 1);
        assert_null(backend_at(model, "web", "198.51.100.2"));
        assert_int_equal(hb_ids_used(model->backend_ids), 1);
    }
    apply(model, make_web(2));
    assert_int_equal(backend_at(model, "web", "198.51.100.2")->state.health, HB_BACKEND_UNKNOWN);
    assert_false(backend_at(model, "web", "198.51.100.2")->state.draining);
    hb_plan_clear(&plan);
}

/* BL-52: the same server in two pools is two backends. */
static void test_same_address_in_two_pools(void **state)
{
    struct hb_model *model = *state;

    for (int round = 0; round < 2; round++) {
        struct hb_config *config = make_config();

        add_pool(config, "one");
        add_pool(config, "two");
        if (round == 0)
            add_backend(config, "one", "198.51.100.1", 1);
        add_backend(config, "one", "198.51.100.2", 1);
        add_backend(config, "two", "198.51.100.1", 1);
        apply(model, config);
        if (round == 0)
            assert_int_not_equal(backend_at(model, "one", "198.51.100.1")->id,
                                 backend_at(model, "two", "198.51.100.1")->id);
    }
    assert_null(backend_at(model, "one", "198.51.100.1"));
    assert_non_null(backend_at(model, "two", "198.51.100.1"));
}

/* BL-72 and BL-73: every address, protocol and port is a service of its own, in any order of
 * changes. */
static void test_services_by_address_protocol_and_port(void **state)
{
    static const struct {
        uint8_t protocol;
        uint16_t port;
    } all[] = {{6, 53}, {17, 53}, {6, 443}, {17, 443}};
    struct hb_model *model = *state;
    uint32_t ids[4];

    for (unsigned without = 0; without <= 4; without++) {
        struct hb_config *config = make_config();
        struct hb_model_diff diff;

        add_pool(config, "p");
        add_backend(config, "p", "198.51.100.1", 1);
        for (unsigned s = 0; s < 4; s++) {
            if (without == 0 || s != without - 1)
                add_service(config, "192.0.2.1", all[s].protocol, all[s].port, "p");
        }
        diff = apply(model, config);
        if (without == 0) {
            for (unsigned s = 0; s < 4; s++)
                ids[s] = model->services[s].id;
            continue;
        }
        assert_int_equal(diff.services_removed, 1);
        assert_int_equal(diff.services_added, without > 1);
        for (uint32_t s = 0; s < model->services_count; s++) {
            const struct hb_model_service *service = &model->services[s];

            for (unsigned a = 0; a < 4; a++) {
                if (all[a].protocol == service->protocol && all[a].port == service->port &&
                    a + 1 != without && a + 2 != without)
                    assert_int_equal(service->id, ids[a]);
            }
        }
    }
}

/* Renaming a pool, or giving a server to a second pool, does not start from nothing. */
static void test_health_is_borrowed_for_the_same_probe(void **state)
{
    struct hb_model *model = *state;
    struct hb_config *config = make_config();

    apply(model, make_web(2));
    all_up(model);
    add_pool(config, "renamed");
    add_backend(config, "renamed", "198.51.100.1", 1);
    add_pool(config, "other-check")->health.port = 8080;
    add_backend(config, "other-check", "198.51.100.1", 1);
    apply(model, config);
    assert_int_equal(backend_at(model, "renamed", "198.51.100.1")->state.health, HB_BACKEND_UP);
    assert_int_equal(backend_at(model, "other-check", "198.51.100.1")->state.health,
                     HB_BACKEND_UNKNOWN);
}

static bool never(void *context, uint32_t id, uint32_t incarnation)
{
    (void)context;
    (void)id;
    (void)incarnation;
    return false;
}

/* BL-85: at the limit a configuration is refused as a whole and says why. */
static void test_refused_as_a_whole_when_ids_run_out(void **state)
{
    struct hb_model *model = *state;
    struct hb_config *config = make_web(3);
    struct hb_model_diff diff;

    apply(model, make_web(2));
    model->reusable = never;
    add_service(config, "192.0.2.77", HB_PROTOCOL_UDP, 53, "web");
    assert_true(hb_model_apply(model, config, NOW_MS, &diff) < 0);
    assert_non_null(strstr(diff.error, "198.51.100.3"));
    assert_int_equal(model->pools[0].backends_count, 2);
    assert_int_equal(model->services_count, 2);
    assert_int_equal(hb_ids_used(model->backend_ids), 2);
    assert_int_equal(hb_ids_used(model->service_ids), 2);
    model->reusable = NULL;
    assert_int_equal(hb_model_apply(model, config, NOW_MS, &diff), 0);
    assert_int_equal(diff.backends_added, 1);
    assert_int_equal(diff.services_added, 1);
    free_config(config);
}

static void test_probe_port_of_the_first_service(void **state)
{
    struct hb_model *model = *state;
    struct hb_config *config = make_config();

    add_pool(config, "p")->health.port = 0;
    add_backend(config, "p", "198.51.100.1", 1);
    add_service(config, "192.0.2.1", HB_PROTOCOL_TCP, 8443, "p");
    add_service(config, "192.0.2.1", HB_PROTOCOL_TCP, 80, "p");
    apply(model, config);
    assert_int_equal(model->pools[0].health.port, 8443);
}

static unsigned left_count;

static void count_left(void *context, struct hb_model_backend *backend)
{
    (void)context;
    (void)backend;
    left_count++;
}

/* BL-87: under ASan and LSan this also shows that nothing is leaked. */
static void test_ten_thousand_reloads(void **state)
{
    struct hb_model *model = *state;
    struct hb_plan plan = {0};
    unsigned added = 0;

    model->left = count_left;
    left_count = 0;
    for (int i = 0; i < 10000; i++) {
        struct hb_config *config = make_web(3 + i % 4);
        char name[32];

        snprintf(name, sizeof(name), "pool-%d", i % 3);
        add_pool(config, name);
        add_backend(config, name, "2001:db8::1", 1);
        added += apply(model, config).backends_added;
        resolve_all(model);
        all_up(model);
        reconcile(model, &plan);
    }
    assert_int_equal(hb_ids_used(model->backend_ids), plan.backends_count);
    assert_int_equal(added - left_count, plan.backends_count);
    assert_true(plan.backends[plan.backends_count - 1].id < 20);
    hb_plan_clear(&plan);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_model, close_model)

/* BL-87: a backend that falls and comes back, with a table each time. */
static void test_ten_thousand_flaps(void **state)
{
    struct hb_model *model = *state;
    struct hb_plan plan = {0};
    size_t in_use = 0;

    apply(model, make_web(4));
    resolve_all(model);
    all_up(model);
    for (int i = 0; i < 10000; i++) {
        for (int times = 0; times < 3; times++)
            probe(model, "web", "198.51.100.2", i % 2 == 1);
        reconcile(model, &plan);
        assert_int_equal(model->pools[0].usable, i % 2 == 1 ? 4 : 3);
        if (i == 99)
            in_use = mallinfo2().uordblks;
    }
    assert_int_equal(mallinfo2().uordblks, in_use);
    hb_plan_clear(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_ids_and_objects_are_kept),
        CASE(test_no_reuse_within_one_reload),
        CASE(test_health_is_kept),
        CASE(test_no_health_check_means_up),
        CASE(test_removed_is_gone_in_any_state),
        CASE(test_same_address_in_two_pools),
        CASE(test_services_by_address_protocol_and_port),
        CASE(test_health_is_borrowed_for_the_same_probe),
        CASE(test_refused_as_a_whole_when_ids_run_out),
        CASE(test_probe_port_of_the_first_service),
        CASE(test_ten_thousand_reloads),
        CASE(test_ten_thousand_flaps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
