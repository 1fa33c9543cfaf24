/* SPDX-License-Identifier: BSD-3-Clause */
/* Which backend a packet goes to: the flow's, as long as that serves; else the lookup table's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "rig.h"

/* Pool 0 with backends 1 to `count`, TCP 80 and UDP 443 of the IPv4 VIP. */
static struct rig *start(void **state, uint16_t count)
{
    struct rig *rig = *state;

    for (uint16_t id = 1; id <= count; id++)
        add_backend(rig, id, 0, 4);
    share_table(rig, 0);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    add_service(rig, 4, HB_PROTOCOL_UDP, 443, 0);
    publish(rig);
    return rig;
}

/* All slots to one backend, so that the lookup table's word can be told from the flow's. */
static void table_says(struct rig *rig, uint16_t id)
{
    for (uint32_t slot = 0; slot < RIG_SLOTS; slot++)
        rig->pool[0].owner[slot] = id;
    rig->pool[0].slots = RIG_SLOTS;
    publish(rig);
}

static void set_use(struct rig *rig, uint16_t id, uint8_t use)
{
    rig->backend[id].use = use;
    publish(rig);
}

static const struct hb_worker_counters *counters(const struct rig *rig)
{
    return hb_counters_worker(rig->region, 0);
}

static uint64_t flows(const struct rig *rig)
{
    return counters(rig)->flows;
}

/* BL-46, BL-56: the table alone sends a flow to the same backend always, entry or not. */
static void the_table_is_enough(void **state)
{
    struct rig *rig = start(state, 10);
    uint16_t first[100];

    for (uint16_t port = 0; port < 100; port++)
        first[port] = B(rig, TCP4(.source_port = 1000 + port));
    advance(rig, 4000000); /* every entry is over */
    assert_int_equal(flows(rig), 0);
    for (uint16_t port = 0; port < 100; port++)
        assert_int_equal(B(rig, TCP4(.source_port = 1000 + port, .flags = ACK)), first[port]);
    assert_int_equal(counters(rig)->flow_inserts, 200);
}

/* BL-32: flows of one client, all with DF, spread over all backends. */
static void flows_spread(void **state)
{
    struct rig *rig = start(state, 10);
    uint32_t got[11] = {0};

    for (uint16_t port = 0; port < 1000; port++)
        got[B(rig, TCP4(.source_port = 10000 + port, .fragment = DF))]++;
    assert_int_equal(got[0], 0);
    for (uint16_t id = 1; id <= 10; id++)
        assert_in_range(got[id], 60, 145);
}

/* An established flow stays where it is when the table changes, and a new one follows the table. */
static void established_flows_stay(void **state)
{
    struct rig *rig = start(state, 2);

    table_says(rig, 1);
    assert_int_equal(B(rig, TCP4(.source_port = 1)), 1);
    assert_int_equal(B(rig, UDP4(.source_port = 1)), 1);
    table_says(rig, 2);
    assert_int_equal(B(rig, TCP4(.source_port = 1, .flags = ACK)), 1);
    assert_int_equal(B(rig, UDP4(.source_port = 1)), 1);
    assert_int_equal(B(rig, TCP4(.source_port = 2)), 2);
    assert_int_equal(B(rig, UDP4(.source_port = 2)), 2);
    assert_int_equal(live_flows(rig, 1), 2);
    assert_int_equal(live_flows(rig, 2), 2);
    assert_int_equal(hb_counters_services(rig->region, 0)[0].new_flows, 2);
    assert_int_equal(hb_counters_services(rig->region, 0)[0].packets, 3);
    assert_int_equal(hb_counters_backends(rig->region, 0)[1].new_flows, 2);
    assert_int_equal(hb_counters_backends(rig->region, 0)[1].packets, 4);
    assert_int_equal(hb_counters_backends(rig->region, 0)[1].bytes, 40 + 40 + 28 + 28);
}

