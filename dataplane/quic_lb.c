/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection ids of QUIC-LB; quic_lb.h tells what they are. */
#include "quic_lb.h"

#include <string.h>

#define LONG_HEADER 0x80
#define HALF_MAX    10 /* bytes of a half of the longest plaintext, 19 */
#define ID_AT       6  /* in a long header: behind version and length */
#define VERSION_1   UINT32_C(1)
#define VERSION_2   UINT32_C(0x6b3343cf) /* RFC 9369 */

static bool is_whole_block(const struct hb_quic_config *config)
{
    return config->server_id_length + config->nonce_length == AES_BLOCK_SIZE;
}

void hb_quic_config_prepare(struct hb_quic_config *config, const struct hb_quic_record *record)
{
    *config = (struct hb_quic_config){.server_id_length = record->server_id_length,
                                      .nonce_length = record->nonce_length,
                                      .encrypted = record->encrypted != 0};
    if (!config->encrypted)
        return;
    if (is_whole_block(config))
        aes128_set_decrypt_key(&config->key, record->key);
    else
        aes128_set_encrypt_key(&config->key, record->key);
}

/* Handshake packets are type 2 in version 1 and type 3 in version 2 (RFC 9000, section 17.2; RFC
 * 9369, section 3.2). */
static bool is_handshake(const uint8_t *payload)
{
    uint32_t version = (uint32_t)payload[1] << 24 | (uint32_t)payload[2] << 16 |
                       (uint32_t)payload[3] << 8 | payload[4];
    uint8_t type = payload[0] >> 4 & 3;

    return (version == VERSION_1 && type == 2) || (version == VERSION_2 && type == 3);
}

/* The fixed bit is not asked for: a server may have agreed that clients clear it (RFC 9287). */
enum hb_quic_packet hb_quic_find_id(const uint8_t *payload, uint32_t length, const uint8_t **id,
                                    uint32_t *id_length)
{
    if (length < 2)
        return HB_QUIC_ID_NONE;
    if ((payload[0] & LONG_HEADER) == 0) {
        *id = payload + 1;
        *id_length = length - 1;
        return HB_QUIC_ID_OF_SERVER;
    }
    if (length < ID_AT || payload[ID_AT - 1] > HB_QUIC_CID_MAX ||
        payload[ID_AT - 1] > length - ID_AT)
        return HB_QUIC_ID_NONE;
    *id = payload + ID_AT;
    *id_length = payload[ID_AT - 1];
    if (*id_length == 0 || !is_handshake(payload))
        return HB_QUIC_ID_OF_CLIENT;
    return HB_QUIC_ID_OF_SERVER;
}

/* The two halves of an id under decryption. In one of odd length each has half a byte of the middle
 * one: the left its upper, the right its lower four bits. */
struct halves {
    const struct aes128_ctx *key;
    uint32_t length; /* of both, bytes */
    uint32_t half;   /* rounded up */
    uint8_t left[HALF_MAX], right[HALF_MAX];
};

static void clear_left(struct halves *h)
{
    if (h->length % 2 != 0)
        h->left[h->half - 1] &= 0xf0;
}

static void clear_right(struct halves *h)
{
    if (h->length % 2 != 0)
        h->right[0] &= 0x0f;
}

/* One round: `to` is changed by what the cipher makes of `from`. Behind a half there are zeroes. */
static void pass(const struct halves *h, uint8_t number, const uint8_t *from, uint8_t *to)
{
    uint8_t in[AES_BLOCK_SIZE] = {0}, out[AES_BLOCK_SIZE];

    memcpy(in, from, HALF_MAX);
    in[AES_BLOCK_SIZE - 2] = (uint8_t)h->length;
    in[AES_BLOCK_SIZE - 1] = number;
    aes128_encrypt(h->key, sizeof(in), out, in);
    for (uint32_t i = 0; i < HALF_MAX; i++)
        to[i] ^= i < h->half ? out[i] : 0;
}

/* Four rounds backwards. The last is needed only for a server id that reaches into the right half.
 */
static void decrypt_halves(const struct hb_quic_config *config, const uint8_t *cipher,
                           uint8_t server_id[HB_QUIC_SERVER_ID_MAX])
{
    uint32_t length = (uint32_t)config->server_id_length + config->nonce_length;
    struct halves h = {.key = &config->key, .length = length, .half = (length + 1) / 2};
    uint32_t own_left = length / 2, taken = config->server_id_length;

    memcpy(h.left, cipher, h.half);
    memcpy(h.right, cipher + own_left, h.half);
    clear_left(&h);
    clear_right(&h);
    pass(&h, 4, h.right, h.left);
    clear_left(&h);
    pass(&h, 3, h.left, h.right);
    clear_right(&h);
    pass(&h, 2, h.right, h.left);
    clear_left(&h);
    memcpy(server_id, h.left, taken < h.half ? taken : h.half);
    if (taken <= own_left)
        return;
    pass(&h, 1, h.left, h.right);
    clear_right(&h);
    if (length % 2 != 0)
        server_id[own_left] |= h.right[0];
    for (uint32_t i = h.half; i < taken; i++)
        server_id[i] = h.right[i - own_left];
}

bool hb_quic_read_server_id(const struct hb_quic_config *config, const uint8_t *id, uint32_t length,
                            uint8_t server_id[HB_QUIC_SERVER_ID_MAX])
{
    uint8_t plain[AES_BLOCK_SIZE];

    memset(server_id, 0, HB_QUIC_SERVER_ID_MAX);
    if (length < 1u + config->server_id_length + config->nonce_length)
        return false;
    id++;
    if (!config->encrypted) {
        memcpy(server_id, id, config->server_id_length);
    } else if (is_whole_block(config)) {
        aes128_decrypt(&config->key, sizeof(plain), plain, id);
        memcpy(server_id, plain, config->server_id_length);
    } else {
        decrypt_halves(config, id, server_id);
    }
    return true;
}
