/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * publisher.c: the session with the dataplane (publisher.h, halbach/protocol.h).
 *
 *     idle --connect--> greeting --hello reply, regions mapped--> ready
 *       ^                  |                                        |
 *       +---- end_session(why): closed, refused, broken, silent ----+
 *
 * Requests wait in `unsent` until the socket takes them and in `sent` until they are answered;
 * replies come in the order of requests, so the head of `sent` says what the next message must be.
 * Errors of sending surface on the read side: calls of the owner never end the session under its
 * feet.
 */
#include "publisher.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "publisher_regions.h"
#include "publisher_requests.h"
#include "publisher_socket.h"

#define RECEIVE_BURST 64 /* messages a turn of the loop, so that others on the loop have theirs */

static const struct hb_publisher_timing default_timing = {
    .retry_ms = 100,
    .slow_retry_ms = 1000,
    .answer_ms = 5000,
};

enum state { IDLE, GREETING, READY };

struct hb_publisher {
    struct hb_publisher_events events;
    void *context;
    struct hb_publisher_timing timing;
    struct event_base *base;
    struct event *readable, *writable; /* of the connection, NULL without one */
    struct event *retry, *silence;
    enum state state;
    int fd;
    int send_error; /* found while sending, told by the read side */
    struct hb_requests requests;
    bool publishing; /* a PUBLISH is among them */
    int next_fd;     /* the newest generation offered meanwhile, or -1 */
    uint64_t next_number;
    struct hb_hello_reply hello;
    struct hb_region counters;
    char why[HB_TEXT_SIZE * 2]; /* the last reason told, "" while connected */
    char path[];
};

static struct timeval to_timeval(unsigned ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
}

static void arm(struct event *timer, unsigned ms)
{
    struct timeval delay = to_timeval(ms);

    event_add(timer, &delay);
}

/* ---- requests ---- */

/* Sends what the socket takes. A hard error is left to the read side, which is woken for it. */
static void flush_requests(struct hb_publisher *publisher)
{
    int error = hb_requests_flush(&publisher->requests, publisher->fd);

    if (error == -EAGAIN) {
        event_add(publisher->writable, NULL);
    } else if (error != 0) {
        publisher->send_error = error;
        event_active(publisher->readable, EV_READ, 1);
    }
}

static void start_request(struct hb_publisher *publisher, struct hb_request *request)
{
    if (hb_requests_empty(&publisher->requests))
        arm(publisher->silence, publisher->timing.answer_ms);
    hb_requests_add(&publisher->requests, request);
    flush_requests(publisher);
}

/* Sends the generation that waits, unless one is under way. */
static int start_publish(struct hb_publisher *publisher)
{
    struct hb_request *request;

    if (publisher->publishing || publisher->next_fd < 0)
        return 0;
    request = hb_request_new(HB_MSG_PUBLISH);
    if (!request)
        return -ENOMEM;
    request->message.publish.number = publisher->next_number;
    request->passed_fd = publisher->next_fd;
    publisher->next_fd = -1;
    publisher->publishing = true;
    start_request(publisher, request);
    return 0;
}

/* ---- the end of a session ---- */

static void close_connection(struct hb_publisher *publisher)
{
    publisher->state = IDLE;
    event_del(publisher->silence);
    if (publisher->readable)
        event_free(publisher->readable);
    if (publisher->writable)
        event_free(publisher->writable);
    publisher->readable = publisher->writable = NULL;
    if (publisher->fd >= 0)
        close(publisher->fd);
    publisher->fd = -1;
    if (publisher->next_fd >= 0)
        close(publisher->next_fd);
    publisher->next_fd = -1;
    publisher->publishing = false;
    publisher->send_error = 0;
}

