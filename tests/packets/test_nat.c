/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NAT: requests out and answers back, byte for byte, with every checksum computed anew by the test.
 *
 * Backend 1 is reached over the family under test and serves TCP 80 and UDP 443 of the VIP on its
 * ports 80 and 443, or 8080 where a row says so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "nat_frames.h"
#include "rig.h"

static const struct hb_worker_counters *counters(const struct rig *rig)
{
    return hb_counters_worker(rig->region, 0);
}

static void publish_nat(struct rig *rig, uint8_t family, uint16_t nat_port)
{
    add_backend(rig, 1, 0, family);
    translate_backend(rig, 1, HB_FORWARDING_NAT);
    rig->backend[1].nat_port = (uint16_t)(nat_port >> 8 | nat_port << 8);
    share_table(rig, 0);
    add_service(rig, family, HB_PROTOCOL_TCP, 80, 0);
    add_service(rig, family, HB_PROTOCOL_UDP, 443, 0);
    publish(rig);
}

static void pass(struct rig *rig, const char *text, struct frame in, struct frame want)
{
    struct frame out;

    send_frame(rig, &in);
    turn(rig);
    if (!receive(rig, PORT, &out))
        fail_msg("%s: nothing left", text);
    assert_frame(text, &out, &want);
    assert_false(receive(rig, PORT, &out));
}

static void drop(struct rig *rig, const char *text, struct frame in, unsigned reason)
{
    uint64_t before = counters(rig)->drops[reason];
    struct frame out;

    send_frame(rig, &in);
    turn(rig);
    if (receive(rig, PORT, &out) || counters(rig)->drops[reason] != before + 1)
        fail_msg("%s: not dropped for %s", text, hb_drop_name(reason));
}

static void requests_and_answers(void **state)
{
    static const char *const backend[] = {"198.51.100.11", "2001:db8:0:b::11"};
    static const char *const client[] = {"203.0.113.9", "2001:db8:c::9"};
    static const char *const vip[] = {"192.0.2.10", "2001:db8:0:a::10"};
    struct rig *rig = *state;

    for (int six = 0; six < 2; six++) {
        uint8_t family = six ? 6 : 4;

        rig->services = 0;
        publish_nat(rig, family, 8080);
        for (uint32_t protocol = 6; protocol <= 17; protocol += 11) {
            uint16_t port = protocol == 6 ? 80 : 443;
            struct spec spec = {.family = family,
                                .protocol = (uint8_t)protocol,
                                .source = client[six],
                                .destination = vip[six],
                                .source_port = 40000,
                                .destination_port = port,
                                .flags = protocol == 6 ? ACK : 0};

            /* BL-10: whatever is behind the headers stays as it is */
            for (uint32_t payload = 0; payload < 1400; payload += payload < 21 ? 1 : 331) {
                struct spec out = spec, answer = spec, back = spec;

                spec.payload = out.payload = answer.payload = back.payload = payload;
                out.destination = backend[six];
                out.destination_port = 8080;
                out.ttl = 63;
                pass(rig, "request", whole(build(&spec)), toward_backend(build(&out), family));
                answer.source = backend[six];
                answer.source_port = 8080;
                answer.destination = client[six];
                answer.destination_port = 40000;
                back = answer;
                back.source = vip[six];
                back.source_port = port;
                back.ttl = 63;
                pass(rig, "answer", whole(build(&answer)), toward_client(build(&back)));
            }
        }
        assert_true(hb_counters_backends(rig->region, 0)[1].returned_packets > 0);
        assert_int_equal(hb_counters_backends(rig->region, 0)[1].returned_packets,
                         hb_counters_backends(rig->region, 0)[1].packets);
    }
}

/* BL-12: ports stand behind the options. */
static void options_and_extensions(void **state)
{
    struct rig *rig = *state;

    publish_nat(rig, 4, 0);
    for (uint8_t options = 0; options <= 40; options += 4)
        pass(rig, "IPv4 options", whole(TCP4(.options = options, .flags = ACK)),
             toward_backend(
                 TCP4(.options = options, .flags = ACK, .ttl = 63, .destination = "198.51.100.11"),
                 4));
    pass(rig, "VLAN tag", whole(TCP4(.tags = 1, .flags = ACK)),
         toward_backend(TCP4(.flags = ACK, .ttl = 63, .destination = "198.51.100.11"), 4));
    pass(rig, "padding", pad(whole(TCP4(.flags = ACK)), 70),
         toward_backend(TCP4(.flags = ACK, .ttl = 63, .destination = "198.51.100.11"), 4));
}

