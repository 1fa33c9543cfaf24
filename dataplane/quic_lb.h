/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quic_lb.h: the server that the connection id of a QUIC packet names.
 *
 * Servers put their id into the connection ids that they give to clients, in the format of QUIC-LB
 * (draft-ietf-quic-load-balancers, revisions 18 to 21):
 *
 *     first byte         configuration (3 bits), length or random bits (5)
 *     server id, nonce   in plain, or encrypted by AES-128
 *
 * If the two are 16 bytes together they are one AES block; else a Feistel network of four rounds,
 * whose round function is AES, keeps their length. Three or four AES blocks a packet are what that
 * costs; taking the id out of a plain one costs nothing. A service may have several configurations
 * at a time, so that keys can be changed while old connections last.
 *
 * Which connection ids are the server's? Those of short headers are. In long headers only those of
 * Handshake packets surely are: in Initial and 0-RTT packets the client may have made them up, so
 * nothing is read out of them, and the same goes for versions that are not known here.
 *
 * The cipher is nettle's: no allocation, no state but the key. Pure; any thread.
 */
#ifndef HB_DATAPLANE_QUIC_LB_H
#define HB_DATAPLANE_QUIC_LB_H

#include <stdbool.h>
#include <stdint.h>

#include <nettle/aes.h>

#include "halbach/generation.h"

#define HB_QUIC_SERVER_ID_MAX 15
#define HB_QUIC_CID_MAX       20 /* bytes, in versions 1 and 2 */
#define HB_QUIC_UNROUTABLE    7  /* the configuration of ids that name no server */

struct hb_quic_config {
    struct aes128_ctx key; /* for decryption if the block is whole, else for encryption */
    uint8_t server_id_length;
    uint8_t nonce_length;
    bool encrypted;
};

/* Prepares a checked record. */
void hb_quic_config_prepare(struct hb_quic_config *config, const struct hb_quic_record *record);

/* What the first bytes of a datagram for a QUIC server are. */
enum hb_quic_packet {
    HB_QUIC_ID_NONE,      /* too short to hold a connection id, or not QUIC */
    HB_QUIC_ID_OF_CLIENT, /* the id may be one that the client made up */
    HB_QUIC_ID_OF_SERVER, /* the server made the id */
};

/* Finds the destination connection id in `length` bytes of payload. `*id_length` is how many bytes
 * are there: exact in a long header; in a short one, which does not say, all that follows. */
enum hb_quic_packet hb_quic_find_id(const uint8_t *payload, uint32_t length, const uint8_t **id,
                                    uint32_t *id_length);

/* Reads the server id from a connection id, `length` bytes of which can be read. False when it is
 * too short for the configuration. */
bool hb_quic_read_server_id(const struct hb_quic_config *config, const uint8_t *id, uint32_t length,
                            uint8_t server_id[HB_QUIC_SERVER_ID_MAX]);

static inline uint8_t hb_quic_config_id(const uint8_t *id)
{
    return id[0] >> 5;
}

#endif
