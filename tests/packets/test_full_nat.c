/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Full NAT: both directions byte for byte, the client's address by PROXY header and TCP option with
 * losses on the way, other workers' answers; and random connections against a model.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "full_nat_rig.h"
#include "nat_frames.h"
#include "nat_handover.h"
#include "nat_session.h"

static void there_and_back(void **state)
{
    struct rig *rig = *state;

    for (uint8_t family = 4; family <= 6; family += 2) {
        publish_full(rig, family, 0, 1);
        for (uint32_t protocol = 6; protocol <= 17; protocol += 11) {
            uint16_t port = protocol == 6 ? 80 : 443;
            struct spec spec = {.family = family,
                                .protocol = (uint8_t)protocol,
                                .source_port = 40000,
                                .destination_port = port};
            struct spec sent = spec, answer, back;
            struct frame out, want;

            assert_true(pass(rig, whole(build(&spec)), &out)); /* SYN, or the first datagram */
            for (uint32_t payload = 0; payload < 1400; payload += payload < 21 ? 1 : 331) {
                spec.flags = sent.flags = ACK | PSH;
                spec.payload = sent.payload = payload;
                sent.source = source_of(family);
                sent.source_port = (uint16_t)get16(&out, l4_of(family));
                assert_true(sent.source_port >= 2000 && sent.source_port < 3000);
                sent.destination = backend_name(family);
                sent.destination_port = 8080;
                sent.ttl = 63;
                want = toward_backend(build(&sent), family);
                assert_true(pass(rig, whole(build(&spec)), &out));
                assert_frame("request", &out, &want);
                answer = (struct spec){.family = family,
                                       .protocol = (uint8_t)protocol,
                                       .source = backend_name(family),
                                       .source_port = 8080,
                                       .destination = source_of(family),
                                       .destination_port = sent.source_port,
                                       .flags = ACK,
                                       .payload = payload};
                back = answer;
                back.source = family == 6 ? "2001:db8:0:a::10" : "192.0.2.10";
                back.source_port = port;
                back.destination = family == 6 ? "2001:db8:0:c::9" : "203.0.113.9";
                back.destination_port = 40000;
                back.ttl = 63;
                want = toward_client(build(&back));
                assert_true(pass(rig, whole(build(&answer)), &out));
                assert_frame("answer", &out, &want);
                assert_true(pass(rig, whole(build(&spec)), &out));
            }
        }
    }
    assert_int_equal(counters(rig)->nat_sessions, 4);
    assert_int_equal(counters(rig)->nat_sessions_max, RIG_SESSIONS);
    assert_true(hb_counters_backends(rig->region, 0)[1].returned_packets > 0);
}

/* The server's side of a stream: what it has got, in order. */
struct server {
    uint8_t bytes[8192];
    bool got[8192];
    uint32_t first; /* sequence number of the first byte */
};

static void take(struct server *server, const struct frame *frame, uint8_t family)
{
    uint32_t l4 = l4_of(family), size = (frame->bytes[l4 + 12] >> 4) * 4u;
    uint32_t at = get32(frame, l4 + 4) - server->first;

    for (uint32_t i = l4 + size; i < frame->length; i++, at++) {
        if (at >= sizeof(server->bytes)) /* a keepalive's byte before the first */
            continue;
        assert_true(!server->got[at] || server->bytes[at] == frame->bytes[i]);
        server->bytes[at] = frame->bytes[i];
        server->got[at] = true;
    }
}

static uint32_t received(const struct server *server)
{
    uint32_t count = 0;

    while (server->got[count])
        count++;
    return count;
}

/* The client's bytes behind the PROXY header, whatever was lost: first bytes are sent again, the
 * server acknowledges header and data apart or together. */
