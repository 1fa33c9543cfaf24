/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_udp.c: a target is well when a datagram is answered as expected; without anything to expect
 * it is assumed to be well as long as nothing speaks against it (BL-94).
 *
 * With `expect` each probe has a socket of its own, so that no late answer of the one before counts
 * for it. Without, the socket stays from probe to probe: what speaks against the target may come
 * after the time limit (an unanswered ARP request takes seconds), or only now and then (hosts limit
 * their ICMP errors), and counts with the next probe.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "checker.h"
#include "clock.h"
#include "probe_socket.h"

/* Longer than the kernel tries to find a neighbour, and than usual limits of ICMP errors. */
#define ERROR_LASTS_MS 5000

struct hb_check {
    struct hb_check_setup setup;
    uint64_t error_ms; /* when one was heard, 0: never */
    int fd;            /* -1: none */
    bool under_way;
    struct hb_check_way way; /* of the socket */
    struct event event;
};

static bool only_assumes(const struct hb_check *check)
{
    return hb_health_only_assumes(check->setup.config);
}

static void close_socket(struct hb_check *check)
{
    if (check->fd >= 0)
        close(check->fd);
    check->fd = -1;
}

static enum hb_probe_reason reason_of(struct hb_check *check, int error, const char **detail)
{
    enum hb_probe_reason reason = hb_probe_reason_of(error);

    if (reason != HB_PROBE_LOCAL_ERROR)
        check->error_ms = hb_now_ms();
    if (reason == HB_PROBE_REFUSED)
        *detail = "answered that the port is closed (ICMP)";
    return reason;
}

/* What the socket has: an answer, an error or (EAGAIN) nothing. */
static enum hb_probe_reason read_answer(struct hb_check *check, const char **detail)
{
    const struct hb_check_bytes *expected = &check->setup.config->expect;
    uint8_t answer[HB_CHECK_BYTES_MAX];
    ssize_t size = recv(check->fd, answer, sizeof(answer), MSG_DONTWAIT | MSG_TRUNC);

    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        if (!only_assumes(check))
            return HB_PROBE_TIMEOUT;
        if (check->error_ms != 0 && hb_now_ms() - check->error_ms < ERROR_LASTS_MS)
            return HB_PROBE_UNSURE;
        *detail = "did not object in time, so it is assumed to be up";
        return HB_PROBE_ASSUMED;
    }
    if (size < 0)
        return reason_of(check, errno, detail);
    if (only_assumes(check)) {
        *detail = "answered, but what it must answer is not configured: assumed to be up";
        return HB_PROBE_ASSUMED;
    }
    if (size < expected->length || memcmp(answer, expected->bytes, expected->length) != 0) {
        *detail = "answered, but not with the expected bytes";
        return HB_PROBE_WRONG;
    }
    return HB_PROBE_OK;
}

static void on_answer(evutil_socket_t fd, short what, void *context)
{
    struct hb_check *check = context;
    const char *detail = NULL;
    /* Also at the time limit: the answer may be there, unseen while control was busy. */
    enum hb_probe_reason reason = read_answer(check, &detail);

    (void)fd;
    (void)what;
    event_del(&check->event);
    check->under_way = false;
    if (!only_assumes(check) || reason != HB_PROBE_ASSUMED)
        close_socket(check);
    check->setup.done(check->setup.context, reason, detail); /* last: it may destroy the check */
}

/* What came since the last probe: answers are dropped, an error is returned (0: none). */
static int read_late_error(int fd)
{
    char byte;

    for (;;) {
        if (recv(fd, &byte, 1, MSG_DONTWAIT | MSG_TRUNC) >= 0)
            continue;
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : errno;
    }
}

static bool same_way(const struct hb_check_way *a, const struct hb_check_way *b)
{
    return a->mark == b->mark && hb_address_compare(&a->to, &b->to) == 0 &&
           hb_address_compare(&a->from, &b->from) == 0;
}

/* Sends the datagram; 0 or an errno. */
static int send_probe(struct hb_check *check)
{
    const struct hb_check_setup *setup = &check->setup;
    int late_error = 0;

    if (check->fd >= 0 && !same_way(&check->way, setup->way))
        close_socket(check);
    if (check->fd >= 0)
        late_error = read_late_error(check->fd);
    else
        check->fd = hb_probe_socket_open(setup->way, SOCK_DGRAM, IPPROTO_UDP, setup->config->port);
    if (check->fd < 0)
        return -check->fd;
    check->way = *setup->way;
    if (late_error != 0)
        return late_error;
    return send(check->fd, setup->config->send.bytes, setup->config->send.length, 0) < 0 ? errno
                                                                                         : 0;
}

static int begin(struct hb_check *check, const char **detail)
{
    struct timeval limit = hb_probe_time_limit(check->setup.config);
    int error = send_probe(check);

    if (error == 0) {
        event_assign(&check->event, check->setup.base, check->fd, EV_READ, on_answer, check);
        error = event_add(&check->event, &limit) < 0 ? ENOMEM : 0;
    }
    check->under_way = error == 0;
    if (error == 0)
        return HB_PROBE_UNDER_WAY;
    close_socket(check);
    return (int)reason_of(check, error, detail);
}

static struct hb_check *create(const struct hb_check_setup *setup)
{
    struct hb_check *check = calloc(1, sizeof(*check));

    if (!check)
        return NULL;
    check->setup = *setup;
    check->fd = -1;
    return check;
}

static void destroy(struct hb_check *check)
{
    if (check->under_way)
        event_del(&check->event);
    close_socket(check);
    free(check);
}

const struct hb_checker hb_checker_udp = {
    .type = HB_HEALTH_UDP,
    .create = create,
    .begin = begin,
    .destroy = destroy,
};
