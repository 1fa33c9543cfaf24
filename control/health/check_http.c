/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_http.c: a target is well when it answers a GET with an expected status and, where one is
 * wanted, a text in the body. Over TLS its certificate must be valid for the host, unless that is
 * turned off.
 *
 * Redirects are not followed: the answer is the target's own. Of the body as much is read as is
 * needed, 64 KB at most.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checker.h"
#include "http_request.h"

#define BODY_MAX (64 << 10)

struct hb_check {
    struct hb_check_setup setup;
    struct hb_http_request request;
    char *body; /* what came of it; only where a text is wanted */
    size_t body_size;
    bool body_matches;
};

static void clear_body(struct hb_check *check)
{
    free(check->body);
    check->body = NULL;
    check->body_size = 0;
    check->body_matches = false;
}

/* Taking less than there is ends the transfer with CURLE_WRITE_ERROR, which is what we want. */
static size_t take_body(char *data, size_t one, size_t size, void *context)
{
    struct hb_check *check = context;
    const struct hb_check_bytes *wanted = &check->setup.config->body;
    size_t room = BODY_MAX - check->body_size;
    size_t part = size < room ? size : room;
    char *grown;

    (void)one;
    if (wanted->length == 0)
        return 0;
    grown = realloc(check->body, check->body_size + part + 1);
    if (grown == NULL)
        return 0;
    memcpy(grown + check->body_size, data, part);
    check->body = grown;
    check->body_size += part;
    check->body_matches =
        memmem(check->body, check->body_size, wanted->bytes, wanted->length) != NULL;
    return check->body_matches || part < size ? 0 : size;
}

static void print_statuses(const struct hb_check_statuses *statuses, char *text, size_t size)
{
    size_t used = 0;

    snprintf(text, size, "200-299");
    for (uint32_t i = 0; i < statuses->count && used < size; i++) {
        const struct hb_check_status_range *range = &statuses->range[i];

        used += (size_t)snprintf(text + used, size - used, "%s%u", i > 0 ? "," : "", range->first);
        if (range->last != range->first && used < size)
            used += (size_t)snprintf(text + used, size - used, "-%u", range->last);
    }
}

static enum hb_probe_reason judge_answer(const struct hb_check *check, char *text, size_t size)
{
    const struct hb_health_config *config = check->setup.config;
    char wanted[80];
    long status = 0;

    curl_easy_getinfo(check->request.transfer.easy, CURLINFO_RESPONSE_CODE, &status);
    if (!hb_check_status_accepted(&config->statuses, status)) {
        print_statuses(&config->statuses, wanted, sizeof(wanted));
        snprintf(text, size, "answered status %ld, expected %s", status, wanted);
        return HB_PROBE_WRONG;
    }
    if (config->body.length > 0 && !check->body_matches) {
        snprintf(text, size, "answered status %ld, but the expected text is not in the %s", status,
                 check->body_size == BODY_MAX ? "first 64 KB of the body" : "body");
        return HB_PROBE_WRONG;
    }
    snprintf(text, size, "answered status %ld", status);
    return HB_PROBE_OK;
}

static enum hb_probe_reason judge(void *context, char *text, size_t size)
{
    enum hb_probe_reason reason = judge_answer(context, text, size);

    clear_body(context);
    return reason;
}

static int begin(struct hb_check *check, const char **detail)
{
    (void)detail;
    clear_body(check);
    return hb_http_request_start(&check->request);
}

static int prepare(struct hb_check *check)
{
    const struct hb_health_config *config = check->setup.config;
    const char *path = config->path[0] != '\0' ? config->path : "/";
    int error = hb_http_request_begin(&check->request, &check->setup, path, judge, check);
    CURL *easy = check->request.transfer.easy;
    char host[HB_CHECK_HOST_SIZE + 8];

    if (error != 0)
        return error;
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, check);
    if (config->host[0] == '\0')
        return 0;
    snprintf(host, sizeof(host), "Host: %s", config->host);
    return hb_http_request_header(&check->request, host);
}

static void destroy(struct hb_check *check)
{
    hb_http_request_end(&check->request);
    clear_body(check);
    free(check);
}

static struct hb_check *create(const struct hb_check_setup *setup)
{
    struct hb_check *check = calloc(1, sizeof(*check));

    if (!check)
        return NULL;
    check->setup = *setup;
    if (prepare(check) != 0) {
        destroy(check);
        return NULL;
    }
    return check;
}

const struct hb_checker hb_checker_http = {
    .type = HB_HEALTH_HTTP,
    .needs_http = true,
    .create = create,
    .begin = begin,
    .destroy = destroy,
};

const struct hb_checker hb_checker_https = {
    .type = HB_HEALTH_HTTPS,
    .needs_http = true,
    .create = create,
    .begin = begin,
    .destroy = destroy,
};
