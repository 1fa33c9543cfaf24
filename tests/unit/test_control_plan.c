/* SPDX-License-Identifier: BSD-3-Clause */
/* POST /v1/plan in a running control, and what two controls of a fleet show of their tables. */
#include "control_scene.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* good_config with these lines for the pool and its backends. */
static const char *make_file(const char *pool, const char *backends)
{
    static char text[4096];

    snprintf(text, sizeof(text),
             "seed: 0123456789abcdef0123456789abcdef\n"
             "tunnel: { source: 203.0.113.10 }\n"
             "pools:\n"
             "  - name: web\n"
             "    table_size: 251\n"
             "    health: { type: none }\n"
             "%s"
             "    backends:\n"
             "%s"
             "services:\n"
             "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web }\n",
             pool, backends);
    return text;
}

#define ONE   "      - { name: one, address: 198.51.100.1 }\n"
#define TWO   "      - { name: two, address: 198.51.100.2 }\n"
#define THREE "      - { name: three, address: 198.51.100.3 }\n"

static void set_flows(struct scene *scene, uint32_t id, uint64_t flows)
{
    for (uint32_t worker = 0; worker < 2; worker++) {
        struct hb_backend_counters *backends =
            (void *)(uintptr_t)hb_counters_backends(scene->fake.counters, worker);

        backends[id].flows = worker == 0 ? flows : 1;
    }
}

static const char *text_at(json_t *json, const char *member)
{
    return json_string_value(json_object_get(json, member));
}

static json_t *first_pool(json_t *json)
{
    return json_array_get(json_object_get(json, "pools"), 0);
}

/* A plan must leave no trace: nothing is sent, and files and status are as before. */
static json_t *plan(struct scene *scene, const char *file, int expected)
{
    json_t *before = request(scene, "GET", "/v1/status", 200), *after, *answer;
    struct stat state_before, state_after;

    assert_int_equal(stat(scene->state, &state_before), 0);
    answer = request_with_body(scene, "POST", "/v1/plan?file=NEW.yaml", file, expected);
    assert_true(fake_hears_nothing(&scene->fake));
    after = request(scene, "GET", "/v1/status", 200);
    json_object_del(before, "uptime_s");
    json_object_del(after, "uptime_s");
    assert_true(json_equal(before, after));
    assert_int_equal(stat(scene->state, &state_after), 0);
    assert_int_equal(state_before.st_ino, state_after.st_ino);
    json_decref(before);
    json_decref(after);
    return answer;
}

static void test_the_same_file(void **state)
{
    struct scene *scene = *state;
    json_t *json;

    start_serving(scene);
    set_flows(scene, 1, 7);
    json = plan(scene, good_config, 200);
    assert_true(json_is_false(json_object_get(json, "changed")));
    assert_string_equal(text_at(json, "breaks"), "no");
    assert_int_equal(number_at(json, "flows", "live"), 8);
    assert_int_equal(number_at(json, "flows", "kept"), 8);
    assert_int_equal(json_integer_value(json_object_get(first_pool(json), "moved")), 0);
    json_decref(json);
}

static void test_a_backend_with_live_flows_goes(void **state)
{
    struct scene *scene = *state;
    json_t *json, *change;

    start_serving(scene);
    set_flows(scene, 1, 7);
    set_flows(scene, 2, 4);
    json = plan(scene, make_file("", ONE THREE), 200);
    assert_true(json_is_true(json_object_get(json, "changed")));
    assert_string_equal(text_at(json, "breaks"), "yes");
    assert_int_equal(number_at(json, "flows", "kept"), 8);
    assert_int_equal(number_at(json, "flows", "broken"), 5);
    assert_int_equal(number_at(json, "backends", "added"), 1);
    assert_int_equal(number_at(json, "backends", "removed"), 1);
    assert_int_equal(json_array_size(json_object_get(first_pool(json), "backends")), 3);
    /* The reload moves what the plan said, once the new backend can be reached. */
    write_config(scene, make_file("", ONE THREE), strlen(make_file("", ONE THREE)));
    ask(scene, "POST", "/v1/reload");
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    wait_until_serving(scene, 3);
    json_decref(hear(scene, &(int){0}));
    resolve_hops(scene);
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    wait_until_serving(scene, 4);
    change = request(scene, "GET", "/v1/status", 200);
    assert_string_equal(text_at(json_object_get(first_pool(json), "digest"), "after"),
                        text_at(first_pool(change), "digest"));
    json_decref(change);
    json_decref(json);
}

