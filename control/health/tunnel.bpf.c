/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tunnel.bpf.c: puts a probe into the tunnel of the backend that its socket's mark names.
 *
 * Attached to the egress of control's own TUN device, where policy routing sends marked packets.
 * The ready-made headers are those that the dataplane uses for the backend's traffic; this program
 * makes room, copies them, fills in what depends on the packet, and sends the frame out of the
 * interface that leads to the backend. Whatever has no tunnel is dropped: a probe that went another
 * way would prove something else.
 *
 * RFC 2003, 2473, 4213 (IP in IP), RFC 2784 (GRE), draft-ietf-intarea-gue (GUE), RFC 7348 (VXLAN).
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "tunnel_maps.h"

#define DONT_FRAGMENT 0x4000
#define VXLAN_SIZE    8 /* then the inner Ethernet header */
#define SOURCE_PORT   49152

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, HB_TUNNELS_MAX);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, __u32);
    __type(value, struct hb_probe_tunnel);
} hb_tunnels SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, HB_TUNNEL_COUNT);
    __type(key, __u32);
    __type(value, __u64);
} hb_counters SEC(".maps");

/* What must be known of the probe. */
struct probe {
    __u32 size; /* bytes, from its IP header on */
    __u8 is_ipv6;
    __u8 tos;
    __wsum sum; /* of all its bytes from the IP header on */
};

union ip_header {
    struct iphdr v4;
    struct ipv6hdr v6;
};

static __always_inline int count(enum hb_tunnel_counter counter, int verdict)
{
    __u32 index = counter;
    __u64 *value = bpf_map_lookup_elem(&hb_counters, &index);

    if (value)
        (*value)++;
    return verdict;
}

static __always_inline __wsum sum_of(const void *bytes, __u32 size, __wsum sum)
{
    return (__wsum)bpf_csum_diff(0, 0, (void *)bytes, size, sum);
}

static __always_inline __sum16 fold(__wsum sum)
{
    __u32 s = sum;

    s = (s & 0xffff) + (s >> 16);
    s = (s & 0xffff) + (s >> 16);
    return (__sum16)~s;
}

/* Addresses, length and protocol, as TCP and UDP sum them up (RFC 9293, RFC 8200). */
static __always_inline __wsum pseudo_sum(const void *addresses, __u32 size, __u32 length,
                                         __u8 protocol)
{
    __be32 words[2] = {bpf_htonl(length), bpf_htonl(protocol)};

    return sum_of(words, sizeof(words), sum_of(addresses, size, 0));
}

/*
 * The sum of the whole probe without reading it: a segment that has a checksum sums up to the
 * complement of its pseudo-header, whether the kernel has filled the checksum in already or leaves
 * it to the device (as with TCP). An IPv4 header sums up to nothing, and so does an ICMP message,
 * which has no pseudo-header.
 */
static __always_inline int read_probe(struct __sk_buff *skb, struct probe *probe)
{
    union ip_header ip;
    __wsum pseudo = 0;

    probe->size = skb->len;
    probe->is_ipv6 = skb->protocol == bpf_htons(ETH_P_IPV6);
    if (probe->is_ipv6) {
        if (bpf_skb_load_bytes(skb, 0, &ip.v6, sizeof(ip.v6)))
            return -1;
        probe->tos = ip.v6.priority << 4 | ip.v6.flow_lbl[0] >> 4;
        pseudo = pseudo_sum(&ip.v6.saddr, 32, bpf_ntohs(ip.v6.payload_len), ip.v6.nexthdr);
        probe->sum = sum_of(&ip.v6, sizeof(ip.v6), 0);
    } else {
        if (bpf_skb_load_bytes(skb, 0, &ip.v4, sizeof(ip.v4)))
            return -1;
        probe->tos = ip.v4.tos;
        if (ip.v4.protocol != IPPROTO_ICMP)
            pseudo = pseudo_sum(&ip.v4.saddr, 8, bpf_ntohs(ip.v4.tot_len) - ip.v4.ihl * 4,
                                ip.v4.protocol);
        probe->sum = 0;
    }
    if (pseudo) {
        __be32 complement = (__u16)fold(pseudo);

        probe->sum = sum_of(&complement, sizeof(complement), probe->sum);
    }
    return 0;
}

