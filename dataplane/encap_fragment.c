/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * encap_fragment.c: an IPv4 packet without DF that does not fit its backend's link, in pieces.
 *
 * Inner: the packet is cut (RFC 791), and each fragment gets headers of its own. The backend's
 * network stack puts them together behind the tunnel.
 *
 * Outer: the packet gets its tunnel header whole, and the tunnel packet is cut: by RFC 791, or with
 * a fragment header by RFC 8200, section 4.5. The tunnel's end has to put it together
 * (halbach-backend does not).
 *
 * Pieces are copies: some drivers take no mbufs that share a buffer. All are there before the
 * first one is sent; when one can't be made, the packet is dropped whole. A packet that is a
 * fragment already is cut further: offsets go on from its own.
 */
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ethdev.h>
#include <rte_ip.h>

#include "encap.h"

#define PIECES_MAX      64 /* 65,535 bytes by links of 1,100 */
#define IPV4_HEADER_MAX 60
#define HEADER_MAX      (HB_REWRITE_BYTES + (int)sizeof(struct fragment_header))
#define OFFSET_MASK     0x1fff
#define MORE_FRAGMENTS  0x2000
#define IPV6_FRAGMENT   44

/* Of IPv6. */
struct fragment_header {
    uint8_t next;
    uint8_t reserved;
    rte_be16_t offset; /* in the upper 13 bits: units of 8 bytes; the lowest: more follow */
    rte_be32_t id;
} __rte_packed;
_Static_assert(RTE_PKTMBUF_HEADROOM >= HEADER_MAX, "a piece has room for all headers");

struct pieces {
    struct rte_mbuf *mbuf[PIECES_MAX];
    uint16_t count;
};

/* What is cut: `length` bytes of `from` at `offset`. */
struct payload {
    const struct rte_mbuf *from;
    uint32_t offset, length;
};

static void free_pieces(struct pieces *pieces)
{
    rte_pktmbuf_free_bulk(pieces->mbuf, pieces->count);
}

/* The next piece: `length` bytes of the payload from `done` on, `header` in front of them. What
 * stands before the payload is copied along and overwritten by the header, so that the headroom is
 * left for the headers to come. */
static uint8_t add_piece(struct pieces *pieces, const struct payload *payload, uint32_t done,
                         uint32_t length, const uint8_t *header, uint32_t header_size)
{
    uint32_t from = payload->offset + done, before = RTE_MIN(header_size, from);
    struct rte_mbuf *mbuf;
    char *at;

    if (pieces->count == PIECES_MAX)
        return HB_DROP_OVERSIZE;
    mbuf = rte_pktmbuf_copy(payload->from, payload->from->pool, from - before, before + length);
    if (mbuf == NULL)
        return HB_DROP_NO_MBUF;
    pieces->mbuf[pieces->count++] = mbuf;
    at = rte_pktmbuf_prepend(mbuf, (uint16_t)(header_size - before));
    if (at == NULL)
        return HB_DROP_NO_HEADROOM;
    memcpy(at, header, header_size);
    return HB_NO_FAULT;
}

/* How much of the `left` bytes goes into a piece that has room for `room`: all pieces but the last
 * hold a multiple of eight. */
static uint32_t piece_length(uint32_t left, uint32_t room)
{
    return left <= room ? left : room & ~7u;
}

static void put_ipv4_piece(uint8_t *header, uint32_t header_size, uint32_t length,
                           uint16_t fragment)
{
    struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)header;

    ip->total_length = rte_cpu_to_be_16((uint16_t)(header_size + length));
    ip->fragment_offset = rte_cpu_to_be_16(fragment);
    ip->hdr_checksum = 0;
    ip->hdr_checksum = (uint16_t)~rte_raw_cksum(header, header_size);
}

/* Of the fragment word of the packet that is cut, the word of the piece that begins `done` bytes
 * on.
 */
static uint16_t fragment_word(uint16_t whole, uint32_t done, bool last)
{
    return (uint16_t)((whole + done / 8) | (last ? 0 : MORE_FRAGMENTS));
}

/* Leaves the options that belong into every fragment (the first bit of their type is set), padded
 * with zeroes. Returns the new size of the header. */
