/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * punt.c: packets that are not ours go to the kernel, as they came.
 *
 * With AF_XDP the steering program passes such packets before they reach DPDK, and no punt port is
 * needed; a NIC that is bound to DPDK has a TAP or virtio-user port beside it for this. Without one
 * a packet that is not ours is dropped.
 */
#include <rte_ethdev.h>

#include "stages.h"
#include "worker_state.h"

void hb_punt(struct hb_batch *batch, struct hb_packet *packet, enum hb_drop_reason reason)
{
    struct hb_tx_buffer *buffer = &batch->worker->punt;

    if (batch->worker->punt_port == HB_NO_PORT) {
        hb_drop(batch, packet, reason);
        return;
    }
    buffer->mbuf[buffer->count++] = packet->mbuf;
    packet->mbuf = NULL;
    batch->ended++;
}

void hb_punt_flush(struct hb_worker *worker)
{
    struct hb_tx_buffer *buffer = &worker->punt;
    uint64_t bytes = 0;
    uint16_t taken;

    if (buffer->count == 0)
        return;
    for (uint16_t i = 0; i < buffer->count; i++)
        bytes += rte_pktmbuf_pkt_len(buffer->mbuf[i]);
    taken = rte_eth_tx_burst(worker->punt_port, (uint16_t)worker->config.index, buffer->mbuf,
                             buffer->count);
    for (uint16_t i = taken; i < buffer->count; i++) {
        bytes -= rte_pktmbuf_pkt_len(buffer->mbuf[i]);
        hb_drop_mbuf(worker, buffer->mbuf[i], HB_DROP_PUNT_FULL);
    }
    worker->counters->punted_packets += taken;
    worker->counters->punted_bytes += bytes;
    buffer->count = 0;
}
