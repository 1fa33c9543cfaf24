/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe_socket.c: see probe_socket.h.
 *
 * Streams are closed by RST (SO_LINGER with a time of zero), so that they leave no TIME_WAIT
 * behind: the next probe never meets the leftovers of the one before, and thousands of targets do
 * not use up the ports (BL-96). The server sees a connection that was reset, which servers take
 * without a word.
 */
#include "probe_socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

socklen_t hb_probe_sockaddr(const struct hb_address *address, uint16_t port,
                            struct sockaddr_storage *socket_address)
{
    memset(socket_address, 0, sizeof(*socket_address));
    if (address->family == HB_FAMILY_IPV4) {
        struct sockaddr_in *in = (struct sockaddr_in *)socket_address;

        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        memcpy(&in->sin_addr, address->bytes, sizeof(in->sin_addr));
        return sizeof(*in);
    }
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)socket_address;

    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    memcpy(&in6->sin6_addr, address->bytes, sizeof(in6->sin6_addr));
    return sizeof(*in6);
}

struct hb_address hb_probe_address_of(const struct sockaddr_storage *socket_address)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)socket_address;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)socket_address;
    struct hb_address address = {0};

    if (socket_address->ss_family == AF_INET) {
        address.family = HB_FAMILY_IPV4;
        memcpy(address.bytes, &in->sin_addr, sizeof(in->sin_addr));
    } else if (socket_address->ss_family == AF_INET6) {
        address.family = HB_FAMILY_IPV6;
        memcpy(address.bytes, &in6->sin6_addr, sizeof(in6->sin6_addr));
    }
    return address;
}

/* Without it the kernel keeps ICMP errors that it takes for passing from sockets of datagrams. */
static void hear_icmp_errors(int fd, const struct hb_check_way *way)
{
    const int on = 1;

    if (way->to.family == HB_FAMILY_IPV4)
        setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on));
    else
        setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof(on));
}

static int bind_source(int fd, const struct hb_check_way *way)
{
    const int on = 1;
    struct sockaddr_storage from;
    socklen_t size = hb_probe_sockaddr(&way->from, 0, &from);

    /* The port is chosen by connect(): one port serves many targets. */
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    return bind(fd, (const struct sockaddr *)&from, size) < 0 ? -errno : 0;
}

int hb_probe_socket_prepare(int fd, int kind, const struct hb_check_way *way)
{
    static const struct linger reset = {.l_onoff = 1, .l_linger = 0};

    if (kind == SOCK_STREAM)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    else
        hear_icmp_errors(fd, way);
    /* Without its mark a probe would not go through the tunnel, and prove something else. */
    if (way->mark != 0 && setsockopt(fd, SOL_SOCKET, SO_MARK, &way->mark, sizeof(way->mark)) < 0)
        return -errno;
    return way->from.family != 0 ? bind_source(fd, way) : 0;
}

int hb_probe_socket_open(const struct hb_check_way *way, int kind, int protocol, uint16_t port)
{
    struct sockaddr_storage to;
    socklen_t size = hb_probe_sockaddr(&way->to, port, &to);
    int fd = socket(to.ss_family, kind | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    int error;

    if (fd < 0)
        return -errno;
    error = hb_probe_socket_prepare(fd, kind, way);
    if (error == 0 && connect(fd, (const struct sockaddr *)&to, size) < 0 && errno != EINPROGRESS)
        error = -errno;
    if (error == 0)
        return fd;
    close(fd);
    return error;
}

enum hb_probe_reason hb_probe_reason_of(int error)
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
    case EPERM:        /* a packet filter of this machine, or a mark without CAP_NET_ADMIN */
    case EPROTONOSUPPORT:
        return HB_PROBE_LOCAL_ERROR;
    default: /* EHOSTUNREACH, ENETUNREACH, EACCES (prohibited), ... */
        return HB_PROBE_UNREACHABLE;
    }
}

struct timeval hb_probe_time_limit(const struct hb_health_config *config)
{
    return (struct timeval){.tv_sec = config->timeout_ms / 1000,
                            .tv_usec = (suseconds_t)(config->timeout_ms % 1000) * 1000};
}
