/* SPDX-License-Identifier: BSD-3-Clause */
/* See port.h. What every port goes through, whatever it is; port_interface.c adds those of
 * --interface. */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

#include "halbach/generation.h"
#include "log.h"
#include "port_internal.h"
#include "port_memory.h"
#include "xdp/steer_maps.h"

/* The longest headers fit in front of a packet. */
_Static_assert(RTE_PKTMBUF_HEADROOM >= HB_REWRITE_BYTES, "headroom for a rewrite");

#define RSS_WANTED (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP)

/* Makes a pool of `count` buffers of `room` bytes, headroom included. Where addresses for devices
 * are virtual ones, the buffers stand gapless in one piece, which is what AF_XDP takes as its UMEM.
 */
static struct rte_mempool *make_pool(uint32_t node, uint32_t count, uint16_t room)
{
    struct rte_pktmbuf_pool_private room_of = {.mbuf_data_room_size = room};
    unsigned flags = rte_eal_iova_mode() == RTE_IOVA_VA ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0;
    uint32_t bytes = (uint32_t)sizeof(struct rte_mbuf) + room;
    char name[RTE_MEMPOOL_NAMESIZE];
    struct rte_mempool *pool;

    /* Padding that spreads buffers over memory channels must not push one over the page of AF_XDP.
     */
    if (rte_mempool_calc_obj_size(bytes, flags, NULL) > HB_AF_XDP_PAGE)
        flags |= RTE_MEMPOOL_F_NO_SPREAD;
    snprintf(name, sizeof(name), "halbach_buffers_%u", node);
    pool = rte_mempool_create_empty(name, count, bytes, HB_BUFFERS_CACHE, sizeof(room_of),
                                    (int)node, flags);
    if (pool == NULL)
        return NULL;
    if (rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL) != 0)
        goto fail;
    rte_pktmbuf_pool_init(pool, &room_of);
    if (rte_mempool_populate_default(pool) < 0)
        goto fail;
    rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
    return pool;

fail:
    rte_mempool_free(pool);
    return NULL;
}

int hb_ports_make_pools(struct hb_ports *ports, uint32_t ports_count, uint32_t mtu, char *problem)
{
    uint32_t frame = mtu + HB_FRAME_OVERHEAD;
    uint32_t size = ports->options != NULL ? ports->options->mbuf_size : 0;
    uint32_t least = ports->options != NULL ? ports->options->mbufs : 0;
    uint32_t room;

    if (size == 0)
        size = frame > HB_BUFFER_FRAME ? frame : HB_BUFFER_FRAME;
    room = RTE_PKTMBUF_HEADROOM + size;
    for (uint32_t node = 0; node < HB_NODES_MAX; node++) {
        uint32_t workers = 0, count;

        for (uint32_t i = 0; i < ports->workers; i++)
            workers += ports->worker_node[i] == node;
        if (workers == 0)
            continue;
        count = hb_port_buffers(ports_count, workers);
        if (count < least)
            count = least;
        ports->pool[node] =
            make_pool(node, count, (uint16_t)(room > UINT16_MAX ? UINT16_MAX : room));
        if (ports->pool[node] == NULL) {
            snprintf(
                problem, HB_TEXT_SIZE,
                "no memory for %u packet buffers (%u MB) on NUMA node %u; reserve more hugepages "
                "there, give EAL more memory (-m) or lower --mbufs",
                count, (uint32_t)((uint64_t)count * (room + 192) >> 20), node);
            return -ENOMEM;
        }
        ports->buffers += count;
    }
    return 0;
}

static int explain(char *problem, const struct hb_port *port, const char *what, int error)
{
    snprintf(problem, HB_TEXT_SIZE, "port %u (%s%s%s): %s failed: %s", port->id,
             port->driver[0] != '\0' ? port->driver : "driver unknown",
             port->kernel.name[0] != '\0' ? " on " : "", port->kernel.name, what,
             rte_strerror(-error));
    return error;
}

