/* SPDX-License-Identifier: BSD-3-Clause */
/* test_check_http.c: HTTP checks against libevent's HTTP server on the same loop, and gRPC checks
 * against a few frames of HTTP/2 made by hand. HTTPS is tested end to end. */
#include "check_fixture.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/listener.h>

static struct {
    int status; /* 0: never answers */
    char body[128 << 10];
    char host[64], path[64], agent[64];
    unsigned asked;
} server;

static void on_request(struct evhttp_request *request, void *context)
{
    const struct evkeyvalq *headers = evhttp_request_get_input_headers(request);
    const char *host = evhttp_find_header(headers, "Host");
    const char *agent = evhttp_find_header(headers, "User-Agent");
    struct evbuffer *body = evbuffer_new();

    (void)context;
    snprintf(server.host, sizeof(server.host), "%s", host ? host : "");
    snprintf(server.agent, sizeof(server.agent), "%s", agent ? agent : "");
    snprintf(server.path, sizeof(server.path), "%s", evhttp_request_get_uri(request));
    server.asked++;
    if (server.status != 0) {
        evbuffer_add(body, server.body, strlen(server.body));
        evhttp_send_reply(request, server.status, "Some", body);
    }
    evbuffer_free(body);
}

static struct evhttp *serve(struct check_bench *bench)
{
    uint16_t port;
    int fd = bind_loopback(SOCK_STREAM, &port);
    struct evhttp *http;

    memset(&server, 0, sizeof(server));
    server.status = 200;
    assert_int_equal(listen(fd, 64), 0);
    set_up_bench(bench, &hb_checker_http, "127.0.0.1", port);
    http = evhttp_new(bench->base);
    assert_int_equal(evhttp_accept_socket(http, fd), 0);
    evhttp_set_gencb(http, on_request, NULL);
    return http;
}

static void end(struct check_bench *bench, struct evhttp *http)
{
    evhttp_free(http);
    tear_down_bench(bench);
}

static void test_status(void **state)
{
    struct check_bench bench;
    struct evhttp *http = serve(&bench);

    (void)state;
    ASSERT_PROBE(&bench, HB_PROBE_OK, "status 200");
    assert_string_equal(server.path, "/");
    assert_non_null(strstr(server.agent, "halbach-control"));
    server.status = 204;
    ASSERT_PROBE(&bench, HB_PROBE_OK, "status 204");
    server.status = 503;
    ASSERT_PROBE(&bench, HB_PROBE_WRONG, "answered status 503, expected 200-299");
    server.status = 302; /* not followed */
    ASSERT_PROBE(&bench, HB_PROBE_WRONG, "status 302");
    bench.config.statuses = (struct hb_check_statuses){2, {{200, 200}, {300, 399}}};
    ASSERT_PROBE(&bench, HB_PROBE_OK, "status 302");
    server.status = 204;
    ASSERT_PROBE(&bench, HB_PROBE_WRONG, "status 204, expected 200,300-399");
    assert_int_equal(server.asked, 6);
    end(&bench, http);
}

static void test_path_and_host(void **state)
{
    struct check_bench bench;
    struct evhttp *http = serve(&bench);

    (void)state;
    strcpy(bench.config.path, "/up?deep=1");
    strcpy(bench.config.host, "www.example.org");
    ASSERT_PROBE(&bench, HB_PROBE_OK, "");
    assert_string_equal(server.path, "/up?deep=1");
    assert_string_equal(server.host, "www.example.org");
    end(&bench, http);
}

