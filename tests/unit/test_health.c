/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_health.c: the scheduler and the TCP checker against real sockets on the loopback interface.
 *
 * Nothing here depends on how fast the machine is: each test waits for what must come, with a
 * generous limit, and counts.
 */
#include "net_test.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "health/checker.h"
#include "health/health.h"

#define LIMIT_S     20
#define STARTS_MAX  64
#define SILENT_HELD 8

struct bench {
    struct event_base *base;
    struct hb_health *health;
};

struct probed {
    struct bench *bench;
    struct hb_health_target *target;
    uint32_t results;
    uint32_t wanted; /* leave the loop when there are that many */
    uint32_t reasons[HB_PROBE_LOCAL_ERROR + 1];
    struct hb_probe_result last;
    uint64_t starts_ms[STARTS_MAX];
    uint64_t planned_us[STARTS_MAX]; /* give or take a millisecond */
    struct hb_health_config config;
    struct probed *removes; /* another target to remove at the first result */
};

static int set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));

    bench->base = event_base_new();
    bench->health = hb_health_open(bench->base);
    *state = bench;
    return bench->base && bench->health ? 0 : -1;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;

    hb_health_close(bench->health);
    event_base_free(bench->base);
    free(bench);
    return 0;
}

static void on_limit(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    (void)context;
    fail_msg("nothing came within %d s", LIMIT_S);
}

static void on_result(void *context, const struct hb_probe_result *result)
{
    struct probed *probed = context;

    assert_int_equal(result->success, result->reason == HB_PROBE_OK);
    if (probed->results < STARTS_MAX) {
        probed->starts_ms[probed->results] = result->started_ms;
        probed->planned_us[probed->results] = result->started_ms * 1000 + 999 - result->late_us;
    }
    probed->results++;
    probed->reasons[result->reason]++;
    probed->last = *result;
    if (probed->removes) {
        hb_health_remove(probed->removes->target);
        probed->removes = NULL;
    }
    if (probed->results == probed->wanted)
        event_base_loopbreak(probed->bench->base);
}

/* Lets the loop turn until a target has `count` more results. */
static void wait_for_results(struct probed *probed, uint32_t count)
{
    static const struct timeval limit = {.tv_sec = LIMIT_S};
    struct event *timer = evtimer_new(probed->bench->base, on_limit, NULL);

    probed->wanted = probed->results + count;
    evtimer_add(timer, &limit);
    event_base_dispatch(probed->bench->base);
    event_free(timer);
    assert_true(probed->results >= probed->wanted);
}

static void probe(struct bench *bench, struct probed *probed, const char *address, uint16_t port,
                  uint32_t interval_ms, uint32_t timeout_ms)
{
    struct hb_address to = address_of(address);

    memset(probed, 0, sizeof(*probed));
    probed->bench = bench;
    probed->config = (struct hb_health_config){
        .type = HB_HEALTH_TCP, .port = port, .interval_ms = interval_ms, .timeout_ms = timeout_ms};
    probed->target = hb_health_add(bench->health, &to, &probed->config, NULL, on_result, probed);
    assert_non_null(probed->target);
    assert_int_equal(probed->results, 0);
}

/* A socket bound to some free port of the loopback address; it refuses connections until it
 * listens. */