/* BL-48: the SYN comes again after the table changed. */
static void a_repeated_syn_goes_the_same_way(void **state)
{
    struct rig *rig = start(state, 2);

    table_says(rig, 1);
    assert_int_equal(B(rig, TCP4()), 1);
    advance(rig, 500);
    table_says(rig, 2);
    advance(rig, 500);
    assert_int_equal(B(rig, TCP4()), 1);
    advance(rig, 2000);
    assert_int_equal(B(rig, TCP4()), 1);
    assert_int_equal(flows(rig), 1);
}

/* BL-44: what may make an entry. (Flags, entries made, and the packet is forwarded always.) */
static void what_makes_an_entry(void **state)
{
    static const struct {
        uint8_t flags;
        uint32_t entries;
    } rows[] = {
        {SYN, 1},       {SYN | ACK, 0}, {ACK, 1},  {ACK | PSH, 1}, {RST, 0}, {RST | ACK, 0},
        {RST | SYN, 0}, {FIN | ACK, 0}, {FIN, 0},  {SYN | FIN, 0}, {PSH, 0}, {FIN | PSH | URG, 0},
        {0x3f, 0},      {URG, 0},       {0xc2, 1}, /* SYN that offers ECN */
    };
    struct rig *rig = start(state, 1);

    for (uint16_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t before = flows(rig);

        assert_int_equal(B(rig, TCP4(.source_port = 1 + i, .flags = rows[i].flags)), 1);
        assert_int_equal(flows(rig) - before, rows[i].entries);
    }
    assert_int_equal(B(rig, poke8(TCP4(.source_port = 99), L4_OF_4 + TCP_FLAGS, 0)), 1);
    assert_int_equal(B(rig, UDP4()), 1);
    assert_int_equal(flows(rig), 4 + 1);
}

/* BL-44: entries made by one bare ACK live as long as those of a SYN, not an hour. */
static void one_ack_is_on_probation(void **state)
{
    struct rig *rig = start(state, 1);

    B(rig, TCP4(.source_port = 1, .flags = ACK));
    B(rig, TCP4(.source_port = 2, .flags = ACK));
    B(rig, TCP4(.source_port = 2, .flags = ACK));
    advance(rig, 3000);
    assert_int_equal(flows(rig), 1);
    advance(rig, 3600000 - 3001);
    assert_int_equal(flows(rig), 1);
    advance(rig, 1);
    assert_int_equal(flows(rig), 0);
    assert_int_equal(counters(rig)->flow_expiries, 2);
}

/* How long a flow lives after a run of packets: the rows of the state table in stage_flow.c. */
static void states_by_what_came(void **state)
{
    static const struct {
        const char *text;
        uint8_t flags[4];
        uint32_t count;
        uint32_t lives_ms;
    } rows[] = {
        {"SYN", {SYN}, 1, 3000},
        {"SYN twice", {SYN, SYN}, 2, 3000},
        {"SYN and nonsense", {SYN, SYN | FIN}, 2, 3000},
        {"SYN and a server's answer", {SYN, SYN | ACK}, 2, 3000},
        {"SYN, ACK", {SYN, ACK}, 2, 3600000},
        {"SYN, RST", {SYN, RST}, 2, 1000},
        {"SYN, FIN", {SYN, FIN | ACK}, 2, 10000},
        {"a SYN in an established flow", {SYN, ACK, SYN}, 3, 3600000},
        {"nonsense in an established flow", {SYN, ACK, SYN | FIN}, 3, 3600000},
        {"FIN", {SYN, ACK, FIN | ACK}, 3, 10000},
        {"an ACK after FIN", {SYN, ACK, FIN | ACK, ACK}, 4, 10000},
        {"a RST after FIN", {SYN, ACK, FIN | ACK, RST}, 4, 10000},
        {"a SYN after FIN", {SYN, ACK, FIN | ACK, SYN}, 4, 3000},
        {"RST", {SYN, ACK, RST}, 3, 1000},
        {"a second RST", {SYN, ACK, RST, RST | ACK}, 4, 1000},
        {"nonsense after RST", {SYN, ACK, RST, SYN | ACK}, 4, 1000},
        {"an ACK after RST", {SYN, ACK, RST, ACK}, 4, 3600000},
        {"a FIN after RST", {SYN, ACK, RST, FIN}, 4, 10000},
        {"a SYN after RST", {SYN, ACK, RST, SYN}, 4, 3000},
    };
    struct rig *rig = start(state, 1);

    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (uint32_t n = 0; n < rows[i].count; n++)
            assert_int_equal(B(rig, TCP4(.flags = rows[i].flags[n])), 1);
        advance(rig, rows[i].lives_ms - 1);
        if (flows(rig) != 1)
            fail_msg("%s: gone too early", rows[i].text);
        advance(rig, 1);
        if (flows(rig) != 0)
            fail_msg("%s: lives too long", rows[i].text);
    }
    for (uint32_t count = 1; count <= 2; count++) {
        for (uint32_t n = 0; n < count; n++)
            B(rig, UDP4());
        advance(rig, 59999);
        assert_int_equal(flows(rig), 1);
        advance(rig, 1);
        assert_int_equal(flows(rig), 0);
    }
}

