/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_access.h: who asks, and what that one may do.
 *
 * Over the Unix socket the kernel says who the peer is. Whoever can connect may read; change
 * something may root, the user that control runs as, and members of the socket's group. Over TCP
 * nobody knows who asks: reading only, unless the configuration says otherwise, and never for a
 * page in a browser (a foreign Host or an Origin).
 */
#ifndef HB_CONTROL_API_ACCESS_H
#define HB_CONTROL_API_ACCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "config.h"
#include "events.h"

struct evhttp_request;

/* The peer of a request's connection. */
struct hb_actor hb_api_actor(struct evhttp_request *http);

/* NULL when the request is permitted, else why it is not, with the remedy. `group` is the socket's.
 */
const char *hb_api_forbids(struct evhttp_request *http, const struct hb_actor *actor, bool change,
                           const struct hb_api_config *config, gid_t group);

#endif
