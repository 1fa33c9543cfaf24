/* SPDX-License-Identifier: BSD-3-Clause */
#include "rewrite.h"

#include <stdio.h>
#include <string.h>

#include "rewrite_internal.h"

#define VLAN_SIZE 4

/* Index and name must both agree: the same index may be another interface in another network
 * namespace. Of a VLAN the name is the VLAN's own, so there the lower interface's index must do. */
static const struct hb_port_info *find_port(struct hb_port_list ports,
                                            const struct hb_next_hop *hop)
{
    bool vlan = hop->vlan_type != 0;
    uint32_t ifindex = vlan ? hop->port_ifindex : hop->ifindex;

    for (uint32_t i = 0; i < ports.count; i++) {
        const struct hb_port_info *port = &ports.port[i];

        if (port->ifindex == ifindex &&
            (vlan || strncmp(port->ifname, hop->ifname, sizeof(port->ifname)) == 0))
            return port;
    }
    return NULL;
}

/* The tag is that of the next hop's VLAN, whatever tag the packet came with (BL-35); its priority
 * bits are 0. */
static void put_ethernet(struct hb_rewrite *rewrite, const struct hb_next_hop *hop, uint8_t family)
{
    uint8_t *type = rewrite->bytes + 12;

    memcpy(rewrite->bytes, hop->gateway_mac, 6);
    memcpy(rewrite->bytes + 6, hop->source_mac, 6);
    if (hop->vlan_type != 0) {
        hb_put16(type, hop->vlan_type);
        hb_put16(type + 2, hop->vlan_id);
        type += VLAN_SIZE;
    }
    hb_put16(type, family == HB_FAMILY_IPV4 ? 0x0800 : 0x86dd);
    rewrite->l2_size = (uint8_t)(type + 2 - rewrite->bytes);
    rewrite->size = rewrite->l2_size;
}

/* `outer`: bytes of the headers that are part of the IP packet on the link. */
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

static bool put_mode(struct hb_rewrite_draft *draft)
{
    if (hb_forwarding_is_tunnel(draft->wish->forwarding))
        return hb_rewrite_put_tunnel(draft);
    return hb_rewrite_put_direct(draft);
}

bool hb_rewrite_make(const struct hb_address *to, const struct hb_next_hop *hop,
                     const struct hb_rewrite_wish *wish, struct hb_port_list ports,
                     struct hb_rewrite *rewrite, char *problem, size_t size)
{
    struct hb_rewrite made = {.family = to->family,
                              .forwarding = (uint8_t)wish->forwarding,
                              .flags = wish->options->fragment};
    struct hb_rewrite_draft draft = {to, hop, wish, &made, problem, size};
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
    put_ethernet(&made, hop, to->family);
    if (!put_mode(&draft))
        return false;
    made.port = port->id;
    made.inner_max = largest_inner(hop, port, (uint32_t)made.size - made.l2_size);
    *rewrite = made;
    problem[0] = '\0';
    return true;
}
