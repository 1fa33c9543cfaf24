/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port_punt.c: a TAP beside a port (--punt), for what is the kernel's.
 *
 * A NIC that is bound to DPDK has no interface in the kernel. The TAP stands in for it: it has the
 * port's MAC address, MTU and link, so addresses, routes, neighbours, SSH and routing daemons are
 * set up on it as on any interface, and control learns next hops from it. It has a queue for each
 * worker, which relays between its queues of the two (punt.c).
 */
#include <stdatomic.h>
#include <stdio.h>

#include <rte_ethdev.h>

#include "log.h"
#include "port_internal.h"

int hb_port_punt_open(struct hb_ports *ports, struct hb_port *port, const char *name, char *problem)
{
    struct hb_port *tap = &ports->punt[ports->punts];
    char device[32], arguments[96];
    int error;

    if (hb_kernel_interface_read(name, &tap->kernel) == 0) {
        snprintf(problem, HB_TEXT_SIZE,
                 "--punt %u=%s: there is an interface %s already; choose another name, or remove "
                 "it with 'ip link del %s'",
                 port->id, name, name, name);
        return -EEXIST;
    }
    *tap = (struct hb_port){.id = HB_PORT_NONE, .claim = -1, .punt_id = HB_PORT_NONE};
    tap->mtu = port->mtu;
    snprintf(device, sizeof(device), "net_tap_punt%u", port->id);
    snprintf(arguments, sizeof(arguments), "iface=%s,mac=%02x:%02x:%02x:%02x:%02x:%02x", name,
             port->mac[0], port->mac[1], port->mac[2], port->mac[3], port->mac[4], port->mac[5]);
    error = hb_port_add_device(tap, device, arguments);
    if (error != 0) {
        snprintf(problem, HB_TEXT_SIZE,
                 "--punt %u=%s: no TAP: %s; is there /dev/net/tun, and does this process have "
                 "CAP_NET_ADMIN?",
                 port->id, name, rte_strerror(-error));
        return error;
    }
    ports->punts++;
    error = hb_port_set_up(ports, tap, problem);
    if (error != 0)
        return error;
    error = hb_kernel_interface_read(name, &tap->kernel);
    if (error != 0) {
        snprintf(problem, HB_TEXT_SIZE, "--punt %u=%s: the TAP is not there", port->id, name);
        return error;
    }
    port->kernel = tap->kernel;
    port->punt_id = tap->id;
    return 0;
}

static bool is_link_down(const struct hb_port *port)
{
    struct hb_port_info info;

    hb_port_describe(port, &info);
    return !info.link_up;
}

void hb_ports_watch_links(struct hb_ports *ports)
{
    uint32_t links_down = 0;

    for (uint32_t i = 0; i < ports->count; i++) {
        struct hb_port *port = &ports->port[i];
        bool down = is_link_down(port);

        links_down |= (uint32_t)down << port->id;
        if (port->punt_id == HB_PORT_NONE || down == port->link_down)
            continue;
        port->link_down = down;
        if (hb_kernel_interface_set_carrier(port->kernel.index, !down) != 0)
            hb_log_error("%s: the kernel can't be told that the link of port %u is %s",
                         port->kernel.name, port->id, down ? "down" : "up");
        else
            hb_log_notice("port %u: the link is %s, and so is that of %s", port->id,
                          down ? "down" : "up", port->kernel.name);
    }
    atomic_store_explicit(&ports->links_down, links_down, memory_order_relaxed);
}
