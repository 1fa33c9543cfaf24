/* SPDX-License-Identifier: BSD-3-Clause */
#include "forwarding.h"

#include <string.h>

static bool udp_equal(const struct hb_udp_options *a, const struct hb_udp_options *b)
{
    return a->port == b->port && a->checksum == b->checksum &&
           a->zero_checksum6 == b->zero_checksum6;
}

bool hb_forwarding_equal(const struct hb_forwarding_options *a,
                         const struct hb_forwarding_options *b)
{
    return udp_equal(&a->gue, &b->gue) && a->gue_variant == b->gue_variant &&
           udp_equal(&a->vxlan, &b->vxlan) && a->vxlan_vni == b->vxlan_vni &&
           memcmp(a->vxlan_mac, b->vxlan_mac, sizeof(a->vxlan_mac)) == 0 &&
           memcmp(a->vxlan_source_mac, b->vxlan_source_mac, sizeof(a->vxlan_source_mac)) == 0 &&
           a->dscp == b->dscp && a->fragment == b->fragment;
}

const char *hb_forwarding_name(enum hb_forwarding forwarding)
{
    static const char *const names[HB_FORWARDINGS] = {
        [HB_FORWARDING_IPIP] = "ipip",         [HB_FORWARDING_GUE] = "gue",
        [HB_FORWARDING_GUE1] = "gue",          [HB_FORWARDING_GRE] = "gre",
        [HB_FORWARDING_VXLAN] = "vxlan",       [HB_FORWARDING_L2] = "l2",
        [HB_FORWARDING_L3DSR] = "l3dsr",       [HB_FORWARDING_NAT] = "nat",
        [HB_FORWARDING_FULL_NAT] = "full_nat",
    };

    return forwarding < HB_FORWARDINGS && names[forwarding] ? names[forwarding] : "unknown";
}
