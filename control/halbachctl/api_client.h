/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_client.h: one request to halbach-control (docs/api.md), one answer.
 */
#ifndef HB_CTL_API_CLIENT_H
#define HB_CTL_API_CLIENT_H

#include <curl/curl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct hb_answer {
    long status; /* of HTTP; 0: there was no answer */
    char *body;  /* as it came, zero terminated */
    size_t size;
    json_t *json;     /* the same, parsed */
    char error[1024]; /* why it failed, complete, for people; "" when it did not */
};

/* Asks for `path` ("/v1/status") over the Unix socket; `post` for requests that change something.
 * Returns 0 when the API did what was asked, else -1 with `error` set. The caller ends `answer`
 * with hb_answer_free() in either case. Blocks for at most ten seconds. */
int hb_api_request(const char *socket_path, bool post, const char *path, struct hb_answer *answer);

/* The same for a request with a body; blocks for at most a minute. */
int hb_api_post(const char *socket_path, const char *path, const char *body, size_t size,
                struct hb_answer *answer);

/* Takes one line of a stream, without its end; false ends the stream. */
typedef bool (*hb_line_taker)(void *context, const char *line, size_t size);
/* Asks for an answer that does not end. 0 when the taker ended it, else -1 with `error` set. */
int hb_api_stream(const char *socket_path, const char *path, hb_line_taker take, void *context,
                  struct hb_answer *answer);

/* For hb_api_stream(). A handle set up for a GET; `detail` has CURL_ERROR_SIZE bytes. */
CURL *hb_api_open(const char *socket_path, const char *path, char *detail);
bool hb_answer_append(struct hb_answer *answer, const char *data, size_t size);
/* Sets `json` and, if it was no good answer, `error`; returns 0 or -1. */
int hb_api_judge(const char *socket_path, const char *path, CURLcode code, const char *detail,
                 struct hb_answer *answer);

/* Prints "halbachctl: error", and the complaints of a refused configuration, one a line. */
void hb_answer_report(const struct hb_answer *answer, FILE *to);

void hb_answer_free(struct hb_answer *answer);

/* Writes `text` with everything escaped that has a meaning in a URL. Returns false when it is too
 * long. */
bool hb_url_escape(char *to, size_t size, const char *text);

#endif
