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

#ifdef HB_LIBFUZZER
/* Parts of scripts, as run_script takes them. */
enum { KIND_FRAGMENT = 0, KIND_ICMP = 3, KIND_LARGE = 6, KIND_ANY = 7, END_OF_BURST = 192 };

/* `who`: family, protocol, port and id, as take_fragment reads them. In units of 8 bytes. */
static void put_fragment(struct seed *seed, uint8_t who, uint8_t start, uint8_t length)
{
    put8(seed, KIND_FRAGMENT | END_OF_BURST);
    put8(seed, who);
    put8(seed, ACK);
    put8(seed, start);
    put8(seed, length);
    put8(seed, 0); /* and the clock goes on */
}

/* One datagram in each order and with each fault, then the same once more. */
static void seed_fragments(uint8_t who)
{
    static const struct {
        uint8_t count, piece[4][2]; /* start and length; length 0: to the end */
    } orders[] = {
        {2, {{0, 12}, {12, 0}}},                 /* in order */
        {2, {{12, 0}, {0, 12}}},                 /* the first one last */
        {3, {{0, 6}, {12, 0}, {6, 6}}},          /* a gap that is filled */
        {4, {{20, 0}, {12, 8}, {6, 6}, {0, 6}}}, /* backwards */
        {3, {{0, 12}, {0, 12}, {12, 0}}},        /* twice */
        {3, {{0, 12}, {6, 8}, {12, 0}}},         /* overlap in part */
        {3, {{0, 12}, {12, 0}, {20, 4}}},        /* behind the end */
        {2, {{0, 1}, {1, 0}}},                   /* a tiny first one */
        {1, {{0, 0}}},                           /* alone */
        {1, {{5, 5}}},                           /* never a first one */
    };

    for (uint32_t i = 0; i < sizeof(orders) / sizeof(*orders); i++) {
        struct seed seed = {.bytes = {0}, .size = 1};

        for (uint32_t turn = 0; turn < 2; turn++)
            for (uint32_t p = 0; p < orders[i].count; p++)
                put_fragment(&seed, who, orders[i].piece[p][0], orders[i].piece[p][1]);
        save_seed(&seed);
    }
}

/* Errors of every type about what a backend, a client or a tunnel has sent, whole and cut. */
static void seed_errors(uint8_t quote, bool six)
{
    static const uint8_t types[2][8] = {{3, 11, 12, 4, 5, 8, 0, 13},
                                        {1, 2, 3, 4, 128, 129, 135, 137}};
    struct seed seed = {.bytes = {0}, .size = 1};

    for (uint8_t i = 0; i < 16; i++) {
        put8(&seed, KIND_ICMP | END_OF_BURST);
        put8(&seed, quote);
        if ((quote & 9) == 9) { /* a chain of headers in the quote */
            put8(&seed, 2);
            put16(&seed, 0x0003);
        }
        put8(&seed, six | 2 | (six ? 0 : 4) | (i & 8 ? 16 : 0) | (quote & 0x80 ? 64 : 0));
        put8(&seed, 0); /* no damage */
        put8(&seed, types[six][i & 7]);
        if (!six)
            put8(&seed, i & 7 ? 0 : 4);
        if ((i & 8) != 0)
            put8(&seed, 27 + i);
        put8(&seed, 0);
    }
    save_seed(&seed);
}

void fuzz_seeds(void)
{
    for (uint8_t who = 0; who < 4; who++)
        seed_fragments(who);
    seed_fragments(64);
    for (uint32_t quote = 0; quote < 256; quote++)
        seed_errors((uint8_t)quote, (quote & 0x80) != 0 ? (quote & 0x40) != 0 : quote & 1);
    for (uint8_t echo = 0; echo < HB_ECHOS; echo++) {
        struct seed seed = {.bytes = {echo}, .size = 1};

        for (uint8_t what = 0; what < 32; what += 8) {
            put8(&seed, KIND_LARGE | what | END_OF_BURST);
            put8(&seed, 0);
        }
        put8(&seed, KIND_ANY | END_OF_BURST);
        save_seed(&seed);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return fuzz_begin(rig_open());
}
#endif

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
