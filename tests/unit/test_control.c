/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole daemon: what it publishes, remembers and answers. */
#include "control_scene.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void test_status_of_a_working_pair(void **state)
{
    struct scene *scene = *state;
    json_t *json;

    start_serving(scene);
    json = request(scene, "GET", "/v1/status", 200);
    assert_int_equal(number_at(json, "generation", "serving"), 2);
    assert_true(json_is_true(json_object_get(json_object_get(json, "generation"), "in_sync")));
    assert_int_equal(number_at(json, "backends", "up"), 2);
    json_decref(json);
    for (const char *const *path =
             (const char *const[]){"/v1/services", "/v1/backends", "/v1/stats", "/v1/drops", NULL};
         *path; path++)
        json_decref(request(scene, "GET", *path, 200));
}

static void test_wrong_requests(void **state)
{
    static const struct {
        const char *method, *path;
        int status;
    } rows[] = {
        {"GET", "/", 404},
        {"GET", "/v1/statusx", 404},
        {"GET", "/v1/status/", 404},
        {"POST", "/v1/status", 405},
        {"DELETE", "/v1/status", 405},
        {"PUT", "/v1/reload", 405},
        {"GET", "/v1/backends/one/drain", 405},
        {"POST", "/v1/backends//drain", 404},
        {"POST", "/v1/backends/nobody/drain", 404},
        {"POST", "/v1/backends/one/drain?pool=nowhere", 404},
        {"POST", "/v1/backends/one/drain?poool=web", 400},
        {"POST", "/v1/backends/o%6ee/undrain", 200},
        {"GET", "/v1/status?verbose=1", 400},
        {"GET", "/v1/lookup", 400},
        {"GET", "/v1/lookup?client=192.0.2.1&vip=192.0.2.10:80", 400},
        {"GET", "/v1/lookup?client=192.0.2.1:70000&vip=192.0.2.10:80", 400},
        {"GET", "/v1/lookup?client=[2001:db8::1]:7&vip=192.0.2.10:80", 400},
        {"GET", "/v1/lookup?client=192.0.2.1:7&vip=192.0.2.10:80&protocol=dccp", 400},
    };
    struct scene *scene = *state;

    start_serving(scene);
    for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
        json_t *json = request(scene, rows[r].method, rows[r].path, rows[r].status);

        if (rows[r].status >= 400)
            assert_non_null(
                json_string_value(json_object_get(json_object_get(json, "error"), "message")));
        json_decref(json);
    }
    assert_true(fake_hears_nothing(&scene->fake));
}

static void test_drain_is_remembered_and_then_applied(void **state)
{
    struct scene *scene = *state;
    struct hb_state known;
    json_t *json;
    int status;

    start_serving(scene);
    ask(scene, "POST", "/v1/backends/two/drain?pool=web");
    expect_publish(scene);
    assert_int_equal(scene->generation.number, 3);
    assert_true(hears_nothing(scene));
    assert_int_equal(hb_state_load(scene->state, &known), 0);
    assert_true(known.backends[1].draining);
    hb_state_clear(&known);
    answer_publish(scene, HB_REJECT_NONE);
    json = hear(scene, &status);
    assert_int_equal(status, 200);
    assert_true(json_is_true(json_object_get(json, "applied")));
    assert_int_equal(json_integer_value(json_object_get(json, "generation")), 3);
    json_decref(json);
    /* Once more changes nothing. */
    json = request(scene, "POST", "/v1/backends/two/drain", 200);
    assert_true(json_is_false(
        json_object_get(json_array_get(json_object_get(json, "backends"), 0), "changed")));
    json_decref(json);
    assert_true(fake_hears_nothing(&scene->fake));
}

static void test_a_drain_that_cannot_be_remembered_is_not_done(void **state)
{
    struct scene *scene = *state;

    start_serving(scene);
    scene->control->options.state = "/nonexistent/state";
    json_decref(request(scene, "POST", "/v1/backends/two/drain", 500));
    assert_false(backend_at(scene->control->model, "web", "198.51.100.2")->state.draining);
    assert_true(fake_hears_nothing(&scene->fake));
    scene->control->options.state = scene->state;
}

