/* SPDX-License-Identifier: BSD-3-Clause */
/* test_check_udp.c: the checks that send one packet, UDP and ICMP, against this machine. */
#include "check_fixture.h"

#include <errno.h>
#include <fcntl.h>

struct server {
    int fd;
    uint16_t port;
    struct event *event;
    const char *answer; /* NULL: silent */
    unsigned asked;
    char question[64];
};

static void on_question(evutil_socket_t fd, short what, void *context)
{
    struct server *server = context;
    struct sockaddr_storage from;
    socklen_t size = sizeof(from);
    ssize_t got = recvfrom(fd, server->question, sizeof(server->question) - 1, 0,
                           (struct sockaddr *)&from, &size);

    (void)what;
    if (got < 0)
        return;
    server->question[got] = '\0';
    server->asked++;
    if (server->answer)
        sendto(fd, server->answer, strlen(server->answer), 0, (struct sockaddr *)&from, size);
}

static void serve(struct check_bench *bench, struct server *server, const char *answer)
{
    memset(server, 0, sizeof(*server));
    server->fd = bind_loopback(SOCK_DGRAM, &server->port);
    server->answer = answer;
    set_up_bench(bench, &hb_checker_udp, "127.0.0.1", server->port);
    server->event = event_new(bench->base, server->fd, EV_READ | EV_PERSIST, on_question, server);
    event_add(server->event, NULL);
    bench->config.send = (struct hb_check_bytes){4, "ping"};
}

static void end(struct check_bench *bench, struct server *server)
{
    event_free(server->event);
    close(server->fd);
    tear_down_bench(bench);
}

/* BL-94 (a), (g). */
static void test_expected_answer(void **state)
{
    struct check_bench bench;
    struct server server;

    (void)state;
    serve(&bench, &server, "pong and more");
    bench.config.expect = (struct hb_check_bytes){4, "pong"};
    ASSERT_PROBE(&bench, HB_PROBE_OK, "");
    assert_string_equal(server.question, "ping");
    server.answer = "pon";
    ASSERT_PROBE(&bench, HB_PROBE_WRONG, "not with the expected bytes");
    server.answer = "";
    ASSERT_PROBE(&bench, HB_PROBE_WRONG, "not with the expected bytes");
    server.answer = "pong";
    ASSERT_PROBE(&bench, HB_PROBE_OK, "");
    end(&bench, &server);
}

/* BL-94 (b): silence is a failure where an answer is expected, and never more than an assumption
 * where none is. */
static void test_silence(void **state)
{
    struct check_bench bench;
    struct server server;

    (void)state;
    serve(&bench, &server, NULL);
    bench.config.timeout_ms = 50;
    bench.config.expect = (struct hb_check_bytes){4, "pong"};
    ASSERT_PROBE(&bench, HB_PROBE_TIMEOUT, "");
    bench.config.expect.length = 0;
    ASSERT_PROBE(&bench, HB_PROBE_ASSUMED, "assumed");
    ASSERT_PROBE(&bench, HB_PROBE_ASSUMED, "assumed");
    assert_int_equal(server.asked, 3);
    server.answer = "anything";
    ASSERT_PROBE(&bench, HB_PROBE_ASSUMED, "assumed");
    end(&bench, &server);
}

