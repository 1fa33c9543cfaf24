/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_socket.h: a listening Unix socket that one process holds at a time.
 */
#ifndef HB_CONTROL_API_SOCKET_H
#define HB_CONTROL_API_SOCKET_H

#include <sys/types.h>

struct hb_api_socket {
    int fd;
    int lock_fd;
    char *path;
    gid_t group; /* of the socket: its members may change things */
};

/* Locks, removes a stale socket, binds (mode 0660) and listens, not blocking. 0 or negative errno,
 * logged: -EADDRINUSE when another process holds it; its pid is in the log. */
int hb_api_socket_open(struct hb_api_socket *listener, const char *path);

/* Unlinks the socket and gives the lock back. */
void hb_api_socket_close(struct hb_api_socket *listener);

#endif