static uint32_t thin_options(uint8_t *header, uint32_t size)
{
    uint32_t from = sizeof(struct rte_ipv4_hdr), to = from;

    while (from < size && header[from] != 0) {
        uint32_t length = header[from] == 1 || from + 1 == size ? 1 : header[from + 1];

        if (length == 0 || length > size - from) /* nobody knows what it is */
            break;
        if ((header[from] & 0x80) != 0) {
            memmove(header + to, header + from, length);
            to += length;
        }
        from += length;
    }
    while (to % 4 != 0)
        header[to++] = 0;
    header[0] = (uint8_t)(0x40 | to / 4);
    return to;
}

static uint8_t cut_inner(const struct hb_packet *packet, struct pieces *pieces)
{
    const uint8_t *ip = rte_pktmbuf_mtod_offset(packet->mbuf, uint8_t *, packet->l3_offset);
    uint32_t size = (ip[0] & 0xfu) * 4, done = 0;
    struct payload payload = {packet->mbuf, packet->l3_offset + size,
                              (uint32_t)packet->inner_length - size};
    uint16_t whole = (uint16_t)(ip[6] << 8 | ip[7]);
    uint8_t header[IPV4_HEADER_MAX];

    if ((whole & OFFSET_MASK) + payload.length / 8 > OFFSET_MASK) /* it would end nowhere */
        return HB_DROP_FRAGMENT;
    memcpy(header, ip, size);
    while (done < payload.length) {
        uint32_t left = payload.length - done;
        uint32_t length = piece_length(left, packet->backend->inner_max - size);
        uint8_t fault;

        put_ipv4_piece(header, size, length, fragment_word(whole, done, length == left));
        fault = add_piece(pieces, &payload, done, length, header, size);
        if (fault != HB_NO_FAULT)
            return fault;
        if (done == 0)
            size = thin_options(header, size);
        done += length;
    }
    return HB_NO_FAULT;
}

/* Every fragment gets the headers of its backend. */
static uint8_t wrap_pieces(struct hb_batch *batch, const struct hb_packet *packet,
                           struct pieces *pieces)
{
    for (uint16_t i = 0; i < pieces->count; i++) {
        struct hb_packet piece = *packet;
        uint8_t fault;

        piece.mbuf = pieces->mbuf[i];
        piece.l3_offset = 0;
        piece.inner_length = (uint16_t)rte_pktmbuf_pkt_len(piece.mbuf);
        fault = hb_encap_by_mode(batch, &piece);
        pieces->mbuf[i] = piece.mbuf;
        if (fault != HB_NO_FAULT)
            return fault;
    }
    return HB_NO_FAULT;
}

/* Copies the link header and the outer IP header of a tunnel packet; behind an IPv6 header room for
 * the fragment header. Returns the size of all that. */
static uint32_t copy_outer(struct hb_worker *worker, const struct hb_packet *packet,
                           uint8_t *header)
{
    const uint8_t *frame = rte_pktmbuf_mtod(packet->mbuf, const uint8_t *);
    const struct hb_backend *backend = packet->backend;
    uint32_t size = backend->l2_size + (uint32_t)sizeof(struct rte_ipv4_hdr);
    struct fragment_header fragment = {.id = rte_cpu_to_be_32(worker->ipv6_fragment_id)};
    struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(header + backend->l2_size);

    if (backend->family == HB_FAMILY_IPV4) {
        memcpy(header, frame, size);
        return size;
    }
    size = backend->l2_size + (uint32_t)sizeof(*ip);
    memcpy(header, frame, size);
    fragment.next = ip->proto;
    ip->proto = IPV6_FRAGMENT;
    memcpy(header + size, &fragment, sizeof(fragment));
    worker->ipv6_fragment_id++;
    return size + (uint32_t)sizeof(fragment);
}

static void put_ipv6_piece(uint8_t *header, uint32_t l2_size, uint32_t length, uint32_t done,
                           bool last)
{
    struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(header + l2_size);
    struct fragment_header *fragment = (struct fragment_header *)(ip + 1);

    ip->payload_len = rte_cpu_to_be_16((uint16_t)(sizeof(*fragment) + length));
    fragment->offset = rte_cpu_to_be_16((uint16_t)(done | !last)); /* `done` is in units of 8 */
}

