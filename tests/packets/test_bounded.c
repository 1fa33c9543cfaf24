/* SPDX-License-Identifier: BSD-3-Clause */
/* Bounded load through the pipeline: no backend above its limit, and what happens to flows that are
 * passed on. test_bounded_model.c compares whole histories with a slow model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

#define QUARTER 256 /* bounds in 1/1024 */
#define TENTH   102

static const struct hb_worker_counters *counters(const struct rig *rig)
{
    return hb_counters_worker(rig->region, 0);
}

static const struct hb_generation *generation(const struct rig *rig)
{
    return rig->published != NULL ? atomic_load(&rig->head.current)->node[0] : NULL;
}

/* Slots in the proportion of the weights, in no order. Not shared by who is not active. */
static void share_by_weight(struct rig *rig, uint32_t pool, uint32_t slots)
{
    uint32_t random = 12345, total = 0;

    for (uint16_t id = 1; id < RIG_BACKENDS; id++) {
        if (rig->backend[id].use == HB_BACKEND_ACTIVE && rig->backend[id].pool == pool)
            total += rig->backend[id].weight;
    }
    rig->pool[pool].slots = slots;
    for (uint32_t slot = 0; slot < slots; slot++) {
        uint32_t at = (uint32_t)((uint64_t)slot * total / slots);
        uint16_t id = 0;

        do {
            id++;
            if (rig->backend[id].use != HB_BACKEND_ACTIVE || rig->backend[id].pool != pool)
                continue;
            if (at < rig->backend[id].weight)
                break;
            at -= rig->backend[id].weight;
        } while (id < RIG_BACKENDS - 1);
        rig->pool[pool].owner[slot] = id;
    }
    for (uint32_t slot = slots - 1; slot > 0; slot--) {
        uint32_t other = (random = random * 1664525 + 1013904223) % (slot + 1);
        uint16_t id = rig->pool[pool].owner[slot];

        rig->pool[pool].owner[slot] = rig->pool[pool].owner[other];
        rig->pool[pool].owner[other] = id;
    }
}

/* Pool 0 with backends 1 to `count` and a bound, TCP 80 and UDP 443 of the IPv4 VIP. */
static void lay_out(struct rig *rig, uint16_t count, uint32_t bounded_load, bool mixed)
{
    for (uint16_t id = 1; id <= count; id++) {
        add_backend(rig, id, 0, 4);
        rig->backend[id].weight = mixed ? (uint16_t)(1 + id * 7 % 10 * 3) : 1;
    }
    rig->pool[0].bounded_load = bounded_load;
    share_by_weight(rig, 0, RIG_SLOTS);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    add_service(rig, 4, HB_PROTOCOL_UDP, 443, 0);
    publish(rig);
}

static struct rig *start(void **state, uint16_t count, uint32_t bounded_load)
{
    lay_out(*state, count, bounded_load, false);
    return *state;
}

/* All slots to backend 1, but for one each of the others behind the first `gap`. */
static void crowd(struct rig *rig, uint16_t count, uint32_t gap)
{
    for (uint32_t slot = 0; slot < RIG_SLOTS; slot++)
        rig->pool[0].owner[slot] = 1;
    for (uint16_t id = 2; id <= count; id++)
        rig->pool[0].owner[gap + id] = id;
    rig->pool[0].slots = RIG_SLOTS;
    publish(rig);
}

/* The first datagram of a client by number, and its hash. */
static struct frame datagram(uint32_t client)
{
    struct frame frame = UDP4(.source_port = (uint16_t)(1024 + client % 50000));

    frame = poke16(frame, IP4_SOURCE, 0x0b00);
    return fix4(poke16(frame, IP4_SOURCE + 2, (uint16_t)(client / 50000)));
}

