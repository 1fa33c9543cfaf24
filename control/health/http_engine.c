/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http_engine.c: see http_engine.h.
 */
#include "http_engine.h"

#include <errno.h>
#include <stdlib.h>

#include <event2/event.h>

struct hb_http {
    struct event_base *base;
    CURLM *multi;
    struct event *timer;
};

/* Hands on what has ended. A `done` may cancel others; libcurl drops their messages then. */
static void report_ends(struct hb_http *http)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(http->multi, &left)) != NULL) {
        CURLcode code = message->data.result;
        CURL *easy = message->easy_handle;
        struct hb_http_transfer *transfer = NULL;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&transfer);
        curl_multi_remove_handle(http->multi, easy); /* the message is gone with it */
        transfer->done(transfer->context, code);
    }
}

static void act(struct hb_http *http, curl_socket_t fd, int events)
{
    int running;

    curl_multi_socket_action(http->multi, fd, events, &running);
    report_ends(http);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    act(context, CURL_SOCKET_TIMEOUT, 0);
}

static void on_socket(evutil_socket_t fd, short what, void *context)
{
    int events = (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);

    act(context, fd, events);
}

/* libcurl wants to be woken up in so many milliseconds; -1: not at all. */
static int set_timer(CURLM *multi, long timeout_ms, void *context)
{
    struct hb_http *http = context;
    struct timeval delay = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};

    (void)multi;
    if (timeout_ms < 0)
        evtimer_del(http->timer);
    else
        evtimer_add(http->timer, &delay);
    return 0;
}

/* libcurl wants to hear of a socket, or no more. `watch` is the event that it keeps for us. */
static int set_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *watch)
{
    struct hb_http *http = context;
    short events = EV_PERSIST;

    (void)easy;
    if (watch != NULL)
        event_free(watch);
    if (what == CURL_POLL_REMOVE) {
        curl_multi_assign(http->multi, fd, NULL);
        return 0;
    }
    events |= (short)((what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0));
    watch = event_new(http->base, fd, events, on_socket, http);
    if (watch == NULL || event_add(watch, NULL) < 0)
        return -1;
    curl_multi_assign(http->multi, fd, watch);
    return 0;
}

struct hb_http *hb_http_open(struct event_base *base)
{
    struct hb_http *http = calloc(1, sizeof(*http));

    if (http == NULL)
        return NULL;
    http->base = base;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
        free(http);
        return NULL;
    }
    http->multi = curl_multi_init();
    http->timer = evtimer_new(base, on_timer, http);
    if (http->multi == NULL || http->timer == NULL) {
        hb_http_close(http);
        return NULL;
    }
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, set_socket);
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
    curl_multi_setopt(http->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
    return http;
}

void hb_http_close(struct hb_http *http)
{
    if (http == NULL)
        return;
    if (http->multi != NULL)
        curl_multi_cleanup(http->multi);
    if (http->timer != NULL)
        event_free(http->timer);
    curl_global_cleanup();
    free(http);
}

int hb_http_start(struct hb_http *http, struct hb_http_transfer *transfer)
{
    curl_easy_setopt(transfer->easy, CURLOPT_PRIVATE, transfer);
    return curl_multi_add_handle(http->multi, transfer->easy) == CURLM_OK ? 0 : -ENOMEM;
}

void hb_http_cancel(struct hb_http *http, struct hb_http_transfer *transfer)
{
    curl_multi_remove_handle(http->multi, transfer->easy);
}
