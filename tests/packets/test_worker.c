/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker that runs by itself: it follows swaps of the generation, lets old ones go, and stops. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
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

/* On any CPU: EAL has put this thread on one, and all would wait for each other there. */
static pthread_t start_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    cpu_set_t all;

    memset(&all, 0xff, sizeof(all));
    assert_int_equal(pthread_create(&thread, NULL, function, argument), 0);
    pthread_setaffinity_np(thread, sizeof(all), &all);
    return thread;
}

static pthread_t launch(struct rig *rig)
{
    return start_thread(run, rig->worker);
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

#define CHURN_PORTS  200
#define CHURN_ROUNDS 120

/* Swaps of a thread of its own, one a round of packets and in the middle of it. */
struct churn {
    struct rig *rig;
    void (*change)(struct rig *rig, uint32_t round); /* the next draft */
    atomic_uint round;                               /* of packets, from 1 on */
    atomic_bool over;
    pthread_t thread;
};

/* The old generation is overwritten as soon as nobody may read it any more. */
static void *swap(void *argument)
{
    struct churn *churn = argument;
    struct rig *rig = churn->rig;

    for (uint32_t round = 1; round <= CHURN_ROUNDS; round++) {
        struct generation_copy *old = rig->published;

        while (atomic_load(&churn->round) < round)
            sched_yield();
        churn->change(rig, round);
        publish(rig);
        rte_rcu_qsbr_synchronize(rig->head.qsbr, RTE_QSBR_THRID_INVALID);
        forget_generation(old);
    }
    atomic_store(&churn->over, true);
    return NULL;
}

static uint32_t send_round(struct churn *churn, uint8_t flags)
{
    uint32_t count = 100, round = atomic_fetch_add(&churn->round, 1);

    for (uint32_t i = 0; i < count; i++) {
        uint16_t port = (uint16_t)(1 + (round * count + i) % CHURN_PORTS);

        send_frame(churn->rig, &(struct frame[]){TCP4(.source_port = port, .flags = flags)}[0]);
    }
    return count;
}

static uint16_t read_backend(const struct frame *out)
{
    return (uint16_t)(out->bytes[IP4_DESTINATION + 3] - 10);
}

static uint64_t read_drops(const struct rig *rig)
{
    uint64_t drops = 0;

    for (unsigned reason = 0; reason < HB_DROPS_MAX; reason++)
        drops +=
            __atomic_load_n(&hb_counters_worker(rig->region, 0)->drops[reason], __ATOMIC_RELAXED);
    return drops;
}

/* Takes frames until `count` have arrived or were dropped since the test began; `see` has a look at
 * each. */
static void take_frames(struct rig *rig, uint32_t count, uint32_t *got,
                        void (*see)(const struct frame *out, void *notes), void *notes)
{
    time_t start = time(NULL);
    struct frame out;

    while (*got + read_drops(rig) < count && !late(start)) {
        if (!receive(rig, PORT, &out)) {
            sched_yield();
            continue;
        }
        got[0]++;
        see(&out, notes);
    }
    assert_int_equal(*got + read_drops(rig), count);
}

struct two_tables {
    uint16_t owner[2][CHURN_PORTS + 1]; /* by source port */
    uint32_t moved, stayed;             /* packets of slots that differ, and of those that don't */
};

static void is_one_of_two(const struct frame *out, void *notes)
{
    uint32_t port = out->bytes[34 + 20] << 8 | out->bytes[34 + 21];
    struct two_tables *tables = notes;
    uint16_t got = read_backend(out);

    assert_in_range(port, 1, CHURN_PORTS);
    assert_true(got == tables->owner[0][port] || got == tables->owner[1][port]);
    if (tables->owner[0][port] == tables->owner[1][port])
        tables->stayed++;
    else
        tables->moved++;
}

/* Backend 10 has slots in every other round. */
static void use_table(struct rig *rig, uint32_t round)
{
    share_table(rig, 0);
    for (uint32_t slot = 0; round % 2 == 1 && slot < RIG_SLOTS; slot++) {
        if (rig->pool[0].owner[slot] == 10)
            rig->pool[0].owner[slot] = (uint16_t)(1 + slot % 9);
    }
}

/* BL-69: the table is swapped in the middle of bursts, without a flow cache (resets make no entry).
 * Each packet goes where the old table says or where the new one says; none is lost, and slots that
 * are equal in both don't move. */
static void a_table_is_old_or_new(void **state)
{
    struct rig *rig = *state;
    struct two_tables tables = {0};
    uint32_t sent = 2 * CHURN_PORTS, got = sent;
    struct churn churn = {.rig = rig, .change = use_table};
    pthread_t thread;

    for (uint16_t id = 1; id <= 10; id++)
        add_backend(rig, id, 0, 4);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    for (uint32_t which = 0; which < 2; which++) {
        use_table(rig, which);
        publish(rig);
        for (uint16_t port = 1; port <= CHURN_PORTS; port++)
            tables.owner[which][port] = B(rig, TCP4(.source_port = port, .flags = RST));
    }
    thread = launch(rig);
    churn.thread = start_thread(swap, &churn);
    while (!atomic_load(&churn.over)) {
        sent += send_round(&churn, RST);
        take_frames(rig, sent, &got, is_one_of_two, &tables);
    }
    assert_int_equal(pthread_join(churn.thread, NULL), 0);
    stop(rig, thread);
    assert_int_equal(count_drops(rig), 0);
    assert_true(tables.moved > 0);
    assert_true(tables.stayed > tables.moved);
    assert_int_equal(hb_counters_worker(rig->region, 0)->flows, 0);
}

static void is_of_this_pool(const struct frame *out, void *notes)
{
    uint32_t *served = notes;

    assert_in_range(read_backend(out), 1, 2);
    served[read_backend(out)]++;
}

/* By turns each backend is deleted, so that all flows must leave it, and another has its id later;
 * the service goes for two rounds. */
static void delete_and_add(struct rig *rig, uint32_t round)
{
    uint16_t id = round % 6 <= 1 ? 1 : 2;

    switch (round % 6) {
    case 0:
    case 2:
        rig->backend[id] = (struct hb_backend){0};
        break;
    case 1:
    case 4:
        add_backend(rig, id, 0, 4);
        rig->backend[id].incarnation = 1 + round;
        break;
    case 3:
        rig->services = 0;
        break;
    default:
        add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    }
    share_table(rig, 0);
}

/* BL-89: under established flows. They are selected anew, packets of a VIP that is gone are counted
 * as such, and who still read what was deleted would fall. */
static void deleting_under_traffic(void **state)
{
    struct rig *rig = *state;
    uint32_t sent = 0, got = 0, served[3] = {0};
    const struct hb_worker_counters *counters = hb_counters_worker(rig->region, 0);
    struct churn churn = {.rig = rig, .change = delete_and_add};
    pthread_t thread;

    publish_one_backend(rig, 4);
    thread = launch(rig);
    churn.thread = start_thread(swap, &churn);
    while (!atomic_load(&churn.over)) {
        sent += send_round(&churn, ACK);
        take_frames(rig, sent, &got, is_of_this_pool, served);
    }
    assert_int_equal(pthread_join(churn.thread, NULL), 0);
    stop(rig, thread);
    assert_true(served[1] > 0 && served[2] > 0);
    assert_true(counters->flow_reselects > 0);
    assert_true(counters->drops[HB_DROP_NOT_VIP] > 0);
    assert_int_equal(count_drops(rig), counters->drops[HB_DROP_NOT_VIP]);
    assert_int_equal(got + count_drops(rig), sent);
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
        TEST(swaps_lose_nothing),          TEST(a_table_is_old_or_new),
        TEST(deleting_under_traffic),      TEST(an_idle_worker_follows),
        TEST(stopping_finishes_the_burst), TEST(peeking_at_a_flow),
        TEST(flow_caches_that_cannot_be),
    };
    int failed = rig_open();

    if (failed == 0)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return failed;
}
