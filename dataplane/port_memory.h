/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port_memory.h: how many packet buffers the ports need; known before EAL starts and when pools are
 * made.
 *
 * For each port and worker: what the receive ring holds, what the transmit ring holds, and for
 * AF_XDP what its fill ring holds besides; for each worker: its cache of free buffers and the
 * bursts in its hands. Pure.
 */
#ifndef HB_DATAPLANE_PORT_MEMORY_H
#define HB_DATAPLANE_PORT_MEMORY_H

#include <stdint.h>

#define HB_RING_DESCRIPTORS 2048 /* the most that is asked of a driver; what net_af_xdp has */
#define HB_BUFFERS_QUEUE    (3 * HB_RING_DESCRIPTORS)
#define HB_BUFFERS_CACHE    256
#define HB_BUFFERS_WORKER   (4 * HB_BUFFERS_CACHE)
#define HB_BUFFER_FRAME     2048 /* bytes of a frame that fit one buffer, unless told otherwise */
#define HB_BUFFER_BYTES     2560 /* about: buffer, headroom, struct rte_mbuf and mempool header */

static inline uint32_t hb_port_buffers(uint32_t ports, uint32_t workers)
{
    return workers * (ports * HB_BUFFERS_QUEUE + HB_BUFFERS_WORKER);
}

#endif
