/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two owners a slot: by hand, then against a slow reference that remembers every flow. Histories
 * are made by control's own slot_history.c and settle by slot_uses.c, so what is proved here is the
 * three together: no flow that was set up on a settled slot moves while its backend lives, whatever
 * is drained, added, removed or taken back, with and without the flow cache; and those set up on an
 * unsettled slot only when the cache is emptied.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"
#include "slot_history.h"
#include "slot_uses.h"

/* Backends 1 to `count` of pool 0; TCP 80 and UDP 443 of the IPv4 VIP, TCP 80 of the IPv6 one. */
static struct rig *start(void **state, uint16_t count, enum hb_tracking tracking)
{
    struct rig *rig = *state;

    for (uint16_t id = 1; id <= count; id++)
        add_backend(rig, id, 0, 4);
    share_table(rig, 0);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    add_service(rig, 4, HB_PROTOCOL_UDP, 443, 0);
    add_service(rig, 6, HB_PROTOCOL_TCP, 80, 0);
    for (uint32_t i = 0; i < rig->services; i++)
        if (rig->service[i].protocol == HB_PROTOCOL_TCP || tracking == HB_TRACKING_OFF)
            rig->service[i].tracking = tracking;
    publish(rig);
    return rig;
}

/* All slots to `owner`, unsettled with `previous`, or settled (UINT16_MAX). */
static void table_says(struct rig *rig, uint16_t owner, uint16_t previous)
{
    memset(rig->pool[0].unsettled, 0, sizeof(rig->pool[0].unsettled));
    memset(rig->pool[0].previous, 0, sizeof(rig->pool[0].previous));
    for (uint32_t slot = 0; slot < RIG_SLOTS; slot++) {
        rig->pool[0].owner[slot] = owner;
        if (previous != UINT16_MAX)
            unsettle(rig, 0, slot, previous);
    }
    publish(rig);
}
#define SETTLED UINT16_MAX

static uint32_t noted(const struct rig *rig)
{
    uint32_t count = 0;

    for (uint32_t slot = 0; slot < RIG_SLOTS; slot++)
        count += rig->used[0][slot] != 0;
    return count;
}

static void forget_notes(struct rig *rig)
{
    memset(rig->used[0], 0, RIG_SLOTS * sizeof(uint32_t));
}

static uint64_t flows(const struct rig *rig)
{
    return hb_counters_worker(rig->region, 0)->flows;
}

static void empty_cache(struct rig *rig)
{
    hb_worker_flush(rig->worker);
    turn(rig);
    assert_true(hb_worker_is_flushed(rig->worker));
    assert_int_equal(flows(rig), 0);
}

/* What goes where without an entry, by what it is. */
static void without_an_entry(void **state, enum hb_tracking tracking)
{
    struct rig *rig = start(state, 3, tracking);

    table_says(rig, 2, 1);
    assert_int_equal(B(rig, TCP4(.source_port = 1, .flags = SYN)), 2);
    assert_int_equal(B(rig, UDP4(.source_port = 1)), 2);
    assert_int_equal(noted(rig), 0);
    assert_int_equal(B(rig, TCP4(.source_port = 2, .flags = ACK)), 1);
    assert_int_equal(B(rig, TCP4(.source_port = 3, .flags = FIN | ACK)), 1);
    assert_int_equal(B(rig, TCP4(.source_port = 4, .flags = RST)), 1);
    assert_int_equal(B(rig, TCP6(.source_port = 5, .flags = ACK)), 1);
    assert_int_equal(B(rig, TCP6(.source_port = 6, .flags = SYN)), 2);
    assert_in_range(noted(rig), 3, 4); /* two may share a slot */
    assert_int_equal(flows(rig), 5);   /* an ACK makes an entry; FIN and RST make none */
    assert_int_equal(live_flows(rig, 1), 2);
    /* Drain progress counts them, and the entry goes on when the slot is settled by mistake. */
    assert_int_equal(B(rig, TCP4(.source_port = 2, .flags = ACK)), 1);
    assert_int_equal(live_flows(rig, 1), 2);
}

