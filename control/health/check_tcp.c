/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_tcp.c: a target is well when it accepts a TCP connection.
 *
 *     begin -> connect -> wait -> finish
 *
 * Every way leads to finish(), which closes the socket and reports one reason. The connection is
 * closed by RST (SO_LINGER with a time of zero), so that it leaves no TIME_WAIT behind: the next
 * probe never meets the leftovers of the one before, and thousands of targets do not use up the
 * ports (BL-96). The server sees a connection that was reset before any data, which
 * servers take without a word.
 */
#include "checker.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

struct hb_check {
    struct event_base *base;
    struct sockaddr_storage address;
    socklen_t address_size;
    struct timeval timeout;
    hb_check_done done;
    void *context;

    int fd; /* -1: no probe under way, or none that has a socket */
    struct event event;
    enum hb_probe_reason early; /* the reason of a probe that ended while it began */
};

static enum hb_probe_reason reason_of(int error)
{
    switch (error) {
    case 0:
        return HB_PROBE_OK;
    case ECONNREFUSED:
    case ECONNRESET:
        return HB_PROBE_REFUSED;
    case ETIMEDOUT: /* the kernel gave up before us */
        return HB_PROBE_TIMEOUT;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case EADDRNOTAVAIL: /* all ports are taken, or there is no address to connect from */
    case EAGAIN:
    case EAFNOSUPPORT: /* IPv6 is disabled here */
    case EPERM:        /* a packet filter of this machine */
        return HB_PROBE_LOCAL_ERROR;
    default: /* EHOSTUNREACH, ENETUNREACH, EACCES (prohibited), ... */
        return HB_PROBE_UNREACHABLE;
    }
}

/* The one exit of a probe. */
static void finish(struct hb_check *check, enum hb_probe_reason reason)
{
    event_del(&check->event);
    if (check->fd >= 0)
        close(check->fd);
    check->fd = -1;
    check->done(check->context, reason); /* last: it may destroy the check */
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
    finish(context, reason_of(error));
}

static void on_early_end(evutil_socket_t fd, short what, void *context)
{
    struct hb_check *check = context;

    (void)fd;
    (void)what;
    finish(check, check->early);
}

/* For what is known at once: reported from the event loop like everything else. */
static void finish_soon(struct hb_check *check, int error)
{
    check->early = reason_of(error);
    event_assign(&check->event, check->base, -1, 0, on_early_end, check);
    event_active(&check->event, EV_TIMEOUT, 1);
}

/* Starts connecting; 0 when it is done or under way, else the error. */
static int start_connecting(struct hb_check *check)
{
    static const struct linger reset = {.l_onoff = 1, .l_linger = 0};

    check->fd =
        socket(check->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (check->fd < 0)
        return errno;
    setsockopt(check->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    if (connect(check->fd, (const struct sockaddr *)&check->address, check->address_size) == 0 ||
        errno == EINPROGRESS)
        return 0;
    return errno;
}

static void begin(struct hb_check *check)
{
    int error = start_connecting(check);

    if (error == 0) {
        /* A connection that is there already is writable, too: no case of its own. */
        event_assign(&check->event, check->base, check->fd, EV_WRITE, on_answer, check);
        error = event_add(&check->event, &check->timeout) < 0 ? ENOMEM : 0;
    }
    if (error != 0)
        finish_soon(check, error);
}

static void set_address(struct hb_check *check, const struct hb_address *address, uint16_t port)
{
    if (address->family == HB_FAMILY_IPV4) {
        struct sockaddr_in *in = (struct sockaddr_in *)&check->address;

        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        memcpy(&in->sin_addr, address->bytes, sizeof(in->sin_addr));
        check->address_size = sizeof(*in);
    } else {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&check->address;

        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(port);
        memcpy(&in6->sin6_addr, address->bytes, sizeof(in6->sin6_addr));
        check->address_size = sizeof(*in6);
    }
}

static struct hb_check *create(struct event_base *base, const struct hb_address *address,
                               const struct hb_health_config *config, hb_check_done done,
                               void *context)
{
    struct hb_check *check = calloc(1, sizeof(*check));

    if (!check)
        return NULL;
    check->base = base;
    check->timeout.tv_sec = config->timeout_ms / 1000;
    check->timeout.tv_usec = (suseconds_t)(config->timeout_ms % 1000) * 1000;
    check->done = done;
    check->context = context;
    check->fd = -1;
    set_address(check, address, config->port);
    event_assign(&check->event, base, -1, 0, on_early_end, check); /* so that it can be deleted */
    return check;
}

static void destroy(struct hb_check *check)
{
    event_del(&check->event);
    if (check->fd >= 0)
        close(check->fd);
    free(check);
}

const struct hb_checker hb_checker_tcp = {
    .type = HB_HEALTH_TCP,
    .create = create,
    .begin = begin,
    .destroy = destroy,
};
