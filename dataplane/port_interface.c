/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port_interface.c: a port on a kernel interface (--interface).
 *
 * AF_XDP through the steering program: VIP packets come here, all others stay the kernel's. Where
 * that can't be had, AF_PACKET: slower, and the kernel sees a copy of each packet; then one line
 * says so and why. An interface that another dataplane has, or whose queues could be made enough,
 * is refused instead: quietly running on the slow way would help nobody.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>

#include "log.h"
#include "port_internal.h"

#define AF_PACKET_MTU_MAX 1500 /* its ring has frames of 2048 bytes */

int hb_port_interfaces_check(const struct hb_options *options, uint32_t *mtu, char *problem)
{
    for (uint32_t i = 0; i < options->interfaces; i++) {
        struct hb_kernel_interface interface;
        int error = hb_kernel_interface_read(options->interface[i], &interface);

        if (error != 0) {
            snprintf(problem, HB_TEXT_SIZE,
                     "--interface %s: %s; 'ip link' lists the interfaces of this network namespace",
                     options->interface[i],
                     error == -ENODEV ? "there is no such interface" : strerror(-error));
            return error;
        }
        /* An interface beyond the limit gets AF_PACKET, which needs no large buffers. */
        if (interface.mtu > *mtu && interface.mtu <= HB_AF_XDP_MTU_MAX)
            *mtu = interface.mtu;
    }
    return 0;
}

int hb_port_add_device(struct hb_port *port, const char *name, const char *arguments)
{
    int error = rte_eal_hotplug_add("vdev", name, arguments);

    if (error != 0)
        return error;
    error = rte_eth_dev_get_port_by_name(name, &port->id);
    if (error != 0) {
        rte_eal_hotplug_remove("vdev", name);
        return error;
    }
    if (port->id >= HB_PORTS_MAX) {
        rte_eal_hotplug_remove("vdev", name);
        return -E2BIG;
    }
    port->added = true;
    return 0;
}

static void find_last(struct rte_mempool *pool, void *context, void *object, unsigned index)
{
    char **last = context;

    (void)pool, (void)index;
    if (*last < (char *)object)
        *last = object;
}

/* AF_XDP takes a pool as its UMEM, from its first piece of memory, as many bytes as all buffers
 * have. So there must be one piece, and no gaps between the buffers. */
static bool is_umem(struct rte_mempool *pool)
{
    const char *start = STAILQ_FIRST(&pool->mem_list)->addr;
    size_t bytes = rte_mempool_calc_obj_size(pool->elt_size, pool->flags, NULL);
    char *last = NULL;

    rte_mempool_obj_iter(pool, find_last, &last);
    return pool->nb_mem_chunks == 1 &&
           last - pool->header_size + bytes <= start + pool->populated_size * bytes + 64;
}

static int check_af_xdp(const struct hb_ports *ports, const struct hb_port *port, char *why)
{
    const struct hb_kernel_interface *kernel = &port->kernel;

    if (kernel->mtu > HB_AF_XDP_MTU_MAX) {
        snprintf(why, HB_TEXT_SIZE,
                 "its MTU is %u and AF_XDP allows at most %u, because a packet has to fit a page",
                 kernel->mtu, HB_AF_XDP_MTU_MAX);
        return -EMSGSIZE;
    }
    if (kernel->queues < ports->workers) {
        snprintf(why, HB_TEXT_SIZE,
                 "its driver offers %u queue%s (combined channels), %u workers need one each",
                 kernel->queues, kernel->queues == 1 ? "" : "s", ports->workers);
        return -EINVAL;
    }
    for (uint32_t node = 0; node < HB_NODES_MAX; node++)
        if (ports->pool[node] != NULL && !is_umem(ports->pool[node])) {
            snprintf(why, HB_TEXT_SIZE,
                     "the packet buffers are not in one piece of memory; give the EAL option "
                     "--iova-mode=va");
            return -ENOMEM;
        }
    return hb_steer_prepare(kernel->name, why);
}

