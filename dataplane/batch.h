/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * batch.h: the packets of one burst on their way through the pipeline.
 *
 * Each packet has a context of one cache line, filled stage by stage; the comments name the stage
 * that writes a field. Nothing is cleared between bursts: a field holds rubbish until its stage has
 * written it, and no stage reads what a later one writes. A stage ends a packet by hb_drop, hb_punt
 * or sending it, the first two of which clear `mbuf` and count in `ended`; at the end of
 * HB_BATCH_FOREACH the contexts of the others move up if any did, so that the next stage sees only
 * what it has to work on, side by side. So a pointer to a context is good within one stage.
 *
 * A batch belongs to one worker and is used anew for each burst. Nothing in it outlives the burst.
 */
#ifndef HB_DATAPLANE_BATCH_H
#define HB_DATAPLANE_BATCH_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "flow_table.h"
#include "generation.h"
#include "halbach/drop_reasons.h"

#define HB_BURST      64
#define HB_NO_FAULT   HB_DROP_COUNT
#define HB_NO_SERVICE UINT16_MAX
_Static_assert(HB_SERVICES_MAX <= HB_NO_SERVICE, "an index is never the sign for none");

struct hb_worker;

/* What a packet says about its flow; stage_flow.c tells what follows from it. */
enum hb_flow_event {
    HB_EVENT_SYN,
    HB_EVENT_ACK,
    HB_EVENT_FIN,
    HB_EVENT_RST,
    HB_EVENT_ODD, /* flags that no stack sends */
    HB_EVENT_UDP,
    HB_EVENTS,
};

struct hb_packet {
    /* The packet, until it has ended: NULL then. (pipeline) */
    alignas(64) struct rte_mbuf *mbuf;

    const struct hb_backend *backend; /* (stage_flow for known flows, else stage_select) or NULL */

    /* Its flow: what is written on it (stage_parse; ports 0 where there are none to be read) and
     * the hash of that (stage_parse too). `addresses` points into an IPv6 packet. */
    struct hb_flow_query flow;

    uint16_t service;    /* index (stage_service); HB_NO_SERVICE until it is known (pipeline) */
    uint16_t backend_id; /* with `backend` */

    /* What is written on it. (stage_parse) */
    uint16_t inner_length; /* of the IP packet by its own header, bytes; Ethernet padding is not in
                              it */
    uint8_t l3_offset;     /* from the start of the frame */
    uint8_t traffic_class; /* IPv4 TOS or IPv6 traffic class: DSCP and ECN */
    uint8_t event;         /* enum hb_flow_event */
    uint8_t fault;         /* enum hb_drop_reason if it is for a VIP; HB_NO_FAULT */
    bool dont_fragment;    /* IPv4 DF; true for IPv6, which routers never fragment */
};
_Static_assert(sizeof(struct hb_packet) == 64, "one cache line");

struct hb_batch {
    struct hb_worker *worker;
    const struct hb_generation *generation; /* the one that decides for all packets of this burst */
    uint16_t count;                         /* of packets */
    uint16_t ended;                         /* of them that have ended */
    struct hb_packet packet[HB_BURST];
};

/* Takes out the packets that have ended. The order stays. */
static inline void hb_batch_compact(struct hb_batch *batch)
{
    uint16_t kept = 0;

    for (uint16_t i = 0; i < batch->count; i++) {
        if (batch->packet[i].mbuf != NULL && kept++ != i)
            batch->packet[kept - 1] = batch->packet[i];
    }
    batch->count = kept;
    batch->ended = 0;
}

/* The end of a walk: always false. */
static inline bool hb_batch_end(struct hb_batch *batch)
{
    if (batch->ended != 0)
        hb_batch_compact(batch);
    return false;
}

/* Walks over all packets. The loop must not be left by break or return: packets that have ended
 * would stay. */
#define HB_BATCH_FOREACH(packet, batch)                                                            \
    for (const struct hb_packet *end_ = ((packet) = (batch)->packet) + (batch)->count;             \
         (packet) != end_ || hb_batch_end(batch); (packet)++)

#endif
