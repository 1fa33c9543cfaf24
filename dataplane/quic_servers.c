/* SPDX-License-Identifier: BSD-3-Clause */
/* See quic_servers.h. */
#include "quic_servers.h"

#include <string.h>

static uint32_t count_slots(const struct hb_backend_record *backends, uint32_t count)
{
    uint32_t servers = 0, slots = 8;

    for (uint32_t i = 0; i < count; i++)
        servers += backends[i].server_id_length != 0;
    while (servers != 0 && slots < 2 * (uint64_t)servers)
        slots *= 2;
    return servers != 0 ? slots : 0;
}

size_t hb_quic_servers_bytes(const struct hb_backend_record *backends, uint32_t count)
{
    uint32_t slots = count_slots(backends, count);

    if (slots == 0)
        return 0;
    return sizeof(struct hb_quic_servers) + slots * sizeof(struct hb_quic_server);
}

/* The slot of a server, or the free one where it would go. */
static struct hb_quic_server *probe(const struct hb_quic_servers *servers, uint32_t pool,
                                    const uint8_t *server_id, uint8_t length)
{
    uint8_t key[16] = {[15] = length};
    uint64_t mixed;
    uint32_t at;

    memcpy(key, server_id, HB_QUIC_SERVER_ID_MAX);
    mixed = hb_mix(hb_load64(key) ^ 0x9e3779b97f4a7c15, hb_load64(key + 8) ^ 0xc2b2ae3d27d4eb4f);
    at = (uint32_t)(((mixed ^ pool) * 0x165667b19e3779f9) >> servers->shift);
    for (;; at = (at + 1) & servers->mask) {
        struct hb_quic_server *slot = &servers->slots[at];

        if (slot->length == 0 || (slot->length == length && slot->pool == pool &&
                                  memcmp(slot->id, server_id, HB_QUIC_SERVER_ID_MAX) == 0))
            return slot;
    }
}

struct hb_quic_servers *
hb_quic_servers_build(void *memory, const struct hb_backend_record *backends, uint32_t count)
{
    struct hb_quic_servers *servers = memory;
    uint32_t slots = count_slots(backends, count);

    if (slots == 0)
        return NULL;
    memset(memory, 0, hb_quic_servers_bytes(backends, count));
    servers->mask = slots - 1;
    servers->shift = 64 - (uint32_t)__builtin_ctz(slots);
    servers->slots = (struct hb_quic_server *)(servers + 1);
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_backend_record *backend = &backends[i];
        struct hb_quic_server *slot;

        if (backend->server_id_length == 0)
            continue;
        slot = probe(servers, backend->pool, backend->server_id, backend->server_id_length);
        if (slot->length != 0)
            continue;
        memcpy(slot->id, backend->server_id, sizeof(slot->id));
        slot->length = backend->server_id_length;
        slot->pool = (uint16_t)backend->pool;
        slot->backend = (uint16_t)backend->id;
    }
    return servers;
}

uint16_t hb_quic_servers_find(const struct hb_quic_servers *servers, uint32_t pool,
                              const uint8_t server_id[HB_QUIC_SERVER_ID_MAX], uint8_t length)
{
    if (servers == NULL)
        return HB_BACKEND_NONE;
    return probe(servers, pool, server_id, length)->backend;
}