static int set_up_queues(const struct hb_ports *ports, const struct hb_port *port,
                         const struct rte_eth_dev_info *info, char *problem)
{
    uint16_t rx = info->default_rxportconf.ring_size, tx = info->default_txportconf.ring_size;
    int error;

    rx = rx == 0 || rx > HB_RING_DESCRIPTORS ? 1024 : rx;
    tx = tx == 0 || tx > HB_RING_DESCRIPTORS ? 1024 : tx;
    error = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &rx, &tx);
    if (error != 0)
        return explain(problem, port, "choosing the ring sizes", error);
    for (uint32_t worker = 0; worker < ports->workers; worker++) {
        uint32_t node = ports->worker_node[worker];

        error =
            rte_eth_rx_queue_setup(port->id, (uint16_t)worker, rx, node, NULL, ports->pool[node]);
        if (error != 0)
            return explain(problem, port, "setting up a receive queue", error);
        error = rte_eth_tx_queue_setup(port->id, (uint16_t)worker, tx, node, NULL);
        if (error != 0)
            return explain(problem, port, "setting up a transmit queue", error);
    }
    return 0;
}

static int check_queues(const struct hb_ports *ports, const struct hb_port *port,
                        const struct rte_eth_dev_info *info, char *problem)
{
    uint32_t queues = RTE_MIN(info->max_rx_queues, info->max_tx_queues);

    if (queues >= ports->workers)
        return 0;
    snprintf(
        problem, HB_TEXT_SIZE,
        "port %u (%s%s%s) has %u queues, %u workers need one each; use fewer lcores (-l), or give "
        "the port more queues (queue arguments of its --vdev; ethtool -L for a kernel interface)",
        port->id, port->driver, port->kernel.name[0] != '\0' ? " on " : "", port->kernel.name,
        queues, ports->workers);
    return -EINVAL;
}

int hb_port_set_up(const struct hb_ports *ports, struct hb_port *port, char *problem)
{
    struct rte_eth_conf conf = {.rxmode.mtu = port->mtu};
    struct rte_eth_dev_info info;
    struct rte_ether_addr mac = {0};
    int error = rte_eth_dev_info_get(port->id, &info);

    if (error != 0)
        return explain(problem, port, "reading its properties", error);
    snprintf(port->driver, sizeof(port->driver), "%s", info.driver_name);
    error = check_queues(ports, port, &info, problem);
    if (error != 0)
        return error;
    conf.rx_adv_conf.rss_conf.rss_hf = RSS_WANTED & info.flow_type_rss_offloads;
    if (ports->workers > 1 && conf.rx_adv_conf.rss_conf.rss_hf != 0)
        conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    port->udp_checksum = ports->options->udp_checksum_offload &&
                         (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) != 0;
    if (port->udp_checksum)
        conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
    error =
        rte_eth_dev_configure(port->id, (uint16_t)ports->workers, (uint16_t)ports->workers, &conf);
    if (error != 0)
        return explain(problem, port, "configuring it", error);
    error = set_up_queues(ports, port, &info, problem);
    if (error != 0)
        return error;
    error = rte_eth_dev_start(port->id);
    if (error != 0)
        return explain(problem, port, "starting it", error);
    rte_eth_dev_get_mtu(port->id, &port->mtu);
    rte_eth_macaddr_get(port->id, &mac);
    memcpy(port->mac, &mac, sizeof(port->mac));
    return 0;
}

/* The kernel interface of a port that EAL found: what the user says, else what the driver says. */
static int find_kernel_interface(const struct hb_options *options, struct hb_port *port,
                                 char *problem)
{
    const char *name = options->kernel_interface[port->id];
    struct rte_eth_dev_info info;
    char buffer[IF_NAMESIZE];

    if (name != NULL) {
        if (hb_kernel_interface_read(name, &port->kernel) == 0)
            return 0;
        snprintf(problem, HB_TEXT_SIZE, "--kernel-interface %u=%s: there is no interface %s here",
                 port->id, name, name);
        return -ENODEV;
    }
    if (rte_eth_dev_info_get(port->id, &info) == 0 && info.if_index != 0 &&
        if_indextoname(info.if_index, buffer) != NULL)
        hb_kernel_interface_read(buffer, &port->kernel);
    return 0;
}

#ifdef RTE_ETH_DEV_BONDED_SLAVE
#define BOND_MEMBER RTE_ETH_DEV_BONDED_SLAVE
#else /* its name since DPDK 23.11 */
#define BOND_MEMBER RTE_ETH_DEV_BONDING_MEMBER
#endif

/* Is it the turn of this port? Bonds come first: a bond takes its members when it is set up, and
 * only then are they marked. A member is no port of its own: the bond drives it. */
