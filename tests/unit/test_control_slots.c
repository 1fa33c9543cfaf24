/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole daemon: until the owners of a table's slots are in a file, each generation carries the
 * table, so that a control that ends without a word finds it in the dataplane's generation. */
#include "control_scene.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "background.h"

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static int wait_at_gate(void *data)
{
    (void)data;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return 0;
}

static void do_nothing(void *context, const void *data, int error)
{
    (void)context;
    (void)data;
    (void)error;
}

static void free_nothing(void *data)
{
    (void)data;
}

/* A disk that takes its time: what is to be written waits until the gate opens. */
static void close_gate(struct scene *scene)
{
    pthread_mutex_lock(&gate);
    hb_background_finish(scene->control->background);
    hb_background_add(scene->control->background, &(struct hb_job){.name = "gate",
                                                                   .run = wait_at_gate,
                                                                   .done = do_nothing,
                                                                   .free = free_nothing});
}

/* Also after a failure, for control to end. */
static int open_gate_anyway(void **state)
{
    pthread_mutex_trylock(&gate);
    pthread_mutex_unlock(&gate);
    return clear_stage(state);
}

static void open_gate(struct scene *scene)
{
    pthread_mutex_unlock(&gate);
    hb_background_finish(scene->control->background);
}

static bool table_is_carried(struct scene *scene)
{
    struct hb_table_record table;

    assert_int_equal(scene->generation.tables.count, 1);
    assert_int_equal(
        pread(scene->generation_fd, &table, sizeof(table), (off_t)scene->generation.tables.offset),
        sizeof(table));
    assert_memory_equal(table.digest, scene->control->model->pools[0].digest, HB_DIGEST_SIZE);
    return table.offset != 0;
}

static void drain_two(struct scene *scene)
{
    int status;

    ask(scene, "POST", "/v1/backends/two/drain");
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    json_decref(hear(scene, &status));
    assert_int_equal(status, 200);
    assert_true(table_is_carried(scene));
}

/* Another generation with the same table: the next hop has another MAC address. */
static void move_hop(struct scene *scene, uint8_t last_byte)
{
    struct hb_model_pool *pool = hb_model_pool(scene->control->model, "web");

    for (uint32_t b = 0; b < pool->backends_count; b++) {
        pool->backends[b]->hop.gateway_mac[5] = last_byte;
        pool->backends[b]->rewrite.size = 0; /* made anew */
    }
    hb_control_publish(scene->control);
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    wait_until_serving(scene, scene->generation.number);
}

static void test_carried_until_written(void **state)
{
    struct scene *scene = *state;

    start_serving(scene);
    close_gate(scene);
    drain_two(scene);
    move_hop(scene, 0x11); /* the dataplane holds the table; the file is not there yet */
    assert_true(table_is_carried(scene));
    move_hop(scene, 0x12);
    assert_true(table_is_carried(scene));
    open_gate(scene);
    move_hop(scene, 0x13);
    assert_false(table_is_carried(scene));
}

/* The file cannot be written. */
static void test_carried_while_it_cannot_be_written(void **state)
{
    struct scene *scene = *state;
    char slots[128], aside[144];

    start_serving(scene);
    hb_background_finish(scene->control->background);
    snprintf(slots, sizeof(slots), "%s", scene->control->slots);
    snprintf(aside, sizeof(aside), "%s.aside", slots);
    assert_int_equal(rename(slots, aside), 0);
    assert_int_equal(close(creat(slots, 0600)), 0); /* no folder any more */
    drain_two(scene);
    hb_background_finish(scene->control->background);
    move_hop(scene, 0x11);
    assert_true(table_is_carried(scene));
    hb_background_finish(scene->control->background);
    assert_int_equal(unlink(slots), 0);
    assert_int_equal(rename(aside, slots), 0);
    move_hop(scene, 0x12); /* carried a last time, and written then */
    assert_true(table_is_carried(scene));
    hb_background_finish(scene->control->background);
    move_hop(scene, 0x13);
    assert_false(table_is_carried(scene));
}

int main(void)
{
#define SCENE(test) cmocka_unit_test_setup_teardown(test, set_stage, open_gate_anyway)
    const struct CMUnitTest tests[] = {
        SCENE(test_carried_until_written),
        SCENE(test_carried_while_it_cannot_be_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
