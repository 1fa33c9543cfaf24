/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Damaged packets through the real pipeline: each frame leaves, is punted or is dropped, exactly
 * once, and nothing outside the frame is read. The rig's tight buffers end with the frame, so with
 * the address sanitizer a read behind it is seen; its teardown checks that no mbuf is lost and that
 * the counters add up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz.h"
#include "rig.h"

#ifndef HB_LIBFUZZER
static struct frame random_frame(uint64_t *random)
{
    struct spec spec = {
        .family = fuzz_below(random, 2) ? 4 : 6,
        .protocol = fuzz_below(random, 2) ? 6 : 17,
        .source_port = (uint16_t)(1024 + fuzz_below(random, 64)),
        .flags = (uint8_t)fuzz_random(random),
        .tags = (uint8_t)fuzz_below(random, 3),
        .payload = (uint32_t)fuzz_below(random, fuzz_below(random, 8) ? 64 : 1400),
    };

    if (spec.family == 4 && fuzz_below(random, 4) == 0)
        spec.options = (uint8_t)(4 * fuzz_below(random, 11));
    if (spec.family == 6 && fuzz_below(random, 4) == 0) {
        static const uint8_t headers[] = {0, 43, 44, 51, 60, 135};

        spec.chain_count = (uint8_t)fuzz_below(random, sizeof(spec.chain) + 1);
        for (uint32_t i = 0; i < spec.chain_count; i++)
            spec.chain[i] = headers[fuzz_below(random, sizeof(headers))];
    }
    return build(&spec);
}

/* Mostly the headers: that is where decisions are made. */
static void damage(uint64_t *random, struct frame *frame)
{
    uint32_t headers = frame->length < 100 ? frame->length : 100;

    if (fuzz_below(random, 8) != 0)
        fuzz_damage(random, frame->bytes, headers);
    if (fuzz_below(random, 4) == 0)
        *frame = fix4(*frame);
    switch (fuzz_below(random, 4)) {
    case 0:
        *frame = cut(*frame, (uint32_t)(1 + fuzz_below(random, frame->length)));
        break;
    case 1:
        *frame = pad(*frame, frame->length + (uint32_t)fuzz_below(random, 40));
        break;
    default:
        break;
    }
}

/* Backend 1 gets another mode, sometimes on a link so small that packets are cut. */
static void change_mode(struct rig *rig, uint64_t *random)
{
    static const uint8_t fragments[] = {0, HB_REWRITE_FRAGMENT_INNER, HB_REWRITE_FRAGMENT_OUTER};
    struct wrap wrap = {.forwarding = (uint8_t)(1 + fuzz_below(random, HB_FORWARDING_L3DSR)),
                        .family = fuzz_below(random, 2) ? 4 : 6,
                        .number = 1,
                        .checksum = fuzz_below(random, 2) != 0,
                        .tags = (uint8_t)fuzz_below(random, 2),
                        .dscp = 10};

    wrap.fragment = fragments[fuzz_below(random, wrap.forwarding > HB_FORWARDING_VXLAN ? 2 : 3)];
    use_mode(rig, &wrap);
    if (fuzz_below(random, 2) == 0) {
        rig->backend[1].inner_max = (uint16_t)(68 + fuzz_below(random, 1400));
        publish(rig);
    }
}

static void every_packet_ends_exactly_once(void **state)
{
    uint64_t rounds = fuzz_setting("HB_FUZZ_ROUNDS", 200000);
    struct rig *rig = *state;
    const struct hb_worker_counters *counters = hb_counters_worker(rig->region, 0);

    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t random = fuzz_setting("HB_FUZZ_SEED", 1) * rounds + round;
        struct frame frame = random_frame(&random);
        uint64_t ended;

        if (round % 512 == 0)
            change_mode(rig, &random);
        damage(&random, &frame);
        rig->tight = fuzz_below(&random, 2) == 0;
        ended = counters->tx_packets + counters->punted_packets + count_drops(rig) +
                counters->held_packets - counters->made_packets;
        send_frame(rig, &frame);
        turn(rig);
        for (unsigned port = 0; port < PORTS; port++)
            take_all(rig, port);
        assert_int_equal(counters->tx_packets + counters->punted_packets + count_drops(rig) +
                             counters->held_packets - counters->made_packets,
                         ended + 1);
    }
    print_message("%llu rounds: %llu sent, %llu of them made here, %llu dropped\n",
                  (unsigned long long)rounds, (unsigned long long)counters->tx_packets,
                  (unsigned long long)counters->made_packets, (unsigned long long)count_drops(rig));
    /* Some of all outcomes, else the damage is too great or too small to mean anything. */
    assert_true(rounds < 10000 ||
                (counters->tx_packets > rounds / 50 && count_drops(rig) > rounds / 50));
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

/* Tables of any form: services with prefixes, ranges, affinity, lists and QUIC, pools that share a
 * few backends of each mode, slots with two owners. */