/* The session is over, or there was none. Tells the owner only what it has not heard yet. */
static void end_session(struct hb_publisher *publisher, unsigned retry_ms, const char *why)
{
    close_connection(publisher);
    hb_requests_drop(&publisher->requests);
    arm(publisher->retry, retry_ms);
    if (strcmp(publisher->why, why) != 0) {
        snprintf(publisher->why, sizeof(publisher->why), "%s", why);
        if (publisher->events.disconnected)
            publisher->events.disconnected(publisher->context, publisher->why);
    }
    /* The owner may look at the last counters until it has been told. */
    hb_region_unmap(&publisher->counters);
}

static void __attribute__((format(printf, 3, 4)))
fail(struct hb_publisher *publisher, unsigned retry_ms, const char *format, ...)
{
    char why[sizeof(publisher->why)];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(why, sizeof(why), format, arguments);
    va_end(arguments);
    end_session(publisher, retry_ms, why);
}

/* ---- replies ---- */

static int map_regions(struct hb_publisher *publisher, struct hb_received *received,
                       struct hb_region *generation, char *why, size_t why_size)
{
    const struct hb_hello_reply *hello = &received->message.hello;
    unsigned fds_expected = hello->generation_number != 0 ? 2 : 1;
    char fault[HB_TEXT_SIZE] = "";

    if (received->fds_count != fds_expected)
        return snprintf(why, why_size, "its hello brings %u file descriptors instead of %u",
                        received->fds_count, fds_expected);
    if (hello->ports > HB_PORTS_MAX || hello->workers > HB_WORKERS_MAX)
        return snprintf(why, why_size, "its hello counts %u ports and %u workers", hello->ports,
                        hello->workers);
    if (hb_region_map_counters(received->fds[0], hello->instance, &publisher->counters, fault,
                               sizeof(fault)) != 0)
        return snprintf(why, why_size, "its counters region is not usable: %s", fault);
    if (hello->generation_number != 0 &&
        hb_region_map_generation(received->fds[1], hello->generation_number, generation, fault,
                                 sizeof(fault)) != 0)
        return snprintf(why, why_size, "the generation it hands back is not usable: %s", fault);
    return 0;
}

static void handle_hello(struct hb_publisher *publisher, struct hb_received *received)
{
    struct hb_region generation = {0};
    char why[HB_TEXT_SIZE + 64];

    if (map_regions(publisher, received, &generation, why, sizeof(why)) != 0) {
        fail(publisher, publisher->timing.slow_retry_ms, "the dataplane at %s: %s", publisher->path,
             why);
        return;
    }
    publisher->hello = received->message.hello;
    publisher->state = READY;
    publisher->why[0] = '\0';
    if (publisher->events.connected)
        publisher->events.connected(publisher->context, &publisher->hello, generation.data,
                                    generation.size);
    hb_region_unmap(&generation);
}

static void handle_reply(struct hb_publisher *publisher, struct hb_request *request,
                         struct hb_received *received)
{
    switch (received->message.header.type) {
    case HB_MSG_HELLO_REPLY:
        handle_hello(publisher, received);
        break;
    case HB_MSG_PUBLISH_REPLY:
        publisher->publishing = false;
        if (publisher->events.published)
            publisher->events.published(publisher->context, &received->message.publish);
        /* What waits may have been replaced by a newer one, and sent, in the line above. */
        if (publisher->state == READY)
            start_publish(publisher);
        break;
    case HB_MSG_LOOKUP_REPLY:
        request->done(request->done_context, &received->message.lookup);
        break;
    case HB_MSG_SETTLE_REPLY:
        request->settled(request->done_context, &received->message.settle);
        break;
    case HB_MSG_FLUSH_REPLY:
        request->flushed(request->done_context, &received->message.flush);
        break;
    }
}

/* Takes the request that a reply belongs to off its list; the next answer has its full time again.
 */
static struct hb_request *pop_request(struct hb_publisher *publisher)
{
    struct hb_request *request = hb_requests_pop(&publisher->requests);

    if (hb_requests_empty(&publisher->requests))
        event_del(publisher->silence);
    else
        arm(publisher->silence, publisher->timing.answer_ms);
    return request;
}

