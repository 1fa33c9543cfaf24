/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * steer.h: the steering program of an AF_XDP port, from the dataplane's side.
 *
 * DPDK's net_af_xdp loads and attaches the program itself from a path (its xdp_prog= argument). The
 * object is built into the dataplane's binary, so the path is of a memfd: no file has to be
 * installed. After the port exists, the VIP map is found through the program attached to the
 * interface, and follows the adopted generation: VIPs are added before a swap and removed after it.
 * Main lcore only. No DPDK in here; libbpf only.
 */
#ifndef HB_XDP_STEER_H
#define HB_XDP_STEER_H

#include <stdbool.h>
#include <stdint.h>

#include "halbach/types.h"

struct hb_steer; /* one interface */
struct hb_steer_nat_set;

/* One address, or a prefix of addresses. */
struct hb_vip {
    uint8_t family; /* enum hb_family */
    uint8_t length; /* bits; 32 or 128, or 0: one address */
    uint8_t bytes[HB_ADDRESS_SIZE];
};

/* A path under /proc/self/fd from which the program can be loaded as long as this process lives.
 * Returns NULL with errno when no memfd can be had. */
const char *hb_steer_object_path(void);

/* Prepares an interface: claims it for this process and detaches a steering program that a killed
 * dataplane left there. Call it before the port's first RX queue is set up, which is when
 * net_af_xdp attaches the program. Waits up to two seconds for a dataplane that is just dying.
 * Returns 0; -EBUSY when a foreign XDP program is attached (it is never replaced) or another
 * dataplane has the interface; -ENODEV and others. `problem` names what is in the way and the
 * remedy; it has HB_TEXT_SIZE bytes. */
int hb_steer_prepare(const char *ifname, char *problem);

/* Finds the maps of the program that is attached to `ifname` now, and gives it the VIPs that the
 * left-over program had, so that their packets don't reach the kernel before the first generation
 * is there. NULL with `problem` filled. */
struct hb_steer *hb_steer_open(const char *ifname, char *problem);

/* "native" or "generic": how the program is attached. */
const char *hb_steer_mode(const struct hb_steer *steer);

/* Whether the program is attached still; another tool may have detached it, and then the kernel
 * gets the VIPs' packets. A query of the kernel: for housekeeping, about once a second. */
bool hb_steer_attached(const struct hb_steer *steer);

/* Reads the program's counters, summed over the CPUs, in the order of HB_STEER_COUNTERS
 * (steer_maps.h). Returns 0 or -errno. */
int hb_steer_read_counters(const struct hb_steer *steer, uint64_t *counters);

/* Adds the VIPs that are missing from the map, keeps the others. Returns 0 or -errno. */
int hb_steer_add(struct hb_steer *steer, const struct hb_vip *vips, uint32_t count);

/* Removes every VIP from the map that is not among these. Returns 0 or -errno. */
int hb_steer_keep_only(struct hb_steer *steer, const struct hb_vip *vips, uint32_t count);

/* The same for answers of NAT backends and own addresses (steer_nat.h). */
int hb_steer_add_answers(struct hb_steer *steer, const struct hb_steer_nat_set *set);
int hb_steer_keep_only_answers(struct hb_steer *steer, const struct hb_steer_nat_set *set);

/* Limits what passes to the kernel: packets a second of each CPU and class; 0: no limit. Returns 0
 * or -errno. */
int hb_steer_limit(struct hb_steer *steer, uint32_t rate);

/* Detaches the program, if it is still ours, gives up the claim and frees. NULL is fine. */
void hb_steer_close(struct hb_steer *steer);

#endif
