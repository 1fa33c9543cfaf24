/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hop_compute.c: see hop_compute.h.
 */
#include "hop_compute.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

bool hb_next_hop_usable(const struct hb_netlink_route *route)
{
    return route->error == 0 && route->type == RTN_UNICAST && route->ifindex != 0;
}

/* Says why there is no route; an address of this very machine is the case BL-14. */
static void explain_route(const struct hb_netlink_route *route, const char *address, char *problem,
                          size_t size)
{
    const char *format = "the route to %s is not one to a single machine";

    if (route->error == EHOSTUNREACH || route->type == RTN_UNREACHABLE)
        format = "the route to %s is of the type 'unreachable'";
    else if (route->error == EACCES || route->type == RTN_PROHIBIT)
        format = "the route to %s is of the type 'prohibit'";
    else if (route->error == EINVAL || route->type == RTN_BLACKHOLE)
        format = "the route to %s is of the type 'blackhole'";
    else if (route->error != 0)
        format = "no route to %s";
    else if (route->type == RTN_LOCAL)
        format = "%s is an address of this machine";
    else if (route->type == RTN_BROADCAST)
        format = "%s is a broadcast address";
    else if (route->type == RTN_MULTICAST)
        format = "%s is a multicast address";
    snprintf(problem, size, format, address);
}

static void explain_neighbour(const struct hb_neighbour *neighbour, const char *ifname,
                              char *problem, size_t size)
{
    char address[HB_ADDRESS_TEXT];
    const char *protocol = neighbour->address.family == HB_FAMILY_IPV4 ? "ARP" : "ND";

    hb_address_print(&neighbour->address, address);
    if (neighbour->ask_error == EPERM)
        snprintf(problem, size, "may not resolve %s: CAP_NET_ADMIN is missing", address);
    else if (neighbour->ask_error == ENOBUFS)
        snprintf(problem, size, "no room in the kernel for %s: raise gc_thresh3", address);
    else if (neighbour->silent)
        snprintf(problem, size, "%s does not answer %s on %s", address, protocol, ifname);
    else
        snprintf(problem, size, "%s has not yet answered %s on %s", address, protocol, ifname);
}

/* Fills in what a usable route, its link and its neighbour say. */
static void fill_hop(struct hb_next_hop *hop, const struct hb_netlink_route *route,
                     const struct hb_netlink_link *link, const struct hb_neighbour *neighbour)
{
    hop->ifindex = route->ifindex;
    hop->gateway = route->gateway.family ? route->gateway : route->destination;
    hop->source = route->source;
    if (neighbour && neighbour->known)
        memcpy(hop->gateway_mac, neighbour->mac, sizeof(hop->gateway_mac));
    if (!link)
        return;
    memcpy(hop->ifname, link->name, sizeof(hop->ifname));
    memcpy(hop->source_mac, link->mac, sizeof(hop->source_mac));
    hop->port_ifindex = link->lower ? link->lower : link->ifindex;
    hop->vlan_type = link->vlan_type;
    hop->vlan_id = link->vlan_id;
    hop->mtu = route->mtu && route->mtu < link->mtu ? route->mtu : link->mtu;
}

void hb_next_hop_compute(struct hb_next_hop *hop, const struct hb_address *address,
                         const struct hb_netlink_route *route, const struct hb_netlink_link *link,
                         const struct hb_neighbour *neighbour)
{
    char *problem = hop->problem, text[HB_ADDRESS_TEXT];
    const size_t size = sizeof(hop->problem);

    memset(hop, 0, sizeof(*hop)); /* padding too: hops are compared as bytes */
    hb_address_print(address, text);
    if (route && hb_next_hop_usable(route))
        fill_hop(hop, route, link, neighbour);

    if (!route)
        snprintf(problem, size, "the route to %s has not been looked up yet", text);
    else if (!hb_next_hop_usable(route))
        explain_route(route, text, problem, size);
    else if (!link)
        snprintf(problem, size, "%s leaves by the unknown interface %u", text, hop->ifindex);
    else if (!link->ethernet)
        snprintf(problem, size, "%s leaves by %s: not Ethernet", text, hop->ifname);
    else if (!link->up)
        snprintf(problem, size, "%s leaves by %s, which is down", text, hop->ifname);
    else if (!hop->source.family)
        snprintf(problem, size, "no source address to reach %s from", text);
    else if (!neighbour)
        snprintf(problem, size, "out of memory for the next hop of %s", text);
    else if (!neighbour->known)
        explain_neighbour(neighbour, hop->ifname, problem, size);
    else
        hop->resolved = true;
}
