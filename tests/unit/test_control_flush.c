/* SPDX-License-Identifier: BSD-3-Clause */
/* POST /v1/flush: the whole daemon between a played dataplane and an operator. */
#include "control_scene.h"

#include <string.h>
#include <unistd.h>

/* Packets of each backend: only of those who forwarded some is a previous owner kept. */
static void set_packets(struct scene *scene)
{
    struct hb_backend_counters *backends =
        (void *)(uintptr_t)hb_counters_backends(scene->fake.counters, 0);

    backends[1].packets = backends[2].packets = 1000;
}

static void answer_flush(struct scene *scene, uint64_t flows, uint32_t workers)
{
    struct hb_flush_reply reply;

    fake_receive(&scene->fake, HB_MSG_FLUSH);
    reply = (struct hb_flush_reply){
        .header = fake_header(&scene->fake, HB_MSG_FLUSH_REPLY, sizeof(reply)),
        .flows = flows,
        .workers = workers,
    };
    fake_send(&scene->fake, &reply, sizeof(reply), NULL, 0);
}

static json_t *hear_good(struct scene *scene)
{
    int status;
    json_t *json = hear(scene, &status);

    assert_int_equal(status, 200);
    return json;
}

static json_int_t member(json_t *json, const char *name)
{
    return json_integer_value(json_object_get(json, name));
}

/* A flush makes no generation: it stands among the actions, and after a restart as well. */
static void expect_actions(struct scene *scene, size_t count, const char *last)
{
    json_t *json = request(scene, "GET", "/v1/history", 200), *actions, *action;

    actions = json_object_get(json, "actions");
    assert_int_equal(json_array_size(actions), count);
    action = json_array_get(actions, count - 1);
    if (count > 0) {
        assert_string_equal(json_string_value(json_object_get(action, "action")), last);
        assert_int_equal(member(action, "generation"), scene->control->publication.wanted);
        assert_int_equal(number_at(action, "actor", "pid"), getpid());
    }
    json_decref(json);
}

/* How many events of a flush there are; each says who asked. */
static unsigned count_events(struct scene *scene)
{
    json_t *json = request(scene, "GET", "/v1/events", 200), *event;
    unsigned count = 0;
    size_t i;

    json_array_foreach (json_object_get(json, "events"), i, event) {
        if (strcmp(json_string_value(json_object_get(event, "type")), "flush") != 0)
            continue;
        assert_true(json_is_object(json_object_get(event, "actor")));
        count++;
    }
    json_decref(json);
    return count;
}

static void test_settled_slots_are_flushed(void **state)
{
    struct scene *scene = *state;
    json_t *json;

    start_serving(scene);
    ask(scene, "POST", "/v1/flush");
    answer_flush(scene, UINT64_C(1) << 53, 1);
    json = hear_good(scene);
    assert_true(member(json, "flows") == (json_int_t)(UINT64_C(1) << 53));
    assert_int_equal(member(json, "workers_flushed"), 1);
    assert_int_equal(member(json, "workers"), 2);
    json_decref(json);
    assert_int_equal(count_events(scene), 1);
    expect_actions(scene, 1, "flow caches flushed: 9007199254740992 entries forgotten");
    json_decref(request(scene, "POST", "/v1/maintenance?state=on", 200));
    expect_actions(scene, 2, "maintenance begun");
    close_control(scene);
    open_control(scene);
    assert_int_equal(scene->control->history->actions_count, 2);
}

static void test_unsettled_slots_are_not(void **state)
{
    struct scene *scene = *state;
    json_t *json;
    char text[256];

    start_serving(scene);
    set_packets(scene);
    ask(scene, "POST", "/v1/backends/two/drain");
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    json_decref(hear_good(scene));
    json = request(scene, "POST", "/v1/flush", 409);
    snprintf(text, sizeof(text), "%s",
             json_string_value(json_object_get(json_object_get(json, "error"), "message")));
    assert_non_null(strstr(text, "pool \"web\" has "));
    assert_non_null(strstr(text, "unsettled slots"));
    assert_non_null(strstr(text, "--force"));
    json_decref(json);
    assert_true(fake_hears_nothing(&scene->fake));
    assert_int_equal(count_events(scene), 0);

    ask(scene, "POST", "/v1/flush?force=1");
    answer_flush(scene, 7, 2);
    json = hear_good(scene);
    assert_int_equal(member(json, "flows"), 7);
    json_decref(json);
    assert_int_equal(count_events(scene), 1);
}

static void test_without_a_dataplane(void **state)
{
    struct scene *scene = *state;
    int status;

    start_serving(scene);
    ask(scene, "POST", "/v1/flush");
    fake_receive(&scene->fake, HB_MSG_FLUSH);
    fake_hang_up(&scene->fake); /* it dies over it */
    json_decref(hear(scene, &status));
    assert_int_equal(status, 503);
    json_decref(request(scene, "POST", "/v1/flush", 503));
    assert_int_equal(count_events(scene), 0);
    expect_actions(scene, 0, NULL);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_stage, clear_stage)
    const struct CMUnitTest tests[] = {
        CASE(test_settled_slots_are_flushed),
        CASE(test_unsettled_slots_are_not),
        CASE(test_without_a_dataplane),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
