/* SPDX-License-Identifier: BSD-3-Clause */
/* Control's session with a dataplane that keeps to the protocol. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "publisher_owner.h"

#define ALL_SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* ---- the hello ---- */

static void test_hello_is_answered(void **state)
{
    struct owner *owner = *state;
    const struct hb_counters_header *counters;

    assert_int_equal(owner_offer(owner, 1), -ENOTCONN);
    assert_int_equal(
        hb_publisher_lookup(owner->publisher, &(struct hb_flow_key){0}, owner_on_lookup, owner),
        -ENOTCONN);
    assert_null(hb_publisher_counters(owner->publisher));
    owner_greet(owner);
    assert_int_equal(owner->blob_size, 0);
    assert_int_equal(owner->fake.message.hello.pid, getpid());
    assert_string_equal(owner->fake.message.hello.name, "halbach-control");
    assert_string_equal(hb_publisher_hello(owner->publisher)->port[0].ifname, "eth0");

    /* What the workers count shows through the mapping at once. */
    counters = hb_publisher_counters(owner->publisher);
    assert_non_null(counters);
    ((struct hb_worker_counters *)(uintptr_t)hb_counters_worker(owner->fake.counters, 1))
        ->rx_packets = 7;
    assert_int_equal(hb_counters_total(counters).rx_packets, 7);
}

static void test_hello_hands_back_the_generation(void **state)
{
    struct owner *owner = *state;
    struct hb_generation_header blob = fake_generation(41);
    struct hb_hello_reply reply;
    int fds[2];

    fake_accept(&owner->fake);
    fake_receive(&owner->fake, HB_MSG_HELLO);
    reply = fake_hello_reply(&owner->fake);
    reply.generation_number = 41;
    fds[0] = owner->fake.counters_fd;
    fds[1] = fake_memfd(&blob, sizeof(blob), ALL_SEALS);
    fake_send(&owner->fake, &reply, sizeof(reply), fds, 2);
    close(fds[1]);
    fake_wait(&owner->fake, &owner->connected, 1);
    assert_int_equal(owner->blob_number, 41);
    assert_int_equal(owner->blob_size, sizeof(blob));
}

/* ---- publishing ---- */

static void test_publish_is_accepted_or_rejected(void **state)
{
    struct owner *owner = *state;
    struct hb_generation_header got;
    struct hb_publish_reply reply;

    owner_greet(owner);
    assert_int_equal(owner_offer(owner, 5), 0);
    fake_receive(&owner->fake, HB_MSG_PUBLISH);
    assert_int_equal(owner->fake.message.publish.number, 5);
    assert_true(owner->fake.received_fd >= 0);
    assert_int_equal(fcntl(owner->fake.received_fd, F_GET_SEALS), ALL_SEALS);
    assert_int_equal(pread(owner->fake.received_fd, &got, sizeof(got), 0), sizeof(got));
    assert_int_equal(got.number, 5);
    reply = fake_publish_reply(&owner->fake, HB_REJECT_NONE);
    fake_send(&owner->fake, &reply, sizeof(reply), NULL, 0);
    fake_wait(&owner->fake, &owner->published, 1);
    assert_int_equal(owner->reply.number, 5);

    assert_int_equal(owner_offer(owner, 6), 0);
    fake_receive(&owner->fake, HB_MSG_PUBLISH);
    reply = fake_publish_reply(&owner->fake, HB_REJECT_SLOT);
    memset(reply.text, 'x', sizeof(reply.text)); /* without an end */
    fake_send(&owner->fake, &reply, sizeof(reply), NULL, 0);
    fake_wait(&owner->fake, &owner->published, 2);
    assert_int_equal(owner->reply.reason, HB_REJECT_SLOT);
    assert_int_equal(strlen(owner->reply.text), HB_TEXT_SIZE - 1);
    assert_int_equal(owner->disconnected, 0);
}

static void test_offer_checks_its_blob(void **state)
{
    struct owner *owner = *state;
    struct hb_generation_header blob = fake_generation(1);

    owner_greet(owner);
    assert_int_equal(hb_publisher_offer(owner->publisher, &blob, sizeof(blob) - 1), -EINVAL);
    blob.total_size++;
    assert_int_equal(hb_publisher_offer(owner->publisher, &blob, sizeof(blob)), -EINVAL);
    assert_true(fake_hears_nothing(&owner->fake));
}

static void answer_publish(struct owner *owner, uint64_t number)
{
    struct hb_publish_reply reply;

    fake_receive(&owner->fake, HB_MSG_PUBLISH);
    assert_int_equal(owner->fake.message.publish.number, number);
    reply = fake_publish_reply(&owner->fake, HB_REJECT_NONE);
    fake_send(&owner->fake, &reply, sizeof(reply), NULL, 0);
    fake_wait(&owner->fake, &owner->published, owner->published + 1);
    assert_int_equal(owner->reply.number, number);
}

