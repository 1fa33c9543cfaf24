/* SPDX-License-Identifier: BSD-3-Clause */
/* A control that comes back: from the dataplane's generation, from its state file, from neither. */
#include "model_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "take_over.h"

#define NOW_UNIX_MS UINT64_C(1790000000000)

static const struct hb_held_tables nothing_held = {0};

/* The model before the restart: 1 up, 2 draining, 3 down, 4 not probed; id 5 was given and freed.
 */
static struct hb_model *make_past(struct hb_plan *plan)
{
    struct hb_model *model = hb_model_new();

    apply(model, make_web(5));
    apply(model, make_web(4));
    resolve_all(model);
    probe(model, "web", "198.51.100.1", true);
    probe(model, "web", "198.51.100.2", true);
    hb_backend_state_apply(&backend_at(model, "web", "198.51.100.2")->state, HB_EVENT_DRAIN, 2, 2,
                           NOW_MS - 60000, NOW_MS - 60000);
    probe(model, "web", "198.51.100.3", false);
    reconcile(model, plan);
    return model;
}

/* What control does at its start, but for next hops: they are not known yet. */
static struct hb_model *restart(const void *blob, const struct hb_state *known,
                                struct hb_config *config)
{
    struct hb_model *model = hb_model_new();

    if (known != NULL)
        hb_take_over_state_ids(model, known);
    if (blob != NULL)
        hb_take_over_blob_ids(model, blob);
    apply(model, config);
    hb_model_release_unused(model);
    hb_take_over_backends(model, blob, known, true, NOW_MS, NOW_UNIX_MS);
    return model;
}

static void test_same_content_after_a_restart(void **state)
{
    struct hb_plan past = {0}, now = {0};
    struct hb_model *before = make_past(&past), *after;
    struct hb_state known;
    void *blob;
    size_t size;

    (void)state;
    assert_int_equal(hb_generation_encode(&past, 7, &nothing_held, &blob, &size), 0);
    assert_true(hb_blob_readable(blob, size));
    assert_int_equal(hb_state_of_model(before, 7, NOW_MS, NOW_UNIX_MS, &known), 0);
    assert_int_equal(known.backends_count, 5);

    after = restart(blob, &known, make_web(4));
    reconcile(after, &now);
    assert_memory_equal(now.content, past.content, HB_DIGEST_SIZE);
    assert_int_equal(backend_at(after, "web", "198.51.100.4")->state.health, HB_BACKEND_UNKNOWN);
    assert_int_equal(backend_at(after, "web", "198.51.100.2")->state.drain_since_ms,
                     NOW_MS - 60000);
    hb_model_free(after);

    /* Without the state file the blob alone must do. */
    after = restart(blob, NULL, make_web(4));
    reconcile(after, &now);
    assert_memory_equal(now.content, past.content, HB_DIGEST_SIZE);
    assert_true(backend_at(after, "web", "198.51.100.2")->state.draining);
    hb_model_free(after);

    /* Without the blob (both daemons died) ids, health and drains come from the file. */
    after = restart(NULL, &known, make_web(4));
    resolve_all(after);
    reconcile(after, &now);
    assert_memory_equal(now.content, past.content, HB_DIGEST_SIZE);
    hb_model_free(after);

    free(blob);
    hb_state_clear(&known);
    hb_plan_clear(&past);
    hb_plan_clear(&now);
    hb_model_free(before);
}

/* The file was written after an undrain that the dataplane never heard of. */
static void test_the_state_file_decides_about_drains(void **state)
{
    struct hb_plan past = {0};
    struct hb_model *before = make_past(&past), *after;
    struct hb_state known;
    void *blob;
    size_t size;

    (void)state;
    hb_generation_encode(&past, 7, &nothing_held, &blob, &size);
    hb_backend_state_apply(&backend_at(before, "web", "198.51.100.2")->state, HB_EVENT_UNDRAIN, 2,
                           2, NOW_MS, NOW_MS);
    hb_state_of_model(before, 7, NOW_MS, NOW_UNIX_MS, &known);
    after = restart(blob, &known, make_web(4));
    assert_false(backend_at(after, "web", "198.51.100.2")->state.draining);
    assert_int_equal(backend_at(after, "web", "198.51.100.2")->state.health, HB_BACKEND_UP);
    free(blob);
    hb_state_clear(&known);
    hb_plan_clear(&past);
    hb_model_free(before);
    hb_model_free(after);
}

