/* SPDX-License-Identifier: BSD-3-Clause */
#include "rewrite.h"

#include <stdio.h>
#include <string.h>

#define ETHERNET_SIZE 14
#define IPV4_SIZE     20
#define IPV6_SIZE     40
#define OUTER_TTL     64

/* Index and name must both agree: the same index may be another interface in another network
 * namespace. */
static const struct hb_port_info *find_port(struct hb_port_list ports,
                                            const struct hb_next_hop *hop)
{
    for (uint32_t i = 0; i < ports.count; i++) {
        const struct hb_port_info *port = &ports.port[i];

        if (port->ifindex == hop->ifindex &&
            strncmp(port->ifname, hop->ifname, sizeof(port->ifname)) == 0)
            return port;
    }
    return NULL;
}

static void put_ethernet(uint8_t *at, const struct hb_next_hop *hop, uint8_t family)
{
    uint16_t type = family == HB_FAMILY_IPV4 ? 0x0800 : 0x86dd;

    memcpy(at, hop->gateway_mac, 6);
    memcpy(at + 6, hop->source_mac, 6);
    at[12] = (uint8_t)(type >> 8);
    at[13] = (uint8_t)type;
}

static void put_ipv4(uint8_t *at, const uint8_t *source, const uint8_t *to)
{
    at[0] = 0x45; /* version 4, five words */
    at[8] = OUTER_TTL;
    memcpy(at + 12, source, 4);
    memcpy(at + 16, to, 4);
}

static void put_ipv6(uint8_t *at, const uint8_t *source, const uint8_t *to)
{
    at[0] = 0x60; /* version 6 */
    at[7] = OUTER_TTL;
    memcpy(at + 8, source, 16);
    memcpy(at + 24, to, 16);
}

static uint16_t largest_inner(const struct hb_next_hop *hop, const struct hb_port_info *port,
                              uint32_t outer)
{
    uint32_t mtu = hop->mtu;

    if (port->mtu != 0 && port->mtu < mtu)
        mtu = port->mtu;
    if (mtu > UINT16_MAX)
        mtu = UINT16_MAX;
    return (uint16_t)(mtu > outer ? mtu - outer : 0);
}

bool hb_rewrite_make(const struct hb_address *to, const struct hb_next_hop *hop,
                     const struct hb_address *source, struct hb_port_list ports,
                     struct hb_rewrite *rewrite, char *problem, size_t size)
{
    uint32_t outer = to->family == HB_FAMILY_IPV4 ? IPV4_SIZE : IPV6_SIZE;
    const struct hb_port_info *port;
    char text[HB_ADDRESS_TEXT];

    if (!hop->resolved) {
        snprintf(problem, size, "%s",
                 hop->problem[0] ? hop->problem
                                 : "the kernel has not been asked for its route yet");
        return false;
    }
    port = find_port(ports, hop);
    if (port == NULL) {
        snprintf(problem, size,
                 "the route to %s leaves by %s, which is not a port of the dataplane; give "
                 "halbach-dataplane '--interface %s' or change the route",
                 hb_address_print(to, text), hop->ifname, hop->ifname);
        return false;
    }
    if (source->family == 0)
        source = &hop->source;
    if (source->family != to->family) {
        snprintf(problem, size,
                 "no source address for the tunnel to %s; set tunnel.%s in the configuration",
                 hb_address_print(to, text), to->family == HB_FAMILY_IPV4 ? "source" : "source6");
        return false;
    }
    memset(rewrite, 0, sizeof(*rewrite));
    rewrite->size = (uint8_t)(ETHERNET_SIZE + outer);
    rewrite->l2_size = ETHERNET_SIZE;
    rewrite->family = to->family;
    rewrite->forwarding = HB_FORWARDING_IPIP;
    rewrite->port = port->id;
    rewrite->inner_max = largest_inner(hop, port, outer);
    put_ethernet(rewrite->bytes, hop, to->family);
    if (to->family == HB_FAMILY_IPV4)
        put_ipv4(rewrite->bytes + ETHERNET_SIZE, source->bytes, to->bytes);
    else
        put_ipv6(rewrite->bytes + ETHERNET_SIZE, source->bytes, to->bytes);
    problem[0] = '\0';
    return true;
}