static void extensions(void **state)
{
    struct rig *rig = *state;

    publish_nat(rig, 6, 0);
    pass(rig, "extension headers", whole(TCP6(.chain = {0, 60}, .chain_count = 2, .flags = ACK)),
         toward_backend(TCP6(.chain = {0, 60}, .chain_count = 2, .flags = ACK, .ttl = 63,
                             .destination = "2001:db8:0:b::11"),
                        6));
}

/* UDP without a checksum stays without, over IPv4. */
static void no_udp_checksum(void **state)
{
    struct rig *rig = *state;
    struct frame in = poke16(whole(UDP4(.payload = 3)), L4_OF_4 + 6, 0);
    struct frame want =
        toward_backend(UDP4(.payload = 3, .ttl = 63, .destination = "198.51.100.11"), 4);

    publish_nat(rig, 4, 0);
    pass(rig, "no checksum", in, poke16(want, L4_OF_4 + 6, 0));
}

static void what_cannot_pass(void **state)
{
    struct rig *rig = *state;
    struct frame answer =
        whole(TCP4(.source = "198.51.100.11", .source_port = 80, .destination = "203.0.113.9",
                   .destination_port = 40000, .flags = ACK, .payload = 100));

    publish_nat(rig, 4, 0);
    drop(rig, "TTL 1", whole(TCP4(.ttl = 1)), HB_DROP_TTL_EXPIRED);
    drop(rig, "TTL 1 back", fix4(poke8(answer, IP4_TTL, 1)), HB_DROP_TTL_EXPIRED);
    drop(rig, "damaged", poke8(answer, L4_OF_4 + TCP_OFFSET, 0x40), HB_DROP_L4_HEADER);
    drop(rig, "another port of the backend", whole(poke16(answer, L4_OF_4, 81)), HB_DROP_NOT_VIP);
    drop(rig, "somebody else", whole(fix4(poke_address(answer, IP4_SOURCE, "198.51.100.12"))),
         HB_DROP_NOT_VIP);
    rig->to_clients[0].mtu = 139;
    publish(rig);
    drop(rig, "larger than the link", answer, HB_DROP_OVERSIZE);
    rig->to_clients[0].size = 0;
    publish(rig);
    drop(rig, "no way", answer, HB_DROP_NAT_NO_WAY);
    rig->backend[1].inner_max = 600;
    publish(rig);
    drop(rig, "larger than the backend's link", whole(TCP4(.payload = 700)), HB_DROP_OVERSIZE);
}

/* A server whose answer may not be cut learns what fits the link to the clients. */
static void answers_too_big(void **state)
{
    static const uint8_t icmp_source[4] = {198, 51, 100, 10};
    struct rig *rig = *state;
    struct frame answer =
        whole(TCP4(.source = "198.51.100.11", .source_port = 80, .destination = "203.0.113.9",
                   .destination_port = 40000, .flags = ACK, .payload = 100, .fragment = DF));
    struct frame want = icmp_error("198.51.100.10", "198.51.100.11", 3, &answer, 140, 64);

    publish_nat(rig, 4, 0);
    rig->to_clients[0].mtu = 139;
    rig->settings.icmp_rate = 10;
    memcpy(rig->settings.icmp_source4, icmp_source, 4);
    publish(rig);
    memcpy(want.bytes, answer.bytes + 6, 6);
    memcpy(want.bytes + 6, answer.bytes, 6);
    want = poke16(fix4(poke16(poke8(want, IP4_TOS, 0xc0), IP4_FRAGMENT, DF)), L4_OF_4, 3 << 8 | 4);
    pass(rig, "too big", answer, whole(poke16(want, L4_OF_4 + 6, 139)));
    assert_int_equal(counters(rig)->drops[HB_DROP_OVERSIZE], 1);
    assert_int_equal(hb_counters_services(rig->region, 0)[0].too_big, 1);
    drop(rig, "may be cut", whole(fix4(poke16(answer, IP4_FRAGMENT, 0))), HB_DROP_OVERSIZE);
}

/* Answers to the balancer itself are the kernel's: health checks. */
static void own_address(void **state)
{
    struct rig *rig = *state;

    rig->source[0] =
        (struct hb_source_record){.address = {198, 51, 100, 10}, .family = 4, .own = 1};
    rig->own_sources = 1;
    publish_nat(rig, 4, 0);
    drop(rig, "answer to a health check",
         whole(TCP4(.source = "198.51.100.11", .source_port = 80, .destination = "198.51.100.10",
                    .destination_port = 40000, .flags = ACK | SYN)),
         HB_DROP_NOT_VIP);
}

