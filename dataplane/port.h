/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port.h: the DPDK ports of the dataplane: found or added, set up, described, closed.
 *
 * A port has one receive and one transmit queue for each worker, so that no queue is shared; a port
 * with fewer queues than there are workers is refused. Checksums are done in software: a packet may
 * leave by another port than it came in by. On request (--udp-checksum-offload) ports that can do
 * so compute the UDP checksums of tunnels; no other transmit offload is asked of any port. Main
 * lcore only.
 */
#ifndef HB_DATAPLANE_PORT_H
#define HB_DATAPLANE_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "halbach/counters.h"
#include "halbach/protocol.h"
#include "kernel_interface.h"
#include "node_memory.h"
#include "options.h"
#include "xdp/steer.h"

#define HB_PORT_NONE UINT16_MAX /* as an id: there is none */

struct rte_mempool;

struct hb_port {
    uint16_t id;
    uint16_t mtu; /* largest IP packet, bytes */
    uint8_t mac[6];
    char driver[16];
    struct hb_kernel_interface kernel; /* of the same link; name "": none */
    struct hb_steer *steer;            /* AF_XDP through the steering program, else NULL */
    bool steering_lost;                /* somebody else detached it; has been logged */
    bool added;                        /* for an --interface or --punt, by us */
    bool udp_checksum;                 /* it computes UDP checksums */
    bool link_down;                    /* as last seen, of a port with a TAP; has been logged */
    uint16_t punt_id;                  /* its TAP's port id, or HB_PORT_NONE */
    int claim;                         /* on the kernel interface, or -1 */
};

struct hb_ports {
    struct hb_port port[HB_PORTS_MAX];
    uint32_t count;
    struct hb_port punt[HB_PORTS_MAX]; /* the TAPs; `kernel` is their interface */
    uint32_t punts;
    struct rte_mempool *pool[HB_NODES_MAX]; /* buffers for the workers of a NUMA node */
    uint32_t buffers;                       /* in all pools */
    uint32_t workers;
    const uint8_t *worker_node; /* by worker index */
    const struct hb_options *options;
    _Atomic uint32_t links_down; /* bit mask by port id; workers read it (hb_tx_refusal) */
};

/* Sets up every port that EAL found and one for each --interface, and starts them. `worker_node`
 * (NUMA node by worker index, below HB_NODES_MAX) and `options` are kept. Returns 0, or a negative
 * errno with `problem` (HB_TEXT_SIZE bytes); then what was set up must still be closed. */
int hb_ports_open(struct hb_ports *ports, const struct hb_options *options,
                  const uint8_t *worker_node, uint32_t workers, char *problem);

/* Stops and closes all, detaches the steering programs. Also after a failed open. */
void hb_ports_close(struct hb_ports *ports);

/* What may pass to the kernel of what the steering programs see: packets a second of each CPU. */
int hb_ports_steer_limit(struct hb_ports *ports, uint32_t rate);

/* Sums up what the steering programs counted: into the header of the region. */
void hb_ports_steer_count(const struct hb_ports *ports, struct hb_counters_header *region);

/* Tells workers whether the links of ports are up, and the kernel at the TAPs: about once a second.
 */
void hb_ports_watch_links(struct hb_ports *ports);

/* For the hello. Asks kernel and driver whether the link is up. */
void hb_port_describe(const struct hb_port *port, struct hb_port_info *info);

/* The answers of NAT backends in all steering programs; as the two below. */
int hb_ports_steer_add_answers(struct hb_ports *ports, const struct hb_steer_nat_set *set);
int hb_ports_steer_keep_only_answers(struct hb_ports *ports, const struct hb_steer_nat_set *set);

/* The VIPs of all steering programs: adds those that are missing, removes all others. Return 0 or
 * the first error; every program is tried. */
int hb_ports_steer_add(struct hb_ports *ports, const struct hb_vip *vips, uint32_t count);
int hb_ports_steer_keep_only(struct hb_ports *ports, const struct hb_vip *vips, uint32_t count);

#endif
