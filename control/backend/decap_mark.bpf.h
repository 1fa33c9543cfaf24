/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * decap_mark.bpf.h: L3DSR: a packet to this host whose DSCP says that it was for a VIP.
 *
 * The VIP becomes the destination again and the DSCP 0: it was the balancer's mark, not the
 * client's. ECN stays. The checksums of the IPv4 header, and of TCP, UDP and ICMPv6 for the address
 * in their pseudo-header, are brought up to date; a later fragment has none of the latter.
 */
#ifndef HB_BACKEND_DECAP_MARK_BPF_H
#define HB_BACKEND_DECAP_MARK_BPF_H

#include "decap_headers.bpf.h"

#define TCP_CHECKSUM    16
#define UDP_CHECKSUM    6
#define ICMPV6_CHECKSUM 2
#define EXTENSIONS_MAX  8

static __always_inline __u64 sum_address(const void *address, int words)
{
    const __u16 *word = address;
    __u64 sum = 0;

#pragma unroll
    for (int i = 0; i < 8; i++)
        sum += i < words ? word[i] : 0;
    return sum;
}

static __always_inline void update_l4(void *l4, void *end, __u8 protocol, __u64 before, __u64 after)
{
    __u16 *check = l4;
    __u16 updated;

    if (protocol == IPPROTO_TCP)
        check = l4 + TCP_CHECKSUM;
    else if (protocol == IPPROTO_UDP)
        check = l4 + UDP_CHECKSUM;
    else if (protocol == IPPROTO_ICMPV6)
        check = l4 + ICMPV6_CHECKSUM;
    else
        return;
    if ((void *)(check + 1) > end || (protocol == IPPROTO_UDP && *check == 0))
        return;
    updated = update_sum(*check, before, after);
    *check = protocol == IPPROTO_UDP && updated == 0 ? 0xffff : updated;
}

static __always_inline int restore4(struct iphdr *ip, void *end, void *marks)
{
    struct hb_decap_mark mark = {0};
    const struct hb_decap_address *vip;
    __u64 before, after;
    __u16 word;

    if ((void *)(ip + 1) > end || ip->version != 4 || ip->ihl < 5 || ip->tos >> 2 == 0)
        return 0;
    set_ipv4(&mark.host, &ip->daddr);
    mark.dscp = ip->tos >> 2;
    vip = bpf_map_lookup_elem(marks, &mark);
    if (!vip)
        return 0;
    word = *(__u16 *)ip;
    before = sum_address(&ip->daddr, 2);
    ip->tos &= ECN_MASK;
    __builtin_memcpy(&ip->daddr, vip->bytes, 4);
    after = sum_address(&ip->daddr, 2);
    ip->check = update_sum(ip->check, before + word, after + *(__u16 *)ip);
    if ((ip->frag_off & bpf_htons(OFFSET_BITS)) == 0)
        update_l4((void *)ip + ip->ihl * 4, end, ip->protocol, before, after);
    return 1;
}

/* Where the layer above begins, as bytes behind the IPv6 header; -1: not here (a later fragment),
 * or out of reach. */
static __always_inline int find_l4(struct ipv6hdr *ip, void *end, __u8 *protocol)
{
    int offset = 0;

    *protocol = ip->nexthdr;
    for (int i = 0; i < EXTENSIONS_MAX; i++) {
        __u8 *header = (void *)(ip + 1) + (offset & 0x7ff);

        if (*protocol != IPPROTO_HOPOPTS && *protocol != IPPROTO_ROUTING &&
            *protocol != IPPROTO_DSTOPTS && *protocol != IPV6_FRAG_HEADER)
            return offset;
        if ((void *)(header + 8) > end)
            return -1;
        if (*protocol == IPV6_FRAG_HEADER && (header[2] != 0 || (header[3] & 0xf8) != 0))
            return -1;
        offset += *protocol == IPV6_FRAG_HEADER ? 8 : 8 + header[1] * 8;
        *protocol = header[0];
        if (offset > 0x7ff)
            return -1;
    }
    return -1;
}

static __always_inline int restore6(struct ipv6hdr *ip, void *end, void *marks)
{
    struct hb_decap_mark mark = {0};
    const struct hb_decap_address *vip;
    __u64 before, after;
    __u8 protocol;
    int offset;

    if ((void *)(ip + 1) > end || ip->version != 6)
        return 0;
    mark.dscp = (ip->priority << 2 | ip->flow_lbl[0] >> 6) & 0x3f;
    if (mark.dscp == 0)
        return 0;
    set_ipv6(&mark.host, &ip->daddr);
    vip = bpf_map_lookup_elem(marks, &mark);
    if (!vip)
        return 0;
    before = sum_address(&ip->daddr, 8);
    ip->priority = 0;
    ip->flow_lbl[0] &= 0x3f;
    __builtin_memcpy(&ip->daddr, vip->bytes, 16);
    after = sum_address(&ip->daddr, 8);
    offset = find_l4(ip, end, &protocol);
    if (offset >= 0)
        update_l4((void *)(ip + 1) + (offset & 0x7ff), end, protocol, before, after);
    return 1;
}

/* Returns 1 when the packet was marked and is a VIP's again. */
static __always_inline int restore(__be16 ether_type, void *l3, void *end, void *marks)
{
    if (ether_type == bpf_htons(ETH_P_IP))
        return restore4(l3, end, marks);
    if (ether_type == bpf_htons(ETH_P_IPV6))
        return restore6(l3, end, marks);
    return 0;
}

#endif
