/* SPDX-License-Identifier: BSD-3-Clause */
/* Rewrites of NAT and full NAT; see rewrite_check.h. */
#include <stdio.h>
#include <string.h>

#include "rewrite_check.h"

enum {
    ETHERNET_BYTES = 14,
    VLAN_BYTES = 4,
    INNER_MIN = 576, /* what every IPv4 host takes (RFC 791); a PROXY header must fit beside it */
};

#define CLIENT_FLAGS (HB_REWRITE_PROXY_V2 | HB_REWRITE_TCP_OPTION | HB_REWRITE_TCP_OPTION_28)

static bool has_ethernet(const struct hb_rewrite *rewrite)
{
    static const uint8_t no_mac[6];
    const uint8_t *type = rewrite->bytes + rewrite->l2_size - 2;
    bool ipv4 = rewrite->family == HB_FAMILY_IPV4;

    return memcmp(rewrite->bytes, no_mac, sizeof(no_mac)) != 0 && type[0] == (ipv4 ? 0x08 : 0x86) &&
           type[1] == (ipv4 ? 0x00 : 0xdd);
}

static bool is_one_way(uint8_t flags)
{
    uint8_t ways = flags & CLIENT_FLAGS;

    return (ways & (ways - 1)) == 0;
}

/* The first thing that is wrong, or NULL. */
static const char *find_fault(const struct hb_backend_record *backend)
{
    const struct hb_rewrite *rewrite = &backend->rewrite;
    bool full = rewrite->forwarding == HB_FORWARDING_FULL_NAT;

    if (rewrite->family != backend->family)
        return "its family is not the backend's";
    if (rewrite->l2_size != ETHERNET_BYTES && rewrite->l2_size != ETHERNET_BYTES + VLAN_BYTES)
        return "layer 2 must have 14 or 18 bytes";
    if (rewrite->size != rewrite->l2_size)
        return "NAT has the Ethernet header alone";
    if (rewrite->inner_max < INNER_MIN)
        return "inner_max must be 576 at least";
    if (rewrite->spread != 0 || rewrite->dscp != 0 || rewrite->reserved != 0 ||
        rewrite->reserved16 != 0)
        return "spread, DSCP or reserved bytes are set: NAT has none";
    if ((rewrite->flags & ~(full ? CLIENT_FLAGS : 0u)) != 0 || !is_one_way(rewrite->flags))
        return "flags: full NAT knows one of PROXY v2 and TCP option, NAT none";
    if (!has_ethernet(rewrite))
        return "the Ethernet header has no destination or another EtherType";
    if (memcmp(rewrite->bytes + rewrite->size, backend->address,
               backend->family == HB_FAMILY_IPV4 ? 4 : HB_ADDRESS_SIZE) != 0)
        return "the address behind the Ethernet header is not the backend's";
    return NULL;
}

bool hb_rewrite_check_nat(const struct hb_backend_record *backend, char *problem, size_t size)
{
    const char *fault = find_fault(backend);

    if (fault != NULL)
        snprintf(problem, size, "%s", fault);
    return fault == NULL;
}