/* BL-45: a draining backend (its slots are another's now) keeps a closing flow to the end of its
 * time; after that the table decides and no entry is made. */
static void a_late_fin_goes_where_the_flow_was(void **state)
{
    struct rig *rig = start(state, 2);

    table_says(rig, 1);
    B(rig, TCP4());
    B(rig, TCP4(.flags = ACK));
    rig->backend[1].use = HB_BACKEND_DRAINING;
    table_says(rig, 2);
    assert_int_equal(B(rig, TCP4(.flags = ACK, .payload = 9)), 1);
    assert_int_equal(B(rig, TCP4(.flags = FIN | ACK)), 1);
    advance(rig, 5000);
    assert_int_equal(B(rig, TCP4(.flags = FIN | ACK)), 1);
    assert_int_equal(B(rig, TCP4(.flags = ACK)), 1);
    advance(rig, 9999);
    assert_int_equal(live_flows(rig, 1), 1);
    advance(rig, 1);
    assert_int_equal(live_flows(rig, 1), 0);
    assert_int_equal(B(rig, TCP4(.flags = FIN | ACK)), 2);
    assert_int_equal(flows(rig), 0);
}

/* The same ports used again for a new connection: it is a new flow, which a draining backend won't
 * get. */
static void a_new_connection_on_old_ports_is_a_new_flow(void **state)
{
    static const uint8_t ends[] = {FIN | ACK, RST};
    struct rig *rig = start(state, 2);

    for (uint16_t i = 0; i < 2; i++) {
        rig->backend[1].use = HB_BACKEND_ACTIVE;
        table_says(rig, 1);
        B(rig, TCP4(.source_port = 7 + i));
        B(rig, TCP4(.source_port = 7 + i, .flags = ACK));
        B(rig, TCP4(.source_port = 7 + i, .flags = ends[i]));
        rig->backend[1].use = HB_BACKEND_DRAINING;
        table_says(rig, 2);
        assert_int_equal(B(rig, TCP4(.source_port = 7 + i)), 2);
        assert_int_equal(live_flows(rig, 1), 0);
        assert_int_equal(live_flows(rig, 2), 1 + i);
    }
    assert_int_equal(hb_counters_services(rig->region, 0)[0].new_flows, 4);
    assert_int_equal(counters(rig)->flow_reselects, 0);
}

/* A RST ends the flow in a second, unless the flow goes on: then a stranger had sent it. */
static void a_forged_reset_does_not_end_a_flow(void **state)
{
    struct rig *rig = start(state, 2);

    table_says(rig, 1);
    for (uint16_t port = 1; port <= 2; port++) {
        B(rig, TCP4(.source_port = port));
        B(rig, TCP4(.source_port = port, .flags = ACK));
        B(rig, TCP4(.source_port = port, .flags = RST));
    }
    B(rig, TCP4(.source_port = 2, .flags = ACK));
    table_says(rig, 2);
    advance(rig, 1000);
    assert_int_equal(flows(rig), 1);
    assert_int_equal(B(rig, TCP4(.source_port = 1, .flags = ACK)), 2);
    assert_int_equal(B(rig, TCP4(.source_port = 2, .flags = ACK)), 1);
}

