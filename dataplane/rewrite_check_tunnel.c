/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rewrite_check_tunnel.c: the ready-made headers of tunnels: an outer IP header without options,
 * and what stands between it and the packet. Fields that encap_tunnel.c patches hold zero, all
 * others what goes out.
 */
#include <string.h>

#include "rewrite_check_internal.h"

enum {
    UDP_BYTES = 8,
    GUE_BYTES = 4,
    GRE_BYTES = 4,
    VXLAN_BYTES = 8,
    VXLAN_FLAG_VNI = 0x08,
    SPREAD4_MAX = 24, /* a prefix of /8 */
    SPREAD6_MAX = 64,
};

static bool has_udp(const struct hb_rewrite *rewrite)
{
    return rewrite->forwarding == HB_FORWARDING_GUE || rewrite->forwarding == HB_FORWARDING_GUE1 ||
           rewrite->forwarding == HB_FORWARDING_VXLAN;
}

/* What stands between the outer IP header and the packet. */
static unsigned shim_bytes(const struct hb_rewrite *rewrite)
{
    switch (rewrite->forwarding) {
    case HB_FORWARDING_GUE:
        return UDP_BYTES + GUE_BYTES;
    case HB_FORWARDING_GUE1:
        return UDP_BYTES;
    case HB_FORWARDING_GRE:
        return GRE_BYTES;
    case HB_FORWARDING_VXLAN:
        return UDP_BYTES + VXLAN_BYTES + HB_ETHERNET_BYTES;
    default:
        return 0;
    }
}

static unsigned allowed_flags(const struct hb_rewrite *rewrite)
{
    unsigned flags = HB_REWRITE_FRAGMENT_OUTER | HB_REWRITE_FRAGMENT_INNER;

    if (has_udp(rewrite))
        flags |= rewrite->family == HB_FAMILY_IPV4 ? HB_REWRITE_UDP_CHECKSUM
                                                   : HB_REWRITE_NO_UDP_CHECKSUM6;
    return flags;
}

/* The source is there, and the bits that the flow chooses are free. */
static bool check_source(const struct hb_rewrite *rewrite, const uint8_t *source, unsigned size,
                         struct hb_rewrite_problem *problem)
{
    unsigned most = size == 4 ? SPREAD4_MAX : SPREAD6_MAX;

    if (hb_rewrite_is_zero(source, size))
        return hb_rewrite_fail(problem, "the source address is zero");
    if (rewrite->spread > most)
        return hb_rewrite_fail(problem, "the source is spread over %u bits, at most %u are allowed",
                               rewrite->spread, most);
    for (unsigned bit = 0; bit < rewrite->spread; bit++) {
        if ((source[size - 1 - bit / 8] >> bit % 8 & 1) != 0)
            return hb_rewrite_fail(problem, "the source is spread over %u bits, which are not zero",
                                   rewrite->spread);
    }
    return true;
}

/* Version 4, no options; TOS, length, ID, DF, protocol and checksum are patched. */
static bool check_ipv4(const struct hb_rewrite *rewrite, const uint8_t *address,
                       struct hb_rewrite_problem *problem)
{
    const uint8_t *ip = rewrite->bytes + rewrite->l2_size;

    if (ip[0] != 0x45)
        return hb_rewrite_fail(problem, "the first byte of the IPv4 header is %#04x, must be 0x45",
                               ip[0]);
    if (!hb_rewrite_is_zero(ip + 1, 7) || ip[9] != 0 || hb_read16(ip + 10) != 0)
        return hb_rewrite_fail(
            problem,
            "TOS, length, ID, fragment, protocol or checksum of the IPv4 header is not zero");
    if (ip[8] == 0)
        return hb_rewrite_fail(problem, "the TTL is zero");
    if (memcmp(ip + 16, address, 4) != 0)
        return hb_rewrite_fail(problem, "it is not addressed to the backend's address");
    return check_source(rewrite, ip + 12, 4, problem);
}

/* Version 6; traffic class, flow label, payload length and next header are patched. */
static bool check_ipv6(const struct hb_rewrite *rewrite, const uint8_t *address,
                       struct hb_rewrite_problem *problem)
{
    const uint8_t *ip = rewrite->bytes + rewrite->l2_size;

