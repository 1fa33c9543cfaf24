/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nat_frame.h: a packet taken out of its frame, translated and put into another one.
 *
 *     if (!hb_nat_begin(batch, packet, &header, room)) return false;    dropped, by name
 *     hb_nat_set_end(&header, ...);
 *     hb_nat_end_frame(packet, l2, l2_size);
 *
 * TTL policy. NAT makes the balancer a router for the packets of these flows, other than a tunnel,
 * in which the packet travels as it came: one hop is taken from each packet in each direction, and
 * one that has none left is dropped (RFC 1812, section 5.3.1). So a loop of routes between balancer
 * and backend ends.
 */
#ifndef HB_DATAPLANE_NAT_FRAME_H
#define HB_DATAPLANE_NAT_FRAME_H

#include "batch.h"
#include "nat_header.h"

/* Makes the packet one that may be written, without Ethernet header and padding, and takes a hop.
 * Its headers are in *header, and `room` bytes can be put in front. False: the packet was dropped.
 */
bool hb_nat_begin(struct hb_batch *batch, struct hb_packet *packet, struct hb_nat_header *header,
                  uint32_t room);

/* Puts an Ethernet header in front. hb_nat_begin was given its size as room. */
void hb_nat_end_frame(struct hb_packet *packet, const uint8_t *l2, uint16_t l2_size);

#endif
