/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Full NAT at its ends: connections whose backend or source has gone, ports and sessions that run
 * out and come back, and services that have many addresses and ports.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "full_nat_rig.h"
#include "nat_frames.h"

/* What two resets must be: the backend's first. */
struct end {
    uint8_t family;
    uint16_t client, port; /* source ports: the client's, and the one toward the backend */
    uint8_t server;        /* last byte of the backend's address */
    uint32_t seq;          /* of the reset to the backend */
    bool told;             /* the backend */
};

static void expect_resets(struct rig *rig, const char *text, const struct end *end,
                          const uint64_t *counter)
{
    struct frame in = segment(end->family, false, end->client, ACK, 2, 5001, 10), out;
    uint32_t l4 = l4_of(end->family),
             last = end->family == 6 ? IP6_DESTINATION + 15 : IP4_DESTINATION + 3;
    uint64_t before = *counter, reset = counters(rig)->drops[HB_DROP_RESET];

    assert_true(pass(rig, in, &out));
    if (end->told) {
        assert_int_equal(get16(&out, l4), end->port);
        assert_int_equal(get16(&out, l4 + 2), 8080);
        assert_int_equal(out.bytes[last], end->server);
        assert_int_equal(out.bytes[l4 + 13], RST);
        assert_int_equal(get32(&out, l4 + 4), end->seq);
        assert_true(receive(rig, PORT, &out));
        out.family = end->family;
        out.l3 = L3;
    }
    assert_true(is_sound(&out));
    assert_memory_equal(out.bytes, in.bytes + 6, 6);
    assert_memory_equal(out.bytes + last - (end->family == 6 ? 15 : 3),
                        in.bytes + (end->family == 6 ? IP6_SOURCE : IP4_SOURCE),
                        end->family == 6 ? 16 : 4);
    assert_int_equal(get16(&out, l4), 80);
    assert_int_equal(get16(&out, l4 + 2), end->client);
    assert_int_equal(out.bytes[l4 + 13], RST);
    assert_int_equal(get32(&out, l4 + 4), 5001);
    if (receive(rig, PORT, &out))
        fail_msg("%s: one packet too many", text);
    assert_int_equal(*counter, before + 1);
    assert_int_equal(counters(rig)->drops[HB_DROP_RESET], reset + 1);
}

/* Opens a connection; what its end is to be. */
static struct end connect_one(struct rig *rig, uint8_t family, uint16_t client, uint32_t shift)
{
    struct end end = {.family = family, .client = client, .seq = 2 + shift, .told = true};
    struct frame out;

    assert_true(pass(rig, segment(family, false, client, SYN, 1, 0, 0), &out));
    end.port = (uint16_t)get16(&out, l4_of(family));
    end.server = out.bytes[family == 6 ? IP6_DESTINATION + 15 : IP4_DESTINATION + 3];
    assert_true(pass(rig, segment(family, false, client, ACK, 2, 5001, 0), &out));
    return end;
}

static uint16_t backend_of_server(uint8_t family, uint8_t server)
{
    return (uint16_t)(family == 6 ? server - 0x10 : server - 10);
}

/* A connection whose backend serves no more ends by a reset to both ends, with and without
 * an entry in the flow cache, and again if the reset was lost; a SYN begins anew. */
static void serves_no_more(void **state)
{
    static const uint8_t uses[] = {HB_BACKEND_DOWN, HB_BACKEND_RESET, 0};
    struct rig *rig = *state;
    struct frame out;

    for (uint32_t round = 0; round < 24; round++) {
        uint8_t family = round & 1 ? 6 : 4, use = uses[round / 8];
        bool proxy = round & 2, tracked = round & 4;
        uint16_t client = (uint16_t)(20000 + round), id;
        const uint64_t *counter =
            use == HB_BACKEND_RESET ? &counters(rig)->drain_resets : &counters(rig)->nat_resets;
        uint64_t sessions = counters(rig)->nat_sessions;
        struct end end;

        publish_full(rig, family, proxy ? HB_REWRITE_PROXY_V2 : 0, 2);
        rig->service[0].tracking = tracked ? HB_TRACKING_ALL : HB_TRACKING_OFF;
        publish(rig);
        end = connect_one(rig, family, client, proxy ? (family == 6 ? 52 : 28) : 0);
        end.told = use != 0;
        id = backend_of_server(family, end.server);
        rig->backend[id].use = use;
        if (use == 0)
            rig->backend[id].incarnation++;
        share_table(rig, 0);
        publish(rig);
        /* what it says itself passes until then, if it is known */
        if (use == HB_BACKEND_DOWN) {
            struct frame answer = segment(family, true, end.port, ACK, 1, 1, 20);

            answer.bytes[family == 6 ? IP6_SOURCE + 15 : IP4_SOURCE + 3] = end.server;
            assert_true(pass(rig, whole(family == 4 ? fix4(answer) : answer), &out));
            assert_int_equal(get16(&out, l4_of(family) + 2), client);
        }
        expect_resets(rig, "the next packet", &end, counter);
        expect_resets(rig, "and again", &end, counter);
        assert_int_equal(hb_counters_nat(rig->region, 0)[id].sessions, 1);
        assert_true(pass(rig, segment(family, false, client, SYN, 9500, 0, 0), &out));
        assert_int_not_equal(out.bytes[family == 6 ? IP6_DESTINATION + 15 : IP4_DESTINATION + 3],
                             end.server);
        assert_int_equal(counters(rig)->nat_sessions, sessions + 2);
        advance(rig, 10100); /* the old one has gone, and the new one was never answered */
        assert_int_equal(counters(rig)->nat_sessions, 0);
        assert_int_equal(hb_counters_nat(rig->region, 0)[id].sessions, 0);
    }
}

