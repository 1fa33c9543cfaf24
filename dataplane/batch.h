/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * batch.h: the packets of one burst on their way through the pipeline.
 *
 * Each packet has a context, filled stage by stage; the comments name the stage that writes a
 * field. The batch keeps a list of the packets that are still under way. A stage ends a packet by
 * hb_drop, hb_punt or sending it, all of which clear `mbuf`; HB_BATCH_FOREACH then takes it off the
 * list in passing, so that the next stage sees only what it has to work on.
 *
 * A batch belongs to one worker and is used anew for each burst. Nothing in it outlives the burst.
 */
#ifndef HB_DATAPLANE_BATCH_H
#define HB_DATAPLANE_BATCH_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "generation.h"
#include "halbach/drop_reasons.h"
#include "halbach/flow_key.h"

#define HB_BURST    64
#define HB_NO_FAULT HB_DROP_COUNT

struct hb_worker;

struct hb_packet {
    /* The packet, until it has ended: NULL then. (pipeline) */
    alignas(64) struct rte_mbuf *mbuf;

    /* What is written on it. (stage_parse) */
    struct hb_flow_key flow; /* ports are 0 where there are none to be read */
    uint16_t l3_offset;      /* from the start of the frame */
    uint16_t
        inner_length; /* of the IP packet by its own header, bytes; Ethernet padding is not in it */
    uint8_t traffic_class; /* IPv4 TOS or IPv6 traffic class: DSCP and ECN */
    bool dont_fragment;    /* IPv4 DF; true for IPv6, which routers never fragment */
    uint8_t tcp_flags;
    uint8_t fault; /* enum hb_drop_reason if it is for a VIP; HB_NO_FAULT */

    const struct hb_service *service; /* (stage_service) NULL until it is known */

    uint64_t hash;                    /* (stage_flow) */
    const struct hb_backend *backend; /* (stage_flow for known flows, else stage_select) or NULL */
    uint16_t backend_id;              /* the same */

    uint32_t frame_length; /* as sent, bytes (stage_encap) */
};
_Static_assert(sizeof(struct hb_packet) == 128, "two cache lines");
_Static_assert(offsetof(struct hb_packet, hash) >= 64, "line one holds what parsing writes");

struct hb_batch {
    struct hb_worker *worker;
    const struct hb_generation *generation; /* the one that decides for all packets of this burst */
    uint16_t count;                         /* of live */
    uint8_t live[HB_BURST];                 /* indexes of the packets under way */
    struct hb_packet packet[HB_BURST];
};
_Static_assert(HB_BURST <= UINT8_MAX + 1, "an index fits its type");

/* Where a walk over the live packets stands. */
struct hb_batch_cursor {
    uint16_t read; /* of batch->live */
    uint16_t kept;
};

/* The next live packet, or NULL at the end. Packets that ended since the last call leave the list.
 */
static inline struct hb_packet *hb_batch_next(struct hb_batch *batch, struct hb_batch_cursor *at)
{
    if (at->read > 0) {
        uint8_t previous = batch->live[at->read - 1];

        batch->live[at->kept] = previous;
        at->kept += batch->packet[previous].mbuf != NULL;
    }
    if (at->read == batch->count) {
        batch->count = at->kept;
        return NULL;
    }
    return &batch->packet[batch->live[at->read++]];
}

/* Walks over all live packets. The loop must not be left by break or return: the list would keep
 * packets that have ended. */
#define HB_BATCH_FOREACH(packet, batch)                                                            \
    for (struct hb_batch_cursor at_ = {0, 0}; ((packet) = hb_batch_next((batch), &at_)) != NULL;)

#endif