/* BL-92: a restart does not restart the clock of a drain; what was forced stays told. */
static void test_the_clock_of_a_drain_goes_on(void **state)
{
    struct hb_plan past = {0};
    struct hb_model *before = make_past(&past), *after;
    struct hb_model_backend *backend = backend_at(before, "web", "198.51.100.2");
    struct hb_state known;

    (void)state;
    backend->drain = (struct hb_drain){.deadline_unix_ms = NOW_UNIX_MS + 30123,
                                       .at_deadline = HB_AT_DEADLINE_RESET,
                                       .flows_at_start = 9};
    hb_backend_set_weight(backend, true, 12);
    hb_state_of_model(before, 7, NOW_MS, NOW_UNIX_MS, &known);
    after = restart(NULL, &known, make_web(4));
    hb_model_set_clock(after, 5000, NOW_UNIX_MS + 20000);
    backend = backend_at(after, "web", "198.51.100.2");
    assert_int_equal(backend->weight, 12);
    assert_int_equal(backend->drain.deadline_ms, 15123);
    assert_int_equal(hb_model_next_ms(after, 5000), 15123);
    assert_false(hb_backend_deadline(backend, 4, 15122));
    assert_true(hb_backend_deadline(backend, 4, 15123));
    assert_int_equal(hb_backend_use_of(&backend->state), HB_BACKEND_RESET);
    assert_false(hb_backend_deadline(backend, 4, 15124));
    hb_state_clear(&known);

    /* And once more, after the deadline. */
    hb_state_of_model(after, 8, NOW_MS, NOW_UNIX_MS, &known);
    hb_model_free(after);
    after = restart(NULL, &known, make_web(4));
    backend = backend_at(after, "web", "198.51.100.2");
    assert_string_equal(hb_backend_state_name(&backend->state), "disabled");
    assert_int_equal(hb_backend_use_of(&backend->state), HB_BACKEND_RESET);
    assert_int_equal(backend->drain.forced, 4);
    assert_int_equal(hb_model_next_ms(after, UINT64_MAX / 2), UINT64_MAX);
    hb_state_clear(&known);
    hb_plan_clear(&past);
    hb_model_free(before);
    hb_model_free(after);
}

/* BL-71: a slow start goes on where it was; those that have done it begin none. */
static void test_a_slow_start_goes_on(void **state)
{
    struct hb_plan past = {0};
    struct hb_model *before = make_past(&past), *after;
    struct hb_config *config = make_web(4);
    struct hb_state known;

    (void)state;
    before->pools[0].slow_start_ms = 60000;
    probe(before, "web", "198.51.100.4", true);
    backend_at(before, "web", "198.51.100.1")->ramp_since_ms = NOW_MS - 20000;
    backend_at(before, "web", "198.51.100.1")->ramp_since_unix_ms = NOW_UNIX_MS - 20000;
    hb_state_of_model(before, 7, NOW_MS, NOW_UNIX_MS, &known);
    config->pools[0].slow_start_ms = 60000;
    after = restart(NULL, &known, config);
    resolve_all(after);
    hb_model_set_clock(after, NOW_MS, NOW_UNIX_MS);
    after->now_ms = NOW_MS;
    reconcile(after, &past);
    assert_int_equal(backend_at(after, "web", "198.51.100.1")->ramp_since_ms, NOW_MS - 20000);
    assert_int_equal(backend_at(after, "web", "198.51.100.4")->ramp_since_ms, 0);
    assert_true(slots_of(after, "web", "198.51.100.1") < 125 * 22 / 60);
    hb_state_clear(&known);
    hb_plan_clear(&past);
    hb_model_free(before);
    hb_model_free(after);
}

