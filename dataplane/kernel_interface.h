/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_interface.h: what the kernel knows of a network interface, for ports that share its link.
 *
 * Pure (ioctl, sysfs); main lcore only.
 */
#ifndef HB_DATAPLANE_KERNEL_INTERFACE_H
#define HB_DATAPLANE_KERNEL_INTERFACE_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"

struct hb_kernel_interface {
    char name[HB_IFNAME_SIZE];
    uint32_t index;
    uint32_t mtu;        /* largest IP packet, bytes */
    bool up;             /* has carrier and is administratively up */
    uint32_t queues;     /* combined queues in use; 1 when the driver does not say */
    uint32_t queues_max; /* that `ethtool -L` could set */
};

/* Reads it. Returns 0 or -errno (-ENODEV: there is none of this name in this network namespace). */
int hb_kernel_interface_read(const char *name, struct hb_kernel_interface *interface);

/* Tells the kernel whether an interface has a carrier: for those, like a TAP, whose link is what
 * their owner says. Returns 0 or -errno. */
int hb_kernel_interface_set_carrier(uint32_t index, bool up);

/* Claims the interface for this process until the descriptor that is returned is closed, or the
 * process ends in whatever way. Returns -EADDRINUSE when another dataplane of this network
 * namespace has it, with its pid in *owner. Leaves no file behind: the claim is an abstract Unix
 * socket. */
int hb_kernel_interface_claim(const char *name, int *owner);

#endif
