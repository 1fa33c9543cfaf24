/* SPDX-License-Identifier: BSD-3-Clause */
/* encap_nat.h: NAT and full NAT, for stage_encap. */
#ifndef HB_DATAPLANE_ENCAP_NAT_H
#define HB_DATAPLANE_ENCAP_NAT_H

#include "batch.h"
#include "nat_map.h"

/* In front of a packet, beside the Ethernet header: what a session may put in (full_nat.h). */
#define HB_NAT_ROOM 52

/* Translates the packet for its backend and puts the Ethernet header in front, or drops it. */
void hb_encap_nat(struct hb_batch *batch, struct hb_packet *packet);

/* The backend's address stands behind its Ethernet header. */
static inline const uint8_t *hb_nat_backend_address(const struct hb_backend *backend)
{
    return backend->bytes + backend->size;
}

#endif
