/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * publisher_owner.h: an owner of a publisher that notes what it is told, and the fake dataplane it
 * talks to.
 */
#ifndef HB_TEST_PUBLISHER_OWNER_H
#define HB_TEST_PUBLISHER_OWNER_H

#include "fake_dataplane.h"
#include "publisher.h"

/* What the owner of the publisher has been told. */
struct owner {
    struct fake_dataplane fake;
    struct event_base *base;
    struct hb_publisher *publisher;
    unsigned connected, disconnected, published, looked_up, unanswered;
    char why[600];
    struct hb_publish_reply reply;
    uint64_t blob_number; /* of the generation handed back; 0: none */
    size_t blob_size;
    struct hb_lookup_reply lookup;
    uint64_t offer_when_published; /* not 0: offers this number from inside the callback, once */
};

/* For cmocka: a fake dataplane that listens, and a publisher that is about to connect. */
int owner_set_up(void **state);
int owner_tear_down(void **state);

/* Lets the publisher connect and answers its hello well. */
void owner_greet(struct owner *owner);
/* Waits for the next `disconnected`, whose reason must contain these words. */
void owner_expect_disconnect(struct owner *owner, const char *words);
/* Offers the smallest generation. */
int owner_offer(struct owner *owner, uint64_t number);
/* To be given to hb_publisher_lookup(). */
void owner_on_lookup(void *context, const struct hb_lookup_reply *reply);

#endif
