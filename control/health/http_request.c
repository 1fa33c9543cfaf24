/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http_request.c: see http_request.h.
 */
#include "http_request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "probe_socket.h"

/* A time limit that was noticed so much late says that this process was busy, not the target. */
#define STALL_MS 50

#define URL_SIZE (HB_CHECK_HOST_SIZE + HB_CHECK_PATH_SIZE + 32)

static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct hb_http_request *request = context;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    int error = fd < 0 ? -errno : 0;

    (void)purpose;
    if (error == 0)
        error = hb_probe_socket_prepare(fd, SOCK_STREAM, request->setup->way);
    request->socket_error = error;
    if (error == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return CURL_SOCKET_BAD;
}

/* Whatever the URL says: to the way's end, at the check's port. */
static int set_way(struct hb_http_request *request)
{
    const struct hb_check_way *way = request->setup->way;
    char address[HB_ADDRESS_TEXT], line[HB_ADDRESS_TEXT + 16];
    bool is_ipv6 = way->to.family == HB_FAMILY_IPV6;
    struct curl_slist *connect_to;

    hb_address_print(&way->to, address);
    snprintf(line, sizeof(line), is_ipv6 ? "::[%s]:%u" : "::%s:%u", address,
             request->setup->config->port);
    if (request->connect_to != NULL && strcmp(request->connect_to->data, line) == 0)
        return 0;
    connect_to = curl_slist_append(NULL, line);
    if (connect_to == NULL)
        return -ENOMEM;
    curl_easy_setopt(request->transfer.easy, CURLOPT_CONNECT_TO, connect_to);
    curl_slist_free_all(request->connect_to);
    request->connect_to = connect_to;
    return 0;
}

/* Without a configured name the host is the target's address. */
static int set_url(struct hb_http_request *request, const char *path)
{
    const struct hb_health_config *config = request->setup->config;
    bool tls = config->type == HB_HEALTH_HTTPS || config->type == HB_HEALTH_GRPCS;
    bool named = config->host[0] != '\0';
    bool bracket = !named && request->setup->address->family == HB_FAMILY_IPV6;
    char address[HB_ADDRESS_TEXT], url[URL_SIZE];

    hb_address_print(request->setup->address, address);
    snprintf(url, sizeof(url), "%s://%s%s%s:%u%s", tls ? "https" : "http", bracket ? "[" : "",
             named ? config->host : address, bracket ? "]" : "", config->port, path);
    return curl_easy_setopt(request->transfer.easy, CURLOPT_URL, url) == CURLE_OK ? 0 : -ENOMEM;
}

static void set_tls(CURL *easy, const struct hb_health_config *config)
{
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, config->verify ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, config->verify ? 2L : 0L);
    if (config->ca[0] != '\0')
        curl_easy_setopt(easy, CURLOPT_CAINFO, config->ca);
}

static void on_done(void *context, CURLcode code);

int hb_http_request_begin(struct hb_http_request *request, const struct hb_check_setup *setup,
                          const char *path, hb_http_judge judge, void *context)
{
    CURL *easy = curl_easy_init();

    memset(request, 0, sizeof(*request));
    request->setup = setup;
    request->judge = judge;
    request->context = context;
    request->transfer = (struct hb_http_transfer){easy, on_done, request};
    if (easy == NULL)
        return -ENOMEM;
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)setup->config->timeout_ms);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)setup->config->timeout_ms);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 4096L);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, request);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request->error);
    set_tls(easy, setup->config);
    if (set_url(request, path) != 0)
        return -ENOMEM;
    return hb_http_request_header(request, "User-Agent: halbach-control/" HB_VERSION);
}

int hb_http_request_header(struct hb_http_request *request, const char *line)
{
    struct curl_slist *headers = curl_slist_append(request->headers, line);

    if (headers == NULL)
        return -ENOMEM;
    request->headers = headers;
    curl_easy_setopt(request->transfer.easy, CURLOPT_HTTPHEADER, headers);
    return 0;
}

int hb_http_request_start(struct hb_http_request *request)
{
    int error = set_way(request);

    request->socket_error = 0;
    request->error[0] = '\0';
    request->started_ms = hb_now_ms();
    if (error == 0)
        error = hb_http_start(request->setup->http, &request->transfer);
    request->under_way = error == 0;
    return error == 0 ? HB_PROBE_UNDER_WAY : HB_PROBE_LOCAL_ERROR;
}

void hb_http_request_end(struct hb_http_request *request)
{
    if (request->under_way)
        hb_http_cancel(request->setup->http, &request->transfer);
    if (request->transfer.easy != NULL)
        curl_easy_cleanup(request->transfer.easy);
    curl_slist_free_all(request->headers);
    curl_slist_free_all(request->connect_to);
    memset(request, 0, sizeof(*request));
}

static enum hb_probe_reason connect_failure(const struct hb_http_request *request)
{
    long error = 0;

    if (request->socket_error != 0)
        return hb_probe_reason_of(-request->socket_error);
    curl_easy_getinfo(request->transfer.easy, CURLINFO_OS_ERRNO, &error);
    return error != 0 ? hb_probe_reason_of((int)error) : HB_PROBE_UNREACHABLE;
}

static enum hb_probe_reason time_out(const struct hb_http_request *request, const char **detail)
{
    uint32_t limit_ms = request->setup->config->timeout_ms;

    if (hb_now_ms() - request->started_ms <= limit_ms + limit_ms / 4 + STALL_MS)
        return HB_PROBE_TIMEOUT;
    *detail = "could not be probed: this machine was busy for longer than the time limit";
    return HB_PROBE_LOCAL_ERROR;
}

/* HB_PROBE_OK when there is an answer to judge; else the reason, and *detail may say more. */
static enum hb_probe_reason result_of(const struct hb_http_request *request, CURLcode code,
                                      const char **detail)
{
    switch (code) {
    case CURLE_OK:
    case CURLE_WRITE_ERROR: /* more of the body than we need */
        return HB_PROBE_OK;
    case CURLE_COULDNT_CONNECT:
        return connect_failure(request);
    case CURLE_OPERATION_TIMEDOUT:
        return time_out(request, detail);
    case CURLE_OUT_OF_MEMORY:
    case CURLE_FAILED_INIT:
    case CURLE_SSL_CACERT_BADFILE: /* a file of this machine */
        *detail = request->error[0] != '\0' ? request->error : curl_easy_strerror(code);
        return HB_PROBE_LOCAL_ERROR;
    default:
        *detail = request->error[0] != '\0' ? request->error : curl_easy_strerror(code);
        return HB_PROBE_WRONG;
    }
}

static void on_done(void *context, CURLcode code)
{
    struct hb_http_request *request = context;
    const struct hb_check_setup *setup = request->setup;
    const char *detail = NULL;
    char text[CURL_ERROR_SIZE];
    enum hb_probe_reason reason;

    request->under_way = false;
    reason = result_of(request, code, &detail);
    if (reason == HB_PROBE_OK) {
        reason = request->judge(request->context, text, sizeof(text));
        detail = text;
    } else if (detail != NULL) {
        snprintf(text, sizeof(text), "%s", detail); /* the original goes with the check */
        detail = text;
    }
    setup->done(setup->context, reason, detail); /* last: it may destroy the check */
}
