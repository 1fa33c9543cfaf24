/* SPDX-License-Identifier: BSD-3-Clause */
/* Fragments follow the first one of their datagram, in any order, and never disturb anybody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

static const struct hb_worker_counters *counters(const struct rig *rig)
{
    return hb_counters_worker(rig->region, 0);
}

static uint64_t drops(const struct rig *rig, enum hb_drop_reason reason)
{
    return counters(rig)->drops[reason];
}

static void set_up_ten(struct rig *rig)
{
    for (uint16_t id = 1; id <= 10; id++)
        add_backend(rig, id, 0, 4);
    share_table(rig, 0);
    publish_one_backend(rig, 4); /* its backend 1 is the first of the ten */
    share_table(rig, 0);
    publish(rig);
}

/* A datagram of 1,700 bytes of UDP payload in three fragments. */
#define PARTS 3
static void split(struct frame parts[PARTS], uint8_t family, uint16_t port, uint32_t id)
{
    struct frame whole = family == 6 ? UDP6(.source_port = port, .payload = 1700)
                                     : UDP4(.source_port = port, .payload = 1700);

    parts[0] = fragment(&whole, id, 0, 800);
    parts[1] = fragment(&whole, id, 800, 800);
    parts[2] = fragment(&whole, id, 1600, 0);
}

/* Takes what was sent; returns the one backend that got all `count` packets, else 0. */
static uint16_t one_backend(struct rig *rig, uint32_t count)
{
    struct frame out;
    uint16_t backend = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint16_t id;

        if (!receive(rig, PORT, &out))
            return 0;
        id = (uint16_t)(out.bytes[IP4_DESTINATION + 3] - 10);
        if (backend != 0 && backend != id)
            return 0;
        backend = id;
    }
    return receive(rig, PORT, &out) ? 0 : backend;
}

