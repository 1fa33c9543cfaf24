/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rewrite.h: the ready-made outer headers for one backend, from what the kernel says about the way
 * to it.
 *
 * IP in IP: an Ethernet header to the next hop, then an outer IPv4 (RFC 2003, RFC 4213) or IPv6
 * header (RFC 2473) to the backend; the outer family is the backend's. Fields that depend on the
 * packet hold zero: lengths, TOS or traffic class, identification and DF, protocol or next header,
 * IPv4 checksum. Pure.
 */
#ifndef HB_CONTROL_REWRITE_H
#define HB_CONTROL_REWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "halbach/generation.h"
#include "halbach/protocol.h"
#include "next_hop.h"

/* The ports of the dataplane, as it named them in its hello. */
struct hb_port_list {
    const struct hb_port_info *port;
    uint32_t count;
};

/* Fills *rewrite for packets to `to`. `source`: the tunnel's configured source address, or family 0
 * for the one the kernel prefers. Returns false when it can't be made: then *rewrite is untouched,
 * and `problem` (of `size` bytes) names the cause and the remedy. */
bool hb_rewrite_make(const struct hb_address *to, const struct hb_next_hop *hop,
                     const struct hb_address *source, struct hb_port_list ports,
                     struct hb_rewrite *rewrite, char *problem, size_t size);

#endif