static void without_an_entry_all(void **state)
{
    without_an_entry(state, HB_TRACKING_ALL);
}

static void without_an_entry_changed(void **state)
{
    without_an_entry(state, HB_TRACKING_CHANGED);
}

/* The previous owner drains, is down, is gone; the same id is another backend. */
static void a_previous_owner_that_dies(void **state)
{
    struct rig *rig = start(state, 3, HB_TRACKING_CHANGED);

    rig->backend[1].use = HB_BACKEND_DRAINING;
    table_says(rig, 2, 1);
    assert_int_equal(B(rig, TCP4(.source_port = 1, .flags = ACK)), 1);
    assert_int_equal(B(rig, TCP4(.source_port = 2, .flags = ACK)), 1);
    rig->backend[1].use = HB_BACKEND_DOWN;
    table_says(rig, 2, 1);
    forget_notes(rig);
    assert_int_equal(B(rig, TCP4(.source_port = 2, .flags = ACK)), 2); /* has an entry */
    assert_int_equal(B(rig, TCP4(.source_port = 3, .flags = ACK)), 2); /* has none */
    assert_int_equal(noted(rig), 0);
    /* Back again: what moved away meanwhile stays away, the others were never asked. */
    rig->backend[1].use = HB_BACKEND_ACTIVE;
    table_says(rig, 1, 1);
    assert_int_equal(B(rig, TCP4(.source_port = 2, .flags = ACK)), 2);
    assert_int_equal(B(rig, TCP4(.source_port = 4, .flags = ACK)), 1);
    assert_int_equal(noted(rig), 1);
    table_says(rig, 2, HB_BACKEND_NONE);
    assert_int_equal(B(rig, TCP4(.source_port = 5, .flags = ACK)), 2);
}

/* A flow made on an unsettled slot has an entry; when the backend in it dies, the owner gets it and
 * not the previous one, who knows as little of it. */
static void an_entry_decides(void **state)
{
    struct rig *rig = start(state, 3, HB_TRACKING_CHANGED);

    table_says(rig, 2, 1);
    B(rig, TCP4(.source_port = 1, .flags = SYN));
    assert_int_equal(B(rig, TCP4(.source_port = 1, .flags = ACK)), 2);
    table_says(rig, 1, 1); /* undrained */
    assert_int_equal(noted(rig), 0);
    assert_int_equal(B(rig, TCP4(.source_port = 1, .flags = ACK)), 2);
    assert_int_equal(noted(rig), 1);
    table_says(rig, 3, 1);
    assert_int_equal(B(rig, TCP4(.source_port = 1, .flags = ACK)), 2);
    rig->backend[2].use = HB_BACKEND_DOWN;
    table_says(rig, 3, 1);
    assert_int_equal(B(rig, TCP4(.source_port = 1, .flags = ACK)), 3);
    assert_int_equal(live_flows(rig, 3), 1);
    /* A new connection on the ports of one that ended is a new flow. */
    B(rig, TCP4(.source_port = 1, .flags = FIN | ACK));
    table_says(rig, 1, 3);
    assert_int_equal(B(rig, TCP4(.source_port = 1, .flags = SYN)), 1);
}

/* A settled balancer holds no TCP entries, whatever comes; UDP as ever. */
static void changed_and_settled_tracks_no_tcp(void **state)
{
    struct rig *rig = start(state, 5, HB_TRACKING_CHANGED);
    uint16_t first[200];

    for (uint16_t i = 0; i < 200; i++) {
        first[i] = B(rig, TCP4(.source_port = 1000 + i, .flags = SYN));
        assert_int_equal(B(rig, TCP4(.source_port = 1000 + i, .flags = ACK)), first[i]);
        assert_int_equal(B(rig, TCP4(.source_port = 1000 + i, .flags = FIN | ACK)), first[i]);
        B(rig, TCP6(.source_port = 1000 + i, .flags = ACK));
    }
    assert_int_equal(flows(rig), 0);
    assert_int_equal(hb_counters_worker(rig->region, 0)->flow_misses, 0);
    assert_int_equal(hb_counters_services(rig->region, 0)[0].new_flows, 200);
    B(rig, UDP4(.source_port = 1));
    assert_int_equal(flows(rig), 1);
}