static void answers_in_fragments(void **state)
{
    struct rig *rig = *state;
    struct spec first = {.family = 4,
                         .protocol = 17,
                         .source = "198.51.100.11",
                         .source_port = 443,
                         .destination = "203.0.113.9",
                         .destination_port = 40000,
                         .payload = 24,
                         .fragment = MF,
                         .id = 77};
    struct spec first_back = first, later = first, later_back;
    struct frame want;

    publish_nat(rig, 4, 0);
    first_back.source = "192.0.2.10";
    first_back.ttl = 63;
    want = toward_client(build(&first_back));
    pass(rig, "the first", whole(build(&first)), want);
    later.fragment = 4;
    later_back = later;
    later_back.source = "192.0.2.10";
    later_back.ttl = 63;
    want = build(&later_back);
    memcpy(want.bytes, rig->to_clients[0].bytes, 12);
    pass(rig, "a later one", build(&later), fix4(want));
    drop(rig, "too short for its checksum", fix4(cut_ip4(whole(build(&first)), 24)),
         HB_DROP_FRAGMENT);
    first.source_port = 444;
    drop(rig, "the first one from another port", whole(build(&first)), HB_DROP_NAT_NO_SESSION);
}

/* Two VIPs of which only the port tells: later fragments follow the first one, and wait for it. */
static void answers_in_fragments_for_two_vips(void **state)
{
    struct rig *rig = *state;

    publish_nat(rig, 4, 0);
    add_service(rig, 4, HB_PROTOCOL_UDP, 444, 0);
    rig->service[2].address[3] = 11;
    publish(rig);
    for (uint32_t id = 1; id <= 4; id++) {
        bool last_first = id > 2;
        uint16_t port = id % 2 ? 443 : 444;
        struct spec spec = {.family = 4,
                            .protocol = 17,
                            .source = "198.51.100.11",
                            .source_port = port,
                            .destination = "203.0.113.9",
                            .destination_port = 40000,
                            .payload = 1000};
        struct frame answer = whole(build(&spec)), want, first, later, out;

        spec.source = port == 443 ? "192.0.2.10" : "192.0.2.11";
        spec.ttl = 63;
        want = toward_client(build(&spec));
        first = fragment(&want, id, 0, 480);
        later = fragment(&want, id, 480, 0);
        send_frame(rig, &(struct frame[]){
                            fragment(&answer, id, last_first ? 480 : 0, last_first ? 0 : 480)}[0]);
        turn(rig);
        assert_int_equal(counters(rig)->held_packets, last_first);
        send_frame(rig, &(struct frame[]){
                            fragment(&answer, id, last_first ? 0 : 480, last_first ? 480 : 0)}[0]);
        turn(rig);
        assert_true(receive(rig, PORT, &out));
        assert_frame("the first", &out, &first);
        assert_true(receive(rig, PORT, &out));
        assert_frame("the later one", &out, &later);
    }
    assert_int_equal(count_drops(rig), 0);
    drop(rig, "from a port that no service has",
         fragment(&(struct frame[]){whole(UDP4(.source = "198.51.100.11", .source_port = 445,
                                               .destination = "203.0.113.9",
                                               .destination_port = 40000, .payload = 1000))}[0],
                  9, 0, 480),
         HB_DROP_NAT_NO_SESSION);
}

/* A server's RST or FIN moves the flow's entry on. */
static void a_server_ends_it(void **state)
{
    struct rig *rig = *state;

    publish_nat(rig, 4, 0);
    pass(rig, "SYN", whole(TCP4(.source_port = 40000)),
         toward_backend(TCP4(.source_port = 40000, .ttl = 63, .destination = "198.51.100.11"), 4));
    pass(rig, "ACK", whole(TCP4(.source_port = 40000, .flags = ACK)),
         toward_backend(
             TCP4(.source_port = 40000, .flags = ACK, .ttl = 63, .destination = "198.51.100.11"),
             4));
    assert_int_equal(live_flows(rig, 1), 1);
    advance(rig, 5000);
    assert_int_equal(live_flows(rig, 1), 1);
    pass(rig, "RST",
         whole(TCP4(.source = "198.51.100.11", .source_port = 80, .destination = "203.0.113.9",
                    .destination_port = 40000, .flags = RST)),
         toward_client(TCP4(.source = "192.0.2.10", .source_port = 80, .destination = "203.0.113.9",
                            .destination_port = 40000, .flags = RST, .ttl = 63)));
    advance(rig, 1100);
    assert_int_equal(live_flows(rig, 1), 0);
}

