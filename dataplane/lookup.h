/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lookup.h: where the next packet of a flow would go, and why (HB_MSG_LOOKUP).
 *
 * The same steps as the packet path takes, for a person: service, slot, owner, flow entry. Main
 * lcore.
 */
#ifndef HB_DATAPLANE_LOOKUP_H
#define HB_DATAPLANE_LOOKUP_H

#include "generation.h"
#include "halbach/protocol.h"
#include "worker.h"

/* Fills all of *reply but its header. `generation` may be NULL: nothing is a service then. */
void hb_lookup_flow(const struct hb_generation *generation, struct hb_worker *const *workers,
                    uint32_t workers_count, const struct hb_flow_key *flow,
                    struct hb_lookup_reply *reply);

#endif
