/* SPDX-License-Identifier: GPL-2.0-only */
/* decap_headers.bpf.h: protocol numbers, addresses and checksums, for the parts of decap.bpf.c. */
#ifndef HB_BACKEND_DECAP_HEADERS_BPF_H
#define HB_BACKEND_DECAP_HEADERS_BPF_H

#include <linux/bpf.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "decap_maps.h"
#include "link_layer.h"

#define FRAGMENT_BITS    0x3fff /* offset and "more fragments" */
#define OFFSET_BITS      0x1fff
#define IPV6_FRAG_HEADER 44
#define ECN_MASK         3

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

/* Is the address in one of the map's prefixes? */
static __always_inline int holds(void *map, const struct hb_decap_address *address)
{
    struct hb_decap_prefix key = {.bits = address->family == 4 ? 8 + 32 : 8 + 128,
                                  .family = address->family};

    __builtin_memcpy(key.bytes, address->bytes, sizeof(key.bytes));
    return bpf_map_lookup_elem(map, &key) != 0;
}

/* Traffic class bits 4 to 7 stand in the second byte's upper half. */
static __always_inline __u8 ipv6_ecn(const struct ipv6hdr *ip)
{
    return ip->flow_lbl[0] >> 4 & ECN_MASK;
}

static __always_inline __u16 fold(__u64 sum)
{
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

/* A checksum after words that sum up to `before` became such that sum up to `after` (RFC 1624,
 * equation 3). All as they stand in the packet. */
static __always_inline __u16 update_sum(__u16 checksum, __u64 before, __u64 after)
{
    return ~fold((__u64)(__u16)~checksum + (__u16)~fold(before) + fold(after));
}

#endif