static void off_tracks_nothing_and_has_no_past(void **state)
{
    struct rig *rig = start(state, 3, HB_TRACKING_OFF);

    table_says(rig, 2, 1);
    assert_int_equal(B(rig, TCP4(.source_port = 1, .flags = SYN)), 2);
    assert_int_equal(B(rig, TCP4(.source_port = 1, .flags = ACK)), 2);
    assert_int_equal(B(rig, TCP6(.source_port = 1, .flags = ACK)), 2);
    assert_int_equal(B(rig, UDP4(.source_port = 1)), 2);
    assert_int_equal(flows(rig), 0);
    assert_int_equal(noted(rig), 0);
    rig->pool[0].slots = 0;
    publish(rig);
    assert_int_equal(B(rig, TCP4(.source_port = 1, .flags = ACK)), 0);
    assert_int_equal(hb_counters_worker(rig->region, 0)->drops[HB_DROP_NO_BACKEND], 1);
}

/* A pool that takes no new flows goes on with those it has, with and without an entry. */
static void a_closed_pool(void **state, enum hb_tracking tracking)
{
    struct rig *rig = start(state, 3, tracking);
    uint16_t tracked = B(rig, UDP4(.source_port = 1));
    uint16_t owner = B(rig, TCP4(.source_port = 2, .flags = SYN));
    const uint64_t *dropped = &hb_counters_worker(rig->region, 0)->drops[HB_DROP_NO_BACKEND];

    for (uint16_t id = 1; id <= 3; id++)
        rig->backend[id].use = HB_BACKEND_DRAINING;
    rig->pool[0].flags = HB_POOL_CLOSED;
    publish(rig);
    assert_int_equal(B(rig, UDP4(.source_port = 1)), tracked);
    assert_int_equal(B(rig, TCP4(.source_port = 2, .flags = ACK)), owner);
    assert_int_equal(*dropped, 0);
    assert_int_equal(B(rig, UDP4(.source_port = 3)), 0);
    assert_int_equal(B(rig, TCP4(.source_port = 4, .flags = SYN)), 0);
    assert_int_equal(*dropped, 2);
    empty_cache(rig);
    assert_int_equal(B(rig, TCP4(.source_port = 2, .flags = ACK)), owner);
}

static void a_closed_pool_all(void **state)
{
    a_closed_pool(state, HB_TRACKING_ALL);
}

static void a_closed_pool_changed(void **state)
{
    a_closed_pool(state, HB_TRACKING_CHANGED);
}

/* All kinds side by side in one burst: each gets what its service says. */
static void services_of_one_burst_are_kept_apart(void **state)
{
    struct rig *rig = start(state, 3, HB_TRACKING_ALL);
    struct frame out;

    rig->service[2].tracking = HB_TRACKING_OFF; /* TCP over IPv6 */
    add_service(rig, 4, HB_PROTOCOL_TCP, 81, 0);
    rig->service[3].tracking = HB_TRACKING_CHANGED;
    table_says(rig, 1, SETTLED);
    for (uint16_t round = 0; round < 2; round++) {
        for (uint16_t port = 1; port <= 10; port++) {
            struct frame frames[] = {
                TCP4(.source_port = port, .flags = ACK),
                TCP4(.source_port = port, .destination_port = 81, .flags = ACK),
                TCP6(.source_port = port, .flags = ACK), UDP4(.source_port = port)};

            for (uint32_t i = 0; i < 4; i++)
                send_frame(rig, &frames[i]);
        }
        turn(rig);
        for (uint32_t i = 0; i < 40; i++) {
            assert_true(receive(rig, PORT, &out));
            /* The second time only those with an entry stay: 80 and UDP. */
            if (i % 4 == 0 || i % 4 == 3 || round == 0)
                assert_int_equal(out.bytes[IP4_DESTINATION + 3], 10 + 1);
            else
                assert_int_equal(out.bytes[IP4_DESTINATION + 3], 10 + 2);
        }
        assert_int_equal(flows(rig), 20);
        table_says(rig, 2, SETTLED);
    }
}

