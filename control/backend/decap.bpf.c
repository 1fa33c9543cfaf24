/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * decap.bpf.c: unwraps tunnel packets from the balancers (IPIP, GUE, GRE, VXLAN, around and over
 * both families), and gives packets that came by L3DSR their VIP back.
 *
 * A packet is unwrapped only when its outer source is in one of the tunnel sources' prefixes and
 * its inner destination in one of the VIPs'; every other packet passes untouched, so neither
 * somebody else's tunnel nor a stranger's tunnel packet to us gets in by this way. The one packet
 * that is dropped is one whose congestion mark would be lost (RFC 6040, section 4.2).
 *
 * All lengths are checked before anything is changed. The steps, in order: link layer, outer
 * headers (decap_outer.bpf.h), source, lengths, inner header (decap_inner.bpf.h), VIP, congestion
 * mark, cut; what is no tunnel packet of a balancer may be marked (decap_mark.bpf.h). One header is
 * taken off, never two.
 *
 * Frames longer than one buffer (jumbo frames) come in fragments; the section's name says that the
 * program copes: it looks at headers only, and these are in the first.
 */
#include "decap_inner.bpf.h"
#include "decap_mark.bpf.h"

#define VLAN_DEPTH 1

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(max_entries, HB_DECAP_VIPS_MAX);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct hb_decap_prefix);
    __type(value, __u8);
} hb_vips SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(max_entries, HB_DECAP_SOURCES_MAX);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct hb_decap_prefix);
    __type(value, __u8);
} hb_sources SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, HB_DECAP_MARKS_MAX);
    __type(key, struct hb_decap_mark);
    __type(value, struct hb_decap_address);
} hb_marks SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct hb_decap_settings);
} hb_settings SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, HB_DECAP_COUNT);
    __type(key, __u32);
    __type(value, __u64);
} hb_counters SEC(".maps");

static __always_inline int count(enum hb_decap_counter counter, int verdict)
{
    __u32 index = counter;
    __u64 *value = bpf_map_lookup_elem(&hb_counters, &index);

    if (value)
        (*value)++;
    return verdict;
}

SEC("xdp.frags")
int hb_decap(struct xdp_md *ctx)
{
    void *start = (void *)(long)ctx->data;
    void *end = (void *)(long)ctx->data_end;
    const struct hb_decap_settings *settings;
    struct tunnel tunnel = {0};
    struct inner inner = {0};
    __u32 first = 0, headers;
    void *l3 = start;
    void *inner_l3;
    __be16 ether_type;
    int tagged, is_tunnel, err;

    settings = bpf_map_lookup_elem(&hb_settings, &first);
    if (!settings)
        return count(HB_DECAP_PASSED, XDP_PASS);
    ether_type = skip_link_layer(&l3, end, VLAN_DEPTH);
    tagged = l3 - start > (long)sizeof(struct ethhdr);
    is_tunnel = read_outer(&tunnel, ether_type, l3, end, settings);
    if (!is_tunnel || !holds(&hb_sources, &tunnel.source)) {
        if (restore(ether_type, l3, end, &hb_marks))
            return count(HB_DECAP_RESTORED, XDP_PASS);
        return count(is_tunnel ? HB_DECAP_NOT_SOURCE : HB_DECAP_PASSED, XDP_PASS);
    }
    if (!check_lengths(&tunnel, bpf_xdp_get_buff_len(ctx) - (__u64)(l3 - start)))
        return count(HB_DECAP_MALFORMED, XDP_PASS);

    headers = (tunnel.header_size + tunnel.shim_size) & 0x7f;
    inner_l3 = l3 + headers;
    if (!read_inner(&inner, &tunnel, inner_l3, end))
        return count(HB_DECAP_MALFORMED, XDP_PASS);
    if (!holds(&hb_vips, &inner.destination))
        return count(HB_DECAP_NOT_VIP, XDP_PASS);
    if (carry_ecn(&tunnel, inner_l3, end) < 0)
        return count(HB_DECAP_ECN_DROPPED, XDP_DROP);

    if (tagged)
        err = cut(ctx, LINK_HEADER_MAX, headers, inner.ether_type);
    else
        err = cut(ctx, sizeof(struct ethhdr), headers, inner.ether_type);
    if (err)
        return count(HB_DECAP_MALFORMED, XDP_DROP);
    return count(HB_DECAP_DECAPSULATED, XDP_PASS);
}

char LICENSE[] SEC("license") = "GPL";
