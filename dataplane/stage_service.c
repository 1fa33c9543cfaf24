/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage_service.c: whose packet is it?
 *
 * First the address: what is not for a VIP is the kernel's (ARP was punted before; SSH, BGP, ping
 * of the host, broken or not, go here), because only the kernel may judge it; with NAT, answers of
 * backends are told from it first (stage_return.c). Then the verdict of the parser: what is for a
 * VIP and malformed, or of a protocol that no service has, is dropped for that reason; fragments
 * and ICMP are set aside for their stages. Then the port.
 */
#include "affinity.h"
#include "service_map.h"
#include "stages.h"

static int32_t find_service(const struct hb_service_map *map, const struct hb_flow_query *flow)
{
    uint16_t port = (uint16_t)(flow->ports >> 16);
    uint8_t protocol = (uint8_t)flow->kind;

    if (likely(!hb_flow_is_ipv6(flow)))
        return hb_service_map_find_ipv4(map, flow->destination, port, protocol);
    return hb_service_map_find_ipv6(map, flow->addresses + HB_ADDRESS_SIZE, port, protocol);
}

/* Packets that are not for a service, or unfit for it. */
static void turn_away(struct hb_batch *batch, struct hb_packet *packet, int32_t index)
{
    if (index == HB_SERVICE_NOT_VIP) {
        if (batch->generation->nat != NULL && hb_is_return(batch, packet)) {
            hb_set_aside(batch, packet, HB_SHAPE_RETURN);
            return;
        }
        hb_punt(batch, packet, HB_DROP_NOT_VIP);
    } else if (packet->fault != HB_NO_FAULT && packet->shape != HB_SHAPE_PLAIN) {
        hb_set_aside(batch, packet, packet->shape);
    } else if (packet->fault != HB_NO_FAULT) {
        hb_drop(batch, packet, packet->fault);
    } else {
        hb_drop(batch, packet, HB_DROP_NO_SERVICE);
    }
}

/* A burst for one service needs one look-up. */
static bool find_for_all(struct hb_batch *batch)
{
    int32_t index = find_service(batch->generation->map, &batch->packet[0].flow);

    if (index < 0)
        return false;
    for (uint16_t i = 0; i < batch->count; i++)
        batch->packet[i].service = (uint16_t)index;
    return true;
}

static void find_each(struct hb_batch *batch)
{
    const struct hb_generation *generation = batch->generation;
    struct hb_packet *packet;

    HB_BATCH_FOREACH (packet, batch) {
        int32_t index = find_service(generation->map, &packet->flow);

        if (unlikely(index < 0 || packet->fault != HB_NO_FAULT)) {
            turn_away(batch, packet, index);
            continue;
        }
        packet->service = (uint16_t)index;
    }
}

/* For flows that are served by their slots alone: stage_flow reads them. */
static __attribute__((noinline)) void fetch_slots(struct hb_batch *batch)
{
    const struct hb_packet *packet;

    HB_BATCH_FOREACH (packet, batch)
        hb_slot_prefetch(batch->generation, packet->service, &packet->flow);
}

void hb_stage_service(struct hb_batch *batch)
{
    if (batch->count == 0)
        return;
    if (!batch->alike || !find_for_all(batch))
        find_each(batch);
    if (unlikely(batch->generation->fetch_slots))
        fetch_slots(batch);
}
