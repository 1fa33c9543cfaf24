/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * decap_maps.h: names and layouts of the decapsulation program's maps, for the BPF program and for
 * halbach-backend alike.
 */
#ifndef HB_BACKEND_DECAP_MAPS_H
#define HB_BACKEND_DECAP_MAPS_H

#include <linux/types.h>

/* Key of both maps. IPv4 addresses stand in the first four bytes, the rest is zero. */
struct hb_decap_address {
    __u8 bytes[16];
    __u8 family; /* 4 or 6 */
    __u8 zero[3];
};

#define HB_DECAP_VIPS_MAX    4096
#define HB_DECAP_SOURCES_MAX 256

/* Our program on an interface is told from others by its name, and its maps by theirs. */
#define HB_DECAP_PROGRAM     "hb_decap"
#define HB_DECAP_VIP_MAP     "hb_vips"
#define HB_DECAP_SOURCE_MAP  "hb_sources"
#define HB_DECAP_COUNTER_MAP "hb_counters"

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
    X(PASSED, "passed", "all other packets")

#define HB_DECAP_ENUM(id, name, text) HB_DECAP_##id,
enum hb_decap_counter { HB_DECAP_COUNTERS(HB_DECAP_ENUM) HB_DECAP_COUNT };
#undef HB_DECAP_ENUM

#endif
