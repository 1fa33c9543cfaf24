/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * encap_tunnel.c: a tunnel header around the IP packet, which goes on as it came, byte for byte.
 *
 *     IPIP    IP                                    RFC 2003, RFC 2473, RFC 4213
 *     GUE     IP, UDP, 4 bytes                      draft-ietf-intarea-gue, variant 0
 *     GUE1    IP, UDP                               the same, variant 1
 *     GRE     IP, 4 bytes                           RFC 2784, no options
 *     VXLAN   IP, UDP, 8 bytes, Ethernet            RFC 7348
 *
 * The rewrite of the backend is copied, and what depends on the packet is patched:
 *   - protocol or next header: 4 or 41 by what is inside (IPIP), 47 (GRE) or 17; what is inside
 *     stands again in GUE variant 0 (4 or 41), GRE and VXLAN (0x0800 or 0x86dd). In GUE variant 1
 *     the inner packet's own first four bits tell.
 *   - DSCP and ECN are copied from the inner header (RFC 6040, section 4.1, normal mode).
 *   - outer IPv4: DF as the inner IPv4 packet has it (RFC 2003, section 3.1), set for an inner IPv6
 *     packet. With DF the ID is 0; without, it counts up (RFC 6864, section 4.3). No options.
 *   - outer IPv6: the flow label comes from the flow, so that routers spread tunnelled flows
 *     (RFC 6438).
 *   - UDP: the source port is one of 49152 to 65535, by the flow: for RSS and ECMP.
 *   - the outer source's low `spread` bits, by the flow: the same for headers without ports.
 *   - UDP checksum: over IPv4 if the pool says so, else zero; over IPv6 always, unless the pool
 * says zero (RFC 6935). Computed here, or by the port that the packet leaves by if that can do it.
 *     A sum that comes out as zero is sent as 0xffff (RFC 768).
 */
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "checksum.h"
#include "encap.h"

#define PROTOCOL_IPV4   4
#define PROTOCOL_UDP    17
#define PROTOCOL_IPV6   41
#define PROTOCOL_GRE    47
#define FLOW_LABEL_MASK 0xfffff
#define PORT_FIRST      49152 /* dynamic ports, RFC 6335 */
#define PORT_MASK       0x3fff
#define PORT_SHIFT      20 /* other bits than those of the flow label */
#define UDP_SIZE        ((uint32_t)sizeof(struct rte_udp_hdr))
#define VXLAN_SIZE      8

_Static_assert(sizeof(struct rte_ipv4_hdr) == 20 && sizeof(struct rte_ipv6_hdr) == 40,
               "headers have no padding");

static bool is_inner_ipv6(const struct hb_packet *packet)
{
    return hb_flow_is_ipv6(&packet->flow);
}

static void put_ether_type(uint8_t *at, const struct hb_packet *packet)
{
    uint16_t type = is_inner_ipv6(packet) ? RTE_ETHER_TYPE_IPV6 : RTE_ETHER_TYPE_IPV4;

    at[0] = (uint8_t)(type >> 8);
    at[1] = (uint8_t)type;
}

static void patch_udp(const struct hb_packet *packet, uint8_t *at, uint32_t shim, uint64_t entropy)
{
    struct rte_udp_hdr *udp = (struct rte_udp_hdr *)at;

    udp->src_port = rte_cpu_to_be_16((uint16_t)(PORT_FIRST + (entropy >> PORT_SHIFT & PORT_MASK)));
    udp->dgram_len = rte_cpu_to_be_16((uint16_t)(UDP_SIZE + shim + packet->inner_length));
}

/* What stands between the outer IP header and the packet: `size` bytes at `at`. Returns the
 * protocol that the IP header names. */
static uint8_t patch_shim(const struct hb_packet *packet, uint8_t *at, uint32_t size,
                          uint64_t entropy)
{
    uint8_t inner = is_inner_ipv6(packet) ? PROTOCOL_IPV6 : PROTOCOL_IPV4;

    switch (packet->backend->forwarding) {
    case HB_FORWARDING_GUE:
        at[UDP_SIZE + 1] = inner;
        break;
    case HB_FORWARDING_GUE1:
        break;
    case HB_FORWARDING_VXLAN:
        put_ether_type(at + UDP_SIZE + VXLAN_SIZE + 2 * RTE_ETHER_ADDR_LEN, packet);
        break;
    case HB_FORWARDING_GRE:
        put_ether_type(at + 2, packet);
        return PROTOCOL_GRE;
    default:
        return inner;
    }
    patch_udp(packet, at, size - UDP_SIZE, entropy);
    return PROTOCOL_UDP;
}

/* Sets the low `bits` bits of an address of `size` bytes, which are zero in the rewrite. */
static void spread_source(uint8_t *address, uint32_t size, uint8_t bits, uint64_t entropy)
{
    uint64_t chosen = bits == 64 ? entropy : entropy & ((UINT64_C(1) << bits) - 1);

    for (uint32_t i = size; chosen != 0; chosen >>= 8)
        address[--i] |= (uint8_t)chosen;
}

