/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * steer.bpf.c: gives the dataplane the packets addressed to a VIP, and the kernel all others.
 *
 * A VIP's packets go to the AF_XDP socket of the queue they arrived on. While no socket is bound
 * there (the dataplane starts, or has died), they are dropped: the kernel must not see them,
 * because it would forward them in a circle or answer "unreachable" and so break connections that a
 * retransmission saves. Whatever this program does not understand (unknown EtherType, more than two
 * VLAN tags, a header cut short) is the kernel's, which has its own counters for it.
 *
 * With NAT the answers of backends come here as well, addressed to clients. They are told by where
 * they come from, and go the same way, unless they are addressed to this machine: then they answer
 * a health check, or somebody else here.
 *
 * What goes to the kernel is limited to a rate, so that a flood toward the host leaves its CPU to
 * the dataplane; what keeps the host reachable has a rate of its own, as in punt.c.
 *
 * Neighbour discovery is the kernel's too, even when it is sent to a VIP: neighbours probe an
 * address by unicast, and only the kernel answers for it.
 */
#include <linux/bpf.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include <bpf/bpf_helpers.h>

#include "link_layer.h"
#include "steer_maps.h"

#define VLAN_DEPTH   2
#define ND_FIRST     133 /* router solicitation, RFC 4861 */
#define ND_LAST      137 /* redirect */
#define ND_HOP_LIMIT 255 /* what every valid ND packet has: it was not forwarded */

/* net_af_xdp looks for the first XSKMAP by this name. */
struct {
    __uint(type, BPF_MAP_TYPE_XSKMAP);
    __uint(max_entries, HB_STEER_QUEUES_MAX);
    __type(key, __u32);
    __type(value, __u32);
} xsks_map SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, HB_STEER_VIPS_MAX);
    __type(key, struct hb_steer_vip);
    __type(value, __u8);
} hb_vips SEC(".maps");

/* Most machines have no answers to expect: no memory is taken before there are some. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, HB_STEER_ANSWERS_MAX);
    __type(key, struct hb_steer_answer);
    __type(value, __u8);
} hb_answers SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, HB_STEER_OWN_MAX);
    __type(key, struct hb_steer_vip);
    __type(value, __u8);
} hb_own SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(max_entries, HB_STEER_VIPS_MAX);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct hb_steer_prefix);
    __type(value, __u8);
} hb_prefixes SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, HB_STEER_COUNT);
    __type(key, __u32);
    __type(value, __u64);
} hb_counters SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct hb_steer_limit);
} hb_limit SEC(".maps");

static __always_inline int count(enum hb_steer_counter counter, int verdict)
{
    __u32 index = counter;
    __u64 *value = bpf_map_lookup_elem(&hb_counters, &index);

    if (value)
        (*value)++;
    return verdict;
}

static __always_inline int is_neighbour_discovery(struct ipv6hdr *ip, void *end)
{
    __u8 *type = (__u8 *)(ip + 1);

    if (ip->nexthdr != IPPROTO_ICMPV6 || ip->hop_limit != ND_HOP_LIMIT)
        return 0;
    if ((void *)(type + 1) > end)
        return 0;
    return *type >= ND_FIRST && *type <= ND_LAST;
}

#define SECOND_NS 1000000000ULL
#define BURST_NS  100000000ULL /* a bucket holds what a tenth of a second brings */

/* A bucket of time: a packet takes SECOND_NS / rate of it. Written without a division: tokens are
 * kept `rate` times larger. */
static __always_inline int may_pass(__u32 class)
{
    __u32 index = 0;
    struct hb_steer_limit *limit = bpf_map_lookup_elem(&hb_limit, &index);
    __u64 now, elapsed, room;

    if (!limit || limit->rate == 0)
        return 1;
    class &= 1;
    now = bpf_ktime_get_ns();
    elapsed = now - limit->filled_ns[class];
    limit->filled_ns[class] = now;
    if (elapsed > SECOND_NS) /* more would not fit, nor is it needed */
        elapsed = SECOND_NS;
    room = limit->rate * BURST_NS;
    if (room < SECOND_NS)
        room = SECOND_NS;
    limit->tokens[class] += elapsed * limit->rate;
    if (limit->tokens[class] > room)
        limit->tokens[class] = room;
    if (limit->tokens[class] < SECOND_NS)
        return 0;
    limit->tokens[class] -= SECOND_NS;
    return 1;
}

/* BGP and BFD by their ports. An address that is a VIP's has been steered away before. */
static __always_inline int is_routing(__u8 protocol, void *l4, void *end)
{
    __be16 *ports = l4;

    if ((void *)(ports + 2) > end)
        return 0;
    if (protocol == IPPROTO_TCP)
        return ports[0] == bpf_htons(179) || ports[1] == bpf_htons(179);
    return protocol == IPPROTO_UDP && ports[1] == bpf_htons(3784);
}

/* Does the packet keep the host reachable? Of IPv4 with options only the plain protocols count. */
static __always_inline __u32 class_of(__be16 ether_type, void *l3, void *end)
{
    struct iphdr *ip4 = l3;
    struct ipv6hdr *ip6 = l3;

    if (ether_type == bpf_htons(ETH_P_ARP))
        return 1;
    if (ether_type == bpf_htons(ETH_P_IP) && (void *)(ip4 + 1) <= end && ip4->ihl == 5)
        return is_routing(ip4->protocol, ip4 + 1, end);
    if (ether_type == bpf_htons(ETH_P_IPV6) && (void *)(ip6 + 1) <= end)
        return is_neighbour_discovery(ip6, end) || is_routing(ip6->nexthdr, ip6 + 1, end);
    return 0;
}

