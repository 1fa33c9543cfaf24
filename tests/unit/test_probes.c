/* SPDX-License-Identifier: BSD-3-Clause */
/* Which probes run for which backends. The scheduler behind them is played by this file. */
#include "model_fixture.h"

#include <stdlib.h>

#include "clock.h"
#include "log.h"
#include "probes.h"

#define TARGETS_MAX 8

struct hb_health_target {
    bool alive;
    struct hb_address address;
    struct hb_health_config config;
    hb_probe_done done;
    void *context;
};

static struct hb_health_target targets[TARGETS_MAX];
static unsigned targets_count;

struct hb_health *hb_health_open(struct event_base *base)
{
    return (struct hb_health *)(base ? (void *)base : (void *)targets);
}

void hb_health_close(struct hb_health *health)
{
    (void)health;
}

struct hb_health_target *hb_health_add(struct hb_health *health, const struct hb_address *address,
                                       const struct hb_health_config *config, hb_probe_done done,
                                       void *context)
{
    (void)health;
    assert_true(targets_count < TARGETS_MAX);
    assert_int_not_equal(config->port, 0);
    targets[targets_count] = (struct hb_health_target){true, *address, *config, done, context};
    return &targets[targets_count++];
}

void hb_health_remove(struct hb_health_target *target)
{
    assert_true(target->alive);
    target->alive = false;
}

const char *hb_probe_reason_text(enum hb_probe_reason reason)
{
    return reason == HB_PROBE_OK ? "fine" : "not fine";
}

static unsigned alive(void)
{
    unsigned count = 0;

    for (unsigned t = 0; t < targets_count; t++)
        count += targets[t].alive;
    return count;
}

static void report(unsigned target, bool success, enum hb_probe_reason reason)
{
    struct hb_probe_result result = {success, reason, hb_now_ms() + 1000, 10};

    assert_true(targets[target].alive);
    targets[target].done(targets[target].context, &result);
}

static unsigned changes;

static void count_change(void *context, struct hb_model_pool *pool,
                         struct hb_model_backend *backend)
{
    (void)context;
    assert_ptr_equal(hb_pool_backend(pool, &backend->address), backend);
    changes++;
}

static struct hb_probes *probes;

static void leave(void *context, struct hb_model_backend *backend)
{
    (void)context;
    if (probes != NULL)
        hb_probes_leave(probes, backend);
}

static int open_probes(void **state)
{
    struct hb_model *model = hb_model_new();

    targets_count = changes = 0;
    probes = hb_probes_open(NULL, model, count_change, NULL);
    model->left = leave;
    *state = model;
    return probes == NULL;
}

static int close_probes(void **state)
{
    hb_probes_close(probes);
    probes = NULL;
    hb_model_free(*state);
    return alive() != 0;
}

/* BL-97: one server in many pools with equal checks is probed once; another port is another probe.
 */
static void test_equal_checks_are_shared(void **state)
{
    struct hb_model *model = *state;
    struct hb_config *config = make_config();

    for (const char *const *pool = (const char *const[]){"a", "b", "c", "d", NULL}; *pool; pool++) {
        struct hb_pool_config *added = add_pool(config, *pool);

        if (**pool == 'c')
            added->health.port = 8080;
        if (**pool == 'd')
            added->health.type = HB_HEALTH_NONE;
        add_backend(config, *pool, "198.51.100.1", 1);
    }
    apply(model, config);
    assert_int_equal(hb_probes_sync(probes), 0);
    assert_int_equal(alive(), 2);
    hb_probes_sync(probes);
    assert_int_equal(targets_count, 2);
    report(0, true, HB_PROBE_OK);
    assert_int_equal(changes, 2);
    assert_int_equal(backend_at(model, "a", "198.51.100.1")->state.health, HB_BACKEND_UP);
    assert_int_equal(backend_at(model, "b", "198.51.100.1")->state.health, HB_BACKEND_UP);
    assert_int_equal(backend_at(model, "c", "198.51.100.1")->state.health, HB_BACKEND_UNKNOWN);
}

static void test_a_local_error_says_nothing(void **state)
{
    struct hb_model *model = *state;

    apply(model, make_web(1));
    hb_probes_sync(probes);
    report(0, false, HB_PROBE_LOCAL_ERROR);
    assert_int_equal(changes, 0);
    assert_int_equal(backend_at(model, "web", "198.51.100.1")->state.health, HB_BACKEND_UNKNOWN);
}

/* BL-76 (b), (e): another interval or port is another probe, and the state stays. */
static void test_a_changed_check_is_a_new_probe(void **state)
{
    struct hb_model *model = *state;
    struct hb_config *config = make_web(1);

    apply(model, make_web(1));
    hb_probes_sync(probes);
    report(0, false, HB_PROBE_REFUSED);
    config->pools[0].health.port = 81;
    apply(model, config);
    hb_probes_sync(probes);
    assert_int_equal(targets_count, 2);
    assert_int_equal(alive(), 1);
    assert_int_equal(targets[1].config.port, 81);
    assert_int_equal(backend_at(model, "web", "198.51.100.1")->state.health, HB_BACKEND_FAILED);
    report(1, true, HB_PROBE_OK);
    report(1, true, HB_PROBE_OK);
    assert_int_equal(backend_at(model, "web", "198.51.100.1")->state.health, HB_BACKEND_UP);
}

static void test_a_removed_backend_ends_its_probe(void **state)
{
    struct hb_model *model = *state;

    apply(model, make_web(3));
    hb_probes_sync(probes);
    assert_int_equal(alive(), 3);
    apply(model, make_web(1));
    assert_int_equal(alive(), 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_probes, close_probes)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_equal_checks_are_shared),
        CASE(test_a_local_error_says_nothing),
        CASE(test_a_changed_check_is_a_new_probe),
        CASE(test_a_removed_backend_ends_its_probe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
