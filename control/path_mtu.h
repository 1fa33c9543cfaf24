/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path_mtu.h: what ICMP errors have said about the way to one backend.
 *
 * The path MTU is the tunnel's soft state (RFC 2003, section 5.1; RFC 4459, section 3.2): learned
 * from "packet too big", kept HB_PATH_KEEP_MS (RFC 1191, section 6.3), and then the whole link is
 * tried again. A message only ever lowers it: what claims more than is in use, or less than the
 * floor, changes nothing.
 *
 * Pure.
 */
#ifndef HB_CONTROL_PATH_MTU_H
#define HB_CONTROL_PATH_MTU_H

#include <stdbool.h>
#include <stdint.h>

#define HB_PATH_KEEP_MS 600000
/* Nobody's path is smaller: IPv4 hosts take 576 bytes (RFC 1122), IPv6 links carry 1,280. */
#define HB_PATH_FLOOR4 576
#define HB_PATH_FLOOR6 1280

struct hb_path {
    uint32_t mtu; /* of whole tunnel packets, bytes; 0: as the link says */
    uint64_t learned_ms;
    uint64_t unreachable, time_exceeded, too_big; /* errors about tunnel packets to it */
};

/* "Packet too big" came, with `mtu`, while packets of at most `in_use` bytes were sent. Returns
 * whether smaller ones must be sent from now on. */
bool hb_path_learn(struct hb_path *path, uint32_t mtu, uint32_t in_use, uint32_t floor,
                   uint64_t now_ms);

/* Forgets what is too old, or (hb_path_forget) whatever its age. Returns whether there was
 * something to forget. */
bool hb_path_age(struct hb_path *path, uint64_t now_ms);
bool hb_path_forget(struct hb_path *path);

/* How long until that, ms; 0 when nothing is known. */
uint64_t hb_path_left_ms(const struct hb_path *path, uint64_t now_ms);

#endif