static void proxy_with_losses(void **state)
{
    struct rig *rig = *state;

    for (uint8_t family = 4; family <= 6; family += 2) {
        uint32_t size = family == 6 ? 52 : 28, l4 = l4_of(family);

        publish_full(rig, family, HB_REWRITE_PROXY_V2, 1);
        for (uint32_t round = 0; round < 60; round++) {
            uint16_t client = (uint16_t)(10000 + round), port;
            uint32_t isn = 0xffffff00u + round * 7, acked = 0, sent = 0; /* numbers wrap */
            struct server server = {.first = isn + 1};
            struct frame out;

            srand(round);
            assert_true(pass(rig, segment(family, false, client, SYN, isn, 0, 0), &out));
            assert_int_equal(get32(&out, l4 + 4), isn);
            port = (uint16_t)get16(&out, l4);
            assert_true(pass(rig, segment(family, true, port, SYN | ACK, 5000, isn + 1, 0), &out));
            assert_int_equal(get32(&out, l4 + 8), isn + 1);
            while (acked < 2000) {
                uint32_t seq = isn + 1 + acked, length = 1 + (uint32_t)rand() % 400, got;

                if (rand() % 4 == 0)
                    length = 0;                        /* an ACK alone */
                if (rand() % 5 == 0 && sent > acked) { /* out of order: ahead */
                    seq += 200;
                }
                assert_true(
                    pass(rig, segment(family, false, client, ACK, seq, 5001, length), &out));
                /* what is in a byte depends on where it is in its segment: only positions count */
                for (uint32_t i = 0; i < out.length; i++)
                    if (i >= l4 + 20u + (get32(&out, l4 + 4) == server.first ? size : 0))
                        out.bytes[i] = 0;
                if (rand() % 3 != 0) /* else it is lost */
                    take(&server, &out, family);
                sent = acked + length;
                got = received(&server);
                if (got == 0)
                    continue;
                assert_memory_equal(server.bytes, "\r\n\r\n\0\r\nQUIT\n\x21", 13);
                if (rand() % 2) { /* the server acknowledges a part of it, with a SACK block */
                    uint32_t part = (uint32_t)rand() % (got + 1), answered;
                    struct frame ack =
                        segment(family, true, port, ACK, 5001, server.first + part, 12);
                    uint32_t edge = server.first + got + 100;

                    ack.bytes[l4 + 12] = 0x80;
                    memcpy(ack.bytes + l4 + 20, (uint8_t[]){1, 1, 5, 10}, 4);
                    ack = poke32(poke32(ack, l4 + 24, edge), l4 + 28, edge + 50);
                    assert_true(pass(rig, whole(ack), &out));
                    answered = get32(&out, l4 + 8) - (isn + 1);
                    assert_int_equal(answered, part < size ? 0 : part - size);
                    if (edge - server.first >= size)
                        assert_int_equal(get32(&out, l4 + 24), edge - size);
                    if (answered > acked)
                        acked = answered;
                }
            }
            pass(rig, segment(family, true, port, RST | ACK, 5001, 0, 0), &out);
            advance(rig, 11000);
        }
    }
}

/* The MSS that the server offers leaves room for the header. */
static void proxy_and_mss(void **state)
{
    struct rig *rig = *state;
    struct frame out, answer;
    uint16_t port;

    publish_full(rig, 4, HB_REWRITE_PROXY_V2, 1);
    assert_true(pass(rig, segment(4, false, 40000, SYN, 1, 0, 0), &out));
    port = (uint16_t)get16(&out, L4_OF_4);
    for (uint32_t odd = 0; odd < 2; odd++) {
        uint32_t at = L4_OF_4 + 20 + odd;

        answer = segment(4, true, port, SYN | ACK, 5000, 2, 8);
        answer.bytes[L4_OF_4 + 12] = 0x70;
        memset(answer.bytes + L4_OF_4 + 20, 1, 8);
        memcpy(answer.bytes + at, (uint8_t[]){2, 4, 1460 >> 8, 1460 & 255}, 4);
        assert_true(pass(rig, whole(answer), &out));
        assert_int_equal(get16(&out, at + 2), 1500 - 40 - 28);
    }
    assert_true(pass(rig, segment(4, false, 40000, ACK, 2, 5001, 1432), &out));
    assert_int_equal(out.length, 14 + 1500);
    drop(rig, "a segment larger than that", segment(4, false, 40000, ACK, 2, 5001, 1433),
         HB_DROP_OVERSIZE);
    drop(rig, "data on a SYN", segment(4, false, 40001, SYN, 2, 0, 10), HB_DROP_NAT_PROTOCOL);
}

