/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole daemon: reloads, rollbacks, the history and the events of all that. */
#include "control_scene.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* good_config with another weight for "two". */
static const char second_config[] =
    "seed: 0123456789abcdef0123456789abcdef\n"
    "tunnel: { source: 203.0.113.10 }\n"
    "pools:\n"
    "  - name: web\n"
    "    table_size: 251\n"
    "    health: { type: none }\n"
    "    backends:\n"
    "      - { name: one, address: 198.51.100.1 }\n"
    "      - { name: two, address: 198.51.100.2, weight: 3 }\n"
    "services:\n"
    "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web }\n"
    "  - { name: www2, vip: 192.0.2.11, protocol: tcp, port: 80, pool: web }\n";

static const char *cause_of(json_t *history, size_t from_end)
{
    json_t *generations = json_object_get(history, "generations");

    return json_string_value(json_object_get(
        json_array_get(generations, json_array_size(generations) - 1 - from_end), "cause"));
}

/* A change by the API: answered once the dataplane has taken the one generation that follows. */
static json_t *change(struct scene *scene, const char *path, uint64_t generation)
{
    json_t *json;
    int status;

    ask(scene, "POST", path);
    expect_publish(scene);
    assert_int_equal(scene->generation.number, generation);
    answer_publish(scene, HB_REJECT_NONE);
    json = hear(scene, &status);
    assert_int_equal(status, 200);
    assert_true(json_is_true(json_object_get(json, "applied")));
    assert_int_equal(json_integer_value(json_object_get(json, "generation")), generation);
    assert_true(fake_hears_nothing(&scene->fake));
    return json;
}

static void reload_second(struct scene *scene)
{
    json_t *json;

    write_config(scene, second_config, strlen(second_config));
    json = change(scene, "/v1/reload", 3);
    assert_int_equal(json_integer_value(json_object_get(json, "configuration")), 2);
    assert_int_equal(number_at(json, "services", "added"), 1);
    json_decref(json);
}

/* A file that says what is in use already: not one message to the dataplane, the same number. */
static void test_a_reload_without_a_change_is_nothing(void **state)
{
    struct scene *scene = *state;
    json_t *json;

    start_serving(scene);
    for (int i = 0; i < 3; i++) {
        json = request(scene, "POST", "/v1/reload", 200);
        assert_true(json_is_false(json_object_get(json, "changed")));
        assert_int_equal(json_integer_value(json_object_get(json, "generation")), 2);
        assert_int_equal(json_integer_value(json_object_get(json, "configuration")), 1);
        json_decref(json);
    }
    assert_true(fake_hears_nothing(&scene->fake));
    json = request(scene, "GET", "/v1/history", 200);
    assert_int_equal(json_array_size(json_object_get(json, "generations")), 2);
    assert_int_equal(json_array_size(json_object_get(json, "configurations")), 1);
    json_decref(json);
}

static void test_a_rollback_in_one_swap(void **state)
{
    struct scene *scene = *state;
    json_t *json;

    start_serving(scene);
    reload_second(scene);
    json = change(scene, "/v1/rollback", 4);
    assert_int_equal(json_integer_value(json_object_get(json, "from")), 2);
    assert_int_equal(json_integer_value(json_object_get(json, "to")), 1);
    assert_int_equal(number_at(json, "services", "removed"), 1);
    json_decref(json);
    assert_int_equal(scene->control->model->services_count, 1);
    assert_int_equal(backend_at(scene->control->model, "web", "198.51.100.2")->weight, 1);
    json = request(scene, "GET", "/v1/status", 200);
    assert_int_equal(number_at(json, "config", "configuration"), 1);
    assert_true(json_is_object(json_object_get(json_object_get(json, "config"), "rollback")));
    json_decref(json);
    /* There is none before the first. */
    json_decref(request(scene, "POST", "/v1/rollback", 404));
    json_decref(request(scene, "POST", "/v1/rollback?to=9", 404));
    json_decref(request(scene, "POST", "/v1/rollback?to=one", 400));
    json_decref(request(scene, "POST", "/v1/rollback?to=-1", 400));
    /* A reload takes the file again. */
    json = change(scene, "/v1/reload", 5);
    assert_int_equal(json_integer_value(json_object_get(json, "configuration")), 2);
    json_decref(json);
    json = request(scene, "GET", "/v1/status", 200);
    assert_true(json_is_null(json_object_get(json_object_get(json, "config"), "rollback")));
    json_decref(json);
}

