/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stages.h: the steps of the pipeline, in the order of a packet's way, and its side exits.
 *
 * Each stage works on all live packets of a batch and touches only what its worker owns and the
 * generation, which nobody changes. Called by the worker's lcore; no locks, no allocation, no
 * system calls, no logging.
 */
#ifndef HB_DATAPLANE_STAGES_H
#define HB_DATAPLANE_STAGES_H

#include "batch.h"
#include "flow_table.h"
#include "variant.h"

/* Reads the headers: where the IP packet begins, its flow and the hash of that, and what is wrong
 * with it. Fetches what stage_flow will read first. */
void hb_stage_parse(struct hb_batch *batch);

/* The same without hash and prefetch, each packet check by check: what the shortcuts of
 * hb_stage_parse are compared with. */
void hb_stage_parse_with_care(struct hb_batch *batch);

/* Whose packet is it? Ours: `service`. The kernel's: punt. Ours but unfit to forward: drop. */
void hb_stage_service(struct hb_batch *batch);

/* Whether a packet that is not for a VIP is an answer of a NAT backend; `service` and `backend_id`
 * are set then, as far as they are known. For generations with `nat`. (stage_return) */
bool hb_is_return(const struct hb_batch *batch, struct hb_packet *packet);

/* Translates the answers that stage_service set aside and sends them to the clients. */
void hb_stage_return(struct hb_batch *batch);

/* Works on the ICMP messages that stage_service set aside: answers echoes, and finds the backends
 * that errors about their packets must reach (HB_SHAPE_DECIDED). */
void hb_stage_icmp(struct hb_batch *batch);

/* Works on the fragments that stage_service set aside, and brings back those that can go on. */
void hb_stage_fragment(struct hb_batch *batch);

/* A fragment of an answer, as it came, gets the ports of its datagram and is like a whole packet
 * then. False: it was dropped, or is held until the first one comes. hb_stage_fragment follows in
 * the same burst. (stage_fragment) */
bool hb_fragment_find_ports(struct hb_batch *batch, struct hb_packet *packet);

/* Drops the fragments that have waited too long for the first of their datagram. Each turn, while
 * some wait. (stage_fragment) */
void hb_fragments_age(struct hb_worker *worker);
/* Drops the packets of sources that their service denies, and, where flows are not tracked, SYNs
 * above its limit. For generations with HB_HAS_LIST or HB_HAS_LIMIT. */
void hb_stage_admit(struct hb_batch *batch);

/* Packets for QUIC servers whose connection id names a backend get that one and are set aside from
 * flow cache and lookup table (HB_SHAPE_DECIDED). For generations with HB_HAS_QUIC. */
void hb_stage_quic(struct hb_batch *batch);

/* Packets of known flows get the backend of their flow. */
void hb_stage_flow(struct hb_batch *batch);

/* The others get the backend that the lookup table says, and their flow is remembered. */
void hb_stage_select(struct hb_batch *batch);

/* Lowers the MSS that clients offer, for services that ask for it. */
void hb_stage_mss(struct hb_batch *batch);

/* Takes off the Ethernet header and puts the backend's in front, tunnel included. */
void hb_stage_encap(struct hb_batch *batch);

/* Hands the packets to the ports. */
void hb_stage_output(struct hb_batch *batch);

/* Follows a flow's entry: true when it decides for this packet (whose backend is then set and the
 * entry refreshed), false when the packet must be selected anew. (stage_flow) */
bool hb_flow_follow(struct hb_batch *batch, struct hb_packet *packet, hb_flow_ref entry);

/* A server has ended a flow, by FIN or RST (`event`): moves its entry on, if there is one here.
 * (stage_return) */
void hb_flow_note_answer(struct hb_batch *batch, const struct hb_flow_key *flow, uint8_t event);

/* The state of a flow after a packet; HB_FLOW_FREE when a flow in `state` (HB_FLOW_FREE: not known)
 * may not be made or go on by it. (stage_flow) */
uint8_t hb_flow_next_state(uint8_t state, uint8_t event);

/* What a service's limits say about a packet that no entry decides for. (stage_admit) */
enum hb_admission {
    HB_ADMITTED, /* it goes on, and may make an entry */
    HB_PASSED,   /* it goes on by the lookup table, and makes none */
    HB_REFUSED,  /* it was dropped */
};
enum hb_admission hb_admit_flow(struct hb_batch *batch, struct hb_packet *packet,
                                hb_flow_ref entry);

/* A new entry of a service that limits its flows counts among them. (stage_admit) */
void hb_admit_count(struct hb_batch *batch, const struct hb_packet *packet, hb_flow_ref entry);

/* Ends a packet: counts the reason, for the service too when it is known, and frees it. (drop) */
void hb_drop(struct hb_batch *batch, struct hb_packet *packet, enum hb_drop_reason reason);

/* The counting alone: the caller keeps the packet's buffer. (drop) */
void hb_count_drop(struct hb_batch *batch, const struct hb_packet *packet,
                   enum hb_drop_reason reason);

/* Ends a packet, as it came, that does not fit its tunnel or link, and tells its sender that `mtu`
 * bytes would. (icmp_make) */
void hb_too_big(struct hb_batch *batch, struct hb_packet *packet, uint16_t mtu);

/* The entry decides no more for this packet. Ends the flow by reset if its backend says so: true,
 * and the packet was dropped, or has become one for that backend. (drain_reset) */
bool hb_reset_flow(struct hb_batch *batch, struct hb_packet *packet, hb_flow_ref entry);

/* Ends a TCP packet, whole or a first fragment, that its flow's backend must not get: it is counted
 * as dropped (reset), and its sender gets a RST. With `backend` the packet goes on as one for that
 * backend, in a frame as it might have come; it has ended when memory is short. (drain_reset) */
void hb_reset_ends(struct hb_batch *batch, struct hb_packet *packet, bool backend);

/* The same for a packet that has left its batch. (drop) */
void hb_drop_mbuf(struct hb_worker *worker, struct rte_mbuf *mbuf, enum hb_drop_reason reason);

/* Why a port did not take a packet: its link is down, as far as the main lcore knows, or its queue
 * is full. (drop) */
enum hb_drop_reason hb_tx_refusal(const struct hb_worker *worker, uint16_t port);

/* Ends a packet by giving it to the kernel, unchanged. Where there is no way to the kernel it is
 * dropped for `reason`. (punt) */
void hb_punt(struct hb_batch *batch, struct hb_packet *packet, enum hb_drop_reason reason);

/* Sends what hb_punt collected. (punt) */
void hb_punt_flush(struct hb_worker *worker);

/* Takes what the kernel sends by its port on to the wire. Returns whether there was anything.
 * (punt)
 */
bool hb_punt_relay(struct hb_worker *worker, uint16_t from, uint16_t to);

#endif