/* A backend goes down: its flows are selected anew and their entries follow. */
static void flows_leave_a_backend_that_is_down(void **state)
{
    struct rig *rig = start(state, 2);

    table_says(rig, 1);
    B(rig, TCP4());
    B(rig, TCP4(.flags = ACK));
    rig->backend[1].use = HB_BACKEND_DOWN;
    table_says(rig, 2);
    assert_int_equal(B(rig, TCP4(.flags = ACK)), 2);
    assert_int_equal(counters(rig)->flow_reselects, 1);
    assert_int_equal(live_flows(rig, 1), 0);
    assert_int_equal(live_flows(rig, 2), 1);
    rig->backend[1].use = HB_BACKEND_ACTIVE;
    table_says(rig, 1);
    assert_int_equal(B(rig, TCP4(.flags = ACK)), 2); /* it lives there now */
    assert_int_equal(counters(rig)->flow_reselects, 1);
    assert_int_equal(flows(rig), 1);
}

/* BL-67: any pair and any triple of four down (the table follows, as control builds it): no packet
 * goes to one that is down. */
static void no_flow_goes_to_a_backend_that_is_down(void **state)
{
    struct rig *rig = start(state, 4);

    for (uint32_t down = 1; down < 15; down++) {
        uint32_t got[5] = {0};

        for (uint16_t id = 1; id <= 4; id++)
            rig->backend[id].use = (down >> (id - 1) & 1) ? HB_BACKEND_DOWN : HB_BACKEND_ACTIVE;
        share_table(rig, 0);
        publish(rig);
        for (uint16_t port = 1; port <= 400; port++)
            got[B(rig, TCP4(.source_port = port, .flags = ACK))]++;
        assert_int_equal(got[0], 0);
        for (uint16_t id = 1; id <= 4; id++)
            assert_true(rig->backend[id].use == HB_BACKEND_ACTIVE ? got[id] > 0 : got[id] == 0);
    }
}

/* BL-49: a UDP flow that never pauses leaves a backend that is gone or down with its next datagram,
 * which is not lost; a drain it may outlast, until the backend is taken out. */
static void a_busy_udp_flow_leaves(void **state)
{
    static const uint8_t steps[][2] = {{0, 0}, {HB_BACKEND_DOWN, 0}, {HB_BACKEND_DRAINING, 1}};
    struct rig *rig = start(state, 2);

    for (uint16_t i = 0; i < 3; i++) {
        add_backend(rig, 1, 0, 4);
        rig->backend[1].incarnation = 1 + i;
        table_says(rig, 1);
        for (uint32_t n = 0; n < 50; n++) {
            assert_int_equal(B(rig, UDP4(.source_port = 1 + i)), 1);
            advance(rig, 100);
        }
        if (steps[i][0] == 0)
            rig->backend[1] = (struct hb_backend){0};
        else
            rig->backend[1].use = steps[i][0];
        table_says(rig, 2);
        for (uint32_t n = 0; n < 300; n++) {
            assert_int_equal(B(rig, UDP4(.source_port = 1 + i)), steps[i][1] ? 1 : 2);
            advance(rig, 100);
        }
        rig->backend[1].use = HB_BACKEND_DOWN; /* the end of the drain */
        publish(rig);
        assert_int_equal(B(rig, UDP4(.source_port = 1 + i)), 2);
    }
    assert_int_equal(counters(rig)->flow_reselects, 3);
    assert_int_equal(count_drops(rig), 0);
}

/* BL-68: no backend at all: a drop that says so, for the service as well; entries wait for their
 * backend.
 */
static void a_pool_without_backends(void **state)
{
    struct rig *rig = start(state, 1);

    B(rig, TCP4(.source_port = 1));
    B(rig, TCP4(.source_port = 1, .flags = ACK));
    rig->backend[1].use = HB_BACKEND_DOWN;
    rig->pool[0].slots = 0;
    publish(rig);
    assert_int_equal(B(rig, TCP4(.source_port = 1, .flags = ACK)), 0);
    assert_int_equal(B(rig, TCP4(.source_port = 2)), 0);
    assert_int_equal(counters(rig)->drops[HB_DROP_NO_BACKEND], 2);
    assert_int_equal(hb_counters_services(rig->region, 0)[0].drops, 2);
    set_use(rig, 1, HB_BACKEND_ACTIVE); /* still no table: only flows that were there go on */
    assert_int_equal(B(rig, TCP4(.source_port = 1, .flags = ACK)), 1);
    assert_int_equal(B(rig, TCP4(.source_port = 2)), 0);

    /* A slot without owner is the same for those whom it meets. */
    set_table(rig, 0, 7, (uint16_t[]){0, 0, 0, 0, 0, 0, 0});
    publish(rig);
    assert_int_equal(B(rig, TCP4(.source_port = 3)), 0);
    assert_int_equal(counters(rig)->drops[HB_DROP_NO_BACKEND], 4);
}

