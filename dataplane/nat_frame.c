/* SPDX-License-Identifier: BSD-3-Clause */
/* See nat_frame.h. */
#include <string.h>

#include "encap.h"
#include "nat_frame.h"
#include "stages.h"
#include "worker_state.h"

static bool refuse(struct hb_batch *batch, struct hb_packet *packet, enum hb_drop_reason reason)
{
    hb_drop(batch, packet, reason);
    return false;
}

bool hb_nat_begin(struct hb_batch *batch, struct hb_packet *packet, struct hb_nat_header *header,
                  uint32_t room)
{
    uint8_t fault = hb_encap_take_out(packet, room);
    struct rte_mbuf *mbuf = packet->mbuf;

    if (fault != HB_NO_FAULT)
        return refuse(batch, packet, fault);
    packet->l3_offset = 0;
    if (!hb_nat_read(header, rte_pktmbuf_mtod(mbuf, uint8_t *), rte_pktmbuf_data_len(mbuf)))
        return refuse(batch, packet, HB_DROP_RUNT);
    /* A first fragment so small that its checksum is in the next one (RFC 1858). */
    if (header->fragment && header->l4 != NULL && !hb_nat_has_ports(header))
        return refuse(batch, packet, HB_DROP_FRAGMENT);
    if (!hb_nat_take_hop(header))
        return refuse(batch, packet, HB_DROP_TTL_EXPIRED);
    return true;
}

void hb_nat_end_frame(struct hb_packet *packet, const uint8_t *l2, uint16_t l2_size)
{
    memcpy(rte_pktmbuf_prepend(packet->mbuf, l2_size), l2, l2_size);
}
