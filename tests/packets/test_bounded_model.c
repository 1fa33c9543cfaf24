/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bounded load against a slow model: thousands of random flows, generations and idle times.
 *
 * The model keeps a list of flows and nothing else. It counts by walking over the list, finds the
 * limit by dividing, and so shares neither sums nor arithmetic with what it is compared with. Each
 * packet must leave for the backend that the model says, and each gauge must equal its count.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

#define CLIENTS  4000
#define BACKENDS 12
#define IDLE_MS  60000
#define STEPS    256

struct flow {
    bool known;
    uint16_t backend;
    uint32_t incarnation;
    uint32_t pool;
    uint32_t last_ms;
};

struct model {
    struct rig *rig;
    struct flow flow[CLIENTS];
    uint32_t pool; /* that serves the VIP */
    uint64_t overflows;
    uint64_t packets;
    uint64_t state; /* of the random numbers */
};

static uint32_t draw(struct model *model, uint32_t below)
{
    model->state = model->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((model->state >> 33) % below);
}

static bool owns_a_slot(const struct model *model, uint16_t id)
{
    for (uint32_t slot = 0; slot < model->rig->pool[model->pool].slots; slot++) {
        if (model->rig->pool[model->pool].owner[slot] == id)
            return true;
    }
    return false;
}

static uint64_t flows_on(const struct model *model, uint16_t id)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < CLIENTS; i++)
        count += model->flow[i].known && model->flow[i].backend == id;
    return count;
}

/* What each backend has and may have, with one flow more in the pool than the list holds. */
struct ledger {
    uint64_t flows[BACKENDS + 1], limit[BACKENDS + 1];
    bool member[BACKENDS + 1];
};

static void settle(const struct model *model, struct ledger *ledger)
{
    const struct rig *rig = model->rig;
    uint64_t sum = 1, weights = 0;

    for (uint16_t id = 1; id <= BACKENDS; id++) {
        ledger->member[id] = owns_a_slot(model, id);
        ledger->flows[id] = flows_on(model, id);
        sum += ledger->member[id] ? ledger->flows[id] : 0;
        weights += ledger->member[id] ? rig->backend[id].weight : 0;
    }
    for (uint16_t id = 1; id <= BACKENDS && weights > 0; id++) {
        uint64_t part =
            (1024 + rig->pool[model->pool].bounded_load) * sum * rig->backend[id].weight;

        ledger->limit[id] = part / (1024 * weights) + (part % (1024 * weights) != 0);
    }
}

static uint16_t choose(struct model *model, uint32_t slot)
{
    const struct rig *rig = model->rig;
    uint32_t slots = rig->pool[model->pool].slots;
    uint16_t least = 0;
    struct ledger ledger;

    if (slots == 0)
        return 0;
    if (rig->pool[model->pool].bounded_load == 0)
        return rig->pool[model->pool].owner[slot];
    settle(model, &ledger);
    for (uint32_t step = 0; step < STEPS && step < slots; step++) {
        uint16_t id = rig->pool[model->pool].owner[(slot + step) % slots];

        if (ledger.flows[id] + 1 <= ledger.limit[id])
            return id;
    }
    for (uint16_t id = 1; id <= BACKENDS; id++) {
        if (ledger.member[id] &&
            (least == 0 || (double)ledger.flows[id] / rig->backend[id].weight <
                               (double)ledger.flows[least] / rig->backend[least].weight))
            least = id;
    }
    return least;
}

static bool serves(const struct model *model, const struct flow *flow)
{
    const struct hb_backend *backend = &model->rig->backend[flow->backend];

    return flow->known && backend->incarnation == flow->incarnation &&
           backend->pool == model->pool &&
           (backend->use == HB_BACKEND_ACTIVE || backend->use == HB_BACKEND_DRAINING);
}

static struct frame datagram(uint32_t client)
{
    struct frame frame = UDP4(.source_port = (uint16_t)(1024 + client));

    return fix4(poke16(frame, IP4_SOURCE + 2, (uint16_t)(client * 40503)));
}

static uint32_t slot_of(const struct model *model, const struct frame *frame)
{
    const struct hb_generation_set *set = atomic_load(&model->rig->head.current);
    struct hb_flow_key key = {.protocol = HB_PROTOCOL_UDP, .family = HB_FAMILY_IPV4};

    memcpy(key.source, frame->bytes + IP4_SOURCE, 4);
    memcpy(key.destination, frame->bytes + IP4_DESTINATION, 4);
    memcpy(&key.source_port, frame->bytes + L4_OF_4, 2);
    memcpy(&key.destination_port, frame->bytes + L4_OF_4 + 2, 2);
    return hb_slot_of(hb_flow_hash(&key, &set->node[0]->hash_key),
                      model->rig->pool[model->pool].slots);
}