/* The file is written before the generation that begins a slow start: what it says then must do. */
static void test_a_slow_start_that_is_about_to_begin(void **state)
{
    struct hb_plan past = {0};
    struct hb_model *before = make_past(&past), *after;
    struct hb_config *config = make_web(4);
    struct hb_state known;

    (void)state;
    for (int i = 0; i < 3; i++) {
        reconcile(before, &past);
        hb_backend_state_apply(&backend_at(before, "web", "198.51.100.2")->state,
                               i == 1 ? HB_EVENT_DRAIN : HB_EVENT_UNDRAIN, 2, 2, NOW_MS, NOW_MS);
    }
    before->pools[0].slow_start_ms = 60000;
    hb_state_of_model(before, 7, NOW_MS, NOW_UNIX_MS, &known);
    config->pools[0].slow_start_ms = 60000;
    after = restart(NULL, &known, config);
    resolve_all(after);
    hb_model_set_clock(after, NOW_MS + 100, NOW_UNIX_MS + 100);
    after->now_ms = NOW_MS + 100;
    reconcile(after, &past);
    assert_int_equal(backend_at(after, "web", "198.51.100.2")->ramp_since_ms, NOW_MS);
    assert_int_equal(backend_at(after, "web", "198.51.100.1")->ramp_since_ms, 0);
    hb_state_clear(&known);
    hb_plan_clear(&past);
    hb_model_free(before);
    hb_model_free(after);
}

/* Who was taken out before the restart and comes back after it starts slowly as ever. */
static void test_back_in_service_after_a_restart(void **state)
{
    struct hb_plan past = {0};
    struct hb_model *before = make_past(&past), *after;
    struct hb_config *config = make_web(4);
    struct hb_state known;

    (void)state;
    probe(before, "web", "198.51.100.4", true);
    hb_backend_set_weight(backend_at(before, "web", "198.51.100.4"), true, 0);
    hb_state_of_model(before, 7, NOW_MS, NOW_UNIX_MS, &known);
    config->pools[0].slow_start_ms = 60000;
    after = restart(NULL, &known, config);
    after->now_ms = NOW_MS;
    resolve_all(after);
    reconcile(after, &past);
    hb_backend_state_apply(&backend_at(after, "web", "198.51.100.2")->state, HB_EVENT_UNDRAIN, 2, 2,
                           NOW_MS, NOW_MS);
    hb_backend_set_weight(backend_at(after, "web", "198.51.100.4"), false, 0);
    reconcile(after, &past);
    assert_int_equal(backend_at(after, "web", "198.51.100.2")->ramp_since_ms, NOW_MS);
    assert_int_equal(backend_at(after, "web", "198.51.100.4")->ramp_since_ms, NOW_MS);
    assert_int_equal(backend_at(after, "web", "198.51.100.1")->ramp_since_ms, 0);
    hb_state_clear(&known);
    hb_plan_clear(&past);
    hb_model_free(before);
    hb_model_free(after);
}

static void enable_damping(struct hb_config *config)
{
    config->pools[0].health.damping = (struct hb_damping_config){.enabled = true,
                                                                 .suppress = 3 * 1024,
                                                                 .reuse = 1024,
                                                                 .half_life_ms = 60000,
                                                                 .max_hold_ms = 300000};
}

static double penalty_of(struct hb_model *model, const char *address)
{
    return hb_damping_penalty(&backend_at(model, "web", address)->damping,
                              &model->pools[0].health.damping, NOW_MS);
}

/* One half-life ago it was 4. */
static void test_damping_outlives_a_restart(void **state)
{
    struct hb_plan past = {0};
    struct hb_model *before = make_past(&past), *after;
    struct hb_config *config = make_web(4);
    struct hb_model_backend *backend;
    struct hb_state known;

    (void)state;
    backend_at(before, "web", "198.51.100.3")->damping =
        (struct hb_damping){4.0, NOW_MS - 60000, true};
    hb_state_of_model(before, 7, NOW_MS - 1000, NOW_UNIX_MS - 1000, &known);
    enable_damping(config);
    after = restart(NULL, &known, config);
    backend = backend_at(after, "web", "198.51.100.3");
    assert_true(penalty_of(after, "198.51.100.3") > 1.999);
    assert_true(penalty_of(after, "198.51.100.3") < 2.001);
    assert_true(hb_damping_holds(&backend->damping, &after->pools[0].health.damping, NOW_MS));
    assert_true(penalty_of(after, "198.51.100.1") <= 0);
    hb_state_clear(&known);
    hb_plan_clear(&past);
    hb_model_free(before);
    hb_model_free(after);
}

