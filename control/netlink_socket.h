/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * netlink_socket.h: non-blocking rtnetlink sockets, one to ask and one to listen.
 */
#ifndef HB_CONTROL_NETLINK_SOCKET_H
#define HB_CONTROL_NETLINK_SOCKET_H

struct mnl_socket;

/* A socket for questions and their answers. NULL with errno; the caller closes it
 * (mnl_socket_close()). */
struct mnl_socket *hb_netlink_open(void);

/* The same, a member of every group that next hops depend on: links, neighbours, routes, rules,
 * nexthop objects and the machine's own addresses. */
struct mnl_socket *hb_netlink_open_events(void);

#endif