static __always_inline __u8 outer_protocol(const struct hb_probe_tunnel *tunnel,
                                           const struct probe *probe)
{
    if (tunnel->kind == HB_TUNNEL_IPIP)
        return probe->is_ipv6 ? IPPROTO_IPV6 : IPPROTO_IPIP;
    return tunnel->kind == HB_TUNNEL_GRE ? IPPROTO_GRE : IPPROTO_UDP;
}

static __always_inline void fill_ipv4(struct iphdr *ip, const struct hb_probe_tunnel *tunnel,
                                      const struct probe *probe)
{
    ip->tos = probe->tos;
    ip->tot_len = bpf_htons(tunnel->outer_size + probe->size);
    ip->frag_off = bpf_htons(DONT_FRAGMENT);
    ip->protocol = outer_protocol(tunnel, probe);
    ip->check = 0;
    ip->check = fold(sum_of(ip, sizeof(*ip), 0));
}

static __always_inline void fill_ipv6(struct ipv6hdr *ip, const struct hb_probe_tunnel *tunnel,
                                      const struct probe *probe)
{
    ip->priority = probe->tos >> 4;
    ip->flow_lbl[0] = (ip->flow_lbl[0] & 15) | probe->tos << 4;
    ip->payload_len = bpf_htons(tunnel->outer_size - sizeof(*ip) + probe->size);
    ip->nexthdr = outer_protocol(tunnel, probe);
}

static __always_inline void
fill_udp(__u8 *tail, __u32 ip_size, const struct hb_probe_tunnel *tunnel, const struct probe *probe)
{
    struct udphdr *udp = (struct udphdr *)tail;
    __be16 ether_type = probe->is_ipv6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);

    if (!udp->source)
        udp->source = bpf_htons(SOURCE_PORT);
    udp->len = bpf_htons(tunnel->outer_size - ip_size + probe->size);
    udp->check = 0;
    if (tunnel->kind == HB_TUNNEL_GUE)
        tail[sizeof(*udp) + 1] = probe->is_ipv6 ? IPPROTO_IPV6 : IPPROTO_IPIP;
    if (tunnel->kind == HB_TUNNEL_VXLAN)
        __builtin_memcpy(tail + sizeof(*udp) + VXLAN_SIZE + 12, &ether_type, 2);
}

/* The UDP checksum over the whole datagram; `tail` is all of the outer headers behind the IP
 * header, its buffer zero to a multiple of four bytes. */
static __always_inline void sum_udp(__u8 *outer, __u32 ip_size, const void *addresses,
                                    __u32 addresses_size, const struct probe *probe)
{
    struct udphdr *udp = (struct udphdr *)(outer + ip_size);
    __wsum sum = pseudo_sum(addresses, addresses_size, bpf_ntohs(udp->len), IPPROTO_UDP);

    sum = sum_of(outer + ip_size, 40, sum);
    sum = sum_of(&probe->sum, sizeof(probe->sum), sum);
    udp->check = fold(sum);
    if (!udp->check)
        udp->check = 0xffff;
}

/* What lies behind the outer IP header. */
static __always_inline void fill_tail(__u8 *tail, __u32 ip_size,
                                      const struct hb_probe_tunnel *tunnel,
                                      const struct probe *probe)
{
    __be16 ether_type = probe->is_ipv6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);

    if (tunnel->kind == HB_TUNNEL_IPIP)
        return;
    if (tunnel->kind == HB_TUNNEL_GRE)
        __builtin_memcpy(tail + 2, &ether_type, sizeof(ether_type));
    else
        fill_udp(tail, ip_size, tunnel, probe);
}

