/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * steer_maps.h: names and layouts of the steering program's maps, for the BPF program and the
 * dataplane.
 *
 * The program redirects packets addressed to a VIP, and answers of NAT backends that are not
 * addressed to this machine, to the AF_XDP socket of their queue and passes everything else (ARP,
 * ND, BGP, SSH, health checks) to the kernel.
 */
#ifndef HB_XDP_STEER_MAPS_H
#define HB_XDP_STEER_MAPS_H

#include <linux/types.h>

/* Key of the VIP map. IPv4 addresses stand in the first four bytes, the rest is zero. */
struct hb_steer_vip {
    __u8 bytes[16];
    __u8 family; /* 4 or 6 */
    __u8 zero[3];
};

/* Key of the map of VIP prefixes, a trie: the family counts as the first eight bits of it. */
struct hb_steer_prefix {
    __u32 bits; /* 8 and the prefix length */
    __u8 family;
    __u8 bytes[16];
    __u8 zero[3];
};

/* Key of the map of answers: what NAT backends send. Port 0: what has none, fragments behind the
 * first and ICMP errors. */
struct hb_steer_answer {
    __u8 bytes[16];
    __u16 port; /* network byte order */
    __u8 protocol;
    __u8 family;
};

/* What the kernel may have of one CPU's packets, in two classes: 0 all, 1 those that keep the host
 * reachable (ARP, neighbour discovery, BGP, BFD). One value a CPU; user space writes `rate` alone.
 */
struct hb_steer_limit {
    __u64 rate;      /* packets a second of each class; 0: no limit */
    __u64 tokens[2]; /* nanoseconds' worth */
    __u64 filled_ns[2];
};

#define HB_STEER_VIPS_MAX                                                                          \
    8192 /* VIPs and the source addresses of full NAT; and as many prefixes                        \
          */
#define HB_STEER_ANSWERS_MAX 262144
#define HB_STEER_OWN_MAX     1024
#define HB_STEER_QUEUES_MAX  64

/* A left-over of ours is told from others by the program's name; net_af_xdp looks for "xsks_map".
 */
#define HB_STEER_PROGRAM     "hb_steer"
#define HB_STEER_VIP_MAP     "hb_vips"
#define HB_STEER_ANSWER_MAP  "hb_answers"
#define HB_STEER_OWN_MAP     "hb_own"
#define HB_STEER_PREFIX_MAP  "hb_prefixes"
#define HB_STEER_QUEUE_MAP   "xsks_map"
#define HB_STEER_COUNTER_MAP "hb_counters"
#define HB_STEER_LIMIT_MAP   "hb_limit"

/* Counters of the program, an index each into a per-CPU array. X(ENUM, "name", "description"). */
#define HB_STEER_COUNTERS(X)                                                                       \
    X(REDIRECTED, "redirected",                                                                    \
      "packets to a VIP and answers of NAT backends, handed to the dataplane")                     \
    X(NO_SOCKET, "no_socket", "the same while no socket served their queue; dropped")              \
    X(TAGS, "too_many_tags", "frames with more than two VLAN tags; passed")                        \
    X(PASSED, "passed", "all other packets; the kernel's")                                         \
    X(LIMITED, "limited", "the kernel's too, above the rate limit of that way; dropped")

#define HB_STEER_ENUM(id, name, text) HB_STEER_##id,
enum hb_steer_counter { HB_STEER_COUNTERS(HB_STEER_ENUM) HB_STEER_COUNT };
#undef HB_STEER_ENUM

#endif