static void patch_ipv4(struct hb_worker *worker, const struct hb_packet *packet, uint8_t *at,
                       uint8_t protocol, uint64_t entropy)
{
    const struct hb_backend *backend = packet->backend;
    struct rte_ipv4_hdr *outer = (struct rte_ipv4_hdr *)at;

    outer->type_of_service = packet->traffic_class;
    outer->total_length =
        rte_cpu_to_be_16((uint16_t)(packet->inner_length + backend->size - backend->l2_size));
    outer->packet_id = packet->dont_fragment ? 0 : rte_cpu_to_be_16(worker->ipv4_id++);
    outer->fragment_offset = packet->dont_fragment ? RTE_BE16(RTE_IPV4_HDR_DF_FLAG) : 0;
    outer->next_proto_id = protocol;
    spread_source((uint8_t *)&outer->src_addr, sizeof(outer->src_addr), backend->spread, entropy);
    outer->hdr_checksum = 0;
    outer->hdr_checksum = rte_ipv4_cksum(outer);
}

static void patch_ipv6(const struct hb_packet *packet, uint8_t *at, uint8_t protocol,
                       uint64_t entropy)
{
    const struct hb_backend *backend = packet->backend;
    struct rte_ipv6_hdr *outer = (struct rte_ipv6_hdr *)at;

    outer->vtc_flow = rte_cpu_to_be_32(UINT32_C(6) << 28 | (uint32_t)packet->traffic_class << 20 |
                                       (uint32_t)(entropy & FLOW_LABEL_MASK));
    outer->payload_len = rte_cpu_to_be_16(
        (uint16_t)(packet->inner_length + backend->size - backend->l2_size - sizeof(*outer)));
    outer->proto = protocol;
    spread_source(outer->src_addr, sizeof(outer->src_addr), backend->spread, entropy);
}

static bool wants_udp_checksum(const struct hb_backend *backend)
{
    if (backend->family == HB_FAMILY_IPV4)
        return (backend->flags & HB_REWRITE_UDP_CHECKSUM) != 0;
    return (backend->flags & HB_REWRITE_NO_UDP_CHECKSUM6) == 0;
}

/* Whether the port that the packet leaves by computes the checksum; not of one that will be cut,
 * whose pieces have it in the first (BL-18). */
static bool is_offloaded(const struct hb_worker *worker, const struct hb_packet *packet)
{
    const struct hb_backend *backend = packet->backend;

    return (worker->config.udp_checksum_ports >> backend->port & 1) != 0 &&
           packet->inner_length <= backend->inner_max;
}

/* The length in the pseudo-header is the UDP length: taken from the outer header, which is complete
 * (BL-02). The sum of the pseudo-header stands in the field first: so it is part of what is summed
 * up, here or by the port. */
static void put_udp_checksum(const struct hb_worker *worker, const struct hb_packet *packet,
                             const uint8_t *outer, uint8_t *at)
{
    const struct hb_backend *backend = packet->backend;
    struct rte_udp_hdr *udp = (struct rte_udp_hdr *)at;
    struct rte_mbuf *mbuf = packet->mbuf;
    uint32_t offset = (uint32_t)(at - outer) + backend->l2_size;
    bool ipv4 = backend->family == HB_FAMILY_IPV4;
    uint16_t sum;

    udp->dgram_cksum = ipv4 ? rte_ipv4_phdr_cksum((const void *)outer, 0)
                            : rte_ipv6_phdr_cksum((const void *)outer, 0);
    if (is_offloaded(worker, packet)) {
        mbuf->l2_len = backend->l2_size;
        mbuf->l3_len = (uint64_t)(at - outer);
        mbuf->ol_flags |=
            RTE_MBUF_F_TX_UDP_CKSUM | (ipv4 ? RTE_MBUF_F_TX_IPV4 : RTE_MBUF_F_TX_IPV6);
        return;
    }
    sum = hb_packet_sum(mbuf, offset, rte_pktmbuf_pkt_len(mbuf) - offset, 0);
    udp->dgram_cksum = sum == 0xffff ? 0xffff : (uint16_t)~sum;
}

uint8_t hb_encap_tunnel(struct hb_batch *batch, struct hb_packet *packet)
{
    const struct hb_backend *backend = packet->backend;
    bool ipv4 = backend->family == HB_FAMILY_IPV4;
    uint32_t ip_size = ipv4 ? sizeof(struct rte_ipv4_hdr) : sizeof(struct rte_ipv6_hdr);
    uint64_t entropy = hb_encap_entropy(packet, &batch->generation->hash_key);
    uint8_t *headers = NULL, *outer, *shim;
    uint8_t protocol, fault;

    fault = hb_encap_room(packet, backend->size, &headers);
    if (fault != HB_NO_FAULT)
        return fault;
    memcpy(headers, backend->bytes, backend->size);
    outer = headers + backend->l2_size;
    shim = outer + ip_size;
    protocol = patch_shim(packet, shim, backend->size - backend->l2_size - ip_size, entropy);
    if (ipv4)
        patch_ipv4(batch->worker, packet, outer, protocol, entropy);
    else
        patch_ipv6(packet, outer, protocol, entropy);
    if (protocol == PROTOCOL_UDP && wants_udp_checksum(backend))
        put_udp_checksum(batch->worker, packet, outer, shim);
    return HB_NO_FAULT;
}
