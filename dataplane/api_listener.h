/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_listener.h: the listening socket at a path, owned by one dataplane at a time.
 *
 * A socket file outlives a killed process, so the file alone says nothing: a connect tells whether
 * somebody listens behind it. While that is found out and the new socket takes the place of the old
 * one, the folder is locked (flock), so that two dataplanes that start at once do not both win.
 */
#ifndef HB_DATAPLANE_API_LISTENER_H
#define HB_DATAPLANE_API_LISTENER_H

#include <sys/types.h>

#include "halbach/protocol.h"

struct hb_api_listener {
    int fd; /* SOCK_SEQPACKET, listening, non-blocking; -1: none */
    dev_t device;
    ino_t inode; /* of the socket file, so that only our own is removed */
    char path[108];
};

/* Listens at `path` (mode 0660). A stale socket is replaced; the folder /run/halbach is made when
 * it is missing. Returns 0, or -errno with `problem` (HB_TEXT_SIZE bytes): -EADDRINUSE when another
 * dataplane serves the path (its pid is named), -EEXIST when something else is there. */
int hb_api_listener_open(struct hb_api_listener *listener, const char *path, char *problem);

/* Closes, and removes the file if it is still ours. */
void hb_api_listener_close(struct hb_api_listener *listener);

#endif
