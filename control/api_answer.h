/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_answer.h: what the API's server and its answers share; handlers use api_internal.h.
 */
#ifndef HB_CONTROL_API_ANSWER_H
#define HB_CONTROL_API_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "api_socket.h"
#include "config.h"

struct event_base;
struct evhttp;
struct evhttp_bound_socket;
struct evhttp_request;
struct hb_api_call;
struct hb_api_streams;
struct hb_control;

struct hb_api {
    struct event_base *base;
    struct hb_control *control;
    struct evhttp *http;
    struct hb_api_socket listener;
    struct evhttp_bound_socket *tcp; /* NULL: none */
    int prepared;                    /* a TCP socket that a reload will use, or -1 */
    struct hb_api_config config;
    struct hb_api_call *calls; /* not answered yet */
    struct hb_api_streams *streams;
    bool accepting;
};

/* For a request that there was no memory to make a call of. */
void hb_api_answer_no_memory(struct evhttp_request *http);

/* Takes the quotes from around what hb_json_count() marked, in place; returns the length. */
size_t hb_json_unmark(char *text);

#endif