/* On failure `why` says what is missing, and the port is as before. */
static int open_af_xdp(struct hb_ports *ports, struct hb_port *port, char *why)
{
    const char *program = hb_steer_object_path();
    char device[32], arguments[160];
    int error;

    if (program == NULL) {
        snprintf(why, HB_TEXT_SIZE, "no memfd for the steering program: %s", strerror(errno));
        return -errno;
    }
    error = check_af_xdp(ports, port, why);
    if (error != 0)
        return error;
    snprintf(device, sizeof(device), "net_af_xdp%u", port->kernel.index);
    snprintf(arguments, sizeof(arguments), "iface=%s,start_queue=0,queue_count=%u,xdp_prog=%s",
             port->kernel.name, ports->workers, program);
    error = hb_port_add_device(port, device, arguments);
    if (error != 0) {
        snprintf(why, HB_TEXT_SIZE, "DPDK's net_af_xdp does not take it: %s", rte_strerror(-error));
        return error;
    }
    port->mtu = (uint16_t)port->kernel.mtu;
    error = hb_port_set_up(ports, port, why);
    if (error != 0)
        return error;
    port->steer = hb_steer_open(port->kernel.name, why);
    return port->steer != NULL ? 0 : -EIO;
}

static int open_af_packet(struct hb_ports *ports, struct hb_port *port, char *problem)
{
    char device[32], arguments[96];
    int error;

    snprintf(device, sizeof(device), "net_af_packet%u", port->kernel.index);
    snprintf(arguments, sizeof(arguments), "iface=%s,qpairs=%u", port->kernel.name, ports->workers);
    error = hb_port_add_device(port, device, arguments);
    if (error != 0) {
        snprintf(problem, HB_TEXT_SIZE,
                 "--interface %s: neither AF_XDP nor AF_PACKET can be had (%s); both need root, or "
                 "CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF",
                 port->kernel.name, rte_strerror(-error));
        return error;
    }
    port->mtu = (uint16_t)RTE_MIN(port->kernel.mtu, (uint32_t)AF_PACKET_MTU_MAX);
    return hb_port_set_up(ports, port, problem);
}

static int claim_interface(struct hb_port *port, const char *name, char *problem)
{
    int owner;

    port->claim = hb_kernel_interface_claim(name, &owner);
    if (port->claim >= 0)
        return 0;
    if (port->claim == -EADDRINUSE)
        snprintf(problem, HB_TEXT_SIZE,
                 "--interface %s: another dataplane (pid %d) has it; stop that one first", name,
                 owner);
    else
        snprintf(problem, HB_TEXT_SIZE, "--interface %s: it cannot be claimed: %s", name,
                 strerror(-port->claim));
    return port->claim;
}

int hb_port_interface_open(struct hb_ports *ports, const char *name, char *problem)
{
    struct hb_port *port = &ports->port[ports->count++];
    char why[HB_TEXT_SIZE] = "";
    struct hb_kernel_interface *kernel = &port->kernel;
    int error, claim;

    *port = (struct hb_port){.id = HB_PORT_NONE, .claim = -1, .punt_id = HB_PORT_NONE};
    error = claim_interface(port, name, problem);
    if (error != 0)
        return error;
    error = hb_kernel_interface_read(name, kernel);
    if (error != 0) {
        snprintf(problem, HB_TEXT_SIZE, "--interface %s: %s", name, strerror(-error));
        return error;
    }
    if (kernel->queues < ports->workers && kernel->queues_max >= ports->workers) {
        snprintf(
            problem, HB_TEXT_SIZE,
            "--interface %s has %u queues, %u workers need one each; set them with 'ethtool -L %s "
            "combined %u', or use fewer lcores (-l)",
            name, kernel->queues, ports->workers, name, ports->workers);
        return -EINVAL;
    }
    if (open_af_xdp(ports, port, why) == 0)
        return 0;
    /* What AF_XDP has set up goes; the claim on the interface stays. */
    claim = port->claim;
    port->claim = -1;
    hb_port_close(port);
    port->claim = claim;
    hb_kernel_interface_read(name, kernel);
    error = open_af_packet(ports, port, problem);
    if (error == 0 && kernel->mtu > port->mtu)
        hb_log_notice("%s: packets of more than %u bytes are not forwarded, though its MTU is %u",
                      name, port->mtu, kernel->mtu);
    if (error == 0)
        hb_log_notice("%s: AF_PACKET instead of AF_XDP (slower, and the kernel sees every packet "
                      "too), because %s",
                      name, why);
    return error;
}
