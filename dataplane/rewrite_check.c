/* SPDX-License-Identifier: BSD-3-Clause */
/* See rewrite_check.h. What holds for every mode; the modes' own checks are in files of theirs. */
#include "rewrite_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rewrite_check_internal.h"

#define INNER_MIN 68 /* the smallest MTU that IPv4 knows, RFC 791 */

bool hb_rewrite_fail(struct hb_rewrite_problem *problem, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(problem->text, problem->size, format, arguments);
    va_end(arguments);
    return false;
}

bool hb_rewrite_is_zero(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != 0)
            return false;
    }
    return true;
}

bool hb_rewrite_check_sizes(const struct hb_rewrite *rewrite, unsigned wanted, unsigned outer,
                            struct hb_rewrite_problem *problem)
{
    if (rewrite->size != wanted)
        return hb_rewrite_fail(problem, "%u bytes, must be %u for IPv%u", rewrite->size, wanted,
                               rewrite->family);
    if (rewrite->inner_max < INNER_MIN || rewrite->inner_max + outer > UINT16_MAX)
        return hb_rewrite_fail(problem, "inner_max %u, must be %d to %u", rewrite->inner_max,
                               INNER_MIN, UINT16_MAX - outer);
    return true;
}

bool hb_rewrite_check_ether_type(const struct hb_rewrite *rewrite, unsigned wanted,
                                 struct hb_rewrite_problem *problem)
{
    unsigned found = hb_read16(rewrite->bytes + rewrite->l2_size - 2);

    if (found != wanted)
        return hb_rewrite_fail(problem, "EtherType %#06x, must be %#06x here", found, wanted);
    return true;
}

bool hb_rewrite_check_flags(const struct hb_rewrite *rewrite, unsigned allowed,
                            struct hb_rewrite_problem *problem)
{
    unsigned both = HB_REWRITE_FRAGMENT_OUTER | HB_REWRITE_FRAGMENT_INNER;

    if ((rewrite->flags & ~allowed) != 0)
        return hb_rewrite_fail(problem, "flags %#x, this forwarding over IPv%u has %#x at most",
                               rewrite->flags, rewrite->family, allowed);
    if ((rewrite->flags & both) == both)
        return hb_rewrite_fail(problem, "flags %#x: fragments are made outside or inside, not both",
                               rewrite->flags);
    return true;
}

bool hb_rewrite_check_rest(const struct hb_rewrite *rewrite, unsigned from,
                           struct hb_rewrite_problem *problem)
{
    if (!hb_rewrite_is_zero(rewrite->bytes + from, sizeof(rewrite->bytes) - from))
        return hb_rewrite_fail(problem, "bytes behind the first %u are not zero", from);
    return true;
}

static bool check_link(const struct hb_rewrite *rewrite, struct hb_rewrite_problem *problem)
{
    const uint8_t *bytes = rewrite->bytes;
    unsigned tag = hb_read16(bytes + 12);

    if (rewrite->l2_size != HB_ETHERNET_BYTES &&
        rewrite->l2_size != HB_ETHERNET_BYTES + HB_VLAN_BYTES)
        return hb_rewrite_fail(problem, "%u bytes of layer 2, must be 14 or 18", rewrite->l2_size);
    if (hb_rewrite_is_zero(bytes, 6))
        return hb_rewrite_fail(problem,
                               "the destination MAC address is zero; resolve the next hop");
    if (rewrite->l2_size == HB_ETHERNET_BYTES + HB_VLAN_BYTES && tag != 0x8100 && tag != 0x88a8)
        return hb_rewrite_fail(problem, "%u bytes of layer 2, but no VLAN tag", rewrite->l2_size);
    return true;
}

bool hb_rewrite_check(const struct hb_backend_record *backend, char *text, size_t size)
{
    const struct hb_rewrite *rewrite = &backend->rewrite;
    struct hb_rewrite_problem problem = {text, size};

    if (rewrite->reserved != 0 || rewrite->reserved16 != 0)
        return hb_rewrite_fail(&problem, "a reserved field is not zero");
    if (rewrite->family != backend->family)
        return hb_rewrite_fail(&problem, "outer family %u, the backend's is %u", rewrite->family,
                               backend->family);
    if (!check_link(rewrite, &problem))
        return false;
    switch (rewrite->forwarding) {
    case HB_FORWARDING_IPIP:
    case HB_FORWARDING_GUE:
    case HB_FORWARDING_GUE1:
    case HB_FORWARDING_GRE:
    case HB_FORWARDING_VXLAN:
        return hb_rewrite_check_tunnel(backend, &problem);
    case HB_FORWARDING_L2:
    case HB_FORWARDING_L3DSR:
        return hb_rewrite_check_direct(backend, &problem);
    case HB_FORWARDING_NAT:
    case HB_FORWARDING_FULL_NAT:
        return hb_rewrite_check_nat(backend, text, size);
    default:
        return hb_rewrite_fail(&problem, "forwarding %u, this dataplane knows 1 to %u",
                               rewrite->forwarding, HB_FORWARDINGS - 1);
    }
}
