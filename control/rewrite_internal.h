/* SPDX-License-Identifier: BSD-3-Clause */
/* rewrite_internal.h: what the makers of rewrites share; one file a family of modes. Pure. */
#ifndef HB_CONTROL_REWRITE_INTERNAL_H
#define HB_CONTROL_REWRITE_INTERNAL_H

#include "rewrite.h"

/* A rewrite in the making: the link header is there, `size` is its size, and bytes behind it are
 * zero. */
struct hb_rewrite_draft {
    const struct hb_address *to;
    const struct hb_next_hop *hop;
    const struct hb_rewrite_wish *wish;
    struct hb_rewrite *rewrite;
    char *problem;
    size_t problem_size;
};

/* Put what the mode has behind the link header and set `size`, flags and the like. False with the
 * problem. */
bool hb_rewrite_put_tunnel(struct hb_rewrite_draft *draft);
bool hb_rewrite_put_direct(struct hb_rewrite_draft *draft);

static inline void hb_put16(uint8_t *at, unsigned value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

#endif
