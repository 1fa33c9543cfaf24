/* SPDX-License-Identifier: BSD-3-Clause */
/* The way to the kernel and back: what is limited, and that the classes do not touch each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

#define RATE 1000 /* so a burst of 100, then one each millisecond */

static const struct hb_worker_counters *counters(const struct rig *rig)
{
    return hb_counters_worker(rig->region, 0);
}

static struct rig *start(void **state, uint32_t rate)
{
    struct rig *rig = *state;

    rig->settings.punt_rate = rate;
    publish_one_backend(rig, 4);
    rig->worker->config.kernel[0] = (struct hb_kernel_way){true, PUNT_PORT};
    return rig;
}

/* How many of `count` such frames reach the kernel, sent at one instant. */
static uint32_t punted(struct rig *rig, struct frame frame, uint32_t count)
{
    uint32_t got = 0;
    struct frame out;

    while (count-- > 0) {
        send_frame(rig, &frame);
        turn(rig);
        while (receive(rig, PUNT_PORT, &out)) {
            assert_frame("as it came", &out, &frame);
            got++;
        }
    }
    return got;
}

static struct frame to_host(uint8_t protocol)
{
    return fix4(poke_address(poke8(TCP4(), 14 + 9, protocol), 14 + 16, "198.51.100.10"));
}

static void a_flood_is_cut_to_the_rate(void **state)
{
    struct rig *rig = start(state, RATE);

    assert_int_equal(punted(rig, to_host(1), 300), 100);
    assert_int_equal(counters(rig)->drops[HB_DROP_PUNT_LIMIT], 200);
    assert_int_equal(counters(rig)->punted_packets, 100);
    rig->now_ms += 7;
    assert_int_equal(punted(rig, to_host(17), 300), 7);
}

/* BL-41: while the class of all else is used up, each of these has its own hundred. */
static void what_keeps_the_host_reachable_has_its_own_rate(void **state)
{
    struct rig *rig = start(state, RATE);
    struct frame bgp = fix4(poke_address(TCP4(.destination_port = 179), 14 + 16, "198.51.100.10"));
    struct frame bgp_answer =
        fix4(poke_address(TCP4(.source_port = 179), 14 + 16, "198.51.100.10"));
    struct frame bfd = fix4(poke_address(UDP4(.destination_port = 3784), 14 + 16, "198.51.100.10"));
    struct frame ssh = fix4(poke_address(TCP4(.destination_port = 22), 14 + 16, "198.51.100.10"));
    struct frame nd = poke8(poke8(UDP6(), 14 + 6, 58), 14 + 40, 135);
    struct frame echo = poke8(poke8(UDP6(), 14 + 6, 58), 14 + 40, 128);

    nd = poke_address(nd, 14 + 24, "2001:db8:0:1::10");
    echo = poke_address(echo, 14 + 24, "2001:db8:0:1::10");
    assert_int_equal(punted(rig, ssh, 300), 100);
    assert_int_equal(punted(rig, echo, 10), 0);
    assert_int_equal(punted(rig, build_arp(), 40), 40);
    assert_int_equal(punted(rig, bgp, 20), 20);
    assert_int_equal(punted(rig, bgp_answer, 20), 20);
    assert_int_equal(punted(rig, bfd, 10), 10);
    assert_int_equal(punted(rig, nd, 300), 10); /* which is the last of the hundred */
    assert_int_equal(punted(rig, ssh, 10), 0);
}

static void no_limit_and_no_generation(void **state)
{
    struct rig *rig = start(state, 0);

    assert_int_equal(punted(rig, to_host(1), 300), 300);
    assert_int_equal(counters(rig)->drops[HB_DROP_PUNT_LIMIT], 0);
}

/* BL-41: a VIP's packets are not the kernel's, however many there are of either. */
static void vips_are_not_touched(void **state)
{
    struct rig *rig = start(state, 1);

    punted(rig, to_host(1), 50);
    for (uint16_t i = 0; i < 200; i++)
        assert_int_equal(B(rig, TCP4(.source_port = 1 + i)), 1);
}

/* Frames shorter than what the judge reads, of every length: no byte behind the end decides. */
static void cut_frames_are_judged_by_what_is_there(void **state)
{
    struct rig *rig = start(state, 1000000);
    struct frame frames[] = {to_host(6), build_arp(),
                             poke_address(poke8(UDP6(), 14 + 6, 58), 14 + 24, "2001:db8:0:1::10")};

    rig->tight = true;
    for (uint32_t kind = 0; kind < 3; kind++) {
        for (uint32_t length = 1; length <= frames[kind].length; length++) {
            struct frame frame = cut(frames[kind], length), out;
            uint64_t ended = counters(rig)->punted_packets + count_drops(rig);

            send_frame(rig, &frame);
            turn(rig);
            while (receive(rig, PUNT_PORT, &out))
                assert_frame("as it came", &out, &frame);
            assert_int_equal(counters(rig)->punted_packets + count_drops(rig), ended + 1);
        }
    }
}

static void the_kernels_packets_leave(void **state)
{
    struct rig *rig = start(state, 1);
    struct frame frame = build_arp(), out;

    for (uint32_t i = 0; i < 5; i++)
        send_from_kernel(&frame);
    turn(rig);
    for (uint32_t i = 0; i < 5; i++) {
        assert_true(receive(rig, PORT, &out));
        assert_frame("as it came", &out, &frame);
    }
    assert_false(receive(rig, PORT, &out));
    assert_int_equal(counters(rig)->kernel_packets, 5);
    assert_int_equal(counters(rig)->rx_packets, 0);
    assert_int_equal(counters(rig)->tx_packets, 0);
    rig->worker->config.ports[0] = NARROW_PORT; /* takes three */
    for (uint32_t i = 0; i < 5; i++)
        send_from_kernel(&frame);
    turn(rig);
    assert_int_equal(counters(rig)->kernel_packets, 8);
    assert_int_equal(counters(rig)->kernel_losses, 2);
    take_all(rig, NARROW_PORT);
    rig->worker->config.ports[0] = PORT;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_flood_is_cut_to_the_rate),
        TEST(what_keeps_the_host_reachable_has_its_own_rate),
        TEST(no_limit_and_no_generation),
        TEST(vips_are_not_touched),
        TEST(cut_frames_are_judged_by_what_is_there),
        TEST(the_kernels_packets_leave),
    };
    int failed = rig_open();

    if (failed == 0)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return failed;
}
