/* SPDX-License-Identifier: BSD-3-Clause */
/* Drains with a deadline, the guard, weights: the whole daemon, and what it remembers. */
#include "control_scene.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct hb_model_backend *one(struct scene *scene)
{
    return backend_at(scene->control->model, "web", "198.51.100.1");
}

static struct hb_model_backend *two(struct scene *scene)
{
    return backend_at(scene->control->model, "web", "198.51.100.2");
}

/* A request that changes something: asks, plays the dataplane, and returns the answer. */
static json_t *change(struct scene *scene, const char *path)
{
    int status;
    json_t *json;

    ask(scene, "POST", path);
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    json = hear(scene, &status);
    assert_int_equal(status, 200);
    assert_true(json_is_true(json_object_get(json, "applied")));
    return json;
}

/* A new control beside the state file of the old one; no dataplane answers it. */
static void restart_control(struct scene *scene)
{
    close_control(scene);
    open_control(scene);
    for (int i = 0; i < 5000 && !scene->control->started; i++) {
        fake_turn(&scene->fake);
        usleep(1000);
    }
    assert_true(scene->control->started);
}

/* A member of the first backend of an answer. */
static json_t *first(json_t *json, const char *member)
{
    return json_object_get(json_array_get(json_object_get(json, "backends"), 0), member);
}

static const struct hb_backend_record *read_record(struct scene *scene, uint32_t index)
{
    static struct hb_backend_record record;

    assert_int_equal(pread(scene->generation_fd, &record, sizeof(record),
                           (off_t)(scene->generation.backends.offset + index * sizeof(record))),
                     sizeof(record));
    return &record;
}

static void test_wrong_orders(void **state)
{
    static const struct {
        const char *path, *words;
        int status;
    } rows[] = {
        {"/v1/backends/one/drain?deadline=10", "expected a time", 400},
        {"/v1/backends/one/drain?deadline=0s", "expected a time", 400},
        {"/v1/backends/one/drain?deadline=1m&at_deadline=kill", "keep, reassign or reset", 400},
        {"/v1/backends/one/drain?at_deadline=reset", "needs a deadline", 400},
        {"/v1/backends/one/weight", "weight=N", 400},
        {"/v1/backends/one/weight?weight=-1", "from 0 to 65535", 400},
        {"/v1/backends/one/weight?weight=65536", "from 0 to 65535", 400},
        {"/v1/backends/one/weight?weight=1x", "from 0 to 65535", 400},
        {"/v1/backends/one/weight?weight=1&reset=1", "weight=N", 400},
        {"/v1/backends/nine/weight?weight=1", "'halbachctl backends' lists them", 404},
        {"/v1/backends/one/undrain?force=1", "unknown argument", 400},
    };
    struct scene *scene = *state;

    start_serving(scene);
    for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
        json_t *json = request(scene, "POST", rows[r].path, rows[r].status);
        const char *message =
            json_string_value(json_object_get(json_object_get(json, "error"), "message"));

        if (strstr(message, rows[r].words) == NULL)
            fail_msg("%s: \"%s\"", rows[r].path, message);
        json_decref(json);
    }
    assert_true(fake_hears_nothing(&scene->fake));
    assert_false(one(scene)->state.draining);
}

/* The last usable backend is not drained by mistake. */
static void test_guard(void **state)
{
    struct scene *scene = *state;
    json_t *json;

    start_serving(scene);
    json_decref(change(scene, "/v1/backends/two/drain"));
    json = request(scene, "POST", "/v1/backends/one/drain", 409);
    assert_non_null(strstr(
        json_string_value(json_object_get(json_object_get(json, "error"), "message")),
        "pool \"web\" would have 0 usable backends, and its minimum is 1; nothing was changed"));
    json_decref(json);
    json_decref(request(scene, "POST", "/v1/backends/one/weight?weight=0", 409));
    assert_false(one(scene)->state.draining);
    /* What takes nothing away is not refused: it drains already. */
    json_decref(request(scene, "POST", "/v1/backends/two/drain", 200));
    json_decref(change(scene, "/v1/backends/one/drain?force=1"));
    assert_int_equal(scene->control->model->pools[0].mode, HB_POOL_MODE_CLOSED);
    json = request(scene, "GET", "/v1/status", 200);
    assert_string_equal(json_string_value(json_object_get(
                            json_array_get(json_object_get(json, "pools"), 0), "mode")),
                        "closed");
    json_decref(json);
    json_decref(change(scene, "/v1/backends/one/undrain"));
    assert_int_equal(scene->control->model->pools[0].mode, HB_POOL_MODE_NORMAL);
}

/* Lets the other end of the deadline come: the generation that follows by itself. */
static void test_deadlines(void **state)
{
    static const struct {
        const char *path;
        uint8_t use;
    } rows[] = {
        {"/v1/backends/two/drain?deadline=50ms", HB_BACKEND_DOWN},
        {"/v1/backends/two/drain?deadline=50ms&at_deadline=reassign", HB_BACKEND_DOWN},
        {"/v1/backends/two/drain?deadline=50ms&at_deadline=reset", HB_BACKEND_RESET},
    };
    struct scene *scene = *state;
    json_t *json;

    start_serving(scene);
    for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
        json_decref(change(scene, rows[r].path));
        assert_int_equal(read_record(scene, 1)->use, HB_BACKEND_DRAINING);
        expect_publish(scene);
        assert_int_equal(read_record(scene, 1)->use, rows[r].use);
        answer_publish(scene, HB_REJECT_NONE);
        wait_until_serving(scene, scene->generation.number);
        json = request(scene, "POST", "/v1/backends/two/drain", 200); /* changes nothing */
        assert_true(json_is_true(json_object_get(first(json, "drain"), "drained")));
        json_decref(json);
        json_decref(change(scene, "/v1/backends/two/undrain"));
        assert_int_equal(read_record(scene, 1)->use, HB_BACKEND_ACTIVE);
    }
    /* keep: it goes on draining, and nothing is published. */
    json_decref(change(scene, "/v1/backends/two/drain?deadline=20ms&at_deadline=keep"));
    for (int i = 0; i < 5000 && !two(scene)->drain.overdue; i++)
        fake_turn(&scene->fake);
    assert_true(two(scene)->drain.overdue);
    assert_false(two(scene)->state.disabled);
    assert_true(fake_hears_nothing(&scene->fake));
}