/* Checks found something within the second before the end, so that only the generation has it. */
static void test_news_that_the_file_has_not(void **state)
{
    struct hb_plan past = {0};
    struct hb_model *before = make_past(&past), *after;
    struct hb_config *config;
    struct hb_state known;
    void *blob;
    size_t size;

    (void)state;
    hb_state_of_model(before, 6, NOW_MS, NOW_UNIX_MS, &known);
    for (int times = 0; times < 2; times++) {
        probe(before, "web", "198.51.100.1", false);
        probe(before, "web", "198.51.100.3", true);
    }
    probe(before, "web", "198.51.100.4", true);
    reconcile(before, &past);
    for (uint64_t number = 6; number <= 7; number++) {
        bool later = number > 6;

        hb_generation_encode(&past, number, &nothing_held, &blob, &size);
        config = make_web(4);
        config->pools[0].slow_start_ms = 60000;
        enable_damping(config);
        after = restart(blob, &known, config);
        after->now_ms = NOW_MS;
        assert_int_equal(backend_at(after, "web", "198.51.100.1")->state.health,
                         later ? HB_BACKEND_FAILED : HB_BACKEND_UP);
        assert_true((penalty_of(after, "198.51.100.1") > 0.999) == later);
        assert_int_equal(backend_at(after, "web", "198.51.100.3")->state.health, HB_BACKEND_UP);
        resolve_all(after);
        reconcile(after, &past);
        assert_int_equal(backend_at(after, "web", "198.51.100.3")->ramp_since_ms,
                         later ? NOW_MS : 0);
        assert_int_equal(backend_at(after, "web", "198.51.100.4")->ramp_since_ms, 0);
        hb_model_free(after);
        free(blob);
        reconcile(before, &past);
    }
    hb_state_clear(&known);
    hb_plan_clear(&past);
    hb_model_free(before);
}

/* A pool in panic has members that are down and serve: a restart takes them neither for working
 * ones nor out of the table. */
static void test_panic_outlives_a_restart(void **state)
{
    struct hb_plan past = {0};
    struct hb_model *before = make_past(&past), *after;
    struct hb_config *config = make_web(4);
    uint8_t content[HB_DIGEST_SIZE];
    struct hb_state known;
    void *blob;
    size_t size;

    (void)state;
    before->pools[0].failure.below = HB_BELOW_ALL;
    for (int times = 0; times < 2; times++) {
        for (int b = 1; b <= 4; b++) {
            char address[16] = "198.51.100.0";

            address[11] = (char)('0' + b);
            probe(before, "web", address, false);
        }
    }
    reconcile(before, &past);
    assert_int_equal(before->pools[0].mode, HB_POOL_MODE_PANIC);
    memcpy(content, past.content, sizeof(content));
    hb_generation_encode(&past, 7, &nothing_held, &blob, &size);
    hb_state_of_model(before, 7, NOW_MS, NOW_UNIX_MS, &known);
    config->pools[0].failure.below = HB_BELOW_ALL;
    after = restart(blob, &known, config);
    hb_take_over_tables(after, blob);
    reconcile(after, &past);
    assert_int_equal(backend_at(after, "web", "198.51.100.1")->state.health, HB_BACKEND_FAILED);
    assert_int_equal(after->pools[0].mode, HB_POOL_MODE_PANIC);
    assert_memory_equal(past.content, content, sizeof(content));
    free(blob);
    hb_state_clear(&known);
    hb_plan_clear(&past);
    hb_model_free(before);
    hb_model_free(after);
}

/* What the file removed while control was down is free, and remembered: its id comes back with
 * another incarnation. */
