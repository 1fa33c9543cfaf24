/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_grpc.c: a target is well when its grpc.health.v1.Health service says SERVING (the gRPC
 * health checking protocol).
 *
 * One unary call over HTTP/2, in the clear or over TLS. Both messages are small enough to be made
 * and read by hand: a gRPC frame is one byte (0: not compressed), the length in four, then the
 * message; the request's field 1 is the service's name, the answer's field 1 is a number, 1 for
 * SERVING (Protocol Buffers encoding: a tag of field << 3 | wire type).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "checker.h"
#include "http_request.h"

#define FRAME_HEADER 5
#define TAG_STRING   (1 << 3 | 2)
#define TAG_NUMBER   (1 << 3 | 0)
#define ANSWER_MAX   64
#define SERVING      1

struct hb_check {
    struct hb_check_setup setup;
    struct hb_http_request request;
    uint8_t call[FRAME_HEADER + 2 + HB_CHECK_GRPC_SIZE];
    uint8_t answer[ANSWER_MAX];
    size_t answer_size;
    int grpc_status; /* of the header or trailer; -1: none came */
};

static size_t take_body(char *data, size_t one, size_t size, void *context)
{
    struct hb_check *check = context;

    (void)one;
    if (size > sizeof(check->answer) - check->answer_size)
        return 0;
    memcpy(check->answer + check->answer_size, data, size);
    check->answer_size += size;
    return size;
}

static size_t take_header(char *data, size_t one, size_t size, void *context)
{
    static const char name[] = "grpc-status:";
    struct hb_check *check = context;
    char line[40];

    (void)one;
    if (size > sizeof(name) && strncasecmp(data, name, sizeof(name) - 1) == 0) {
        snprintf(line, sizeof(line), "%.*s", (int)(size - sizeof(name) + 1),
                 data + sizeof(name) - 1);
        check->grpc_status = atoi(line);
    }
    return size;
}

/* The number in field 1 of the answer; 0 (UNKNOWN) when it is left out, as zero is; -1 when this is
 * not a whole frame with such a message. */
static int read_answer(const uint8_t *answer, size_t size)
{
    size_t length;

    if (size < FRAME_HEADER || answer[0] != 0)
        return -1;
    length = (size_t)answer[1] << 24 | (size_t)answer[2] << 16 | (size_t)answer[3] << 8 | answer[4];
    if (length != size - FRAME_HEADER)
        return -1;
    if (length == 0)
        return 0;
    return length >= 2 && answer[FRAME_HEADER] == TAG_NUMBER && answer[FRAME_HEADER + 1] < 0x80
               ? answer[FRAME_HEADER + 1]
               : -1;
}

static enum hb_probe_reason judge(void *context, char *text, size_t size)
{
    const struct hb_check *check = context;
    static const char *const serving[] = {"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"};
    int answer = read_answer(check->answer, check->answer_size);
    long status = 0;

    curl_easy_getinfo(check->request.transfer.easy, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200)
        snprintf(text, size, "answered HTTP status %ld to a gRPC call", status);
    else if (check->grpc_status > 0)
        snprintf(text, size, "answered gRPC status %d", check->grpc_status);
    else if (check->grpc_status < 0)
        snprintf(text, size, "answered without a gRPC status");
    else if (answer < 0 || answer > 3)
        snprintf(text, size, "answered what is no health message");
    else
        snprintf(text, size, "says %s", serving[answer]);
    return status == 200 && check->grpc_status == 0 && answer == SERVING ? HB_PROBE_OK
                                                                         : HB_PROBE_WRONG;
}

static int begin(struct hb_check *check, const char **detail)
{
    (void)detail;
    check->answer_size = 0;
    check->grpc_status = -1;
    return hb_http_request_start(&check->request);
}

/* Returns the size of the framed request. */
static size_t write_call(struct hb_check *check)
{
    size_t name = strlen(check->setup.config->grpc_service);
    size_t message = name > 0 ? 2 + name : 0;

    check->call[4] = (uint8_t)message;
    check->call[FRAME_HEADER] = TAG_STRING;
    check->call[FRAME_HEADER + 1] = (uint8_t)name;
    memcpy(check->call + FRAME_HEADER + 2, check->setup.config->grpc_service, name);
    return FRAME_HEADER + message;
}
_Static_assert(HB_CHECK_GRPC_SIZE <= 128, "the length of a name is one byte");

/* Over TLS both sides agree on HTTP/2 first (ALPN); what answers otherwise is no gRPC server. */
static int prepare(struct hb_check *check)
{
    bool tls = check->setup.config->type == HB_HEALTH_GRPCS;
    CURL *easy;

    if (hb_http_request_begin(&check->request, &check->setup, "/grpc.health.v1.Health/Check", judge,
                              check) != 0 ||
        hb_http_request_header(&check->request, "Content-Type: application/grpc") != 0 ||
        hb_http_request_header(&check->request, "TE: trailers") != 0)
        return -1;
    easy = check->request.transfer.easy;
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                     tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)write_call(check));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, (const char *)check->call);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, check);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, check);
    return 0;
}

static void destroy(struct hb_check *check)
{
    hb_http_request_end(&check->request);
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

const struct hb_checker hb_checker_grpc = {
    .type = HB_HEALTH_GRPC,
    .needs_http = true,
    .create = create,
    .begin = begin,
    .destroy = destroy,
};

const struct hb_checker hb_checker_grpcs = {
    .type = HB_HEALTH_GRPCS,
    .needs_http = true,
    .create = create,
    .begin = begin,
    .destroy = destroy,
};
