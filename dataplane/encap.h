/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * encap.h: what the files behind stage_encap share; one a family of forwarding modes.
 *
 *     stage_encap.c      the short way of plain packets; all else:
 *     encap.c            which mode, and what becomes of a packet that does not fit
 *     encap_room.c       the old link header off, room for the new headers
 *     encap_tunnel.c     IPIP, GUE, GRE, VXLAN: a header around the packet
 *     encap_direct.c     L2, L3DSR: the packet itself, by another link header
 *     encap_fragment.c   packets that are cut into pieces
 *
 * A mode's function gets a packet that has its backend, and puts the headers in front of it.
 * It returns HB_NO_FAULT, or the reason (enum hb_drop_reason) for which the packet must be dropped,
 * which the caller does. Packet path: the worker's lcore only.
 */
#ifndef HB_DATAPLANE_ENCAP_H
#define HB_DATAPLANE_ENCAP_H

#include "stages.h"
#include "worker_state.h"

/* Any mode, any mbuf, any size. The packet is ready to be sent, or it has ended. (encap) */
void hb_encapsulate(struct hb_batch *batch, struct hb_packet *packet);

/* The headers of the backend's mode, whatever the size. (encap) */
uint8_t hb_encap_by_mode(struct hb_batch *batch, struct hb_packet *packet);

/* Takes off what is in front of and behind the IP packet, which may be written from then on, and
 * sees to it that `room` bytes can be put in front. The packet's offsets stay those of the frame.
 * (encap_room) */
uint8_t hb_encap_take_out(struct hb_packet *packet, uint32_t room);

/* The same, and makes the room: `size` bytes, at most HB_REWRITE_BYTES. *at: where they go; the IP
 * packet begins behind them. (encap_room) */
uint8_t hb_encap_room(struct hb_packet *packet, uint16_t size, uint8_t **at);

/* The modes. (encap_tunnel, encap_direct) */
uint8_t hb_encap_tunnel(struct hb_batch *batch, struct hb_packet *packet);
uint8_t hb_encap_l2(struct hb_packet *packet);
uint8_t hb_encap_l3dsr(struct hb_packet *packet);

/* A packet that is longer than its backend's link allows and may be cut: sends it in pieces, by the
 * HB_REWRITE_FRAGMENT_... flag of its backend. On HB_NO_FAULT the packet has ended.
 * (encap_fragment) */
uint8_t hb_encap_in_pieces(struct hb_batch *batch, struct hb_packet *packet);

/* Bits that are the same for all packets of a flow and spread flows: for flow labels, source ports
 * and outer sources. Mixed with the key once more: the flow hash itself is never shown. */
static inline uint64_t hb_encap_entropy(const struct hb_packet *packet,
                                        const struct hb_hash_key *key)
{
    return hb_mix(packet->flow.hash ^ key->word[0], key->word[1] | 1);
}

#endif
