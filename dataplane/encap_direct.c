/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * encap_direct.c: backends that get the packet itself, without a tunnel.
 *
 * L2: a new link header, to the backend's own MAC address; the IP packet goes on as it came, byte
 * for byte. The backend is on the link and has the VIP.
 *
 * L3DSR: the destination becomes the backend's address, so that routers carry the packet there, and
 * the DSCP becomes the number that stands for the VIP at the backend, which puts the VIP back. ECN
 * stays (it is not the DSCP's). The checksums that cover what has changed are brought up to date
 * (RFC 1624), not computed anew, so that damage done on the way before is still seen (BL-10,
 * BL-11): the IPv4 header's by both changes, those of TCP, UDP and ICMPv6 by the destination, which
 * is in their pseudo-header. Nothing else is touched: later fragments, ICMP and unknown protocols
 * keep their payload as it came.
 */
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "checksum_update.h"
#include "encap.h"

#define ECN_MASK            3
#define IPV4_OFFSET_MASK    0x1fff
#define IPV6_OFFSET_MASK    0xfff8
#define PROTOCOL_TCP        6
#define PROTOCOL_UDP        17
#define PROTOCOL_ICMPV6     58
#define TCP_CHECKSUM        16 /* offsets in the header */
#define UDP_CHECKSUM        6
#define ICMPV6_CHECKSUM     2
#define IPV6_HOP_BY_HOP     0
#define IPV6_ROUTING        43
#define IPV6_FRAGMENT       44
#define IPV6_DESTINATION    60
#define IPV6_EXTENSIONS_MAX 8
#define NO_CHECKSUM         UINT32_MAX

/* An IP packet as far as it lies in the first segment. */
struct view {
    uint8_t *ip;
    uint32_t readable;
};

uint8_t hb_encap_l2(struct hb_packet *packet)
{
    const struct hb_backend *backend = packet->backend;
    bool ipv6 = hb_flow_is_ipv6(&packet->flow);
    uint8_t *headers = NULL, *type;
    uint8_t fault = hb_encap_room(packet, backend->size, &headers);

    if (fault != HB_NO_FAULT)
        return fault;
    memcpy(headers, backend->bytes, backend->size);
    type = headers + backend->l2_size - 2;
    type[0] = ipv6 ? RTE_ETHER_TYPE_IPV6 >> 8 : RTE_ETHER_TYPE_IPV4 >> 8;
    type[1] = ipv6 ? RTE_ETHER_TYPE_IPV6 & 0xff : RTE_ETHER_TYPE_IPV4 & 0xff;
    return HB_NO_FAULT;
}

static uint16_t load_be16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

/* Brings the checksum of the layer above up to date, `change` being that of the pseudo-header. */
static void update_l4(struct view view, uint32_t l4, uint8_t protocol, uint64_t before,
                      uint64_t after)
{
    uint32_t at = protocol == PROTOCOL_TCP      ? l4 + TCP_CHECKSUM
                  : protocol == PROTOCOL_UDP    ? l4 + UDP_CHECKSUM
                  : protocol == PROTOCOL_ICMPV6 ? l4 + ICMPV6_CHECKSUM
                                                : NO_CHECKSUM;
    uint16_t checksum;

    if (at == NO_CHECKSUM || at + sizeof(checksum) > view.readable)
        return;
    memcpy(&checksum, view.ip + at, sizeof(checksum));
    checksum = protocol == PROTOCOL_UDP ? hb_checksum_update_udp(checksum, before, after)
                                        : hb_checksum_update(checksum, before, after);
    memcpy(view.ip + at, &checksum, sizeof(checksum));
}

static void turn_ipv4(struct view view, const uint8_t *destination, uint8_t dscp)
{
    struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)view.ip;
    uint64_t before = hb_checksum_add(&ip->dst_addr, 4), after = hb_checksum_add(destination, 4);
    /* TOS is the second half of its word: the whole word is what the sum sees (BL-11). */
    uint64_t word_before = hb_checksum_add(ip, 2);

    ip->type_of_service = (uint8_t)(dscp << 2 | (ip->type_of_service & ECN_MASK));
    memcpy(&ip->dst_addr, destination, 4);
    ip->hdr_checksum =
        hb_checksum_update(ip->hdr_checksum, before + word_before, after + hb_checksum_add(ip, 2));
    if ((ip->fragment_offset & RTE_BE16(IPV4_OFFSET_MASK)) == 0)
        update_l4(view, (ip->version_ihl & 0xfu) * 4, ip->next_proto_id, before, after);
}

/* Walks to the layer above. False: there is none here, since this is a later fragment, or it is out
 * of reach. */
static bool find_l4_of_ipv6(struct view view, uint32_t *l4, uint8_t *protocol)
{
    *l4 = sizeof(struct rte_ipv6_hdr);
    *protocol = view.ip[6];
    for (uint32_t depth = 0;; depth++) {
        const uint8_t *header = view.ip + *l4;

        if (*protocol != IPV6_HOP_BY_HOP && *protocol != IPV6_ROUTING &&
            *protocol != IPV6_FRAGMENT && *protocol != IPV6_DESTINATION)
            return true;
        if (depth == IPV6_EXTENSIONS_MAX || *l4 + 8 > view.readable)
            return false;
        if (*protocol == IPV6_FRAGMENT && (load_be16(header + 2) & IPV6_OFFSET_MASK) != 0)
            return false;
        *l4 += *protocol == IPV6_FRAGMENT ? 8 : 8 + header[1] * 8u;
        *protocol = header[0];
    }
}

static void turn_ipv6(struct view view, const uint8_t *destination, uint8_t dscp)
{
    struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)view.ip;
    uint64_t before = hb_checksum_add(ip->dst_addr, 16), after = hb_checksum_add(destination, 16);
    uint32_t mask = UINT32_C(0x3f) << 22, l4;
    uint8_t protocol;

    ip->vtc_flow =
        rte_cpu_to_be_32((rte_be_to_cpu_32(ip->vtc_flow) & ~mask) | (uint32_t)dscp << 22);
    memcpy(ip->dst_addr, destination, 16);
    if (find_l4_of_ipv6(view, &l4, &protocol))
        update_l4(view, l4, protocol, before, after);
}

uint8_t hb_encap_l3dsr(struct hb_packet *packet)
{
    const struct hb_backend *backend = packet->backend;
    bool ipv6 = hb_flow_is_ipv6(&packet->flow);
    const uint8_t *destination = backend->bytes + backend->size;
    uint8_t *headers = NULL;
    struct view view;
    uint8_t fault;

    if (ipv6 != (backend->family == HB_FAMILY_IPV6)) /* there is no address to put in */
        return HB_DROP_NAT_PROTOCOL;
    fault = hb_encap_room(packet, backend->size, &headers);
    if (fault != HB_NO_FAULT)
        return fault;
    memcpy(headers, backend->bytes, backend->size);
    view.ip = headers + backend->size;
    view.readable = rte_pktmbuf_data_len(packet->mbuf) - backend->size;
    if (ipv6)
        turn_ipv6(view, destination, backend->dscp);
    else
        turn_ipv4(view, destination, backend->dscp);
    return HB_NO_FAULT;
}
