/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rewrite_tunnel.c: outer headers: IPv4 (RFC 2003, RFC 4213) or IPv6 (RFC 2473), then nothing
 * (IPIP), UDP and four bytes (GUE variant 0), UDP (GUE variant 1), four bytes (GRE, RFC 2784), or
 * UDP, VXLAN (RFC 7348) and an Ethernet header.
 */
#include <stdio.h>
#include <string.h>

#include "rewrite_internal.h"

#define IPV4_SIZE      20
#define IPV6_SIZE      40
#define UDP_SIZE       8
#define GUE_SIZE       4
#define GRE_SIZE       4
#define VXLAN_SIZE     8
#define ETHERNET_SIZE  14
#define OUTER_TTL      64
#define VXLAN_FLAG_VNI 0x08

/* The header has ports, by which receivers spread what arrives. */
static bool has_ports(enum hb_forwarding forwarding)
{
    return forwarding == HB_FORWARDING_GUE || forwarding == HB_FORWARDING_GUE1 ||
           forwarding == HB_FORWARDING_VXLAN;
}

/* Nothing that the kernel knows of the way may stand inside the prefix (BL-08); the rest was
 * checked with the configuration. */
static bool check_prefix(const struct hb_rewrite_draft *draft)
{
    const struct hb_address_prefix *prefix = draft->wish->prefix;
    const struct hb_next_hop *hop = draft->hop;
    bool gateway = hb_address_prefix_holds(prefix, &hop->gateway);
    char text[HB_ADDRESS_TEXT];

    if (!gateway && !hb_address_prefix_holds(prefix, &hop->source))
        return true;
    snprintf(draft->problem, draft->problem_size,
             "tunnel.source_prefix%s holds %s, which is %s; use a prefix that nothing else is in",
             draft->to->family == HB_FAMILY_IPV4 ? "" : "6",
             hb_address_print(gateway ? &hop->gateway : &hop->source, text),
             gateway ? "the next hop" : "this machine's own");
    return false;
}

/* The outer source, or NULL with the problem. */
static const struct hb_address *find_source(const struct hb_rewrite_draft *draft)
{
    const struct hb_rewrite_wish *wish = draft->wish;
    const struct hb_address *source = wish->source;
    char text[HB_ADDRESS_TEXT];

    if (wish->prefix->address.family != 0 && !has_ports(wish->forwarding)) {
        draft->rewrite->spread =
            (uint8_t)(hb_address_bits(draft->to->family) - wish->prefix->length);
        return check_prefix(draft) ? &wish->prefix->address : NULL;
    }
    if (source->family == 0)
        source = &draft->hop->source;
    if (source->family == draft->to->family)
        return source;
    snprintf(draft->problem, draft->problem_size,
             "no source address for the tunnel to %s; set tunnel.%s in the configuration",
             hb_address_print(draft->to, text),
             draft->to->family == HB_FAMILY_IPV4 ? "source" : "source6");
    return NULL;
}

/* Each returns its size. */
static uint32_t put_ip(uint8_t *at, const struct hb_address *source, const struct hb_address *to)
{
    if (to->family == HB_FAMILY_IPV4) {
        at[0] = 0x45; /* version 4, five words */
        at[8] = OUTER_TTL;
        memcpy(at + 12, source->bytes, 4);
        memcpy(at + 16, to->bytes, 4);
        return IPV4_SIZE;
    }
    at[0] = 0x60; /* version 6 */
    at[7] = OUTER_TTL;
    memcpy(at + 8, source->bytes, 16);
    memcpy(at + 24, to->bytes, 16);
    return IPV6_SIZE;
}

static uint32_t put_udp(struct hb_rewrite *rewrite, uint8_t *at, const struct hb_udp_options *udp)
{
    hb_put16(at + 2, udp->port);
    if (rewrite->family == HB_FAMILY_IPV4 && udp->checksum)
        rewrite->flags |= HB_REWRITE_UDP_CHECKSUM;
    if (rewrite->family == HB_FAMILY_IPV6 && udp->zero_checksum6)
        rewrite->flags |= HB_REWRITE_NO_UDP_CHECKSUM6;
    return UDP_SIZE;
}

/* A MAC address that both ends can make of an IP address: locally administered, "H", and the last
 * four bytes. */
static void put_mac(uint8_t *at, const uint8_t *configured, const struct hb_address *address)
{
    static const uint8_t none[6];
    uint32_t size = address->family == HB_FAMILY_IPV4 ? 4 : HB_ADDRESS_SIZE;

    memcpy(at, configured, 6);
    if (memcmp(configured, none, 6) != 0)
        return;
    at[0] = 0x02;
    at[1] = 'H';
    memcpy(at + 2, address->bytes + size - 4, 4);
}

static uint32_t put_vxlan(uint8_t *at, const struct hb_forwarding_options *options,
                          const struct hb_address *source, const struct hb_address *to)
{
    at[0] = VXLAN_FLAG_VNI;
    at[4] = (uint8_t)(options->vxlan_vni >> 16);
    hb_put16(at + 5, options->vxlan_vni & 0xffff);
    put_mac(at + VXLAN_SIZE, options->vxlan_mac, to);
    put_mac(at + VXLAN_SIZE + 6, options->vxlan_source_mac, source);
    return VXLAN_SIZE + ETHERNET_SIZE;
}

static uint32_t put_shim(struct hb_rewrite_draft *draft, uint8_t *at,
                         const struct hb_address *source)
{
    const struct hb_forwarding_options *options = draft->wish->options;

    switch (draft->wish->forwarding) {
    case HB_FORWARDING_GUE:
        return put_udp(draft->rewrite, at, &options->gue) + GUE_SIZE;
    case HB_FORWARDING_GUE1:
        return put_udp(draft->rewrite, at, &options->gue);
    case HB_FORWARDING_GRE:
        return GRE_SIZE;
    case HB_FORWARDING_VXLAN:
        return put_udp(draft->rewrite, at, &options->vxlan) +
               put_vxlan(at + UDP_SIZE, options, source, draft->to);
    default:
        return 0;
    }
}

bool hb_rewrite_put_tunnel(struct hb_rewrite_draft *draft)
{
    struct hb_rewrite *rewrite = draft->rewrite;
    const struct hb_address *source = find_source(draft);
    uint32_t size = rewrite->l2_size;

    if (source == NULL)
        return false;
    size += put_ip(rewrite->bytes + size, source, draft->to);
    size += put_shim(draft, rewrite->bytes + size, source);
    rewrite->size = (uint8_t)size;
    return true;
}