static __always_inline int pass(__be16 ether_type, void *l3, void *end)
{
    if (!may_pass(class_of(ether_type, l3, end)))
        return count(HB_STEER_LIMITED, XDP_DROP);
    return count(HB_STEER_PASSED, XDP_PASS);
}

/* Reads the destination. Returns 0 when it is not of a family we know, the header is cut short, or
 * the packet belongs to the kernel whatever its destination. */
static __always_inline int read_destination(struct hb_steer_vip *vip, __be16 ether_type, void *l3,
                                            void *end)
{
    struct iphdr *ip4 = l3;
    struct ipv6hdr *ip6 = l3;

    if (ether_type == bpf_htons(ETH_P_IP)) {
        if ((void *)(ip4 + 1) > end)
            return 0;
        vip->family = 4;
        __builtin_memcpy(vip->bytes, &ip4->daddr, sizeof(ip4->daddr));
        return 1;
    }
    if (ether_type == bpf_htons(ETH_P_IPV6)) {
        if ((void *)(ip6 + 1) > end || is_neighbour_discovery(ip6, end))
            return 0;
        vip->family = 6;
        __builtin_memcpy(vip->bytes, &ip6->daddr, sizeof(ip6->daddr));
        return 1;
    }
    return 0;
}

/* The ports of TCP and UDP are the first thing there; of ICMP only errors are of interest. Returns
 * 0 when it is not a packet that NAT knows. */
static __always_inline int read_port(struct hb_steer_answer *answer, void *l4, void *end)
{
    __be16 *port = l4;
    __u8 *type = l4;

    if ((void *)(port + 1) > end)
        return 0;
    switch (answer->protocol) {
    case IPPROTO_TCP:
    case IPPROTO_UDP:
        answer->port = *port;
        return 1;
    case IPPROTO_ICMP:
        return *type == 3 || *type == 11 || *type == 12;
    case IPPROTO_ICMPV6:
        return *type >= 1 && *type <= 4;
    default:
        return 0;
    }
}

static __always_inline int read_answer4(struct hb_steer_answer *answer, struct iphdr *ip, void *end)
{
    if ((void *)(ip + 1) > end)
        return 0;
    answer->family = 4;
    answer->protocol = ip->protocol;
    __builtin_memcpy(answer->bytes, &ip->saddr, sizeof(ip->saddr));
    if (ip->frag_off & bpf_htons(0x1fff))
        return 1;
    return read_port(answer, (void *)ip + ip->ihl * 4, end);
}

/* Behind a fragment header, but no other extension header: backends send none. */
static __always_inline int read_answer6(struct hb_steer_answer *answer, struct ipv6hdr *ip,
                                        void *end)
{
    struct {
        __u8 next, reserved;
        __be16 offset;
        __be32 id;
    } *fragment = (void *)(ip + 1);
    void *l4 = ip + 1;

    if ((void *)(ip + 1) > end)
        return 0;
    answer->family = 6;
    answer->protocol = ip->nexthdr;
    __builtin_memcpy(answer->bytes, &ip->saddr, sizeof(ip->saddr));
    if (ip->nexthdr == IPPROTO_FRAGMENT) {
        if ((void *)(fragment + 1) > end)
            return 0;
        answer->protocol = fragment->next;
        if (fragment->offset & bpf_htons(0xfff8))
            return 1;
        l4 = fragment + 1;
    }
    return read_port(answer, l4, end);
}

/* An answer of a NAT backend, on its way to a client and not to this machine. */
static __always_inline int is_answer(__be16 ether_type, void *l3, void *end,
                                     struct hb_steer_vip *destination)
{
    struct hb_steer_answer answer = {0};
    int read = ether_type == bpf_htons(ETH_P_IP) ? read_answer4(&answer, l3, end)
                                                 : read_answer6(&answer, l3, end);

    return read && bpf_map_lookup_elem(&hb_answers, &answer) &&
           !bpf_map_lookup_elem(&hb_own, destination);
}

static __always_inline int is_vip(const struct hb_steer_vip *vip)
{
    struct hb_steer_prefix prefix = {.bits = 8 + (vip->family == 4 ? 32 : 128),
                                     .family = vip->family};

    if (bpf_map_lookup_elem(&hb_vips, vip))
        return 1;
    __builtin_memcpy(prefix.bytes, vip->bytes, sizeof(prefix.bytes));
    return bpf_map_lookup_elem(&hb_prefixes, &prefix) != 0;
}

SEC("xdp")
int hb_steer(struct xdp_md *ctx)
{
    void *cursor = (void *)(long)ctx->data;
    void *end = (void *)(long)ctx->data_end;
    struct hb_steer_vip vip = {0};
    __be16 ether_type = skip_link_layer(&cursor, end, VLAN_DEPTH);
    int verdict;

    if (is_vlan(ether_type))
        return count(HB_STEER_TAGS, XDP_PASS);
    if (!read_destination(&vip, ether_type, cursor, end))
        return pass(ether_type, cursor, end);
    if (!is_vip(&vip) && !is_answer(ether_type, cursor, end, &vip))
        return pass(ether_type, cursor, end);

    verdict = bpf_redirect_map(&xsks_map, ctx->rx_queue_index, XDP_DROP);
    return count(verdict == XDP_REDIRECT ? HB_STEER_REDIRECTED : HB_STEER_NO_SOCKET, verdict);
}

char LICENSE[] SEC("license") = "GPL";
