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
    HB_EVENT_UDP, /* and whatever has ports but no state that is read: SCTP */
    HB_EVENTS,
};

/* What a packet is when it is not a plain one of a flow. */
enum hb_shape {
    HB_SHAPE_PLAIN,
    HB_SHAPE_ICMP,     /* ICMP or ICMPv6 */
    HB_SHAPE_FRAGMENT, /* of whatever protocol */
    HB_SHAPE_RETURN,   /* an answer on its way back to the client (NAT) */
    HB_SHAPE_DECIDED,  /* its backend is known, and it is none of its flow's business: it comes back
                          behind stage_select */
};

struct hb_packet {
    /* The packet, until it has ended: NULL then. (pipeline) */
    alignas(64) struct rte_mbuf *mbuf;

    const struct hb_backend *backend; /* (stage_flow for known flows, else stage_select) or NULL */

    /* Its flow: what is written on it (stage_parse; ports 0 where there are none to be read) and
     * the hash of that (stage_parse too). `addresses` points into an IPv6 packet. */
    struct hb_flow_query flow;

    /* What is written on it: 10 bytes side by side, so that one store writes them. (stage_parse) */
    uint16_t inner_length;  /* of the IP packet by its own header, bytes; Ethernet padding is not in
                               it */
    uint8_t l3_offset;      /* from the start of the frame */
    uint8_t traffic_class;  /* IPv4 TOS or IPv6 traffic class: DSCP and ECN */
    uint8_t event;          /* enum hb_flow_event */
    uint8_t fault;          /* enum hb_drop_reason if it is for a VIP; HB_NO_FAULT */
    bool dont_fragment;     /* IPv4 DF; true for IPv6, which routers never fragment */
    uint8_t shape;          /* enum hb_shape; only read where there is a fault */
    uint16_t l4_offset;     /* from the start of the frame, when the ports were read */
    uint8_t outer_protocol; /* what an outer header calls the packet: 4 or 41 */
    uint8_t reserved;

    uint16_t service;    /* index (stage_service); HB_NO_SERVICE until it is known (pipeline) */
    uint16_t backend_id; /* with `backend` */
};
_Static_assert(sizeof(struct hb_packet) == 64, "one cache line");

struct hb_batch {
    struct hb_worker *worker;
    const struct hb_generation *generation; /* the one that decides for all packets of this burst */
    uint16_t count;                         /* of packets */
    uint16_t ended;                         /* of them that have ended */
    uint16_t aside_count;
    bool alike; /* all are plain and for one VIP, protocol and port (stage_parse) */
    struct hb_packet packet[HB_BURST];
    struct hb_packet aside[HB_BURST]; /* not plain: see hb_set_aside */
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

/* Takes a packet out of the stages' way: those for its shape alone see it, walking over `aside`
 * themselves and skipping what has ended (mbuf NULL). They end it or set its backend; what is left
 * comes back by hb_rejoin. So plain packets never pay for the others. */
static inline void hb_set_aside(struct hb_batch *batch, struct hb_packet *packet,
                                enum hb_shape shape)
{
    struct hb_packet *aside = &batch->aside[batch->aside_count++];

    *aside = *packet;
    aside->shape = shape;
    packet->mbuf = NULL;
    batch->ended++;
}

/* Brings back the packets of one shape that have not ended. Between two stages only. */
static inline void hb_rejoin(struct hb_batch *batch, enum hb_shape shape)
{
    uint16_t kept = 0;

    for (uint16_t i = 0; i < batch->aside_count; i++) {
        if (batch->aside[i].mbuf == NULL)
            continue;
        if (batch->aside[i].shape == shape)
            batch->packet[batch->count++] = batch->aside[i];
        else
            batch->aside[kept++] = batch->aside[i];
    }
    batch->aside_count = kept;
    batch->ended = 0;
}

/* Walks over all packets. The loop must not be left by break or return: packets that have ended
 * would stay. */
#define HB_BATCH_FOREACH(packet, batch)                                                            \
    for (const struct hb_packet *end_ = ((packet) = (batch)->packet) + (batch)->count;             \
         (packet) != end_ || hb_batch_end(batch); (packet)++)

#endif
