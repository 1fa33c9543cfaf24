/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_icmp.c: a target is well when it answers an ICMP echo request (RFC 792, RFC 4443).
 *
 * By a ping socket where the kernel allows one (net.ipv4.ping_group_range, icmp(7)), which gets
 * only its own answers; else by a raw socket, connected so that it gets only the target's. Each
 * probe carries bytes that nobody can guess, and only an answer that returns them counts.
 */
#include <errno.h>
#include <linux/icmp.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "checker.h"
#include "probe_socket.h"

/* Both families: type, code, checksum, identifier, sequence. */
struct echo {
    uint8_t type;
    uint8_t code;
    uint16_t checksum;
    uint16_t identifier;
    uint16_t sequence;
    uint8_t token[16];
};
_Static_assert(sizeof(struct echo) == 24, "no padding");

struct hb_check {
    struct hb_check_setup setup;
    int fd; /* -1: no probe under way */
    bool raw;
    struct echo request;
    uint64_t deadline_us;
    struct event event;
};

static uint64_t read_clock_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* RFC 1071. ICMPv6 has a pseudo-header in its sum, and the kernel fills it in. */
static uint16_t sum_of(const struct echo *echo)
{
    const uint8_t *byte = (const uint8_t *)echo;
    uint32_t sum = 0;

    for (size_t i = 0; i < sizeof(*echo); i += 2)
        sum += (uint32_t)(byte[i] << 8 | byte[i + 1]);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return htons((uint16_t)~sum);
}

static bool is_ipv4(const struct hb_check *check)
{
    return check->setup.way->to.family == HB_FAMILY_IPV4;
}

static int open_socket(struct hb_check *check)
{
    int protocol = is_ipv4(check) ? IPPROTO_ICMP : IPPROTO_ICMPV6;
    int fd = hb_probe_socket_open(check->setup.way, SOCK_DGRAM, protocol, 0);

    check->raw = fd == -EACCES || fd == -EPROTONOSUPPORT || fd == -EPERM;
    if (check->raw)
        fd = hb_probe_socket_open(check->setup.way, SOCK_RAW, protocol, 0);
    return fd;
}

static int send_request(struct hb_check *check)
{
    struct echo *echo = &check->request;

    memset(echo, 0, sizeof(*echo));
    echo->type = is_ipv4(check) ? ICMP_ECHO : ICMP6_ECHO_REQUEST;
    if (getrandom(echo->token, sizeof(echo->token), GRND_NONBLOCK) < 0)
        return EAGAIN;
    memcpy(&echo->identifier, echo->token, sizeof(echo->identifier));
    if (is_ipv4(check))
        echo->checksum = sum_of(echo);
    return send(check->fd, echo, sizeof(*echo), 0) < 0 ? errno : 0;
}

/* Raw IPv4 sockets give the IP header too. */
static bool is_answer(const struct hb_check *check, const uint8_t *packet, ssize_t size)
{
    ssize_t skip = check->raw && is_ipv4(check) && size > 0 ? (packet[0] & 15) * 4 : 0;
    struct echo echo;

    if (size < skip + (ssize_t)sizeof(echo))
        return false;
    memcpy(&echo, packet + skip, sizeof(echo));
    return echo.type == (is_ipv4(check) ? ICMP_ECHOREPLY : ICMP6_ECHO_REPLY) &&
           memcmp(echo.token, check->request.token, sizeof(echo.token)) == 0;
}

/* HB_PROBE_TIMEOUT: nothing yet. */
static enum hb_probe_reason read_answers(const struct hb_check *check)
{
    uint8_t packet[256];

    for (;;) {
        ssize_t size = recv(check->fd, packet, sizeof(packet), MSG_DONTWAIT);

        if (size < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? HB_PROBE_TIMEOUT
                                                           : hb_probe_reason_of(errno);
        if (is_answer(check, packet, size))
            return HB_PROBE_OK;
    }
}

static int wait_on(struct hb_check *check)
{
    uint64_t now_us = read_clock_us();
    uint64_t left_us = check->deadline_us > now_us ? check->deadline_us - now_us : 0;
    struct timeval left = {.tv_sec = (time_t)(left_us / 1000000),
                           .tv_usec = (suseconds_t)(left_us % 1000000)};

    return event_add(&check->event, &left);
}

static void on_answer(evutil_socket_t fd, short what, void *context)
{
    struct hb_check *check = context;
    /* Also at the time limit: the answer may be there, unseen while control was busy. */
    enum hb_probe_reason reason = read_answers(check);

    (void)fd;
    if (reason == HB_PROBE_TIMEOUT && !(what & EV_TIMEOUT) && wait_on(check) == 0)
        return; /* that was somebody else's */
    event_del(&check->event);
    close(check->fd);
    check->fd = -1;
    check->setup.done(check->setup.context, reason,
                      reason == HB_PROBE_OK ? "answered the echo request" : NULL);
}

static int begin(struct hb_check *check, const char **detail)
{
    int error;

    (void)detail;
    check->fd = open_socket(check);
    if (check->fd < 0)
        return (int)hb_probe_reason_of(check->fd == -EACCES ? EPERM : -check->fd);
    error = send_request(check);
    if (error == 0) {
        check->deadline_us = read_clock_us() + (uint64_t)check->setup.config->timeout_ms * 1000;
        event_assign(&check->event, check->setup.base, check->fd, EV_READ, on_answer, check);
        if (wait_on(check) == 0)
            return HB_PROBE_UNDER_WAY;
        error = ENOMEM;
    }
    close(check->fd);
    check->fd = -1;
    return (int)hb_probe_reason_of(error);
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

const struct hb_checker hb_checker_icmp = {
    .type = HB_HEALTH_ICMP,
    .create = create,
    .begin = begin,
    .destroy = destroy,
};
