/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a call ends: with an answer now, or when the dataplane has adopted what it changed.
 */
#include "api_answer.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_internal.h"

#define APPLY_WAIT_S 2

/* --- integers without a sign --- */

/* jansson's integers have one. Larger ones go through it as strings that begin with this character,
 * which no text of ours does, and lose their quotes when the document is printed. */
#define MARK      "\x1f"
#define MARK_JSON "\"\\u001F" /* as jansson prints it */

json_t *hb_json_count(uint64_t count)
{
    char text[32];

    if (count <= INT64_MAX)
        return json_integer((json_int_t)count);
    snprintf(text, sizeof(text), MARK "%" PRIu64, count);
    return json_string(text);
}

size_t hb_json_unmark(char *text)
{
    const char *from = text;
    char *to = text;
    const size_t mark = strlen(MARK_JSON);

    while (*from != '\0') {
        size_t digits;

        /* A quote behind a backslash is inside of a string. */
        if (strncmp(from, MARK_JSON, mark) == 0 && (from == text || from[-1] != '\\') &&
            (digits = strspn(from + mark, "0123456789")) > 0 && from[mark + digits] == '"') {
            memmove(to, from + mark, digits);
            to += digits;
            from += mark + digits + 1;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
    return (size_t)(to - text);
}

/* --- answers --- */

void hb_api_release(struct hb_api_call *call)
{
    *call->link = call->next;
    if (call->next != NULL)
        call->next->link = call->link;
    if (call->http != NULL) {
        struct evhttp_connection *connection = evhttp_request_get_connection(call->http);

        if (connection != NULL)
            evhttp_connection_set_closecb(connection, NULL, NULL);
    }
    if (call->deadline != NULL)
        event_free(call->deadline);
    evhttp_clear_headers(&call->query);
    json_decref(call->answer);
    free(call);
}

static void send_bytes(struct evhttp_request *http, int status, const char *type, const char *text,
                       size_t size)
{
    struct evbuffer *body = evbuffer_new();

    if (body != NULL)
        evbuffer_add(body, text, size);
    evhttp_add_header(evhttp_request_get_output_headers(http), "Content-Type", type);
    evhttp_send_reply(http, status, NULL, body);
    if (body != NULL)
        evbuffer_free(body);
}

void hb_api_answer_no_memory(struct evhttp_request *http)
{
    static const char text[] = "{\"error\": {\"message\": \"halbach-control is out of memory\"}}\n";

    send_bytes(http, 500, "application/json", text, sizeof(text) - 1);
}

void hb_api_answer_text(struct hb_api_call *call, const char *type, const char *text, size_t size)
{
    struct evhttp_request *http = call->http;

    hb_api_release(call);
    if (http != NULL)
        send_bytes(http, 200, type, text, size);
}

void hb_api_answer(struct hb_api_call *call, int status, json_t *body)
{
    struct evhttp_request *http = call->http;
    char *text = body ? json_dumps(body, JSON_INDENT(2)) : NULL;

    json_decref(body);
    hb_api_release(call);
    if (http != NULL && text != NULL) {
        size_t size = hb_json_unmark(text);

        text[size++] = '\n'; /* in place of the terminator */
        send_bytes(http, status, "application/json", text, size);
    } else if (http != NULL) {
        hb_api_answer_no_memory(http);
    }
    free(text);
}

/* What a client sent may be no UTF-8, and JSON has to be: then only ASCII is left. */
static void make_text(char *message)
{
    json_t *text = json_string(message);

    for (; text == NULL && *message != '\0'; message++)
        *message = (unsigned char)*message < 0x80 ? *message : '?';
    json_decref(text);
}

void hb_api_refuse(struct hb_api_call *call, int status, const char *format, ...)
{
    char message[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    make_text(message);
    hb_api_answer(call, status, json_pack("{s:{s:s}}", "error", "message", message));
}

static void finish_waiting(struct hb_api_call *call)
{
    const struct hb_publication *publication = &call->control->publication;
    bool applied =
        publication->connected && publication->serving >= call->wanted && publication->serving != 0;
    json_t *answer = call->answer;

    call->answer = NULL;
    json_object_set_new(answer, "applied", json_boolean(applied));
    json_object_set_new(answer, "generation",
                        json_integer((json_int_t)(applied ? publication->serving : call->wanted)));
    hb_api_answer(call, 200, answer);
}

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    finish_waiting(context);
}

void hb_api_answer_applied(struct hb_api_call *call, json_t *body)
{
    struct timeval limit = {APPLY_WAIT_S, 0};

    if (body == NULL) {
        hb_api_answer(call, 500, NULL);
        return;
    }
    call->answer = body;
    call->wanted = call->control->publication.wanted;
    if (!hb_publication_in_sync(&call->control->publication)) {
        call->deadline = evtimer_new(call->api->base, on_deadline, call);
        if (call->deadline != NULL && event_add(call->deadline, &limit) == 0)
            return;
    }
    finish_waiting(call);
}

void hb_api_published(struct hb_api *api)
{
    struct hb_api_call *next;

    for (struct hb_api_call *call = api->calls; call != NULL; call = next) {
        next = call->next;
        if (call->answer != NULL && api->control->publication.serving >= call->wanted)
            finish_waiting(call);
    }
}

bool hb_api_number(struct hb_api_call *call, const char *name, uint64_t most, uint64_t otherwise,
                   uint64_t *number)
{
    const char *text = hb_api_argument(call, name);
    char *end;

    *number = otherwise;
    if (text == NULL)
        return true;
    errno = 0;
    *number = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *number <= most)
        return true;
    hb_api_refuse(call, 400, "argument '%s' is \"%s\"; expected a whole number from 0 to %" PRIu64,
                  name, text, most);
    return false;
}

const char *hb_api_argument(const struct hb_api_call *call, const char *name)
{
    return evhttp_find_header(&call->query, name);
}