/* An id that is given to another backend inherits no flow. */
static void a_reused_id_inherits_nothing(void **state)
{
    struct rig *rig = start(state, 2);

    table_says(rig, 1);
    B(rig, UDP4());
    rig->backend[1].incarnation = 2;
    table_says(rig, 2);
    assert_int_equal(B(rig, UDP4()), 2);
    assert_int_equal(counters(rig)->flow_reselects, 1);
    assert_int_equal(live_flows(rig, 1), 0);

    /* An id that is gone, the same. */
    rig->backend[2] = (struct hb_backend){0};
    table_says(rig, 1);
    assert_int_equal(B(rig, UDP4()), 1);
    assert_int_equal(live_flows(rig, 1), 1);
    assert_int_equal(live_flows(rig, 2), 0);
}

/* BL-52: the backend is alive, but the service has another pool now. */
static void flows_follow_the_pool_of_their_service(void **state)
{
    struct rig *rig = start(state, 1);

    add_backend(rig, 2, 1, 4);
    share_table(rig, 1);
    assert_int_equal(B(rig, TCP4()), 1);
    assert_int_equal(B(rig, UDP4()), 1);
    rig->service[0].pool = 1;
    publish(rig);
    assert_int_equal(B(rig, TCP4(.flags = ACK)), 2);
    assert_int_equal(B(rig, UDP4()), 1);
}

/* Packets of one new flow in one burst make one entry, and what comes later in the burst counts. */
static void two_packets_of_a_flow_in_one_burst(void **state)
{
    struct rig *rig = start(state, 10);
    struct frame burst[] = {TCP4(),
                            TCP4(.flags = ACK),
                            TCP4(.flags = ACK),
                            UDP4(),
                            UDP4(),
                            TCP4(.source_port = 9),
                            TCP4(.source_port = 9, .flags = RST)};
    struct frame out;

    for (uint32_t i = 0; i < 7; i++)
        send_frame(rig, &burst[i]);
    turn(rig);
    for (uint32_t i = 0; i < 7; i++)
        assert_true(receive(rig, PORT, &out));
    assert_int_equal(counters(rig)->busy_loops, 1);
    assert_int_equal(flows(rig), 3);
    assert_int_equal(counters(rig)->flow_inserts, 3);
    assert_int_equal(counters(rig)->flow_misses, 7);
    advance(rig, 1000); /* the RST counted */
    assert_int_equal(flows(rig), 2);
    advance(rig, 10000); /* the ACK did: established, while a SYN alone would be over */
    assert_int_equal(flows(rig), 2);
}

/* In one burst: a flow whose backend is down has its entry on probation evicted by another new
 * flow, before it is selected anew. Eight places make that likely; the accounts must hold every
 * time. */
static int eight_entries(void **state)
{
    return rig_setup_with(state, 8);
}

