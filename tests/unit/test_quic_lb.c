/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection ids of QUIC-LB: the test vectors of draft-ietf-quic-load-balancers-21 (appendix "Load
 * Balancer Test Vectors", and the worked example of its section on four-pass encryption), then ids
 * of every length that a server of its own making puts together here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "quic_lb.h"
#include "quic_servers.h"

static uint32_t read_hex(const char *text, uint8_t *bytes)
{
    uint32_t count = 0;

    for (; text[2 * count] != '\0'; count++) {
        unsigned value;

        assert_int_equal(sscanf(text + 2 * count, "%2x", &value), 1);
        bytes[count] = (uint8_t)value;
    }
    return count;
}

static struct hb_quic_config make_config(uint8_t server_id, uint8_t nonce, const char *key)
{
    struct hb_quic_record record = {.server_id_length = server_id, .nonce_length = nonce};
    struct hb_quic_config config;

    record.encrypted = key != NULL;
    if (key != NULL)
        read_hex(key, record.key);
    hb_quic_config_prepare(&config, &record);
    return config;
}

static const struct vector {
    uint8_t config_id;
    const char *key, *server_id, *nonce, *id;
} vectors[] = {
    {0, NULL, "c4605e", "4504cc4f", "07c4605e4504cc4f"},
    /* The draft prints this one with the zero of "03" in front of "a" of the first byte instead. */
    {1, NULL, "350d28b420", "03487d970b", "2a350d28b42003487d970b"},
    {0, "8f95f09245765f80256934e50c66207f", "ed793a", "ee080dbf", "0720b1d07b359d3c"},
    {1, "8f95f09245765f80256934e50c66207f", "ed793a51d49b8f5fab65", "ee080dbf48",
     "2fcc381bc74cb4fbad2823a3d1f8fed2"},
    {2, "8f95f09245765f80256934e50c66207f", "ed793a51d49b8f5f", "ee080dbf48c0d1e5",
     "504dd2d05a7b0de9b2b9907afb5ecf8cc3"},
    {3, "8f95f09245765f80256934e50c66207f", "ed793a51d49b8f5fab", "ee080dbf48c0d1e55d",
     "125779c9cc86beb3a3a4a3ca96fce4bfe0cdbc"},
    {0, "fdf726a9893ec05c0632d3956680baf0", "31441a", "9c69c275", "0767947d29be054a"},
};

static void vectors_of_the_draft(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        const struct vector *vector = &vectors[i];
        uint8_t want[32] = {0}, got[HB_QUIC_SERVER_ID_MAX], id[32];
        uint32_t server_id = read_hex(vector->server_id, want);
        uint32_t nonce = (uint32_t)strlen(vector->nonce) / 2, length = read_hex(vector->id, id);
        struct hb_quic_config config = make_config((uint8_t)server_id, (uint8_t)nonce, vector->key);

        assert_int_equal(length, 1 + server_id + nonce);
        assert_true(hb_quic_read_server_id(&config, id, length, got));
        assert_memory_equal(got, want, sizeof(got));
        assert_false(hb_quic_read_server_id(&config, id, length - 1, got));
    }
    /* The config ids of the encrypted ones that say theirs in the first three bits. */
    assert_int_equal(hb_quic_config_id((const uint8_t[]){0x07}), 0);
    assert_int_equal(hb_quic_config_id((const uint8_t[]){0x2f}), 1);
    assert_int_equal(hb_quic_config_id((const uint8_t[]){0x50}), 2);
    assert_int_equal(hb_quic_config_id((const uint8_t[]){0xff}), HB_QUIC_UNROUTABLE);
}

/* What a server does, written from the draft's description of encryption, bit by bit where the code
 * under test goes by bytes. */
struct bits {
    uint8_t bit[160];
    uint32_t count;
};