static uint32_t slot_of(const struct rig *rig, const struct frame *frame)
{
    struct hb_flow_key key = {.protocol = frame->bytes[IP4_PROTOCOL], .family = HB_FAMILY_IPV4};

    memcpy(key.source, frame->bytes + IP4_SOURCE, 4);
    memcpy(key.destination, frame->bytes + IP4_DESTINATION, 4);
    memcpy(&key.source_port, frame->bytes + L4_OF_4, 2);
    memcpy(&key.destination_port, frame->bytes + L4_OF_4 + 2, 2);
    return hb_slot_of(hb_flow_hash(&key, &generation(rig)->hash_key), rig->pool[0].slots);
}

static bool is_member(const struct rig *rig, uint16_t id)
{
    for (uint32_t slot = 0; slot < rig->pool[0].slots; slot++) {
        if (rig->pool[0].owner[slot] == id)
            return true;
    }
    return false;
}

/* The sum that the worker keeps is that of the gauges. */
static void check_sum(const struct rig *rig)
{
    uint64_t sum = 0;

    for (uint16_t id = 1; id < RIG_BACKENDS; id++)
        sum += is_member(rig, id) ? live_flows(rig, id) : 0;
    assert_true(hb_loads_are_of(rig->worker->loads, generation(rig)));
    assert_int_equal(rig->worker->loads->flows[1], sum);
}

/* On `workers` workers together no member is above its bound by more than one flow each. */
static void check_bound(struct rig *const rigs[], uint32_t workers)
{
    const struct hb_pool_bound *bound = &generation(rigs[0])->bounds[0];
    uint64_t one = HB_BOUNDED_LOAD_ONE, sum = 0, total[RIG_BACKENDS] = {0};

    for (uint32_t w = 0; w < workers; w++) {
        for (uint32_t i = 0; i < bound->members; i++) {
            total[bound->member[i]] += live_flows(rigs[w], bound->member[i]);
            sum += live_flows(rigs[w], bound->member[i]);
        }
    }
    for (uint32_t i = 0; i < bound->members; i++) {
        uint64_t weight = rigs[0]->backend[bound->member[i]].weight;
        uint64_t quota = (one + rigs[0]->pool[0].bounded_load) * sum * weight;

        /* One worker: ceil(x) < x + 1, so "less" is the very limit. */
        if (total[bound->member[i]] * one * bound->weights >=
            quota + workers * one * bound->weights)
            fail_msg("backend %u of weight %u has %u flows of %u", bound->member[i],
                     (unsigned)weight, (unsigned)total[bound->member[i]], (unsigned)sum);
    }
}

/* --- the bound --- */

enum load { EVEN, ZIPF, ONE_SLOT };
static const char *const load_names[] = {"even", "zipf-like", "one slot"};

/* The next new flow of a load: `*client` moves on. */
static struct frame next_flow(const struct rig *rig, enum load load, uint32_t *client)
{
    struct frame frame;

    do
        frame = datagram((*client)++);
    while (load == ONE_SLOT && slot_of(rig, &frame) != 77);
    return frame;
}

/* Zipf-like: backend n owns as many slots as 1 / n says, for equal weights, as if hot sources fell
 * on it. Under a bound of 0.25 at most 73.8 % of the flows can stay, under 0.05 68.9 %. */
static void heat(struct rig *rig)
{
    for (uint32_t slot = 0; slot < RIG_SLOTS; slot++) {
        uint32_t at = slot * 769 % RIG_SLOTS * 2929 / RIG_SLOTS; /* sum of 1000 / id */
        uint16_t id = 1;

        while (id < 10 && at >= 1000u / id)
            at -= 1000u / id++;
        rig->pool[0].owner[slot] = id;
    }
    publish(rig);
}

/* How many times its part the fullest backend has, and had by the table alone. */
static double fullest(struct rig *const rigs[], uint32_t count, const uint32_t by_table[])
{
    const struct rig *rig = rigs[0];
    double most = 0;

    for (uint16_t id = 1; id <= 10; id++) {
        uint64_t flows =
            by_table != NULL ? by_table[id] : live_flows(rig, id) + live_flows(rigs[1], id);
        double part =
            (double)count * rig->backend[id].weight / (double)generation(rig)->bounds[0].weights;

        most = (double)flows / part > most ? (double)flows / part : most;
    }
    return most;
}