static void handle_message(struct hb_publisher *publisher, struct hb_received *received)
{
    const struct hb_expected *expected = hb_requests_expected(&publisher->requests);
    char why[HB_TEXT_SIZE];
    int verdict = hb_received_check(received, expected, why, sizeof(why));

    if (verdict == 0 && received->fds_count > 0 &&
        received->message.header.type != HB_MSG_HELLO_REPLY) {
        snprintf(why, sizeof(why), "a message of type %u brings file descriptors",
                 received->message.header.type);
        verdict = -EPROTO;
    }
    if (verdict < 0) {
        fail(publisher, publisher->timing.slow_retry_ms,
             "the dataplane at %s breaks the protocol: %s", publisher->path, why);
    } else if (verdict > 0) {
        fail(publisher, publisher->timing.slow_retry_ms,
             "the dataplane at %s refuses this control: %s", publisher->path,
             received->message.refused.text);
    } else {
        struct hb_request *request = pop_request(publisher);

        handle_reply(publisher, request, received);
        hb_request_free(request);
    }
}

/* ---- events of the loop ---- */

static void on_readable(evutil_socket_t fd, short what, void *argument)
{
    struct hb_publisher *publisher = argument;
    struct hb_received received;
    int i;

    (void)what;
    for (i = 0; i < RECEIVE_BURST && publisher->state != IDLE; i++) {
        int got = hb_message_receive(fd, &received);

        if (got == -EAGAIN && publisher->send_error == 0)
            return;
        if (got > 0)
            handle_message(publisher, &received);
        else if (got == 0)
            fail(publisher, publisher->timing.retry_ms, "the dataplane at %s closed the connection",
                 publisher->path);
        else
            fail(publisher, publisher->timing.retry_ms,
                 "the connection to the dataplane at %s broke: %s", publisher->path,
                 strerror(got == -EAGAIN ? -publisher->send_error : -got));
        hb_received_close(&received);
    }
}

static void on_writable(evutil_socket_t fd, short what, void *argument)
{
    (void)fd;
    (void)what;
    flush_requests(argument);
}

static void on_silence(evutil_socket_t fd, short what, void *argument)
{
    struct hb_publisher *publisher = argument;

    (void)fd;
    (void)what;
    fail(publisher, publisher->timing.slow_retry_ms,
         "the dataplane at %s has not answered for %g s; connecting anew", publisher->path,
         publisher->timing.answer_ms / 1000.0);
}

static const char *remedy_of(int error)
{
    switch (error) {
    case ENOENT:
    case ECONNREFUSED:
        return "; is halbach-dataplane running, with this --socket?";
    case EACCES:
        return "; control needs write permission on the socket";
    case EPROTOTYPE:
        return "; another program's socket is there";
    default:
        return "";
    }
}

static int open_connection(struct hb_publisher *publisher)
{
    struct hb_request *hello = hb_request_new(HB_MSG_HELLO);

    if (!hello)
        return -ENOMEM;
    publisher->fd = hb_dataplane_connect(publisher->path);
    if (publisher->fd < 0) {
        hb_request_free(hello);
        return publisher->fd;
    }
    publisher->readable =
        event_new(publisher->base, publisher->fd, EV_READ | EV_PERSIST, on_readable, publisher);
    publisher->writable =
        event_new(publisher->base, publisher->fd, EV_WRITE, on_writable, publisher);
    if (!publisher->readable || !publisher->writable || event_add(publisher->readable, NULL) != 0) {
        hb_request_free(hello);
        return -ENOMEM;
    }
    publisher->state = GREETING;
    hello->message.hello.pid = (uint32_t)getpid();
    snprintf(hello->message.hello.name, HB_NAME_SIZE, "%s", "halbach-control");
    start_request(publisher, hello);
    return 0;
}

static void on_retry(evutil_socket_t fd, short what, void *argument)
{
    struct hb_publisher *publisher = argument;
    int error = open_connection(publisher);

    (void)fd;
    (void)what;
    if (error != 0)
        fail(publisher, publisher->timing.retry_ms, "cannot connect to the dataplane at %s: %s%s",
             publisher->path, strerror(-error), remedy_of(-error));
}

