/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe_socket.h: sockets for probes, the same for all checkers.
 */
#ifndef HB_CONTROL_HEALTH_PROBE_SOCKET_H
#define HB_CONTROL_HEALTH_PROBE_SOCKET_H

#include <sys/socket.h>
#include <sys/time.h>

#include "health.h"

/* Fills *socket_address; returns its size. */
socklen_t hb_probe_sockaddr(const struct hb_address *address, uint16_t port,
                            struct sockaddr_storage *socket_address);

/* The reverse; family 0: it is neither IPv4 nor IPv6. */
struct hb_address hb_probe_address_of(const struct sockaddr_storage *socket_address);

/* Gives a socket of this kind the way's mark and source, and what probes need: streams close by
 * RST, datagrams hear of every ICMP error. 0 or negative errno. */
int hb_probe_socket_prepare(int fd, int kind, const struct hb_check_way *way);

/* Opens a non-blocking socket (SOCK_STREAM, SOCK_DGRAM or SOCK_RAW), prepares it and connects it to
 * way->to, or begins to. Returns it or a negative errno. */
int hb_probe_socket_open(const struct hb_check_way *way, int kind, int protocol, uint16_t port);

/* What an errno says about the target. */
enum hb_probe_reason hb_probe_reason_of(int error);

struct timeval hb_probe_time_limit(const struct hb_health_config *config);

#endif
