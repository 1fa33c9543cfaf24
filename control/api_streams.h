/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_streams.h: clients that follow the events.
 *
 * Each new event goes to each of them as one line of JSON. A client that does not read is cut off
 * once its backlog is too long: it gets a last line that says so, and control never waits.
 */
#ifndef HB_CONTROL_API_STREAMS_H
#define HB_CONTROL_API_STREAMS_H

#include <jansson.h>
#include <stdint.h>

#include "events.h"

#define HB_STREAMS_MAX        64
#define HB_STREAM_BACKLOG_MAX (256 << 10) /* bytes */

struct evhttp_request;
struct hb_api_streams;

/* NULL without memory: then nobody can follow. `events` must outlive it. */
struct hb_api_streams *hb_api_streams_new(struct hb_events *events);
/* Ends all streams. */
void hb_api_streams_free(struct hb_api_streams *streams);

/* Begins the answer to a request: all kept events after number `since`, then the new ones. Takes
 * the request over. 0; -EBUSY: too many follow already; -ENOMEM. */
int hb_api_streams_add(struct hb_api_streams *streams, struct evhttp_request *http, uint64_t since);

json_t *hb_event_json(const struct hb_event *event);

#endif