/* ---- what the owner calls ---- */

struct hb_publisher *hb_publisher_open(struct event_base *base, const char *socket_path,
                                       const struct hb_publisher_events *events, void *context)
{
    size_t path_size = strlen(socket_path) + 1;
    struct hb_publisher *publisher = calloc(1, sizeof(*publisher) + path_size);

    if (!publisher)
        return NULL;
    publisher->events = *events;
    publisher->context = context;
    publisher->timing = default_timing;
    publisher->base = base;
    publisher->fd = publisher->next_fd = -1;
    hb_requests_init(&publisher->requests);
    memcpy(publisher->path, socket_path, path_size);
    publisher->retry = evtimer_new(base, on_retry, publisher);
    publisher->silence = evtimer_new(base, on_silence, publisher);
    if (!publisher->retry || !publisher->silence) {
        hb_publisher_close(publisher);
        return NULL;
    }
    arm(publisher->retry, 0);
    return publisher;
}

void hb_publisher_close(struct hb_publisher *publisher)
{
    if (!publisher)
        return;
    if (publisher->silence) {
        close_connection(publisher);
        event_free(publisher->silence);
    }
    if (publisher->retry)
        event_free(publisher->retry);
    hb_requests_drop(&publisher->requests);
    hb_region_unmap(&publisher->counters);
    free(publisher);
}

void hb_publisher_set_timing(struct hb_publisher *publisher,
                             const struct hb_publisher_timing *timing)
{
    publisher->timing = *timing;
}

bool hb_publisher_connected(const struct hb_publisher *publisher)
{
    return publisher->state == READY;
}

int hb_publisher_offer(struct hb_publisher *publisher, const void *blob, size_t size)
{
    const struct hb_generation_header *header = blob;
    int fd;

    if (publisher->state != READY)
        return -ENOTCONN;
    if (size < sizeof(*header) || header->total_size != size)
        return -EINVAL;
    fd = hb_region_seal(blob, size);
    if (fd < 0)
        return fd;
    if (publisher->next_fd >= 0)
        close(publisher->next_fd);
    publisher->next_fd = fd;
    publisher->next_number = header->number;
    return start_publish(publisher);
}

int hb_publisher_lookup(struct hb_publisher *publisher, const struct hb_flow_key *flow,
                        hb_lookup_done done, void *context)
{
    struct hb_request *request;

    if (publisher->state != READY)
        return -ENOTCONN;
    request = hb_request_new(HB_MSG_LOOKUP);
    if (!request)
        return -ENOMEM;
    request->message.lookup.flow = *flow;
    request->done = done;
    request->done_context = context;
    start_request(publisher, request);
    return 0;
}

int hb_publisher_flush(struct hb_publisher *publisher, hb_flush_done done, void *context)
{
    struct hb_request *request;

    if (publisher->state != READY)
        return -ENOTCONN;
    request = hb_request_new(HB_MSG_FLUSH);
    if (!request)
        return -ENOMEM;
    request->flushed = done;
    request->done_context = context;
    start_request(publisher, request);
    return 0;
}

int hb_publisher_settle(struct hb_publisher *publisher, const struct hb_settle *settle,
                        hb_settle_done done, void *context)
{
    struct hb_request *request;

    if (publisher->state != READY)
        return -ENOTCONN;
    request = hb_request_new(HB_MSG_SETTLE);
    if (!request)
        return -ENOMEM;
    memcpy(request->message.settle.digest, settle->digest, HB_DIGEST_SIZE);
    request->message.settle.idle_ms = settle->idle_ms;
    request->message.settle.first = settle->first;
    request->settled = done;
    request->done_context = context;
    start_request(publisher, request);
    return 0;
}

const struct hb_counters_header *hb_publisher_counters(const struct hb_publisher *publisher)
{
    return publisher->counters.data;
}

const struct hb_hello_reply *hb_publisher_hello(const struct hb_publisher *publisher)
{
    return publisher->state == READY ? &publisher->hello : NULL;
}
