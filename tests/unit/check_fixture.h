/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_fixture.h: one checker alone on an event loop, probing something of this machine.
 */
#ifndef HB_TESTS_CHECK_FIXTURE_H
#define HB_TESTS_CHECK_FIXTURE_H

#include "net_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <event2/event.h>

#include "health/checker.h"
#include "health/http_engine.h"

#define LIMIT_S 20

struct check_bench {
    struct event_base *base;
    struct hb_http *http;
    struct hb_health_config config;
    struct hb_address address;
    struct hb_check_way way;
    const struct hb_checker *checker;
    struct hb_check *check;
    int reason; /* of the last probe, -1 while it is under way */
    char detail[256];
};

static inline void set_up_bench(struct check_bench *bench, const struct hb_checker *checker,
                                const char *address, uint16_t port)
{
    memset(bench, 0, sizeof(*bench));
    bench->base = event_base_new();
    bench->http = checker->needs_http ? hb_http_open(bench->base) : NULL;
    bench->checker = checker;
    bench->address = bench->way.to = address_of(address);
    bench->config = (struct hb_health_config){.type = checker->type,
                                              .port = port,
                                              .interval_ms = 60000,
                                              .timeout_ms = 10000,
                                              .verify = true};
    assert_non_null(bench->base);
}

static inline void tear_down_bench(struct check_bench *bench)
{
    if (bench->check)
        bench->checker->destroy(bench->check);
    hb_http_close(bench->http);
    event_base_free(bench->base);
}

static inline void on_bench_done(void *context, enum hb_probe_reason reason, const char *detail)
{
    struct check_bench *bench = context;

    assert_int_equal(bench->reason, HB_PROBE_UNDER_WAY);
    bench->reason = (int)reason;
    snprintf(bench->detail, sizeof(bench->detail), "%s", detail ? detail : "");
}

static inline void on_bench_limit(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    (void)context;
    fail_msg("the probe did not end within %d s", LIMIT_S);
}

static inline void begin_probe(struct check_bench *bench)
{
    const char *detail = NULL;

    if (!bench->check)
        bench->check = bench->checker->create(&(struct hb_check_setup){.base = bench->base,
                                                                       .http = bench->http,
                                                                       .config = &bench->config,
                                                                       .way = &bench->way,
                                                                       .address = &bench->address,
                                                                       .done = on_bench_done,
                                                                       .context = bench});
    assert_non_null(bench->check);
    bench->detail[0] = '\0';
    bench->reason = HB_PROBE_UNDER_WAY;
    bench->reason = bench->checker->begin(bench->check, &detail);
    if (bench->reason != HB_PROBE_UNDER_WAY)
        snprintf(bench->detail, sizeof(bench->detail), "%s", detail ? detail : "");
}

static inline enum hb_probe_reason end_probe(struct check_bench *bench)
{
    static const struct timeval limit = {.tv_sec = LIMIT_S};
    struct event *timer = evtimer_new(bench->base, on_bench_limit, NULL);

    evtimer_add(timer, &limit);
    while (bench->reason == HB_PROBE_UNDER_WAY)
        event_base_loop(bench->base, EVLOOP_ONCE);
    event_free(timer);
    return (enum hb_probe_reason)bench->reason;
}

/* One probe from its beginning to its end. */
static inline enum hb_probe_reason probe_once(struct check_bench *bench)
{
    begin_probe(bench);
    return end_probe(bench);
}

#define ASSERT_PROBE(bench, expected, text)                                                        \
    do {                                                                                           \
        enum hb_probe_reason got = probe_once(bench);                                              \
        if (got != (expected) || !strstr((bench)->detail, text))                                   \
            fail_msg("reason %d \"%s\", expected %d \"%s\"", got, (bench)->detail, expected,       \
                     text);                                                                        \
    } while (0)

/* A socket on some free port of the loopback address. A stream refuses connections until it
 * listens. */
static inline int bind_loopback(int type, uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

#endif