static void proxy_udp(void **state)
{
    struct rig *rig = *state;

    for (uint8_t family = 4; family <= 6; family += 2) {
        uint32_t size = family == 6 ? 52 : 28, l4 = l4_of(family);
        struct frame out;

        publish_full(rig, family, HB_REWRITE_PROXY_V2, 1);
        for (uint32_t payload = 0; payload < 30; payload++) {
            struct spec spec = {.family = family, .protocol = 17, .payload = payload};

            assert_true(pass(rig, whole(build(&spec)), &out)); /* sound, in any case */
            assert_int_equal(out.length, l4 + 8 + size + payload);
            assert_int_equal(get16(&out, l4 + 4), 8 + size + payload);
            assert_memory_equal(out.bytes + l4 + 8, "\r\n\r\n\0\r\nQUIT\n", 12);
            for (uint32_t i = 0; i < payload; i++)
                assert_int_equal(out.bytes[l4 + 8 + size + i], (uint8_t)i);
        }
        drop(rig, "too large with the header",
             whole(build(&(struct spec){.family = family, .protocol = 17, .payload = 1450})),
             HB_DROP_OVERSIZE);
    }
}

static void option(void **state)
{
    struct rig *rig = *state;

    for (uint8_t family = 4; family <= 6; family += 2) {
        uint32_t size = family == 6 ? 20 : 8, l4 = l4_of(family);
        struct frame out, in;
        uint16_t port;

        publish_full(rig, family, HB_REWRITE_TCP_OPTION_28, 1);
        in = segment(family, false, 40000, SYN, 1, 0, 0);
        assert_true(pass(rig, in, &out));
        assert_int_equal(out.length, in.length + size);
        assert_int_equal(out.bytes[l4 + 12] >> 4, 5 + size / 4);
        assert_int_equal(out.bytes[l4 + 20], 28);
        assert_int_equal(out.bytes[l4 + 21], size);
        assert_int_equal(get16(&out, l4 + 22), 40000);
        assert_memory_equal(out.bytes + l4 + 24, in.bytes + (family == 6 ? IP6_SOURCE : IP4_SOURCE),
                            size - 4);
        port = (uint16_t)get16(&out, l4);
        assert_true(pass(rig, segment(family, false, 40000, ACK, 2, 5001, 100), &out));
        assert_int_equal(out.bytes[l4 + 20], 28);
        /* no room in the packet, or in the options: left out */
        in = segment(family, false, 40000, ACK, 2, 5001, 1500 - (l4 - 14) - 20);
        assert_true(pass(rig, in, &out));
        assert_int_equal(out.length, in.length);
        in = segment(family, false, 40000, ACK, 2, 5001, 40);
        in.bytes[l4 + 12] = 0xf0;
        memset(in.bytes + l4 + 20, 1, 40);
        assert_true(pass(rig, whole(in), &out));
        assert_int_equal(out.length, in.length);
        /* the server has spoken: no more of it */
        assert_true(pass(rig, segment(family, true, port, ACK, 5001, 102, 0), &out));
        in = segment(family, false, 40000, ACK, 2, 5001, 10);
        assert_true(pass(rig, in, &out));
        assert_int_equal(out.length, in.length);
    }
}

