/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * encap_nat.c: requests on their way to a NAT backend.
 *
 * The destination becomes the backend's address and, where the pool has one, its port; the source
 * stays, so the server sees its client and answers to it, by a route through this balancer
 * (stage_return.c). Full NAT changes the source as well: full_nat.c.
 *
 * ICMP errors about answers, which stage_icmp gave the backend that sent them, are translated with
 * what they quote. Other protocols than TCP and UDP can't be: their checksums are not known here.
 */
#include "encap_nat.h"
#include "full_nat.h"
#include "nat_frame.h"
#include "nat_icmp.h"
#include "stages.h"
#include "worker_state.h"

void hb_encap_nat(struct hb_batch *batch, struct hb_packet *packet)
{
    const struct hb_backend *backend = packet->backend;
    struct hb_nat_header header;
    hb_be16 port;

    if (!hb_nat_begin(batch, packet, &header, backend->size + HB_NAT_ROOM))
        return;
    if (hb_nat_is_error(&header)) {
        if (!hb_nat_icmp_request(batch, packet, &header))
            return;
    } else if (header.protocol != HB_PROTOCOL_TCP && header.protocol != HB_PROTOCOL_UDP) {
        hb_drop(batch, packet, HB_DROP_NAT_PROTOCOL);
        return;
    } else if (backend->forwarding == HB_FORWARDING_FULL_NAT) {
        if (!hb_full_nat_forward(batch, packet, &header))
            return;
    } else {
        port = backend->nat_port != 0 ? backend->nat_port
                                      : hb_nat_port(&header, HB_NAT_DESTINATION_END);
        hb_nat_set_end(&header, HB_NAT_DESTINATION_END, hb_nat_backend_address(backend), port);
    }
    backend = packet->backend; /* a session may know another one */
    hb_nat_end_frame(packet, backend->bytes, backend->size);
}
