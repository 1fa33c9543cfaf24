/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fragments of what full NAT's backends answer: in any order they leave as fragments of the
 * translated answer, byte for byte; also by another worker's ring, and with the numbers of a PROXY
 * header to hide. Faults, floods and lost first ones have the counters of clients' fragments.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "full_nat_rig.h"
#include "nat_frames.h"
#include "nat_handover.h"

#define PARTS 3

static const uint8_t orders[][PARTS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

static struct frame part(const struct frame *whole_one, uint32_t id, uint32_t number)
{
    static const uint32_t starts[PARTS + 1] = {0, 480, 960, 0};

    return fragment(whole_one, id, starts[number],
                    number + 1 < PARTS ? starts[number + 1] - starts[number] : 0);
}

static struct frame answer_of(uint8_t family, uint32_t port, uint32_t payload)
{
    return whole(build(&(struct spec){.family = family,
                                      .protocol = 17,
                                      .source = backend_name(family),
                                      .source_port = 8080,
                                      .destination = source_of(family),
                                      .destination_port = (uint16_t)port,
                                      .payload = payload}));
}

/* A client's first datagram. Returns the port of the source address that the session has. */
static uint32_t open_session(struct rig *rig, uint8_t family)
{
    struct frame out;

    assert_true(pass(rig,
                     whole(build(&(struct spec){
                         .family = family, .protocol = 17, .source_port = 40000, .payload = 9})),
                     &out));
    return get16(&out, l4_of(family));
}

/* Which parts of `want`, a translated answer, have left since the last call, in their order. */
static uint32_t take_parts(struct rig *rig, const struct frame *want, uint32_t id, uint8_t *seen)
{
    struct frame out;
    uint32_t count = 0;

    for (; receive(rig, PORT, &out); count++) {
        uint32_t number = 0;

        assert_true(count < PARTS);
        for (; number < PARTS; number++) {
            struct frame expected = part(want, id, number);

            if (out.length == expected.length &&
                memcmp(out.bytes, expected.bytes, expected.length) == 0)
                break;
        }
        assert_true(number < PARTS);
        seen[count] = (uint8_t)number;
    }
    return count;
}

/* The order in which parts leave that came in this one: the first one first; then, in the order in
 * which they came, those that waited for it, but for what came behind it in the same burst, which
 * goes on before they do. */
static void expect(const uint8_t *order, bool burst, uint8_t *expected)
{
    uint32_t at = 0, first = 0;

    while (order[first] != 0)
        first++;
    expected[at++] = 0;
    for (uint32_t i = first + 1; burst && i < PARTS; i++)
        expected[at++] = order[i];
    for (uint32_t i = 0; i < first; i++)
        expected[at++] = order[i];
    for (uint32_t i = first + 1; !burst && i < PARTS; i++)
        expected[at++] = order[i];
}

/* Cuts an answer, sends its parts in this order and holds what leaves against the whole answer
 * translated. */
static void send_in_order(struct rig *rig, const struct frame *answer, const struct frame *want,
                          uint32_t id, const uint8_t *order, bool burst)
{
    uint8_t seen[PARTS], expected[PARTS];
    uint32_t count = 0;

    expect(order, burst, expected);
    for (uint32_t i = 0; i < PARTS; i++) {
        struct frame one = part(answer, id, order[i]);

        send_frame(rig, &one);
        if (burst && i + 1 < PARTS)
            continue;
        turn(rig);
        count += take_parts(rig, want, id, seen + count);
    }
    assert_int_equal(count, PARTS);
    assert_memory_equal(seen, expected, PARTS);
}

/* The whole answer as it leaves; its fragments must leave as fragments of that. */
static struct frame translated(struct rig *rig, const struct frame *answer)
{
    struct frame want;

    assert_true(pass(rig, *answer, &want));
    want.ip_length = want.length - L3;
    return want;
}

static void in_any_order(void **state)
{
    struct rig *rig = *state;
    uint32_t id = 1000;

    for (uint8_t family = 4; family <= 6; family += 2) {
        struct frame answer, want;

        publish_full(rig, family, 0, 1);
        for (uint32_t payload = 1001; payload < 1300; payload += 99) {
            answer = answer_of(family, open_session(rig, family), payload);
            want = translated(rig, &answer);
            for (uint32_t o = 0; o < 6; o++) {
                send_in_order(rig, &answer, &want, ++id, orders[o], true);
                send_in_order(rig, &answer, &want, ++id, orders[o], false);
            }
        }
    }
    assert_int_equal(count_drops(rig), 0);
    assert_int_equal(counters(rig)->held_packets, 0);
    assert_int_equal(counters(rig)->fragments, 2 * 4 * 6 * 2 * PARTS);
}

/* Behind a PROXY header the server's acknowledgements are moved back: in the first fragment, whose
 * checksum is that of the whole segment. */
static void with_a_proxy_header(void **state)
{
    struct rig *rig = *state;

    for (uint8_t family = 4; family <= 6; family += 2) {
        struct frame out, answer, want;
        uint32_t size = family == 6 ? 52 : 28;
        uint16_t port;

        publish_full(rig, family, HB_REWRITE_PROXY_V2, 1);
        assert_true(pass(rig, segment(family, false, 40000, SYN, 100, 0, 0), &out));
        port = (uint16_t)get16(&out, l4_of(family));
        assert_true(pass(rig, segment(family, true, port, SYN | ACK, 5000, 101, 0), &out));
        assert_true(pass(rig, segment(family, false, 40000, ACK, 101, 5001, 10), &out));
        answer = segment(family, true, port, ACK, 5001, 111 + size, 1200);
        want = translated(rig, &answer);
        assert_int_equal(get32(&want, l4_of(family) + 8), 111);
        for (uint32_t o = 0; o < 6; o++)
            send_in_order(rig, &answer, &want, 1 + o, orders[o], o % 2);
    }
}

static void faults(void **state)
{
    struct rig *rig = *state;
    struct frame answer, tiny, other;
    uint32_t port;

    publish_full(rig, 4, 0, 1);
    port = open_session(rig, 4);
    answer = answer_of(4, port, 1200);
    other = answer_of(4, port + 1, 1200);
    tiny = fragment(&answer, 1, 0, 8);
    tiny = fix4(cut_ip4(tiny, 24));
    drop(rig, "half a UDP header, and no multiple of eight", tiny, HB_DROP_FRAGMENT_LENGTH);
    drop(rig, "no session", part(&other, 2, 0), HB_DROP_NAT_NO_SESSION);
    drop(rig, "and what is behind it", part(&other, 2, 1), HB_DROP_NAT_NO_SESSION);
    send_frame(rig, &(struct frame[]){part(&answer, 3, 0)}[0]);
    turn(rig);
    take_all(rig, PORT);
    drop(rig, "once more", part(&answer, 3, 0), HB_DROP_FRAGMENT_DUPLICATE);
    drop(rig, "overlaps", fragment(&answer, 3, 440, 80), HB_DROP_FRAGMENT_OVERLAP);
    drop(rig, "after that", part(&answer, 3, 1), HB_DROP_FRAGMENT_REFUSED);
    answer = IP4(47, .source = "198.51.100.11", .destination = "198.51.100.64", .payload = 1200);
    drop(rig, "of another protocol", fragment(&answer, 4, 480, 480), HB_DROP_FRAGMENT);
    assert_int_equal(counters(rig)->held_packets, 0);
}

/* A first one that never comes: the others wait for half a second, 256 at most. */
static void bounded(void **state)
{
    struct rig *rig = *state;
    struct frame answer;

    publish_full(rig, 4, 0, 1);
    answer = answer_of(4, open_session(rig, 4), 1200);
    for (uint32_t id = 0; id < 400; id++) {
        struct frame one = part(&answer, id, 1);

        send_frame(rig, &one);
        turn(rig);
    }
    assert_int_equal(counters(rig)->held_packets, 256);
    assert_int_equal(counters(rig)->drops[HB_DROP_FRAGMENT_FULL], 400 - 256);
    advance(rig, 501);
    turn(rig);
    assert_int_equal(counters(rig)->held_packets, 0);
    assert_int_equal(counters(rig)->drops[HB_DROP_FRAGMENT_NO_FIRST], 256);
}

/* Fragments come to a worker by addresses alone: it finds out whose session it is, and hands them
 * over, the first one first. The other worker is only played. */
static void of_another_worker(void **state)
{
    struct rig *rig = *state;
    struct hb_worker *other = add_other_worker(rig);
    struct frame answer, want, one;
    uint8_t seen[PARTS];
    uint32_t port;

    publish_full(rig, 4, 0, 1);
    port = open_session(rig, 4);
    answer = answer_of(4, port + 1, 1200); /* the other's */
    for (uint32_t i = 0; i < PARTS; i++) {
        one = part(&answer, 9, orders[5][i]);
        send_frame(rig, &one);
        turn(rig);
        assert_int_equal(counters(rig)->nat_handovers, i + 1 < PARTS ? 0 : PARTS);
    }
    assert_int_equal(count_drops(rig), 0);
    answer = answer_of(4, port, 1200); /* ours, which the other one got */
    want = translated(rig, &answer);
    for (uint32_t i = 0; i < PARTS; i++) {
        one = part(&answer, 10, i);
        assert_true(hb_handover_give(other, 0, make_mbuf(&one, 128, 0)));
    }
    turn(rig);
    assert_int_equal(take_parts(rig, &want, 10, seen), PARTS);
    assert_int_equal(counters(rig)->nat_handovers, PARTS);
    remove_other_worker(rig, other);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(in_any_order), TEST(with_a_proxy_header), TEST(faults),
        TEST(bounded),      TEST(of_another_worker),
    };
    int failed = rig_open();

    if (failed != 0)
        return failed;
    failed = cmocka_run_group_tests_name("packets: fragments of full NAT", tests, NULL, NULL);
    rig_close();
    return failed;
}