/* So does one whose source address was taken away: its answers would be nobody's. */
static void the_source_is_gone(void **state)
{
    struct rig *rig = *state;
    struct frame out;

    for (uint8_t family = 4; family <= 6; family += 2) {
        struct end end;

        publish_full(rig, family, 0, 1);
        end = connect_one(rig, family, 40000, 0);
        publish(rig); /* another generation that has it */
        assert_true(pass(rig, segment(family, false, 40000, ACK, 2, 5001, 10), &out));
        rig->source[0].address[family == 6 ? 15 : 3]++;
        publish(rig);
        expect_resets(rig, "another source", &end, &counters(rig)->nat_resets);
        assert_true(pass(rig, segment(family, false, 40000, SYN, 9500, 0, 0), &out));
        advance(rig, 10100);
    }
}

/* An error about an answer of a backend that was removed has nowhere to go. */
static void errors_for_the_removed(void **state)
{
    struct rig *rig = *state;
    struct frame answer;

    publish_full(rig, 4, 0, 2);
    rig->settings.icmp_relay_rate = 1000;
    publish(rig);
    for (int removed = 0; removed < 2; removed++) {
        struct end end = connect_one(rig, 4, 40000, 0);
        struct frame out;

        answer = whole(TCP4(.source = "192.0.2.10", .source_port = 80, .destination = "203.0.113.9",
                            .destination_port = 40000, .flags = ACK));
        if (removed) {
            memset(&rig->backend[end.server - 10], 0, sizeof(rig->backend[0]));
            share_table(rig, 0);
            publish(rig);
            drop(rig, "about a removed one's answer",
                 icmp_error("203.0.113.1", "192.0.2.10", 3, &answer, 28, 64),
                 HB_DROP_NAT_NO_SESSION);
        } else {
            assert_true(
                pass(rig, icmp_error("203.0.113.1", "192.0.2.10", 3, &answer, 28, 64), &out));
            assert_int_equal(out.bytes[IP4_DESTINATION + 3], end.server);
            assert_memory_equal(out.bytes + IP4_SOURCE, ((uint8_t[]){198, 51, 100, 64}), 4);
        }
    }
}

/* BL-85: a refusal by name, and the running ones do not notice. */
static void ports_run_out(void **state)
{
    struct rig *rig = *state;
    const struct hb_nat_counters *nat = &hb_counters_nat(rig->region, 0)[1];
    struct frame out;

    publish_full(rig, 4, 0, 1);
    rig->source[0].port_last = 2009;
    publish(rig);
    for (uint16_t i = 0; i < 10; i++)
        assert_true(pass(rig, segment(4, false, (uint16_t)(100 + i), SYN, 1, 0, 0), &out));
    assert_int_equal(nat->sessions, 10);
    assert_int_equal(nat->exhausted, 0);
    assert_true(pass(rig, segment(4, false, 100, ACK, 2, 5001, 0), &out));
    for (uint16_t i = 0; i < 20; i++)
        drop(rig, "no port", segment(4, false, (uint16_t)(200 + i), SYN, 1, 0, 0),
             HB_DROP_NAT_PORTS);
    assert_int_equal(nat->sessions, 10);
    assert_int_equal(nat->exhausted, 20);
    for (uint16_t i = 0; i < 10; i++)
        assert_true(
            pass(rig, segment(4, false, (uint16_t)(100 + i), i ? SYN : ACK, 1, 0, 0), &out));
    rig->now_ms += 3000;
    for (uint16_t i = 0; i < 9; i++)
        assert_true(pass(rig, segment(4, false, (uint16_t)(300 + i), SYN, 1, 0, 0), &out));
    assert_true(pass(rig, segment(4, false, 100, ACK, 2, 5001, 0), &out)); /* it is here still */
    drop(rig, "no port", segment(4, false, 400, SYN, 1, 0, 0), HB_DROP_NAT_PORTS);
}

