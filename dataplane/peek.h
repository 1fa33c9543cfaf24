/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peek.h: which backend serves a flow, without touching the flow.
 *
 * For packets that are about a flow and not of it (ICMP errors, BL-22), and for fragments, which
 * may arrive on another worker than the rest of their flow: NICs spread both by addresses alone
 * (BL-23, BL-28).
 *
 * The order of the answers is that of a packet in the middle of the flow: the entry of this worker,
 * that of another one, the lookup table. Other workers' caches are only asked where the table may
 * say something else than they do: on an unsettled slot, or when the pool bounds its load. They are
 * read while their owners write: such an answer may be torn or missed, so it may send one ICMP
 * message or one fragmented datagram to the wrong backend, never more, and it is checked to be a
 * backend of the pool that serves.
 */
#ifndef HB_DATAPLANE_PEEK_H
#define HB_DATAPLANE_PEEK_H

#include "batch.h"

/* The index of the service that a flow is addressed to, or HB_SERVICE_NONE or HB_SERVICE_NOT_VIP.
 */
int32_t hb_service_of(const struct hb_generation *generation, const struct hb_flow_query *flow);

enum hb_peek {
    HB_PEEK_NONE,      /* the pool has no usable backend */
    HB_PEEK_HERE,      /* an entry of this worker */
    HB_PEEK_ELSEWHERE, /* an entry of another one */
    HB_PEEK_TABLE,     /* there is no entry */
    HB_PEEK_UNTRACKED, /* the table, as for all packets of this flow */
};

/* *backend is the id unless HB_PEEK_NONE. `flow` is complete, its hash included. */
enum hb_peek hb_peek_backend(const struct hb_batch *batch, uint16_t service,
                             const struct hb_flow_query *flow, uint16_t *backend);

/* The part of it that asks other workers: HB_BACKEND_NONE when none has an entry that decides, or
 * none need be asked. */
uint16_t hb_peek_elsewhere(const struct hb_batch *batch, uint16_t service,
                           const struct hb_flow_query *flow);

/* Whether this worker has an entry for the flow, good or not. */
bool hb_peek_has_entry(const struct hb_batch *batch, const struct hb_flow_query *flow);

#endif