/* Slots are noted by the worker's clock, also when that has just wrapped to 0. */
static void uses_are_noted_by_the_clock(void **state)
{
    struct rig *rig = start(state, 3, HB_TRACKING_CHANGED);
    uint32_t slot = 0;

    table_says(rig, 2, 1);
    for (uint32_t now_ms = UINT32_MAX - 1; now_ms != 3; now_ms++) {
        rig->now_ms = now_ms;
        B(rig, TCP4(.source_port = 1, .flags = ACK));
        while (rig->used[0][slot] == 0)
            slot++;
        assert_int_equal(rig->used[0][slot] & ~1u, now_ms & ~1u);
        assert_int_equal(noted(rig), 1);
    }
}

/* --- against a reference --- */

#define MEMBERS   6
#define CLIENTS   300
#define IDLE_MS   60000
#define STEPS     6000
#define SURE_MS   (IDLE_MS - 1000)
#define RANDOM(n) ((uint32_t)rand() % (n))

struct flow {
    uint16_t backend; /* 0: none */
    uint16_t port;    /* of its own: what ports used again mean is tested elsewhere */
    uint32_t incarnation;
    uint32_t last_ms;
    bool cached; /* was set up on an unsettled slot: an empty cache loses it */
};

struct model {
    struct rig *rig;
    struct hb_slot_history history;
    struct hb_slot_uses *uses;
    struct hb_node_memory memory;
    struct flow flow[CLIENTS];
    uint16_t next_port;
    uint32_t checked, moved_with_cause, settled, kept_past_a_flush;
};

static void *allocate(void *context, size_t bytes, uint32_t node)
{
    (void)context, (void)node;
    return calloc(1, bytes);
}

static void release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

static bool lives(const struct rig *rig, const struct flow *flow)
{
    const struct hb_backend *backend = &rig->backend[flow->backend];

    return flow->backend != 0 && backend->incarnation == flow->incarnation &&
           hb_backend_is_in_use(backend);
}

/* Highest random weight among those that take new flows: changes move few slots. */
static bool build_table(const struct rig *rig, uint16_t *owner)
{
    bool any = false;

    for (uint16_t id = 1; id <= MEMBERS; id++)
        any |= rig->backend[id].use == HB_BACKEND_ACTIVE;
    for (uint32_t slot = 0; any && slot < RIG_SLOTS; slot++) {
        uint64_t best = 0;

        for (uint16_t id = 1; id <= MEMBERS; id++) {
            uint64_t score = hb_mix(slot * UINT64_C(0x9e3779b97f4a7c15) + 1,
                                    id * UINT64_C(0xc2b2ae3d27d4eb4f) + 5);

            if (rig->backend[id].use == HB_BACKEND_ACTIVE && score > best) {
                best = score;
                owner[slot] = id;
            }
        }
    }
    return any;
}

/* What control does after any change, and the main lcore with what it gets. */
static void publish_model(struct model *m, bool new_members)
{
    struct rig *rig = m->rig;
    uint16_t *owner = malloc(RIG_SLOTS * sizeof(*owner));
    static uint16_t id_of[HB_BACKENDS_MAX + 1];
    struct hb_table_columns column;

    for (uint16_t id = 1; new_members && id <= MEMBERS; id++)
        id_of[id] = rig->backend[id].use != 0 ? id : 0;
    if (new_members)
        hb_history_renumber(&m->history, id_of);
    rig->pool[0].slots = build_table(rig, owner) ? RIG_SLOTS : 0;
    if (rig->pool[0].slots == 0)
        free(owner);
    else
        assert_int_equal(hb_history_follow(&m->history, owner, RIG_SLOTS, 1, NULL), 0);
    column = hb_history_columns(&m->history);
    memset(rig->pool[0].unsettled, 0, sizeof(rig->pool[0].unsettled));
    if (rig->pool[0].slots != 0)
        memcpy(rig->pool[0].owner, column.owner, RIG_SLOTS * sizeof(*owner));
    if (column.unsettled != NULL && rig->pool[0].slots != 0) {
        memcpy(rig->pool[0].previous, column.previous, RIG_SLOTS * sizeof(*owner));
        memcpy(rig->pool[0].unsettled, column.unsettled, hb_table_unsettled_bytes(RIG_SLOTS));
        hb_slot_uses_begin(m->uses, &column, rig->now_ms);
    } else {
        memset(m->uses->unsettled, 0, hb_table_unsettled_bytes(RIG_SLOTS));
    }
    rig->used[0] = m->uses->used[0];
    publish(rig);
}

