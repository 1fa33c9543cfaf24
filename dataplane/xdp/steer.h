/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * steer.h: the steering program of an AF_XDP port, from the dataplane's side.
 *
 * DPDK's net_af_xdp loads and attaches the program itself from a path (its xdp_prog= argument). The
 * object is built into the dataplane's binary, so the path is of a memfd: no file has to be installed.
 * After the port exists, the VIP map is found through the program attached to the interface, and follows
 * the adopted generation: VIPs are added before a swap and removed after it. Main lcore only. No DPDK in
 * here; libbpf only.
 */
#ifndef HB_XDP_STEER_H
#define HB_XDP_STEER_H

#include <stdint.h>

#include "halbach/types.h"

struct hb_steer; /* one interface */

struct hb_vip {
    uint8_t family; /* enum hb_family */
    uint8_t bytes[HB_ADDRESS_SIZE];
};

/* A path under /proc/self/fd from which the program can be loaded as long as this process lives. Returns
 * NULL with errno when no memfd can be had. */
const char *hb_steer_object_path(void);

/* Prepares an interface: detaches a steering program that a killed dataplane left there. Returns 0;
 * -EBUSY when a foreign XDP program is attached (it is never replaced; `problem` names it and how to
 * detach it); -ENODEV and others. `problem` has HB_TEXT_SIZE bytes. */
int hb_steer_prepare(const char *ifname, char *problem);

/* Finds the maps of the program that is attached to `ifname` now. NULL with `problem` filled. */
struct hb_steer *hb_steer_open(const char *ifname, char *problem);

/* "native" or "generic": how the program is attached. */
const char *hb_steer_mode(const struct hb_steer *steer);

/* Adds the VIPs that are missing from the map, keeps the others. Returns 0 or -errno. */
int hb_steer_add(struct hb_steer *steer, const struct hb_vip *vips, uint32_t count);

/* Removes every VIP from the map that is not among these. Returns 0 or -errno. */
int hb_steer_keep_only(struct hb_steer *steer, const struct hb_vip *vips, uint32_t count);

/* Detaches the program, if it is still ours, and frees. */
void hb_steer_close(struct hb_steer *steer);

#endif
