/* SPDX-License-Identifier: BSD-3-Clause */
/* See nat_handover.h. */
#include <stdio.h>

#include <rte_malloc.h>
#include <rte_ring.h>

#include "nat_handover.h"
#include "pipeline.h"
#include "worker_state.h"

#define RING_PACKETS 256

struct hb_handover {
    uint32_t workers;
    struct rte_ring *ring[]; /* from * workers + to */
};

static struct rte_ring *make_ring(uint32_t from, uint32_t to)
{
    static uint32_t made; /* names are of the process; the main lcore alone makes rings */
    char name[RTE_RING_NAMESIZE];

    snprintf(name, sizeof(name), "nat_%u_%u_%u", made++, from, to);
    return rte_ring_create(name, RING_PACKETS, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

struct hb_handover *hb_handover_create(uint32_t workers, bool *needed)
{
    size_t rings = (size_t)workers * workers;
    struct hb_handover *handover;

    *needed = workers > 1;
    if (!*needed)
        return NULL;
    handover =
        rte_zmalloc("hb_handover", sizeof(*handover) + rings * sizeof(struct rte_ring *), 64);
    if (handover == NULL)
        return NULL;
    handover->workers = workers;
    for (uint32_t from = 0; from < workers; from++) {
        for (uint32_t to = 0; to < workers; to++) {
            struct rte_ring **ring = &handover->ring[from * workers + to];

            if (from == to)
                continue;
            *ring = make_ring(from, to);
            if (*ring != NULL)
                continue;
            hb_handover_destroy(handover);
            return NULL;
        }
    }
    return handover;
}

void hb_handover_destroy(struct hb_handover *handover)
{
    void *mbuf;

    if (handover == NULL)
        return;
    for (uint32_t i = 0; i < handover->workers * handover->workers; i++) {
        while (handover->ring[i] != NULL && rte_ring_dequeue(handover->ring[i], &mbuf) == 0)
            rte_pktmbuf_free(mbuf);
        rte_ring_free(handover->ring[i]);
    }
    rte_free(handover);
}

bool hb_handover_give(struct hb_worker *worker, uint32_t to, struct rte_mbuf *mbuf)
{
    const struct hb_handover *handover = worker->config.handover;

    return handover != NULL && to < handover->workers &&
           rte_ring_sp_enqueue(handover->ring[worker->config.index * handover->workers + to],
                               mbuf) == 0;
}

bool hb_handover_take(struct hb_worker *worker, const struct hb_generation *generation)
{
    const struct hb_handover *handover = worker->config.handover;
    struct rte_mbuf *mbufs[HB_BURST];
    bool any = false;

    for (uint32_t from = 0; from < handover->workers; from++) {
        struct rte_ring *ring = handover->ring[from * handover->workers + worker->config.index];
        unsigned count;

        if (ring == NULL)
            continue;
        count = rte_ring_sc_dequeue_burst(ring, (void **)mbufs, HB_BURST, NULL);
        if (count == 0)
            continue;
        worker->run(worker, generation, mbufs, (uint16_t)count);
        any = true;
    }
    return any;
}
