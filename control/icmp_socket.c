/* SPDX-License-Identifier: BSD-3-Clause */
/* See icmp_socket.h. */
#include "icmp_socket.h"

#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "halbach/types.h"

/* ICMP_FILTER of linux/icmp.h, which netinet's headers collide with. */
#define ICMP_FILTER_OPTION 1

#define PAUSE_US    20000 /* after HB_ICMP_READS_MAX at once */
#define MESSAGE_MAX 2048  /* errors are at most 1,280 bytes; a longer one is cut */

struct hb_icmp_socket {
    uint8_t family;
    int fd;
    struct event *readable; /* each time once */
    struct event *resume;
    hb_icmp_heard heard;
    void *context;
};

/* Only errors pass: of pings nobody need be woken. */
static int set_filter(int fd, uint8_t family)
{
    uint32_t blocked = ~(1u << 3 | 1u << 11);
    struct icmp6_filter filter;

    if (family == HB_FAMILY_IPV4)
        return setsockopt(fd, SOL_RAW, ICMP_FILTER_OPTION, &blocked, sizeof(blocked));
    ICMP6_FILTER_SETBLOCKALL(&filter);
    ICMP6_FILTER_SETPASS(ICMP6_DST_UNREACH, &filter);
    ICMP6_FILTER_SETPASS(ICMP6_PACKET_TOO_BIG, &filter);
    ICMP6_FILTER_SETPASS(ICMP6_TIME_EXCEEDED, &filter);
    return setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof(filter));
}

/* An IPv4 raw socket shows the IP header too. */
static void hear(struct hb_icmp_socket *icmp, const uint8_t *packet, size_t size)
{
    size_t header = 0;

    if (icmp->family == HB_FAMILY_IPV4) {
        header = size > 0 ? (packet[0] & 0xfu) * 4 : 0;
        if (header < 20 || header > size)
            return;
    }
    icmp->heard(icmp->context, icmp->family, packet + header, size - header);
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
    const struct timeval pause = {0, PAUSE_US};
    struct hb_icmp_socket *icmp = context;
    uint8_t packet[MESSAGE_MAX];

    (void)what;
    for (int i = 0; i < HB_ICMP_READS_MAX; i++) {
        ssize_t size = recv(fd, packet, sizeof(packet), MSG_DONTWAIT);

        if (size < 0) {
            event_add(icmp->readable, NULL);
            return;
        }
        hear(icmp, packet, (size_t)size);
    }
    event_add(icmp->resume, &pause);
}

static void on_resume(evutil_socket_t fd, short what, void *context)
{
    struct hb_icmp_socket *icmp = context;

    (void)fd;
    (void)what;
    event_add(icmp->readable, NULL);
}

static int start(struct hb_icmp_socket *icmp, struct event_base *base)
{
    bool ipv4 = icmp->family == HB_FAMILY_IPV4;

    icmp->fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
                      ipv4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
    if (icmp->fd < 0 || set_filter(icmp->fd, icmp->family) < 0)
        return -errno;
    icmp->readable = event_new(base, icmp->fd, EV_READ, on_readable, icmp);
    icmp->resume = evtimer_new(base, on_resume, icmp);
    if (icmp->readable == NULL || icmp->resume == NULL || event_add(icmp->readable, NULL) < 0)
        return -ENOMEM;
    return 0;
}

struct hb_icmp_socket *hb_icmp_socket_open(struct event_base *base, uint8_t family,
                                           hb_icmp_heard heard, void *context)
{
    struct hb_icmp_socket *icmp = calloc(1, sizeof(*icmp));
    int error;

    if (icmp == NULL)
        return NULL;
    *icmp = (struct hb_icmp_socket){.family = family, .fd = -1, .heard = heard, .context = context};
    error = start(icmp, base);
    if (error == 0)
        return icmp;
    hb_icmp_socket_close(icmp);
    errno = -error;
    return NULL;
}

void hb_icmp_socket_close(struct hb_icmp_socket *icmp)
{
    if (icmp == NULL)
        return;
    if (icmp->resume != NULL)
        event_free(icmp->resume);
    if (icmp->readable != NULL)
        event_free(icmp->readable);
    if (icmp->fd >= 0)
        close(icmp->fd);
    free(icmp);
}
