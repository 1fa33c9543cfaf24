/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * decap_maps.h: names and layouts of the decapsulation program's maps, for the BPF program and for
 * halbach-backend alike.
 */
#ifndef HB_BACKEND_DECAP_MAPS_H
#define HB_BACKEND_DECAP_MAPS_H

#include <linux/types.h>

/* IPv4 addresses stand in the first four bytes, the rest is zero. */
struct hb_decap_address {
    __u8 bytes[16];
    __u8 family; /* 4 or 6 */
    __u8 zero[3];
};

/* Key of the maps of VIPs and tunnel sources, which find the prefix that holds an address
 * (BPF_MAP_TYPE_LPM_TRIE). */
struct hb_decap_prefix {
    __u32 bits; /* that count: the family's 8, then those of the prefix */
    __u8 family;
    __u8 bytes[16];
    __u8 zero[3];
};

/* Key of the map of L3DSR marks: an address of this host and a DSCP. The value is the VIP, a struct
 * hb_decap_address of the same family. */
struct hb_decap_mark {
    struct hb_decap_address host;
    __u32 dscp; /* 1 to 63 */
};

/* Which tunnels are opened. One entry. */
struct hb_decap_settings {
    __u32 tunnels;     /* HB_DECAP_TUNNEL_... */
    __be16 gue_port;   /* UDP destination of GUE, both variants */
    __be16 vxlan_port; /* the same of VXLAN */
};

enum {
    HB_DECAP_TUNNEL_IPIP = 1,
    HB_DECAP_TUNNEL_GUE = 2,
    HB_DECAP_TUNNEL_GRE = 4,
    HB_DECAP_TUNNEL_VXLAN = 8,
    HB_DECAP_TUNNEL_ALL = 15,
};

#define HB_DECAP_GUE_PORT   6080
#define HB_DECAP_VXLAN_PORT 4789

#define HB_DECAP_VIPS_MAX    4096
#define HB_DECAP_SOURCES_MAX 256
#define HB_DECAP_MARKS_MAX   4096

/* Our program on an interface is told from others by its name, and its maps by theirs. */
#define HB_DECAP_PROGRAM      "hb_decap"
#define HB_DECAP_VIP_MAP      "hb_vips"
#define HB_DECAP_SOURCE_MAP   "hb_sources"
#define HB_DECAP_MARK_MAP     "hb_marks"
#define HB_DECAP_SETTINGS_MAP "hb_settings"
#define HB_DECAP_COUNTER_MAP  "hb_counters"

/* Counters of the program, an index each into a per-CPU array. X(ENUM, "name", "description"). */
#define HB_DECAP_COUNTERS(X)                                                                       \
    X(DECAPSULATED, "decapsulated", "tunnel packets unwrapped and passed to the kernel")           \
    X(NOT_SOURCE, "not_source",                                                                    \
      "tunnel packets from an address that is not a tunnel source; passed")                        \
    X(NOT_VIP, "not_vip", "tunnel packets whose inner destination is not a VIP; passed")           \
    X(MALFORMED, "malformed",                                                                      \
      "tunnel packets cut short or with lying lengths, and fragments; passed")                     \
    X(ECN_DROPPED, "ecn_dropped",                                                                  \
      "tunnel packets marked as congested around an inner packet without ECN; dropped")            \
    X(PASSED, "passed", "all other packets")                                                       \
    X(RESTORED, "restored", "packets whose DSCP said for which VIP they are; passed to the kernel")

#define HB_DECAP_ENUM(id, name, text) HB_DECAP_##id,
enum hb_decap_counter { HB_DECAP_COUNTERS(HB_DECAP_ENUM) HB_DECAP_COUNT };
#undef HB_DECAP_ENUM

#endif
