/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nat_icmp.h: ICMP errors about packets of NAT and full NAT, handed on with their quotes
 * translated.
 *
 *     from a backend, about a request          to the client: as if the VIP had sent it
 *     from a router behind the balancer        the same
 *     from a router or a client about an       to the backend that sent the answer: as if the
 *     answer, addressed to the VIP             client had sent it; with full NAT, the source
 *                                              address
 *
 * RFC 5508 asks for the NAT's own address in errors from the side of the backends (section 4.2.2),
 * which here is the VIP. It would leave the address of a router on the clients' side as it is
 * (4.2.1). But the way on often leads by that same router, since a balancer mostly has one leg, and
 * a router drops what comes in with its own address. The other end of the flow is an address whose
 * packets pass.
 */
#ifndef HB_DATAPLANE_NAT_ICMP_H
#define HB_DATAPLANE_NAT_ICMP_H

#include "batch.h"
#include "nat_quote.h"

/* An error from the side of the backends, NAT without sessions. False: it was dropped. */
bool hb_nat_icmp_return(struct hb_batch *batch, struct hb_packet *packet,
                        struct hb_nat_header *outer);

/* An error from the side of the clients, whose backend is set. False: it was dropped. */
bool hb_nat_icmp_request(struct hb_batch *batch, struct hb_packet *packet,
                         struct hb_nat_header *outer);

/* Counts an error that came from the side of the backends, if it says that the backend can't be
 * reached: as for tunnels, any unreachable but "fragmentation needed". */
void hb_nat_note_unreachable(struct hb_worker *worker, const struct hb_nat_header *outer,
                             uint16_t backend);

/* The flow that a packet belongs to as the client sees it, from its headers; `answer`: the packet
 * goes to the client. */
struct hb_flow_key hb_nat_flow_key(const struct hb_nat_header *header, bool answer);

#endif
