/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_tcp.h: the TCP port of the API on loopback, if the configuration has one.
 */
#ifndef HB_CONTROL_API_TCP_H
#define HB_CONTROL_API_TCP_H

#include <stddef.h>

/* Binds and listens, not blocking. The descriptor, or negative errno with a message for people. */
int hb_api_tcp_open(const char *listen, char *problem, size_t size);

#endif
