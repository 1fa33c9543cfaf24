/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage_encap.c: the backend's headers in front of the IP packet.
 *
 * The rewrite of the backend is copied and what depends on the packet is patched. The inner packet
 * goes on as it came, byte for byte; its old Ethernet header, VLAN tags and Ethernet padding do
 * not.
 *
 * Outer header, for all four combinations of families (RFC 2003, RFC 2473, RFC 4213):
 *   - protocol or next header 4 for IPv4 inside, 41 for IPv6 inside.
 *   - DSCP and ECN are copied from the inner header (RFC 6040, section 4.1, normal mode).
 *   - outer IPv4: DF as the inner IPv4 packet has it (RFC 2003, section 3.1), set for an inner IPv6
 *     packet. With DF the ID is 0; without, it counts up (RFC 6864, section 4.3). No options.
 *   - outer IPv6: the flow label comes from the inner flow, so that routers spread tunnelled flows
 *     (RFC 6438). It is mixed with the key once more: the flow hash itself is never shown.
 *
 * Nearly every packet lies alone in one buffer of its own and leaves by plain Ethernet over IPv4:
 * that case is written out (encap_plain.h, and for eight packets at once encap_eight.h). All else
 * takes the general way.
 */
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "encap_plain.h"
#include "stages.h"
#include "worker_state.h"
#if defined(__AVX2__)
#include "encap_eight.h"
#endif

#define PROTOCOL_IPV4   4
#define PROTOCOL_IPV6   41
#define FLOW_LABEL_MASK 0xfffff
_Static_assert(sizeof(struct rte_ipv4_hdr) == 20 && sizeof(struct rte_ipv6_hdr) == 40,
               "headers have no padding");

static bool is_shared(const struct rte_mbuf *mbuf)
{
    return RTE_MBUF_CLONED(mbuf) || rte_mbuf_refcnt_read(mbuf) > 1 ||
           (RTE_MBUF_HAS_EXTBUF(mbuf) && rte_mbuf_ext_refcnt_read(mbuf->shinfo) > 1);
}

/* Cuts the packet off after `length` bytes. Segments that hold nothing of it any more are freed. */
static void cut(struct rte_mbuf *mbuf, uint32_t length)
{
    struct rte_mbuf *segment = mbuf;
    uint32_t before = 0;

    if (rte_pktmbuf_pkt_len(mbuf) == length)
        return;
    mbuf->nb_segs = 1;
    while (before + segment->data_len < length) {
        before += segment->data_len;
        segment = segment->next;
        mbuf->nb_segs++;
    }
    segment->data_len = (uint16_t)(length - before);
    rte_pktmbuf_free(segment->next);
    segment->next = NULL;
    mbuf->pkt_len = length;
}

/* Takes off what was in front of and behind the IP packet and makes room for the new headers.
 * Returns where they go, or NULL when there is no room. Headers must not be written into a buffer
 * that others read as well, so such a packet is copied; no port of ours receives any. */
static uint8_t *make_room(struct hb_packet *packet, uint16_t size)
{
    struct rte_mbuf *mbuf = packet->mbuf;

    if (is_shared(mbuf)) {
        mbuf = rte_pktmbuf_copy(mbuf, mbuf->pool, 0, UINT32_MAX);
        if (mbuf == NULL)
            return NULL;
        rte_pktmbuf_free(packet->mbuf);
        packet->mbuf = mbuf;
    }
    if ((uint32_t)rte_pktmbuf_headroom(mbuf) + packet->l3_offset < size)
        return NULL;
    cut(mbuf, packet->l3_offset + packet->inner_length);
    rte_pktmbuf_adj(mbuf, packet->l3_offset);

    /* What the receiving port said about the frame, or asked the sending port to do, is over. */
    mbuf->ol_flags &= KEPT_MBUF_FLAGS;
    mbuf->tx_offload = 0;
    mbuf->vlan_tci = 0;
    mbuf->packet_type = 0;
    return (uint8_t *)rte_pktmbuf_prepend(mbuf, size);
}

static void patch_ipv4(struct hb_worker *worker, const struct hb_packet *packet, uint8_t *at)
{
    struct rte_ipv4_hdr *outer = (struct rte_ipv4_hdr *)at;
    bool inner_is_ipv4 = !hb_flow_is_ipv6(&packet->flow);

    outer->type_of_service = packet->traffic_class;
    outer->total_length = rte_cpu_to_be_16((uint16_t)(packet->inner_length + sizeof(*outer)));
    outer->packet_id = packet->dont_fragment ? 0 : rte_cpu_to_be_16(worker->ipv4_id++);
    outer->fragment_offset = packet->dont_fragment ? RTE_BE16(RTE_IPV4_HDR_DF_FLAG) : 0;
    outer->next_proto_id = inner_is_ipv4 ? PROTOCOL_IPV4 : PROTOCOL_IPV6;
    outer->hdr_checksum = 0;
    outer->hdr_checksum = rte_ipv4_cksum(outer);
}

static void patch_ipv6(const struct hb_packet *packet, const struct hb_hash_key *key, uint8_t *at)
{
    struct rte_ipv6_hdr *outer = (struct rte_ipv6_hdr *)at;
    bool inner_is_ipv4 = !hb_flow_is_ipv6(&packet->flow);
    uint32_t label = hb_mix(packet->flow.hash ^ key->word[0], key->word[1] | 1) & FLOW_LABEL_MASK;

    outer->vtc_flow =
        rte_cpu_to_be_32(UINT32_C(6) << 28 | (uint32_t)packet->traffic_class << 20 | label);
    outer->payload_len = rte_cpu_to_be_16(packet->inner_length);
    outer->proto = inner_is_ipv4 ? PROTOCOL_IPV4 : PROTOCOL_IPV6;
}

static void encapsulate(struct hb_batch *batch, struct hb_packet *packet)
{
    const struct hb_backend *backend = packet->backend;
    uint8_t *headers;

    if (packet->inner_length > backend->inner_max) {
        hb_drop(batch, packet, HB_DROP_OVERSIZE);
        return;
    }
    headers = make_room(packet, backend->size);
    if (headers == NULL) {
        hb_drop(batch, packet, HB_DROP_NO_HEADROOM);
        return;
    }
    memcpy(headers, backend->bytes, backend->size);
    if (backend->family == HB_FAMILY_IPV4)
        patch_ipv4(batch->worker, packet, headers + backend->l2_size);
    else
        patch_ipv6(packet, &batch->generation->hash_key, headers + backend->l2_size);
}

static void take_one(struct hb_batch *batch, struct hb_packet *packet)
{
    if (likely(is_plain(packet)))
        put_plain_ipv4(packet, &batch->worker->ipv4_id);
    else
        encapsulate(batch, packet);
}

/* Eight packets at once, where the processor can, and those of an eight that are not all plain one
 * by one. Returns how many packets were done so. */
static uint16_t take_eights(struct hb_batch *batch)
{
    uint16_t next = 0;

#if defined(__AVX2__)
    for (; next + 8 <= batch->count; next = (uint16_t)(next + 8)) {
        struct hb_packet *packet = &batch->packet[next];

        if (likely(put_eight(packet, &batch->worker->ipv4_id)))
            continue;
        for (uint16_t i = 0; i < 8; i++)
            take_one(batch, &packet[i]);
    }
#else
    (void)batch;
#endif
    return next;
}

void hb_stage_encap(struct hb_batch *batch)
{
    for (uint16_t next = take_eights(batch); next < batch->count; next++)
        take_one(batch, &batch->packet[next]);
    hb_batch_end(batch);
}
