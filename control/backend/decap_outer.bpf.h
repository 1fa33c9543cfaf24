/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * decap_outer.bpf.h: the outer headers of a tunnel packet: IP, then what the tunnel has.
 *
 *     IPIP             nothing: the protocol is that of the inner packet
 *     GUE variant 0    UDP, four bytes: variant 0, no flags, no options, IPv4 or IPv6 (draft-ietf-
 *                      intarea-gue)
 *     GUE variant 1    UDP; the first four bits behind it are the inner packet's version
 *     GRE              four bytes: no options (RFC 2784)
 *     VXLAN            UDP, eight bytes, Ethernet without a tag (RFC 7348)
 *
 * What has another protocol, port or inner type is not ours and passes as it is. What is ours but
 * has options that nobody asked for is malformed. The UDP checksum is not looked at: the kernel
 * checks the inner packet's own.
 */
#ifndef HB_BACKEND_DECAP_OUTER_BPF_H
#define HB_BACKEND_DECAP_OUTER_BPF_H

#include "decap_headers.bpf.h"

#define GUE_SIZE       4
#define GRE_SIZE       4
#define VXLAN_SIZE     8
#define VXLAN_FLAG_VNI 0x08

/* Read as far as it is there; checked by check_lengths. */
struct tunnel {
    struct hb_decap_address source;
    __u32 header_size; /* of the IP header */
    __u32 shim_size;   /* of what stands behind it */
    __u32 packet_size; /* by its own length field, header included */
    __u32 udp_size;    /* by the UDP header; 0: there is none */
    __u8 protocol;     /* of the inner packet: IPPROTO_IPIP or IPPROTO_IPV6 */
    __u8 ecn;
    __u8 fragment;
    __u8 malformed;
};

static __always_inline int take_ether_type(struct tunnel *tunnel, __be16 type)
{
    tunnel->protocol = type == bpf_htons(ETH_P_IP) ? IPPROTO_IPIP : IPPROTO_IPV6;
    return type == bpf_htons(ETH_P_IP) || type == bpf_htons(ETH_P_IPV6);
}

static __always_inline int read_gre(struct tunnel *tunnel, const __be16 *gre, const void *end)
{
    if ((void *)(gre + 2) > end || gre[0] != 0)
        return 0;
    tunnel->shim_size = GRE_SIZE;
    return take_ether_type(tunnel, gre[1]);
}

static __always_inline int read_gue(struct tunnel *tunnel, const __u8 *gue, const void *end)
{
    tunnel->shim_size = sizeof(struct udphdr);
    if ((void *)(gue + GUE_SIZE) > end) {
        tunnel->malformed = 1;
        return 1;
    }
    if (gue[0] >> 4 == 4 || gue[0] >> 4 == 6) { /* variant 1 */
        tunnel->protocol = gue[0] >> 4 == 4 ? IPPROTO_IPIP : IPPROTO_IPV6;
        return 1;
    }
    tunnel->shim_size += GUE_SIZE;
    tunnel->protocol = gue[1];
    tunnel->malformed = gue[0] != 0 || gue[2] != 0 || gue[3] != 0 ||
                        (gue[1] != IPPROTO_IPIP && gue[1] != IPPROTO_IPV6);
    return 1;
}

static __always_inline int read_vxlan(struct tunnel *tunnel, const __u8 *vxlan, const void *end)
{
    const struct ethhdr *eth = (void *)(vxlan + VXLAN_SIZE);

    tunnel->shim_size = sizeof(struct udphdr) + VXLAN_SIZE + sizeof(*eth);
    if ((void *)(eth + 1) > end) {
        tunnel->malformed = 1;
        return 1;
    }
    tunnel->malformed = vxlan[0] != VXLAN_FLAG_VNI;
    return take_ether_type(tunnel, eth->h_proto);
}

