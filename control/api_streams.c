/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_streams.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "history_file.h"

#define WRITE_LIMIT_S 30 /* without progress: the client is gone */

struct stream {
    struct stream *next, **link;
    struct hb_api_streams *streams;
    struct evhttp_request *http;
};

struct hb_api_streams {
    struct hb_events *events;
    struct stream *list;
    unsigned count;
};

json_t *hb_event_json(const struct hb_event *event)
{
    return json_pack("{s:I, s:I, s:s, s:o, s:o, s:o, s:s}", "number", (json_int_t)event->number,
                     "unix_ms", (json_int_t)event->unix_ms, "type", hb_news_name(event->type),
                     "pool", event->pool[0] ? json_string(event->pool) : json_null(), "object",
                     event->object[0] ? json_string(event->object) : json_null(), "actor",
                     hb_actor_json(&event->actor), "message", event->message);
}

/* --- one stream --- */

static void forget(struct stream *stream)
{
    *stream->link = stream->next;
    if (stream->next != NULL)
        stream->next->link = stream->link;
    stream->streams->count--;
    free(stream);
}

static void on_closed(struct evhttp_connection *connection, void *context)
{
    (void)connection;
    forget(context);
}

static void end(struct stream *stream)
{
    struct evhttp_request *http = stream->http;

    evhttp_connection_set_closecb(evhttp_request_get_connection(http), NULL, NULL);
    forget(stream);
    evhttp_send_reply_end(http);
}

static void send_line(const struct stream *stream, json_t *object)
{
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    struct evbuffer *line = evbuffer_new();

    if (text != NULL && line != NULL && evbuffer_add_printf(line, "%s\n", text) > 0)
        evhttp_send_reply_chunk(stream->http, line);
    if (line != NULL)
        evbuffer_free(line);
    free(text);
    json_decref(object);
}

static size_t backlog(const struct stream *stream)
{
    struct evhttp_connection *connection = evhttp_request_get_connection(stream->http);

    return evbuffer_get_length(
        bufferevent_get_output(evhttp_connection_get_bufferevent(connection)));
}

static void send_notice(const struct stream *stream, const char *format, uint64_t number)
{
    char message[160];

    snprintf(message, sizeof(message), format, (unsigned long)number);
    send_line(stream, json_pack("{s:s, s:I, s:s}", "type", "notice", "number", (json_int_t)number,
                                "message", message));
}

/* Returns false when the stream was cut off. */
static bool send_event(struct stream *stream, const struct hb_event *event)
{
    if (backlog(stream) < HB_STREAM_BACKLOG_MAX) {
        send_line(stream, hb_event_json(event));
        return true;
    }
    send_notice(stream,
                "cut off: events come faster than they are read; go on from here with since=%lu",
                event->number - 1);
    end(stream);
    return false;
}

/* --- all --- */

static void on_event(void *context, const struct hb_event *event)
{
    struct hb_api_streams *streams = context;
    struct stream *next;

    for (struct stream *stream = streams->list; stream != NULL; stream = next) {
        next = stream->next;
        send_event(stream, event);
    }
}

static void send_kept(struct stream *stream, uint64_t since)
{
    const struct hb_events *events = stream->streams->events;
    uint64_t oldest = hb_events_oldest(events);

    if (since + 1 < oldest)
        send_notice(stream, "events before number %lu are not kept any more", oldest);
    for (uint64_t number = since + 1 < oldest ? oldest : since + 1;
         number != 0 && number <= hb_events_newest(events); number++) {
        if (!send_event(stream, hb_events_get(events, number)))
            return;
    }
}

int hb_api_streams_add(struct hb_api_streams *streams, struct evhttp_request *http, uint64_t since)
{
    struct timeval limit = {WRITE_LIMIT_S, 0};
    struct evhttp_connection *connection = evhttp_request_get_connection(http);
    struct stream *stream;

    if (streams == NULL)
        return -ENOMEM;
    if (streams->count == HB_STREAMS_MAX)
        return -EBUSY;
    stream = calloc(1, sizeof(*stream));
    if (stream == NULL)
        return -ENOMEM;
    *stream = (struct stream){
        .streams = streams, .http = http, .next = streams->list, .link = &streams->list};
    if (stream->next != NULL)
        stream->next->link = &stream->next;
    streams->list = stream;
    streams->count++;
    evhttp_connection_set_closecb(connection, on_closed, stream);
    evhttp_add_header(evhttp_request_get_output_headers(http), "Content-Type",
                      "application/x-ndjson");
    evhttp_send_reply_start(http, 200, NULL);
    /* Nothing to read for a long time is as it should be here. */
    bufferevent_set_timeouts(evhttp_connection_get_bufferevent(connection), NULL, &limit);
    send_kept(stream, since);
    return 0;
}

struct hb_api_streams *hb_api_streams_new(struct hb_events *events)
{
    struct hb_api_streams *streams = calloc(1, sizeof(*streams));

    if (streams == NULL)
        return NULL;
    streams->events = events;
    hb_events_listen(events, on_event, streams);
    return streams;
}

void hb_api_streams_free(struct hb_api_streams *streams)
{
    if (streams == NULL)
        return;
    hb_events_listen(streams->events, NULL, NULL);
    while (streams->list != NULL)
        end(streams->list);
    free(streams);
}
