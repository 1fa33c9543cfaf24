/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tunnel_error.h: reads ICMP errors about tunnel packets that this balancer has sent.
 *
 * Such an error is sent to the outer source and quotes the start of the tunnel packet. The outer IP
 * header and 8 bytes behind it are enough (RFC 792): addresses, protocol and, with GUE and VXLAN,
 * the port must be those that a backend's rewrite puts there, so a forged message has to know both
 * addresses and the mode. Where the quote is long enough to hold the client's packet, that must be
 * one for a VIP, which the caller checks: `inner`.
 *
 * Pure.
 */
#ifndef HB_CONTROL_TUNNEL_ERROR_H
#define HB_CONTROL_TUNNEL_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "halbach/generation.h"

enum hb_tunnel_error_kind {
    HB_TUNNEL_UNREACHABLE,
    HB_TUNNEL_TIME_EXCEEDED,
    HB_TUNNEL_TOO_BIG,
};

struct hb_tunnel_error {
    enum hb_tunnel_error_kind kind;
    uint32_t mtu; /* with HB_TUNNEL_TOO_BIG, as it came: may be 0 */
    /* The quoted tunnel packet: its addresses, and what stands behind its IP header, which points
     * into the message. */
    struct hb_address source, to;
    uint8_t protocol;
    const uint8_t *payload;
    size_t size;
};

/* `message`: from the ICMP type on. False when it is no such error, or is cut short, or (IPv4) its
 * checksum is wrong; the kernel has seen to that of ICMPv6. */
bool hb_tunnel_error_read(uint8_t family, const uint8_t *message, size_t size,
                          struct hb_tunnel_error *error);

/* Whether the quoted packet is one that this rewrite has made. *inner: where the client's packet
 * was going; family 0 when the quote ends before that. */
bool hb_tunnel_error_is_of(const struct hb_tunnel_error *error, const struct hb_rewrite *rewrite,
                           struct hb_address *inner);

#endif
