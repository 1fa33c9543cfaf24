/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * full_nat.h: requests and answers of full NAT, by their sessions (nat_session.h).
 *
 * Which worker. A session lives on the worker that got its first request; all requests of a flow
 * come to that one. Its answers are addressed to a source address, and the network card may give
 * them to any worker; so the port of the source address names the worker that has the session
 * (hb_nat_worker_of), and others hand the packet over by a ring that two workers alone share
 * (nat_handover.h). It counts as sent by the one and as received by the other.
 *
 * A backend that is down, or gone, or whose drain is over, ends its sessions at the client's next
 * packet. With a tunnel that packet would go to another server, whose RST says that it knows
 * nothing of the connection; here the balancer says so itself: the client gets a RST, and so does
 * the backend while it is configured, which frees its port for others (nat_resets, drain_resets). A
 * SYN or a datagram opens a new session at once. Until then answers pass.
 *
 * A TCP packet that opens nothing and has no session, as after a restart of the dataplane, is
 * dropped (nat_no_session): another balancer or another route may have the connection.
 */
#ifndef HB_DATAPLANE_FULL_NAT_H
#define HB_DATAPLANE_FULL_NAT_H

#include "batch.h"
#include "nat_header.h"

/* A request, headers read, room in front. Sets the backend that the session has. False: dropped. */
bool hb_full_nat_forward(struct hb_batch *batch, struct hb_packet *packet,
                         struct hb_nat_header *header);

/* An answer, as it came; sets service and backend. False: dropped, or handed to another worker. */
bool hb_full_nat_return(struct hb_batch *batch, struct hb_packet *packet, uint16_t room);

/* An ICMP error about an answer, from the side of the clients. False: dropped. */
bool hb_full_nat_icmp_request(struct hb_batch *batch, struct hb_packet *packet,
                              struct hb_nat_header *outer, struct hb_nat_header *quote);

/* Each turn of the loop: ends sessions whose time is over, as many places as are due. */
void hb_full_nat_age(struct hb_worker *worker, uint32_t elapsed_ms);

#endif