static void test_body(void **state)
{
    struct check_bench bench;
    struct evhttp *http = serve(&bench);

    (void)state;
    bench.config.body = (struct hb_check_bytes){4, "well"};
    strcpy(server.body, "all is well\n");
    ASSERT_PROBE(&bench, HB_PROBE_OK, "status 200");
    strcpy(server.body, "all is lost");
    ASSERT_PROBE(&bench, HB_PROBE_WRONG, "not in the body");
    strcpy(server.body, "");
    ASSERT_PROBE(&bench, HB_PROBE_WRONG, "not in the body");
    memset(server.body, '-', 66000);
    strcpy(server.body + 66000, "well");
    ASSERT_PROBE(&bench, HB_PROBE_WRONG, "first 64 KB");
    memset(server.body, '-', 65532);
    strcpy(server.body + 65532, "well and much more");
    ASSERT_PROBE(&bench, HB_PROBE_OK, "status 200");
    /* A status that is not accepted is the reason, whatever the body says. */
    server.status = 500;
    ASSERT_PROBE(&bench, HB_PROBE_WRONG, "status 500");
    end(&bench, http);
}

static void test_silent_and_refused(void **state)
{
    struct check_bench bench;
    struct evhttp *http = serve(&bench);
    uint16_t port;
    int closed = bind_loopback(SOCK_STREAM, &port);

    (void)state;
    server.status = 0;
    bench.config.timeout_ms = 100;
    ASSERT_PROBE(&bench, HB_PROBE_TIMEOUT, "");
    end(&bench, http);
    set_up_bench(&bench, &hb_checker_http, "127.0.0.1", port);
    ASSERT_PROBE(&bench, HB_PROBE_REFUSED, "");
    close(closed);
    tear_down_bench(&bench);
}

static void test_not_http(void **state)
{
    struct check_bench bench;
    struct evhttp *http = serve(&bench);

    (void)state;
    /* TLS to a server that speaks none. */
    bench.checker = &hb_checker_https;
    bench.config.type = HB_HEALTH_HTTPS;
    ASSERT_PROBE(&bench, HB_PROBE_WRONG, "");
    assert_true(bench.detail[0] != '\0');
    end(&bench, http);
}

static void test_destroyed_under_way(void **state)
{
    struct check_bench bench;
    struct evhttp *http = serve(&bench);

    (void)state;
    server.status = 0;
    begin_probe(&bench);
    while (server.asked == 0)
        event_base_loop(bench.base, EVLOOP_ONCE);
    bench.checker->destroy(bench.check);
    bench.check = NULL;
    bench.reason = 0;
    end(&bench, http);
}

/* --- gRPC --- */

#define PREFACE 24 /* bytes that an HTTP/2 client begins with */

/* What the played server answers a call with: headers, a message, trailers. */
static struct {
    const char *message;
    size_t message_size;
    const char *grpc_status;
    bool called;
    char service[64];
} grpc;

static void add_frame(struct evbuffer *to, uint8_t type, uint8_t flags, uint8_t stream,
                      const void *body, size_t size)
{
    uint8_t header[9] = {0, (uint8_t)(size >> 8), (uint8_t)size, type, flags, 0, 0, 0, stream};

    evbuffer_add(to, header, sizeof(header));
    evbuffer_add(to, body, size);
}

static void answer_call(struct evbuffer *to)
{
    static const char headers[] = "\x88\x0f\x10\x10"
                                  "application/grpc"; /* :status 200, content-type */
    char trailers[32];
    int size = snprintf(trailers, sizeof(trailers), "%c%cgrpc-status%c%s", 0x10, 11,
                        (int)strlen(grpc.grpc_status), grpc.grpc_status);

    add_frame(to, 1, 4, 1, headers, sizeof(headers) - 1);
    add_frame(to, 0, 0, 1, grpc.message, grpc.message_size);
    add_frame(to, 1, 5, 1, trailers, (size_t)size);
}