static void evicting_what_is_selected_anew(void **state)
{
    struct rig *rig = start(state, 2);
    struct frame out;

    for (uint16_t round = 0; round < 200; round++) {
        uint16_t old = 1 + round % 2;

        rig->backend[1].use = HB_BACKEND_ACTIVE;
        rig->backend[2].use = HB_BACKEND_ACTIVE;
        table_says(rig, old);
        for (uint16_t i = 0; i < 8; i++)
            B(rig, UDP4(.source_port = 1 + 100 * round + i));
        rig->backend[old].use = HB_BACKEND_DOWN;
        table_says(rig, 3 - old);
        for (uint16_t i = 0; i < 8; i++) {
            struct frame fresh = UDP4(.source_port = 51 + 100 * round + i);
            struct frame again = UDP4(.source_port = 1 + 100 * round + i);

            send_frame(rig, &fresh);
            send_frame(rig, &again);
        }
        turn(rig);
        while (receive(rig, PORT, &out))
            assert_int_equal(out.bytes[IP4_DESTINATION + 3], 10 + 3 - old);
        assert_int_equal(live_flows(rig, old), 0);
        assert_int_equal(live_flows(rig, 3 - old), 8);
        advance(rig, 60000);
    }
    assert_true(counters(rig)->flow_evictions > 0);
    assert_true(counters(rig)->flow_reselects > 0);
}

/* BL-42: 200 established flows in a cache of 1,024, 50,000 SYNs, then a change of the table. */
static void a_flood_moves_no_established_flow(void **state)
{
    struct rig *rig = start(state, 2);

    table_says(rig, 1);
    for (uint16_t port = 1; port <= 200; port++) {
        B(rig, TCP4(.source_port = port));
        B(rig, TCP4(.source_port = port, .flags = ACK));
    }
    for (uint32_t i = 0; i < 50000; i++) {
        struct frame syn = TCP4(.source_port = (uint16_t)(1000 + i));
        struct frame out;

        syn.bytes[IP4_SOURCE + 1] = (uint8_t)(i >> 8);
        syn.bytes[IP4_SOURCE + 2] = (uint8_t)i;
        syn = fix4(syn);
        send_frame(rig, &syn);
        if (i % 32 != 31)
            continue;
        rig->now_ms++;
        turn(rig);
        while (receive(rig, PORT, &out))
            continue;
    }
    turn(rig);
    table_says(rig, 2);
    for (uint16_t port = 1; port <= 200; port++)
        assert_int_equal(B(rig, TCP4(.source_port = port, .flags = ACK)), 1);
    assert_true(counters(rig)->flow_evictions > 1000);
    assert_true(live_flows(rig, 1) > 900);
}

/* BL-50: twice as many flows as entries: all are forwarded, the rest by the table. When all are
 * over the count is 0, in every round. */
static void a_full_cache_forwards_all(void **state)
{
    struct rig *rig = start(state, 10);
    uint16_t first[2048];

    for (uint32_t round = 0; round < 5; round++) {
        for (uint32_t twice = 0; twice < 2; twice++) {
            for (uint16_t i = 0; i < 2048; i++) {
                uint16_t got = B(rig, UDP4(.source_port = 1000 + i));

                assert_true(got >= 1 && got <= 10);
                assert_true(twice == 0 || first[i] == got);
                first[i] = got;
            }
        }
        assert_in_range(flows(rig), 1000, 1024);
        assert_int_equal(counters(rig)->flows_max, 1024);
        assert_true(counters(rig)->flow_evictions + counters(rig)->flow_insert_failures > 0);
        advance(rig, 60000);
        assert_int_equal(flows(rig), 0);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_table_is_enough),
        TEST(flows_spread),
        TEST(established_flows_stay),
        TEST(a_repeated_syn_goes_the_same_way),
        TEST(what_makes_an_entry),
        TEST(one_ack_is_on_probation),
        TEST(states_by_what_came),
        TEST(a_late_fin_goes_where_the_flow_was),
        TEST(a_new_connection_on_old_ports_is_a_new_flow),
        TEST(a_forged_reset_does_not_end_a_flow),
        TEST(flows_leave_a_backend_that_is_down),
        TEST(no_flow_goes_to_a_backend_that_is_down),
        TEST(a_busy_udp_flow_leaves),
        TEST(a_pool_without_backends),
        TEST(a_reused_id_inherits_nothing),
        TEST(flows_follow_the_pool_of_their_service),
        TEST(two_packets_of_a_flow_in_one_burst),
        cmocka_unit_test_setup_teardown(evicting_what_is_selected_anew, eight_entries,
                                        rig_teardown),
        TEST(a_flood_moves_no_established_flow),
        TEST(a_full_cache_forwards_all),
    };
    int failed = rig_open();

    if (failed == 0)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return failed;
}
