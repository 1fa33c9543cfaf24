/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QUIC datagrams of any content and length through the real pipeline, to a service with one
 * configuration for each way there is to read an id: each packet leaves, exactly once, to a backend
 * of the pool, and nothing behind the packet is read (tight buffers, for the address sanitizer).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz.h"
#include "quic_lb.h"
#include "rig.h"

static struct hb_quic_record quic_record(uint8_t config)
{
    static const uint8_t lengths[7][2] = {{1, 4},  {3, 8},  {8, 8}, {15, 4},
                                          {2, 17}, {1, 18}, {7, 4}};
    struct hb_quic_record record = {.config_id = config,
                                    .server_id_length = lengths[config][0],
                                    .nonce_length = lengths[config][1],
                                    .encrypted = config > 1};

    if (record.encrypted)
        memset(record.key, config, sizeof(record.key));
    return record;
}

static void publish_quic(struct rig *rig)
{

    for (uint16_t id = 1; id <= 15; id++) {
        uint8_t server_id[HB_QUIC_SERVER_ID_MAX] = {0};

        add_backend(rig, id, 0, 4);
        name_server(rig, id, server_id, (uint8_t)id); /* all zero, of each length */
    }
    share_table(rig, 0);
    for (uint8_t family = 4; family <= 6; family += 2) {
        add_service(rig, family, HB_PROTOCOL_UDP, 443, 0);
        rig->quics = 0;
        for (uint8_t config = 0; config < 7; config++) {
            struct hb_quic_record record = quic_record(config);

            add_quic(rig, &record);
        }
    }
    publish(rig);
}

#ifndef HB_LIBFUZZER
static struct frame random_datagram(uint64_t *random)
{
    struct spec spec = {.family = fuzz_below(random, 2) ? 4 : 6,
                        .protocol = 17,
                        .source_port = (uint16_t)(1 + fuzz_below(random, 100)),
                        .payload = (uint32_t)fuzz_below(random, 48)};
    struct frame frame = build(&spec);
    uint8_t *payload = frame.bytes + frame.length - spec.payload;

    for (uint32_t i = 0; i < spec.payload; i++)
        payload[i] = fuzz_below(random, 2) ? (uint8_t)fuzz_random(random) : 0;
    if (spec.payload > 6 && fuzz_below(random, 2)) { /* a long header that makes some sense */
        payload[0] |= 0x80;
        memcpy(payload + 1, (uint8_t[]){0, 0, 0, 1}, 4);
        payload[5] = (uint8_t)fuzz_below(random, 24);
    }
    return frame;
}

static void every_datagram_leaves(void **state)
{
    uint64_t rounds = fuzz_setting("HB_FUZZ_ROUNDS", 200000);
    struct rig *rig = *state;
    const struct hb_worker_counters *counters = hb_counters_worker(rig->region, 0);

    publish_quic(rig);
    rig->tight = true;
    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t random = fuzz_setting("HB_FUZZ_SEED", 1) * rounds + round;
        struct frame frame = random_datagram(&random);

        assert_in_range(backend_of(rig, &frame), 1, 15);
    }
    print_message("%llu rounds: %llu routed by their id, %llu unroutable\n",
                  (unsigned long long)rounds, (unsigned long long)counters->quic_routed,
                  (unsigned long long)counters->quic_unroutable);
    assert_true(rounds < 10000 ||
                (counters->quic_routed > 0 && counters->quic_unroutable > rounds / 50));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_datagram_leaves, rig_setup, rig_teardown),
    };
    int status = rig_open();

    if (status != 0)
        return status;
    status = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return status;
}
#else

/* The input: datagrams, each with a byte for family and source port and one for its length. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct script script = {data, size};
    void *state = NULL;

    if (size > 1024 || rig_setup(&state) != 0)
        return 0;
    publish_quic(state);
    ((struct rig *)state)->tight = true;
    while (script.left > 0) {
        uint8_t how = take8(&script);
        struct spec spec = {.family = how & 1 ? 6 : 4,
                            .protocol = 17,
                            .source_port = (uint16_t)(1 + (how >> 1)),
                            .payload = take8(&script) % 64u};
        struct frame frame = build(&spec);

        for (uint32_t i = frame.length - spec.payload; i < frame.length; i++)
            frame.bytes[i] = take8(&script);
        assert_in_range(backend_of(state, &frame), 1, 15);
    }
    rig_teardown(&state);
    return 0;
}

/* An id of a configuration that names a server of publish_quic, where chance finds one: the
 * servers' ids are zero. */
static uint32_t make_id(uint8_t config, uint8_t id[HB_QUIC_CID_MAX])
{
    struct hb_quic_record record = quic_record(config);
    uint32_t length = 1u + record.server_id_length + record.nonce_length;
    struct hb_quic_config prepared;
    uint64_t random = config;

    hb_quic_config_prepare(&prepared, &record);
    id[0] = (uint8_t)(config << 5 | (length - 1));
    memset(id + 1, 0, length - 1);
    for (uint32_t tries = 0; record.encrypted && tries < 200000; tries++) {
        static const uint8_t zero[HB_QUIC_SERVER_ID_MAX];
        uint8_t server_id[HB_QUIC_SERVER_ID_MAX] = {0};

        for (uint32_t i = 1; i < length; i++)
            id[i] = (uint8_t)fuzz_random(&random);
        if (hb_quic_read_server_id(&prepared, id, length, server_id) &&
            memcmp(server_id, zero, record.server_id_length) == 0)
            break;
    }
    return length;
}

/* A datagram as LLVMFuzzerTestOneInput reads it: a long header with this first byte, or a short
 * one. */
static void put_datagram(struct seed *seed, bool six, uint8_t first, uint32_t version,
                         const uint8_t *id, uint32_t length)
{
    bool is_long = (first & 0x80) != 0;

    put8(seed, six | 14u);
    put8(seed, 1 + (is_long ? 6 : 0) + length + 8);
    put8(seed, first);
    if (is_long) {
        put16(seed, version >> 16);
        put16(seed, version);
        put8(seed, length);
    }
    put_bytes(seed, id, length);
    if (is_long)
        put8(seed, 0); /* of the source's id */
    put_bytes(seed, "payload!", 8);
}

/* Every configuration, by short headers and all types of long ones of both versions. */
void fuzz_seeds(void)
{
    static const uint32_t versions[] = {1, 0x6b3343cf, 0};

    for (uint8_t config = 0; config < 8; config++) {
        uint8_t id[HB_QUIC_CID_MAX];
        uint32_t length = make_id(config % 7, id);

        if (config == HB_QUIC_UNROUTABLE)
            id[0] = 0xe0;
        for (uint8_t kind = 0; kind < 14; kind++) {
            struct seed seed = {.size = 0};

            put_datagram(&seed, kind % 2, kind < 2 ? 0x40 : (uint8_t)(0xc0 | kind % 4 << 4),
                         versions[kind / 5], id, length);
            put_datagram(&seed, kind % 2, 0x40, 0, id, length - kind % 4);
            save_seed(&seed);
        }
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return fuzz_begin(rig_open());
}
#endif