/* Takes whole frames; the call is there with its DATA frame. */
static void on_frames(struct bufferevent *connection, void *context)
{
    struct evbuffer *in = bufferevent_get_input(connection);
    struct evbuffer *out = bufferevent_get_output(connection);
    bool *greeted = context;

    if (!*greeted) {
        if (evbuffer_get_length(in) < PREFACE)
            return;
        evbuffer_drain(in, PREFACE);
        add_frame(out, 4, 0, 0, "", 0);
        *greeted = true;
    }
    while (evbuffer_get_length(in) >= 9) {
        const uint8_t *frame = evbuffer_pullup(in, 9);
        size_t size = (size_t)frame[1] << 8 | frame[2];

        if (evbuffer_get_length(in) < 9 + size)
            return;
        frame = evbuffer_pullup(in, (ssize_t)(9 + size));
        if (frame[3] == 0 && size > 0 && !grpc.called) {
            grpc.called = true;
            assert_int_equal(frame[9 + 4], size - 5);
            if (size > 7)
                snprintf(grpc.service, sizeof(grpc.service), "%.*s", frame[9 + 6],
                         (const char *)frame + 9 + 7);
            answer_call(out);
        }
        evbuffer_drain(in, 9 + size);
    }
}

static bool greeted;
static struct bufferevent *last_connection;

static void on_connection_end(struct bufferevent *connection, short what, void *context)
{
    (void)what;
    (void)context;
    if (connection == last_connection)
        last_connection = NULL;
    bufferevent_free(connection);
}

static void on_connection(struct evconnlistener *listener, evutil_socket_t fd,
                          struct sockaddr *from, int size, void *context)
{
    struct bufferevent *connection =
        bufferevent_socket_new(evconnlistener_get_base(listener), fd, BEV_OPT_CLOSE_ON_FREE);

    (void)from;
    (void)size;
    greeted = false;
    last_connection = connection;
    bufferevent_setcb(connection, on_frames, NULL, on_connection_end, context);
    bufferevent_enable(connection, EV_READ | EV_WRITE);
}

static void expect_call(struct check_bench *bench, const char *message, size_t size,
                        const char *status, enum hb_probe_reason reason, const char *text)
{
    grpc.message = message;
    grpc.message_size = size;
    grpc.grpc_status = status;
    grpc.called = false;
    ASSERT_PROBE(bench, reason, text);
    assert_true(grpc.called);
}

static void test_grpc(void **state)
{
    struct check_bench bench;
    struct evconnlistener *listener;
    uint16_t port;
    int fd = bind_loopback(SOCK_STREAM, &port);

    (void)state;
    memset(&grpc, 0, sizeof(grpc));
    set_up_bench(&bench, &hb_checker_grpc, "127.0.0.1", port);
    strcpy(bench.config.grpc_service, "shop.Cart");
    listener =
        evconnlistener_new(bench.base, on_connection, &greeted, LEV_OPT_CLOSE_ON_FREE, 16, fd);
    assert_non_null(listener);
    expect_call(&bench, "\0\0\0\0\2\x08\1", 7, "0", HB_PROBE_OK, "says SERVING");
    assert_string_equal(grpc.service, "shop.Cart");
    expect_call(&bench, "\0\0\0\0\2\x08\2", 7, "0", HB_PROBE_WRONG, "says NOT_SERVING");
    expect_call(&bench, "\0\0\0\0\0", 5, "0", HB_PROBE_WRONG, "says UNKNOWN");
    expect_call(&bench, "\0\0\0\0\2\x08\1", 7, "5", HB_PROBE_WRONG, "gRPC status 5");
    expect_call(&bench, "\0\0\0\0\3\x08\1", 7, "0", HB_PROBE_WRONG, "no health message");
    expect_call(&bench, "\1\0\0\0\2\x08\1", 7, "0", HB_PROBE_WRONG, "no health message");
    expect_call(&bench, "\0\0\0\0\2\x08\1", 7, "0", HB_PROBE_OK, "says SERVING");
    if (last_connection)
        bufferevent_free(last_connection);
    evconnlistener_free(listener);
    tear_down_bench(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status),   cmocka_unit_test(test_path_and_host),
        cmocka_unit_test(test_body),     cmocka_unit_test(test_silent_and_refused),
        cmocka_unit_test(test_not_http), cmocka_unit_test(test_destroyed_under_way),
        cmocka_unit_test(test_grpc),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
