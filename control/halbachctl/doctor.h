/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doctor.h: what on this machine costs the dataplane speed.
 *
 * Findings come from files of /proc and /sys under `root` ("" on a real machine, another folder in
 * tests), so that no check needs the hardware that it is about; what only a socket can tell
 * (doctor_link.c) is asked for on a real machine alone. Nothing is changed.
 */
#ifndef HB_CTL_DOCTOR_H
#define HB_CTL_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Receive ring of an interface, as ethtool -g has it. */
struct hb_ring_size {
    uint32_t now, most;
};

/* -errno when the driver does not tell. */
int hb_link_ring(const char *ifname, struct hb_ring_size *ring);

enum hb_link_xdp { HB_LINK_XDP_NONE, HB_LINK_XDP_DRIVER, HB_LINK_XDP_GENERIC };

/* How an XDP program is attached: enum hb_link_xdp, or -errno. */
int hb_link_xdp(const char *ifname);

/* Appends one object a check to `findings`: "check", "level" ("ok", "costs", "unknown", or
 * "missing": the device that was named is), "text", "remedy" ("" when there is none). `devices` are
 * names of interfaces or PCI addresses. */
void hb_doctor_examine(const char *root, const char *const devices[], unsigned count,
                       json_t *findings);

#endif