/* BL-92: control ends while a drain with a deadline runs, and again after the deadline. */
static void test_a_drain_outlives_control(void **state)
{
    struct scene *scene = *state;
    uint64_t deadline;

    start_serving(scene);
    json_decref(change(scene, "/v1/backends/two/drain?deadline=1h&at_deadline=reset"));
    deadline = two(scene)->drain.deadline_unix_ms;
    restart_control(scene);
    assert_true(two(scene)->state.draining);
    assert_int_equal(two(scene)->drain.deadline_unix_ms, deadline);
    assert_int_equal(two(scene)->drain.at_deadline, HB_AT_DEADLINE_RESET);
    assert_in_range(two(scene)->drain.deadline_ms, 1, UINT64_MAX - 1);

    /* While it is away the deadline passes: the first thing it does is what that asks for. */
    two(scene)->drain.deadline_unix_ms = 1000;
    restart_control(scene);
    for (int i = 0; i < 5000 && !two(scene)->state.disabled; i++)
        fake_turn(&scene->fake);
    assert_string_equal(hb_backend_state_name(&two(scene)->state), "disabled");
    assert_true(two(scene)->state.reset);
}

static void test_weights_outlive_control(void **state)
{
    struct scene *scene = *state;
    json_t *json;

    start_serving(scene);
    json = change(scene, "/v1/backends/two/weight?weight=3&pool=web");
    assert_int_equal(json_integer_value(first(json, "weight")), 3);
    assert_true(json_is_true(first(json, "changed")));
    assert_in_range(json_integer_value(first(json, "moved")), 55, 75);
    json_decref(json);
    json_decref(request(scene, "POST", "/v1/reload", 200));
    assert_int_equal(two(scene)->weight, 3);
    restart_control(scene);
    assert_int_equal(two(scene)->weight, 3);
    assert_int_equal(two(scene)->configured_weight, 1);
}

static void test_weight_is_taken_back(void **state)
{
    struct scene *scene = *state;
    json_t *json;

    start_serving(scene);
    json_decref(change(scene, "/v1/backends/two/weight?weight=0"));
    assert_int_equal(two(scene)->slots, 0);
    json = request(scene, "GET", "/v1/backends", 200);
    assert_int_equal(
        json_integer_value(json_object_get(json_array_get(json_object_get(json, "backends"), 1),
                                           "configured_weight")),
        1);
    json_decref(json);
    json_decref(change(scene, "/v1/backends/two/weight?reset=1"));
    assert_in_range(two(scene)->slots, 120, 131);
    /* What cannot be remembered is not done. */
    scene->control->options.state = "/nonexistent/state";
    json_decref(request(scene, "POST", "/v1/backends/two/weight?weight=5", 500));
    json_decref(request(scene, "POST", "/v1/backends/two/drain?deadline=1h", 500));
    assert_int_equal(two(scene)->weight, 1);
    assert_false(two(scene)->weight_is_set);
    assert_false(two(scene)->state.draining);
    assert_int_equal(two(scene)->drain.deadline_ms, 0);
    scene->control->options.state = scene->state;
}

/* Maintenance is remembered, its command runs once the state has begun, and a failure is told. */
static void test_maintenance(void **state)
{
    static const char extra[] = "maintenance: { on_withdraw: \"exit 7\", quiet: 5 }\n";
    struct scene *scene = *state;
    char config[2048];
    json_t *json;

    snprintf(config, sizeof(config), "%s%s", good_config, extra);
    write_config(scene, config, strlen(config));
    start_serving(scene);
    json_decref(request(scene, "POST", "/v1/reload", 200));
    json_decref(request(scene, "POST", "/v1/maintenance", 400));
    json_decref(request(scene, "POST", "/v1/maintenance?state=maybe", 400));
    json = request(scene, "POST", "/v1/maintenance?state=on", 200);
    assert_string_equal(json_string_value(json_object_get(json, "state")), "withdrawn");
    assert_false(json_is_true(json_object_get(json, "safe")));
    json_decref(json);
    for (int i = 0; i < 5000 && scene->control->maintenance.hook != HB_HOOK_FAILED; i++)
        fake_turn(&scene->fake);
    json = request(scene, "GET", "/v1/status", 200);
    assert_string_equal(
        json_string_value(json_object_get(
            json_object_get(json_object_get(json, "maintenance"), "command"), "problem")),
        "exit status 7");
    json_decref(json);
    restart_control(scene);
    assert_true(scene->control->maintenance.withdrawn);
    scene->control->options.state = "/nonexistent/state";
    json_decref(request(scene, "POST", "/v1/maintenance?state=off", 500));
    assert_true(scene->control->maintenance.withdrawn);
    scene->control->options.state = scene->state;
    json = request(scene, "POST", "/v1/maintenance?state=off", 200);
    assert_string_equal(json_string_value(json_object_get(json, "state")), "announced");
    json_decref(json);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_stage, clear_stage)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_wrong_orders),
        CASE(test_guard),
        CASE(test_deadlines),
        CASE(test_a_drain_outlives_control),
        CASE(test_weights_outlive_control),
        CASE(test_weight_is_taken_back),
        CASE(test_maintenance),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
