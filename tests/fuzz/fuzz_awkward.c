/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICMP messages with damaged quotes, and fragments of every kind, through the real pipeline. An
 * input is a script: bytes that say which packet comes next and what is wrong with it. After each
 * script every packet has ended exactly once or is held, no buffer is lost (rig_teardown), and
 * nothing outside of a frame was read (the rig's tight buffers, with the address sanitizer).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz.h"
#include "rig.h"

#define VIP4     "192.0.2.10"
#define VIP6     "2001:db8:0:a::10"
#define IN_BURST 16

static uint64_t totals[4]; /* scripts, packets, sent, dropped */

/* What a backend sent, or a client, or a tunnel packet. */
static struct frame take_quote(struct script *script)
{
    struct spec spec = {.family = 4, .protocol = 6, .source_port = 80, .payload = 40};
    uint8_t how = take8(script);
    struct frame frame;

    spec.family = how & 1 ? 6 : 4;
    spec.protocol = how & 2 ? 17 : 6;
    spec.source = how & 4 ? NULL : spec.family == 6 ? VIP6 : VIP4;
    spec.destination = how & 4 ? NULL : spec.family == 6 ? "2001:db8:0:c::9" : "203.0.113.9";
    spec.options = spec.family == 4 ? how >> 4 & 12 : 0;
    if (spec.family == 6 && (how & 8) != 0) {
        spec.chain_count = take8(script) % 10;
        for (uint8_t i = 0; i < spec.chain_count; i++)
            spec.chain[i] = (uint8_t[]){0, 43, 44, 60}[take8(script) & 3];
    }
    frame = build(&spec);
    return (how & 0x80) != 0 ? tunnel(&frame, how & 0x40 ? 6 : 4, 1, 7, 7) : frame;
}

/* Bytes behind the first `from` are changed as the script says. */
static void damage(struct script *script, struct frame *frame, uint32_t from)
{
    for (uint8_t count = take8(script) & 7; count > 4; count--) {
        uint32_t at = from + take8(script);

        if (at < frame->length)
            frame->bytes[at] = take8(script);
    }
}

static struct frame take_icmp(struct script *script)
{
    struct frame quote = take_quote(script), frame;
    struct icmp icmp = {.quote = &quote};
    uint8_t how = take8(script);

    damage(script, &quote, quote.l3);
    icmp.family = how & 1 ? 6 : 4;
    icmp.type = how & 2 ? take8(script) : icmp.family == 6 ? 2 : 3;
    icmp.code = icmp.family == 6 ? 0 : how & 4 ? take8(script) : 4;
    icmp.word = how & 8 ? take16(script) : 1400;
    icmp.quoted = how & 16 ? 1u + take8(script) % quote.ip_length : 0;
    icmp.tags = how >> 5 & 1;
    if ((how & 64) != 0) /* about a tunnel */
        icmp.destination = icmp.family == 6 ? "2001:db8:0:1::10" : "198.51.100.10";
    frame = build_icmp(&icmp);
    if ((how & 128) != 0)
        damage(script, &frame, frame.l3);
    return frame;
}

static struct frame take_fragment(struct script *script)
{
    uint8_t how = take8(script);
    struct spec spec = {.family = how & 1 ? 6 : 4,
                        .protocol = how & 2 ? 6 : 17,
                        .source_port = (uint16_t)(1000 + (how >> 2 & 3)),
                        .flags = take8(script),
                        .payload = 200};
    struct frame whole = build(&spec), frame;
    uint32_t all = whole.ip_length - (spec.family == 6 ? 40 : 20);
    uint32_t start = take8(script) % 26u * 8, length = take8(script) % 16u * 8;

    if (start >= all)
        start = 0;
    if (start + length >= all)
        length = 0;
    frame = fragment(&whole, how >> 4 & 3, start, length);
    if ((how & 128) != 0)
        damage(script, &frame, L3);
    if ((how & 64) != 0 && spec.family == 4)
        frame = fix4(frame);
    return frame;
}

static struct frame take_frame(struct script *script, uint8_t what)
{
    struct frame frame = {0};

    switch (what & 7) {
    case 0:
    case 1:
    case 2:
        return take_fragment(script);
    case 3:
    case 4:
    case 5:
        return take_icmp(script);
    case 6: /* too big, with and without DF */
        return what & 8 ? TCP6(.flags = ACK, .payload = 1441)
                        : TCP4(.flags = ACK, .fragment = what & 16 ? DF : 0, .payload = 1460);
    default: /* anything behind a VIP's header */
        frame = what & 8 ? TCP6(.payload = 60) : TCP4(.payload = 60);
        for (uint32_t at = frame.l3 + 4; at < frame.length && script->left > 0; at++)
            frame.bytes[at] ^= take8(script);
        return what & 16 ? fix4(frame) : frame;
    }
}

static uint64_t ended(const struct rig *rig)
{
    const struct hb_worker_counters *counters = hb_counters_worker(rig->region, 0);

    return counters->tx_packets + counters->punted_packets + count_drops(rig) +
           counters->held_packets - counters->made_packets;
}

static void run_script(struct rig *rig, struct script script)
{
    uint64_t sent = 0;

    rig->settings = (struct hb_settings){.icmp_rate = 1000,
                                         .icmp_relay_rate = 100000,
                                         .mtu_floor4 = 552,
                                         .mtu_floor6 = 1280,
                                         .echo = take8(&script) % HB_ECHOS};
    publish_one_backend(rig, 4);
    while (script.left > 0) {
        for (uint32_t i = 0; i < IN_BURST && script.left > 0; i++) {
            uint8_t what = take8(&script);
            struct frame frame = take_frame(&script, what);

            rig->tight = (what & 32) == 0;
            send_frame(rig, &frame);
            sent++;
            if ((what & 192) == 192)
                break;
        }
        turn(rig);
        for (unsigned port = 0; port < PORTS; port++)
            take_all(rig, port);
        assert_int_equal(ended(rig), sent);
        rig->now_ms += take8(&script) & 1 ? 0 : 100;
    }
    totals[0]++;
    totals[1] += sent;
    totals[2] += hb_counters_worker(rig->region, 0)->tx_packets;
    totals[3] += count_drops(rig);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    void *state = NULL;

    if (size > 1024)
        return 0;
    if (rig_setup(&state) != 0)
        return 0;
    run_script(state, (struct script){data, size});
    rig_teardown(&state);
    return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return rig_open();
}

#ifndef HB_LIBFUZZER
static void random_scripts(void **state)
{
    uint64_t rounds = fuzz_setting("HB_FUZZ_ROUNDS", 200000) / 10; /* of some packets each */

    (void)state;
    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t random = fuzz_setting("HB_FUZZ_SEED", 1) * rounds + round;
        uint8_t bytes[256];
        size_t size = 1 + fuzz_below(&random, sizeof(bytes));

        for (size_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)fuzz_random(&random);
        LLVMFuzzerTestOneInput(bytes, size);
    }
    print_message("%llu scripts, %llu packets: %llu sent, %llu dropped\n",
                  (unsigned long long)totals[0], (unsigned long long)totals[1],
                  (unsigned long long)totals[2], (unsigned long long)totals[3]);
    /* Some of all outcomes, else the scripts mean nothing. */
    assert_true(rounds < 1000 || (totals[2] > totals[1] / 50 && totals[3] > totals[1] / 50));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_scripts)};
    int status = rig_open();

    if (status != 0)
        return status;
    status = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return status;
}
#endif
