/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * encap.c: which headers a packet gets, by the mode of its backend, and what becomes of one that is
 * too long for the backend's link.
 */
#include "encap.h"
#include "encap_nat.h"

#define MAY_CUT (HB_REWRITE_FRAGMENT_OUTER | HB_REWRITE_FRAGMENT_INNER)

uint8_t hb_encap_by_mode(struct hb_batch *batch, struct hb_packet *packet)
{
    switch (packet->backend->forwarding) {
    case HB_FORWARDING_IPIP:
    case HB_FORWARDING_GUE:
    case HB_FORWARDING_GUE1:
    case HB_FORWARDING_GRE:
    case HB_FORWARDING_VXLAN:
        return hb_encap_tunnel(batch, packet);
    case HB_FORWARDING_L2:
        return hb_encap_l2(packet);
    case HB_FORWARDING_L3DSR:
        return hb_encap_l3dsr(packet);
    case HB_FORWARDING_NAT:
    case HB_FORWARDING_FULL_NAT:
        hb_encap_nat(batch, packet); /* drops by itself */
        return HB_NO_FAULT;
    default: /* no generation with another mode is adopted (rewrite_check) */
        return HB_DROP_NO_BACKEND;
    }
}

/* The one place that decides about a packet that does not fit. An IPv4 packet without DF may be cut
 * where the backend's pool says so; any other is dropped and its sender told, never cut off or sent
 * too long (BL-19). */
static uint8_t take_oversize(struct hb_batch *batch, struct hb_packet *packet)
{
    if (!packet->dont_fragment && (packet->backend->flags & MAY_CUT) != 0)
        return hb_encap_in_pieces(batch, packet);
    hb_too_big(batch, packet, packet->backend->inner_max);
    return HB_NO_FAULT;
}

void hb_encapsulate(struct hb_batch *batch, struct hb_packet *packet)
{
    uint8_t fault;

    if (unlikely(packet->inner_length > packet->backend->inner_max))
        fault = take_oversize(batch, packet);
    else
        fault = hb_encap_by_mode(batch, packet);
    if (unlikely(fault != HB_NO_FAULT))
        hb_drop(batch, packet, (enum hb_drop_reason)fault);
}
