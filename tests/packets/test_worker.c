/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker that runs by itself: it follows swaps of the generation, lets old ones go, and stops. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <rte_rcu_qsbr.h>

#include "rig.h"

#define DEADLINE_S 20

static void *run(void *worker)
{
    return (void *)(intptr_t)hb_worker_run(worker);
}

static pthread_t launch(struct rig *rig)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, run, rig->worker), 0);
    return thread;
}

static void stop(struct rig *rig, pthread_t thread)
{
    void *result = (void *)1;

    hb_worker_stop(rig->worker);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result);
}

static bool late(time_t start)
{
    return time(NULL) - start > DEADLINE_S;
}

/* Waits until the worker has sent `count` frames in all; takes them. */
static void await_frames(struct rig *rig, uint32_t count, uint32_t *got)
{
    time_t start = time(NULL);
    struct frame out;

    while (*got < count && !late(start)) {
        if (receive(rig, PORT, &out))
            got[0]++;
        else
            sched_yield();
    }
    assert_int_equal(*got, count);
}

static uint64_t read_generation(const struct rig *rig)
{
    return __atomic_load_n(&hb_counters_worker(rig->region, 0)->generation_number,
                           __ATOMIC_RELAXED);
}

/* 300 swaps under load. The old generation is overwritten as soon as the grace period is over: a
 * worker that still read it would send to nobody. */
static void swaps_lose_nothing(void **state)
{
    struct rig *rig = *state;
    uint32_t sent = 0, got = 0;
    pthread_t thread;

    publish_one_backend(rig, 4);
    thread = launch(rig);
    for (uint32_t swap = 0; swap < 300; swap++) {
        struct generation_copy *old = rig->published;

        for (uint16_t i = 0; i < 16; i++) {
            struct frame in = TCP4(.source_port = (uint16_t)(1 + 16 * swap + i), .flags = ACK);

            send_frame(rig, &in);
            sent++;
        }
        publish(rig);
        rte_rcu_qsbr_synchronize(rig->head.qsbr, RTE_QSBR_THRID_INVALID);
        forget_generation(old);
        await_frames(rig, sent, &got);
    }
    stop(rig, thread);
    assert_int_equal(count_drops(rig), 0);
    assert_int_equal(hb_counters_backends(rig->region, 0)[1].packets, sent);
    assert_int_equal(read_generation(rig), 301);
}

/* An idle worker is on a new generation without any packet, also when it sleeps. */
static void an_idle_worker_follows(void **state)
{
    struct rig *rig = *state;
    time_t start = time(NULL);
    pthread_t thread;

    rig->worker->config.idle_sleep_us = 100;
    publish_one_backend(rig, 4);
    thread = launch(rig);
    for (uint32_t swap = 0; swap < 20; swap++) {
        publish(rig);
        rte_rcu_qsbr_synchronize(rig->head.qsbr, RTE_QSBR_THRID_INVALID);
        while (read_generation(rig) != rig->number && !late(start))
            sched_yield();
        assert_int_equal(read_generation(rig), rig->number);
    }
    stop(rig, thread);
    /* It is gone from the list: nobody waits for it. */
    assert_int_equal(rte_rcu_qsbr_check(rig->head.qsbr, rte_rcu_qsbr_start(rig->head.qsbr), false),
                     1);
}

/* What is in the rings when it is told to stop is either not received or sent; rig_teardown counts.
 */
static void stopping_finishes_the_burst(void **state)
{
    struct rig *rig = *state;
    struct frame in = TCP4(.flags = ACK);
    uint32_t got = 0;
    pthread_t thread;

    publish_one_backend(rig, 4);
    thread = launch(rig);
    send_frame(rig, &in);
    await_frames(rig, 1, &got);
    for (uint32_t i = 0; i < 200; i++)
        send_frame(rig, &in);
    stop(rig, thread);
    while (hb_loop_turn(rig->worker, rig->worker->now_ms)) /* the rest */
        continue;
    await_frames(rig, 201, &got);
}

static void peeking_at_a_flow(void **state)
{
    struct rig *rig = *state;
    struct hb_flow_key flow = {
        .source = {203, 0, 113, 9},
        .destination = {192, 0, 2, 10},
        .source_port = htons(40000),
        .destination_port = htons(80),
        .protocol = HB_PROTOCOL_TCP,
        .family = HB_FAMILY_IPV4,
    };
    const struct hb_generation *generation;
    struct hb_flow_view view;
    uint64_t hash;

    publish_one_backend(rig, 4);
    generation = atomic_load(&rig->head.current)->node[0];
    hash = hb_flow_hash(&flow, &generation->hash_key);
    assert_false(hb_worker_peek_flow(rig->worker, &flow, hash, &view));
    assert_int_equal(B(rig, TCP4()), 1);
    rig->now_ms += 1234;
    turn(rig);
    assert_true(hb_worker_peek_flow(rig->worker, &flow, hash, &view));
    assert_int_equal(view.backend, 1);
    assert_int_equal(view.incarnation, 1);
    assert_int_equal(view.idle_ms, 1234);
    rig->now_ms += 3000;
    turn(rig);
    assert_false(hb_worker_peek_flow(rig->worker, &flow, hash, &view));
}

/* Errors name the worker and the remedy, and leave nothing behind. */
static void flow_caches_that_cannot_be(void **state)
{
    struct rig *rig = *state;
    struct hb_worker_config config = rig->worker->config;
    char error[256];

    config.flows_max = UINT64_C(1) << 27; /* 9 GB of the 256 MB there are */
    assert_null(hb_worker_create(&config, error, sizeof(error)));
    assert_non_null(strstr(error, "worker 0"));
    assert_non_null(strstr(error, "--flows"));
    config.flows_max = 0;
    assert_null(hb_worker_create(&config, error, sizeof(error)));
    assert_non_null(strstr(error, "--flows"));
    hb_worker_destroy(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(swaps_lose_nothing),          TEST(an_idle_worker_follows),
        TEST(stopping_finishes_the_burst), TEST(peeking_at_a_flow),
        TEST(flow_caches_that_cannot_be),
    };
    int failed = rig_open();

    if (failed == 0)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return failed;
}