static void change_backends(struct model *m)
{
    uint16_t id = (uint16_t)(1 + RANDOM(MEMBERS));
    struct hb_backend *backend = &m->rig->backend[id];
    bool members = false;

    switch (backend->use) {
    case 0: /* added, perhaps where another one was */
        backend->use = HB_BACKEND_ACTIVE;
        backend->incarnation++;
        members = true;
        break;
    case HB_BACKEND_ACTIVE:
        backend->use = RANDOM(3) == 0 ? HB_BACKEND_DOWN : HB_BACKEND_DRAINING;
        break;
    case HB_BACKEND_DRAINING:
        backend->use = RANDOM(3) == 0 ? 0 : HB_BACKEND_ACTIVE;
        members = backend->use == 0;
        break;
    default:
        backend->use = RANDOM(3) == 0 ? 0 : HB_BACKEND_ACTIVE;
        members = backend->use == 0;
    }
    publish_model(m, members);
}

static void settle(struct model *m)
{
    uint64_t idle[RIG_WORDS];

    hb_slot_uses_idle(m->uses, m->rig->now_ms, IDLE_MS, 0, idle, RIG_WORDS);
    m->settled += hb_history_settle(&m->history, idle, 0, RIG_SLOTS);
    publish_model(m, false);
}

static uint16_t send_packet(struct model *m, uint32_t client, uint8_t flags)
{
    return backend_of(
        m->rig, &(struct frame[]){TCP4(.source_port = m->flow[client].port, .flags = flags)}[0]);
}

static uint32_t slot_of_client(const struct model *m, uint32_t client)
{
    struct frame frame = TCP4(.source_port = m->flow[client].port);
    const struct hb_generation_set *set = atomic_load(&m->rig->head.current);
    struct hb_flow_key key = {.protocol = HB_PROTOCOL_TCP, .family = HB_FAMILY_IPV4};

    memcpy(key.source, frame.bytes + IP4_SOURCE, 4);
    memcpy(key.destination, frame.bytes + IP4_DESTINATION, 4);
    memcpy(&key.source_port, frame.bytes + L4_OF_4, 2);
    memcpy(&key.destination_port, frame.bytes + L4_OF_4 + 2, 2);
    return hb_slot_of(hb_flow_hash(&key, &set->node[0]->hash_key), RIG_SLOTS);
}

/* A packet of a flow that is there, or a new flow. */
static void use_client(struct model *m, uint32_t client)
{
    struct flow *flow = &m->flow[client];
    uint32_t slot;
    bool fresh = (int32_t)(m->rig->now_ms - flow->last_ms) < SURE_MS;
    bool sure = fresh && lives(m->rig, flow);
    uint16_t got;

    if (flow->backend != 0 && RANDOM(8) != 0) {
        got = send_packet(m, client, ACK);
        if (got == 0 && m->rig->pool[0].slots == 0)
            return; /* nobody takes new flows, so there is no table: lost, and sent again */
        if (sure && got != flow->backend)
            fail_msg("client %u on slot %u went from %u to %u", client, slot_of_client(m, client),
                     flow->backend, got);
        m->checked += sure;
        m->moved_with_cause += got != flow->backend;
        flow->last_ms = m->rig->now_ms;
        if (got != flow->backend ||
            !fresh) /* it was reset there, or nothing is promised any more */
            flow->backend = 0;
        return;
    }
    if (flow->backend != 0) {
        send_packet(m, client, RST);
        flow->backend = 0;
        return;
    }
    flow->port = m->next_port++;
    slot = slot_of_client(m, client);
    got = send_packet(m, client, SYN);
    if (got == 0)
        return;
    assert_int_equal(got, m->rig->pool[0].owner[slot]);
    assert_int_equal(send_packet(m, client, ACK), got);
    *flow = (struct flow){.backend = got,
                          .port = flow->port,
                          .incarnation = m->rig->backend[got].incarnation,
                          .last_ms = m->rig->now_ms,
                          .cached = hb_slot_is_unsettled(m->rig->pool[0].unsettled, slot)};
}

