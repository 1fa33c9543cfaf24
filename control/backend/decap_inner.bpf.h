/* SPDX-License-Identifier: GPL-2.0-only */
/* decap_inner.bpf.h: the packet inside: its lengths, its destination, its congestion mark, and the
 * cut that lays it open. */
#ifndef HB_BACKEND_DECAP_INNER_BPF_H
#define HB_BACKEND_DECAP_INNER_BPF_H

#include "decap_outer.bpf.h"

#define ECN_NOT_ECT     0
#define ECN_ECT1        1
#define ECN_CE          3
#define LINK_HEADER_MAX 18 /* Ethernet and one tag */

struct inner {
    struct hb_decap_address destination;
    __be16 ether_type;
};

/* `room`: bytes that the outer headers promise. The frame holds them. */
static __always_inline int read_inner4(struct inner *inner, struct iphdr *ip, void *end, __u32 room)
{
    if ((void *)(ip + 1) > end || ip->version != 4 || ip->ihl < 5)
        return 0;
    if (bpf_ntohs(ip->tot_len) < ip->ihl * 4 || bpf_ntohs(ip->tot_len) > room)
        return 0;
    set_ipv4(&inner->destination, &ip->daddr);
    inner->ether_type = bpf_htons(ETH_P_IP);
    return 1;
}

static __always_inline int read_inner6(struct inner *inner, struct ipv6hdr *ip, void *end,
                                       __u32 room)
{
    if ((void *)(ip + 1) > end || ip->version != 6)
        return 0;
    if (sizeof(*ip) + bpf_ntohs(ip->payload_len) > room)
        return 0;
    set_ipv6(&inner->destination, &ip->daddr);
    inner->ether_type = bpf_htons(ETH_P_IPV6);
    return 1;
}

static __always_inline int read_inner(struct inner *inner, const struct tunnel *tunnel, void *l3,
                                      void *end)
{
    __u32 promised =
        tunnel->udp_size != 0 ? tunnel->udp_size : tunnel->packet_size - tunnel->header_size;
    __u32 room = promised - tunnel->shim_size;

    if (tunnel->protocol == IPPROTO_IPIP)
        return read_inner4(inner, l3, end, room);
    return read_inner6(inner, l3, end, room);
}

/* Changes the two ECN bits of an IPv4 header and its checksum with them. */
static __always_inline void set_ipv4_ecn(struct iphdr *ip, __u8 ecn)
{
    __u16 before = *(__u16 *)ip;

    ip->tos = (ip->tos & ~ECN_MASK) | ecn;
    ip->check = update_sum(ip->check, before, *(__u16 *)ip);
}

/* The table of RFC 6040, section 4.2. Returns the inner packet's new mark, or -1 when the packet
 * must be dropped: the tunnel says "congestion", and the inner packet has no means to carry that
 * on. */
static __always_inline int merge_ecn(__u8 outer, __u8 inner)
{
    if (outer == ECN_CE)
        return inner == ECN_NOT_ECT ? -1 : ECN_CE;
    if (outer == ECN_ECT1 && inner != ECN_NOT_ECT && inner != ECN_CE)
        return ECN_ECT1;
    return inner;
}

static __always_inline int carry_ecn(const struct tunnel *tunnel, void *l3, void *end)
{
    struct iphdr *ip4 = l3;
    struct ipv6hdr *ip6 = l3;
    int ecn;

    if (tunnel->protocol == IPPROTO_IPIP) {
        if ((void *)(ip4 + 1) > end)
            return -1;
        ecn = merge_ecn(tunnel->ecn, ip4->tos & ECN_MASK);
        if (ecn >= 0 && ecn != (ip4->tos & ECN_MASK))
            set_ipv4_ecn(ip4, ecn);
        return ecn;
    }
    if ((void *)(ip6 + 1) > end)
        return -1;
    ecn = merge_ecn(tunnel->ecn, ipv6_ecn(ip6));
    if (ecn >= 0)
        ip6->flow_lbl[0] = (ip6->flow_lbl[0] & ~(ECN_MASK << 4)) | ecn << 4;
    return ecn;
}

/* Cuts the outer headers out: the link header moves up to the inner packet, with its EtherType.
 * Returns 0 or -1, and then the packet is beyond repair. `link_size` is a constant where this is
 * inlined. */
static __always_inline int cut(struct xdp_md *ctx, __u32 link_size, __u32 headers,
                               __be16 ether_type)
{
    void *data = (void *)(long)ctx->data;
    void *end = (void *)(long)ctx->data_end;
    __u8 link[LINK_HEADER_MAX];

    if (data + link_size > end)
        return -1;
    __builtin_memcpy(link, data, link_size);
    __builtin_memcpy(link + link_size - sizeof(ether_type), &ether_type, sizeof(ether_type));

    if (bpf_xdp_adjust_head(ctx, (int)headers))
        return -1;
    data = (void *)(long)ctx->data;
    end = (void *)(long)ctx->data_end;
    if (data + link_size > end)
        return -1;
    __builtin_memcpy(data, link, link_size);
    return 0;
}

#endif
