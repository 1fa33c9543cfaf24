/* SPDX-License-Identifier: BSD-3-Clause */
/* port_internal.h: what port.c and port_interface.c share. */
#ifndef HB_DATAPLANE_PORT_INTERNAL_H
#define HB_DATAPLANE_PORT_INTERNAL_H

#include <rte_mbuf.h>

#include "port.h"

/* What stands before and after a packet of an AF_XDP port in its buffer: Ethernet with two VLAN
 * tags, and the room that XDP keeps for itself. */
#define HB_FRAME_OVERHEAD (14 + 2 * 4 + 256)

/* An AF_XDP buffer with the header of its pool is at most a page (XDP_UMEM_REG, chunk_size). */
#define HB_AF_XDP_PAGE 4096u
#define HB_AF_XDP_MTU_MAX                                                                          \
    (HB_AF_XDP_PAGE - RTE_CACHE_LINE_SIZE - (unsigned)sizeof(struct rte_mbuf) -                    \
     RTE_PKTMBUF_HEADROOM - HB_FRAME_OVERHEAD)

int hb_ports_make_pools(struct hb_ports *ports, uint32_t ports_count, uint32_t mtu, char *problem);

/* Configures a port that exists, its queues and its MTU (0: the driver's), and starts it. */
int hb_port_set_up(const struct hb_ports *ports, struct hb_port *port, char *problem);

/* Undoes whatever has been done to a port. */
void hb_port_close(struct hb_port *port);

/* Adds the TAP that --punt asks for beside a port. */
int hb_port_punt_open(struct hb_ports *ports, struct hb_port *port, const char *name,
                      char *problem);

/* Adds a virtual device and finds its port. Returns 0 or a negative errno. */
int hb_port_add_device(struct hb_port *port, const char *name, const char *arguments);

/* All of --interface exist; raises *mtu to the largest MTU that one of them has. */
int hb_port_interfaces_check(const struct hb_options *options, uint32_t *mtu, char *problem);

/* Adds the port of one --interface. */
int hb_port_interface_open(struct hb_ports *ports, const char *name, char *problem);

#endif