/* Two workers, 1,500 flows each, checked after each new one. */
static void bound_one_load(enum load load, uint32_t bounded_load, bool mixed)
{
    void *states[2];
    struct rig *rigs[2];
    uint32_t by_table[11] = {0};
    uint32_t client = 0, own = 0, count = load == ONE_SLOT ? 600 : 3000;

    for (uint32_t w = 0; w < 2; w++) {
        assert_int_equal(rig_setup_with(&states[w], 16384), 0);
        rigs[w] = states[w];
        lay_out(rigs[w], 10, bounded_load, mixed);
        if (load == ZIPF)
            heat(rigs[w]);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct rig *rig = rigs[i % 2];
        struct frame frame = next_flow(rig, load, &client);
        uint64_t before = counters(rig)->flow_overflows;
        uint16_t got = backend_of(rig, &frame);
        uint16_t owner = rig->pool[0].owner[slot_of(rig, &frame)];
        bool stayed = got == owner;

        by_table[owner]++;
        assert_int_equal(counters(rig)->flow_overflows - before, !stayed);
        own += stayed;
        check_bound(&rig, 1);
        check_bound(rigs, 2);
        check_sum(rig);
    }
    printf("%-9s bound %3u/1024, %s weights, %u flows: fullest %.2f of its part, by the table "
           "%.2f; %.1f %% on their own backend\n",
           load_names[load], bounded_load, mixed ? "mixed" : "equal", count,
           fullest(rigs, count, NULL), fullest(rigs, count, by_table), 100.0 * own / count);
    if (load == EVEN)
        assert_true(own > count * 85 / 100);
    for (uint32_t w = 0; w < 2; w++)
        rig_teardown(&states[w]);
}

static void no_backend_exceeds_its_bound(void **state)
{
    static const uint32_t bounds[] = {256, 51};

    (void)state;
    for (enum load load = EVEN; load <= ONE_SLOT; load++) {
        for (uint32_t i = 0; i < 4; i++)
            bound_one_load(load, bounds[i % 2], i >= 2);
    }
}

/* --- flows that were passed on --- */

/* The next packets find the backend by the entry, whatever they are, up to the end. */
static void a_flow_that_was_passed_on_stays_there(void **state)
{
    struct rig *rig = start(state, 10, QUARTER);
    uint16_t got[40], different = 0;

    crowd(rig, 10, 0);
    for (uint16_t i = 0; i < 40; i++)
        got[i] = B(rig, TCP4(.source_port = 1000 + i));
    assert_true(counters(rig)->flow_overflows > 20);
    for (uint16_t i = 0; i < 40; i++) {
        different += got[i] != 1;
        assert_int_equal(B(rig, TCP4(.source_port = 1000 + i)), got[i]);
        assert_int_equal(B(rig, TCP4(.source_port = 1000 + i, .flags = ACK)), got[i]);
        assert_int_equal(B(rig, TCP4(.source_port = 1000 + i, .flags = FIN | ACK)), got[i]);
        assert_int_equal(B(rig, TCP4(.source_port = 1000 + i, .flags = RST)), got[i]);
    }
    assert_int_equal(counters(rig)->flow_overflows, different);
    assert_int_equal(counters(rig)->flow_inserts, 40);
    check_sum(rig);
    /* A new connection on the ports of one that has ended is placed anew, its old entry not
     * counted. */
    for (uint16_t i = 0; i < 40; i++) {
        B(rig, TCP4(.source_port = 1000 + i));
        check_bound(&rig, 1);
        check_sum(rig);
    }
    assert_int_equal(counters(rig)->flow_inserts, 40);
    assert_int_equal(hb_counters_services(rig->region, 0)[0].new_flows, 80);
}