static void test_only_the_newest_of_those_waiting_is_sent(void **state)
{
    struct owner *owner = *state;

    owner_greet(owner);
    assert_int_equal(owner_offer(owner, 1), 0);
    assert_int_equal(owner_offer(owner, 2), 0);
    assert_int_equal(owner_offer(owner, 3), 0);
    assert_int_equal(owner_offer(owner, 4), 0);
    answer_publish(owner, 1);
    answer_publish(owner, 4);
    assert_true(fake_hears_nothing(&owner->fake));
    assert_int_equal(owner->published, 2);
}

static void test_an_offer_from_the_callback_is_newer_than_those_waiting(void **state)
{
    struct owner *owner = *state;

    owner_greet(owner);
    assert_int_equal(owner_offer(owner, 1), 0);
    assert_int_equal(owner_offer(owner, 2), 0);
    owner->offer_when_published = 3;
    answer_publish(owner, 1);
    answer_publish(owner, 3);
    assert_true(fake_hears_nothing(&owner->fake));
}

static void test_peer_dies_in_the_middle_of_a_publish(void **state)
{
    struct owner *owner = *state;

    owner_greet(owner);
    assert_int_equal(owner_offer(owner, 1), 0);
    assert_int_equal(owner_offer(owner, 2), 0);
    fake_receive(&owner->fake, HB_MSG_PUBLISH);
    fake_hang_up(&owner->fake);
    owner_expect_disconnect(owner, "closed the connection");
    assert_null(hb_publisher_counters(owner->publisher));
    assert_int_equal(owner_offer(owner, 3), -ENOTCONN);

    /* Nothing of the old session is sent in the new one: what to publish is the owner's decision.
     */
    owner_greet(owner);
    assert_true(fake_hears_nothing(&owner->fake));
    assert_int_equal(owner->published, 0);
    assert_int_equal(owner_offer(owner, 4), 0);
    answer_publish(owner, 4);
}

/* ---- lookups ---- */

static void test_lookups_are_answered_in_order(void **state)
{
    struct owner *owner = *state;
    struct hb_flow_key flow = {.protocol = HB_PROTOCOL_TCP, .family = HB_FAMILY_IPV4};
    unsigned i;

    owner_greet(owner);
    for (i = 1; i <= 3; i++) {
        flow.source_port = (hb_be16)i;
        assert_int_equal(hb_publisher_lookup(owner->publisher, &flow, owner_on_lookup, owner), 0);
    }
    for (i = 1; i <= 3; i++) {
        struct hb_lookup_reply reply = {.backend = i};

        fake_receive(&owner->fake, HB_MSG_LOOKUP);
        assert_int_equal(owner->fake.message.lookup.flow.source_port, i);
        reply.header = fake_header(&owner->fake, HB_MSG_LOOKUP_REPLY, sizeof(reply));
        fake_send(&owner->fake, &reply, sizeof(reply), NULL, 0);
        fake_wait(&owner->fake, &owner->looked_up, i);
        assert_int_equal(owner->lookup.backend, i);
    }
}

static void test_pending_lookups_are_told_when_the_connection_breaks(void **state)
{
    struct owner *owner = *state;
    struct hb_flow_key flow = {.protocol = HB_PROTOCOL_UDP, .family = HB_FAMILY_IPV6};
    unsigned i, asked = 0;

    owner_greet(owner);
    /* More than the socket holds, so that some are unsent. */
    for (i = 0; i < 5000; i++)
        asked += hb_publisher_lookup(owner->publisher, &flow, owner_on_lookup, owner) == 0;
    assert_int_equal(asked, 5000);
    fake_hang_up(&owner->fake);
    owner_expect_disconnect(owner, "dataplane");
    assert_int_equal(owner->unanswered, 5000);
    owner_greet(owner);
    assert_true(fake_hears_nothing(&owner->fake));
}

static void test_close_tells_pending_lookups(void **state)
{
    struct owner *owner = *state;

    owner_greet(owner);
    assert_int_equal(
        hb_publisher_lookup(owner->publisher, &(struct hb_flow_key){0}, owner_on_lookup, owner), 0);
    hb_publisher_close(owner->publisher);
    owner->publisher = NULL;
    assert_int_equal(owner->unanswered, 1);
    assert_int_equal(owner->disconnected, 0);
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, owner_set_up, owner_tear_down)
    const struct CMUnitTest tests[] = {
        ROW(test_hello_is_answered),
        ROW(test_hello_hands_back_the_generation),
        ROW(test_publish_is_accepted_or_rejected),
        ROW(test_offer_checks_its_blob),
        ROW(test_only_the_newest_of_those_waiting_is_sent),
        ROW(test_an_offer_from_the_callback_is_newer_than_those_waiting),
        ROW(test_peer_dies_in_the_middle_of_a_publish),
        ROW(test_lookups_are_answered_in_order),
        ROW(test_pending_lookups_are_told_when_the_connection_breaks),
        ROW(test_close_tells_pending_lookups),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
