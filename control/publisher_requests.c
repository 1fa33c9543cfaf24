/* SPDX-License-Identifier: BSD-3-Clause */
#include "publisher_requests.h"

#include <stdlib.h>
#include <unistd.h>

/* A row a request: the sizes and the answer that the protocol gives it. */
static const struct {
    size_t size;
    uint16_t reply_type;
    size_t reply_size;
} kinds[] = {
    [HB_MSG_HELLO] = {sizeof(struct hb_hello), HB_MSG_HELLO_REPLY, sizeof(struct hb_hello_reply)},
    [HB_MSG_PUBLISH] = {sizeof(struct hb_publish), HB_MSG_PUBLISH_REPLY,
                        sizeof(struct hb_publish_reply)},
    [HB_MSG_LOOKUP] = {sizeof(struct hb_lookup), HB_MSG_LOOKUP_REPLY,
                       sizeof(struct hb_lookup_reply)},
    [HB_MSG_SETTLE] = {sizeof(struct hb_settle), HB_MSG_SETTLE_REPLY,
                       sizeof(struct hb_settle_reply)},
    [HB_MSG_FLUSH] = {sizeof(struct hb_flush), HB_MSG_FLUSH_REPLY, sizeof(struct hb_flush_reply)},
};

void hb_requests_init(struct hb_requests *requests)
{
    STAILQ_INIT(&requests->unsent);
    STAILQ_INIT(&requests->sent);
    requests->sequence = 0;
}

bool hb_requests_empty(const struct hb_requests *requests)
{
    return STAILQ_EMPTY(&requests->unsent) && STAILQ_EMPTY(&requests->sent);
}

struct hb_request *hb_request_new(uint16_t type)
{
    struct hb_request *request = calloc(1, sizeof(*request));

    if (!request)
        return NULL;
    request->passed_fd = -1;
    request->reply.type = kinds[type].reply_type;
    request->reply.size = (uint32_t)kinds[type].reply_size;
    request->message.header = (struct hb_message_header){
        .magic = HB_PROTOCOL_MAGIC,
        .version = HB_PROTOCOL_VERSION,
        .type = type,
        .length = (uint32_t)kinds[type].size,
    };
    return request;
}

static void close_passed(struct hb_request *request)
{
    if (request->passed_fd >= 0)
        close(request->passed_fd);
    request->passed_fd = -1;
}

void hb_request_free(struct hb_request *request)
{
    close_passed(request);
    free(request);
}

void hb_requests_add(struct hb_requests *requests, struct hb_request *request)
{
    request->message.header.sequence = request->reply.sequence = ++requests->sequence;
    STAILQ_INSERT_TAIL(&requests->unsent, request, link);
}

int hb_requests_flush(struct hb_requests *requests, int fd)
{
    struct hb_request *request;

    while ((request = STAILQ_FIRST(&requests->unsent)) != NULL) {
        int error = hb_message_send(fd, &request->message, request->message.header.length,
                                    request->passed_fd);

        if (error != 0)
            return error;
        close_passed(request);
        STAILQ_REMOVE_HEAD(&requests->unsent, link);
        STAILQ_INSERT_TAIL(&requests->sent, request, link);
    }
    return 0;
}

const struct hb_expected *hb_requests_expected(const struct hb_requests *requests)
{
    const struct hb_request *request = STAILQ_FIRST(&requests->sent);

    return request ? &request->reply : NULL;
}

struct hb_request *hb_requests_pop(struct hb_requests *requests)
{
    struct hb_request *request = STAILQ_FIRST(&requests->sent);

    STAILQ_REMOVE_HEAD(&requests->sent, link);
    return request;
}

static void drop_list(struct hb_request_list *list)
{
    struct hb_request *request;

    while ((request = STAILQ_FIRST(list)) != NULL) {
        hb_lookup_done done = request->done;
        hb_settle_done settled = request->settled;
        hb_flush_done flushed = request->flushed;
        void *context = request->done_context;

        STAILQ_REMOVE_HEAD(list, link);
        hb_request_free(request);
        if (done)
            done(context, NULL);
        if (settled)
            settled(context, NULL);
        if (flushed)
            flushed(context, NULL);
    }
}

void hb_requests_drop(struct hb_requests *requests)
{
    drop_list(&requests->sent);
    drop_list(&requests->unsent);
}