/* All packets of a burst that a new flow makes at once. */
static void a_burst_of_one_flow_goes_one_way(void **state)
{
    struct rig *rig = start(state, 10, QUARTER);
    struct frame out;

    crowd(rig, 10, 0);
    for (uint32_t client = 0; client < 200; client++) {
        struct frame frame = datagram(client);
        uint8_t first = 0;

        for (uint32_t i = 0; i < 3; i++)
            send_frame(rig, &frame);
        turn(rig);
        for (uint32_t i = 0; i < 3; i++) {
            assert_true(receive(rig, PORT, &out));
            assert_true(i == 0 || out.bytes[IP4_DESTINATION + 3] == first);
            first = out.bytes[IP4_DESTINATION + 3];
        }
        check_bound(&rig, 1);
    }
    assert_int_equal(counters(rig)->flow_inserts, 200);
    assert_true(counters(rig)->flow_overflows < 200);
}

/* An ACK without an entry is of a connection that was set up before: on the owner most likely. What
 * makes no entry goes to the owner as well. Both while that is far above its limit. */
static void what_is_not_new_is_not_passed_on(void **state)
{
    struct rig *rig = start(state, 10, QUARTER);

    crowd(rig, 10, 0);
    for (uint16_t i = 0; i < 100; i++)
        assert_int_equal(B(rig, TCP4(.source_port = 1 + i, .flags = ACK)), 1);
    assert_int_equal(live_flows(rig, 1), 100);
    assert_int_equal(B(rig, TCP4(.source_port = 5000, .flags = RST)), 1);
    assert_int_equal(B(rig, TCP4(.source_port = 5000, .flags = FIN | ACK)), 1);
    assert_int_equal(counters(rig)->flow_overflows, 0);
    assert_int_not_equal(B(rig, TCP4(.source_port = 5000)), 1);
    assert_int_equal(counters(rig)->flow_overflows, 1);
    check_sum(rig);
}

static int eight_entries(void **state)
{
    return rig_setup_with(state, 8);
}

/* Without an entry the second packet of a flow could not follow the first one elsewhere. */
static void without_an_entry_the_owner_takes_it(void **state)
{
    struct rig *rig = start(state, 10, QUARTER);

    crowd(rig, 10, 0);
    for (uint16_t twice = 0; twice < 2; twice++) {
        for (uint16_t i = 0; i < 8; i++)
            B(rig, TCP4(.source_port = 1 + i, .flags = ACK));
    }
    assert_int_equal(live_flows(rig, 1), 8); /* established: nobody makes way */
    for (uint16_t i = 0; i < 20; i++) {
        assert_int_equal(B(rig, TCP4(.source_port = 1000 + i)), 1);
        assert_int_equal(B(rig, UDP4(.source_port = 1000 + i)), 1);
    }
    assert_int_equal(counters(rig)->flow_insert_failures, 40);
    assert_int_equal(counters(rig)->flow_overflows, 0);
    assert_int_equal(live_flows(rig, 1), 8);
}

/* A new flow in the place of one on probation: that one counts no more when the limit is made. */
static void evictions_are_counted_before_the_limit(void **state)
{
    struct rig *rig = start(state, 3, TENTH);

    for (uint32_t client = 0; client < 500; client++) {
        uint16_t got = B(rig, datagram(client));
        uint64_t sum = live_flows(rig, 1) + live_flows(rig, 2) + live_flows(rig, 3);
        uint64_t limit = ((HB_BOUNDED_LOAD_ONE + TENTH) * sum + 3071) / 3072;

        assert_true(live_flows(rig, got) <= limit);
        check_sum(rig);
    }
    assert_true(counters(rig)->flow_evictions > 100);
}