/* A client that goes away while its request waits. */
static void test_a_client_that_does_not_wait(void **state)
{
    struct scene *scene = *state;

    start_serving(scene);
    ask(scene, "POST", "/v1/backends/two/drain");
    expect_publish(scene);
    close(scene->http);
    for (int i = 0; i < 20; i++)
        fake_turn(&scene->fake);
    answer_publish(scene, HB_REJECT_NONE);
    wait_until_serving(scene, 3);
    json_decref(request(scene, "GET", "/v1/status", 200));
}

/* BL-81 */
static void test_a_refused_generation_is_not_serving(void **state)
{
    struct scene *scene = *state;
    json_t *json;

    start_serving(scene);
    ask(scene, "POST", "/v1/backends/two/drain");
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_BACKEND);
    for (int i = 0; i < 20; i++)
        fake_turn(&scene->fake);
    close(scene->http);
    json = request(scene, "GET", "/v1/status", 200);
    assert_int_equal(number_at(json, "generation", "wanted"), 3);
    assert_int_equal(number_at(json, "generation", "serving"), 2);
    assert_int_equal(number_at(json, "generation", "rejects"), 1);
    json_decref(json);
    /* It comes again by itself. */
    expect_publish(scene);
    assert_int_equal(scene->generation.number, 3);
    answer_publish(scene, HB_REJECT_NONE);
    wait_until_serving(scene, 3);
}

/* BL-91: a torn file at any length, in a running system: refused, and nothing is sent. */
static void test_a_bad_reload_changes_nothing(void **state)
{
    struct scene *scene = *state;
    json_t *json;

    start_serving(scene);
    for (size_t size = 0; size < strlen(good_config); size += 13) {
        write_config(scene, good_config, size);
        json = request(scene, "POST", "/v1/reload", 422);
        assert_true(json_array_size(json_object_get(json_object_get(json, "error"), "complaints")) >
                    0);
        json_decref(json);
    }
    assert_true(fake_hears_nothing(&scene->fake));
    write_config(scene, good_config, strlen(good_config));
    json = request(scene, "POST", "/v1/reload", 200);
    assert_true(json_is_false(json_object_get(json, "changed")));
    assert_int_equal(json_integer_value(json_object_get(json, "generation")), 2);
    json_decref(json);
    assert_true(fake_hears_nothing(&scene->fake));
}

/* The dataplane hands its generation back, as it does to a restarted control. */
static void greet_with_generation(struct scene *scene)
{
    struct hb_hello_reply reply;
    int fds[2] = {scene->fake.counters_fd, scene->generation_fd};

    fake_accept(&scene->fake);
    fake_receive(&scene->fake, HB_MSG_HELLO);
    reply = fake_hello_reply(&scene->fake);
    reply.generation_number = scene->generation.number;
    memcpy(reply.content, scene->generation.content, sizeof(reply.content));
    fake_send(&scene->fake, &reply, sizeof(reply), fds, 2);
}

static void test_a_restarted_control_publishes_nothing(void **state)
{
    struct scene *scene = *state;

    start_serving(scene);
    for (int round = 0; round < 2; round++) {
        json_t *json;

        close_control(scene);
        if (round == 1)
            unlink(scene->state);
        open_control(scene);
        greet_with_generation(scene);
        json = request(scene, "GET", "/v1/status", 200);
        assert_int_equal(number_at(json, "generation", "serving"), 2);
        assert_true(json_is_true(json_object_get(json_object_get(json, "generation"), "in_sync")));
        json_decref(json);
        assert_true(fake_hears_nothing(&scene->fake));
    }
}

/* Every backend has forwarded something: it may have flows. */
static void count_traffic(struct scene *scene)
{
    struct hb_backend_counters *backends =
        (void *)(uintptr_t)hb_counters_backends(scene->fake.counters, 0);

    for (uint32_t id = 1; id < 8; id++)
        backends[id].packets = 100;
}

static int unsettled_slots(struct scene *scene)
{
    json_t *json = request(scene, "GET", "/v1/status", 200);
    json_t *pool = json_array_get(json_object_get(json, "pools"), 0);
    int count = (int)json_integer_value(json_object_get(pool, "unsettled"));

    json_decref(json);
    return count;
}

/* Who owned the slots of a drained backend is known after control was restarted; with its state
 * file or from the dataplane; and when both daemons were restarted at once. */