static void take_tables(struct rig *rig, struct script *script)
{
    static const uint8_t fragments[] = {0, HB_REWRITE_FRAGMENT_INNER, HB_REWRITE_FRAGMENT_OUTER};
    uint8_t how = take8(script);
    struct wrap wrap = {.forwarding = (uint8_t)(1 + how % HB_FORWARDING_L3DSR),
                        .family = how & 128 ? 6 : 4,
                        .number = 1,
                        .checksum = (how & 64) != 0,
                        .tags = how >> 5 & 1,
                        .dscp = 10};

    rig->settings = (struct hb_settings){.icmp_rate = 1000,
                                         .icmp_relay_rate = 1000,
                                         .mtu_floor4 = 552,
                                         .mtu_floor6 = 1280,
                                         .echo = take8(script) % HB_ECHOS};
    wrap.fragment = fragments[take8(script) % (wrap.forwarding > HB_FORWARDING_VXLAN ? 2u : 3u)];
    publish_one_backend(rig, 4);
    add_backend(rig, 2, 0, 6);
    share_table(rig, 0);
    for (uint8_t count = take8(script) % 8; count > 0; count--)
        unsettle(rig, 0, take16(script) % RIG_SLOTS, (uint16_t)(1 + take8(script) % 2));
    for (uint8_t count = take8(script) % 8; count > 0; count--) {
        uint8_t what = take8(script);
        struct hb_service_record *service = &rig->service[rig->services];

        add_service(rig, what & 1 ? 6 : 4,
                    what & 2   ? 17
                    : what & 4 ? 132
                               : 6,
                    (uint16_t)(1000 + rig->services), 0);
        if ((what & 8) != 0)
            service->port_last = __builtin_bswap16((uint16_t)(60000 - rig->services));
        service->affinity = what >> 4 & 1 ? HB_AFFINITY_SOURCE : 0;
        service->affinity_prefix = service->affinity != 0 ? take8(script) % 33u : 0;
        service->mss_max = what & 2 ? 0 : (uint16_t)(what & 32 ? 1000 : 0);
        if ((what & 194) == 194)
            add_quic(rig, &(struct hb_quic_record){.config_id = 0,
                                                   .server_id_length = 1 + (what >> 4 & 1),
                                                   .nonce_length = 8,
                                                   .encrypted = what >> 5 & 1});
        if (rig->quics == RIG_QUIC)
            break;
    }
    use_mode(rig, &wrap);
    rig->backend[1].inner_max = (uint16_t)(68 + take16(script) % 1400);
    publish(rig);
}

/* A whole packet with changed bytes, or any bytes. */
static struct frame take_frame(struct script *script)
{
    uint8_t how = take8(script), count;
    struct frame frame = {0};

    if ((how & 1) != 0) {
        struct spec spec = {.family = how & 2 ? 6 : 4,
                            .protocol = how & 4 ? 17 : 6,
                            .source_port = take16(script),
                            .flags = take8(script),
                            .tags = how >> 3 & 1,
                            .payload = how & 16 ? take16(script) % 1500u : take8(script)};

        frame = build(&spec);
        for (count = take8(script) % 16; count > 0; count--)
            frame.bytes[take8(script) % frame.length] = take8(script);
    } else {
        frame.length = 1 + take8(script);
        for (uint32_t i = 0; i < frame.length; i++)
            frame.bytes[i] = take8(script);
    }
    return how & 32 && frame.length >= 34 ? fix4(frame) : frame;
}

