/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GET /v1/events (docs/api.md): the events that are kept, or a stream of them.
 */
#include <errno.h>
#include <event2/http.h>
#include <string.h>

#include "api_internal.h"
#include "api_streams.h"

static void follow(struct hb_api_call *call, uint64_t since)
{
    struct evhttp_request *http = call->http;
    struct hb_api_streams *streams = hb_api_streams_of(call->api);
    int error;

    evhttp_connection_set_closecb(evhttp_request_get_connection(http), NULL, NULL);
    error = hb_api_streams_add(streams, http, since);
    if (error == 0) {
        call->http = NULL;
        hb_api_release(call);
    } else if (error == -EBUSY) {
        hb_api_refuse(call, 503, "%d clients follow the events already; end one of them",
                      HB_STREAMS_MAX);
    } else {
        hb_api_answer(call, 500, NULL);
    }
}

void hb_api_get_events(struct hb_api_call *call)
{
    const struct hb_events *events = call->control->events;
    json_t *list;
    uint64_t since, wanted, newest = hb_events_newest(events);

    if (!hb_api_number(call, "follow", 1, 0, &wanted) ||
        !hb_api_number(call, "since", INT64_MAX, wanted ? newest : 0, &since))
        return;
    if (wanted) {
        follow(call, since);
        return;
    }
    if (since + 1 < hb_events_oldest(events))
        since = hb_events_oldest(events) - 1;
    list = json_array();
    for (uint64_t number = since + 1; number <= newest; number++)
        json_array_append_new(list, hb_event_json(hb_events_get(events, number)));
    hb_api_answer(call, 200,
                  json_pack("{s:I, s:I, s:o}", "oldest", (json_int_t)hb_events_oldest(events),
                            "newest", (json_int_t)newest, "events", list));
}