    if (ip[0] != 0x60 || (ip[1] & 0xf0) != 0)
        return hb_rewrite_fail(
            problem,
            "the IPv6 header starts with %#04x %#04x, must be version 6 and traffic class 0", ip[0],
            ip[1]);
    if (!hb_rewrite_is_zero(ip + 1, 3))
        return hb_rewrite_fail(problem, "the flow label of the IPv6 header is not zero");
    if (hb_read16(ip + 4) != 0 || ip[6] != 0)
        return hb_rewrite_fail(problem, "length or next header of the IPv6 header is not zero");
    if (ip[7] == 0)
        return hb_rewrite_fail(problem, "the hop limit is zero");
    if (memcmp(ip + 24, address, HB_ADDRESS_SIZE) != 0)
        return hb_rewrite_fail(problem, "it is not addressed to the backend's address");
    return check_source(rewrite, ip + 8, HB_ADDRESS_SIZE, problem);
}

/* The destination port is there; source port, length and checksum are patched. */
static bool check_udp(const uint8_t *udp, struct hb_rewrite_problem *problem)
{
    if (hb_read16(udp + 2) == 0)
        return hb_rewrite_fail(problem, "the UDP destination port is zero");
    if (hb_read16(udp) != 0 || !hb_rewrite_is_zero(udp + 4, 4))
        return hb_rewrite_fail(problem,
                               "source port, length or checksum of the UDP header is not zero");
    return true;
}

/* RFC 7348: the flag that says there is a VNI, and the VNI; the inner frame's type is patched. */
static bool check_vxlan(const uint8_t *vxlan, struct hb_rewrite_problem *problem)
{
    const uint8_t *frame = vxlan + VXLAN_BYTES;

    if (vxlan[0] != VXLAN_FLAG_VNI || !hb_rewrite_is_zero(vxlan + 1, 3) || vxlan[7] != 0)
        return hb_rewrite_fail(problem, "the VXLAN header has other flags than that of the VNI, "
                                        "or a reserved field that is not zero");
    if (hb_rewrite_is_zero(frame, 6) || hb_rewrite_is_zero(frame + 6, 6))
        return hb_rewrite_fail(problem, "a MAC address of the inner Ethernet header is zero");
    if ((frame[6] & 1) != 0)
        return hb_rewrite_fail(problem,
                               "the source MAC address of the inner Ethernet header is of a group");
    if (hb_read16(frame + 12) != 0)
        return hb_rewrite_fail(problem, "the EtherType of the inner Ethernet header is not zero");
    return true;
}

static bool check_shim(const struct hb_rewrite *rewrite, const uint8_t *shim,
                       struct hb_rewrite_problem *problem)
{
    if (has_udp(rewrite) && !check_udp(shim, problem))
        return false;
    switch (rewrite->forwarding) {
    case HB_FORWARDING_VXLAN:
        return check_vxlan(shim + UDP_BYTES, problem);
    case HB_FORWARDING_GUE: /* the protocol is patched, the rest is zero */
        return hb_rewrite_is_zero(shim + UDP_BYTES, GUE_BYTES) ||
               hb_rewrite_fail(problem, "the GUE header is not zero");
    case HB_FORWARDING_GRE: /* the same */
        return hb_rewrite_is_zero(shim, GRE_BYTES) ||
               hb_rewrite_fail(problem, "the GRE header is not zero");
    default:
        return true;
    }
}

bool hb_rewrite_check_tunnel(const struct hb_backend_record *backend,
                             struct hb_rewrite_problem *problem)
{
    const struct hb_rewrite *rewrite = &backend->rewrite;
    bool ipv4 = rewrite->family == HB_FAMILY_IPV4;
    unsigned ip_size = ipv4 ? HB_IPV4_BYTES : HB_IPV6_BYTES;
    unsigned outer = ip_size + shim_bytes(rewrite);

    if (rewrite->dscp != 0 || rewrite->nat_port != 0)
        return hb_rewrite_fail(problem, "DSCP %u or a port: a tunnel has none", rewrite->dscp);
    if (!hb_rewrite_check_sizes(rewrite, rewrite->l2_size + outer, outer, problem) ||
        !hb_rewrite_check_flags(rewrite, allowed_flags(rewrite), problem) ||
        !hb_rewrite_check_ether_type(rewrite, ipv4 ? 0x0800 : 0x86dd, problem) ||
        !hb_rewrite_check_rest(rewrite, rewrite->size, problem))
        return false;
    return (ipv4 ? check_ipv4(rewrite, backend->address, problem)
                 : check_ipv6(rewrite, backend->address, problem)) &&
           check_shim(rewrite, rewrite->bytes + rewrite->l2_size + ip_size, problem);
}
