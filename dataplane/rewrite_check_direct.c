/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rewrite_check_direct.c: what the modes without a tunnel need: a link header, and for L3DSR the
 * backend's address behind it.
 */
#include <string.h>

#include "rewrite_check_internal.h"

#define DSCP_MAX 63

/* The EtherType is that of the packet, which the packet path patches in. */
static bool check_l2(const struct hb_rewrite *rewrite, struct hb_rewrite_problem *problem)
{
    if (rewrite->dscp != 0)
        return hb_rewrite_fail(problem, "DSCP %u: l2 has none", rewrite->dscp);
    return hb_rewrite_check_ether_type(rewrite, 0, problem) &&
           hb_rewrite_check_rest(rewrite, rewrite->size, problem);
}

/* DSCP 0 is what packets have that nobody marked. */
static bool check_l3dsr(const struct hb_backend_record *backend, struct hb_rewrite_problem *problem)
{
    const struct hb_rewrite *rewrite = &backend->rewrite;
    bool ipv4 = rewrite->family == HB_FAMILY_IPV4;
    unsigned address_size = ipv4 ? 4 : HB_ADDRESS_SIZE;

    if (rewrite->dscp == 0 || rewrite->dscp > DSCP_MAX)
        return hb_rewrite_fail(problem, "DSCP %u, must be 1 to %d", rewrite->dscp, DSCP_MAX);
    if (memcmp(rewrite->bytes + rewrite->size, backend->address, address_size) != 0)
        return hb_rewrite_fail(problem,
                               "what stands behind the headers is not the backend's address");
    return hb_rewrite_check_ether_type(rewrite, ipv4 ? 0x0800 : 0x86dd, problem) &&
           hb_rewrite_check_rest(rewrite, rewrite->size + address_size, problem);
}

bool hb_rewrite_check_direct(const struct hb_backend_record *backend,
                             struct hb_rewrite_problem *problem)
{
    const struct hb_rewrite *rewrite = &backend->rewrite;

    if (rewrite->spread != 0 || rewrite->nat_port != 0)
        return hb_rewrite_fail(problem, "spread %u or a port: there is no tunnel", rewrite->spread);
    if (!hb_rewrite_check_sizes(rewrite, rewrite->l2_size, 0, problem) ||
        !hb_rewrite_check_flags(rewrite, HB_REWRITE_FRAGMENT_INNER, problem))
        return false;
    return rewrite->forwarding == HB_FORWARDING_L2 ? check_l2(rewrite, problem)
                                                   : check_l3dsr(backend, problem);
}