/* The input: tables, then frames, each of which must end exactly once. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct script script = {data, size};
    const struct hb_worker_counters *counters;
    void *state = NULL;
    struct rig *rig;
    uint64_t sent = 0;

    if (size > 2048 || rig_setup(&state) != 0)
        return 0;
    rig = state;
    counters = hb_counters_worker(rig->region, 0);
    take_tables(rig, &script);
    while (script.left > 0 && sent < 64) {
        struct frame frame = take_frame(&script);

        rig->tight = sent % 4 != 3;
        send_frame(rig, &frame);
        turn(rig);
        for (unsigned port = 0; port < PORTS; port++)
            take_all(rig, port);
        sent++;
        assert_int_equal(counters->tx_packets + counters->punted_packets + count_drops(rig) +
                             counters->held_packets - counters->made_packets,
                         sent);
    }
    rig_teardown(&state);
    return 0;
}

/* The frames that the rows of the packet tests are made of, one of each kind. */
static uint32_t all_kinds(struct frame *frames)
{
    static const uint8_t others[] = {132, 136, 47, 50, 4, 41, 2};
    struct frame whole4 = UDP4(.payload = 160), whole6 = UDP6(.payload = 160);
    struct frame answer4 = TCP4(.source = "192.0.2.10", .destination = "203.0.113.9",
                                .source_port = 80, .destination_port = 40000);
    struct frame answer6 = TCP6(.source = "2001:db8:0:a::10", .destination = "2001:db8:0:c::9",
                                .source_port = 80, .destination_port = 40000);
    uint32_t count = 0;

    for (uint8_t flags = 1; flags < 32; flags <<= 1) {
        frames[count++] = TCP4(.flags = flags, .payload = 20);
        frames[count++] = TCP6(.flags = flags, .payload = 20);
    }
    for (uint8_t tags = 0; tags < 4; tags++) {
        frames[count++] = UDP4(.tags = tags, .payload = 9, .tos = 0xb9);
        frames[count++] = UDP6(.tags = tags, .payload = 9, .tos = 0xb9);
    }
    frames[count++] = TCP4(.options = 4);
    frames[count++] = TCP4(.options = 40);
    frames[count++] = TCP6(.chain = {0, 43, 60}, .chain_count = 3);
    frames[count++] = TCP6(.chain = {60, 44, 60}, .chain_count = 3);
    frames[count++] = TCP6(.chain = {0, 60, 60, 60, 60, 60, 60, 60, 60}, .chain_count = 9);
    for (uint32_t start = 0; start <= 96; start += 48) {
        frames[count++] = fragment(&whole4, 7, start, start < 96 ? 48 : 0);
        frames[count++] = fragment(&whole6, 7, start, start < 96 ? 48 : 0);
    }
    frames[count++] = ICMP4(.type = 8, .word = 0x10001, .payload = 56);
    frames[count++] = ICMP6(.type = 128, .word = 0x10001, .payload = 56);
    frames[count++] = ICMP4(.type = 3, .code = 4, .word = 1400, .quote = &answer4);
    frames[count++] = ICMP6(.type = 2, .word = 1400, .quote = &answer6);
    frames[count++] = ICMP4(.type = 11, .quote = &answer4, .quoted = 28);
    frames[count++] = ICMP6(.type = 3, .quote = &answer6);
    for (uint32_t i = 0; i < sizeof(others); i++) {
        frames[count++] = IP4(others[i], .payload = 40);
        frames[count++] = IP6(others[i], .payload = 40);
    }
    frames[count++] = fix4(poke8(TCP4(), IP4_TTL, 0));
    frames[count++] = fix4(poke8(TCP4(), IP4_TTL, 1));
    frames[count++] = poke16(TCP4(), IP4_CHECKSUM, 1);
    frames[count++] = poke8(TCP4(), 0, 0xff);
    frames[count++] = TCP4(.source = "127.0.0.1");
    frames[count++] = TCP4(.destination = "198.51.100.10");
    frames[count++] = TCP4(.destination_port = 81);
    frames[count++] = pad(TCP4(), 60);
    frames[count++] = cut(TCP4(), 33);
    frames[count++] = build_arp();
    return count;
}
#define KINDS_MAX 128

static void put_frame(struct seed *seed, const struct frame *frame)
{
    put8(seed, 0);
    put8(seed, frame->length - 1);
    put_bytes(seed, frame->bytes, frame->length);
}

/* As take_tables reads them: a mode, over a family, with these services besides the usual ones. */
static void begin_seed(struct seed *seed, uint32_t mode, const uint8_t *services, uint32_t count)
{
    *seed = (struct seed){.size = 0};
    put8(seed, mode % 16); /* families and checksums: the frames go through all modes */
    put8(seed, mode % HB_ECHOS);
    put8(seed, mode % 3);
    put8(seed, 2); /* unsettled slots */
    for (uint32_t i = 0; i < 2; i++) {
        put16(seed, mode * 100 + i);
        put8(seed, i);
    }
    put8(seed, count);
    for (uint32_t i = 0; i < count; i++) {
        put8(seed, services[i]);
        if ((services[i] & 16) != 0)
            put8(seed, 24); /* prefix of its affinity */
    }
    put16(seed, 1400 - 68); /* what the link takes */
}

/* Each kind of frame alone, in one mode after the other; all modes with some of each; services of
 * all kinds with what is for them. */
void fuzz_seeds(void)
{
    static struct frame frames[KINDS_MAX];
    uint32_t count = all_kinds(frames);
    struct seed seed;

    for (uint32_t i = 0; i < count; i++) {
        begin_seed(&seed, i, NULL, 0);
        put_frame(&seed, &frames[i]);
        put_frame(&seed, &frames[i]);
        save_seed(&seed);
    }
    for (uint32_t mode = 0; mode < 256; mode += 1 + mode / 16 * 8) {
        begin_seed(&seed, mode, NULL, 0);
        seed.bytes[0] = (uint8_t)mode;
        for (uint32_t i = mode % 5; i < count && seed.size + frames[i].length < SEED_MAX; i += 5)
            put_frame(&seed, &frames[i]);
        save_seed(&seed);
    }
    for (uint32_t what = 0; what < 256; what++) {
        begin_seed(&seed, what, (uint8_t[]){(uint8_t)what, (uint8_t)(what ^ 64)}, 2);
        for (uint32_t i = 0; i < 2; i++) {
            struct frame frame = {0};
            struct spec spec = {.family = what & 1 ? 6 : 4,
                                .protocol = what & 2   ? 17
                                            : what & 4 ? 132
                                                       : 6,
                                .destination_port = (uint16_t)(what & 8 ? 2000 : 1004 + i),
                                .payload = 40};

            frame = build(&spec);
            if ((what & 2) != 0) /* the short header of a QUIC packet */
                frame.bytes[frame.length - 40] = 0x40;
            put_frame(&seed, &frame);
        }
        save_seed(&seed);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return fuzz_begin(rig_open());
}
#endif
