/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rewrite.h: the ready-made headers for one backend, from what the configuration wants and what the
 * kernel says about the way to it.
 *
 *     rewrite.c         what all modes have: the port, the link header, the MTU
 *     rewrite_tunnel.c  IPIP, GUE, GRE, VXLAN: an outer IP header to the backend, of its family,
 * and what stands behind it rewrite_direct.c  L2: the backend's own MAC address. L3DSR: its IP
 * address
 *
 * Fields that depend on the packet hold zero: halbach/generation.h. Pure.
 */
#ifndef HB_CONTROL_REWRITE_H
#define HB_CONTROL_REWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "address_prefix.h"
#include "forwarding.h"
#include "halbach/generation.h"
#include "halbach/protocol.h"
#include "next_hop.h"

/* The ports of the dataplane, as it named them in its hello. */
struct hb_port_list {
    const struct hb_port_info *port;
    uint32_t count;
};

/* What the configuration says about the way to a backend. */
struct hb_rewrite_wish {
    enum hb_forwarding forwarding;
    const struct hb_forwarding_options *options;
    const struct hb_address *source; /* of tunnels; family 0: the one that the kernel prefers */
    const struct hb_address_prefix *prefix; /* to spread the source over where the headers have no
                                             * ports; family 0: none */
};

/* Fills *rewrite for packets to `to`. Returns false when it can't be made: then *rewrite is
 * untouched, and `problem` (of `size` bytes) names the cause and the remedy. */
bool hb_rewrite_make(const struct hb_address *to, const struct hb_next_hop *hop,
                     const struct hb_rewrite_wish *wish, struct hb_port_list ports,
                     struct hb_rewrite *rewrite, char *problem, size_t size);

#endif