static void test_a_drain_is_kept(void **state)
{
    struct scene *scene = *state;
    json_t *json, *backends;

    start_serving(scene);
    ask(scene, "POST", "/v1/backends/two/drain");
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    json_decref(hear(scene, &(int){0}));
    set_flows(scene, 2, 4);
    json = plan(scene, make_file("", ONE TWO THREE), 200);
    backends = json_object_get(first_pool(json), "backends");
    assert_string_equal(text_at(json_array_get(backends, 1), "state"), "draining");
    assert_int_equal(number_at(json_array_get(backends, 1), "slots", "after"), 0);
    assert_int_equal(number_at(json_array_get(backends, 1), "flows", "kept"), 5);
    assert_string_equal(text_at(json_array_get(backends, 2), "state"), "new");
    assert_string_equal(text_at(json, "breaks"), "no");
    json_decref(json);
}

static json_t *complaints_of(json_t *json)
{
    return json_object_get(json_object_get(json, "error"), "complaints");
}

/* The same complaints as a reload makes, under the name that the operator gave. */
static void test_a_bad_file(void **state)
{
    static const char *const bad[] = {"", "seed: x\n", "- 1\n"};
    struct scene *scene = *state;

    start_serving(scene);
    for (size_t b = 0; b < sizeof(bad) / sizeof(bad[0]); b++) {
        json_t *planned = plan(scene, bad[b], 422), *reloaded;
        const char *text = json_string_value(json_array_get(complaints_of(planned), 0));

        assert_int_equal(strncmp(text, "NEW.yaml:", 9), 0);
        write_config(scene, bad[b], strlen(bad[b]));
        reloaded = request(scene, "POST", "/v1/reload", 422);
        assert_int_equal(json_array_size(complaints_of(planned)),
                         json_array_size(complaints_of(reloaded)));
        assert_string_equal(
            strchr(text, ':'),
            strchr(json_string_value(json_array_get(complaints_of(reloaded), 0)), ':'));
        json_decref(planned);
        json_decref(reloaded);
    }
}

/* BL-85: what only the running system can know. */
static void test_no_room_for_more(void **state)
{
    struct scene *scene = *state;
    char backends[1024] = "";
    json_t *json;

    start_serving(scene);
    for (int b = 1; b <= 9; b++)
        snprintf(backends + strlen(backends), sizeof(backends) - strlen(backends),
                 "      - { name: n%d, address: 198.51.100.%d }\n", b, b);
    json = plan(scene, make_file("", backends), 422);
    assert_non_null(
        strstr(json_string_value(json_array_get(complaints_of(json), 0)), "no backend id is free"));
    json_decref(json);
}

/* More than a read or two of the socket. */
static void test_a_long_file(void **state)
{
    struct scene *scene = *state;
    size_t size = 3 << 20, have = strlen(good_config);
    char *text = malloc(size + 1);
    json_t *json;

    start_serving(scene);
    memcpy(text, good_config, have);
    while (have < size) {
        memset(text + have, '#', 63);
        text[have + 63] = '\n';
        have += 64;
        if (size - have < 64)
            size = have;
    }
    text[size] = '\0';
    json = plan(scene, text, 200);
    assert_true(json_is_false(json_object_get(json, "changed")));
    json_decref(json);
    free(text);
}

static void test_without_a_dataplane(void **state)
{
    struct scene *scene = *state;
    json_t *json;

    fake_stop_listening(&scene->fake);
    json = request_with_body(scene, "POST", "/v1/plan", good_config, 503);
    assert_non_null(strstr(text_at(json_object_get(json, "error"), "message"), "--old"));
    json_decref(json);
    json_decref(request_with_body(scene, "POST", "/v1/plan", "seed: x\n", 422));
    json_decref(request(scene, "GET", "/v1/plan", 405));
}

