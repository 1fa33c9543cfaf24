/* SPDX-License-Identifier: BSD-3-Clause */
/* What the sketch of top talkers sees of real packets: one of each burst, and only those for a
 * service. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "rig.h"

static const struct hb_talker *find(const struct rig *rig, int family, const char *source)
{
    const struct hb_talker *talkers = hb_counters_talkers(rig->region, 0);
    uint8_t bytes[HB_ADDRESS_SIZE] = {0};

    inet_pton(family == HB_FAMILY_IPV4 ? AF_INET : AF_INET6, source, bytes);
    for (uint32_t t = 0; t < rig->region->talkers_max; t++) {
        if (talkers[t].family == family && memcmp(talkers[t].source, bytes, sizeof(bytes)) == 0)
            return &talkers[t];
    }
    return NULL;
}

static uint64_t sampled(const struct rig *rig)
{
    return hb_counters_worker(rig->region, 0)->sampled;
}

static void sources_are_counted(void **state)
{
    struct rig *rig = *state;
    struct frame four = TCP4(.source = "203.0.113.77", .payload = 100);
    struct frame six = TCP6(.source = "2001:db8:0:c::77");
    struct frame arp = build_arp();

    publish_one_backend(rig, 4);
    for (int i = 0; i < 3; i++) {
        send_frame(rig, &four);
        turn(rig);
    }
    send_frame(rig, &six);
    turn(rig);
    send_frame(rig, &arp);
    turn(rig);
    assert_int_equal(sampled(rig), 4);
    assert_non_null(find(rig, HB_FAMILY_IPV4, "203.0.113.77"));
    assert_int_equal(find(rig, HB_FAMILY_IPV4, "203.0.113.77")->count, 3);
    assert_int_equal(find(rig, HB_FAMILY_IPV4, "203.0.113.77")->bytes, 3 * 140);
    assert_int_equal(find(rig, HB_FAMILY_IPV6, "2001:db8:0:c::77")->count, 1);
    take_all(rig, PORT);
    take_all(rig, PUNT_PORT);
}

/* A burst is one sample, whatever it is made of; over many, a source of most packets stands out. */
static void a_burst_is_one_sample(void **state)
{
    struct rig *rig = *state;
    struct frame hot = TCP4(.source = "203.0.113.99", .flags = ACK);

    publish_one_backend(rig, 4);
    for (int i = 0; i < 100; i++) {
        for (uint16_t p = 0; p < 8; p++) {
            char source[20];
            struct frame other;

            snprintf(source, sizeof(source), "203.0.113.%d", p + 1);
            other = TCP4(.source = source, .source_port = (uint16_t)(1000 + i), .flags = ACK);
            send_frame(rig, p % 4 == 0 ? &other : &hot);
        }
        turn(rig);
        take_all(rig, PORT);
    }
    assert_int_equal(sampled(rig), 100);
    assert_in_range(find(rig, HB_FAMILY_IPV4, "203.0.113.99")->count, 50, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sources_are_counted, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(a_burst_is_one_sample, rig_setup, rig_teardown),
    };
    int status = rig_open();

    if (status != 0)
        return status;
    status = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return status;
}
