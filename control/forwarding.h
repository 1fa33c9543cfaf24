/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forwarding.h: how the packets of a pool get to its backends, as the configuration says it.
 *
 * Used by the configuration, by the model and by whoever makes rewrites of it. Plain values: equal
 * ones say the same. Pure.
 */
#ifndef HB_CONTROL_FORWARDING_H
#define HB_CONTROL_FORWARDING_H

#include <stdbool.h>
#include <stdint.h>

#include "halbach/generation.h"

#define HB_GUE_PORT   6080 /* IANA: gue */
#define HB_VXLAN_PORT 4789 /* IANA: vxlan */

struct hb_udp_options {
    uint16_t port;       /* destination */
    bool checksum;       /* over IPv4 */
    bool zero_checksum6; /* none over IPv6 (RFC 6935) */
};

/* Of all modes; those of others than the pool's are as preset. */
struct hb_forwarding_options {
    struct hb_udp_options gue;
    uint8_t gue_variant; /* 0 or 1 */
    struct hb_udp_options vxlan;
    uint32_t vxlan_vni;
    uint8_t vxlan_mac[6];        /* of the inner Ethernet header; zero: made of the address */
    uint8_t vxlan_source_mac[6]; /* the same */
    uint8_t dscp;                /* of L3DSR, 1 to 63; 0: not said */
    uint8_t fragment;            /* HB_REWRITE_FRAGMENT_... or 0: dropped */
};

bool hb_forwarding_equal(const struct hb_forwarding_options *a,
                         const struct hb_forwarding_options *b);

/* "gue" for both variants. */
const char *hb_forwarding_name(enum hb_forwarding forwarding);

/* An IP header of the balancer's own around the packet. */
static inline bool hb_forwarding_is_tunnel(enum hb_forwarding forwarding)
{
    return forwarding >= HB_FORWARDING_IPIP && forwarding <= HB_FORWARDING_VXLAN;
}

#endif