static uint8_t cut_outer(struct hb_worker *worker, const struct hb_packet *packet,
                         struct pieces *pieces)
{
    const struct hb_backend *backend = packet->backend;
    uint32_t link_max = (uint32_t)backend->inner_max + backend->size - backend->l2_size;
    bool ipv4 = backend->family == HB_FAMILY_IPV4;
    uint32_t ip_size = ipv4 ? sizeof(struct rte_ipv4_hdr) : sizeof(struct rte_ipv6_hdr);
    struct payload payload = {packet->mbuf, backend->l2_size + ip_size, 0};
    uint8_t header[HEADER_MAX];
    uint32_t size = copy_outer(worker, packet, header), done = 0;

    payload.length = rte_pktmbuf_pkt_len(packet->mbuf) - payload.offset;
    while (done < payload.length) {
        uint32_t left = payload.length - done;
        uint32_t length = piece_length(left, link_max - (size - backend->l2_size));
        bool last = length == left;
        uint8_t fault;

        if (ipv4)
            put_ipv4_piece(header + backend->l2_size, ip_size, length,
                           fragment_word(0, done, last));
        else
            put_ipv6_piece(header, backend->l2_size, length, done, last);
        fault = add_piece(pieces, &payload, done, length, header, size);
        if (fault != HB_NO_FAULT)
            return fault;
        done += length;
    }
    return HB_NO_FAULT;
}

static uint8_t make_inner(struct hb_batch *batch, const struct hb_packet *packet,
                          struct pieces *pieces)
{
    uint8_t fault = cut_inner(packet, pieces);

    return fault != HB_NO_FAULT ? fault : wrap_pieces(batch, packet, pieces);
}

static uint8_t make_outer(struct hb_batch *batch, struct hb_packet *packet, struct pieces *pieces)
{
    const struct hb_backend *backend = packet->backend;
    uint8_t fault;

    /* The tunnel packet has a length field of 16 bits too. */
    if ((uint32_t)packet->inner_length + backend->size - backend->l2_size > UINT16_MAX)
        return HB_DROP_OVERSIZE;
    fault = hb_encap_by_mode(batch, packet);
    return fault != HB_NO_FAULT ? fault : cut_outer(batch->worker, packet, pieces);
}

/* Ends a packet that was cut: its pieces are sent at once, in their order and before the packets
 * that wait for stage_output. The worker has sent each of them; service and backend have the packet
 * as one, if the port took all of it. */
static void send_pieces(struct hb_batch *batch, struct hb_packet *packet, struct pieces *pieces)
{
    struct hb_worker *worker = batch->worker;
    struct hb_service_counters *service =
        &worker->services[batch->generation->services[packet->service].id];
    struct hb_backend_counters *backend = &worker->backends[packet->backend_id];
    uint64_t bytes = 0;
    uint16_t taken;

    for (uint16_t i = 0; i < pieces->count; i++)
        bytes += rte_pktmbuf_pkt_len(pieces->mbuf[i]);
    taken = rte_eth_tx_burst(packet->backend->port, (uint16_t)worker->config.index, pieces->mbuf,
                             pieces->count);
    for (uint16_t i = taken; i < pieces->count; i++) {
        bytes -= rte_pktmbuf_pkt_len(pieces->mbuf[i]);
        hb_drop_mbuf(worker, pieces->mbuf[i], hb_tx_refusal(worker, packet->backend->port));
    }
    worker->counters->made_packets += pieces->count - 1u;
    worker->counters->tx_packets += taken;
    worker->counters->tx_bytes += bytes;
    if (taken == pieces->count) {
        service->packets++;
        service->bytes += packet->inner_length;
        backend->packets++;
        backend->bytes += packet->inner_length;
    } else {
        service->drops++;
    }
    rte_pktmbuf_free(packet->mbuf);
    packet->mbuf = NULL;
    batch->ended++;
}

uint8_t hb_encap_in_pieces(struct hb_batch *batch, struct hb_packet *packet)
{
    struct pieces pieces = {.count = 0};
    uint8_t fault = (packet->backend->flags & HB_REWRITE_FRAGMENT_INNER) != 0
                        ? make_inner(batch, packet, &pieces)
                        : make_outer(batch, packet, &pieces);

    if (fault != HB_NO_FAULT) {
        free_pieces(&pieces);
        return fault;
    }
    send_pieces(batch, packet, &pieces);
    return HB_NO_FAULT;
}
