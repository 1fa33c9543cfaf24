/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Damaged requests, answers and ICMP errors through NAT and full NAT: each ends exactly once,
 * nothing outside the frame is read or written, and a packet that was sound and leaves is sound.
 * PROXY headers and TCP options are put in where the backend asks for them. The rig's tight buffers
 * end with the frame and its teardown checks the accounts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "fuzz.h"
#include "nat_frames.h"
#include "rig.h"

/* Backends 1 (NAT) and 2 (full NAT), pools 0 and 1, one family at a time. */
static void publish_nat(struct rig *rig, uint8_t family, uint8_t flags)
{
    for (uint16_t id = 1; id <= 2; id++) {
        add_backend(rig, id, id - 1u, family);
        translate_backend(rig, id, id == 1 ? HB_FORWARDING_NAT : HB_FORWARDING_FULL_NAT);
        share_table(rig, id - 1u);
    }
    rig->backend[2].flags = flags;
    rig->services = 0;
    add_service(rig, family, HB_PROTOCOL_TCP, 80, 0);
    add_service(rig, family, HB_PROTOCOL_UDP, 443, 0);
    add_service(rig, family, HB_PROTOCOL_TCP, 81, 1);
    add_service(rig, family, HB_PROTOCOL_UDP, 444, 1);
    rig->sources = 1;
    rig->source[0] =
        (struct hb_source_record){.family = family, .port_first = 2000, .port_last = 2063};
    inet_pton(family == 6 ? AF_INET6 : AF_INET, family == 6 ? "2001:db8:0:f::64" : "198.51.100.64",
              rig->source[0].address);
    publish(rig);
}

#ifndef HB_LIBFUZZER
static struct frame random_frame(uint64_t *random, uint8_t family)
{
    bool six = family == 6, full = fuzz_below(random, 2), answer = fuzz_below(random, 2);
    struct spec spec = {
        .family = family,
        .protocol = fuzz_below(random, 2) ? 6 : 17,
        .source_port = (uint16_t)(1024 + fuzz_below(random, 8)),
        .flags = fuzz_below(random, 2) ? (uint8_t)fuzz_random(random)
                                       : (uint8_t)(fuzz_below(random, 2) ? SYN : ACK),
        .tags = (uint8_t)fuzz_below(random, 3),
        .payload = (uint32_t)fuzz_below(random, fuzz_below(random, 8) ? 80 : 1440),
    };

    spec.destination_port = (uint16_t)((spec.protocol == 6 ? 80 : 443) + full);
    if (family == 4 && fuzz_below(random, 4) == 0)
        spec.options = (uint8_t)(4 * fuzz_below(random, 11));
    if (answer) {
        uint16_t port = spec.destination_port;

        spec.source = six ? (full ? "2001:db8:0:b::12" : "2001:db8:0:b::11")
                          : (full ? "198.51.100.12" : "198.51.100.11");
        spec.destination = full ? (six ? "2001:db8:0:f::64" : "198.51.100.64") : NULL;
        if (!full)
            spec.destination = six ? "2001:db8:0:c::9" : "203.0.113.9";
        spec.destination_port = full ? (uint16_t)(2000 + fuzz_below(random, 64)) : spec.source_port;
        spec.source_port = port;
    }
    return build(&spec);
}

/* Some as they are, some with random TCP options, some quoted by an error. */
static struct frame make_frame(uint64_t *random, uint8_t family)
{
    struct frame frame = random_frame(random, family), about;
    const bool six = family == 6;

    if (fuzz_below(random, 4) != 0)
        return whole(frame);
    about = whole(random_frame(random, family));
    if (about.l3 != L3)
        return whole(frame);
    return icmp_error(six ? "2001:db8:0:b::11" : "198.51.100.11",
                      fuzz_below(random, 2) ? (six ? "2001:db8:0:c::9" : "203.0.113.9")
                                            : (six ? "2001:db8:0:f::64" : "198.51.100.64"),
                      six ? 1 : 3, &about,
                      (uint32_t)fuzz_below(random, about.ip_length < 160 ? about.ip_length : 160),
                      64);
}

/* A part of the frame, from a multiple of eight bytes on; often one of few datagrams. */
static struct frame cut_out(uint64_t *random, struct frame frame, uint8_t family)
{
    uint32_t all = frame.ip_length - (family == 6 ? 40 : 20);
    uint32_t start = (uint32_t)fuzz_below(random, 2) * 8 * (uint32_t)fuzz_below(random, all / 8);
    uint32_t length = (uint32_t)fuzz_below(random, all / 8) * 8;

    return fragment(&frame, (uint32_t)fuzz_below(random, 4), start,
                    start + length < all ? length : 0);
}