static bool is_its_turn(uint16_t id, bool bonds)
{
    struct rte_eth_dev_info info;

    if (rte_eth_dev_info_get(id, &info) != 0)
        return !bonds; /* setting it up will say what is wrong */
    if (info.dev_flags != NULL && (*info.dev_flags & BOND_MEMBER) != 0)
        return false;
    return (strcmp(info.driver_name, "net_bonding") == 0) == bonds;
}

static int open_ports_of_turn(struct hb_ports *ports, bool bonds, char *problem)
{
    uint16_t id;

    RTE_ETH_FOREACH_DEV (id) {
        struct hb_port *port;
        int error;

        if (!is_its_turn(id, bonds))
            continue;
        if (ports->count == HB_PORTS_MAX || id >= HB_PORTS_MAX) {
            snprintf(problem, HB_TEXT_SIZE, "more than %d ports; name the ones to use with -a",
                     HB_PORTS_MAX);
            return -E2BIG;
        }
        port = &ports->port[ports->count++];
        *port = (struct hb_port){
            .id = id, .claim = -1, .punt_id = HB_PORT_NONE, .mtu = ports->options->mtu};
        error = find_kernel_interface(ports->options, port, problem);
        if (error == 0)
            error = hb_port_set_up(ports, port, problem);
        if (error != 0)
            return error;
    }
    return 0;
}

static int open_found_ports(struct hb_ports *ports, char *problem)
{
    int error = open_ports_of_turn(ports, true, problem);

    return error != 0 ? error : open_ports_of_turn(ports, false, problem);
}

/* Both options are for ports that EAL found; one for a port that is not there is a slip. */
static int check_port_options(const struct hb_ports *ports, char *problem)
{
    for (uint32_t id = 0; id < HB_PORTS_MAX; id++) {
        const char *punt = ports->options->punt[id], *name = ports->options->kernel_interface[id];
        uint32_t i = 0;

        if (punt == NULL && name == NULL)
            continue;
        if (punt != NULL && name != NULL) {
            snprintf(problem, HB_TEXT_SIZE,
                     "--punt %u=%s and --kernel-interface %u=%s: the TAP is the port's kernel "
                     "interface; give one of the two",
                     id, punt, id, name);
            return -EINVAL;
        }
        while (i < ports->count && ports->port[i].id != id)
            i++;
        if (i < ports->count)
            continue;
        snprintf(problem, HB_TEXT_SIZE, "%s %u=%s: EAL found no port %u, but %u ports from 0 on",
                 punt != NULL ? "--punt" : "--kernel-interface", id, punt != NULL ? punt : name, id,
                 ports->count);
        return -ENODEV;
    }
    return 0;
}

int hb_ports_open(struct hb_ports *ports, const struct hb_options *options,
                  const uint8_t *worker_node, uint32_t workers, char *problem)
{
    uint32_t found = rte_eth_dev_count_avail(), mtu = RTE_MAX(RTE_ETHER_MTU, options->mtu);
    uint32_t punts = 0;
    int error;

    *ports = (struct hb_ports){.workers = workers, .worker_node = worker_node, .options = options};
    if (found + options->interfaces == 0) {
        snprintf(
            problem, HB_TEXT_SIZE,
            "there is no port; give --interface IFNAME for a kernel interface, or the EAL option "
            "-a ADDRESS for a NIC that is bound to DPDK");
        return -ENODEV;
    }
    for (uint32_t id = 0; id < HB_PORTS_MAX; id++)
        punts += options->punt[id] != NULL;
    error = hb_port_interfaces_check(options, &mtu, problem);
    if (error == 0)
        error = hb_ports_make_pools(ports, found + options->interfaces + punts, mtu, problem);
    if (error == 0)
        error = open_found_ports(ports, problem);
    if (error == 0)
        error = check_port_options(ports, problem);
    for (uint32_t i = 0; i < ports->count && error == 0; i++)
        if (options->punt[ports->port[i].id] != NULL)
            error = hb_port_punt_open(ports, &ports->port[i], options->punt[ports->port[i].id],
                                      problem);
    for (uint32_t i = 0; i < options->interfaces && error == 0; i++)
        error = hb_port_interface_open(ports, options->interface[i], problem);
    return error;
}

void hb_port_close(struct hb_port *port)
{
    struct rte_eth_dev_info info;

    hb_steer_close(port->steer);
    port->steer = NULL;
    if (port->id != HB_PORT_NONE && rte_eth_dev_is_valid_port(port->id)) {
        rte_eth_dev_stop(port->id);
        /* A device that was added here is removed again; that closes its port. */
        if (port->added && rte_eth_dev_info_get(port->id, &info) == 0)
            rte_dev_remove(info.device);
        else
            rte_eth_dev_close(port->id);
    }
    if (port->claim >= 0)
        close(port->claim);
    *port = (struct hb_port){.id = HB_PORT_NONE, .claim = -1, .punt_id = HB_PORT_NONE};
}

