/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tunnel_headers.c: from a backend's rewrite to what tunnel.bpf.c puts in front of a probe.
 */
#include <stdio.h>
#include <string.h>

#include "tunnel.h"
#include "tunnel_maps.h"

#define IPV4_SIZE 20
#define IPV6_SIZE 40

static const struct {
    int kind;      /* enum hb_tunnel_kind; -1: an answer would not prove anything */
    uint32_t tail; /* bytes behind the outer IP header */
} modes[HB_FORWARDINGS] = {
    [0] = {-1, 0},
    [HB_FORWARDING_IPIP] = {HB_TUNNEL_IPIP, 0},
    [HB_FORWARDING_GUE] = {HB_TUNNEL_GUE, 12},
    [HB_FORWARDING_GUE1] = {HB_TUNNEL_GUE1, 8},
    [HB_FORWARDING_GRE] = {HB_TUNNEL_GRE, 4},
    [HB_FORWARDING_VXLAN] = {HB_TUNNEL_VXLAN, 30},
    [HB_FORWARDING_L2] = {HB_TUNNEL_NONE, 0},
    [HB_FORWARDING_L3DSR] = {-1, 0},
    [HB_FORWARDING_NAT] = {-1, 0},
    [HB_FORWARDING_FULL_NAT] = {-1, 0},
};

static bool wants_udp_checksum(const struct hb_rewrite *rewrite, int kind)
{
    if (kind != HB_TUNNEL_GUE && kind != HB_TUNNEL_GUE1 && kind != HB_TUNNEL_VXLAN)
        return false;
    if (rewrite->family == HB_FAMILY_IPV4)
        return (rewrite->flags & HB_REWRITE_UDP_CHECKSUM) != 0;
    return (rewrite->flags & HB_REWRITE_NO_UDP_CHECKSUM6) == 0;
}

bool hb_probe_tunnel_make(const struct hb_rewrite *rewrite, uint32_t ifindex,
                          struct hb_probe_tunnel *value, char *problem, size_t size)
{
    int kind = rewrite->forwarding < HB_FORWARDINGS ? modes[rewrite->forwarding].kind : -1;
    uint32_t outer = 0;

    if (kind < 0) {
        snprintf(problem, size,
                 "this way of forwarding has no tunnel that a probe could take; use \"via: "
                 "direct\"");
        return false;
    }
    if (kind != HB_TUNNEL_NONE)
        outer = (rewrite->family == HB_FAMILY_IPV4 ? IPV4_SIZE : IPV6_SIZE) +
                modes[rewrite->forwarding].tail;
    if (rewrite->l2_size < 14 || rewrite->l2_size > HB_TUNNEL_LINK_MAX ||
        rewrite->size < rewrite->l2_size + outer || outer > HB_TUNNEL_OUTER_MAX) {
        snprintf(problem, size, "the headers of its tunnel (%u bytes) are not as expected",
                 rewrite->size);
        return false;
    }
    memset(value, 0, sizeof(*value));
    value->ifindex = ifindex;
    value->kind = (uint8_t)kind;
    value->family = rewrite->family;
    value->link_size = rewrite->l2_size;
    value->outer_size = (uint8_t)outer;
    value->udp_checksum = wants_udp_checksum(rewrite, kind);
    memcpy(value->link, rewrite->bytes, rewrite->l2_size);
    memcpy(value->outer, rewrite->bytes + rewrite->l2_size, outer);
    return true;
}
