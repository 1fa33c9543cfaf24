/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drop.c: the one place where packets end without being sent. Each is counted under exactly one
 * reason and freed.
 */
#include "stages.h"
#include "worker_state.h"

void hb_drop_mbuf(struct hb_worker *worker, struct rte_mbuf *mbuf, enum hb_drop_reason reason)
{
    worker->counters->drops[reason]++;
    rte_pktmbuf_free(mbuf);
}

void hb_drop(struct hb_batch *batch, struct hb_packet *packet, enum hb_drop_reason reason)
{
    if (packet->service != HB_NO_SERVICE)
        batch->worker->services[batch->generation->services[packet->service].id].drops++;
    hb_drop_mbuf(batch->worker, packet->mbuf, reason);
    packet->mbuf = NULL;
    batch->ended++;
}
