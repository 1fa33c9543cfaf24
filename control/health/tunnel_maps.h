/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tunnel_maps.h: what tunnel.bpf.c and its loader share.
 */
#ifndef HB_CONTROL_HEALTH_TUNNEL_MAPS_H
#define HB_CONTROL_HEALTH_TUNNEL_MAPS_H

#include <linux/types.h>

/* Marks of probes: the upper half says that it is one, the lower half names its tunnel. */
#define HB_TUNNEL_MARK      0x48420000u
#define HB_TUNNEL_MARK_MASK 0xffff0000u
#define HB_TUNNELS_MAX      65535 /* 1 to this */

#define HB_TUNNEL_LINK_MAX  18 /* Ethernet and one VLAN tag */
#define HB_TUNNEL_OUTER_MAX 82

enum hb_tunnel_kind {
    HB_TUNNEL_NONE = 0, /* only the link header changes */
    HB_TUNNEL_IPIP = 1,
    HB_TUNNEL_GRE = 2,
    HB_TUNNEL_GUE = 3,  /* variant 0: four bytes behind the UDP header */
    HB_TUNNEL_GUE1 = 4, /* variant 1: none */
    HB_TUNNEL_VXLAN = 5,
};

/* The headers that go in front of a probe, ready but for what depends on it. */
struct hb_probe_tunnel {
    __u32 ifindex;   /* of the interface to send on */
    __u8 kind;       /* enum hb_tunnel_kind */
    __u8 family;     /* 4 or 6, of the outer header */
    __u8 link_size;  /* of link[]; 14 or 18 */
    __u8 outer_size; /* of outer[]; 0 with HB_TUNNEL_NONE */
    __u8 udp_checksum;
    __u8 reserved[3];
    __u8 link[20]; /* HB_TUNNEL_LINK_MAX and two that are not used */
    __u8 outer[84];
};

enum hb_tunnel_counter {
    HB_TUNNEL_SENT = 0,
    HB_TUNNEL_UNKNOWN = 1, /* without a mark, or no tunnel of that number */
    HB_TUNNEL_FAILED = 2,  /* no memory, or a header that does not fit */
    HB_TUNNEL_COUNT = 3,
};

#endif
