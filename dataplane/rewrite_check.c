/* SPDX-License-Identifier: BSD-3-Clause */
/* See rewrite_check.h. */
#include "rewrite_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    ETHERNET_BYTES = 14,
    VLAN_BYTES = 4,
    IPV4_BYTES = 20,
    IPV6_BYTES = 40,
    INNER_MIN = 68, /* the smallest MTU that IPv4 knows, RFC 791 */
};

static __attribute__((format(printf, 3, 4))) bool fail(char *problem, size_t size,
                                                       const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(problem, size, format, arguments);
    va_end(arguments);
    return false;
}

static unsigned read16(const uint8_t *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

static bool check_ethernet(const struct hb_rewrite *rewrite, char *problem, size_t size)
{
    static const uint8_t no_mac[6];
    const uint8_t *bytes = rewrite->bytes;
    unsigned wanted = rewrite->family == HB_FAMILY_IPV4 ? 0x0800 : 0x86dd;
    unsigned found = read16(bytes + rewrite->l2_size - 2);

    if (memcmp(bytes, no_mac, sizeof(no_mac)) == 0)
        return fail(problem, size, "the destination MAC address is zero; resolve the next hop");
    if (rewrite->l2_size == ETHERNET_BYTES + VLAN_BYTES && read16(bytes + 12) != 0x8100 &&
        read16(bytes + 12) != 0x88a8)
        return fail(problem, size, "%u bytes of layer 2, but no VLAN tag", rewrite->l2_size);
    if (found != wanted)
        return fail(problem, size, "EtherType %#06x, IPv%u has %#06x", found, rewrite->family,
                    wanted);
    return true;
}

/* Version 4, no options; TOS, length, DF, protocol and checksum are patched, so they hold zero. */
static bool check_ipv4(const uint8_t *ip, const uint8_t *address, char *problem, size_t size)
{
    if (ip[0] != 0x45)
        return fail(problem, size, "the first byte of the IPv4 header is %#04x, must be 0x45",
                    ip[0]);
    if (ip[1] != 0 || read16(ip + 2) != 0 || read16(ip + 6) != 0 || ip[9] != 0 ||
        read16(ip + 10) != 0)
        return fail(problem, size,
                    "TOS, length, fragment, protocol or checksum of the IPv4 header is not zero");
    if (ip[8] == 0)
        return fail(problem, size, "the TTL is zero");
    if (memcmp(ip + 16, address, 4) != 0)
        return fail(problem, size, "it is not addressed to the backend's address");
    return true;
}

/* Version 6; traffic class, payload length and next header are patched, so they hold zero. */
static bool check_ipv6(const uint8_t *ip, const uint8_t *address, char *problem, size_t size)
{
    if (ip[0] != 0x60 || (ip[1] & 0xf0) != 0)
        return fail(
            problem, size,
            "the IPv6 header starts with %#04x %#04x, must be version 6 and traffic class 0", ip[0],
            ip[1]);
    if (read16(ip + 4) != 0 || ip[6] != 0)
        return fail(problem, size, "length or next header of the IPv6 header is not zero");
    if (ip[7] == 0)
        return fail(problem, size, "the hop limit is zero");
    if (memcmp(ip + 24, address, HB_ADDRESS_SIZE) != 0)
        return fail(problem, size, "it is not addressed to the backend's address");
    return true;
}

bool hb_rewrite_check(const struct hb_backend_record *backend, char *problem, size_t size)
{
    const struct hb_rewrite *rewrite = &backend->rewrite;
    unsigned tunnel = rewrite->family == HB_FAMILY_IPV4 ? IPV4_BYTES : IPV6_BYTES;
    const uint8_t *ip;

    if (rewrite->forwarding != HB_FORWARDING_IPIP)
        return fail(problem, size, "forwarding %u, this dataplane knows 1 (ipip)",
                    rewrite->forwarding);
    if (rewrite->flags != 0 || rewrite->spread != 0 || rewrite->dscp != 0 ||
        rewrite->nat_port != 0 || rewrite->reserved != 0 || rewrite->reserved16 != 0)
        return fail(problem, size, "flags %#x, spread %u, DSCP %u or a port: ipip has none",
                    rewrite->flags, rewrite->spread, rewrite->dscp);
    if (rewrite->family != backend->family)
        return fail(problem, size, "outer family %u, the backend's is %u", rewrite->family,
                    backend->family);
    if (rewrite->l2_size != ETHERNET_BYTES && rewrite->l2_size != ETHERNET_BYTES + VLAN_BYTES)
        return fail(problem, size, "%u bytes of layer 2, must be 14 or 18", rewrite->l2_size);
    if (rewrite->size != rewrite->l2_size + tunnel)
        return fail(problem, size, "%u bytes, must be %u for IPv%u", rewrite->size,
                    rewrite->l2_size + tunnel, rewrite->family);
    if (rewrite->inner_max < INNER_MIN || rewrite->inner_max + tunnel > UINT16_MAX)
        return fail(problem, size, "inner_max %u, must be %d to %u", rewrite->inner_max, INNER_MIN,
                    UINT16_MAX - tunnel);
    if (!check_ethernet(rewrite, problem, size))
        return false;
    ip = rewrite->bytes + rewrite->l2_size;
    return rewrite->family == HB_FAMILY_IPV4 ? check_ipv4(ip, backend->address, problem, size)
                                             : check_ipv6(ip, backend->address, problem, size);
}
