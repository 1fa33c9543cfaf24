/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nat_client.h: with full NAT a server sees the balancer as its client. Two ways to tell it who the
 * client is.
 *
 * PROXY protocol v2 over TCP. The header is put in front of the client's first byte: on the ACK
 * that ends the handshake, so that servers that speak first get it as well, and again on every
 * packet that begins at that byte until the server has acknowledged the header, so that a loss is
 * repaired by the client's own retransmission. From then on the server is `shift` bytes further in
 * the client's stream than the client: sequence numbers of requests grow by that, acknowledgements
 * and SACK blocks of answers shrink by it (RFC 9293, RFC 2018). The MSS that the server announces
 * is cut so that a full segment with the header fits the link. A SYN that carries data (TCP Fast
 * Open) is dropped by name; clients fall back to one without.
 *
 * PROXY protocol v2 over UDP. The header is in front of every datagram, since none is sure to
 * arrive; a datagram that does not fit with it is dropped (oversize), fragments are.
 *
 * TCP option. The client's port and address behind the fixed header, as option 254 (RFC 3692) or
 * 28, 8 or 20 bytes: on the SYN and on packets that begin at the client's first byte until the
 * server has sent something behind its SYN. Where the options or the packet have no room it is left
 * out; the handshake's ACK has room always, except for the most unusual options.
 */
#ifndef HB_DATAPLANE_NAT_CLIENT_H
#define HB_DATAPLANE_NAT_CLIENT_H

#include "batch.h"
#include "nat_header.h"
#include "nat_session.h"

/* Before the addresses of a request are exchanged. False: it was dropped. */
bool hb_nat_tell_client(struct hb_batch *batch, struct hb_packet *packet,
                        struct hb_nat_header *header, struct hb_nat_session *session);

/* An answer, for which the numbers are taken back. Pure; `mss_max` is what a segment may hold. */
void hb_nat_hide_shift(struct hb_nat_header *header, struct hb_nat_session *session,
                       uint16_t mss_max);

#endif