static bool may_be_cut(const struct frame *frame, uint8_t family)
{
    return frame->l3 == L3 && frame->ip_length >= 48 && (family == 6 || frame->bytes[L3] == 0x45);
}

static void every_packet_ends_exactly_once(void **state)
{
    static const uint8_t flags[] = {0, HB_REWRITE_PROXY_V2, HB_REWRITE_TCP_OPTION,
                                    HB_REWRITE_TCP_OPTION_28};
    uint64_t rounds = fuzz_setting("HB_FUZZ_ROUNDS", 200000), untouched = 0;
    struct rig *rig = *state;
    const struct hb_worker_counters *counters = hb_counters_worker(rig->region, 0);

    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t random = fuzz_setting("HB_FUZZ_SEED", 1) * rounds + round;
        uint8_t family = round / 4096 % 2 ? 6 : 4;
        struct frame frame = make_frame(&random, family), out;
        bool damaged = fuzz_below(&random, 2) == 0;
        bool whole_one = fuzz_below(&random, 4) != 0 || !may_be_cut(&frame, family);
        uint64_t ended;

        if (!whole_one)
            frame = cut_out(&random, frame, family);
        if (round % 4096 == 0)
            publish_nat(rig, family, flags[round / 8192 % 4]);
        if (damaged)
            fuzz_damage(&random, frame.bytes, frame.length < 120 ? frame.length : 120);
        if (damaged && fuzz_below(&random, 4) == 0)
            frame = cut(frame, (uint32_t)(1 + fuzz_below(&random, frame.length)));
        rig->tight = fuzz_below(&random, 2) == 0;
        rig->now_ms += (uint32_t)fuzz_below(&random, 200);
        ended = counters->tx_packets + counters->punted_packets + count_drops(rig) +
                counters->held_packets;
        send_frame(rig, &frame);
        turn(rig);
        if (receive(rig, PORT, &out) && !damaged && whole_one && is_sound(&frame)) {
            untouched++;
            assert_true(is_sound(&out));
        }
        for (unsigned port = 0; port < PORTS; port++)
            take_all(rig, port);
        assert_int_equal(counters->tx_packets + counters->punted_packets + count_drops(rig) +
                             counters->held_packets,
                         ended + 1);
    }
    print_message("%llu rounds: %llu sent, %llu of them whole, %llu dropped, %llu fragments\n",
                  (unsigned long long)rounds, (unsigned long long)counters->tx_packets,
                  (unsigned long long)untouched, (unsigned long long)count_drops(rig),
                  (unsigned long long)counters->fragments);
    assert_true(rounds < 10000 || (untouched > rounds / 50 && count_drops(rig) > rounds / 50 &&
                                   counters->fragments > rounds / 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_packet_ends_exactly_once, rig_setup, rig_teardown),
    };
    int status = rig_open();

    if (status != 0)
        return status;
    status = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return status;
}
#else

enum {
    FULL = 1,
    ANSWER = 2,
    UDP = 4,
    QUOTED = 8,
    CUT = 16,
    DAMAGED = 32,
    OPTIONS = 64,
    LATER = 128
};

/* A request or an answer, which may be a fragment or be quoted by an error, and damage. */
static struct frame take_frame(struct script *script, uint8_t family, uint8_t how)
{
    bool six = family == 6, full = (how & FULL) != 0, answer = (how & ANSWER) != 0;
    const char *client = six ? "2001:db8:0:c::9" : "203.0.113.9";
    const char *source = six ? "2001:db8:0:f::64" : "198.51.100.64";
    const char *backends[] = {six ? "2001:db8:0:b::11" : "198.51.100.11",
                              six ? "2001:db8:0:b::12" : "198.51.100.12"};
    uint16_t service = (uint16_t)((how & UDP ? 443 : 80) + full), other = take8(script) & 63;
    uint8_t flags = take8(script), quarter = take8(script);
    struct spec spec = {.family = family,
                        .protocol = how & UDP ? 17 : 6,
                        .source_port = answer ? service : 1024 + other,
                        .destination_port = answer ? 1024 + other : service,
                        .flags = flags,
                        .payload = quarter * 4u,
                        .options = !six && how & OPTIONS ? 12 : 0};
    struct frame frame, whole_one;

    if (answer) {
        spec.source = backends[full];
        spec.destination = full ? source : client;
        spec.destination_port = (uint16_t)((full ? 2000 : 1024) + other);
    }
    frame = whole(build(&spec));
    if ((how & CUT) != 0 && spec.options == 0) {
        uint32_t all = frame.ip_length - (six ? 40 : 20), start = take8(script) % 32u * 8;
        uint32_t length = take8(script) % 32u * 8;

        whole_one = frame;
        start = start < all ? start : 0;
        frame = fragment(&whole_one, 7, start, start + length < all ? length : 0);
    }
    if ((how & QUOTED) != 0)
        frame = icmp_error(backends[full], full ? source : client, six ? 1 : 3, &frame,
                           take8(script) % frame.ip_length, 64);
    if ((how & DAMAGED) != 0)
        for (uint8_t count = take8(script) % 8; count > 0; count--)
            frame.bytes[take8(script) % frame.length] = take8(script);
    return frame;
}