/* As a restart of the dataplane: the cache is empty, and all notes begin anew. */
static void lose_the_cache(struct model *m)
{
    empty_cache(m->rig);
    for (uint32_t client = 0; client < CLIENTS; client++) {
        if (m->flow[client].cached)
            m->flow[client].backend = 0;
        else
            m->kept_past_a_flush += m->flow[client].backend != 0;
    }
}

static void run_model(void **state, enum hb_tracking tracking, bool flush, unsigned seed)
{
    struct model m = {.rig = start(state, MEMBERS, tracking), .next_port = 1000};
    static const uint8_t nodes[1];

    srand(seed);
    m.memory = (struct hb_node_memory){
        .nodes = 1, .allocate = allocate, .release = release, .workers = 1, .worker_node = nodes};
    m.uses = hb_slot_uses_create(&m.memory, (char[HB_NAME_SIZE]){"web"}, RIG_SLOTS);
    publish_model(&m, false);
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t what = RANDOM(400);

        if (what < 4)
            change_backends(&m);
        else if (what < 8)
            settle(&m);
        else if (what < 9 && flush)
            lose_the_cache(&m);
        else if (what < 10)
            advance(m.rig, RANDOM(2 * IDLE_MS));
        else
            use_client(&m, RANDOM(CLIENTS));
        m.rig->now_ms += RANDOM(20);
    }
    assert_true(m.checked > STEPS / 4);
    assert_true(m.settled > 100);
    assert_true(m.moved_with_cause > 0);
    assert_true(!flush || m.kept_past_a_flush > 100);
    hb_slot_uses_release(m.uses, &m.memory);
    m.rig->used[0] = m.rig->own_used[0];
    hb_history_clear(&m.history);
}

static void the_model_agrees_all(void **state)
{
    run_model(state, HB_TRACKING_ALL, false, 1);
}

static void the_model_agrees_all_with_flushes(void **state)
{
    run_model(state, HB_TRACKING_ALL, true, 2);
}

static void the_model_agrees_changed(void **state)
{
    run_model(state, HB_TRACKING_CHANGED, false, 3);
}

static void the_model_agrees_changed_with_flushes(void **state)
{
    run_model(state, HB_TRACKING_CHANGED, true, 4);
}

/* A cache that is full remembers no more, and then an unsettled slot loses new flows. */
static int large_setup(void **state)
{
    return rig_setup_with(state, 1 << 16);
}

int main(void)
{
#define TEST(name)  cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
#define MODEL(name) cmocka_unit_test_setup_teardown(name, large_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(without_an_entry_all),
        TEST(without_an_entry_changed),
        TEST(a_previous_owner_that_dies),
        TEST(an_entry_decides),
        TEST(changed_and_settled_tracks_no_tcp),
        TEST(off_tracks_nothing_and_has_no_past),
        TEST(a_closed_pool_all),
        TEST(a_closed_pool_changed),
        TEST(services_of_one_burst_are_kept_apart),
        TEST(uses_are_noted_by_the_clock),
        MODEL(the_model_agrees_all),
        MODEL(the_model_agrees_all_with_flushes),
        MODEL(the_model_agrees_changed),
        MODEL(the_model_agrees_changed_with_flushes),
    };
    int failed = rig_open();

    if (failed == 0)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return failed;
}
