/* SPDX-License-Identifier: BSD-3-Clause */
#include "publisher_owner.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void on_connected(void *context, const struct hb_hello_reply *hello, const void *blob,
                         size_t size)
{
    struct owner *owner = context;
    const struct hb_generation_header *header = blob;

    owner->connected++;
    owner->blob_number = header ? header->number : 0;
    owner->blob_size = size;
    assert_int_equal(hello->instance, FAKE_INSTANCE);
    assert_true(hb_publisher_connected(owner->publisher));
}

static void on_disconnected(void *context, const char *why)
{
    struct owner *owner = context;

    owner->disconnected++;
    snprintf(owner->why, sizeof(owner->why), "%s", why);
    assert_false(hb_publisher_connected(owner->publisher));
    assert_null(hb_publisher_hello(owner->publisher));
}

int owner_offer(struct owner *owner, uint64_t number)
{
    struct hb_generation_header blob = fake_generation(number);

    return hb_publisher_offer(owner->publisher, &blob, sizeof(blob));
}

static void on_published(void *context, const struct hb_publish_reply *reply)
{
    struct owner *owner = context;
    uint64_t next = owner->offer_when_published;

    owner->published++;
    owner->reply = *reply;
    owner->offer_when_published = 0;
    if (next)
        assert_int_equal(owner_offer(owner, next), 0);
}

void owner_on_lookup(void *context, const struct hb_lookup_reply *reply)
{
    struct owner *owner = context;

    if (!reply) {
        owner->unanswered++;
        return;
    }
    owner->looked_up++;
    owner->lookup = *reply;
}

int owner_set_up(void **state)
{
    static const struct hb_publisher_events events = {on_connected, on_disconnected, on_published};
    static const struct hb_publisher_timing quick = {1, 1, 3000};
    struct owner *owner = calloc(1, sizeof(*owner));

    owner->base = event_base_new();
    fake_open(&owner->fake, owner->base);
    owner->publisher = hb_publisher_open(owner->base, owner->fake.path, &events, owner);
    assert_non_null(owner->publisher);
    hb_publisher_set_timing(owner->publisher, &quick);
    *state = owner;
    return 0;
}

int owner_tear_down(void **state)
{
    struct owner *owner = *state;

    hb_publisher_close(owner->publisher);
    fake_close(&owner->fake);
    event_base_free(owner->base);
    free(owner);
    return 0;
}

void owner_greet(struct owner *owner)
{
    fake_greet(&owner->fake);
    fake_wait(&owner->fake, &owner->connected, owner->connected + 1);
}

void owner_expect_disconnect(struct owner *owner, const char *words)
{
    fake_wait(&owner->fake, &owner->disconnected, owner->disconnected + 1);
    if (!strstr(owner->why, words))
        fail_msg("\"%s\" does not say \"%s\"", owner->why, words);
}