/* BL-45, BL-46, BL-48: what goes by the session, and what without one. */
static void by_the_session(void **state)
{
    struct rig *rig = *state;
    struct frame out;
    uint32_t port;

    publish_full(rig, 4, 0, 2);
    drop(rig, "no SYN, no session", segment(4, false, 40000, ACK, 2, 5001, 10),
         HB_DROP_NAT_NO_SESSION);
    assert_true(pass(rig, segment(4, false, 40000, SYN, 1, 0, 0), &out));
    port = get16(&out, L4_OF_4);
    assert_true(pass(rig, segment(4, false, 40000, SYN, 1, 0, 0), &out)); /* once more */
    assert_int_equal(get16(&out, L4_OF_4), port);
    assert_int_equal(counters(rig)->nat_sessions, 1);
    assert_true(pass(rig, segment(4, false, 40000, ACK, 2, 5001, 10), &out));

    /* its backend drains, and a swap comes: it stays */
    {
        uint8_t last = out.bytes[IP4_DESTINATION + 3];

        rig->backend[last - 10].use = HB_BACKEND_DRAINING;
        share_table(rig, 0);
        publish(rig);
        assert_true(pass(rig, segment(4, false, 40000, ACK, 12, 5001, 10), &out));
        assert_int_equal(out.bytes[IP4_DESTINATION + 3], last);
        assert_int_equal(get16(&out, L4_OF_4), port);
        /* FIN, then a late one: the same (BL-45) */
        assert_true(pass(rig, segment(4, false, 40000, FIN | ACK, 22, 5001, 0), &out));
        rig->now_ms += 5000;
        assert_true(pass(rig, segment(4, false, 40000, FIN | ACK, 22, 5001, 0), &out));
        assert_int_equal(out.bytes[IP4_DESTINATION + 3], last);
        /* a new connection on the old ports: another backend, another source port */
        assert_true(pass(rig, segment(4, false, 40000, SYN, 9000, 0, 0), &out));
        assert_int_not_equal(out.bytes[IP4_DESTINATION + 3], last);
        assert_int_not_equal(get16(&out, L4_OF_4), port);
        assert_int_equal(counters(rig)->nat_sessions, 2);
    }

    /* the backend goes down: datagrams go on at another (BL-49); TCP: see serves_no_more */
    rig->backend[1].use = rig->backend[2].use = HB_BACKEND_ACTIVE;
    share_table(rig, 0);
    publish(rig);
    for (int i = 0; i < 2; i++) {
        uint8_t last;

        assert_true(pass(rig, whole(UDP4(.source_port = 7)), &out));
        last = out.bytes[IP4_DESTINATION + 3];
        rig->backend[last - 10].use = HB_BACKEND_DOWN;
        share_table(rig, 0);
        publish(rig);
        assert_true(pass(rig, whole(UDP4(.source_port = 7)), &out));
        assert_int_not_equal(out.bytes[IP4_DESTINATION + 3], last);
        rig->backend[last - 10].use = HB_BACKEND_ACTIVE;
        share_table(rig, 0);
        publish(rig);
    }
    drop(rig, "an answer that nobody waits for", segment(4, true, 2999, ACK, 1, 1, 0),
         HB_DROP_NAT_NO_SESSION);
}

/* halbachctl flush empties the flow cache. A session can't be had from anything else: it stays. */
static void a_flush_keeps_sessions(void **state)
{
    struct rig *rig = *state;
    struct frame out;
    uint32_t port;

    publish_full(rig, 4, 0, 2);
    assert_true(pass(rig, segment(4, false, 40000, SYN, 1, 0, 0), &out));
    port = get16(&out, L4_OF_4);
    assert_true(pass(rig, segment(4, false, 40000, ACK, 2, 5001, 10), &out));
    assert_int_equal(counters(rig)->flows, 1);
    hb_worker_flush(rig->worker);
    turn(rig);
    assert_int_equal(counters(rig)->flows, 0);
    assert_int_equal(counters(rig)->nat_sessions, 1);
    assert_true(pass(rig, segment(4, false, 40000, ACK, 12, 5001, 10), &out));
    assert_int_equal(get16(&out, L4_OF_4), port);
    assert_true(pass(rig, segment(4, true, (uint16_t)port, ACK, 5001, 22, 10), &out));
    assert_int_equal(get16(&out, L4_OF_4 + 2), 40000);
}

