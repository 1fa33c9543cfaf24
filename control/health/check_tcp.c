/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_tcp.c: a target is well when it accepts a TCP connection.
 *
 *     begin -> connect -> wait -> finish
 *
 * Every way leads to finish(), which closes the socket (by RST, see probe_socket.c) and reports one
 * reason; or begin() itself knows the end.
 */
#include "checker.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "probe_socket.h"

struct hb_check {
    struct hb_check_setup setup;
    int fd; /* -1: no probe under way */
    struct event event;
};

static const char *text_of(enum hb_probe_reason reason)
{
    if (reason == HB_PROBE_OK)
        return "accepted the connection";
    return reason == HB_PROBE_REFUSED ? "refused the connection" : NULL;
}

/* The one exit of a probe that was under way. */
static void finish(struct hb_check *check, enum hb_probe_reason reason)
{
    event_del(&check->event);
    close(check->fd);
    check->fd = -1;
    check->setup.done(check->setup.context, reason, text_of(reason)); /* it may destroy the check */
}

/* When control was busy for longer than the time limit, answer and time limit are there together,
 * and libevent tells of the time limit alone. */
static bool has_answer(int fd)
{
    struct pollfd answer = {.fd = fd, .events = POLLOUT};

    return poll(&answer, 1, 0) > 0;
}

static void on_answer(evutil_socket_t fd, short what, void *context)
{
    int error = 0;
    socklen_t size = sizeof(error);

    if ((what & EV_TIMEOUT) && !has_answer(fd))
        error = ETIMEDOUT;
    else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        error = errno;
    finish(context, hb_probe_reason_of(error));
}

static int begin(struct hb_check *check, const char **detail)
{
    const struct hb_check_setup *setup = &check->setup;
    struct timeval limit = hb_probe_time_limit(setup->config);
    int fd = hb_probe_socket_open(setup->way, SOCK_STREAM, IPPROTO_TCP, setup->config->port);
    enum hb_probe_reason reason = hb_probe_reason_of(fd < 0 ? -fd : 0);

    if (fd >= 0) {
        /* A connection that is there already is writable, too: no case of its own. */
        event_assign(&check->event, setup->base, fd, EV_WRITE, on_answer, check);
        if (event_add(&check->event, &limit) == 0) {
            check->fd = fd;
            return HB_PROBE_UNDER_WAY;
        }
        close(fd);
        reason = HB_PROBE_LOCAL_ERROR;
    }
    *detail = text_of(reason);
    return (int)reason;
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
    if (check->fd >= 0) {
        event_del(&check->event);
        close(check->fd);
    }
    free(check);
}

const struct hb_checker hb_checker_tcp = {
    .type = HB_HEALTH_TCP,
    .create = create,
    .begin = begin,
    .destroy = destroy,
};
