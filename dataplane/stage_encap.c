/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage_encap.c: the backend's headers in front of the IP packet; the short way.
 *
 * Nearly every packet lies alone in one buffer of its own and leaves by plain Ethernet over an IPv4
 * tunnel: that case is written out (encap_plain.h, and for eight packets at once encap_eight.h). It
 * makes what encap_tunnel.c, which says why, would make. All else goes the general way (encap.c).
 */
#include "encap.h"
#include "encap_plain.h"
#if defined(__AVX2__)
#include "encap_eight.h"
#endif

static void take_one(struct hb_batch *batch, struct hb_packet *packet)
{
    if (likely(is_plain(packet)))
        put_plain_ipv4(packet, &batch->worker->ipv4_id);
    else
        hb_encapsulate(batch, packet);
}

/* Eight packets at once, where the processor can, and those of an eight that are not all plain one
 * by one. Returns how many packets were done so. */
static uint16_t take_eights(struct hb_batch *batch)
{
    uint16_t next = 0;

#if defined(__AVX2__)
    for (; next + 8 <= batch->count; next = (uint16_t)(next + 8)) {
        struct hb_packet *packet = &batch->packet[next];

        if (likely(put_eight(packet, &batch->worker->ipv4_id)))
            continue;
        for (uint16_t i = 0; i < 8; i++)
            take_one(batch, &packet[i]);
    }
#else
    (void)batch;
#endif
    return next;
}

void hb_stage_encap(struct hb_batch *batch)
{
    for (uint16_t next = take_eights(batch); next < batch->count; next++)
        take_one(batch, &batch->packet[next]);
    hb_batch_end(batch);
}
