/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * link_layer.h: Ethernet and VLAN tags, for the BPF programs.
 *
 * The depth is fixed by the caller at compile time, so that the verifier sees constant offsets.
 * Frames with more tags than that end with a VLAN EtherType, which no caller knows as a protocol.
 */
#ifndef HB_XDP_LINK_LAYER_H
#define HB_XDP_LINK_LAYER_H

#include <linux/bpf.h>
#include <linux/if_ether.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

struct vlan_tag {
    __be16 tci;
    __be16 ether_type; /* of what follows the tag */
};

static __always_inline int is_vlan(__be16 ether_type)
{
    return ether_type == bpf_htons(ETH_P_8021Q) || ether_type == bpf_htons(ETH_P_8021AD);
}

/* Moves the cursor over Ethernet and up to `depth` tags. Returns the EtherType of what the cursor
 * is at then; 0 when the frame ends before. */
static __always_inline __be16 skip_link_layer(void **cursor, void *end, int depth)
{
    struct ethhdr *eth = *cursor;
    __be16 ether_type;

    if ((void *)(eth + 1) > end)
        return 0;
    ether_type = eth->h_proto;
    *cursor = eth + 1;

#pragma unroll
    for (int i = 0; i < depth; i++) {
        struct vlan_tag *tag = *cursor;

        if (!is_vlan(ether_type))
            break;
        if ((void *)(tag + 1) > end)
            return 0;
        ether_type = tag->ether_type;
        *cursor = tag + 1;
    }
    return ether_type;
}

#endif
