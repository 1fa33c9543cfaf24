/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * publisher_socket.h: single messages over the socket to the dataplane (halbach/protocol.h).
 *
 * Nothing here keeps state or trusts the peer: what arrives is taken whole, with its file
 * descriptors, and then checked like hostile input before anybody looks at a field. Non-blocking
 * throughout.
 */
#ifndef HB_CONTROL_PUBLISHER_SOCKET_H
#define HB_CONTROL_PUBLISHER_SOCKET_H

#include <stddef.h>
#include <stdint.h>

#include "halbach/protocol.h"

/* More descriptors than any message carries, so that a surplus is noticed; the kernel itself closes
 * what does not fit. */
#define HB_RECEIVED_FDS 4

/* One message and what came with it. The receiver owns `fds` until it takes one (and writes -1
 * there) or calls hb_received_close(). */
struct hb_received {
    union {
        struct hb_message_header header;
        struct hb_hello_reply hello;
        struct hb_publish_reply publish;
        struct hb_lookup_reply lookup;
        struct hb_settle_reply settle;
        struct hb_flush_reply flush;
        struct hb_refused refused;
        uint8_t bytes[HB_MESSAGE_MAX];
    } message;
    size_t size;
    int truncated; /* the message or its descriptors did not fit */
    unsigned fds_count;
    int fds[HB_RECEIVED_FDS];
};

/* What the next message has to be. */
struct hb_expected {
    uint16_t type;
    uint32_t size;
    uint32_t sequence;
};

/* Returns a connected socket (close-on-exec, non-blocking), or a negative errno. */
int hb_dataplane_connect(const char *path);

/* Sends one message, with a copy of `passed_fd` unless that is -1. Returns 0 or a negative errno;
 * -EAGAIN when the socket takes no more now. */
int hb_message_send(int fd, const void *message, size_t size, int passed_fd);

/* Takes one message. Returns 1, 0 when the peer has closed the connection, or a negative errno.
 * Whatever it returns, `received` may be given to hb_received_close(). */
int hb_message_receive(int fd, struct hb_received *received);

/* Closes the descriptors that nobody took. */
void hb_received_close(struct hb_received *received);

/* Returns 0 when the message is a well-formed answer as expected, 1 when it is a well-formed
 * REFUSED, or -EPROTO with the fault in `why`, for people. How many descriptors belong to a message
 * is for its own handler to check. Ends the text fields of the message with a zero and makes them
 * printable. */
int hb_received_check(struct hb_received *received, const struct hb_expected *expected, char *why,
                      size_t why_size);

#endif
