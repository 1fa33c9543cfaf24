/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_server.h: the dataplane's end of the control socket (halbach/protocol.h).
 *
 * Serves one control at a time and never waits for a peer: one that does not read its replies, does
 * not say hello in time, or sends what is not a message, is refused and cut, with one line in the
 * log. What the requests mean is the business of the handlers. Main lcore only. Pure: sockets, no
 * DPDK.
 */
#ifndef HB_DATAPLANE_API_SERVER_H
#define HB_DATAPLANE_API_SERVER_H

#include "api_listener.h"
#include "halbach/protocol.h"

struct hb_api_server;

#define HB_HELLO_TIMEOUT_MS 2000

/* Headers of the replies are filled by the server, the rest is zero before a handler runs. */
struct hb_api_handlers {
    void *context;
    /* Also gives the file descriptors to pass: counters, then the adopted generation (-1: none).
     * They stay the handler's. */
    void (*hello)(void *context, struct hb_hello_reply *reply, int fds[2]);
    /* `fd` is -1 when none came; the handler owns it. */
    void (*publish)(void *context, const struct hb_publish *request, int fd,
                    struct hb_publish_reply *reply);
    void (*lookup)(void *context, const struct hb_lookup *request, struct hb_lookup_reply *reply);
    void (*settle)(void *context, const struct hb_settle *request, struct hb_settle_reply *reply);
    void (*flush)(void *context, struct hb_flush_reply *reply);
    void (*log)(void *context, const char *line);
};

/* Serves a listener that is open; both it and the handlers must outlive the server. NULL with
 * errno. */
struct hb_api_server *hb_api_server_create(const struct hb_api_listener *listener,
                                           const struct hb_api_handlers *handlers);
void hb_api_server_destroy(struct hb_api_server *server);

/* Readable when hb_api_server_step() has something to do. */
int hb_api_server_fd(const struct hb_api_server *server);

/* Milliseconds until hb_api_server_step() must be called in any case; -1: no limit. */
int hb_api_server_timeout_ms(const struct hb_api_server *server);

/* Does what there is to do, without waiting. */
void hb_api_server_step(struct hb_api_server *server);

#endif
