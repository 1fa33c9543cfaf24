/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage_fragment.c: fragments for a VIP.
 *
 * Only the first fragment of a datagram has ports, so the others can't be balanced by themselves.
 * They are dropped, first ones as well, so that no datagram is torn apart.
 */
#include "stages.h"
#include "worker_state.h"

void hb_stage_fragment(struct hb_batch *batch)
{
    for (uint16_t i = 0; i < batch->aside_count; i++) {
        struct hb_packet *packet = &batch->aside[i];

        if (packet->mbuf != NULL && packet->shape == HB_SHAPE_FRAGMENT)
            hb_drop(batch, packet, HB_DROP_FRAGMENT);
    }
    hb_rejoin(batch, HB_SHAPE_FRAGMENT);
}
