/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pipeline.c: a packet's way through the balancer, to be read from here.
 *
 * Every burst passes the steps below. A packet leaves the way early by one of two side exits:
 * hb_drop (a named reason, counted) or hb_punt (to the kernel, unchanged). Some fragments are held
 * for a while. So for each worker received + made = sent + punted + dropped + held, exactly, after
 * every burst, where made are packets of its own: ICMP errors and resets.
 */
#include <rte_prefetch.h>

#include "answer.h"
#include "pipeline.h"
#include "stages.h"
#include "worker_state.h"

/* Makes a batch of the burst. Returns its bytes. */
static uint64_t take_burst(struct hb_batch *batch, struct rte_mbuf *const mbufs[], uint16_t count)
{
    uint64_t bytes = 0;

    batch->count = count;
    batch->ended = 0;
    batch->aside_count = 0;
    for (uint16_t i = 0; i < count; i++) {
        struct hb_packet *packet = &batch->packet[i];

        rte_prefetch0(rte_pktmbuf_mtod(mbufs[i], void *));
        packet->mbuf = mbufs[i];
        packet->service = HB_NO_SERVICE;
        bytes += rte_pktmbuf_pkt_len(mbufs[i]);
    }
    return bytes;
}

/* Without a generation no packet is ours. */
static void refuse_all(struct hb_batch *batch)
{
    struct hb_packet *packet;

    HB_BATCH_FOREACH (packet, batch)
        hb_punt(batch, packet, HB_DROP_NO_GENERATION);
}

/* Shows one packet of the burst to the sketch of top talkers. */
static void sample_talker(struct hb_batch *batch)
{
    struct hb_talkers *talkers = &batch->worker->talkers;
    const struct hb_packet *packet;
    uint16_t service;

    if (batch->count == 0)
        return;
    packet = &batch->packet[hb_talkers_choose(talkers, batch->count)];
    service = (uint16_t)batch->generation->services[packet->service].id;
    if (hb_flow_is_ipv6(&packet->flow))
        hb_talkers_add(talkers, HB_FAMILY_IPV6, packet->flow.addresses, service,
                       packet->inner_length);
    else
        hb_talkers_add(talkers, HB_FAMILY_IPV4, &packet->flow.source, service,
                       packet->inner_length);
    batch->worker->counters->sampled++;
}

/* What only some services have. */
static void run_extras(struct hb_batch *batch)
{
    uint8_t features = batch->generation->features;

    if ((features & (HB_HAS_LIST | HB_HAS_LIMIT)) != 0)
        hb_stage_admit(batch);
    if ((features & HB_HAS_QUIC) != 0)
        hb_stage_quic(batch);
}

/* The way of a batch that was taken in. */
static void run(struct hb_batch *batch)
{
    struct hb_worker *worker = batch->worker;

    if (batch->generation == NULL)
        refuse_all(batch);

    /* 2. Read the headers: Ethernet, VLAN, IPv4 or IPv6, TCP or UDP. Note what is wrong. Hash the
     * flow and fetch its place in the flow cache. */
    hb_stage_parse(batch);

    /* 3. Find the service. Not a VIP: to the kernel. A VIP, but unfit or no such port: drop. */
    hb_stage_service(batch);

    /* 4. What is not a plain packet of a flow. ICMP: answer it, or find the backend it is for.
     * Answers of NAT backends: translate and send them.
     * Fragments: put the ports of their datagram on them, so that they go on like the others. */
    if (unlikely(batch->aside_count != 0)) {
        hb_stage_icmp(batch);
        if (batch->generation->nat != NULL)
            hb_stage_return(batch);
        hb_stage_fragment(batch);
    }

    /* What is left is for a service: note who sends much. */
    sample_talker(batch);

    /* 5. Sources that a service does not want; connection ids of QUIC that name a backend. */
    if (batch->count != 0 && unlikely(batch->generation->features != 0))
        run_extras(batch);

    /* 6. Ask the flow cache: a flow stays on its backend while that is there and not down. */
    hb_stage_flow(batch);

    /* 7. All others: by the lookup table of the service's pool. Remember the new flows. */
    hb_stage_select(batch);
    if (unlikely(batch->aside_count != 0))
        hb_rejoin(batch, HB_SHAPE_DECIDED);
    if (unlikely(batch->generation != NULL && batch->generation->mss_max != NULL))
        hb_stage_mss(batch);

    /* 8. Put the backend's Ethernet and tunnel headers in front of the IP packet. */
    hb_stage_encap(batch);

    /* 9. Send, each packet on its backend's port. */
    hb_stage_output(batch);

    /* 10. And what belongs to the kernel, and what goes back. */
    hb_punt_flush(worker);
    if (unlikely(worker->answers_count != 0))
        hb_answer_flush(worker);
}

/* Fragments that were held go the way from its start, like a burst of their own. */
static __attribute__((noinline)) void run_released(struct hb_batch *batch)
{
    struct hb_worker *worker = batch->worker;
    struct rte_mbuf *mbufs[HB_BURST];

    while (worker->released > 0) {
        uint16_t count = 0;

        while (count < HB_BURST && worker->released > 0) {
            mbufs[count++] = hb_fragment_next_out(worker->fragments, HB_FRAGMENT_READY);
            worker->released--;
        }
        take_burst(batch, mbufs, count);
        run(batch);
    }
    worker->counters->held_packets = hb_fragment_held(worker->fragments);
}

void hb_pipeline_run(struct hb_worker *worker, const struct hb_generation *generation,
                     struct rte_mbuf *const mbufs[], uint16_t count)
{
    struct hb_batch *batch = &worker->batch;

    /* 1. Count the burst in. */
    batch->worker = worker;
    batch->generation = generation;
    worker->counters->rx_bytes += take_burst(batch, mbufs, count);
    worker->counters->rx_packets += count;
    run(batch);
    if (unlikely(worker->released != 0))
        run_released(batch);
    worker->counters->flows = hb_flow_table_used(worker->flows);
}
