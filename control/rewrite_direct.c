/* SPDX-License-Identifier: BSD-3-Clause */
/* rewrite_direct.c: no tunnel: the backend's MAC address (L2), or its IP address and a DSCP
 * (L3DSR).
 */
#include <stdio.h>
#include <string.h>

#include "rewrite_internal.h"

/* The packet is not addressed to the backend: only the link can carry it there. */
static bool put_l2(struct hb_rewrite_draft *draft)
{
    struct hb_rewrite *rewrite = draft->rewrite;
    char text[HB_ADDRESS_TEXT], gateway[HB_ADDRESS_TEXT];

    if (hb_address_compare(&draft->hop->gateway, draft->to) != 0) {
        snprintf(draft->problem, draft->problem_size,
                 "%s is behind %s; forwarding by l2 needs it on a link of the balancer: use a "
                 "tunnel or l3dsr",
                 hb_address_print(draft->to, text),
                 hb_address_print(&draft->hop->gateway, gateway));
        return false;
    }
    hb_put16(rewrite->bytes + rewrite->l2_size - 2, 0); /* by the packet */
    return true;
}

static bool put_l3dsr(struct hb_rewrite_draft *draft)
{
    struct hb_rewrite *rewrite = draft->rewrite;

    rewrite->dscp = draft->wish->options->dscp;
    memcpy(rewrite->bytes + rewrite->size, draft->to->bytes,
           draft->to->family == HB_FAMILY_IPV4 ? 4 : HB_ADDRESS_SIZE);
    return true;
}

bool hb_rewrite_put_direct(struct hb_rewrite_draft *draft)
{
    switch (draft->wish->forwarding) {
    case HB_FORWARDING_L2:
        return put_l2(draft);
    case HB_FORWARDING_L3DSR:
        return put_l3dsr(draft);
    default:
        snprintf(draft->problem, draft->problem_size, "forwarding by %s is not known here",
                 hb_forwarding_name(draft->wish->forwarding));
        return false;
    }
}
