/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring of events, and what becomes the cause of a generation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "events.h"

static void test_events_are_numbered_and_kept(void **state)
{
    struct hb_events *events = hb_events_new();
    const struct hb_event *event;

    (void)state;
    assert_int_equal(hb_events_newest(events), 0);
    assert_int_equal(hb_events_oldest(events), 0);
    assert_null(hb_events_get(events, 0));
    hb_events_add(events, HB_NEWS_BACKEND, "web", "web1", "backend %s is down", "web1");
    event = hb_events_get(events, 1);
    assert_non_null(event);
    assert_int_equal(event->type, HB_NEWS_BACKEND);
    assert_string_equal(event->pool, "web");
    assert_string_equal(event->object, "web1");
    assert_string_equal(event->message, "backend web1 is down");
    assert_int_equal(event->actor.by, HB_ACTOR_NONE);
    assert_true(event->unix_ms > UINT64_C(1600000000000));
    assert_null(hb_events_get(events, 2));
    hb_events_free(events);
}

static void test_the_ring_is_bounded(void **state)
{
    struct hb_events *events = hb_events_new();

    (void)state;
    for (uint64_t i = 1; i <= 3 * HB_EVENTS_KEPT; i++)
        hb_events_add(events, HB_NEWS_DATAPLANE, NULL, NULL, "%llu", (unsigned long long)i);
    assert_int_equal(hb_events_newest(events), 3 * HB_EVENTS_KEPT);
    assert_int_equal(hb_events_oldest(events), 2 * HB_EVENTS_KEPT + 1);
    assert_null(hb_events_get(events, 2 * HB_EVENTS_KEPT));
    for (uint64_t i = hb_events_oldest(events); i <= hb_events_newest(events); i++) {
        assert_int_equal(hb_events_get(events, i)->number, i);
        assert_int_equal(strtoull(hb_events_get(events, i)->message, NULL, 10), i);
    }
    hb_events_free(events);
}

static void test_who_asked(void **state)
{
    const struct hb_actor root = {.by = HB_ACTOR_UNIX, .uid = 0, .pid = 4711};
    struct hb_events *events = hb_events_new();
    char text[HB_ACTOR_TEXT];

    (void)state;
    hb_events_begin(events, &root);
    hb_events_add(events, HB_NEWS_RELOAD, NULL, NULL, "reload");
    hb_events_end(events);
    hb_events_add(events, HB_NEWS_BACKEND, NULL, NULL, "by itself");
    assert_string_equal(hb_actor_print(&hb_events_get(events, 1)->actor, text), "uid 0 (pid 4711)");
    assert_string_equal(hb_actor_print(&hb_events_get(events, 2)->actor, text), "");
    hb_events_free(events);
}

static void test_causes(void **state)
{
    const struct hb_actor root = {.by = HB_ACTOR_UNIX};
    struct hb_events *events = hb_events_new();
    char cause[HB_EVENT_CAUSE];
    struct hb_actor actor;

    (void)state;
    hb_events_begin(events, &root);
    hb_events_add(events, HB_NEWS_DRAIN, "web", "web1", "drain of web1");
    hb_events_end(events);
    hb_events_add(events, HB_NEWS_PUBLISHED, NULL, NULL, "is no cause");
    hb_events_add_cause(events, "next hop of %s found", "web2");
    hb_events_add(events, HB_NEWS_DRAIN, "dns", "web1", "drain of web1"); /* told already */
    hb_events_add_cause(events, "drain of web");
    hb_events_take_cause(events, cause, &actor);
    assert_string_equal(cause, "drain of web1; next hop of web2 found; drain of web");
    assert_int_equal(actor.by, HB_ACTOR_UNIX);
    hb_events_take_cause(events, cause, &actor);
    assert_string_equal(cause, "");
    assert_int_equal(actor.by, HB_ACTOR_NONE);
    /* What happened by itself just before does not hide who gave the order. */
    hb_events_add_cause(events, "backend web1 is down");
    hb_events_begin(events, &root);
    hb_events_add(events, HB_NEWS_RELOAD, NULL, NULL, "reload");
    hb_events_end(events);
    hb_events_take_cause(events, cause, &actor);
    assert_string_equal(cause, "backend web1 is down; reload");
    assert_int_equal(actor.by, HB_ACTOR_UNIX);
    for (unsigned i = 0; i < 1000; i++)
        hb_events_add(events, HB_NEWS_BACKEND, NULL, NULL, "backend number %u is down", i);
    hb_events_take_cause(events, cause, &actor);
    assert_non_null(strstr(cause, "backend number 0 is down; backend number 1"));
    assert_non_null(strstr(cause, " more"));
    /* One that is too long by itself is cut, not lost. */
    hb_events_add_cause(events, "%300s", "x");
    hb_events_take_cause(events, cause, &actor);
    assert_true(strlen(cause) > 200);
    hb_events_free(events);
}

static void count(void *context, const struct hb_event *event)
{
    *(uint64_t *)context += event->number;
}

static void test_a_listener_and_no_ring(void **state)
{
    struct hb_events *events = hb_events_new();
    uint64_t sum = 0;

    (void)state;
    hb_events_listen(events, count, &sum);
    hb_events_add(events, HB_NEWS_POLICY, NULL, NULL, "panic");
    hb_events_add(events, HB_NEWS_POLICY, NULL, NULL, "no panic");
    assert_int_equal(sum, 3);
    hb_events_free(events);
    hb_events_add(NULL, HB_NEWS_POLICY, NULL, NULL, "nobody keeps it");
    assert_int_equal(hb_events_newest(NULL), 0);
    assert_int_equal(hb_news_by_name("policy"), HB_NEWS_POLICY);
    assert_int_equal(hb_news_by_name("nothing"), HB_NEWS_TYPES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_are_numbered_and_kept),
        cmocka_unit_test(test_the_ring_is_bounded),
        cmocka_unit_test(test_who_asked),
        cmocka_unit_test(test_causes),
        cmocka_unit_test(test_a_listener_and_no_ring),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