static int bind_port(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static int serve_port(uint16_t *port)
{
    int fd = bind_port(port);

    assert_int_equal(listen(fd, 4096), 0);
    return fd;
}

/* A port that never answers: the queue of its listener is full, so the kernel ignores each SYN. */
struct silent_port {
    int listener;
    int held[SILENT_HELD];
};

static void open_silent_port(struct silent_port *silent, uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};

    silent->listener = bind_port(port);
    assert_int_equal(listen(silent->listener, 0), 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(*port);
    for (int i = 0; i < SILENT_HELD; i++) {
        silent->held[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        connect(silent->held[i], (struct sockaddr *)&address, sizeof(address));
    }
}

static void close_silent_port(struct silent_port *silent)
{
    for (int i = 0; i < SILENT_HELD; i++)
        close(silent->held[i]);
    close(silent->listener);
}

static uint64_t read_clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* --- One target --- */

static void test_accepting(void **state)
{
    struct probed probed;
    uint64_t before_ms = read_clock_ms();
    uint16_t port;
    int server = serve_port(&port);

    probe(*state, &probed, "127.0.0.1", port, 50, 40);
    wait_for_results(&probed, 3);
    assert_int_equal(probed.reasons[HB_PROBE_OK], 3);
    assert_in_range(probed.last.started_ms, before_ms, read_clock_ms());
    assert_true(probed.starts_ms[0] < probed.starts_ms[1]);
    close(server);
}

static void test_accepting_ipv6(void **state)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t size = sizeof(address);
    struct probed probed;
    int server = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (server < 0 || bind(server, (struct sockaddr *)&address, size) < 0) {
        print_message("this machine has no IPv6 loopback address\n");
        skip();
    }
    assert_int_equal(getsockname(server, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(listen(server, 16), 0);
    probe(*state, &probed, "::1", ntohs(address.sin6_port), 50, 40);
    wait_for_results(&probed, 1);
    assert_int_equal(probed.last.reason, HB_PROBE_OK);
    close(server);
}

/* BL-96: the connection ends by RST, which leaves no TIME_WAIT on either side. */
static void test_closed_by_reset(void **state)
{
    struct probed probed;
    uint16_t port;
    int server = serve_port(&port), connection;
    char byte;

    probe(*state, &probed, "127.0.0.1", port, 1000, 900);
    wait_for_results(&probed, 1);
    connection = accept(server, NULL, NULL);
    assert_true(connection >= 0);
    assert_int_equal(read(connection, &byte, 1), -1);
    assert_int_equal(errno, ECONNRESET);
    close(connection);
    close(server);
}

static void test_refused_then_served(void **state)
{
    struct probed probed;
    uint16_t port;
    int server = bind_port(&port);

    probe(*state, &probed, "127.0.0.1", port, 50, 40);
    wait_for_results(&probed, 3);
    assert_int_equal(probed.reasons[HB_PROBE_REFUSED], 3);
    assert_int_equal(listen(server, 16), 0);
    wait_for_results(&probed, 2);
    assert_int_equal(probed.last.reason, HB_PROBE_OK);
    close(server);
}

static void test_silent(void **state)
{
    struct silent_port silent;
    struct probed probed;
    uint16_t port;

    open_silent_port(&silent, &port);
    probe(*state, &probed, "127.0.0.1", port, 100, 80);
    wait_for_results(&probed, 2);
    assert_int_equal(probed.reasons[HB_PROBE_TIMEOUT], 2);
    assert_true(probed.last.duration_us >= 79000);
    close_silent_port(&silent);
}

/* Even with a time limit longer than the interval (the configuration forbids it) there is one probe
 * at a time, and the turns that fall into it are left out. */
static void test_never_two_at_once(void **state)
{
    struct silent_port silent;
    struct probed probed;
    uint16_t port;

    open_silent_port(&silent, &port);
    probe(*state, &probed, "127.0.0.1", port, 50, 200);
    wait_for_results(&probed, 3);
    assert_int_equal(probed.reasons[HB_PROBE_TIMEOUT], 3);
    assert_true(probed.starts_ms[1] - probed.starts_ms[0] >= 199);
    assert_true(probed.starts_ms[2] - probed.starts_ms[1] >= 199);
    close_silent_port(&silent);
}

/* An error of connect() itself is a result like any other: from the event loop, again and again. */
static void test_error_at_once(void **state)
{
    struct probed probed;

    probe(*state, &probed, "255.255.255.255", 80, 50, 40);
    wait_for_results(&probed, 3);
    assert_int_equal(probed.reasons[HB_PROBE_UNREACHABLE], 3);
}

static void test_no_descriptors_is_nobodys_failure(void **state)
{
    struct rlimit before, none = {0};
    struct probed probed;
    uint16_t port;
    int server = serve_port(&port);

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none.rlim_max = before.rlim_max;
    probe(*state, &probed, "127.0.0.1", port, 50, 40);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    wait_for_results(&probed, 2);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(probed.reasons[HB_PROBE_LOCAL_ERROR], 2);
    wait_for_results(&probed, 1);
    assert_int_equal(probed.last.reason, HB_PROBE_OK);
    close(server);
}

static void test_bad_configuration(void **state)
{
    struct bench *bench = *state;
    struct hb_address address = address_of("127.0.0.1");
    struct hb_health_config config = {.type = HB_HEALTH_NONE, .port = 80, .interval_ms = 1000};

    assert_null(hb_health_add(bench->health, &address, &config, NULL, on_result, NULL));
    assert_int_equal(errno, EINVAL);
    config.type = HB_HEALTH_TCP;
    config.port = 0;
    assert_null(hb_health_add(bench->health, &address, &config, NULL, on_result, NULL));
    assert_int_equal(errno, EINVAL);
}

/* --- The checker alone --- */

static void on_check_done(void *context, enum hb_probe_reason reason, const char *detail)
{
    (void)detail;
    *(int *)context = (int)reason;
}

/* Control was busy for longer than the time limit, and the answer was there all the time. */
static void test_answer_counts_after_a_stall(void **state)
{
    static const struct timespec stall = {.tv_nsec = 50000000};
    struct bench *bench = *state;
    struct hb_health_config config = {.type = HB_HEALTH_TCP, .timeout_ms = 10};
    struct hb_address address = address_of("127.0.0.1");
    struct hb_check_way way = {.to = address};
    const char *detail = NULL;
    struct hb_check *check;
    int server = serve_port(&config.port), reason = -1;

    check = hb_checker_tcp.create(&(struct hb_check_setup){.base = bench->base,
                                                           .config = &config,
                                                           .way = &way,
                                                           .address = &address,
                                                           .done = on_check_done,
                                                           .context = &reason});
    assert_int_equal(hb_checker_tcp.begin(check, &detail), HB_PROBE_UNDER_WAY);
    nanosleep(&stall, NULL);
    assert_int_equal(reason, -1);
    event_base_dispatch(bench->base); /* returns when nothing is pending any more */
    assert_int_equal(reason, HB_PROBE_OK);
    hb_checker_tcp.destroy(check);
    close(server);
}

/* --- Several targets --- */

static void on_forbidden_result(void *context, const struct hb_probe_result *result)
{
    (void)context;
    (void)result;
    fail_msg("a removed target reported a result");
}

static void test_removed_under_way(void **state)
{
    struct bench *bench = *state;
    struct hb_health_config config = {.type = HB_HEALTH_TCP, .interval_ms = 400, .timeout_ms = 300};
    struct hb_address address = address_of("127.0.0.1");
    struct hb_health_target *target;
    struct silent_port silent;
    struct probed other;
    uint16_t port;
    int server = serve_port(&port);

    open_silent_port(&silent, &config.port);
    /* Added first it starts first; so it is under way when the other one has its first result. */
    target = hb_health_add(bench->health, &address, &config, NULL, on_forbidden_result, NULL);
    probe(bench, &other, "127.0.0.1", port, 100, 80);
    wait_for_results(&other, 1);
    hb_health_remove(target);
    wait_for_results(&other, 6); /* beyond the time limit of the removed one */
    close_silent_port(&silent);
    close(server);
}

static void test_removes_itself_and_another(void **state)
{
    struct bench *bench = *state;
    struct probed first, second, last;
    uint16_t port;
    int server = serve_port(&port);

    probe(bench, &first, "127.0.0.1", port, 100, 80);
    probe(bench, &second, "127.0.0.1", port, 100, 80);
    probe(bench, &last, "127.0.0.1", port, 100, 80);
    first.removes = &first;
    last.removes = &second;
    wait_for_results(&last, 5);
    assert_int_equal(first.results, 1);
    assert_in_range(second.results, 0, 1);
    close(server);
}

static void test_slow_one_delays_no_other(void **state)
{
    struct silent_port silent;
    struct probed slow, fast;
    uint16_t port, silent_port;
    int server = serve_port(&port);

    open_silent_port(&silent, &silent_port);
    probe(*state, &slow, "127.0.0.1", silent_port, 60000, 50000);
    probe(*state, &fast, "127.0.0.1", port, 20, 15);
    wait_for_results(&fast, 20);
    assert_int_equal(slow.results, 0);
    close_silent_port(&silent);
    close(server);
}

#define MANY 200

/* All are probed, each goes on on its own, and they do not start all at once. */
static void test_many(void **state)
{
    struct probed *all = calloc(MANY, sizeof(*all));
    uint32_t started[21] = {0}, most = 0;
    uint64_t first_ms = UINT64_MAX;
    uint16_t port;
    int server = serve_port(&port);

    for (int i = 0; i < MANY; i++)
        probe(*state, &all[i], "127.0.0.1", port, 1000, 900);
    for (int i = 0; i < MANY; i++) {
        if (all[i].results < 2)
            wait_for_results(&all[i], 2 - all[i].results);
        first_ms = all[i].starts_ms[0] < first_ms ? all[i].starts_ms[0] : first_ms;
    }
    for (int i = 0; i < MANY; i++) {
        uint64_t place = (all[i].starts_ms[1] - first_ms) / 100;

        assert_int_equal(all[i].reasons[HB_PROBE_OK], all[i].results);
        started[place < 20 ? place : 20]++;
    }
    for (int i = 0; i <= 20; i++)
        most = started[i] > most ? started[i] : most;
    /* 20 on an idle machine; test_plan.c has the exact rule. */
    assert_true(most <= MANY / 2);
    free(all);
    close(server);
}

/* ---- BL-96: two thousand targets, one of which swallows every SYN ---- */

#define CROWD         2000
#define CROWD_RESULTS 3

struct crowd {
    struct bench *bench;
    struct hb_health_target *target[CROWD];
    uint32_t results[CROWD];
    uint32_t failures;
    uint32_t complete;    /* targets with all their results */
    uint32_t planned[10]; /* second starts, by tenth of the interval */
    uint32_t latest_us;
};

struct crowd_member {
    struct crowd *crowd;
    uint32_t number;
};

static void on_crowd_result(void *context, const struct hb_probe_result *result)
{
    struct crowd_member *member = context;
    struct crowd *crowd = member->crowd;
    uint32_t count = ++crowd->results[member->number];

    crowd->failures += !result->success;
    if (count == 2)
        crowd->planned[(result->started_ms * 1000 - result->late_us) / 100000 % 10]++;
    if (result->late_us > crowd->latest_us)
        crowd->latest_us = result->late_us;
    crowd->complete += count == CROWD_RESULTS;
    if (crowd->complete == CROWD)
        event_base_loopbreak(crowd->bench->base);
}

static void on_connection(evutil_socket_t listener, short what, void *context)
{
    int fd;

    (void)what;
    (void)context;
    while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        close(fd);
}

/* Connections to or from a port that wait for 2 MSL (state 06 of /proc/net/tcp). */
static unsigned count_time_wait(uint16_t port)
{
    FILE *file = fopen("/proc/net/tcp", "re");
    char line[256];
    unsigned count = 0, local, remote, state;

    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL)
        count += sscanf(line, " %*d: %*8x:%x %*8x:%x %x", &local, &remote, &state) == 3 &&
                 (local == port || remote == port) && state == 6;
    fclose(file);
    return count;
}

static void test_a_crowd(void **state)
{
    static const struct timeval limit = {.tv_sec = 60};
    struct bench *bench = *state;
    struct crowd *crowd = calloc(1, sizeof(*crowd));
    struct crowd_member *members = calloc(CROWD, sizeof(*members));
    struct hb_health_config config = {
        .type = HB_HEALTH_TCP, .interval_ms = 1000, .timeout_ms = 990};
    struct hb_address address = address_of("127.0.0.1");
    struct event *timer = evtimer_new(bench->base, on_limit, NULL), *accepting;
    uint32_t most = 0, least = UINT32_MAX;
    struct silent_port silent;
    struct probed stuck;
    uint16_t silent_port;
    int server = serve_port(&config.port);

    open_silent_port(&silent, &silent_port);
    evutil_make_socket_nonblocking(server);
    accepting = event_new(bench->base, server, EV_READ | EV_PERSIST, on_connection, NULL);
    event_add(accepting, NULL);
    crowd->bench = bench;
    probe(bench, &stuck, "127.0.0.1", silent_port, 1000, 990);
    for (uint32_t i = 0; i < CROWD; i++) {
        members[i] = (struct crowd_member){crowd, i};
        crowd->target[i] =
            hb_health_add(bench->health, &address, &config, NULL, on_crowd_result, &members[i]);
        assert_non_null(crowd->target[i]);
    }
    evtimer_add(timer, &limit);
    event_base_dispatch(bench->base);
    for (int i = 0; i < 10; i++) {
        most = crowd->planned[i] > most ? crowd->planned[i] : most;
        least = crowd->planned[i] < least ? crowd->planned[i] : least;
    }
    print_message("starts a tenth of the interval: %u to %u; the latest was %u ms late\n", least,
                  most, crowd->latest_us / 1000);
    assert_int_equal(crowd->complete, CROWD);
    assert_int_equal(crowd->failures, 0);
    assert_true(most <= 2 * least);
    assert_int_equal(stuck.reasons[HB_PROBE_OK], 0);
    assert_int_equal(count_time_wait(config.port), 0);
    for (uint32_t i = 0; i < CROWD; i++)
        hb_health_remove(crowd->target[i]);
    hb_health_remove(stuck.target);
    event_free(accepting);
    event_free(timer);
    close_silent_port(&silent);
    close(server);
    free(members);
    free(crowd);
}

/* BL-84: jitter moves each start by another part of it, and none out of its interval. */
static void test_jitter(void **state)
{
    struct bench *bench = *state;
    struct hb_health_config config = {
        .type = HB_HEALTH_TCP, .interval_ms = 50, .timeout_ms = 20, .jitter_ms = 25};
    struct hb_address address = address_of("127.0.0.1");
    struct probed probed = {.bench = bench};
    uint64_t least_us = UINT64_MAX, most_us = 0;
    int server = serve_port(&config.port);

    probed.target = hb_health_add(bench->health, &address, &config, NULL, on_result, &probed);
    assert_non_null(probed.target);
    wait_for_results(&probed, 21);
    /* The first target's place is the beginning of the interval. */
    for (uint32_t i = 1; i < probed.results && i < STARTS_MAX; i++) {
        uint64_t place_us = probed.planned_us[i] % 50000;

        assert_in_range(place_us, 0, 27000);
        least_us = place_us < least_us ? place_us : least_us;
        most_us = place_us > most_us ? place_us : most_us;
    }
    assert_true(most_us - least_us > 5000);
    close(server);
}

static void test_reason_texts(void **state)
{
    (void)state;
    for (int a = 0; a <= HB_PROBE_LOCAL_ERROR; a++) {
        for (int b = 0; b < a; b++)
            assert_string_not_equal(hb_probe_reason_text(a), hb_probe_reason_text(b));
    }
    assert_non_null(hb_probe_reason_text(99));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_accepting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_accepting_ipv6, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_closed_by_reset, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused_then_served, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_silent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_never_two_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_error_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_descriptors_is_nobodys_failure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_configuration, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_answer_counts_after_a_stall, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_removed_under_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_removes_itself_and_another, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_slow_one_delays_no_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_crowd, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_jitter, set_up, tear_down),
        cmocka_unit_test(test_reason_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