static void xor_round(const struct aes128_ctx *key, uint32_t length, uint8_t number,
                      const struct bits *from, struct bits *to, bool from_left)
{
    uint8_t in[16] = {0}, out[16];
    uint32_t half = (length + 1) / 2, skip = length % 2 != 0 && !from_left ? 4 : 0;

    for (uint32_t i = 0; i < from->count; i++)
        in[(i + skip) / 8] |= (uint8_t)(from->bit[i] << (7 - (i + skip) % 8));
    in[14] = (uint8_t)length;
    in[15] = number;
    aes128_encrypt(key, 16, out, in);
    skip = length % 2 != 0 && from_left ? 4 : 0; /* the right half begins within its first byte */
    for (uint32_t i = 0; i < to->count; i++) {
        assert_true((i + skip) / 8 < half);
        to->bit[i] ^= out[(i + skip) / 8] >> (7 - (i + skip) % 8) & 1;
    }
}

static void encrypt(const uint8_t key_bytes[16], const uint8_t *plain, uint32_t length,
                    uint8_t *out)
{
    struct bits left = {.count = length * 4}, right = {.count = length * 4};
    struct aes128_ctx key;

    aes128_set_encrypt_key(&key, key_bytes);
    if (length == 16) {
        aes128_encrypt(&key, 16, out, plain);
        return;
    }
    for (uint32_t i = 0; i < length * 8; i++) {
        struct bits *half = i < left.count ? &left : &right;

        half->bit[i % left.count] = plain[i / 8] >> (7 - i % 8) & 1;
    }
    xor_round(&key, length, 1, &left, &right, true);
    xor_round(&key, length, 2, &right, &left, false);
    xor_round(&key, length, 3, &left, &right, true);
    xor_round(&key, length, 4, &right, &left, false);
    memset(out, 0, length);
    for (uint32_t i = 0; i < length * 8; i++)
        out[i / 8] |=
            (uint8_t)((i < left.count ? left.bit[i] : right.bit[i - left.count]) << (7 - i % 8));
}

static void ids_of_every_length(void **state)
{
    uint32_t random = 7;

    (void)state;
    for (uint8_t server_id = 1; server_id <= 15; server_id++) {
        for (uint8_t nonce = 4; server_id + nonce <= 19; nonce++) {
            struct hb_quic_record record = {
                .server_id_length = server_id, .nonce_length = nonce, .encrypted = 1};
            uint8_t plain[19], want[HB_QUIC_SERVER_ID_MAX] = {0}, got[HB_QUIC_SERVER_ID_MAX];
            struct hb_quic_config config;
            uint8_t *id = malloc(1u + server_id + nonce); /* exactly, for sanitizers */

            for (uint32_t i = 0; i < 16 + 19; i++) {
                random = random * 1664525 + 1013904223;
                if (i < 16)
                    record.key[i] = (uint8_t)(random >> 24);
                else
                    plain[i - 16] = (uint8_t)(random >> 24);
            }
            memcpy(want, plain, server_id);
            id[0] = 0x3f;
            encrypt(record.key, plain, (uint32_t)server_id + nonce, id + 1);
            hb_quic_config_prepare(&config, &record);
            assert_true(hb_quic_read_server_id(&config, id, 1u + server_id + nonce, got));
            assert_memory_equal(got, want, sizeof(want));
            free(id);
        }
    }
}

static enum hb_quic_packet find(const char *hex, uint32_t *length, uint8_t *first)
{
    uint8_t bytes[64], *exact;
    const uint8_t *id = NULL;
    uint32_t count = read_hex(hex, bytes);
    enum hb_quic_packet kind;

    exact = malloc(count + 1);
    memcpy(exact + 1, bytes, count); /* ends with the buffer */
    *length = 0;
    kind = hb_quic_find_id(exact + 1, count, &id, length);
    *first = id != NULL && *length > 0 ? id[0] : 0;
    free(exact);
    return kind;
}

