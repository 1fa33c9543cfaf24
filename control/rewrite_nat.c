/* SPDX-License-Identifier: BSD-3-Clause */
/* See rewrite_nat.h. What both need of the link is what a tunnel needs: it is made first, and its
 * outer header taken off. */
#include "rewrite_nat.h"

#include <string.h>

static bool make_link(const struct hb_address *to, const struct hb_next_hop *hop,
                      struct hb_port_list ports, struct hb_rewrite *link, char *problem,
                      size_t size)
{
    static const struct hb_forwarding_options none;
    static const struct hb_address_prefix no_prefix;
    const struct hb_rewrite_wish tunnel = {HB_FORWARDING_IPIP, &none, to, &no_prefix};
    uint32_t outer;

    if (!hb_rewrite_make(to, hop, &tunnel, ports, link, problem, size))
        return false;
    outer = (uint32_t)link->size - link->l2_size;
    if (link->inner_max > 0)
        link->inner_max = (uint16_t)(link->inner_max + outer);
    memset(link->bytes + link->l2_size, 0, sizeof(link->bytes) - link->l2_size);
    link->size = link->l2_size;
    return true;
}

static uint8_t flags_of(enum hb_forwarding forwarding, const struct hb_nat_config *nat)
{
    if (forwarding != HB_FORWARDING_FULL_NAT)
        return 0;
    switch (nat->client_address) {
    case HB_CLIENT_BY_PROXY_V2:
        return HB_REWRITE_PROXY_V2;
    case HB_CLIENT_BY_OPTION:
        return HB_REWRITE_TCP_OPTION;
    case HB_CLIENT_BY_OPTION_28:
        return HB_REWRITE_TCP_OPTION_28;
    default:
        return 0;
    }
}

bool hb_rewrite_make_nat(const struct hb_address *to, const struct hb_next_hop *hop,
                         enum hb_forwarding forwarding, const struct hb_nat_config *nat,
                         struct hb_port_list ports, struct hb_rewrite *rewrite, char *problem,
                         size_t size)
{
    struct hb_rewrite made;

    if (!make_link(to, hop, ports, &made, problem, size))
        return false;
    made.forwarding = (uint8_t)forwarding;
    made.flags = flags_of(forwarding, nat);
    made.nat_port = (hb_be16)(nat->port >> 8 | (nat->port & 0xff) << 8);
    memcpy(made.bytes + made.size, to->bytes, to->family == HB_FAMILY_IPV4 ? 4 : HB_ADDRESS_SIZE);
    *rewrite = made;
    return true;
}

bool hb_client_hop_make(const struct hb_address *to, const struct hb_next_hop *hop,
                        struct hb_port_list ports, struct hb_client_hop *way, char *problem,
                        size_t size)
{
    struct hb_rewrite link;

    if (!make_link(to, hop, ports, &link, problem, size))
        return false;
    memset(way, 0, sizeof(*way));
    way->size = link.l2_size;
    way->port = link.port;
    way->mtu = link.inner_max;
    memcpy(way->bytes, link.bytes, link.l2_size);
    return true;
}