static __always_inline int read_udp(struct tunnel *tunnel, const struct udphdr *udp,
                                    const void *end, const struct hb_decap_settings *settings)
{
    if ((void *)(udp + 1) > end)
        return 0;
    tunnel->udp_size = bpf_ntohs(udp->len);
    if ((settings->tunnels & HB_DECAP_TUNNEL_GUE) && udp->dest == settings->gue_port)
        return read_gue(tunnel, (const void *)(udp + 1), end);
    if ((settings->tunnels & HB_DECAP_TUNNEL_VXLAN) && udp->dest == settings->vxlan_port)
        return read_vxlan(tunnel, (const void *)(udp + 1), end);
    return 0;
}

/* What stands behind the IP header. Returns 0 when it is no tunnel of ours. */
static __always_inline int read_shim(struct tunnel *tunnel, __u8 protocol, const void *shim,
                                     const void *end, const struct hb_decap_settings *settings)
{
    switch (protocol) {
    case IPPROTO_IPIP:
    case IPPROTO_IPV6:
        tunnel->protocol = protocol;
        return settings->tunnels & HB_DECAP_TUNNEL_IPIP;
    case IPPROTO_GRE:
        return (settings->tunnels & HB_DECAP_TUNNEL_GRE) && read_gre(tunnel, shim, end);
    case IPPROTO_UDP:
        return read_udp(tunnel, shim, end, settings);
    default:
        return 0;
    }
}

static __always_inline int read_outer4(struct tunnel *tunnel, struct iphdr *ip, void *end,
                                       const struct hb_decap_settings *settings)
{
    if ((void *)(ip + 1) > end)
        return 0;
    set_ipv4(&tunnel->source, &ip->saddr);
    tunnel->header_size = ip->version == 4 ? ip->ihl * 4 : 0;
    tunnel->packet_size = bpf_ntohs(ip->tot_len);
    tunnel->ecn = ip->tos & ECN_MASK;
    tunnel->fragment = (ip->frag_off & bpf_htons(FRAGMENT_BITS)) != 0;
    return read_shim(tunnel, ip->protocol, (void *)ip + (tunnel->header_size & 0x3c), end,
                     settings);
}

static __always_inline int read_outer6(struct tunnel *tunnel, struct ipv6hdr *ip, void *end,
                                       const struct hb_decap_settings *settings)
{
    __u8 *fragment_header = (__u8 *)(ip + 1);
    void *shim = ip + 1;
    __u8 protocol;

    if ((void *)(ip + 1) > end)
        return 0;
    protocol = ip->nexthdr;
    if (ip->nexthdr == IPV6_FRAG_HEADER && (void *)(fragment_header + 8) <= end) {
        protocol = *fragment_header;
        shim = fragment_header + 8;
        tunnel->fragment = 1;
    }
    set_ipv6(&tunnel->source, &ip->saddr);
    tunnel->header_size = ip->version == 6 ? sizeof(*ip) : 0;
    tunnel->packet_size = sizeof(*ip) + bpf_ntohs(ip->payload_len);
    tunnel->ecn = ipv6_ecn(ip);
    return read_shim(tunnel, protocol, shim, end, settings);
}

/* Reads the outer headers. Returns 0 when the packet is no tunnel packet of ours. */
static __always_inline int read_outer(struct tunnel *tunnel, __be16 ether_type, void *l3, void *end,
                                      const struct hb_decap_settings *settings)
{
    if (ether_type == bpf_htons(ETH_P_IP))
        return read_outer4(tunnel, l3, end, settings);
    if (ether_type == bpf_htons(ETH_P_IPV6))
        return read_outer6(tunnel, l3, end, settings);
    return 0;
}

/* `room`: bytes of the frame from the outer header on. A fragment is not reassembled here. */
static __always_inline int check_lengths(const struct tunnel *tunnel, __u64 room)
{
    __u32 headers = tunnel->header_size + tunnel->shim_size;

    if (tunnel->fragment || tunnel->malformed || tunnel->header_size < sizeof(struct iphdr))
        return 0;
    if (tunnel->udp_size != 0 && (tunnel->udp_size <= tunnel->shim_size ||
                                  tunnel->udp_size > tunnel->packet_size - tunnel->header_size))
        return 0;
    return tunnel->packet_size > headers && tunnel->packet_size <= room;
}

#endif