/* BL-57 (c, d), BL-38: whose id it is, and that nothing is read which is not there. */
static void whose_id_it_is(void **state)
{
    static const struct {
        const char *payload;
        enum hb_quic_packet kind;
        uint32_t length;
        uint8_t first;
    } rows[] = {
        {"", HB_QUIC_ID_NONE, 0, 0},
        {"40", HB_QUIC_ID_NONE, 0, 0},
        {"4007", HB_QUIC_ID_OF_SERVER, 1, 7},
        {"0007aabb", HB_QUIC_ID_OF_SERVER, 3, 7},     /* fixed bit cleared: RFC 9287 */
        {"c000000001", HB_QUIC_ID_NONE, 0, 0},        /* cut before the length */
        {"c00000000100", HB_QUIC_ID_OF_CLIENT, 0, 0}, /* Initial without an id */
        {"c0000000010807aabbccddeeff00", HB_QUIC_ID_OF_CLIENT, 8, 7}, /* Initial */
        {"d0000000010807aabbccddeeff00", HB_QUIC_ID_OF_CLIENT, 8, 7}, /* 0-RTT */
        {"e0000000010807aabbccddeeff00", HB_QUIC_ID_OF_SERVER, 8, 7}, /* Handshake */
        {"e000000001080711223344556677889900", HB_QUIC_ID_OF_SERVER, 8, 7},
        {"e0000000010807aabbccddeeff", HB_QUIC_ID_NONE, 0, 0}, /* one byte short */
        {"e00000000100", HB_QUIC_ID_OF_CLIENT, 0, 0},          /* Handshake to no id */
        {"f0000000010807aabbccddeeff00", HB_QUIC_ID_OF_CLIENT, 8,
         7}, /* Retry: no client sends it */
        {"e06b3343cf0807aabbccddeeff00", HB_QUIC_ID_OF_CLIENT, 8, 7}, /* version 2: 0-RTT */
        {"f06b3343cf0807aabbccddeeff00", HB_QUIC_ID_OF_SERVER, 8, 7}, /* version 2: Handshake */
        {"e0000000000807aabbccddeeff00", HB_QUIC_ID_OF_CLIENT, 8, 7}, /* version negotiation */
        {"e0deadbeef0807aabbccddeeff00", HB_QUIC_ID_OF_CLIENT, 8, 7}, /* not known here */
        {"e0000000011407000000000000000000000000000000000000ff", HB_QUIC_ID_OF_SERVER, 20, 7},
        {"e000000001150700000000000000000000000000000000000000ff", HB_QUIC_ID_NONE, 0, 0},
        {"e000000001ff07", HB_QUIC_ID_NONE, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t length;
        uint8_t first;

        if (find(rows[i].payload, &length, &first) != rows[i].kind || length != rows[i].length ||
            first != rows[i].first)
            fail_msg("%s: wrong kind, or id of %u bytes that begins with %u", rows[i].payload,
                     length, first);
    }
}

static void servers_are_found_by_pool_and_id(void **state)
{
    enum { SERVERS = 1000 };
    struct hb_backend_record *records = calloc(SERVERS, sizeof(*records));
    uint8_t unknown[HB_QUIC_SERVER_ID_MAX] = {0xff, 0xff};
    struct hb_quic_servers *servers;
    size_t bytes;

    (void)state;
    assert_int_equal(hb_quic_servers_find(NULL, 0, unknown, 2), HB_BACKEND_NONE);
    assert_int_equal(hb_quic_servers_bytes(records, SERVERS), 0); /* none has an id */
    for (uint32_t i = 0; i < SERVERS; i++) {
        records[i].id = i + 1;
        records[i].pool = i % 2;
        records[i].server_id_length = 1 + i % 3;
        records[i].server_id[0] = (uint8_t)(i / 6);
    }
    bytes = hb_quic_servers_bytes(records, SERVERS);
    servers =
        hb_quic_servers_build(aligned_alloc(64, (bytes + 63) & ~(size_t)63), records, SERVERS);
    for (uint32_t i = 0; i < SERVERS; i++)
        assert_int_equal(
            hb_quic_servers_find(servers, i % 2, records[i].server_id, records[i].server_id_length),
            i + 1);
    assert_int_equal(hb_quic_servers_find(servers, 0, unknown, 2), HB_BACKEND_NONE);
    assert_int_equal(hb_quic_servers_find(servers, 2, records[0].server_id, 1), HB_BACKEND_NONE);
    assert_int_equal(hb_quic_servers_find(servers, 0, records[0].server_id, 4), HB_BACKEND_NONE);
    free(servers);
    free(records);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_of_the_draft),
        cmocka_unit_test(ids_of_every_length),
        cmocka_unit_test(whose_id_it_is),
        cmocka_unit_test(servers_are_found_by_pool_and_id),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
