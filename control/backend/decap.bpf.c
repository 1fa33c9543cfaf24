/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * decap.bpf.c: unwraps IP-in-IP packets from the balancers, in all four combinations of families.
 *
 * A packet is unwrapped only when its outer source is one of the tunnel sources and its inner
 * destination one of the VIPs; every other packet passes untouched, so neither somebody else's
 * tunnel nor a stranger's tunnel packet to us gets in by this way. The one packet that is dropped
 * is one whose congestion mark would be lost (RFC 6040, section 4.2).
 *
 * All lengths are checked before anything is changed. The steps, in order: link layer, outer header
 * (struct tunnel), source, lengths, inner header (struct inner), VIP, congestion mark, cut. RFC
 * 2003 (IPv4 in IPv4), RFC 4213 (IPv6 in IPv4), RFC 2473 (either in IPv6).
 *
 * Frames longer than one buffer (jumbo frames) come in fragments; the section's name says that the
 * program copes: it looks at headers only, and these are in the first.
 */
#include <linux/bpf.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "decap_maps.h"
#include "link_layer.h"

#define VLAN_DEPTH       1
#define FRAGMENT_BITS    0x3fff /* offset and "more fragments" */
#define IPV6_FRAG_HEADER 44
#define ECN_MASK         3
#define ECN_NOT_ECT      0
#define ECN_ECT1         1
#define ECN_CE           3
#define LINK_HEADER_MAX  18 /* Ethernet and one tag */

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, HB_DECAP_VIPS_MAX);
    __type(key, struct hb_decap_address);
    __type(value, __u8);
} hb_vips SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, HB_DECAP_SOURCES_MAX);
    __type(key, struct hb_decap_address);
    __type(value, __u8);
} hb_sources SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, HB_DECAP_COUNT);
    __type(key, __u32);
    __type(value, __u64);
} hb_counters SEC(".maps");

/* The outer header. Read as far as it is there; checked by check_lengths. */
struct tunnel {
    struct hb_decap_address source;
    __u32 header_size;
    __u32 packet_size; /* by its own length field, header included */
    __u8 protocol;     /* of the inner packet: IPPROTO_IPIP or IPPROTO_IPV6 */
    __u8 ecn;
    __u8 fragment;
};

struct inner {
    struct hb_decap_address destination;
    __be16 ether_type;
};

static __always_inline int count(enum hb_decap_counter counter, int verdict)
{
    __u32 index = counter;
    __u64 *value = bpf_map_lookup_elem(&hb_counters, &index);

    if (value)
        (*value)++;
    return verdict;
}

static __always_inline int is_tunnel(__u8 protocol)
{
    return protocol == IPPROTO_IPIP || protocol == IPPROTO_IPV6;
}

static __always_inline void set_ipv4(struct hb_decap_address *address, const __be32 *from)
{
    address->family = 4;
    __builtin_memcpy(address->bytes, from, 4);
}

static __always_inline void set_ipv6(struct hb_decap_address *address, const struct in6_addr *from)
{
    address->family = 6;
    __builtin_memcpy(address->bytes, from, 16);
}

/* Traffic class bits 4 to 7 stand in the second byte's upper half. */
static __always_inline __u8 ipv6_ecn(const struct ipv6hdr *ip)
{
    return ip->flow_lbl[0] >> 4 & ECN_MASK;
}

static __always_inline int read_outer4(struct tunnel *tunnel, struct iphdr *ip, void *end)
{
    if ((void *)(ip + 1) > end || !is_tunnel(ip->protocol))
        return 0;
    set_ipv4(&tunnel->source, &ip->saddr);
    tunnel->header_size = ip->version == 4 ? ip->ihl * 4 : 0;
    tunnel->packet_size = bpf_ntohs(ip->tot_len);
    tunnel->protocol = ip->protocol;
    tunnel->ecn = ip->tos & ECN_MASK;
    tunnel->fragment = (ip->frag_off & bpf_htons(FRAGMENT_BITS)) != 0;
    return 1;
}

static __always_inline int read_outer6(struct tunnel *tunnel, struct ipv6hdr *ip, void *end)
{
    __u8 *fragment_header = (__u8 *)(ip + 1);

    if ((void *)(ip + 1) > end)
        return 0;
    tunnel->protocol = ip->nexthdr;
    if (ip->nexthdr == IPV6_FRAG_HEADER && (void *)(fragment_header + 1) <= end) {
        tunnel->protocol = *fragment_header;
        tunnel->fragment = 1;
    }
    if (!is_tunnel(tunnel->protocol))
        return 0;
    set_ipv6(&tunnel->source, &ip->saddr);
    tunnel->header_size = ip->version == 6 ? sizeof(*ip) : 0;
    tunnel->packet_size = sizeof(*ip) + bpf_ntohs(ip->payload_len);
    tunnel->ecn = ipv6_ecn(ip);
    return 1;
}

