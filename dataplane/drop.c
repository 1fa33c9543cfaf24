/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drop.c: the one place where packets end without being sent. Each is counted under exactly one
 * reason and freed; the buffer of one that is answered goes on as the answer (hb_count_drop).
 */
#include <stdatomic.h>

#include "stages.h"
#include "worker_state.h"

void hb_drop_mbuf(struct hb_worker *worker, struct rte_mbuf *mbuf, enum hb_drop_reason reason)
{
    worker->counters->drops[reason]++;
    rte_pktmbuf_free(mbuf);
}

void hb_count_drop(struct hb_batch *batch, const struct hb_packet *packet,
                   enum hb_drop_reason reason)
{
    if (packet->service != HB_NO_SERVICE)
        batch->worker->services[batch->generation->services[packet->service].id].drops++;
    batch->worker->counters->drops[reason]++;
}

enum hb_drop_reason hb_tx_refusal(const struct hb_worker *worker, uint16_t port)
{
    const _Atomic uint32_t *links_down = worker->config.links_down;

    if (links_down == NULL ||
        (atomic_load_explicit(links_down, memory_order_relaxed) >> port & 1) == 0)
        return HB_DROP_TX_FULL;
    return HB_DROP_LINK_DOWN;
}

void hb_drop(struct hb_batch *batch, struct hb_packet *packet, enum hb_drop_reason reason)
{
    hb_count_drop(batch, packet, reason);
    rte_pktmbuf_free(packet->mbuf);
    packet->mbuf = NULL;
    batch->ended++;
}