/* It was there and has gone: tables are known, flows are not. */
static void test_while_the_dataplane_is_away(void **state)
{
    struct scene *scene = *state;
    json_t *json;

    start_serving(scene);
    fake_stop_listening(&scene->fake);
    fake_hang_up(&scene->fake);
    for (int i = 0; i < 5000 && scene->control->publication.connected; i++)
        fake_turn(&scene->fake);
    json = request_with_body(scene, "POST", "/v1/plan", make_file("", ONE), 200);
    assert_true(json_is_null(json_object_get(json, "flows")));
    assert_string_equal(text_at(json, "breaks"), "perhaps");
    assert_true(json_integer_value(json_object_get(first_pool(json), "moved")) > 100);
    json_decref(json);
}

/* --- algorithms --- */

#define JUMP(name, address, bucket)                                                                \
    "      - { name: " name ", address: 198.51.100." address ", bucket: " bucket " }\n"

static void reload(struct scene *scene, const char *file, uint64_t generation)
{
    write_config(scene, file, strlen(file));
    ask(scene, "POST", "/v1/reload");
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    wait_until_serving(scene, generation);
    json_decref(hear(scene, &(int){0}));
}

/* Removing a bucket from the middle is refused by plan and reload alike, and says why. */
static void test_jump_is_refused_arbitrary_removal(void **state)
{
    static const char *const jump = "    algorithm: jump\n";
    struct scene *scene = *state;
    json_t *planned, *reloaded;
    const char *complaint;
    char file[4096];

    start_serving(scene);
    reload(scene, make_file(jump, JUMP("a", "1", "0") JUMP("b", "2", "1") JUMP("c", "3", "2")), 3);
    snprintf(file, sizeof(file), "%s", make_file(jump, JUMP("a", "1", "0") JUMP("c", "3", "1")));
    planned = plan(scene, file, 422);
    complaint = json_string_value(json_array_get(complaints_of(planned), 0));
    assert_non_null(strstr(complaint, "NEW.yaml:10: pool web: c had bucket 2 and now has 1, since "
                                      "b is removed: jump loses backends at the end only"));
    write_config(scene, file, strlen(file));
    reloaded = request(scene, "POST", "/v1/reload", 422);
    assert_string_equal(strchr(complaint, ':'),
                        strchr(json_string_value(json_array_get(complaints_of(reloaded), 0)), ':'));
    json_decref(planned);
    json_decref(reloaded);
    /* A gap is a complaint about the file alone. */
    json_decref(plan(scene, make_file(jump, JUMP("a", "1", "0") JUMP("c", "3", "2")), 422));
    /* At the end it is fine, and with jump_replacement anywhere. */
    json_decref(plan(scene, make_file(jump, JUMP("a", "1", "0") JUMP("b", "2", "1")), 200));
    json_decref(plan(scene,
                     make_file("    algorithm: jump\n    jump_replacement: true\n",
                               JUMP("a", "1", "0") JUMP("c", "3", "2")),
                     200));
}

static void test_status_names_the_algorithm(void **state)
{
    struct scene *scene = *state;
    json_t *json;

    start_serving(scene);
    json = request(scene, "GET", "/v1/status", 200);
    assert_string_equal(text_at(first_pool(json), "algorithm"), "maglev");
    assert_true(json_is_null(json_object_get(first_pool(json), "warning")));
    json_decref(json);
    json = plan(scene, make_file("    algorithm: modulo\n", ONE TWO), 200);
    assert_non_null(strstr(json_string_value(json_array_get(json_object_get(json, "warnings"), 0)),
                           "modulo is for comparison"));
    json_decref(json);
    reload(scene, make_file("    algorithm: modulo\n    bounded_load: 0.25\n", ONE TWO), 3);
    json = request(scene, "GET", "/v1/status", 200);
    assert_string_equal(text_at(first_pool(json), "algorithm"), "modulo");
    assert_non_null(strstr(text_at(first_pool(json), "warning"), "modulo is for comparison"));
    assert_true(json_real_value(json_object_get(first_pool(json), "bounded_load")) == 0.25);
    json_decref(json);
}