/* Errors: from a backend about a request, and about an answer of which the client told. */
static void errors(void **state)
{
    struct rig *rig = *state;
    struct frame out, sent, seen, want;

    publish_full(rig, 4, 0, 1);
    seen = whole(UDP4(.source_port = 4000, .payload = 40));
    assert_true(pass(rig, seen, &sent));
    sent.ip_length = sent.length - L3;
    for (uint32_t quoted = 28; quoted <= 60; quoted += 4) {
        struct frame shown = fix4(poke8(seen, IP4_TTL, 63));

        assert_true(
            pass(rig, icmp_error("198.51.100.11", "198.51.100.64", 3, &sent, quoted, 64), &out));
        want = toward_client_as_is(icmp_error("192.0.2.10", "203.0.113.9", 3, &shown, quoted, 63));
        assert_frame("from the backend", &out, &want);
        assert_true(
            pass(rig, icmp_error("198.51.100.1", "198.51.100.64", 11, &sent, quoted, 64), &out));
        want = toward_client_as_is(icmp_error("192.0.2.10", "203.0.113.9", 11, &shown, quoted, 63));
        assert_frame("from a router", &out, &want);
    }
    /* 11 is time exceeded; code 4 of 3 is not about reachability */
    assert_int_equal(hb_counters_backends(rig->region, 0)[1].unreachable, 9);
    assert_true(pass(
        rig,
        whole(poke8(icmp_error("198.51.100.1", "198.51.100.64", 3, &sent, 28, 64), L4_OF_4 + 1, 4)),
        &out));
    assert_int_equal(hb_counters_backends(rig->region, 0)[1].unreachable, 9);
    drop(rig, "cut off", icmp_error("198.51.100.11", "198.51.100.64", 3, &sent, 22, 64),
         HB_DROP_ICMP_TYPE);
}

/* With three workers every port of ours is 0 modulo 3, and an answer to another port is not ours:
 * without rings to hand it over it is dropped. */
static void ports_name_the_worker(void **state)
{
    struct rig *rig = *state;
    struct frame out;

    publish_full(rig, 4, 0, 1);
    rig->workers = 3;
    publish(rig);
    for (uint16_t i = 0; i < 30; i++) {
        assert_true(pass(rig, segment(4, false, (uint16_t)(100 + i), SYN, 1, 0, 0), &out));
        assert_int_equal(get16(&out, L4_OF_4) % 3, 0);
    }
    drop(rig, "another worker's", segment(4, true, 2000, ACK, 1, 1, 0), HB_DROP_TX_FULL);
}

/* The same with the rings: the answer goes to the worker of its port, and one that another worker
 * got comes here and is sent. The other worker is only played: nothing of it runs. */
static void answers_handed_over(void **state)
{
    struct rig *rig = *state;
    struct hb_worker *other = add_other_worker(rig);
    struct frame out, in;
    uint16_t port;
    bool needed;

    assert_null(hb_handover_create(1, &needed));
    assert_false(needed);
    publish_full(rig, 4, 0, 1);
    assert_true(pass(rig, segment(4, false, 40000, SYN, 1, 0, 0), &out));
    port = (uint16_t)get16(&out, L4_OF_4);
    assert_int_equal(port % 2, 0);

    in = segment(4, true, (uint16_t)(port + 1), ACK, 1, 1, 0);
    assert_false(pass(rig, in, &out)); /* given away: neither sent nor dropped */
    assert_int_equal(count_drops(rig), 0);
    assert_int_equal(counters(rig)->nat_handovers, 1);
    in = segment(4, true, port, SYN | ACK, 1, 2, 0);
    assert_true(hb_handover_give(other, 0, make_mbuf(&in, 128, 0)));
    turn(rig);
    assert_true(receive(rig, PORT, &out));
    assert_int_equal(get16(&out, L4_OF_4 + 2), 40000);
    assert_int_equal(counters(rig)->rx_packets, 3); /* a hand-over is sent and received once */
    assert_int_equal(counters(rig)->tx_packets, 3);
    for (uint32_t i = 0; i < 255; i++) /* a ring has an end; what does not fit stays the giver's */
        assert_true(hb_handover_give(other, 0, make_mbuf(&in, 128, 0)));
    {
        struct rte_mbuf *one = make_mbuf(&in, 128, 0);

        assert_false(hb_handover_give(other, 0, one));
        assert_false(hb_handover_give(other, 2, one));
        rte_pktmbuf_free(one);
    }
    remove_other_worker(rig, other);
}

