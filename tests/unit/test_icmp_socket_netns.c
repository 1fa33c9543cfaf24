/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_icmp_socket_netns.c: control's raw sockets under a flood of ICMP errors, in a namespace of
 * this process's own. Needs root; exits 77 when it may not.
 */
#include "net_test.h"

#include <malloc.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <net/if.h>

#include "halbach/types.h"
#include "icmp_socket.h"

#define SKIPPED 77
/* More than one wake-up takes, less than the socket's buffer holds. */
#define WAITING (4 * HB_ICMP_READS_MAX + 1)
#define FLOOD   20000
#define QUOTE   28

struct scene {
    struct event_base *base;
    struct hb_icmp_socket *icmp;
    uint8_t family;
    int sender;
    uint64_t heard;
    uint64_t others; /* turns that something else on the same loop had */
};

static void note(void *context, uint8_t family, const uint8_t *message, size_t size)
{
    struct scene *scene = context;

    assert_int_equal(family, scene->family);
    assert_int_equal(message[0], family == HB_FAMILY_IPV6 ? ICMP6_DST_UNREACH : 3);
    assert_int_equal(size, 8 + QUOTE);
    scene->heard++;
}

static void open_scene(struct scene *scene, uint8_t family)
{
    bool ipv4 = family == HB_FAMILY_IPV4;

    *scene = (struct scene){.family = family, .base = event_base_new()};
    scene->icmp = hb_icmp_socket_open(scene->base, family, note, scene);
    assert_non_null(scene->icmp);
    scene->sender =
        socket(ipv4 ? AF_INET : AF_INET6, SOCK_RAW, ipv4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
    assert_true(scene->sender >= 0);
}

static void close_scene(struct scene *scene)
{
    close(scene->sender);
    hb_icmp_socket_close(scene->icmp);
    event_base_free(scene->base);
}

/* The quote is of no packet of ours; the checksum of IPv4 is the listener's to look at. */
static void send_one(struct scene *scene, uint8_t type)
{
    struct sockaddr_in to4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    bool ipv4 = scene->family == HB_FAMILY_IPV4;
    uint8_t message[8 + QUOTE] = {type};

    assert_int_equal(sendto(scene->sender, message, sizeof(message), 0,
                            ipv4 ? (struct sockaddr *)&to4 : (struct sockaddr *)&to6,
                            ipv4 ? sizeof(to4) : sizeof(to6)),
                     sizeof(message));
}

static void send_error(struct scene *scene)
{
    send_one(scene, scene->family == HB_FAMILY_IPV6 ? ICMP6_DST_UNREACH : 3);
}

/* However many wait, a wake-up takes a bounded number, and the next comes after a rest. */
static void one_wake_up(uint8_t family)
{
    struct scene scene;

    open_scene(&scene, family);
    for (int i = 0; i < WAITING; i++)
        send_error(&scene);
    while (scene.heard < WAITING) {
        uint64_t before = scene.heard;

        assert_int_equal(event_base_loop(scene.base, EVLOOP_ONCE), 0);
        assert_in_range(scene.heard - before, 0, HB_ICMP_READS_MAX);
    }
    assert_int_equal(scene.heard, WAITING);
    close_scene(&scene);
}

static void test_one_wake_up(void **state)
{
    (void)state;
    one_wake_up(HB_FAMILY_IPV4);
    one_wake_up(HB_FAMILY_IPV6);
}

static void take_turn(evutil_socket_t fd, short what, void *context)
{
    struct scene *scene = context;

    (void)fd, (void)what;
    scene->others++;
}

/* With more coming than is read, others on the loop have their turn, and memory stays as it is:
 * what does not fit into the socket's buffer is lost. */
static void test_a_flood(void **state)
{
    struct scene scene;
    struct event *other;
    size_t memory;

    (void)state;
    open_scene(&scene, HB_FAMILY_IPV4);
    other = event_new(scene.base, -1, EV_PERSIST, take_turn, &scene);
    assert_non_null(other);
    send_error(&scene);
    event_base_loop(scene.base, EVLOOP_ONCE);
    memory = mallinfo2().uordblks;
    for (uint64_t turns = 1; turns <= FLOOD / 100; turns++) {
        for (int i = 0; i < 100; i++)
            send_error(&scene);
        event_active(other, EV_TIMEOUT, 0);
        event_base_loop(scene.base, EVLOOP_NONBLOCK);
        assert_int_equal(scene.others, turns);
        assert_true(scene.heard <= 1 + turns * HB_ICMP_READS_MAX);
    }
    assert_int_equal(mallinfo2().uordblks, memory);
    event_free(other);
    close_scene(&scene);
}

/* Pings and what else is no error wake nobody. */
static void test_only_errors_are_heard(void **state)
{
    struct scene scene;

    (void)state;
    open_scene(&scene, HB_FAMILY_IPV4);
    send_one(&scene, 8);
    send_one(&scene, 5);
    send_one(&scene, 0);
    event_base_loop(scene.base, EVLOOP_NONBLOCK);
    assert_int_equal(scene.heard, 0);
    send_error(&scene);
    event_base_loop(scene.base, EVLOOP_ONCE);
    assert_int_equal(scene.heard, 1);
    close_scene(&scene);
}

static bool has_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    bool done = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;

    close(fd);
    return done;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_wake_up),
        cmocka_unit_test(test_a_flood),
        cmocka_unit_test(test_only_errors_are_heard),
    };

    if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0 || !has_loopback()) {
        printf("skipped: needs root and a network namespace of its own\n");
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