/* The dataplane answers a lookup by the table; a bound may have another say for a new flow. */
static void test_lookup_mentions_the_bound(void **state)
{
    static const char *const bounds[] = {"", "    bounded_load: 0.25\n"};
    struct scene *scene = *state;
    struct hb_lookup_reply reply;

    start_serving(scene);
    for (int i = 0; i < 2; i++) {
        json_t *json;
        int status;

        if (i > 0)
            reload(scene, make_file(bounds[i], ONE TWO), 3);
        ask(scene, "GET", "/v1/lookup?client=192.0.2.1:7&vip=192.0.2.10:80");
        fake_receive(&scene->fake, HB_MSG_LOOKUP);
        reply = (struct hb_lookup_reply){
            .header = fake_header(&scene->fake, HB_MSG_LOOKUP_REPLY, sizeof(reply)),
            .source = HB_LOOKUP_TABLE,
            .slots = 251,
            .slot = 17,
            .table_backend = 1,
            .backend = 1,
        };
        fake_send(&scene->fake, &reply, sizeof(reply), NULL, 0);
        json = hear(scene, &status);
        assert_int_equal(status, 200);
        assert_string_equal(text_at(json, "why"),
                            i == 0 ? "no worker has an entry for this flow; slot 17 of 251 belongs "
                                     "to one"
                                   : "no worker has an entry for this flow; slot 17 of 251 belongs "
                                     "to one; pool web bounds the load: a backend at its limit "
                                     "passes a new flow on");
        json_decref(json);
    }
}

/* --- a fleet --- */

/* The digest that a balancer of the fleet shows with this file. */
static void digest_of(struct scene *scene, const char *file, char digest[64])
{
    json_t *json;

    write_config(scene, file, strlen(file));
    close_control(scene);
    remove(scene->state);
    open_control(scene);
    start_serving(scene);
    json = request(scene, "GET", "/v1/status", 200);
    snprintf(digest, 64, "%s", text_at(first_pool(json), "digest"));
    assert_int_equal(strlen(digest), 32);
    json_decref(json);
}

/* Two balancers side by side, each with a dataplane of its own. What their backends are decides,
 * not the order of the files nor names, ids and weights that are the same in other words. */
static void test_two_controls_and_their_digests(void **state)
{
    struct scene *scene = *state, *other;
    char here[64], there[64];
    void *second = NULL;

    assert_int_equal(set_stage(&second), 0);
    other = second;
    digest_of(scene, make_file("", ONE TWO THREE), here);
    digest_of(other, make_file("", THREE ONE TWO), there);
    assert_string_equal(here, there);
    digest_of(other, make_file("", "      - { name: renamed, address: 198.51.100.3 }\n" TWO ONE),
              there);
    assert_string_equal(here, there);
    digest_of(other, make_file("", ONE TWO), there);
    assert_string_not_equal(here, there);
    digest_of(other, make_file("", ONE TWO "      - { name: three, address: 198.51.100.4 }\n"),
              there);
    assert_string_not_equal(here, there);
    digest_of(other,
              make_file("", "      - { name: three, address: 198.51.100.3, weight: 2 }\n" ONE TWO),
              there);
    assert_string_not_equal(here, there);
    digest_of(other, make_file("", TWO THREE ONE), there);
    assert_string_equal(here, there);
    digest_of(other, make_file("    algorithm: ring\n", TWO THREE ONE), there);
    assert_string_not_equal(here, there);
    digest_of(scene, make_file("    algorithm: ring\n", ONE TWO THREE), here);
    assert_string_equal(here, there);
    digest_of(scene, make_file("    algorithm: rendezvous\n", ONE TWO THREE), here);
    digest_of(other, make_file("    algorithm: rendezvous\n", THREE TWO ONE), there);
    assert_string_equal(here, there);
    clear_stage(&second);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_stage, clear_stage)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_the_same_file),
        CASE(test_a_backend_with_live_flows_goes),
        CASE(test_a_drain_is_kept),
        CASE(test_a_bad_file),
        CASE(test_no_room_for_more),
        CASE(test_a_long_file),
        CASE(test_without_a_dataplane),
        CASE(test_while_the_dataplane_is_away),
        CASE(test_jump_is_refused_arbitrary_removal),
        CASE(test_status_names_the_algorithm),
        CASE(test_lookup_mentions_the_bound),
        CASE(test_two_controls_and_their_digests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