#define CLIENTS 40

/* Random connections of both protocols through drains and swaps: what a client sends arrives at one
 * server by one source port for as long as the connection lives, no two have the same, and what the
 * server says arrives at that client. BL-89: with swaps all the time. */
static void a_model(void **state)
{
    struct {
        uint32_t port;
        uint8_t server;
    } model[CLIENTS] = {0};
    struct rig *rig = *state;
    struct frame out;

    publish_full(rig, 4, 0, 3);
    srand(4);
    for (uint32_t step = 0; step < 20000; step++) {
        uint32_t at = (uint32_t)rand() % CLIENTS;
        uint16_t client = (uint16_t)(10000 + at);

        if (rand() % 50 == 0) {
            uint16_t id = (uint16_t)(1 + rand() % 3);

            rig->backend[id].use =
                rig->backend[id].use == HB_BACKEND_ACTIVE ? HB_BACKEND_DRAINING : HB_BACKEND_ACTIVE;
            rig->backend[1].use = HB_BACKEND_ACTIVE; /* somebody must take new ones */
            share_table(rig, 0);
            publish(rig);
            if (rig->published != NULL && rand() % 3 == 0)
                turn(rig);
        }
        if (model[at].port == 0) {
            assert_true(pass(rig, segment(4, false, client, SYN, step, 0, 0), &out));
            model[at].port = get16(&out, L4_OF_4);
            model[at].server = out.bytes[IP4_DESTINATION + 3];
            for (uint32_t i = 0; i < CLIENTS; i++)
                assert_false(i != at && model[i].port == model[at].port &&
                             model[i].server == model[at].server);
            assert_true(pass(rig, segment(4, false, client, ACK, step, 0, 0), &out));
        } else if (rand() % 3 == 0) {
            struct frame answer = segment(4, true, (uint16_t)model[at].port, ACK, 1, 1, 20);

            answer.bytes[IP4_SOURCE + 3] = model[at].server;
            assert_true(pass(rig, whole(fix4(answer)), &out));
            assert_int_equal(get16(&out, L4_OF_4 + 2), client);
            assert_memory_equal(out.bytes + IP4_DESTINATION, ((uint8_t[]){203, 0, 113, 9}), 4);
            assert_memory_equal(out.bytes + IP4_SOURCE, ((uint8_t[]){192, 0, 2, 10}), 4);
        } else if (rand() % 20 == 0) {
            assert_true(pass(rig, segment(4, false, client, RST, 1, 1, 0), &out));
            advance(rig, 0);
            rig->now_ms += 11000;
            memset(model, 0, sizeof(model)); /* established ones are reset too, see below */
            for (uint32_t i = 0; i < CLIENTS; i++)
                pass(rig, segment(4, false, (uint16_t)(10000 + i), RST, 1, 1, 0), &out);
            advance(rig, 11000);
            assert_int_equal(counters(rig)->nat_sessions, 0);
        } else {
            assert_true(pass(rig, segment(4, false, client, ACK, 1, 1, 30), &out));
            assert_int_equal(get16(&out, L4_OF_4), model[at].port);
            assert_int_equal(out.bytes[IP4_DESTINATION + 3], model[at].server);
        }
    }
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(there_and_back),
        TEST(proxy_with_losses),
        TEST(proxy_and_mss),
        TEST(proxy_udp),
        TEST(option),
        TEST(by_the_session),
        TEST(a_flush_keeps_sessions),
        TEST(errors),
        TEST(ports_name_the_worker),
        TEST(answers_handed_over),
        TEST(a_model),
    };
    int failed = rig_open();

    if (failed != 0)
        return failed;
    failed = cmocka_run_group_tests_name("packets: full NAT", tests, NULL, NULL);
    rig_close();
    return failed;
}
