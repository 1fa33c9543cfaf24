/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_server.h: HTTP and JSON on a Unix socket, as docs/api.md describes it.
 *
 * One control a socket: a lock file beside it (SOCKET.lock, which stays) is held for the life of
 * the process, so a live socket is never unlinked, and one that was left behind by a crash is.
 * Requests are handled on control's event loop; those that change something are answered when the
 * dataplane has adopted the change, or after two seconds.
 */
#ifndef HB_CONTROL_API_SERVER_H
#define HB_CONTROL_API_SERVER_H

#include <stddef.h>

struct event_base;
struct hb_api;
struct hb_api_config;
struct hb_control;

/* Takes the socket and listens; clients wait until hb_api_start(). Logs what is wrong (with the pid
 * of another control, if that is it) and returns NULL. */
struct hb_api *hb_api_open(struct event_base *base, const char *path, struct hb_control *control);

/* Starts to answer. Once the model is there. */
void hb_api_start(struct hb_api *api);

/* What the configuration says of the API, in two steps so that a reload is all or nothing: opens
 * what will be listened on (negative errno with a message when it cannot be), then either takes it
 * into use (and opens it, if that was not done: an error is logged) or drops it. */
int hb_api_prepare(struct hb_api *api, const struct hb_api_config *config, char *problem,
                   size_t size);
void hb_api_configure(struct hb_api *api, const struct hb_api_config *config);
void hb_api_abandon(struct hb_api *api);

/* The dataplane has answered: requests that wait for it may be answered too. */
void hb_api_published(struct hb_api *api);

/* Drops pending requests and removes the socket. NULL is nothing. */
void hb_api_close(struct hb_api *api);

#endif