static int bind_again(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* BL-94 (c): both kinds of check fail where the port is closed. */
static void test_closed_port(void **state)
{
    struct check_bench bench;
    struct server server;

    (void)state;
    serve(&bench, &server, NULL);
    event_del(server.event);
    close(server.fd);
    bench.config.expect = (struct hb_check_bytes){4, "pong"};
    ASSERT_PROBE(&bench, HB_PROBE_REFUSED, "port is closed");
    bench.config.expect.length = 0;
    ASSERT_PROBE(&bench, HB_PROBE_REFUSED, "port is closed");
    ASSERT_PROBE(&bench, HB_PROBE_REFUSED, "port is closed");
    /* It listens again, and says nothing: too early to assume anything. */
    server.fd = bind_again(server.port);
    bench.config.timeout_ms = 50;
    ASSERT_PROBE(&bench, HB_PROBE_UNSURE, "");
    close(server.fd);
    server.fd = -1;
    end(&bench, &server);
}

/* An ICMP error that comes between two probes counts for the second. */
static void test_late_error(void **state)
{
    struct check_bench bench;
    struct server server;
    uint16_t port;

    (void)state;
    serve(&bench, &server, NULL);
    bench.config.timeout_ms = 50;
    ASSERT_PROBE(&bench, HB_PROBE_ASSUMED, "assumed");
    event_del(server.event);
    port = server.port;
    close(server.fd);
    /* The socket of the check is still there; a packet to the closed port from it brings the error
     * in. That socket is the only one connected to the port. */
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_in peer;
        socklen_t size = sizeof(peer);

        if (getpeername(fd, (struct sockaddr *)&peer, &size) == 0 && peer.sin_port == htons(port))
            assert_int_equal(send(fd, "x", 1, 0), 1);
    }
    begin_probe(&bench);
    assert_int_equal(bench.reason, HB_PROBE_REFUSED); /* at once, before anything was sent */
    server.fd = -1;
    end(&bench, &server);
}

/* A late answer to an earlier question is none to this one. */
static void test_late_answer(void **state)
{
    struct check_bench bench;
    struct server server;
    struct sockaddr_in from;
    socklen_t size = sizeof(from);
    char byte;

    (void)state;
    serve(&bench, &server, NULL);
    event_del(server.event);
    bench.config.timeout_ms = 50;
    bench.config.expect = (struct hb_check_bytes){4, "pong"};
    ASSERT_PROBE(&bench, HB_PROBE_TIMEOUT, "");
    assert_int_equal(recvfrom(server.fd, &byte, 1, 0, (struct sockaddr *)&from, &size), 1);
    begin_probe(&bench);
    sendto(server.fd, "pong", 4, 0, (struct sockaddr *)&from, size);
    assert_int_equal(end_probe(&bench), HB_PROBE_TIMEOUT);
    end(&bench, &server);
}

static void test_no_route_fails_at_once(void **state)
{
    struct check_bench bench;

    (void)state;
    set_up_bench(&bench, &hb_checker_udp, "255.255.255.255", 9);
    bench.config.send = (struct hb_check_bytes){4, "ping"};
    begin_probe(&bench);
    assert_int_equal(bench.reason, HB_PROBE_UNREACHABLE);
    tear_down_bench(&bench);
}

/* --- ICMP --- */

static void ping(const char *address)
{
    struct check_bench bench;

    set_up_bench(&bench, &hb_checker_icmp, address, 0);
    if (probe_once(&bench) == HB_PROBE_LOCAL_ERROR) {
        tear_down_bench(&bench);
        print_message("this user may not send echo requests (net.ipv4.ping_group_range)\n");
        skip();
    }
    assert_string_equal(bench.detail, "answered the echo request");
    assert_int_equal(bench.reason, HB_PROBE_OK);
    for (int i = 0; i < 20; i++)
        assert_int_equal(probe_once(&bench), HB_PROBE_OK);
    tear_down_bench(&bench);
}

static void test_echo_ipv4(void **state)
{
    (void)state;
    ping("127.0.0.1");
}

static void test_echo_ipv6(void **state)
{
    char text[8] = "1";
    int fd = open("/proc/sys/net/ipv6/conf/lo/disable_ipv6", O_RDONLY);

    (void)state;
    if (fd < 0 || read(fd, text, sizeof(text)) <= 0 || text[0] != '0') {
        print_message("this machine has no IPv6 loopback address\n");
        skip();
    }
    close(fd);
    ping("::1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expected_answer), cmocka_unit_test(test_silence),
        cmocka_unit_test(test_closed_port),     cmocka_unit_test(test_late_error),
        cmocka_unit_test(test_late_answer),     cmocka_unit_test(test_no_route_fails_at_once),
        cmocka_unit_test(test_echo_ipv4),       cmocka_unit_test(test_echo_ipv6),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
