/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quic_servers.h: from a server id of QUIC-LB and a pool to the backend.
 *
 * One open-addressing table for all pools of a generation, at most half full, keys compared in
 * full. The same id in two pools names two backends. Pure; a built one may be read by any number of
 * threads.
 */
#ifndef HB_DATAPLANE_QUIC_SERVERS_H
#define HB_DATAPLANE_QUIC_SERVERS_H

#include <stddef.h>
#include <stdint.h>

#include "halbach/generation.h"
#include "quic_lb.h"

struct hb_quic_server {
    uint8_t id[HB_QUIC_SERVER_ID_MAX]; /* the rest is zero */
    uint8_t length;                    /* 0: a free slot */
    uint16_t pool;
    uint16_t backend; /* id */
};

struct hb_quic_servers {
    uint32_t mask, shift;
    struct hb_quic_server *slots;
};

/* Bytes of memory for the backends that have a server id; 0 when none has. */
size_t hb_quic_servers_bytes(const struct hb_backend_record *backends, uint32_t count);

/* Builds in `memory` (64-byte aligned; the caller owns it); NULL when no backend has a server id.
 * Of two backends of a pool with one id, which the check of generations refuses, the first counts.
 */
struct hb_quic_servers *
hb_quic_servers_build(void *memory, const struct hb_backend_record *backends, uint32_t count);

/* The backend's id, or HB_BACKEND_NONE. `server_id` has zeroes behind its `length` bytes. */
uint16_t hb_quic_servers_find(const struct hb_quic_servers *servers, uint32_t pool,
                              const uint8_t server_id[HB_QUIC_SERVER_ID_MAX], uint8_t length);

#endif
