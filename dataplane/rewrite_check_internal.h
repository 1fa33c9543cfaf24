/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rewrite_check_internal.h: what the checks of rewrites share; one file a family of forwarding
 * modes. Pure.
 *
 * A check returns false with what is wrong in the problem's text. What holds for every mode was
 * checked before: sizes of the link header, MAC address, flags that no mode has.
 */
#ifndef HB_DATAPLANE_REWRITE_CHECK_INTERNAL_H
#define HB_DATAPLANE_REWRITE_CHECK_INTERNAL_H

#include "rewrite_check.h"

enum {
    HB_ETHERNET_BYTES = 14,
    HB_VLAN_BYTES = 4,
    HB_IPV4_BYTES = 20,
    HB_IPV6_BYTES = 40,
};

struct hb_rewrite_problem {
    char *text;
    size_t size;
};

bool hb_rewrite_fail(struct hb_rewrite_problem *problem, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* IPIP, GUE, GRE, VXLAN. (rewrite_check_tunnel) */
bool hb_rewrite_check_tunnel(const struct hb_backend_record *backend,
                             struct hb_rewrite_problem *problem);

/* L2, L3DSR. (rewrite_check_direct) */
bool hb_rewrite_check_direct(const struct hb_backend_record *backend,
                             struct hb_rewrite_problem *problem);

/* Shared by them. (rewrite_check) */

/* `size` is `wanted`, and what the mode puts in front of the packet leaves room for a sound one.
 * `outer`: bytes of `size` that count for the MTU. */
bool hb_rewrite_check_sizes(const struct hb_rewrite *rewrite, unsigned wanted, unsigned outer,
                            struct hb_rewrite_problem *problem);
/* The EtherType of the link header. */
bool hb_rewrite_check_ether_type(const struct hb_rewrite *rewrite, unsigned wanted,
                                 struct hb_rewrite_problem *problem);
/* No flags but these, and not two that exclude each other. */
bool hb_rewrite_check_flags(const struct hb_rewrite *rewrite, unsigned allowed,
                            struct hb_rewrite_problem *problem);
/* All bytes from `from` on are zero. */
bool hb_rewrite_check_rest(const struct hb_rewrite *rewrite, unsigned from,
                           struct hb_rewrite_problem *problem);
bool hb_rewrite_is_zero(const uint8_t *bytes, size_t size);

static inline unsigned hb_read16(const uint8_t *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

#endif