/* The port of a connection that has ended is not taken before its backend has forgotten it. */
static void ports_rest(void **state)
{
    static const struct {
        uint8_t flags;
        bool from_backend;
        uint32_t rest_ms;
    } rows[] = {{FIN | ACK, false, 60000},
                {FIN | ACK, true, 60000},
                {RST, false, 10000},
                {RST | ACK, true, 10000}};
    struct rig *rig = *state;
    struct frame out;

    publish_full(rig, 4, 0, 1);
    rig->source[0].port_first = rig->source[0].port_last = 2500;
    publish(rig);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct end end = connect_one(rig, 4, (uint16_t)(1000 + i), 0);
        struct frame last = rows[i].from_backend
                                ? segment(4, true, end.port, rows[i].flags, 5001, 2, 0)
                                : segment(4, false, end.client, rows[i].flags, 2, 5001, 0);

        assert_int_equal(end.port, 2500);
        assert_true(pass(rig, last, &out));
        rig->now_ms += rows[i].rest_ms - 1;
        drop(rig, "too early", segment(4, false, 3000, SYN, 1, 0, 0), HB_DROP_NAT_PORTS);
        rig->now_ms += 1;
        assert_true(pass(rig, segment(4, false, 3000, SYN, 1, 0, 0), &out));
        assert_int_equal(get16(&out, L4_OF_4), 2500);
        rig->now_ms += 3000; /* never answered */
    }
}

/* Sessions that both ends have used never make way. */
static void sessions_run_out(void **state)
{
    struct rig *rig = *state;
    struct frame out;

    publish_full(rig, 4, 0, 1);
    for (uint16_t i = 0; i < RIG_SESSIONS - 1; i++)
        connect_one(rig, 4, (uint16_t)(100 + i), 0);
    assert_true(pass(rig, segment(4, false, 1000, SYN, 1, 0, 0), &out));
    connect_one(rig, 4, 2000, 0); /* which that one has made way for */
    drop(rig, "none is left", segment(4, false, 3000, SYN, 1, 0, 0), HB_DROP_NAT_SESSIONS);
    for (uint16_t i = 0; i < RIG_SESSIONS - 1; i++)
        assert_true(pass(rig, segment(4, false, (uint16_t)(100 + i), ACK, 2, 5001, 5), &out));
}

/* A prefix of VIPs and any port: an answer has the address and port that its client used. */
static void any_address_and_port(void **state)
{
    static const struct {
        const char *vip;
        uint16_t port;
    } rows[] = {{"192.0.2.10", 1}, {"192.0.2.77", 81}, {"192.0.2.77", 65535}, {"192.0.2.255", 81}};
    struct rig *rig = *state;
    struct frame out, want;

    publish_full(rig, 4, 0, 1);
    for (int fixed = 0; fixed < 2; fixed++) {
        rig->backend[1].nat_port = fixed ? htons(8080) : 0;
        rig->service[0].address[3] = 0;
        rig->service[0].prefix_length = 24;
        rig->service[0].port = 0;
        rig->service[0].port_last = 0xffff;
        publish(rig);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            struct spec in = {.family = 4,
                              .protocol = 6,
                              .destination = rows[i].vip,
                              .source_port = (uint16_t)(500 + 100 * fixed),
                              .destination_port = rows[i].port,
                              .flags = SYN};
            struct spec answer = {.family = 4,
                                  .protocol = 6,
                                  .source = "198.51.100.11",
                                  .source_port = fixed ? 8080 : rows[i].port,
                                  .destination = "198.51.100.64",
                                  .flags = SYN | ACK};
            struct spec back = answer;

            assert_true(pass(rig, whole(build(&in)), &out));
            assert_int_equal(get16(&out, L4_OF_4 + 2), fixed ? 8080 : rows[i].port);
            answer.destination_port = (uint16_t)get16(&out, L4_OF_4);
            back.source = rows[i].vip;
            back.source_port = rows[i].port;
            back.destination = "203.0.113.9";
            back.destination_port = in.source_port;
            back.ttl = 63;
            want = toward_client(build(&back));
            assert_true(pass(rig, whole(build(&answer)), &out));
            assert_frame("answer", &out, &want);
        }
    }
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(serves_no_more),       TEST(the_source_is_gone), TEST(errors_for_the_removed),
        TEST(ports_run_out),        TEST(ports_rest),         TEST(sessions_run_out),
        TEST(any_address_and_port),
    };
    int failed = rig_open();

    if (failed != 0)
        return failed;
    failed = cmocka_run_group_tests_name("packets: the ends of full NAT", tests, NULL, NULL);
    rig_close();
    return failed;
}
