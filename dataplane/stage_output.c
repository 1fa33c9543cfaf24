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

/* What packets, side by side, have in common. */
struct summary {
    uint64_t inner_bytes, header_bytes;
    bool one_service, one_backend, one_port;
};

/* The upper half of the last word of a packet's context. */
_Static_assert(offsetof(struct hb_packet, service) == 60 &&
                   offsetof(struct hb_packet, backend_id) == 62,
               "both are read as one word");

static struct summary summarize(const struct hb_packet *first, uint16_t count)
{
    const struct hb_backend *backend = first->backend;
    struct summary summary = {.one_port = true};
    uint64_t names = hb_load64(&first->l4_offset), others = 0;
    uint32_t ports = 0;

    for (const struct hb_packet *packet = first; packet != first + count; packet++) {
        summary.inner_bytes += packet->inner_length;
        others |= hb_load64(&packet->l4_offset) ^ names;
    }
    summary.one_service = (others >> 32 & 0xffff) == 0;
    summary.one_backend = others >> 48 == 0;
    summary.header_bytes = (uint64_t)backend->size * count;
    if (summary.one_backend)
        return summary;
    summary.header_bytes = 0;
    for (const struct hb_packet *packet = first; packet != first + count; packet++) {
        summary.header_bytes += packet->backend->size;
        ports |= packet->backend->port ^ backend->port;
    }
    summary.one_port = ports == 0;
    return summary;
}

/* What packets of one service and one backend have in common is counted in a sum: each count of its
 * own would wait for the one before it. Others are counted one by one. */
static void count_services(struct hb_batch *batch, const struct hb_packet *packet, uint16_t count,
                           const struct summary *summary)
{
    const struct hb_service *services = batch->generation->services;
    struct hb_service_counters *counters = batch->worker->services;

    if (summary->one_service) {
        counters[services[packet->service].id].packets += count;
        counters[services[packet->service].id].bytes += summary->inner_bytes;
        return;
    }
    for (const struct hb_packet *end = packet + count; packet != end; packet++) {
        counters[services[packet->service].id].packets++;
        counters[services[packet->service].id].bytes += packet->inner_length;
    }
}

static void count_backends(struct hb_batch *batch, const struct hb_packet *packet, uint16_t count,
                           const struct summary *summary)
{
    struct hb_backend_counters *counters = batch->worker->backends;

    if (summary->one_backend) {
        counters[packet->backend_id].packets += count;
        counters[packet->backend_id].bytes += summary->inner_bytes;
        return;
    }
    for (const struct hb_packet *end = packet + count; packet != end; packet++) {
        counters[packet->backend_id].packets++;
        counters[packet->backend_id].bytes += packet->inner_length;
    }
}

/* Packets, side by side, that a port took. */
static void count_sent(struct hb_batch *batch, const struct hb_packet *first, uint16_t count,
                       const struct summary *summary)
{
    batch->worker->counters->tx_packets += count;
    batch->worker->counters->tx_bytes += summary->inner_bytes + summary->header_bytes;
    count_services(batch, first, count, summary);
    count_backends(batch, first, count, summary);
}

/* The whole batch by one port. */
static void send_all(struct hb_batch *batch, struct summary *summary)
{
    struct rte_mbuf *mbufs[HB_BURST];
    uint16_t port = batch->packet[0].backend->port, taken;

    for (uint16_t i = 0; i < batch->count; i++)
        mbufs[i] = batch->packet[i].mbuf;
    taken = rte_eth_tx_burst(port, (uint16_t)batch->worker->config.index, mbufs, batch->count);
    if (unlikely(taken < batch->count && taken > 0))
        *summary = summarize(batch->packet, taken);
    if (likely(taken > 0))
        count_sent(batch, batch->packet, taken, summary);
    for (uint16_t i = taken; i < batch->count; i++)
        hb_drop(batch, &batch->packet[i], hb_tx_refusal(batch->worker, port));
}

static void send_buffer(struct hb_batch *batch, uint16_t port)
{
    struct hb_worker *worker = batch->worker;
    struct hb_tx_buffer *buffer = &worker->tx[port];
    uint16_t taken =
        rte_eth_tx_burst(port, (uint16_t)worker->config.index, buffer->mbuf, buffer->count);

    for (uint16_t i = 0; i < taken; i++) {
        struct summary summary = summarize(buffer->packet[i], 1);

        count_sent(batch, buffer->packet[i], 1, &summary);
    }
    for (uint16_t i = taken; i < buffer->count; i++)
        hb_drop(batch, buffer->packet[i], hb_tx_refusal(worker, port));
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

void hb_stage_output(struct hb_batch *batch)
{
    struct summary summary;

    if (batch->count == 0)
        return;
    summary = summarize(batch->packet, batch->count);
    if (likely(summary.one_port))
        send_all(batch, &summary);
    else
        send_by_port(batch);
    /* Every packet is gone: the port has it, or it was dropped. */
    batch->count = 0;
    batch->ended = 0;
}