static uint16_t owner_of(const struct model *model, const struct frame *frame)
{
    return model->rig->pool[model->pool].owner[slot_of(model, frame)];
}

static void send_one(struct model *model)
{
    uint32_t client = draw(model, CLIENTS);
    struct flow *flow = &model->flow[client];
    struct frame frame = datagram(client);
    uint16_t want = flow->backend, got;

    if (!serves(model, flow)) {
        bool was_known = flow->known;

        flow->known = false; /* its old entry counts no more when it is placed */
        want = choose(model, slot_of(model, &frame));
        flow->known = was_known || want != 0;
        if (want != 0) {
            model->overflows += want != owner_of(model, &frame);
            flow->backend = want;
            flow->incarnation = model->rig->backend[want].incarnation;
        }
    }
    got = backend_of(model->rig, &frame);
    if (got != want)
        fail_msg("packet %lu of client %u went to %u, not %u", model->packets, client, got, want);
    if (want != 0)
        flow->last_ms = model->rig->now_ms;
    model->packets++;
}

/* A generation in which anything may be otherwise: owners, weights, who drains, is down or has
 * another incarnation, the bound and the pool. */
static void change(struct model *model)
{
    static const uint32_t bounds[] = {1, 10, 51, 256, 256, 1024, HB_BOUNDED_LOAD_MAX, 0};
    static const uint16_t weights[] = {1, 1, 2, 3, 10, 1000, 65535};
    struct rig *rig = model->rig;
    uint32_t random = draw(model, 1u << 30), members = 0, pool = draw(model, RIG_POOLS);
    uint32_t mixed = draw(model, 4);
    uint16_t member[BACKENDS];

    rig->pool[model->pool].slots = 0;
    model->pool = pool;
    rig->service[0].pool = pool;
    for (uint16_t id = 1; id <= BACKENDS; id++) {
        struct hb_backend *backend = &rig->backend[id];

        backend->pool = draw(model, 20) == 0 ? (pool + 1) % RIG_POOLS : pool;
        if (draw(model, 4) == 0)
            backend->weight = weights[draw(model, 7)];
        backend->use = (uint8_t)(1 + (draw(model, 3) == 0 ? 1 + draw(model, 2) : 0));
        backend->incarnation += draw(model, 10) == 0;
        if (backend->use == HB_BACKEND_ACTIVE && backend->pool == pool)
            member[members++] = id;
    }
    rig->pool[pool].bounded_load = bounds[draw(model, 8)];
    rig->pool[pool].slots = members == 0 ? 0 : draw(model, 2) == 0 ? RIG_SLOTS : 13;
    for (uint32_t slot = 0; slot < rig->pool[pool].slots; slot++) {
        random = random * 1664525 + 1013904223;
        /* Uneven, and in runs: a walk may end before it meets everybody. */
        rig->pool[pool].owner[slot] =
            member[(random >> 24) % 4 < mixed ? (random >> 8) % members : slot / 300 % members];
    }
    publish(rig);
}

static void pass_time(struct model *model)
{
    uint32_t ms = 1 + draw(model, IDLE_MS / 2);

    advance(model->rig, ms);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        if (model->rig->now_ms - model->flow[i].last_ms >= IDLE_MS)
            model->flow[i].known = false;
    }
}

static void compare(const struct model *model)
{
    for (uint16_t id = 1; id <= BACKENDS; id++)
        assert_int_equal(live_flows(model->rig, id), flows_on(model, id));
}

static int many_entries(void **state)
{
    return rig_setup_with(state, 16384);
}

static void every_packet_goes_where_the_model_says(void **state)
{
    static struct model model;
    const struct hb_worker_counters *counters;
    struct rig *rig = *state;

    model = (struct model){.rig = rig, .state = 1};
    for (uint16_t id = 1; id <= BACKENDS; id++)
        add_backend(rig, id, 0, 4);
    add_service(rig, 4, HB_PROTOCOL_UDP, 443, 0);
    for (uint32_t round = 0; round < 300; round++) {
        change(&model);
        for (uint32_t i = draw(&model, 400); i > 0; i--)
            send_one(&model);
        compare(&model);
        pass_time(&model);
        compare(&model);
    }
    counters = hb_counters_worker(rig->region, 0);
    printf("%u packets, %u flows set up, %u selected anew, %u passed on\n", (unsigned)model.packets,
           (unsigned)counters->flow_inserts, (unsigned)counters->flow_reselects,
           (unsigned)counters->flow_overflows);
    assert_int_equal(counters->flow_overflows, model.overflows);
    assert_true(counters->flow_overflows > 1000);
    assert_true(counters->flow_reselects > 1000);
    assert_int_equal(counters->flow_insert_failures + counters->flow_evictions, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_packet_goes_where_the_model_says, many_entries,
                                        rig_teardown),
    };
    int failed = rig_open();

    if (failed == 0)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return failed;
}