static void test_changed_while_away(void **state)
{
    struct hb_plan past = {0};
    struct hb_model *before = make_past(&past), *after;
    struct hb_config *config = make_web(3);
    void *blob;
    size_t size;

    (void)state;
    hb_generation_encode(&past, 7, &nothing_held, &blob, &size);
    after = restart(blob, NULL, make_web(3));
    assert_int_equal(hb_ids_used(after->backend_ids), 3);
    add_backend(config, "web", "198.51.100.99", 1);
    apply(after, config);
    assert_int_equal(backend_at(after, "web", "198.51.100.99")->id, 4);
    assert_int_equal(backend_at(after, "web", "198.51.100.99")->incarnation, 2);
    free(blob);
    hb_plan_clear(&past);
    hb_model_free(before);
    hb_model_free(after);
}

static bool three_is_in_use(void *context, uint32_t id)
{
    (void)context;
    return id == 3;
}

static bool three_is_not_reusable(void *context, uint32_t id, uint32_t incarnation)
{
    (void)incarnation;
    return !three_is_in_use(context, id);
}

/* A dataplane with another history turns up late: its ids win, and an id that flows name but that
 * its generation does not have is not ours either. */
static void test_a_dataplane_that_comes_late(void **state)
{
    struct hb_plan past = {0};
    struct hb_model *other = hb_model_new(), *model = hb_model_new();
    struct hb_config *config = make_config();
    void *blob;
    size_t size;

    (void)state;
    /* There .2 has id 1 and .1 has id 2. */
    add_pool(config, "web");
    add_backend(config, "web", "198.51.100.2", 1);
    add_backend(config, "web", "198.51.100.1", 1);
    apply(other, config);
    resolve_all(other);
    all_up(other);
    reconcile(other, &past);
    hb_generation_encode(&past, 7, &nothing_held, &blob, &size);

    model->reusable = three_is_not_reusable;
    apply(model, make_web(2));
    config = make_web(3);
    model->reusable = NULL;
    apply(model, config);
    model->reusable = three_is_not_reusable;
    assert_int_equal(backend_at(model, "web", "198.51.100.1")->id, 1);
    hb_take_over_blob_ids(model, blob);
    assert_int_equal(hb_model_assign_ids(model), 0);
    assert_int_equal(backend_at(model, "web", "198.51.100.1")->id, 2);
    assert_int_equal(backend_at(model, "web", "198.51.100.2")->id, 1);
    assert_int_equal(backend_at(model, "web", "198.51.100.3")->id, 3);
    assert_true(hb_take_over_doubt_ids(model, blob, three_is_in_use, NULL));
    assert_int_equal(hb_model_assign_ids(model), 0);
    assert_int_equal(backend_at(model, "web", "198.51.100.3")->id, 4);
    assert_false(hb_take_over_doubt_ids(model, blob, three_is_in_use, NULL));
    free(blob);
    hb_plan_clear(&past);
    hb_model_free(other);
    hb_model_free(model);
}

/* A blob cut at any byte is either unreadable or read within its bounds (under ASan). */
static void test_short_blobs(void **state)
{
    struct hb_plan past = {0};
    struct hb_model *before = make_past(&past);
    void *blob;
    size_t size;

    (void)state;
    hb_generation_encode(&past, 7, &nothing_held, &blob, &size);
    for (size_t cut = 0; cut <= size; cut += 8) {
        void *copy = aligned_alloc(64, (cut + 63) / 64 * 64 + 64);

        memcpy(copy, blob, cut);
        if (hb_blob_readable(copy, cut)) {
            struct hb_model *after = restart(copy, NULL, make_web(2));

            hb_model_free(after);
        }
        free(copy);
    }
    free(blob);
    hb_plan_clear(&past);
    hb_model_free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_content_after_a_restart),
        cmocka_unit_test(test_the_state_file_decides_about_drains),
        cmocka_unit_test(test_changed_while_away),
        cmocka_unit_test(test_a_dataplane_that_comes_late),
        cmocka_unit_test(test_short_blobs),
        cmocka_unit_test(test_the_clock_of_a_drain_goes_on),
        cmocka_unit_test(test_a_slow_start_goes_on),
        cmocka_unit_test(test_a_slow_start_that_is_about_to_begin),
        cmocka_unit_test(test_back_in_service_after_a_restart),
        cmocka_unit_test(test_damping_outlives_a_restart),
        cmocka_unit_test(test_news_that_the_file_has_not),
        cmocka_unit_test(test_panic_outlives_a_restart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