static const uint8_t told[] = {0, HB_REWRITE_PROXY_V2, HB_REWRITE_TCP_OPTION,
                               HB_REWRITE_TCP_OPTION_28};

/* The input: family and how backends are told of the client, then frames. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct script script = {data, size};
    const struct hb_worker_counters *counters;
    uint8_t how = take8(&script), family = how & 1 ? 6 : 4;
    void *state = NULL;
    struct rig *rig;
    uint64_t sent = 0;

    if (size > 1024 || rig_setup(&state) != 0)
        return 0;
    rig = state;
    counters = hb_counters_worker(rig->region, 0);
    publish_nat(rig, family, told[how >> 1 & 3]);
    while (script.left > 0 && sent < 64) {
        uint8_t what = take8(&script);
        struct frame frame = take_frame(&script, family, what), out;

        rig->tight = sent % 4 != 3;
        rig->now_ms += what & LATER ? 200 : 0;
        send_frame(rig, &frame);
        turn(rig);
        sent++;
        if (receive(rig, PORT, &out) && (what & (DAMAGED | CUT)) == 0 && is_sound(&frame))
            assert_true(is_sound(&out));
        for (unsigned port = 0; port < PORTS; port++)
            take_all(rig, port);
        assert_int_equal(counters->tx_packets + counters->punted_packets + count_drops(rig) +
                             counters->held_packets - counters->made_packets,
                         sent);
    }
    rig_teardown(&state);
    return 0;
}

static void put_packet(struct seed *seed, uint8_t how, uint8_t port, uint8_t flags, uint8_t payload)
{
    put8(seed, how);
    put8(seed, port);
    put8(seed, flags);
    put8(seed, payload);
    if ((how & CUT) != 0)
        put16(seed, payload % 2 != 0 ? 0x1000 : 0x0010); /* start and length */
    if ((how & QUOTED) != 0)
        put8(seed, 64);
    if ((how & DAMAGED) != 0)
        put8(seed, 0);
}

/* The source port that full NAT gives the flow of the first packet below, from the first one on. */
static uint8_t port_of(uint8_t input, uint8_t kind)
{
    uint8_t family = input & 1 ? 6 : 4, bytes[] = {5, SYN, 0};
    struct script script = {bytes, sizeof(bytes)};
    uint32_t l4 = family == 6 ? L4_OF_6 : L4_OF_4;
    struct frame frame, out = {0};
    void *state = NULL;

    if ((kind & FULL) == 0 || rig_setup(&state) != 0)
        return 5;
    publish_nat(state, family, told[input >> 1 & 3]);
    frame = take_frame(&script, family, kind);
    send_frame(state, &frame);
    turn(state);
    receive(state, PORT, &out);
    rig_teardown(&state);
    return (uint8_t)(out.bytes[l4] << 8 | out.bytes[l4 + 1]) - (uint8_t)2000;
}

/* Conversations: requests and answers of both kinds of NAT and both protocols, in each way to tell
 * backends of the client, whole and in fragments, with an error about each direction, to the end.
 */
void fuzz_seeds(void)
{
    for (uint32_t i = 0; i < 8 * 8 * 2; i++) {
        uint8_t kind = i % 8 & (FULL | UDP), cut = i % 8 & ANSWER ? CUT : 0, input = i / 8 % 8;
        uint8_t port = port_of(input, kind);
        struct seed seed = {.bytes = {input}, .size = 1};

        put_packet(&seed, kind, 5, SYN, 0);
        put_packet(&seed, kind | ANSWER, port, SYN | ACK, 0);
        put_packet(&seed, kind, 5, ACK, 0);
        put_packet(&seed, kind | cut, 5, ACK | PSH, 100);
        put_packet(&seed, kind | cut, 5, ACK | PSH, 101);
        put_packet(&seed, kind | ANSWER | cut, port, ACK, 50);
        put_packet(&seed, kind | ANSWER | cut, port, ACK, 51);
        put_packet(&seed, kind | QUOTED, 5, ACK, 4);
        put_packet(&seed, kind | ANSWER | QUOTED, port, ACK, 4);
        put_packet(&seed, kind | LATER | OPTIONS, 5, i / 64 ? RST : FIN | ACK, 0);
        put_packet(&seed, kind | ANSWER, port, i / 64 ? RST : FIN | ACK, 0);
        save_seed(&seed);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return fuzz_begin(rig_open());
}
#endif
