/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_server.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api_access.h"
#include "api_answer.h"
#include "api_internal.h"
#include "api_socket.h"
#include "api_streams.h"
#include "api_tcp.h"
#include "log.h"

#define IDLE_LIMIT_S 60
#define HEADERS_MAX  16384
#define BODY_MAX     (16 << 20) /* a configuration; no other request has a body that matters */

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
    {EVHTTP_REQ_GET, "/v1/maintenance", NULL, "", hb_api_get_maintenance},
    {EVHTTP_REQ_POST, "/v1/maintenance", NULL, " state ", hb_api_post_maintenance},
    {EVHTTP_REQ_POST, "/v1/flush", NULL, " force ", hb_api_post_flush},
    {EVHTTP_REQ_POST, "/v1/reload", NULL, "", hb_api_post_reload},
    {EVHTTP_REQ_POST, "/v1/plan", NULL, " file ", hb_api_post_plan},
    {EVHTTP_REQ_GET, "/v1/stats", NULL, "", hb_api_get_stats},
    {EVHTTP_REQ_GET, "/v1/drops", NULL, "", hb_api_get_drops},
    {EVHTTP_REQ_GET, "/v1/lookup", NULL, " client vip protocol ", hb_api_get_lookup},
    {EVHTTP_REQ_GET, "/v1/events", NULL, " since follow ", hb_api_get_events},
    {EVHTTP_REQ_GET, "/v1/history", NULL, "", hb_api_get_history},
    {EVHTTP_REQ_POST, "/v1/rollback", NULL, " to ", hb_api_post_rollback},
    {EVHTTP_REQ_GET, "/v1/talkers", NULL, "", hb_api_get_talkers},
    {EVHTTP_REQ_GET, "/v1/routes", NULL, "", hb_api_get_routes},
    {EVHTTP_REQ_GET, "/metrics", NULL, "", hb_api_get_metrics},
};

/* --- requests --- */

/* The client closed its connection; libevent frees the request. */
static void on_closed(struct evhttp_connection *connection, void *context)
{
    struct hb_api_call *call = context;

    (void)connection;
    call->http = NULL;
    if (call->answer != NULL)
        hb_api_release(call);
    /* Else a lookup is under way and ends it. */
}

static struct hb_api_call *start_call(struct hb_api *api, struct evhttp_request *http)
{
    struct hb_api_call *call = calloc(1, sizeof(*call));

    if (call == NULL) {
        hb_api_answer_no_memory(http);
        return NULL;
    }
    call->api = api;
    call->control = api->control;
    call->http = http;
    call->actor = hb_api_actor(http);
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
    json_t *text;

    TAILQ_FOREACH(pair, &call->query, next)
    {
        snprintf(name, sizeof(name), " %s ", pair->key);
        text = json_string(pair->value);
        json_decref(text);
        if (text == NULL) {
            hb_api_refuse(call, 400, "argument '%s' is not UTF-8; send it percent-encoded",
                          pair->key);
            return false;
        }
        if (strstr(route->arguments, name) != NULL)
            continue;
        hb_api_refuse(call, 400, "unknown argument '%s'; %s%s%s", pair->key,
                      route->arguments[0] ? "this request takes:" : "this request takes none",
                      route->arguments, route->arguments[0] ? "(see docs/api.md)" : "");
        return false;
    }
    return true;
}

/* A plan needs a body, so its method is POST, but it changes nothing. */
static bool changes_something(const struct route *route)
{
    return route->method == EVHTTP_REQ_POST && route->handle != hb_api_post_plan;
}

/* What the handler does is the peer's doing. */
static void handle_call(struct hb_api_call *call, const struct route *route)
{
    struct hb_events *events = call->control->events;
    struct hb_api *api = call->api;
    const char *forbidden = hb_api_forbids(call->http, &call->actor, changes_something(route),
                                           &api->config, api->listener.group);

    if (forbidden != NULL) {
        hb_api_refuse(call, 403, "%s", forbidden);
        return;
    }
    hb_events_begin(events, &call->actor);
    route->handle(call);
    hb_events_end(events);
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
            handle_call(call, route);
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

/* What there is, for programs; tests hold docs/openapi.yaml against it. */
void hb_api_get_routes(struct hb_api_call *call)
{
    json_t *list = json_array();

    for (size_t r = 0; r < sizeof(routes) / sizeof(*routes); r++) {
        const struct route *route = &routes[r];
        const char *name = route->suffix ? "{name}" : "";
        json_t *arguments = json_array();
        char path[64], words[64], *rest = words, *word;

        snprintf(path, sizeof(path), "%s%s%s", route->prefix, name,
                 route->suffix ? route->suffix : "");
        snprintf(words, sizeof(words), "%s", route->arguments);
        while ((word = strsep(&rest, " ")) != NULL) {
            if (*word != '\0')
                json_array_append_new(arguments, json_string(word));
        }
        json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:b}", "method",
                                              route->method == EVHTTP_REQ_GET ? "GET" : "POST",
                                              "path", path, "arguments", arguments, "changes",
                                              changes_something(route)));
    }
    hb_api_answer(call, 200, json_pack("{s:o}", "routes", list));
}

struct hb_api_streams *hb_api_streams_of(struct hb_api *api)
{
    return api->streams;
}

/* --- the TCP port --- */

int hb_api_prepare(struct hb_api *api, const struct hb_api_config *config, char *problem,
                   size_t size)
{
    hb_api_abandon(api);
    if (config->listen[0] == '\0' || strcmp(config->listen, api->config.listen) == 0)
        return 0;
    api->prepared = hb_api_tcp_open(config->listen, problem, size);
    return api->prepared < 0 ? api->prepared : 0;
}

void hb_api_abandon(struct hb_api *api)
{
    if (api->prepared >= 0)
        close(api->prepared);
    api->prepared = -1;
}

static void change_tcp(struct hb_api *api, const struct hb_api_config *config)
{
    char problem[256];

    if (api->tcp != NULL)
        evhttp_del_accept_socket(api->http, api->tcp);
    api->tcp = NULL;
    if (config->listen[0] == '\0')
        return;
    if (api->prepared < 0 && hb_api_prepare(api, config, problem, sizeof(problem)) != 0) {
        hb_log(HB_LOG_ERROR, "%s", problem);
        return;
    }
    api->tcp = evhttp_accept_socket_with_handle(api->http, api->prepared);
    if (api->tcp == NULL)
        hb_api_abandon(api);
    else
        hb_log(HB_LOG_NOTICE, "the API also listens at %s", config->listen);
    api->prepared = -1; /* closed with the server */
}

void hb_api_configure(struct hb_api *api, const struct hb_api_config *config)
{
    struct hb_api_config before = api->config;

    if (strcmp(config->listen, before.listen) != 0)
        change_tcp(api, config);
    api->config = *config;
    if (chmod(api->listener.path, config->others_may_read ? 0666 : 0660) != 0)
        hb_log(HB_LOG_ERROR, "%s: its mode cannot be set: %s", api->listener.path, strerror(errno));
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
    api->prepared = -1;
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
    api->streams = hb_api_streams_new(control->events);
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
    hb_api_streams_free(api->streams);
    while (api->calls != NULL)
        hb_api_release(api->calls);
    hb_api_abandon(api);
    evhttp_free(api->http);
    if (api->accepting)
        api->listener.fd = -1; /* closed with the server */
    hb_api_socket_close(&api->listener);
    free(api);
}
