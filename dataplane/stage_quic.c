/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage_quic.c: a QUIC connection stays with its server when the client's address changes.
 *
 * For services with QUIC configurations (quic_lb.h). A packet whose connection id names a backend
 * of the service's pool goes there, if that is up or draining, past flow cache and lookup table:
 * the id says it all, and the next packet will say it again. All others are flows like any: packets
 * with an id that the client may have chosen (the first ones of a connection), and those whose id
 * can't be read, names nobody or a backend that is down (`quic_unroutable`). So a server that puts
 * no id into its connection ids, or one of before, is balanced by the 5-tuple as ever. Each service
 * counts which of these its packets were (enum hb_quic_outcome).
 *
 * No byte is read that is not in the packet and in the buffer's first segment; what is cut short is
 * not routed by its id.
 */
#include <rte_ip.h>
#include <rte_udp.h>

#include "quic_lb.h"
#include "quic_servers.h"
#include "service_extras.h"
#include "stages.h"
#include "worker_state.h"

/* Where the UDP header is. The short cuts of stage_parse don't say, but they take only packets
 * where it is plain to see. */
static uint32_t find_udp(const struct hb_packet *packet)
{
    const uint8_t *ip = rte_pktmbuf_mtod_offset(packet->mbuf, const uint8_t *, packet->l3_offset);

    if (!hb_flow_is_ipv6(&packet->flow))
        return packet->l3_offset + (ip[0] & 0xf) * 4u;
    if (ip[6] == HB_PROTOCOL_UDP)
        return packet->l3_offset + (uint32_t)sizeof(struct rte_ipv6_hdr);
    return packet->l4_offset;
}

/* The UDP payload as far as it can be read. stage_parse has seen to it that the header is whole. */
static const uint8_t *find_payload(const struct hb_packet *packet, uint32_t *length)
{
    uint32_t udp = find_udp(packet), payload = udp + (uint32_t)sizeof(struct rte_udp_hdr);
    const uint8_t *frame = rte_pktmbuf_mtod(packet->mbuf, const uint8_t *);
    uint32_t says = (uint32_t)(frame[udp + 4] << 8 | frame[udp + 5]);
    uint32_t readable = rte_pktmbuf_data_len(packet->mbuf);

    *length = says - (uint32_t)sizeof(struct rte_udp_hdr);
    if (readable < payload)
        *length = 0;
    else if (*length > readable - payload)
        *length = readable - payload;
    return frame + payload;
}

/* Finds the backend that a server's id names, or why it can't go there. */
static enum hb_quic_outcome find_backend(const struct hb_generation *generation, uint32_t service,
                                         const uint8_t *id, uint32_t length, uint16_t *backend)
{
    const struct hb_service_extra *extra = &generation->extra[service];
    uint8_t which = extra->quic_config[hb_quic_config_id(id)];
    uint8_t server_id[HB_QUIC_SERVER_ID_MAX];
    const struct hb_quic_config *config;

    if (which == 0)
        return hb_quic_config_id(id) == HB_QUIC_UNROUTABLE ? HB_QUIC_NOT_ROUTABLE
                                                           : HB_QUIC_UNKNOWN_CONFIGURATION;
    config = &generation->quic[extra->quic_first + which - 1];
    if (!hb_quic_read_server_id(config, id, length, server_id))
        return HB_QUIC_TOO_SHORT;
    *backend = hb_quic_servers_find(generation->servers, generation->services[service].pool,
                                    server_id, config->server_id_length);
    if (*backend == HB_BACKEND_NONE)
        return HB_QUIC_UNKNOWN_SERVER;
    return hb_backend_is_in_use(&generation->backends[*backend]) ? HB_QUIC_ROUTED
                                                                 : HB_QUIC_BACKEND_DOWN;
}

/* What the packet is; `*backend` is set if it is routed. */
static enum hb_quic_outcome judge(const struct hb_generation *generation,
                                  const struct hb_packet *packet, uint16_t *backend)
{
    uint32_t length, id_length;
    const uint8_t *payload = find_payload(packet, &length), *id;

    switch (hb_quic_find_id(payload, length, &id, &id_length)) {
    case HB_QUIC_ID_OF_SERVER:
        return find_backend(generation, packet->service, id, id_length, backend);
    case HB_QUIC_ID_OF_CLIENT:
        return HB_QUIC_OF_CLIENT;
    default:
        return HB_QUIC_NO_ID;
    }
}

void hb_stage_quic(struct hb_batch *batch)
{
    const struct hb_generation *generation = batch->generation;
    struct hb_worker_counters *counters = batch->worker->counters;
    struct hb_packet *packet;

    HB_BATCH_FOREACH (packet, batch) {
        const struct hb_service *service = &generation->services[packet->service];
        enum hb_quic_outcome outcome;
        uint16_t backend;

        if ((service->features & HB_HAS_QUIC) == 0 ||
            packet->fault != HB_NO_FAULT) /* a fragment that came back */
            continue;
        outcome = judge(generation, packet, &backend);
        batch->worker->quic[service->id].packets[outcome]++;
        if (outcome != HB_QUIC_ROUTED) {
            counters->quic_unroutable += outcome != HB_QUIC_OF_CLIENT && outcome != HB_QUIC_NO_ID;
            continue;
        }
        counters->quic_routed++;
        packet->backend_id = backend;
        packet->backend = &generation->backends[backend];
        hb_set_aside(batch, packet, HB_SHAPE_DECIDED);
    }
}
