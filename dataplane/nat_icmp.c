/* SPDX-License-Identifier: BSD-3-Clause */
/* See nat_icmp.h. */
#include "nat_icmp.h"

#include <string.h>

#include "encap_nat.h"
#include "full_nat.h"
#include "stages.h"
#include "worker_state.h"

enum { UNREACHABLE = 3, FRAGMENTATION_NEEDED = 4, UNREACHABLE_V6 = 1 };

static bool refuse(struct hb_batch *batch, struct hb_packet *packet, enum hb_drop_reason reason)
{
    hb_drop(batch, packet, reason);
    return false;
}

struct hb_flow_key hb_nat_flow_key(const struct hb_nat_header *header, bool answer)
{
    enum hb_nat_end client = answer ? HB_NAT_DESTINATION_END : HB_NAT_SOURCE_END;
    enum hb_nat_end vip = answer ? HB_NAT_SOURCE_END : HB_NAT_DESTINATION_END;
    struct hb_flow_key key = {
        .source_port = hb_nat_port(header, client),
        .destination_port = hb_nat_port(header, vip),
        .protocol = header->protocol,
        .family = header->family,
    };
    size_t size = header->family == HB_FAMILY_IPV4 ? 4 : HB_ADDRESS_SIZE;

    memcpy(key.source, hb_nat_address(header, client), size);
    memcpy(key.destination, hb_nat_address(header, vip), size);
    return key;
}

void hb_nat_note_unreachable(struct hb_worker *worker, const struct hb_nat_header *outer,
                             uint16_t backend)
{
    bool ipv6 = outer->family == HB_FAMILY_IPV6;

    if (outer->l4[0] == (ipv6 ? UNREACHABLE_V6 : UNREACHABLE) &&
        (ipv6 || outer->l4[1] != FRAGMENTATION_NEEDED))
        worker->backends[backend].unreachable++;
}

/* The quote is a request as the backend got it: its destination is the backend's address and port,
 * which name the service. */
bool hb_nat_icmp_return(struct hb_batch *batch, struct hb_packet *packet,
                        struct hb_nat_header *outer)
{
    const struct hb_nat *nat = batch->generation->nat;
    const struct hb_nat_service *service;
    const struct hb_nat_slot *slot;
    struct hb_nat_header quote;
    struct hb_nat_exchange own = {.end = HB_NAT_SOURCE_END}, quoted;
    struct hb_nat_key key = {.family = outer->family};

    if (!hb_nat_read_quote(outer, &quote))
        return refuse(batch, packet, HB_DROP_ICMP_QUOTE);
    memcpy(key.address, hb_nat_address(&quote, HB_NAT_DESTINATION_END),
           outer->family == HB_FAMILY_IPV4 ? 4 : HB_ADDRESS_SIZE);
    key.port = hb_nat_port(&quote, HB_NAT_DESTINATION_END);
    key.protocol = quote.protocol;
    slot = hb_nat_find(nat, &key);
    if (slot == NULL || slot->kind != HB_NAT_BACKEND)
        return refuse(batch, packet, HB_DROP_ICMP_NO_FLOW);
    service = &nat->services[slot->service];
    packet->service = slot->service;
    packet->backend_id = slot->backend;
    hb_nat_note_unreachable(batch->worker, outer, slot->backend);
    own.address = service->vip;
    quoted = (struct hb_nat_exchange){HB_NAT_DESTINATION_END, service->vip, service->port};
    hb_nat_translate_error(outer, &own, 1, &quote, &quoted, 1);
    return true;
}

/* The quote is an answer as the client got it: its source is VIP and port. */
bool hb_nat_icmp_request(struct hb_batch *batch, struct hb_packet *packet,
                         struct hb_nat_header *outer)
{
    const struct hb_backend *backend = packet->backend;
    const uint8_t *address = hb_nat_backend_address(backend);
    struct hb_nat_header quote;
    struct hb_nat_exchange own[2], quoted;

    if (!hb_nat_read_quote(outer, &quote))
        return refuse(batch, packet, HB_DROP_ICMP_QUOTE);
    if (backend->forwarding == HB_FORWARDING_FULL_NAT)
        return hb_full_nat_icmp_request(batch, packet, outer, &quote);
    quoted = (struct hb_nat_exchange){
        HB_NAT_SOURCE_END, address,
        backend->nat_port != 0 ? backend->nat_port : hb_nat_port(&quote, HB_NAT_SOURCE_END)};
    own[0] = (struct hb_nat_exchange){HB_NAT_SOURCE_END,
                                      hb_nat_address(&quote, HB_NAT_DESTINATION_END), 0};
    own[1] = (struct hb_nat_exchange){HB_NAT_DESTINATION_END, address, 0};
    hb_nat_translate_error(outer, own, 2, &quote, &quoted, 1);
    return true;
}