static void test_who_and_what_caused_a_generation(void **state)
{
    struct scene *scene = *state;
    json_t *json, *last;

    start_serving(scene);
    reload_second(scene);
    json_decref(change(scene, "/v1/backends/two/drain", 4));
    json = request(scene, "GET", "/v1/history", 200);
    assert_string_equal(cause_of(json, 1), "reload");
    assert_string_equal(cause_of(json, 0), "backend two: draining");
    last = json_array_get(json_object_get(json, "generations"), 3);
    assert_int_equal(number_at(last, "actor", "uid"), getuid());
    assert_int_equal(number_at(last, "actor", "pid"), getpid());
    assert_string_equal(json_string_value(json_object_get(last, "outcome")), "served");
    assert_true(json_integer_value(json_object_get(last, "moved")) > 0);
    assert_int_equal(json_integer_value(json_object_get(last, "configuration")), 2);
    json_decref(json);
    /* It is there after a restart too. */
    close_control(scene);
    open_control(scene);
    for (uint32_t i = 0; i < scene->control->history->generations_count; i++)
        assert_int_equal(scene->control->history->generations[i].number, i + 1);
    assert_int_equal(scene->control->history->generations_count, 4);
}

/* What led to no generation is not blamed for the next one. */
static void test_a_cause_is_not_carried_on(void **state)
{
    struct scene *scene = *state;
    json_t *json;

    start_serving(scene);
    json_decref(request(scene, "POST", "/v1/reload", 200));
    json_decref(change(scene, "/v1/backends/one/drain", 3));
    json = request(scene, "GET", "/v1/history", 200);
    assert_string_equal(cause_of(json, 0), "backend one: draining");
    json_decref(json);
}

static void test_a_rollback_survives_a_restart(void **state)
{
    struct scene *scene = *state;

    start_serving(scene);
    reload_second(scene);
    json_decref(change(scene, "/v1/rollback?to=1", 4));
    close_control(scene);
    open_control(scene); /* the file is as it was: the rollback holds */
    assert_true(scene->control->first_rolled_back);
    assert_int_equal(scene->control->first_config->services_count, 1);
    close_control(scene);
    write_config(scene, good_config, strlen(good_config)); /* somebody has changed it since */
    open_control(scene);
    assert_false(scene->control->first_rolled_back);
}

/* Not even a rollback can make half of a configuration serve. */
static void test_a_rollback_that_is_refused_changes_nothing(void **state)
{
    struct scene *scene = *state;
    char path[160];
    FILE *file;
    json_t *json;

    start_serving(scene);
    reload_second(scene);
    snprintf(path, sizeof(path), "%s.configs/1.yaml", scene->state);
    file = fopen(path, "a");
    fputs("# touched\n", file);
    fclose(file);
    json = request(scene, "POST", "/v1/rollback", 422);
    assert_int_equal(json_array_size(json_object_get(json_object_get(json, "error"), "complaints")),
                     1);
    json_decref(json);
    assert_true(fake_hears_nothing(&scene->fake));
    assert_int_equal(scene->control->history->in_use, 2);
    assert_int_equal(scene->control->model->services_count, 2);
    json_decref(request(scene, "POST", "/v1/rollback", 422)); /* and it still answers */
}

static bool has_event(struct scene *scene, enum hb_news type, const char *words)
{
    const struct hb_events *events = scene->control->events;

    for (uint64_t n = hb_events_oldest(events); n > 0 && n <= hb_events_newest(events); n++) {
        const struct hb_event *event = hb_events_get(events, n);

        if (event->type == type && strstr(event->message, words) != NULL)
            return true;
    }
    return false;
}

