/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hop_compute.h: one next hop from its parts: route, link and neighbour.
 *
 * Pure. Whatever is missing becomes `problem`, a sentence for people; the first obstacle on the way
 * counts.
 */
#ifndef HB_CONTROL_HOP_COMPUTE_H
#define HB_CONTROL_HOP_COMPUTE_H

#include <stdbool.h>

#include "neighbours.h"
#include "netlink.h"
#include "next_hop.h"

/* Whether packets can be sent by this route, as far as the route alone tells. */
bool hb_next_hop_usable(const struct hb_netlink_route *route);

/* Sets every byte of `hop`, so that hops can be compared by memcmp(). NULL stands for a part that
 * is not known: the route has not been looked up, the link is not there, there is no memory for the
 * neighbour. */
void hb_next_hop_compute(struct hb_next_hop *hop, const struct hb_address *address,
                         const struct hb_netlink_route *route, const struct hb_netlink_link *link,
                         const struct hb_neighbour *neighbour);

#endif
