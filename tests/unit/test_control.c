/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The whole daemon on its event loop, between a dataplane that this file plays and an operator who
 * speaks HTTP. Next hops are set by hand; whatever this machine's kernel says about the addresses
 * of the tests changes nothing once they are known.
 */
#include "model_fixture.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "api_server.h"
#include "control.h"
#include "fake_dataplane.h"
#include "log.h"

static const char good_config[] =
    "seed: 0123456789abcdef0123456789abcdef\n"
    "tunnel: { source: 203.0.113.10 }\n"
    "pools:\n"
    "  - name: web\n"
    "    table_size: 251\n"
    "    health: { type: none }\n"
    "    backends:\n"
    "      - { name: one, address: 198.51.100.1 }\n"
    "      - { name: two, address: 198.51.100.2 }\n"
    "services:\n"
    "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web }\n";

struct scene {
    struct fake_dataplane fake;
    struct hb_control *control;
    char config[96], state[96], socket[96], lock[112];
    int generation_fd; /* the last one published, or -1 */
    struct hb_generation_header generation;
    int http;
};

/* --- the stage --- */

static void write_config(struct scene *scene, const char *text, size_t size)
{
    FILE *file = fopen(scene->config, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    fclose(file);
}

static void open_control(struct scene *scene)
{
    const struct hb_control_options options = {.config = scene->config,
                                               .dataplane = scene->fake.path,
                                               .socket = scene->socket,
                                               .state = scene->state};

    scene->control = hb_control_open(&options);
    assert_non_null(scene->control);
    scene->fake.base = scene->control->base;
}

static void close_control(struct scene *scene)
{
    hb_control_close(scene->control);
    scene->control = NULL;
    fake_hang_up(&scene->fake);
}

static int set_stage(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));

    fake_open(&scene->fake, NULL);
    snprintf(scene->config, sizeof(scene->config), "%s/config.yaml", scene->fake.directory);
    snprintf(scene->state, sizeof(scene->state), "%s/state", scene->fake.directory);
    snprintf(scene->socket, sizeof(scene->socket), "%s/api", scene->fake.directory);
    snprintf(scene->lock, sizeof(scene->lock), "%s.lock", scene->socket);
    write_config(scene, good_config, strlen(good_config));
    scene->generation_fd = scene->http = -1;
    open_control(scene);
    *state = scene;
    return 0;
}

static int clear_stage(void **state)
{
    struct scene *scene = *state;

    if (scene->control != NULL)
        close_control(scene);
    if (scene->generation_fd >= 0)
        close(scene->generation_fd);
    unlink(scene->config);
    unlink(scene->state);
    unlink(scene->lock);
    fake_close(&scene->fake);
    free(scene);
    return 0;
}

static void resolve_hops(struct scene *scene)
{
    struct hb_model_pool *pool = hb_model_pool(scene->control->model, "web");

    for (uint32_t b = 0; b < pool->backends_count; b++) {
        pool->backends[b]->hop = resolved_hop();
        pool->backends[b]->hop.ifindex = 0; /* as the fake's port has it */
    }
    hb_control_publish(scene->control);
}

/* Takes the next generation in and answers. */
static void expect_publish(struct scene *scene)
{
    fake_receive(&scene->fake, HB_MSG_PUBLISH);
    if (scene->generation_fd >= 0)
        close(scene->generation_fd);
    scene->generation_fd = dup(scene->fake.received_fd);
    assert_int_equal(pread(scene->generation_fd, &scene->generation, sizeof(scene->generation), 0),
                     sizeof(scene->generation));
    assert_int_equal(scene->generation.number, scene->fake.message.publish.number);
}

static void answer_publish(struct scene *scene, enum hb_reject reason)
{
    struct hb_publish_reply reply = fake_publish_reply(&scene->fake, reason);

    fake_send(&scene->fake, &reply, sizeof(reply), NULL, 0);
}

/* Turns the loop until what the dataplane said has arrived. */
static void wait_until_serving(struct scene *scene, uint64_t number)
{
    for (int i = 0; i < 5000 && scene->control->publication.serving != number; i++)
        fake_turn(&scene->fake);
    assert_int_equal(scene->control->publication.serving, number);
}

/* From the hello to a working pool: two generations, since next hops come after the first. */
static void start_serving(struct scene *scene)
{
    fake_greet(&scene->fake);
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    wait_until_serving(scene, 1);
    resolve_hops(scene);
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    wait_until_serving(scene, 2);
    assert_int_equal(scene->generation.tables.count, 1);
}

/* --- the operator --- */

static void ask(struct scene *scene, const char *method, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char request[512];

    strcpy(address.sun_path, scene->socket);
    scene->http = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_int_equal(connect(scene->http, (struct sockaddr *)&address, sizeof(address)), 0);
    snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
             method, path);
    assert_int_equal(send(scene->http, request, strlen(request), 0), strlen(request));
}

/* True when no answer comes in the next turns of the loop. */
static bool hears_nothing(struct scene *scene)
{
    char byte;

    for (int i = 0; i < 20; i++)
        fake_turn(&scene->fake);
    return recv(scene->http, &byte, 1, MSG_PEEK) < 0 && errno == EAGAIN;
}

static json_t *hear(struct scene *scene, int *status)
{
    static char answer[65536];
    size_t size = 0;
    char *body;
    json_t *json;

    for (int i = 0; i < 10000; i++) {
        ssize_t got = recv(scene->http, answer + size, sizeof(answer) - 1 - size, 0);

        if (got == 0)
            break;
        if (got > 0)
            size += (size_t)got;
        else
            fake_turn(&scene->fake);
    }
    close(scene->http);
    answer[size] = '\0';
    body = strstr(answer, "\r\n\r\n");
    assert_non_null(body);
    assert_int_equal(sscanf(answer, "HTTP/1.1 %d", status), 1);
    assert_non_null(strstr(answer, "Content-Type: application/json"));
    json = json_loads(body + 4, 0, NULL);
    assert_non_null(json);
    return json;
}

static json_t *request(struct scene *scene, const char *method, const char *path, int expected)
{
    int status;
    json_t *json;

    ask(scene, method, path);
    json = hear(scene, &status);
    assert_int_equal(status, expected);
    return json;
}

static json_int_t number_at(json_t *json, const char *object, const char *member)
{
    return json_integer_value(json_object_get(json_object_get(json, object), member));
}

/* --- what must hold --- */

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
        {"GET", "/v1/lookup?client=192.0.2.1:7&vip=192.0.2.10:80&protocol=sctp", 400},
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
