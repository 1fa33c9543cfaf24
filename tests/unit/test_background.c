/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs of the background thread: their order, their end, and what a newer one does to an older. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "background.h"

struct scene {
    struct event_base *base;
    struct hb_background *background;
    pthread_mutex_t gate; /* a job that is told to stops here */
    char ran[64];         /* letters of the jobs, in the order in which they ran */
    char told[64];        /* the same of `done` */
    int freed;
    int error; /* of the last one */
};

struct work {
    struct scene *scene;
    char letter;
    bool stops;
    int error;
};

static void note(char *list, char letter)
{
    size_t length = strlen(list);

    list[length] = letter;
    list[length + 1] = '\0';
}

static int run(void *data)
{
    struct work *work = data;

    if (work->stops) {
        pthread_mutex_lock(&work->scene->gate);
        pthread_mutex_unlock(&work->scene->gate);
    }
    note(work->scene->ran, work->letter);
    return work->error;
}

static void done(void *context, const void *data, int error)
{
    struct scene *scene = context;

    note(scene->told, ((const struct work *)data)->letter);
    scene->error = error;
}

static void free_work(void *data)
{
    ((struct work *)data)->scene->freed++;
    free(data);
}

static void add(struct scene *scene, const char *name, char letter, bool stops, int error)
{
    struct work *work = malloc(sizeof(*work));

    *work = (struct work){scene, letter, stops, error};
    hb_background_add(scene->background, &(struct hb_job){name, run, done, free_work, work, scene});
}

static int open_scene(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));

    pthread_mutex_init(&scene->gate, NULL);
    scene->base = event_base_new();
    scene->background = hb_background_open(scene->base);
    assert_non_null(scene->background);
    *state = scene;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *scene = *state;

    hb_background_close(scene->background);
    event_base_free(scene->base);
    free(scene);
    return 0;
}

/* Blocks the thread in the job X, which is under way or will be before anything else. */
static void stop(struct scene *scene)
{
    pthread_mutex_lock(&scene->gate);
    add(scene, "x", 'X', true, 0);
}

static void go(struct scene *scene)
{
    pthread_mutex_unlock(&scene->gate);
    hb_background_finish(scene->background);
}

static void test_in_order(void **state)
{
    struct scene *scene = *state;

    stop(scene);
    add(scene, "a", 'A', false, 0);
    add(scene, "b", 'B', false, -ENOSPC);
    assert_true(hb_background_has(scene->background, "a"));
    assert_true(hb_background_busy(scene->background));
    go(scene);
    assert_string_equal(scene->ran, "XAB");
    assert_string_equal(scene->told, "XAB");
    assert_int_equal(scene->error, -ENOSPC);
    assert_int_equal(scene->freed, 3);
    assert_false(hb_background_has(scene->background, "a"));
    assert_false(hb_background_busy(scene->background));
}

/* The end is told by the event loop, to which nobody has to come for it. */
static void test_the_loop_is_woken(void **state)
{
    struct scene *scene = *state;

    add(scene, "a", 'A', false, 0);
    while (scene->told[0] == '\0')
        event_base_loop(scene->base, EVLOOP_ONCE);
    assert_string_equal(scene->told, "A");
    assert_false(hb_background_busy(scene->background));
}

static void test_newer_takes_the_place_of_older(void **state)
{
    struct scene *scene = *state;

    stop(scene);
    /* The thread may not have come to X yet: then X is still in the queue, and first. */
    add(scene, "a", 'A', false, 0);
    add(scene, "b", 'B', false, 0);
    add(scene, "a", 'C', false, 0);
    assert_int_equal(scene->freed, 1);
    go(scene);
    assert_string_equal(scene->ran, "XCB");
    assert_string_equal(scene->told, "XCB");
    assert_int_equal(scene->freed, 4);
}

static void test_hold_drops_what_waits(void **state)
{
    struct scene *scene = *state;

    stop(scene);
    add(scene, "a", 'A', false, 0);
    add(scene, "b", 'B', false, 0);
    assert_true(hb_background_hold(scene->background, "b"));
    add(scene, "c", 'C', false, 0); /* the queue still hangs together */
    assert_true(hb_background_hold(scene->background, "a"));
    assert_false(hb_background_hold(scene->background, "a"));
    go(scene);
    assert_string_equal(scene->ran, "XC");
    assert_int_equal(scene->freed, 4);
}

static void *open_gate(void *context)
{
    struct scene *scene = context;

    pthread_mutex_unlock(&scene->gate);
    return NULL;
}

/* One that is under way cannot be dropped, so its end is waited for. */
static void test_hold_waits_for_what_runs(void **state)
{
    struct scene *scene = *state;
    pthread_mutex_t *gate = &scene->gate;
    pthread_t opener;

    for (int i = 0; i < 50; i++) {
        bool dropped;

        scene->ran[0] = '\0';
        pthread_mutex_lock(gate);
        add(scene, "x", 'X', true, 0);
        pthread_create(&opener, NULL, open_gate, scene);
        dropped = hb_background_hold(scene->background, "x");
        assert_string_equal(scene->ran, dropped ? "" : "X");
        pthread_join(opener, NULL);
        hb_background_finish(scene->background);
    }
}

static void test_close_runs_the_rest(void **state)
{
    struct scene *scene = *state;

    stop(scene);
    add(scene, "a", 'A', false, 0);
    pthread_mutex_unlock(&scene->gate);
    hb_background_close(scene->background);
    scene->background = NULL;
    assert_string_equal(scene->ran, "XA");
    assert_string_equal(scene->told, "");
    assert_int_equal(scene->freed, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_in_order, open_scene, close_scene),
        cmocka_unit_test_setup_teardown(test_the_loop_is_woken, open_scene, close_scene),
        cmocka_unit_test_setup_teardown(test_newer_takes_the_place_of_older, open_scene,
                                        close_scene),
        cmocka_unit_test_setup_teardown(test_hold_drops_what_waits, open_scene, close_scene),
        cmocka_unit_test_setup_teardown(test_hold_waits_for_what_runs, open_scene, close_scene),
        cmocka_unit_test_setup_teardown(test_close_runs_the_rest, open_scene, close_scene),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
