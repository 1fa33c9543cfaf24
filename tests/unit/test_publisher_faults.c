/* SPDX-License-Identifier: BSD-3-Clause */
/* Control's session with a dataplane that refuses, lies, falls silent, comes and goes. */
#include <dirent.h>
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

static unsigned count_fds(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;

    assert_non_null(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

/* Answers the hello with `reply` and these descriptors; expects the connection to end for `words`.
 */
static void answer_badly(struct owner *owner, const struct hb_hello_reply *reply, const int *fds,
                         unsigned fds_count, const char *words)
{
    fake_send(&owner->fake, reply, sizeof(*reply), fds, fds_count);
    owner_expect_disconnect(owner, words);
    assert_int_equal(owner->connected, 0);
    fake_accept(&owner->fake); /* it tries again */
    fake_receive(&owner->fake, HB_MSG_HELLO);
}

static void test_bad_hello_replies(void **state)
{
    struct owner *owner = *state;
    struct fake_dataplane *fake = &owner->fake;
    struct hb_generation_header blob = fake_generation(41);
    struct hb_hello_reply reply;
    int fds[8];
    unsigned i;

    fake_accept(fake);
    fake_receive(fake, HB_MSG_HELLO);
    for (i = 0; i < 8; i++)
        fds[i] = fake->counters_fd;

    reply = fake_hello_reply(fake);
    answer_badly(owner, &reply, NULL, 0, "0 file descriptors instead of 1");
    reply = fake_hello_reply(fake);
    answer_badly(owner, &reply, fds, 3, "3 file descriptors instead of 1");
    reply = fake_hello_reply(fake);
    answer_badly(owner, &reply, fds, 8, "descriptors");
    reply = fake_hello_reply(fake);
    reply.ports = HB_PORTS_MAX + 1;
    answer_badly(owner, &reply, fds, 1, "33 ports");
    reply = fake_hello_reply(fake);
    reply.instance++;
    answer_badly(owner, &reply, fds, 1, "another instance");
    reply = fake_hello_reply(fake);
    reply.generation_number = 41;
    answer_badly(owner, &reply, fds, 2, "not a memfd with the seals");
    reply = fake_hello_reply(fake);
    reply.generation_number = 42;
    fds[1] = fake_memfd(&blob, sizeof(blob), ALL_SEALS);
    answer_badly(owner, &reply, fds, 2, "number 41, the hello says 42");
    reply = fake_hello_reply(fake);
    reply.generation_number = 41;
    reply.header.version = HB_PROTOCOL_VERSION + 1;
    answer_badly(owner, &reply, fds, 2, "version 4 of the protocol, this control version 3");
    close(fds[1]);
}

/* ---- refusals ---- */

static void test_version_mismatch_is_refused(void **state)
{
    struct owner *owner = *state;
    struct hb_refused refused;

    fake_accept(&owner->fake);
    fake_receive(&owner->fake, HB_MSG_HELLO);
    refused = fake_refused(&owner->fake, "this dataplane speaks version 9, the control version 1");
    refused.header.version = 9; /* the refusal itself must still be readable */
    fake_send(&owner->fake, &refused, sizeof(refused), NULL, 0);
    owner_expect_disconnect(owner, "speaks version 9, the control version 1");
}

static void test_second_control_is_refused_and_waits(void **state)
{
    struct owner *owner = *state;
    struct hb_refused refused;
    int i;

    for (i = 0; i < 3; i++) {
        fake_accept(&owner->fake);
        fake_receive(&owner->fake, HB_MSG_HELLO);
        refused = fake_refused(&owner->fake, "another control, pid 4711,\nis connected");
        fake_send(&owner->fake, &refused, sizeof(refused), NULL, 0);
        fake_hang_up(&owner->fake);
    }
    fake_wait(&owner->fake, &owner->disconnected, 1);
    assert_non_null(strstr(owner->why, "another control, pid 4711,?is connected"));
    owner_greet(owner); /* the other one has gone */
    assert_int_equal(owner->disconnected, 1);
}

/* ---- a peer that breaks the protocol ---- */

/* Offers a generation and answers it with these bytes. */
static void break_protocol(struct owner *owner, const void *message, size_t size, const int *fds,
                           unsigned fds_count, const char *words)
{
    unsigned published = owner->published;

    fake_send(&owner->fake, message, size, fds, fds_count);
    owner_expect_disconnect(owner, words);
    assert_int_equal(owner->published, published);
    owner_greet(owner);
    assert_int_equal(owner_offer(owner, 1), 0);
    fake_receive(&owner->fake, HB_MSG_PUBLISH);
}

static void test_broken_replies_end_the_session(void **state)
{
    struct owner *owner = *state;
    struct fake_dataplane *fake = &owner->fake;
    uint8_t garbage[HB_MESSAGE_MAX + 1];
    struct hb_publish_reply reply;
    int fds[2];

    owner_greet(owner);
    assert_int_equal(owner_offer(owner, 1), 0);
    fake_receive(fake, HB_MSG_PUBLISH);
    memset(garbage, 0xa5, sizeof(garbage));
    fds[0] = fds[1] = fake->counters_fd;

    break_protocol(owner, garbage, sizeof(reply), NULL, 0, "magic number");
    break_protocol(owner, garbage, 5, NULL, 0, "5 bytes is too short");
    break_protocol(owner, garbage, sizeof(garbage), NULL, 0, "longer");

    reply = fake_publish_reply(fake, HB_REJECT_NONE);
    break_protocol(owner, &reply, sizeof(reply) - 1, NULL, 0, "says that it has");
    reply = fake_publish_reply(fake, HB_REJECT_NONE);
    reply.header.length -= 8;
    break_protocol(owner, &reply, sizeof(reply) - 8, NULL, 0, "an answer of type 5 with");
    reply = fake_publish_reply(fake, HB_REJECT_NONE);
    reply.header.sequence++;
    break_protocol(owner, &reply, sizeof(reply), NULL, 0, "was due");
    reply = fake_publish_reply(fake, HB_REJECT_NONE);
    reply.header.type = HB_MSG_LOOKUP_REPLY;
    break_protocol(owner, &reply, sizeof(reply), NULL, 0, "type 7 where type 5 was due");
    reply = fake_publish_reply(fake, HB_REJECT_NONE);
    reply.header.version = HB_PROTOCOL_VERSION + 1;
    break_protocol(owner, &reply, sizeof(reply), NULL, 0, "version 4 of the protocol");
    reply = fake_publish_reply(fake, HB_REJECT_NONE);
    break_protocol(owner, &reply, sizeof(reply), fds, 2, "brings file descriptors");
}

static void test_an_unasked_message_ends_the_session(void **state)
{
    struct owner *owner = *state;
    struct hb_publish_reply reply;

    owner_greet(owner);
    reply = fake_publish_reply(&owner->fake, HB_REJECT_NONE);
    fake_send(&owner->fake, &reply, sizeof(reply), NULL, 0);
    owner_expect_disconnect(owner, "nobody asked for");
    assert_int_equal(owner->published, 0);
}

static void test_silence_ends_the_session(void **state)
{
    static const struct hb_publisher_timing impatient = {1, 1, 50};
    struct owner *owner = *state;

    hb_publisher_set_timing(owner->publisher, &impatient);
    owner_greet(owner);
    assert_true(fake_hears_nothing(&owner->fake)); /* no answer is due: no hurry */
    assert_int_equal(owner_offer(owner, 1), 0);
    fake_receive(&owner->fake, HB_MSG_PUBLISH);
    owner_expect_disconnect(owner, "has not answered for 0.05 s");
    hb_publisher_set_timing(owner->publisher, &(struct hb_publisher_timing){1, 1, 3000});
    owner_greet(owner);
}

/* ---- coming and going ---- */

static void test_a_missing_dataplane_is_reported_once(void **state)
{
    struct owner *owner = *state;
    int i;

    fake_stop_listening(&owner->fake);
    owner_expect_disconnect(owner, "No such file or directory; is halbach-dataplane running");
    for (i = 0; i < 20; i++) /* a millisecond or more each: several attempts */
        fake_turn(&owner->fake);
    assert_int_equal(owner->disconnected, 1);
    fake_listen(&owner->fake);
    owner_greet(owner);
    fake_hang_up(&owner->fake);
    fake_stop_listening(&owner->fake);
    owner_expect_disconnect(owner, "closed the connection");
    /* The same reason as at first is news again, since there was a connection in between. */
    owner_expect_disconnect(owner, "No such file or directory");
    assert_int_equal(owner->disconnected, 3);
}

static void test_descriptors_stay_flat_over_1000_reconnects(void **state)
{
    struct owner *owner = *state;
    unsigned i, before;

    owner_greet(owner);
    fake_hang_up(&owner->fake);
    before = count_fds();
    for (i = 0; i < 1000; i++) {
        owner_greet(owner);
        if (i % 3 == 0)
            assert_int_equal(owner_offer(owner, i + 1), 0);
        if (i % 3 == 0 && i % 2 == 0)
            assert_int_equal(owner_offer(owner, i + 2), 0);
        if (i % 5 == 0)
            fake_send(&owner->fake, "garbage", 7, (int[]){owner->fake.counters_fd, 0, 1}, 3);
        fake_hang_up(&owner->fake);
        fake_wait(&owner->fake, &owner->disconnected, i + 2);
    }
    /* The listener may hold one connection that was not yet accepted; control holds its own end. */
    assert_in_range(count_fds(), before - 1, before + 1);
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, owner_set_up, owner_tear_down)
    const struct CMUnitTest tests[] = {
        ROW(test_bad_hello_replies),
        ROW(test_version_mismatch_is_refused),
        ROW(test_second_control_is_refused_and_waits),
        ROW(test_broken_replies_end_the_session),
        ROW(test_an_unasked_message_ends_the_session),
        ROW(test_silence_ends_the_session),
        ROW(test_a_missing_dataplane_is_reported_once),
        ROW(test_descriptors_stay_flat_over_1000_reconnects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