/* Slots of full backends as far as a worker looks: the least loaded for its weight takes it. */
static void when_all_in_sight_are_full_the_least_loaded_takes_it(void **state)
{
    struct rig *rig = start(state, 4, QUARTER);
    uint32_t client = 0;

    rig->backend[3].weight = 5;
    rig->backend[4].weight = 5;
    crowd(rig, 4, 900);
    for (uint32_t i = 0; i < 240; i++) {
        uint64_t flows[5];
        uint16_t least = 1, got;
        struct frame frame;

        do
            frame = datagram(client++);
        while (slot_of(rig, &frame) >= 600);
        for (uint16_t id = 1; id <= 4; id++) {
            flows[id] = live_flows(rig, id);
            if (flows[id] * rig->backend[least].weight < flows[least] * rig->backend[id].weight)
                least = id;
        }
        got = backend_of(rig, &frame);
        assert_true(got == 1 || got == least);
        check_bound(&rig, 1);
    }
    assert_in_range(live_flows(rig, 1), 24, 26); /* 1.25 * 240 / 12 */
    assert_in_range(live_flows(rig, 2), 17, 20);
    assert_in_range(live_flows(rig, 3), 95, 101);
}

/* --- changes --- */

/* Whoever drains or is gone is no member: neither counted nor a place to go. */
static void a_backend_that_drains_or_leaves_counts_no_more(void **state)
{
    struct rig *rig = start(state, 10, QUARTER);
    uint32_t client = 0;
    uint64_t old;

    for (uint32_t i = 0; i < 300; i++)
        B(rig, datagram(client++));
    old = live_flows(rig, 3);
    assert_true(old > 0);
    rig->backend[3].use = HB_BACKEND_DRAINING;
    share_by_weight(rig, 0, RIG_SLOTS);
    publish(rig);
    for (uint32_t i = 0; i < 300; i++) {
        assert_int_not_equal(B(rig, datagram(client++)), 3);
        check_bound(&rig, 1);
        check_sum(rig);
    }
    assert_int_equal(live_flows(rig, 3), old);
    for (uint32_t i = 0, back = 0; i < 300; i++) /* all known flows go on */
        assert_true((back += B(rig, datagram(i)) == 3) <= old);
    rig->backend[4].use = HB_BACKEND_DOWN;
    rig->backend[5] = (struct hb_backend){0};
    share_by_weight(rig, 0, RIG_SLOTS);
    publish(rig);
    for (uint32_t i = 0; i < 600; i++) { /* flows of 4 and 5 are selected anew, within the bound */
        uint64_t reselects = counters(rig)->flow_reselects;
        uint16_t got = B(rig, datagram(i));

        assert_true(got != 0 && got != 4 && got != 5);
        if (counters(rig)->flow_reselects != reselects) {
            uint64_t sum = rig->worker->loads->flows[1];

            assert_true(live_flows(rig, got) * 7 * 1024 < 1280 * sum + 7 * 1024);
            check_sum(rig);
        }
    }
    assert_int_equal(live_flows(rig, 4) + live_flows(rig, 5), 0);
    assert_true(counters(rig)->flow_reselects > 50);
}

/* When flows end their backend has room again, and an idle pool is as it was at first. */
static void expiry_brings_counts_back(void **state)
{
    struct rig *rig = start(state, 10, TENTH);
    uint16_t first[300];

    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 300; i++) {
            uint16_t got = B(rig, datagram(i));

            assert_true(round == 0 || got == first[i]);
            first[i] = got;
            check_bound(&rig, 1);
        }
        assert_int_equal(rig->worker->loads->flows[1], 300);
        advance(rig, 60000);
        assert_int_equal(counters(rig)->flows, 0);
        assert_int_equal(rig->worker->loads->flows[1], 0);
    }
}

