/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage_output.c: packets leave, grouped by port.
 *
 * They are handed over at the end of their burst, so nothing waits for a later one. What a port
 * does not take is dropped at once: to wait would only fill the receive queues. Forwarded packets
 * are counted here, when the port has them.
 *
 * Most bursts leave by one port as a whole and are handed over as they stand; others are sorted
 * into the buffers of the ports first.
 */
#include <rte_ethdev.h>

#include "stages.h"
#include "worker_state.h"

/* What packets of one service and one backend have in common is counted in a sum: each count of its
 * own would wait for the one before it. Others are counted one by one. */
static void count_services(struct hb_batch *batch, const struct hb_packet *packet, uint16_t count,
                           uint64_t bytes, bool one)
{
    const struct hb_service *services = batch->generation->services;
    struct hb_service_counters *counters = batch->worker->services;

    if (one) {
        counters[services[packet->service].id].packets += count;
        counters[services[packet->service].id].bytes += bytes;
        return;
    }
    for (const struct hb_packet *end = packet + count; packet != end; packet++) {
        counters[services[packet->service].id].packets++;
        counters[services[packet->service].id].bytes += packet->inner_length;
    }
}

static void count_backends(struct hb_batch *batch, const struct hb_packet *packet, uint16_t count,
                           uint64_t bytes, bool one)
{
    struct hb_backend_counters *counters = batch->worker->backends;

    if (one) {
        counters[packet->backend_id].packets += count;
        counters[packet->backend_id].bytes += bytes;
        return;
    }
    for (const struct hb_packet *end = packet + count; packet != end; packet++) {
        counters[packet->backend_id].packets++;
        counters[packet->backend_id].bytes += packet->inner_length;
    }
}

/* Packets, side by side, that a port took. */
static void count_sent(struct hb_batch *batch, const struct hb_packet *first, uint16_t count)
{
    uint64_t inner_bytes = 0, header_bytes = 0;
    uint32_t services = 0, backends = 0;

    for (const struct hb_packet *packet = first; packet != first + count; packet++) {
        inner_bytes += packet->inner_length;
        header_bytes += packet->backend->size;
        services |= packet->service ^ first->service;
        backends |= packet->backend_id ^ first->backend_id;
    }
    batch->worker->counters->tx_packets += count;
    batch->worker->counters->tx_bytes += inner_bytes + header_bytes;
    count_services(batch, first, count, inner_bytes, services == 0);
    count_backends(batch, first, count, inner_bytes, backends == 0);
}

/* The whole batch by one port. */
static void send_all(struct hb_batch *batch, uint16_t port, struct rte_mbuf **mbufs)
{
    uint16_t taken =
        rte_eth_tx_burst(port, (uint16_t)batch->worker->config.index, mbufs, batch->count);

    if (taken > 0)
        count_sent(batch, batch->packet, taken);
    for (uint16_t i = taken; i < batch->count; i++)
        hb_drop(batch, &batch->packet[i], HB_DROP_TX_FULL);
}

static void send_buffer(struct hb_batch *batch, uint16_t port)
{
    struct hb_worker *worker = batch->worker;
    struct hb_tx_buffer *buffer = &worker->tx[port];
    uint16_t taken =
        rte_eth_tx_burst(port, (uint16_t)worker->config.index, buffer->mbuf, buffer->count);

    for (uint16_t i = 0; i < taken; i++)
        count_sent(batch, buffer->packet[i], 1);
    for (uint16_t i = taken; i < buffer->count; i++)
        hb_drop(batch, buffer->packet[i], HB_DROP_TX_FULL);
    buffer->count = 0;
}

static void send_by_port(struct hb_batch *batch)
{
    struct hb_worker *worker = batch->worker;

    for (uint16_t i = 0; i < batch->count; i++) {
        struct hb_packet *packet = &batch->packet[i];
        struct hb_tx_buffer *buffer = &worker->tx[packet->backend->port];

        buffer->packet[buffer->count] = packet;
        buffer->mbuf[buffer->count++] = packet->mbuf;
        worker->tx_pending |= UINT32_C(1) << packet->backend->port;
    }
    while (worker->tx_pending != 0) {
        send_buffer(batch, (uint16_t)__builtin_ctz(worker->tx_pending));
        worker->tx_pending &= worker->tx_pending - 1;
    }
}

/* The service and the backend have the packet as one, the worker has sent each of the pieces. */
void hb_send_pieces(struct hb_batch *batch, struct hb_packet *packet, struct rte_mbuf **pieces,
                    uint16_t count)
{
    struct hb_worker *worker = batch->worker;
    struct hb_worker_counters *counters = worker->counters;
    uint64_t bytes = 0;
    uint16_t taken;

    for (uint16_t i = 0; i < count; i++)
        bytes += rte_pktmbuf_pkt_len(pieces[i]);
    taken = rte_eth_tx_burst(packet->backend->port, (uint16_t)worker->config.index, pieces, count);
    for (uint16_t i = taken; i < count; i++) {
        bytes -= rte_pktmbuf_pkt_len(pieces[i]);
        hb_drop_mbuf(worker, pieces[i], HB_DROP_TX_FULL);
    }
    counters->made_packets += count - 1u;
    counters->tx_packets += taken;
    counters->tx_bytes += bytes;
    if (taken == count) {
        count_services(batch, packet, 1, packet->inner_length, true);
        count_backends(batch, packet, 1, packet->inner_length, true);
    } else {
        worker->services[batch->generation->services[packet->service].id].drops++;
    }
    rte_pktmbuf_free(packet->mbuf);
    packet->mbuf = NULL;
    batch->ended++;
}

void hb_stage_output(struct hb_batch *batch)
{
    struct rte_mbuf *mbufs[HB_BURST];
    struct hb_packet *packet;
    uint32_t ports = 0, count = 0;
    uint16_t port;

    if (batch->count == 0)
        return;
    port = batch->packet[0].backend->port;
    HB_BATCH_FOREACH (packet, batch) {
        mbufs[count++] = packet->mbuf;
        ports |= packet->backend->port ^ port;
    }
    if (likely(ports == 0))
        send_all(batch, port, mbufs);
    else
        send_by_port(batch);
    /* Every packet is gone: the port has it, or it was dropped. */
    batch->count = 0;
    batch->ended = 0;
}
