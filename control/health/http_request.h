/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http_request.h: one HTTP request of a check, again and again, on a connection of its own each
 * time.
 *
 * What check_http.c and check_grpc.c share: the connection goes the probe's way (address, mark,
 * source), knows no proxy, is closed by RST and never used again; the time limit covers all of it;
 * and what went wrong below HTTP becomes a reason.
 */
#ifndef HB_CONTROL_HEALTH_HTTP_REQUEST_H
#define HB_CONTROL_HEALTH_HTTP_REQUEST_H

#include "checker.h"
#include "http_engine.h"

/* An answer came whole, or was cut short by the check itself (CURLE_WRITE_ERROR): whether it is a
 * good one, and what it says, for people. */
typedef enum hb_probe_reason (*hb_http_judge)(void *context, char *text, size_t size);

struct hb_http_request {
    const struct hb_check_setup *setup;
    hb_http_judge judge;
    void *context;
    struct hb_http_transfer transfer; /* transfer.easy takes further options */
    struct curl_slist *headers;
    struct curl_slist *connect_to;
    bool under_way;
    int socket_error; /* negative errno of a socket that could not be had */
    uint64_t started_ms;
    char error[CURL_ERROR_SIZE];
};

/* Prepares a request for `path` at the configured host, or the target's address, over TLS as the
 * configuration says. 0 or -ENOMEM; in any case it is ended with hb_http_request_end(). */
int hb_http_request_begin(struct hb_http_request *request, const struct hb_check_setup *setup,
                          const char *path, hb_http_judge judge, void *context);
/* Adds a header line; 0 or -ENOMEM. */
int hb_http_request_header(struct hb_http_request *request, const char *line);
/* Starts it, as a checker's `begin`. The check is told its end by setup->done. */
int hb_http_request_start(struct hb_http_request *request);
/* Frees all; a transfer under way is dropped. */
void hb_http_request_end(struct hb_http_request *request);

#endif
