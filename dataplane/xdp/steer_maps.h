/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * steer_maps.h: names and layouts of the steering program's maps, for the BPF program and the dataplane.
 *
 * The program redirects packets addressed to a VIP to the AF_XDP socket of their queue and passes
 * everything else (ARP, ND, BGP, SSH, health checks) to the kernel.
 */
#ifndef HB_XDP_STEER_MAPS_H
#define HB_XDP_STEER_MAPS_H

#include <linux/types.h>

/* Key of the VIP map. IPv4 addresses stand in the first four bytes, the rest is zero. */
struct hb_steer_vip {
    __u8 bytes[16];
    __u8 family; /* 4 or 6 */
    __u8 zero[3];
};

#define HB_STEER_VIPS_MAX   4096
#define HB_STEER_QUEUES_MAX 64

#define HB_STEER_PROGRAM   "hb_steer"  /* the program's name: how a left-over of ours is told from others */
#define HB_STEER_VIP_MAP   "hb_vips"
#define HB_STEER_QUEUE_MAP "xsks_map" /* the name that DPDK's net_af_xdp looks for */

#endif