/* A pool without a bound, alone and beside one that has one. */
static void a_pool_without_a_bound_is_as_before(void **state)
{
    struct rig *rig = start(state, 10, 0);

    for (uint32_t client = 0; client < 200; client++) {
        struct frame frame = datagram(client);

        assert_int_equal(backend_of(rig, &frame), rig->pool[0].owner[slot_of(rig, &frame)]);
    }
    assert_null(rig->worker->bounded);
    for (uint16_t id = 11; id <= 14; id++)
        add_backend(rig, id, 1, 4);
    share_table(rig, 1);
    rig->pool[1].bounded_load = QUARTER;
    add_service(rig, 4, HB_PROTOCOL_TCP, 81, 1);
    publish(rig);
    for (uint32_t client = 0; client < 200; client++) {
        struct frame frame = datagram(200 + client);

        assert_int_equal(backend_of(rig, &frame), rig->pool[0].owner[slot_of(rig, &frame)]);
        assert_in_range(B(rig, TCP4(.source_port = (uint16_t)(1 + client), .destination_port = 81)),
                        11, 14);
    }
    assert_int_equal(rig->worker->loads->flows[2], 200);
    assert_true(counters(rig)->flow_overflows > 0);
}

/* Bounds come and go and pools change places: each time the sums are those of the gauges. */
static void pools_change_places(void **state)
{
    struct rig *rig = start(state, 10, QUARTER);
    uint32_t client = 0;

    for (uint32_t round = 0; round < 12; round++) {
        for (uint32_t i = 0; i < 40; i++)
            B(rig, datagram(client++));
        rig->pool[0].bounded_load = round % 3 == 1 ? 0 : QUARTER;
        for (uint16_t id = 1; id <= 10; id++)
            rig->backend[id].pool = round % 2;
        rig->pool[1] = rig->pool[0];
        rig->service[0].pool = rig->service[1].pool = round % 2;
        share_by_weight(rig, round % 2, RIG_SLOTS);
        rig->pool[1 - round % 2].slots = 0;
        publish(rig);
        if (rig->pool[0].bounded_load == 0)
            continue;
        B(rig, datagram(client++));
        assert_int_equal(rig->worker->loads->flows[1 + round % 2], counters(rig)->flows);
        assert_int_equal(rig->worker->loads->flows[2 - round % 2], 0);
        rig->pool[round % 2].bounded_load = QUARTER;
    }
}

/* Flows that the former holder of an id left count until they move or end (bounded_load.h). */
static void flows_of_a_former_holder_count_until_they_move(void **state)
{
    struct rig *rig = start(state, 2, QUARTER);

    crowd(rig, 2, 0);
    for (uint16_t i = 0; i < 50; i++)
        B(rig, TCP4(.source_port = 1 + i, .flags = ACK));
    rig->backend[1].incarnation = 2;
    publish(rig);
    assert_int_equal(B(rig, TCP4(.source_port = 1000)), 2);
    for (uint16_t i = 0; i < 50; i++) {
        B(rig, TCP4(.source_port = 1 + i, .flags = ACK));
        check_sum(rig);
    }
    assert_int_equal(counters(rig)->flow_reselects, 50);
    assert_int_equal(rig->worker->loads->flows[1], 51);
    check_bound(&rig, 1);
    advance(rig, 3600000);
    assert_int_equal(rig->worker->loads->flows[1], 0);
}

int main(void)
{
#define TEST(name)          cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
#define TEST_OF_EIGHT(name) cmocka_unit_test_setup_teardown(name, eight_entries, rig_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_backend_exceeds_its_bound),
        TEST(a_flow_that_was_passed_on_stays_there),
        TEST(a_burst_of_one_flow_goes_one_way),
        TEST(what_is_not_new_is_not_passed_on),
        TEST_OF_EIGHT(without_an_entry_the_owner_takes_it),
        TEST_OF_EIGHT(evictions_are_counted_before_the_limit),
        TEST(when_all_in_sight_are_full_the_least_loaded_takes_it),
        TEST(a_backend_that_drains_or_leaves_counts_no_more),
        TEST(expiry_brings_counts_back),
        TEST(a_pool_without_a_bound_is_as_before),
        TEST(pools_change_places),
        TEST(flows_of_a_former_holder_count_until_they_move),
    };
    int failed = rig_open();

    if (failed == 0)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return failed;
}