static void test_previous_owners_are_remembered(void **state)
{
    struct scene *scene = *state;
    int moved;

    start_serving(scene);
    assert_int_equal(unsettled_slots(scene), 0);
    ask(scene, "POST", "/v1/backends/two/drain"); /* before it had any flow */
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    wait_until_serving(scene, 3);
    close(scene->http);
    assert_int_equal(unsettled_slots(scene), 0);
    ask(scene, "POST", "/v1/backends/two/undrain");
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    wait_until_serving(scene, 4);
    close(scene->http);
    count_traffic(scene);
    ask(scene, "POST", "/v1/backends/two/drain");
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    wait_until_serving(scene, 5);
    close(scene->http);
    moved = unsettled_slots(scene);
    assert_in_range(moved, 120, 131);
    close_control(scene);
    open_control(scene);
    greet_with_generation(scene);
    assert_int_equal(unsettled_slots(scene), moved);
    assert_true(fake_hears_nothing(&scene->fake)); /* the very same table */
    close_control(scene);
    open_control(scene);
    fake_greet(&scene->fake);
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    resolve_hops(scene);
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    wait_until_serving(scene, scene->generation.number);
    assert_int_equal(unsettled_slots(scene), moved);
}

static void answer_settle(struct scene *scene, uint32_t known, uint64_t bits)
{
    struct hb_settle_reply reply;

    fake_receive(&scene->fake, HB_MSG_SETTLE);
    reply = (struct hb_settle_reply){
        .header = fake_header(&scene->fake, HB_MSG_SETTLE_REPLY, sizeof(reply)),
        .known = known,
        .first = scene->fake.message.settle.first,
        .count = 251,
    };
    for (int word = 0; word < 4; word++)
        reply.idle[word] = bits;
    fake_send(&scene->fake, &reply, sizeof(reply), NULL, 0);
}

/* Marks go when the dataplane says that they are not needed, half of them first. */
static void test_slots_settle(void **state)
{
    struct scene *scene = *state;
    uint8_t digest[HB_DIGEST_SIZE];
    int moved;

    start_serving(scene);
    count_traffic(scene);
    ask(scene, "POST", "/v1/backends/two/drain");
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    wait_until_serving(scene, 3);
    close(scene->http);
    moved = unsettled_slots(scene);
    memcpy(digest, scene->control->model->pools[0].digest, sizeof(digest));
    answer_settle(scene, 0, UINT64_MAX); /* "no such table": says nothing */
    fake_receive(&scene->fake, HB_MSG_SETTLE);
    assert_memory_equal(scene->fake.message.settle.digest, digest, sizeof(digest));
    assert_int_equal(scene->fake.message.settle.first, 0);
    {
        struct hb_settle_reply wrong = {
            .header = fake_header(&scene->fake, HB_MSG_SETTLE_REPLY, sizeof(wrong)),
            .known = 1,
            .count = 252, /* more than there are */
        };

        fake_send(&scene->fake, &wrong, sizeof(wrong), NULL, 0);
    }
    answer_settle(scene, 1, 0x5555555555555555);
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    wait_until_serving(scene, 4);
    assert_in_range(unsettled_slots(scene), moved / 3, 2 * moved / 3);
    answer_settle(scene, 1, UINT64_MAX);
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    wait_until_serving(scene, 5);
    assert_int_equal(unsettled_slots(scene), 0);
}

static void test_a_restarted_dataplane_gets_it_again(void **state)
{
    struct scene *scene = *state;
    uint8_t content[HB_DIGEST_SIZE];

    start_serving(scene);
    memcpy(content, scene->generation.content, sizeof(content));
    fake_hang_up(&scene->fake);
    fake_greet(&scene->fake);
    expect_publish(scene);
    assert_int_equal(scene->generation.number, 2);
    assert_memory_equal(scene->generation.content, content, sizeof(content));
    answer_publish(scene, HB_REJECT_NONE);
    wait_until_serving(scene, 2);
}