static const uint8_t orders[][PARTS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

/* BL-28, BL-29: in every order, in one burst and one by one with 50 ms between them, to the backend
 * of the flow's whole packets. */
static void any_order(struct rig *rig, uint8_t family)
{
    uint32_t id = family * 1000;

    for (uint32_t o = 0; o < 6; o++) {
        for (uint32_t gap = 0; gap < 3; gap++) {
            for (uint16_t port = 1000; port < 1017; port++) {
                uint16_t whole = family == 6 ? B(rig, UDP6(.source_port = port))
                                             : B(rig, UDP4(.source_port = port));
                struct frame parts[PARTS];

                split(parts, family, port, ++id);
                for (uint32_t p = 0; p < PARTS; p++) {
                    send_frame(rig, &parts[orders[o][p]]);
                    if (gap > 0)
                        turn(rig);
                    rig->now_ms += gap == 2 ? 50 : 0;
                }
                turn(rig);
                assert_int_equal(one_backend(rig, PARTS), whole);
            }
        }
    }
    assert_int_equal(counters(rig)->held_packets, 0);
    assert_int_equal(count_drops(rig), 0);
    assert_int_equal(counters(rig)->fragments, PARTS * 6 * 3 * 17);
}

static void ipv4_in_any_order(void **state)
{
    set_up_ten(*state);
    any_order(*state, 4);
}

static void ipv6_in_any_order(void **state)
{
    set_up_ten(*state);
    any_order(*state, 6);
}

/* Without a whole packet before: the flow is where its whole packets will be, and has one entry. */
static void fragments_first(void **state)
{
    struct rig *rig = *state;

    set_up_ten(rig);
    for (uint16_t port = 1; port <= 50; port++) {
        struct frame parts[PARTS];
        uint16_t backend;

        split(parts, 4, port, port);
        for (uint32_t p = 0; p < PARTS; p++)
            send_frame(rig, &parts[PARTS - 1 - p]);
        turn(rig);
        backend = one_backend(rig, PARTS);
        assert_int_not_equal(backend, 0);
        assert_int_equal(B(rig, UDP4(.source_port = port)), backend);
    }
    assert_int_equal(counters(rig)->flows, 50);
}

/* What leaves is what came, byte for byte; held ones in the order in which they came. */
static void bytes_stay(void **state)
{
    struct rig *rig = *state;
    struct frame parts[PARTS], out, want;

    publish_one_backend(rig, 4);
    for (uint32_t family = 4; family <= 6; family += 2) {
        uint16_t id = rig->worker->ipv4_id;

        split(parts, (uint8_t)family, 7, 9);
        send_frame(rig, &parts[2]);
        send_frame(rig, &parts[1]);
        turn(rig);
        assert_int_equal(counters(rig)->held_packets, 2);
        assert_false(receive(rig, PORT, &out));
        send_frame(rig, &parts[0]);
        turn(rig);
        for (uint32_t i = 0; i < PARTS; i++) {
            static const uint8_t order[PARTS] = {0, 2, 1};

            assert_true(receive(rig, PORT, &out));
            want = tunnel(&parts[order[i]], 4, 1, id++, 0);
            assert_frame("fragment", &out, &want);
        }
    }
}

/* TCP as well: the first tells the flags, later ones change nothing. */
static void fragments_of_tcp(void **state)
{
    struct rig *rig = *state;
    struct frame whole = TCP4(.flags = ACK | PSH, .payload = 1500), first, last;
    uint16_t backend;

    set_up_ten(rig);
    backend = B(rig, TCP4());
    first = fragment(&whole, 3, 0, 800);
    last = fragment(&whole, 3, 800, 0);
    send_frame(rig, &last);
    send_frame(rig, &first);
    turn(rig);
    assert_int_equal(one_backend(rig, 2), backend);
    /* Established by the first one's ACK: longer than a SYN lasts. */
    advance(rig, 10000);
    assert_int_equal(live_flows(rig, backend), 1);
}

/* A SYN in fragments is a SYN; its later fragment is no second packet of the flow. */
static void a_syn_in_fragments(void **state)
{
    struct rig *rig = *state;
    struct frame whole = TCP4(.payload = 100), first, last;

    publish_one_backend(rig, 4);
    first = fragment(&whole, 3, 0, 64);
    last = fragment(&whole, 3, 64, 0);
    send_frame(rig, &first);
    send_frame(rig, &last);
    turn(rig);
    assert_int_equal(one_backend(rig, 2), 1);
    advance(rig, 4000);
    assert_int_equal(live_flows(rig, 1), 0);
}

/* The headers of the first IPv6 fragment may go on behind the fragment header, not into the next
 * fragment. */
static void ipv6_headers_behind(void **state)
{
    struct rig *rig = *state;
    struct frame out, good = UDP6(.chain = {44, 60}, .chain_count = 2, .payload = 8);
    struct frame before = UDP6(.chain = {0, 60, 44}, .chain_count = 3, .payload = 8);
    struct frame cut_off = good;

    publish_one_backend(rig, 4);
    good = poke16(good, L4_OF_6 + 2, 1);      /* offset 0, more */
    before = poke16(before, L4_OF_6 + 18, 1); /* the third header */
    cut_off = poke16(poke16(cut_off, L4_OF_6 + 2, 1), IP6_LENGTH, 16);
    cut_off = poke16(cut_off, L4_OF_6 + 6, 5); /* another identification */
    assert_int_equal(backend_of(rig, &good), 1);
    before = poke16(before, L4_OF_6 + 22, 6);
    assert_int_equal(backend_of(rig, &before), 1);
    send_frame(rig, &cut_off);
    turn(rig);
    assert_false(receive(rig, PORT, &out));
    assert_int_equal(drops(rig, HB_DROP_FRAGMENT_TINY), 1);
}

/* Fragments that no sound sender makes. */
static void unsound_fragments(void **state)
{
    struct rig *rig = *state;
    struct frame whole = UDP4(.payload = 200), tcp = TCP4(.payload = 200), whole6;
    const struct row rows[] = {
        {"first one with 16 bytes of TCP", fragment(&tcp, 1, 0, 16), DROP(FRAGMENT_TINY)},
        {"first one of UDP that is 4 bytes long",
         fix4(poke16(UDP4(.fragment = MF), IP4_LENGTH, 24)), DROP(FRAGMENT_LENGTH)},
        {"12 bytes and more to come", fragment(&whole, 2, 0, 12), DROP(FRAGMENT_LENGTH)},
        {"nothing in it", fix4(poke16(UDP4(.fragment = 1), IP4_LENGTH, 20)), DROP(FRAGMENT_LENGTH)},
        {"ends behind 65,535", UDP4(.fragment = 0x1fff, .payload = 1), DROP(FRAGMENT_LENGTH)},
        {"of ICMP", IP4(1, .fragment = 8), DROP(FRAGMENT)},
        {"of UDP-Lite", IP4(136, .fragment = 8), DROP(FRAGMENT)},
        {"with TTL 0", fix4(poke8(UDP4(.fragment = 8), IP4_TTL, 0)), DROP(TTL_EXPIRED)},
        {"from 127.0.0.1", UDP4(.fragment = 8, .source = "127.0.0.1"), DROP(MARTIAN)},
        {"to a port without service", UDP4(.fragment = MF, .destination_port = 9),
         DROP(NO_SERVICE)},
        {"the rest of that", fix4(poke16(UDP4(.fragment = 1), IP4_LENGTH, 28)), DROP(NO_SERVICE)},
    };

    whole6 = UDP6(.chain = {44}, .chain_count = 1, .payload = 9);
    const struct row ipv6[] = {
        {"17 bytes and more to come", poke16(whole6, L4_OF_6 + 2, 1), DROP(FRAGMENT_LENGTH)},
        {"ends behind 65,535", poke16(whole6, L4_OF_6 + 2, 0xfff8), DROP(FRAGMENT_LENGTH)},
        {"first one of ESP", poke16(IP6(50, .chain = {44}, .chain_count = 1), L4_OF_6 + 2, 1),
         DROP(FRAGMENT)},
    };

    publish_one_backend(rig, 4);
    rig->tight = true;
    RUN_ROWS(rig, rows, 4);
    RUN_ROWS(rig, ipv6, 4);
    assert_int_equal(counters(rig)->held_packets, 0);
}

/* RFC 8200, section 4.5: what came twice is dropped alone, and the datagram becomes whole. */
static void duplicates(void **state)
{
    struct rig *rig = *state;
    struct frame whole = UDP4(.payload = 1000), out;
    struct frame first = fragment(&whole, 5, 0, 400), second = fragment(&whole, 5, 400, 400);
    struct frame third = fragment(&whole, 5, 800, 0), within = fragment(&whole, 5, 8, 16);

    publish_one_backend(rig, 4);
    assert_int_equal(backend_of(rig, &first), 1);
    assert_int_equal(backend_of(rig, &first), 0);
    assert_int_equal(backend_of(rig, &second), 1);
    assert_int_equal(backend_of(rig, &second), 0);
    assert_int_equal(backend_of(rig, &first), 0);
    assert_int_equal(backend_of(rig, &within), 0);
    assert_int_equal(drops(rig, HB_DROP_FRAGMENT_DUPLICATE), 4);
    assert_int_equal(backend_of(rig, &third), 1);
    assert_int_equal(count_drops(rig), 4);
    /* Complete, so it is forgotten: what comes now belongs to a datagram to come. */
    send_frame(rig, &third);
    turn(rig);
    assert_int_equal(counters(rig)->held_packets, 1);
    assert_false(receive(rig, PORT, &out));
}

/* BL-28, RFC 5722: a fragment that overlaps ends here, and all that is still to come of its
 * datagram. Each row: a fragment that the datagram of 0 to 400 and 800 to 1008 can't have. */
static void overlaps(void **state)
{
    static const struct {
        uint32_t start, length; /* 0: all that is left, and none follow */
    } rows[] = {
        {392, 16},  /* the end of what was there */
        {0, 408},   /* the first one, longer */
        {792, 16},  /* the beginning of what was there */
        {392, 416}, /* both */
        {8, 1000},  /* the rewritten header of RFC 3128, and all else */
    };
    struct rig *rig = *state;

    publish_one_backend(rig, 4);
    for (uint32_t family = 4; family <= 6; family += 2) {
        for (uint32_t i = 0; i < 5; i++) {
            struct frame whole = family == 4 ? UDP4(.payload = 1000) : UDP6(.payload = 1000);
            struct frame longer = family == 4 ? UDP4(.payload = 1200) : UDP6(.payload = 1200);
            struct frame first = fragment(&whole, 10 + i, 0, 400);
            struct frame third = fragment(&longer, 10 + i, 800, 208);
            struct frame over = fragment(&longer, 10 + i, rows[i].start, rows[i].length);
            struct frame second = fragment(&whole, 10 + i, 400, 400);
            struct frame last = fragment(&longer, 10 + i, 1008, 0);
            uint64_t overlapping = drops(rig, HB_DROP_FRAGMENT_OVERLAP);
            uint64_t refused = drops(rig, HB_DROP_FRAGMENT_REFUSED);

            assert_int_equal(backend_of(rig, &first), 1);
            assert_int_equal(backend_of(rig, &third), 1);
            assert_int_equal(backend_of(rig, &over), 0);
            assert_int_equal(drops(rig, HB_DROP_FRAGMENT_OVERLAP), overlapping + 1);
            assert_int_equal(backend_of(rig, &second), 0);
            assert_int_equal(backend_of(rig, &last), 0);
            assert_int_equal(backend_of(rig, &first), 0);
            assert_int_equal(drops(rig, HB_DROP_FRAGMENT_REFUSED), refused + 3);
        }
    }
}

/* The datagram's end is said twice, or is before what was there. */
static void two_ends(void **state)
{
    struct rig *rig = *state;
    struct frame whole = UDP4(.payload = 1000), shorter = UDP4(.payload = 600);
    struct frame first = fragment(&whole, 5, 0, 400), third = fragment(&whole, 5, 800, 0);
    struct frame end = fragment(&shorter, 5, 400, 0), second = fragment(&whole, 5, 400, 400);

    publish_one_backend(rig, 4);
    assert_int_equal(backend_of(rig, &first), 1);
    assert_int_equal(backend_of(rig, &third), 1);
    assert_int_equal(backend_of(rig, &end), 0);
    assert_int_equal(backend_of(rig, &second), 0);
    assert_int_equal(drops(rig, HB_DROP_FRAGMENT_OVERLAP), 1);
    assert_int_equal(drops(rig, HB_DROP_FRAGMENT_REFUSED), 1);
}

/* A bad datagram is forgotten like any other, and others do not notice. */
static void a_bad_datagram_ages(void **state)
{
    struct rig *rig = *state;
    struct frame whole = UDP4(.payload = 1000), other = UDP4(.payload = 1000, .source_port = 7);
    struct frame first = fragment(&whole, 5, 0, 400), over = fragment(&whole, 5, 8, 400);
    struct frame rest = fragment(&whole, 5, 400, 0);

    publish_one_backend(rig, 4);
    assert_int_equal(backend_of(rig, &first), 1);
    assert_int_equal(backend_of(rig, &over), 0);
    assert_int_equal(B(rig, fragment(&other, 6, 0, 400)), 1);
    assert_int_equal(B(rig, fragment(&other, 6, 400, 0)), 1);
    /* The same identification, with other ports: another datagram. */
    assert_int_equal(B(rig, fragment(&other, 5, 0, 400)), 1);
    assert_int_equal(B(rig, fragment(&other, 5, 400, 0)), 1);
    assert_int_equal(backend_of(rig, &first), 1);
    assert_int_equal(backend_of(rig, &over), 0);
    rig->now_ms += HB_FRAGMENT_REUSE_MS;
    assert_int_equal(backend_of(rig, &rest), 0);
    assert_int_equal(backend_of(rig, &first), 1);
    assert_int_equal(backend_of(rig, &rest), 1);
    assert_int_equal(drops(rig, HB_DROP_FRAGMENT_REFUSED), 1);
    assert_int_equal(drops(rig, HB_DROP_FRAGMENT_OVERLAP), 2);
}

/* BL-29: nothing waits for ever. */
static void patience_ends(void **state)
{
    struct rig *rig = *state;
    struct frame parts[PARTS];

    publish_one_backend(rig, 4);
    split(parts, 4, 1, 1);
    send_frame(rig, &parts[1]);
    turn(rig);
    assert_int_equal(counters(rig)->held_packets, 1);
    rig->now_ms += HB_FRAGMENT_HOLD_MS - 1;
    turn(rig);
    assert_int_equal(counters(rig)->held_packets, 1);
    rig->now_ms += 1;
    turn(rig); /* a turn that receives nothing */
    assert_int_equal(counters(rig)->held_packets, 0);
    assert_int_equal(drops(rig, HB_DROP_FRAGMENT_NO_FIRST), 1);
    /* Too late for the others: the first goes on alone, the third behind it. */
    assert_int_equal(backend_of(rig, &parts[0]), 1);
    assert_int_equal(backend_of(rig, &parts[2]), 1);
}

/* BL-30: the same identification for another datagram. */
static void identification_used_again(void **state)
{
    struct rig *rig = *state;
    struct frame parts[PARTS], others[PARTS];

    set_up_ten(rig);
    for (uint16_t port = 1; port <= 20; port++) {
        uint16_t other = B(rig, UDP4(.source_port = 1000 + port));

        split(parts, 4, port, 77);
        split(others, 4, 1000 + port, 77);
        assert_int_not_equal(backend_of(rig, &parts[0]), 0);
        assert_int_equal(backend_of(rig, &others[0]), other);
        assert_int_equal(backend_of(rig, &others[1]), other);
        assert_int_equal(backend_of(rig, &others[2]), other);
        /* The same flow, long after the first fragment that had no successors. */
        assert_int_not_equal(backend_of(rig, &parts[0]), 0);
        rig->now_ms += HB_FRAGMENT_REUSE_MS;
        assert_int_not_equal(backend_of(rig, &parts[0]), 0);
        assert_int_not_equal(backend_of(rig, &parts[1]), 0);
        assert_int_not_equal(backend_of(rig, &parts[2]), 0);
    }
    assert_int_equal(count_drops(rig), 0);
}

/* BL-30: ten per cent more than the table holds: those are lost and counted, no others. */
static void more_than_the_table_holds(void **state)
{
    struct rig *rig = *state;
    uint32_t all = HB_FRAGMENTS_MAX + HB_FRAGMENTS_MAX / 10, sent = 0;
    struct frame whole = UDP4(.payload = 24);

    publish_one_backend(rig, 4);
    for (uint32_t id = 0; id < all; id++) {
        struct frame first = fragment(&whole, id, 0, 16);

        assert_int_equal(backend_of(rig, &first), 1);
    }
    for (uint32_t id = 0; id < all; id++) {
        struct frame last = fragment(&whole, id, 16, 0);

        sent += backend_of(rig, &last);
    }
    assert_int_equal(sent, HB_FRAGMENTS_MAX);
    rig->now_ms += HB_FRAGMENT_HOLD_MS;
    turn(rig);
    assert_int_equal(drops(rig, HB_DROP_FRAGMENT_NO_FIRST) + drops(rig, HB_DROP_FRAGMENT_FULL),
                     all - HB_FRAGMENTS_MAX);
}

/* BL-29: lone middle fragments from everywhere. Memory is bounded, a datagram in between passes in
 * any order, and other flows do not notice. */
static void a_flood_of_lone_fragments(void **state)
{
    struct rig *rig = *state;
    uint64_t evictions;
    uint32_t id = 0;

    set_up_ten(rig);
    for (uint32_t burst = 0; burst < 2000; burst++) {
        struct frame parts[PARTS], flow = TCP4(.source_port = (uint16_t)(1 + burst % 100));
        uint16_t backend;

        for (uint32_t i = 0; i < 48; i++) {
            struct frame lone = UDP4(.fragment = MF | 100, .id = (uint16_t)++id, .payload = 8);

            lone.bytes[IP4_SOURCE + 1] = (uint8_t)(id >> 16);
            lone.bytes[IP4_SOURCE + 2] = (uint8_t)(id >> 24);
            send_frame(rig, &(struct frame[]){fix4(lone)}[0]);
        }
        turn(rig);
        assert_true(counters(rig)->held_packets <= HB_FRAGMENTS_HELD);
        split(parts, 4, 5000, burst);
        for (uint32_t p = 0; p < PARTS; p++)
            send_frame(rig, &parts[orders[burst % 6][p]]);
        turn(rig);
        assert_int_not_equal(one_backend(rig, PARTS), 0);
        backend = backend_of(rig, &flow);
        assert_int_not_equal(backend, 0);
        rig->now_ms += burst % 10 == 0;
    }
    evictions = counters(rig)->flow_evictions;
    assert_int_equal(evictions, 0);
    assert_int_equal(counters(rig)->flows, 101);
    assert_int_equal(drops(rig, HB_DROP_FRAGMENT_FULL) + counters(rig)->held_packets, 2000 * 48);
}

/* A full-size datagram, the last fragment first: 45 of them, more than a burst once released. */
static void the_largest_datagram(void **state)
{
    struct rig *rig = *state;
    struct frame whole = UDP4(.payload = 1480), out;
    uint32_t got = 0;

    publish_one_backend(rig, 4);
    for (uint32_t offset = 100; offset >= 1; offset--) {
        struct frame part = fragment(&whole, 9, 0, 640);

        part = fix4(poke16(part, IP4_FRAGMENT, (uint16_t)(80 * offset | (offset < 100 ? MF : 0))));
        send_frame(rig, &part);
        turn(rig);
    }
    assert_int_equal(counters(rig)->held_packets, 100);
    send_frame(rig, &(struct frame[]){fragment(&whole, 9, 0, 640)}[0]);
    turn(rig);
    while (receive(rig, PORT, &out))
        got++;
    assert_int_equal(got, 101);
    assert_int_equal(counters(rig)->held_packets, 0);
    assert_int_equal(counters(rig)->rx_packets, 101);
}

static void drain(struct rig *rig, uint16_t drained)
{
    uint16_t before[RIG_SLOTS];

    memcpy(before, rig->pool[0].owner, sizeof(before));
    rig->backend[drained].use = HB_BACKEND_DRAINING;
    share_table(rig, 0);
    for (uint32_t slot = 0; slot < RIG_SLOTS; slot++)
        unsettle(rig, 0, slot, before[slot]);
    publish(rig);
}

/* The flow's entry is on another worker, and says something else than the table. */
static void entries_of_another_worker(void **state)
{
    struct rig *rig = *state;

    add_worker(rig);
    set_up_ten(rig);
    for (uint16_t port = 1; port <= 20; port++) {
        struct frame parts[PARTS];
        uint16_t pinned = B(rig, UDP4(.source_port = port));

        drain(rig, pinned);
        change_worker(rig);
        for (uint32_t o = 0; o < 6; o++) {
            split(parts, 4, port, port * 10u + o);
            for (uint32_t p = 0; p < PARTS; p++)
                send_frame(rig, &parts[orders[o][p]]);
            turn(rig);
            assert_int_equal(one_backend(rig, PARTS), pinned);
        }
        change_worker(rig);
        rig->backend[pinned].use = HB_BACKEND_ACTIVE;
        share_table(rig, 0);
        memset(rig->pool[0].unsettled, 0, sizeof(rig->pool[0].unsettled));
        publish(rig);
    }
    change_worker(rig);
    assert_int_equal(counters(rig)->flows, 0);
    change_worker(rig);
}

/* The pinned backend fails between two fragments: the rest goes by the table. */
static void the_other_entry_stops_deciding(void **state)
{
    struct rig *rig = *state;
    struct frame parts[PARTS];
    uint16_t pinned;

    add_worker(rig);
    set_up_ten(rig);
    pinned = B(rig, UDP4());
    drain(rig, pinned);
    change_worker(rig);
    split(parts, 4, 40000, 1);
    assert_int_equal(backend_of(rig, &parts[0]), pinned);
    rig->backend[pinned].use = HB_BACKEND_DOWN;
    publish(rig);
    assert_int_not_equal(backend_of(rig, &parts[1]), pinned);
}

/* Fragments wait while the generation changes, and go by the new one. */
static void a_swap_in_between(void **state)
{
    struct rig *rig = *state;
    struct frame parts[PARTS];
    struct generation_copy *old;

    publish_one_backend(rig, 4);
    split(parts, 6, 7, 7);
    send_frame(rig, &parts[2]);
    turn(rig);
    old = rig->published;
    rig->backend[1].use = HB_BACKEND_DOWN;
    add_backend(rig, 2, 0, 4);
    share_table(rig, 0);
    publish(rig);
    turn(rig);
    forget_generation(old);
    send_frame(rig, &parts[0]);
    send_frame(rig, &parts[1]);
    turn(rig);
    assert_int_equal(one_backend(rig, PARTS), 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(ipv4_in_any_order),
        TEST(ipv6_in_any_order),
        TEST(fragments_first),
        TEST(bytes_stay),
        TEST(fragments_of_tcp),
        TEST(a_syn_in_fragments),
        TEST(ipv6_headers_behind),
        TEST(unsound_fragments),
        TEST(duplicates),
        TEST(overlaps),
        TEST(two_ends),
        TEST(a_bad_datagram_ages),
        TEST(patience_ends),
        TEST(identification_used_again),
        TEST(more_than_the_table_holds),
        TEST(a_flood_of_lone_fragments),
        TEST(the_largest_datagram),
        TEST(entries_of_another_worker),
        TEST(the_other_entry_stops_deciding),
        TEST(a_swap_in_between),
    };
    int failed = rig_open();

    if (failed == 0)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return failed;
}
