/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http_engine.h: all HTTP transfers of the health checks, by libcurl's multi interface on control's
 * event loop.
 *
 * libcurl says which sockets to watch and when to wake it up; the engine tells libevent, and hands
 * what happens back. One engine serves thousands of transfers, and none waits for another.
 */
#ifndef HB_CONTROL_HEALTH_HTTP_ENGINE_H
#define HB_CONTROL_HEALTH_HTTP_ENGINE_H

#include <curl/curl.h>

struct event_base;
struct hb_http;

/* A transfer has ended. Called from the event loop and never from within hb_http_start(); may start
 * and cancel any transfer and free its own handle. */
typedef void (*hb_http_done)(void *context, CURLcode code);

struct hb_http_transfer {
    CURL *easy;
    hb_http_done done;
    void *context;
};

/* NULL: no memory, or libcurl cannot start. */
struct hb_http *hb_http_open(struct event_base *base);
void hb_http_close(struct hb_http *http); /* no transfer is under way; NULL is allowed */

/* *transfer stays where it is until it has ended. 0 or -ENOMEM. */
int hb_http_start(struct hb_http *http, struct hb_http_transfer *transfer);
/* Drops a transfer that is under way, without `done`. */
void hb_http_cancel(struct hb_http *http, struct hb_http_transfer *transfer);

#endif
