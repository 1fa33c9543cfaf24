/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage_service.c: whose packet is it?
 *
 * First the address: what is not for a VIP is the kernel's (ARP was punted before; SSH, BGP, ping
 * of the host, broken or not, go here), because only the kernel may judge it. Then the verdict of
 * the parser: what is for a VIP and malformed, a fragment or not TCP or UDP is dropped for that
 * reason. Then the port.
 */
#include <rte_prefetch.h>

#include "service_map.h"
#include "stages.h"

static void match(struct hb_batch *batch, struct hb_packet *packet)
{
    const struct hb_generation *generation = batch->generation;
    int32_t index = hb_service_map_find(generation->map, &packet->flow);

    if (index == HB_SERVICE_NOT_VIP) {
        hb_punt(batch, packet, HB_DROP_NOT_VIP);
    } else if (packet->fault != HB_NO_FAULT) {
        hb_drop(batch, packet, packet->fault);
    } else if (index == HB_SERVICE_NONE) {
        hb_drop(batch, packet, HB_DROP_NO_SERVICE);
    } else {
        packet->service = &generation->services[index];
        rte_prefetch0(&generation->pools[packet->service->pool]);
    }
}

void hb_stage_service(struct hb_batch *batch)
{
    struct hb_packet *packet;

    HB_BATCH_FOREACH (packet, batch)
        match(batch, packet);
}
