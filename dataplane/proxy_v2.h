/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proxy_v2.h: the header that tells a server who its client is: PROXY protocol, version 2 (HAProxy
 * Technologies, "The PROXY protocol, versions 1 & 2", section 2.2). Command PROXY, no TLVs.
 *
 * Pure.
 */
#ifndef HB_DATAPLANE_PROXY_V2_H
#define HB_DATAPLANE_PROXY_V2_H

#include <stdint.h>

#include "halbach/flow_key.h"

#define HB_PROXY_V2_IPV4 28u /* bytes; both are even, so that what is behind stays aligned */
#define HB_PROXY_V2_IPV6 52u
#define HB_PROXY_V2_MAX  HB_PROXY_V2_IPV6

static inline uint32_t hb_proxy_v2_size(uint8_t family)
{
    return family == HB_FAMILY_IPV4 ? HB_PROXY_V2_IPV4 : HB_PROXY_V2_IPV6;
}

/* Writes the header of a flow from a client to a VIP; returns its size. */
static inline uint32_t hb_proxy_v2_write(uint8_t *out, const struct hb_flow_key *flow)
{
    static const uint8_t signature[12] = "\r\n\r\n\0\r\nQUIT\n";
    uint32_t address = flow->family == HB_FAMILY_IPV4 ? 4 : HB_ADDRESS_SIZE;

    memcpy(out, signature, sizeof(signature));
    out[12] = 0x21; /* version 2, PROXY */
    out[13] = (uint8_t)((flow->family == HB_FAMILY_IPV4 ? 0x10 : 0x20) |
                        (flow->protocol == HB_PROTOCOL_UDP ? 2 : 1));
    out[14] = 0;
    out[15] = (uint8_t)(2 * address + 4);
    memcpy(out + 16, flow->source, address);
    memcpy(out + 16 + address, flow->destination, address);
    memcpy(out + 16 + 2 * address, &flow->source_port, 2);
    memcpy(out + 18 + 2 * address, &flow->destination_port, 2);
    return 16 + 2 * address + 4;
}

#endif