static void test_lookup_names_what_the_dataplane_numbers(void **state)
{
    struct scene *scene = *state;
    struct hb_lookup_reply reply;
    json_t *json;
    int status;

    start_serving(scene);
    ask(scene, "GET", "/v1/lookup?client=192.0.2.1:7&vip=192.0.2.10:80&protocol=tcp");
    fake_receive(&scene->fake, HB_MSG_LOOKUP);
    assert_int_equal(scene->fake.message.lookup.flow.source_port, htobe16(7));
    assert_int_equal(scene->fake.message.lookup.flow.destination_port, htobe16(80));
    reply = (struct hb_lookup_reply){
        .header = fake_header(&scene->fake, HB_MSG_LOOKUP_REPLY, sizeof(reply)),
        .generation_number = 2,
        .source = HB_LOOKUP_FLOW,
        .slots = 251,
        .slot = 17,
        .table_backend = 2,
        .backend = 1,
        .flow_backend = 1,
        .worker = 1,
        .flow_idle_ms = 150,
    };
    fake_send(&scene->fake, &reply, sizeof(reply), NULL, 0);
    json = hear(scene, &status);
    assert_int_equal(status, 200);
    assert_string_equal(json_string_value(json_object_get(json, "source")), "flow");
    assert_string_equal(json_string_value(json_object_get(json, "service")), "www");
    assert_string_equal(json_string_value(json_object_get(json, "backend")), "one");
    assert_string_equal(json_string_value(json_object_get(json, "slot_owner")), "two");
    json_decref(json);
    /* The dataplane dies with a question open. */
    ask(scene, "GET", "/v1/lookup?client=192.0.2.1:7&vip=192.0.2.10:80");
    fake_receive(&scene->fake, HB_MSG_LOOKUP);
    fake_hang_up(&scene->fake);
    json = hear(scene, &status);
    assert_int_equal(status, 503);
    json_decref(json);
}

static void test_without_a_dataplane_the_api_answers(void **state)
{
    struct scene *scene = *state;
    json_t *json;

    fake_stop_listening(&scene->fake);
    json = request(scene, "GET", "/v1/status", 200);
    assert_true(json_is_false(json_object_get(json_object_get(json, "dataplane"), "connected")));
    json_decref(json);
    json_decref(request(scene, "GET", "/v1/lookup?client=192.0.2.1:7&vip=192.0.2.10:80", 503));
}

/* BL-85: the dataplane has room for 8 backends. The ninth is refused, and all else goes on. */
static void test_more_backends_than_the_dataplane_has_room_for(void **state)
{
    struct scene *scene = *state;
    const char *services = strstr(good_config, "services:");
    char config[2048];
    int size = snprintf(config, sizeof(config), "%.*s", (int)(services - good_config), good_config);
    json_t *json;

    start_serving(scene);
    for (int b = 3; b <= 9; b++)
        size += snprintf(config + size, sizeof(config) - (size_t)size,
                         "      - { name: n%d, address: 198.51.100.%d }\n", b, b);
    size += snprintf(config + size, sizeof(config) - (size_t)size, "%s", services);
    write_config(scene, config, (size_t)size);
    json = request(scene, "POST", "/v1/reload", 422);
    assert_non_null(strstr(json_string_value(json_array_get(
                               json_object_get(json_object_get(json, "error"), "complaints"), 0)),
                           "no backend id is free"));
    json_decref(json);
    assert_int_equal(hb_ids_used(scene->control->model->backend_ids), 2);
    assert_true(fake_hears_nothing(&scene->fake));
    write_config(scene, good_config, strlen(good_config));
    json_decref(request(scene, "POST", "/v1/reload", 200));
    assert_true(fake_hears_nothing(&scene->fake));
}

static void test_a_second_control_is_refused(void **state)
{
    struct scene *scene = *state;
    const struct hb_control_options options = {.config = scene->config,
                                               .dataplane = scene->fake.path,
                                               .socket = scene->socket,
                                               .state = scene->state};

    start_serving(scene);
    assert_null(hb_control_open(&options));
    json_decref(request(scene, "GET", "/v1/status", 200));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_stage, clear_stage)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_status_of_a_working_pair),
        CASE(test_wrong_requests),
        CASE(test_drain_is_remembered_and_then_applied),
        CASE(test_previous_owners_are_remembered),
        CASE(test_slots_settle),
        CASE(test_a_drain_that_cannot_be_remembered_is_not_done),
        CASE(test_a_client_that_does_not_wait),
        CASE(test_a_refused_generation_is_not_serving),
        CASE(test_a_bad_reload_changes_nothing),
        CASE(test_a_restarted_control_publishes_nothing),
        CASE(test_a_restarted_dataplane_gets_it_again),
        CASE(test_lookup_names_what_the_dataplane_numbers),
        CASE(test_without_a_dataplane_the_api_answers),
        CASE(test_more_backends_than_the_dataplane_has_room_for),
        CASE(test_a_second_control_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