void hb_ports_close(struct hb_ports *ports)
{
    while (ports->punts > 0)
        hb_port_close(&ports->punt[--ports->punts]);
    while (ports->count > 0)
        hb_port_close(&ports->port[--ports->count]);
    for (uint32_t node = 0; node < HB_NODES_MAX; node++) {
        rte_mempool_free(ports->pool[node]);
        ports->pool[node] = NULL;
    }
}

void hb_port_describe(const struct hb_port *port, struct hb_port_info *info)
{
    struct hb_kernel_interface now;
    struct rte_eth_link link = {0};

    *info = (struct hb_port_info){.id = port->id, .mtu = port->mtu, .ifindex = port->kernel.index};
    memcpy(info->mac, port->mac, sizeof(info->mac));
    memcpy(info->ifname, port->kernel.name, sizeof(info->ifname));
    memcpy(info->driver, port->driver, sizeof(info->driver));
    /* net_af_xdp and net_af_packet call the link up whatever the kernel thinks; a TAP is as up as
     * its port. */
    if (port->punt_id == HB_PORT_NONE && port->kernel.name[0] != '\0' &&
        hb_kernel_interface_read(port->kernel.name, &now) == 0)
        info->link_up = now.up;
    else if (rte_eth_link_get_nowait(port->id, &link) == 0)
        info->link_up = link.link_status == RTE_ETH_LINK_UP;
}

int hb_ports_steer_add(struct hb_ports *ports, const struct hb_vip *vips, uint32_t count)
{
    int first = 0;

    for (uint32_t i = 0; i < ports->count; i++)
        if (ports->port[i].steer != NULL) {
            int error = hb_steer_add(ports->port[i].steer, vips, count);

            first = first != 0 ? first : error;
        }
    return first;
}

int hb_ports_steer_keep_only(struct hb_ports *ports, const struct hb_vip *vips, uint32_t count)
{
    int first = 0;

    for (uint32_t i = 0; i < ports->count; i++)
        if (ports->port[i].steer != NULL) {
            int error = hb_steer_keep_only(ports->port[i].steer, vips, count);

            first = first != 0 ? first : error;
        }
    return first;
}

int hb_ports_steer_limit(struct hb_ports *ports, uint32_t rate)
{
    int first = 0;

    for (uint32_t i = 0; i < ports->count; i++)
        if (ports->port[i].steer != NULL) {
            int error = hb_steer_limit(ports->port[i].steer, rate);

            first = first != 0 ? first : error;
        }
    return first;
}

int hb_ports_steer_add_answers(struct hb_ports *ports, const struct hb_steer_nat_set *set)
{
    int first = 0;

    for (uint32_t i = 0; i < ports->count; i++)
        if (ports->port[i].steer != NULL) {
            int error = hb_steer_add_answers(ports->port[i].steer, set);

            first = first != 0 ? first : error;
        }
    return first;
}

int hb_ports_steer_keep_only_answers(struct hb_ports *ports, const struct hb_steer_nat_set *set)
{
    int first = 0;

    for (uint32_t i = 0; i < ports->count; i++)
        if (ports->port[i].steer != NULL) {
            int error = hb_steer_keep_only_answers(ports->port[i].steer, set);

            first = first != 0 ? first : error;
        }
    return first;
}

void hb_ports_steer_count(const struct hb_ports *ports, struct hb_counters_header *region)
{
    uint64_t sum[HB_STEER_COUNT] = {0}, counters[HB_STEER_COUNT];

    for (uint32_t i = 0; i < ports->count; i++) {
        if (ports->port[i].steer == NULL ||
            hb_steer_read_counters(ports->port[i].steer, counters) != 0)
            continue;
        for (uint32_t c = 0; c < HB_STEER_COUNT; c++)
            sum[c] += counters[c];
    }
    region->steer_redirected = sum[HB_STEER_REDIRECTED];
    region->steer_no_socket = sum[HB_STEER_NO_SOCKET];
    region->steer_passed = sum[HB_STEER_PASSED] + sum[HB_STEER_TAGS];
    region->steer_limited = sum[HB_STEER_LIMITED];
}