/* Reads the outer header. Returns 0 when the packet is no IP-in-IP packet. */
static __always_inline int read_outer(struct tunnel *tunnel, __be16 ether_type, void *l3, void *end)
{
    if (ether_type == bpf_htons(ETH_P_IP))
        return read_outer4(tunnel, l3, end);
    if (ether_type == bpf_htons(ETH_P_IPV6))
        return read_outer6(tunnel, l3, end);
    return 0;
}

/* `room`: bytes of the frame from the outer header on. A fragment is not reassembled here. */
static __always_inline int check_lengths(const struct tunnel *tunnel, __u64 room)
{
    return !tunnel->fragment && tunnel->header_size >= sizeof(struct iphdr) &&
           tunnel->packet_size > tunnel->header_size && tunnel->packet_size <= room;
}

/* `room`: bytes that the outer header promises. The frame holds them. */
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
    __u32 room = tunnel->packet_size - tunnel->header_size;

    if (tunnel->protocol == IPPROTO_IPIP)
        return read_inner4(inner, l3, end, room);
    return read_inner6(inner, l3, end, room);
}

/* Changes the two ECN bits of an IPv4 header and its checksum with them (RFC 1624, equation 3: the
 * 16-bit word changes from m to m', and HC' = ~(~HC + ~m + m')). */
static __always_inline void set_ipv4_ecn(struct iphdr *ip, __u8 ecn)
{
    __u16 old_word = bpf_ntohs(*(__be16 *)ip);
    __u16 new_word = (old_word & ~ECN_MASK) | ecn;
    __u32 sum = (__u16)~bpf_ntohs(ip->check) + (__u16)~old_word + (__u32)new_word;

    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    ip->tos = (ip->tos & ~ECN_MASK) | ecn;
    ip->check = bpf_htons((__u16)~sum);
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

/* Cuts the outer header out: the link header moves up to the inner one, with its EtherType. Returns
 * 0 or -1, and then the packet is beyond repair. `link_size` is a constant where this is inlined.
 */
static __always_inline int cut(struct xdp_md *ctx, __u32 link_size, __u32 header_size,
                               __be16 ether_type)
{
    void *data = (void *)(long)ctx->data;
    void *end = (void *)(long)ctx->data_end;
    __u8 link[LINK_HEADER_MAX];

    if (data + link_size > end)
        return -1;
    __builtin_memcpy(link, data, link_size);
    __builtin_memcpy(link + link_size - sizeof(ether_type), &ether_type, sizeof(ether_type));

    if (bpf_xdp_adjust_head(ctx, (int)header_size))
        return -1;
    data = (void *)(long)ctx->data;
    end = (void *)(long)ctx->data_end;
    if (data + link_size > end)
        return -1;
    __builtin_memcpy(data, link, link_size);
    return 0;
}

SEC("xdp.frags")
int hb_decap(struct xdp_md *ctx)
{
    void *start = (void *)(long)ctx->data;
    void *end = (void *)(long)ctx->data_end;
    void *l3 = start;
    void *inner_l3;
    struct tunnel tunnel = {0};
    struct inner inner = {0};
    __be16 ether_type;
    int tagged, err;

    ether_type = skip_link_layer(&l3, end, VLAN_DEPTH);
    tagged = l3 - start > (long)sizeof(struct ethhdr);
    if (!read_outer(&tunnel, ether_type, l3, end))
        return count(HB_DECAP_PASSED, XDP_PASS);
    if (!bpf_map_lookup_elem(&hb_sources, &tunnel.source))
        return count(HB_DECAP_NOT_SOURCE, XDP_PASS);
    if (!check_lengths(&tunnel, bpf_xdp_get_buff_len(ctx) - (__u64)(l3 - start)))
        return count(HB_DECAP_MALFORMED, XDP_PASS);

    inner_l3 = l3 + (tunnel.header_size & 0x3f);
    if (!read_inner(&inner, &tunnel, inner_l3, end))
        return count(HB_DECAP_MALFORMED, XDP_PASS);
    if (!bpf_map_lookup_elem(&hb_vips, &inner.destination))
        return count(HB_DECAP_NOT_VIP, XDP_PASS);
    if (carry_ecn(&tunnel, inner_l3, end) < 0)
        return count(HB_DECAP_ECN_DROPPED, XDP_DROP);

    if (tagged)
        err = cut(ctx, LINK_HEADER_MAX, tunnel.header_size, inner.ether_type);
    else
        err = cut(ctx, sizeof(struct ethhdr), tunnel.header_size, inner.ether_type);
    if (err)
        return count(HB_DECAP_MALFORMED, XDP_DROP);
    return count(HB_DECAP_DECAPSULATED, XDP_PASS);
}

char LICENSE[] SEC("license") = "GPL";