static __always_inline void fill_outer(__u8 *outer, const struct hb_probe_tunnel *tunnel,
                                       const struct probe *probe)
{
    if (tunnel->family == 4) {
        struct iphdr *ip = (struct iphdr *)outer;

        fill_tail(outer + sizeof(*ip), sizeof(*ip), tunnel, probe);
        fill_ipv4(ip, tunnel, probe);
        if (tunnel->udp_checksum)
            sum_udp(outer, sizeof(*ip), &ip->saddr, 8, probe);
    } else {
        struct ipv6hdr *ip = (struct ipv6hdr *)outer;

        fill_tail(outer + sizeof(*ip), sizeof(*ip), tunnel, probe);
        fill_ipv6(ip, tunnel, probe);
        if (tunnel->udp_checksum)
            sum_udp(outer, sizeof(*ip), &ip->saddr, 32, probe);
    }
}

/* Room for the outer headers. The flags tell devices that compute checksums where the inner packet
 * begins; they would take it for the outer one else. */
static __always_inline int make_room(struct __sk_buff *skb, const struct hb_probe_tunnel *tunnel)
{
    __u64 flags = tunnel->family == 4 ? BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 : BPF_F_ADJ_ROOM_ENCAP_L3_IPV6;

    if (tunnel->kind == HB_TUNNEL_GRE)
        flags |= BPF_F_ADJ_ROOM_ENCAP_L4_GRE;
    else if (tunnel->kind != HB_TUNNEL_IPIP)
        flags |= BPF_F_ADJ_ROOM_ENCAP_L4_UDP;
    if (tunnel->kind == HB_TUNNEL_VXLAN)
        flags |= BPF_F_ADJ_ROOM_ENCAP_L2(ETH_HLEN);
    return (int)bpf_skb_adjust_room(skb, tunnel->outer_size, BPF_ADJ_ROOM_MAC, flags);
}

/* Returns 0 when the frame is ready. */
static __always_inline int wrap(struct __sk_buff *skb, const struct hb_probe_tunnel *tunnel)
{
    struct probe probe = {0};
    __u8 outer[sizeof(tunnel->outer)];
    __u8 link[sizeof(tunnel->link)];
    __u32 outer_size = tunnel->outer_size, link_size = tunnel->link_size;
    __be16 ether_type = skb->protocol;

    if (link_size < ETH_HLEN || link_size > HB_TUNNEL_LINK_MAX || outer_size > HB_TUNNEL_OUTER_MAX)
        return -1;
    if (read_probe(skb, &probe))
        return -1;
    __builtin_memcpy(outer, tunnel->outer, sizeof(outer));
    __builtin_memcpy(link, tunnel->link, sizeof(link));
    if (outer_size > 0) {
        fill_outer(outer, tunnel, &probe);
        if (make_room(skb, tunnel))
            return -1;
    }
    if (bpf_skb_change_head(skb, link_size, 0))
        return -1;
    if (outer_size > 0 && bpf_skb_store_bytes(skb, link_size, outer, outer_size, 0))
        return -1;
    if (bpf_skb_store_bytes(skb, 0, link, link_size, 0))
        return -1;
    /* Without a tunnel the frame's type is the probe's. */
    if (outer_size == 0)
        return (int)bpf_skb_store_bytes(skb, link_size - sizeof(ether_type), &ether_type,
                                        sizeof(ether_type), 0);
    return 0;
}

SEC("tc")
int hb_probe(struct __sk_buff *skb)
{
    __u32 number = skb->mark & ~HB_TUNNEL_MARK_MASK;
    struct hb_probe_tunnel *tunnel;

    if ((skb->mark & HB_TUNNEL_MARK_MASK) != HB_TUNNEL_MARK)
        return count(HB_TUNNEL_UNKNOWN, TC_ACT_SHOT);
    tunnel = bpf_map_lookup_elem(&hb_tunnels, &number);
    if (!tunnel)
        return count(HB_TUNNEL_UNKNOWN, TC_ACT_SHOT);
    if (wrap(skb, tunnel))
        return count(HB_TUNNEL_FAILED, TC_ACT_SHOT);
    skb->mark = 0;
    count(HB_TUNNEL_SENT, 0);
    return (int)bpf_redirect(tunnel->ifindex, 0);
}

char LICENSE[] SEC("license") = "GPL";