static void test_events_tell_what_happened(void **state)
{
    struct scene *scene = *state;
    json_t *json;

    start_serving(scene);
    reload_second(scene);
    write_config(scene, "seed: x\n", 8);
    json_decref(request(scene, "POST", "/v1/reload", 422));
    json_decref(change(scene, "/v1/rollback", 4));
    ask(scene, "POST", "/v1/backends/one/drain");
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_BACKEND);
    for (int i = 0; i < 20; i++)
        fake_turn(&scene->fake);
    fake_hang_up(&scene->fake);
    for (int i = 0; i < 5000 && scene->control->publication.connected; i++)
        fake_turn(&scene->fake);
    close(scene->http);
    assert_true(has_event(scene, HB_NEWS_DATAPLANE, "connected"));
    assert_true(has_event(scene, HB_NEWS_PUBLISHED, "generation 3 serves"));
    assert_true(has_event(scene, HB_NEWS_RELOAD, "reload"));
    assert_true(has_event(scene, HB_NEWS_RELOAD, "reload refused: "));
    assert_true(has_event(scene, HB_NEWS_ROLLBACK, "rollback from configuration 2 to 1"));
    assert_true(has_event(scene, HB_NEWS_DRAIN, "backend one: draining"));
    assert_true(has_event(scene, HB_NEWS_REJECTED, "generation 5"));
    assert_int_equal(
        hb_events_get(scene->control->events, hb_events_newest(scene->control->events))->type,
        HB_NEWS_DATAPLANE);
    json = request(scene, "GET", "/v1/events?since=3", 200);
    assert_int_equal(json_integer_value(json_object_get(
                         json_array_get(json_object_get(json, "events"), 0), "number")),
                     4);
    json_decref(json);
    json_decref(request(scene, "GET", "/v1/events?since=x", 400));
    json_decref(request(scene, "GET", "/v1/events?follow=2", 400));
}

static void expect_text_at(struct scene *scene, const char *path, const char *format,
                           uint64_t value)
{
    char expected[128];
    const char *text;
    int status;

    ask(scene, "GET", path);
    text = hear_text(scene, &status);
    assert_int_equal(status, 200);
    snprintf(expected, sizeof(expected), format, (unsigned long)value);
    if (strstr(text, expected) == NULL)
        fail_msg("%s has not %s: %s", path, expected, text);
    if (strstr(text, ": -") != NULL || strstr(text, "} -") != NULL)
        fail_msg("%s has a negative number: %s", path, text);
}

/* BL-111: every width, exact and never negative, in JSON and for Prometheus. */
static void test_bl111_counts_are_exact(void **state)
{
    static const uint64_t values[] = {
        (UINT64_C(1) << 31) - 1, UINT64_C(1) << 31, (UINT64_C(1) << 32) - 1,
        (UINT64_C(1) << 53) + 1, INT64_MAX,         UINT64_C(1) << 63,
        UINT64_MAX - 1,          UINT64_MAX};
    struct scene *scene = *state;
    struct hb_worker_counters *worker;
    struct hb_backend_counters *backend;

    start_serving(scene);
    worker = (void *)(uintptr_t)hb_counters_worker(scene->fake.counters, 0);
    backend = (void *)(uintptr_t)&hb_counters_backends(scene->fake.counters, 0)[1];
    for (size_t v = 0; v < sizeof(values) / sizeof(*values); v++) {
        worker->rx_packets = values[v];
        worker->drops[HB_DROP_NO_SERVICE] = values[v];
        backend->bytes = values[v];
        expect_text_at(scene, "/v1/stats", "\"rx_packets\": %lu,", values[v]);
        expect_text_at(scene, "/v1/drops", "\"packets\": %lu\n", values[v]);
        expect_text_at(scene, "/v1/backends", "\"bytes\": %lu,", values[v]);
        expect_text_at(scene, "/metrics",
                       "halbach_worker_received_packets_total{worker=\"0\"} %lu\n", values[v]);
        expect_text_at(scene, "/metrics",
                       "halbach_dropped_packets_total{reason=\"no_service\"} %lu\n", values[v]);
    }
}

int main(void)
{
#define SCENE(test) cmocka_unit_test_setup_teardown(test, set_stage, clear_stage)
    const struct CMUnitTest tests[] = {
        SCENE(test_a_reload_without_a_change_is_nothing),
        SCENE(test_a_rollback_in_one_swap),
        SCENE(test_who_and_what_caused_a_generation),
        SCENE(test_a_cause_is_not_carried_on),
        SCENE(test_a_rollback_survives_a_restart),
        SCENE(test_a_rollback_that_is_refused_changes_nothing),
        SCENE(test_events_tell_what_happened),
        SCENE(test_bl111_counts_are_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
