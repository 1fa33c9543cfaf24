/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_server.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "api_internal.h"
#include "api_socket.h"
#include "log.h"

#define APPLY_WAIT_S 2
#define IDLE_LIMIT_S 60
#define HEADERS_MAX  16384
#define BODY_MAX     (16 << 20) /* a configuration; no other request has a body that matters */

struct hb_api {
    struct event_base *base;
    struct hb_control *control;
    struct evhttp *http;
    struct hb_api_socket listener;
    struct hb_api_call *calls; /* not answered yet */
    bool accepting;
};

typedef void (*handler)(struct hb_api_call *call);

/* `suffix` NULL: the path is the prefix; else a NAME stands between the two. */
struct route {
    enum evhttp_cmd_type method;
    const char *prefix;
    const char *suffix;
    const char *arguments; /* that the query may have, each between spaces */
    handler handle;
};

static const struct route routes[] = {
    {EVHTTP_REQ_GET, "/v1/status", NULL, "", hb_api_get_status},
    {EVHTTP_REQ_GET, "/v1/services", NULL, "", hb_api_get_services},
    {EVHTTP_REQ_GET, "/v1/backends", NULL, "", hb_api_get_backends},
    {EVHTTP_REQ_POST, "/v1/backends/", "/drain", " pool deadline at_deadline force ",
     hb_api_post_drain},
    {EVHTTP_REQ_POST, "/v1/backends/", "/undrain", " pool ", hb_api_post_undrain},
    {EVHTTP_REQ_POST, "/v1/backends/", "/weight", " pool weight reset force ", hb_api_post_weight},
    {EVHTTP_REQ_POST, "/v1/reload", NULL, "", hb_api_post_reload},
    {EVHTTP_REQ_POST, "/v1/plan", NULL, " file ", hb_api_post_plan},
    {EVHTTP_REQ_GET, "/v1/stats", NULL, "", hb_api_get_stats},
    {EVHTTP_REQ_GET, "/v1/drops", NULL, "", hb_api_get_drops},
    {EVHTTP_REQ_GET, "/v1/lookup", NULL, " client vip protocol ", hb_api_get_lookup},
};

/* --- answers --- */

static void free_call(struct hb_api_call *call)
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

static void send_text(struct evhttp_request *http, int status, const char *text)
{
    struct evbuffer *body = evbuffer_new();

    if (body != NULL)
        evbuffer_add_printf(body, "%s\n", text);
    evhttp_add_header(evhttp_request_get_output_headers(http), "Content-Type", "application/json");
    evhttp_send_reply(http, status, NULL, body);
    if (body != NULL)
        evbuffer_free(body);
}

void hb_api_answer(struct hb_api_call *call, int status, json_t *body)
{
    struct evhttp_request *http = call->http;
    char *text = body ? json_dumps(body, JSON_INDENT(2)) : NULL;

    json_decref(body);
    free_call(call);
    if (http != NULL && text != NULL)
        send_text(http, status, text);
    else if (http != NULL)
        send_text(http, 500, "{\"error\": {\"message\": \"halbach-control is out of memory\"}}");
    free(text);
}

