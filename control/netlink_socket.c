/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * netlink_socket.c: see netlink_socket.h.
 */
#include "netlink_socket.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <libmnl/libmnl.h>

/* Room for some ten thousand events. */
#define EVENTS_BUFFER (4 * 1024 * 1024)

static void close_keeping_errno(struct mnl_socket *socket)
{
    int error = errno;

    mnl_socket_close(socket);
    errno = error;
}

struct mnl_socket *hb_netlink_open(void)
{
    struct mnl_socket *socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (socket && mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0) {
        close_keeping_errno(socket);
        return NULL;
    }
    return socket;
}

static int join_groups(struct mnl_socket *socket)
{
    static const int groups[] = {RTNLGRP_LINK,       RTNLGRP_NEIGH,       RTNLGRP_IPV4_ROUTE,
                                 RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
                                 RTNLGRP_IPV4_RULE,  RTNLGRP_IPV6_RULE,   RTNLGRP_NEXTHOP};

    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        int group = groups[i];

        if (mnl_socket_setsockopt(socket, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0)
            return -errno;
    }
    return 0;
}

struct mnl_socket *hb_netlink_open_events(void)
{
    struct mnl_socket *socket = hb_netlink_open();
    int size = EVENTS_BUFFER;

    if (!socket)
        return NULL;
    /* A smaller buffer works too: it overruns, and is followed by a re-read, more often. */
    if (setsockopt(mnl_socket_get_fd(socket), SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
        setsockopt(mnl_socket_get_fd(socket), SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    if (join_groups(socket) < 0) {
        close_keeping_errno(socket);
        return NULL;
    }
    return socket;
}
