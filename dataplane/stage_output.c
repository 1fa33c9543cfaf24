/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage_output.c: packets leave, grouped by port.
 *
 * They are handed over at the end of their burst, so nothing waits for a later one. What a port
 * does not take is dropped at once: to wait would only fill the receive queues. Forwarded packets
 * are counted here, when the port has them.
 */
#include <rte_ethdev.h>

#include "stages.h"
#include "worker_state.h"

static void count_sent(struct hb_worker *worker, const struct hb_packet *packet)
{
    struct hb_service_counters *service = &worker->services[packet->service->id];
    struct hb_backend_counters *backend = &worker->backends[packet->backend_id];

    service->packets++;
    service->bytes += packet->inner_length;
    backend->packets++;
    backend->bytes += packet->inner_length;
    worker->counters->tx_packets++;
    worker->counters->tx_bytes += packet->frame_length;
}

static void buffer_packet(struct hb_batch *batch, struct hb_packet *packet)
{
    struct hb_worker *worker = batch->worker;
    uint16_t port = packet->backend->port;
    struct hb_tx_buffer *buffer = &worker->tx[port];

    buffer->packet[buffer->count] = (uint8_t)(packet - batch->packet);
    buffer->mbuf[buffer->count++] = packet->mbuf;
    worker->tx_pending |= UINT32_C(1) << port;
}

static void flush_port(struct hb_batch *batch, uint16_t port)
{
    struct hb_worker *worker = batch->worker;
    struct hb_tx_buffer *buffer = &worker->tx[port];
    uint16_t taken =
        rte_eth_tx_burst(port, (uint16_t)worker->config.index, buffer->mbuf, buffer->count);

    for (uint16_t i = 0; i < buffer->count; i++) {
        struct hb_packet *packet = &batch->packet[buffer->packet[i]];

        if (i < taken) {
            count_sent(worker, packet);
            packet->mbuf = NULL; /* the port's now */
        } else {
            hb_drop(batch, packet, HB_DROP_TX_FULL);
        }
    }
    buffer->count = 0;
}

void hb_stage_output(struct hb_batch *batch)
{
    struct hb_worker *worker = batch->worker;
    struct hb_packet *packet;

    HB_BATCH_FOREACH (packet, batch)
        buffer_packet(batch, packet);
    while (worker->tx_pending != 0) {
        uint16_t port = (uint16_t)__builtin_ctz(worker->tx_pending);

        flush_port(batch, port);
        worker->tx_pending &= worker->tx_pending - 1;
    }
    batch->count = 0;
}