void hb_api_refuse(struct hb_api_call *call, int status, const char *format, ...)
{
    char message[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
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

const char *hb_api_argument(const struct hb_api_call *call, const char *name)
{
    return evhttp_find_header(&call->query, name);
}

/* --- requests --- */

/* The client closed its connection; libevent frees the request. */
static void on_closed(struct evhttp_connection *connection, void *context)
{
    struct hb_api_call *call = context;

    (void)connection;
    call->http = NULL;
    if (call->answer != NULL)
        free_call(call);
    /* Else a lookup is under way and ends it. */
}

static struct hb_api_call *start_call(struct hb_api *api, struct evhttp_request *http)
{
    struct hb_api_call *call = calloc(1, sizeof(*call));

    if (call == NULL) {
        send_text(http, 500, "{\"error\": {\"message\": \"halbach-control is out of memory\"}}");
        return NULL;
    }
    call->api = api;
    call->control = api->control;
    call->http = http;
    TAILQ_INIT(&call->query);
    call->next = api->calls;
    call->link = &api->calls;
    if (call->next != NULL)
        call->next->link = &call->next;
    api->calls = call;
    evhttp_connection_set_closecb(evhttp_request_get_connection(http), on_closed, call);
    return call;
}

/* Whether a path is the route's; the NAME in it, decoded, goes to `argument`. */
static bool match_path(const struct route *route, const char *path, char *argument, size_t size)
{
    size_t prefix = strlen(route->prefix), length = strlen(path), suffix, decoded_size;
    char encoded[sizeof(((struct hb_api_call *)0)->argument)];
    char *decoded;
    bool fits;

    if (route->suffix == NULL)
        return strcmp(path, route->prefix) == 0;
    suffix = strlen(route->suffix);
    if (length <= prefix + suffix || length - prefix - suffix >= sizeof(encoded) ||
        strncmp(path, route->prefix, prefix) != 0 ||
        strcmp(path + length - suffix, route->suffix) != 0)
        return false;
    snprintf(encoded, sizeof(encoded), "%.*s", (int)(length - prefix - suffix), path + prefix);
    if (strchr(encoded, '/') != NULL)
        return false;
    decoded = evhttp_uridecode(encoded, 0, &decoded_size);
    fits = decoded != NULL && decoded_size < size && strlen(decoded) == decoded_size;
    if (fits)
        memcpy(argument, decoded, decoded_size + 1);
    free(decoded);
    return fits;
}

/* Refuses arguments that the route does not know; they would be typing errors without an effect. */
static bool check_arguments(struct hb_api_call *call, const struct route *route)
{
    const struct evkeyval *pair;
    char name[HB_NAME_SIZE + 2];

    TAILQ_FOREACH(pair, &call->query, next)
    {
        snprintf(name, sizeof(name), " %s ", pair->key);
        if (strstr(route->arguments, name) != NULL)
            continue;
        hb_api_refuse(call, 400, "unknown argument '%s'; %s%s%s", pair->key,
                      route->arguments[0] ? "this request takes:" : "this request takes none",
                      route->arguments, route->arguments[0] ? "(see docs/api.md)" : "");
        return false;
    }
    return true;
}

static void route_call(struct hb_api_call *call, const char *path, const char *query)
{
    enum evhttp_cmd_type method = evhttp_request_get_command(call->http);
    const char *allowed = NULL;

    for (size_t r = 0; r < sizeof(routes) / sizeof(*routes); r++) {
        const struct route *route = &routes[r];

        if (!match_path(route, path, call->argument, sizeof(call->argument)))
            continue;
        if (route->method != method) {
            allowed = route->method == EVHTTP_REQ_GET ? "GET" : "POST";
            continue;
        }
        if (query != NULL && evhttp_parse_query_str(query, &call->query) != 0)
            hb_api_refuse(call, 400, "the query '%s' cannot be parsed", query);
        else if (check_arguments(call, route))
            route->handle(call);
        return;
    }
    if (allowed != NULL) {
        evhttp_add_header(evhttp_request_get_output_headers(call->http), "Allow", allowed);
        hb_api_refuse(call, 405, "%s takes %s only", path, allowed);
        return;
    }
    hb_api_refuse(call, 404, "there is no '%s' here; docs/api.md lists what there is", path);
}

static void on_request(struct evhttp_request *http, void *context)
{
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(http);
    struct hb_api_call *call = start_call(context, http);
    const char *path = uri ? evhttp_uri_get_path(uri) : NULL;

    if (call != NULL)
        route_call(call, path ? path : "", uri ? evhttp_uri_get_query(uri) : NULL);
}

/* --- life --- */

struct hb_api *hb_api_open(struct event_base *base, const char *path, struct hb_control *control)
{
    struct hb_api *api = calloc(1, sizeof(*api));

    if (api == NULL || (api->http = evhttp_new(base)) == NULL) {
        hb_log(HB_LOG_ERROR, "%s: not enough memory for the API", path);
        free(api);
        return NULL;
    }
    api->base = base;
    api->control = control;
    evhttp_set_timeout(api->http, IDLE_LIMIT_S);
    evhttp_set_max_headers_size(api->http, HEADERS_MAX);
    evhttp_set_max_body_size(api->http, BODY_MAX);
    /* All of them, so that the answer to a wrong one is ours and is JSON. */
    evhttp_set_allowed_methods(api->http, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD |
                                              EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE |
                                              EVHTTP_REQ_OPTIONS | EVHTTP_REQ_PATCH);
    evhttp_set_gencb(api->http, on_request, api);
    if (hb_api_socket_open(&api->listener, path) != 0) {
        evhttp_free(api->http);
        free(api);
        return NULL;
    }
    return api;
}

void hb_api_start(struct hb_api *api)
{
    if (evhttp_accept_socket(api->http, api->listener.fd) != 0) {
        hb_log(HB_LOG_ERROR, "%s: the API cannot accept connections: %s", api->listener.path,
               strerror(errno));
        return;
    }
    api->accepting = true;
}

void hb_api_close(struct hb_api *api)
{
    if (api == NULL)
        return;
    while (api->calls != NULL)
        free_call(api->calls);
    evhttp_free(api->http);
    if (api->accepting)
        api->listener.fd = -1; /* closed with the server */
    hb_api_socket_close(&api->listener);
    free(api);
}
