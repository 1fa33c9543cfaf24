/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * publisher_requests.h: the requests to the dataplane that are not answered yet.
 *
 * They wait in `unsent` until the socket takes them and in `sent` until they are answered. Replies
 * come in the order of requests, so the first of `sent` says what the next message has to be.
 */
#ifndef HB_CONTROL_PUBLISHER_REQUESTS_H
#define HB_CONTROL_PUBLISHER_REQUESTS_H

#include <stdbool.h>
#include <sys/queue.h>

#include "publisher.h"
#include "publisher_socket.h"

struct hb_request {
    STAILQ_ENTRY(hb_request) link;
    struct hb_expected reply;
    int passed_fd;          /* goes with the message, or -1; owned, closed once it is sent */
    hb_lookup_done done;    /* of a LOOKUP, else NULL */
    hb_settle_done settled; /* of a SETTLE, else NULL */
    hb_flush_done flushed;  /* of a FLUSH, else NULL */
    void *done_context;
    union {
        struct hb_message_header header;
        struct hb_hello hello;
        struct hb_publish publish;
        struct hb_lookup lookup;
        struct hb_settle settle;
        struct hb_flush flush;
    } message; /* its header says its size */
};
STAILQ_HEAD(hb_request_list, hb_request);

struct hb_requests {
    struct hb_request_list unsent, sent;
    uint32_t sequence; /* of the last request */
};

void hb_requests_init(struct hb_requests *requests);
bool hb_requests_empty(const struct hb_requests *requests);

/* A request of type HELLO, PUBLISH, LOOKUP, SETTLE or FLUSH with its header filled in and the rest
 * zero; NULL without memory. */
struct hb_request *hb_request_new(uint16_t type);
void hb_request_free(struct hb_request *request);

/* Takes the request over, gives it the next sequence number and puts it last. */
void hb_requests_add(struct hb_requests *requests, struct hb_request *request);

/* Sends what the socket takes. Returns 0 when all is sent, or a negative errno; -EAGAIN when it
 * takes no more now. */
int hb_requests_flush(struct hb_requests *requests, int fd);

/* What the next message has to be, or NULL when none is due. */
const struct hb_expected *hb_requests_expected(const struct hb_requests *requests);

/* Takes the request that is answered now off the list; the caller frees it. */
struct hb_request *hb_requests_pop(struct hb_requests *requests);

/* Forgets all of them; who asked is told that there is no answer. */
void hb_requests_drop(struct hb_requests *requests);

#endif