/* Errors: from the backend about a request, and from a router about an answer. */
static void errors(void **state)
{
    struct rig *rig = *state;
    struct frame sent4 = whole(TCP4(.source_port = 40000, .destination = "198.51.100.11",
                                    .destination_port = 8080, .flags = ACK, .payload = 30));
    struct frame seen4 = whole(TCP4(.source_port = 40000, .flags = ACK, .payload = 30));
    struct frame sent6 = whole(UDP6(.source_port = 40000, .destination = "2001:db8:0:b::11",
                                    .destination_port = 8080, .payload = 30));
    struct frame seen6 = whole(UDP6(.source_port = 40000, .payload = 30));

    publish_nat(rig, 4, 8080);
    for (uint32_t quoted = 28; quoted <= 70; quoted += 6) {
        pass(rig, "IPv4 error", icmp_error("198.51.100.11", "203.0.113.9", 3, &sent4, quoted, 64),
             toward_client_as_is(icmp_error("192.0.2.10", "203.0.113.9", 3, &seen4, quoted, 63)));
    }
    assert_int_equal(hb_counters_backends(rig->region, 0)[1].unreachable, 8);
    drop(rig, "about another port", icmp_error("198.51.100.11", "203.0.113.9", 3, &seen4, 28, 64),
         HB_DROP_ICMP_NO_FLOW);
    drop(rig, "cut off", icmp_error("198.51.100.11", "203.0.113.9", 3, &sent4, 22, 64),
         HB_DROP_ICMP_QUOTE);
    /* behind an IP packet too short for an error stands what looks like one */
    drop(
        rig, "an error in the padding",
        fix4(poke16(icmp_error("198.51.100.11", "203.0.113.9", 3, &sent4, 28, 64), IP4_LENGTH, 24)),
        HB_DROP_L4_HEADER);
    drop(rig, "an echo is the kernel's",
         icmp_error("198.51.100.11", "203.0.113.9", 8, &sent4, 28, 64), HB_DROP_NOT_VIP);
    rig->services = 0;
    publish_nat(rig, 6, 8080);
    for (uint32_t quoted = 48; quoted <= 78; quoted += 6)
        pass(rig, "IPv6 error",
             icmp_error("2001:db8:0:b::11", "2001:db8:c::9", 1, &sent6, quoted, 64),
             toward_client_as_is(
                 icmp_error("2001:db8:0:a::10", "2001:db8:c::9", 1, &seen6, quoted, 63)));
    assert_int_equal(hb_counters_backends(rig->region, 0)[1].unreachable, 8 + 6);
}

/* From a router or the client, about an answer: to the backend, as if the client had sent it. */
static void errors_about_answers(void **state)
{
    static const char *const routers[] = {"198.51.100.1", "2001:db8:0:1::1"};
    static const char *const clients[] = {"203.0.113.9", "2001:db8:c::9"};
    static const char *const backends[] = {"198.51.100.11", "2001:db8:0:b::11"};
    static const char *const vips[] = {"192.0.2.10", "2001:db8:0:a::10"};
    struct rig *rig = *state;

    rig->settings.icmp_relay_rate = 1000;
    for (int six = 0; six < 2; six++) {
        uint8_t family = six ? 6 : 4;
        struct spec answer = {.family = family,
                              .protocol = 6,
                              .source = vips[six],
                              .source_port = 80,
                              .destination = clients[six],
                              .destination_port = 40000,
                              .flags = ACK,
                              .payload = 30};
        struct frame seen = whole(build(&answer)), sent;

        answer.source = backends[six];
        answer.source_port = 8080;
        sent = whole(build(&answer));
        rig->services = 0;
        publish_nat(rig, family, 8080);
        for (int router = 0; router < 2; router++) {
            struct frame in = icmp_error(router ? routers[six] : clients[six], vips[six],
                                         six ? 2 : 3, &seen, 70, 64);

            pass(rig, "about an answer", in,
                 toward_backend(icmp_error(clients[six], backends[six], six ? 2 : 3, &sent, 70, 63),
                                family));
        }
    }
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(requests_and_answers), TEST(options_and_extensions),
        TEST(extensions),           TEST(no_udp_checksum),
        TEST(what_cannot_pass),     TEST(own_address),
        TEST(answers_in_fragments), TEST(answers_in_fragments_for_two_vips),
        TEST(a_server_ends_it),     TEST(errors),
        TEST(answers_too_big),      TEST(errors_about_answers),
    };
    int failed = rig_open();

    if (failed != 0)
        return failed;
    failed = cmocka_run_group_tests_name("packets: NAT", tests, NULL, NULL);
    rig_close();
    return failed;
}
