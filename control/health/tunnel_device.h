/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tunnel_device.h: the TUN device that probes leave by, and the rules that lead to it.
 */
#ifndef HB_CONTROL_HEALTH_TUNNEL_DEVICE_H
#define HB_CONTROL_HEALTH_TUNNEL_DEVICE_H

#include <stddef.h>
#include <stdint.h>

/* Makes a device "halbachN" that is up; it lives as long as the descriptor that is returned.
 * Negative errno: `problem` (of `size` bytes) says what failed and what to do. */
int hb_tunnel_device_open(uint32_t *ifindex, char *problem, size_t size);

/* Leads marked packets to it: for each family that this machine has, a rule (mark to table) and a
 * default route in that table. 0 or negative errno, and then `problem` says why. */
int hb_tunnel_rules_add(uint32_t ifindex, char *problem, size_t size);
/* Removes the rules; the routes go with the device. */
void hb_tunnel_rules_remove(void);

#endif
