/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * steer_nat.h: the part of the steering program that NAT needs.
 *
 * Answers of NAT backends are addressed to clients, so they are told by where they come from:
 * address, protocol and port. What is addressed to one of this machine's own addresses is the
 * kernel's all the same: answers to health checks come from the same address and port. So own
 * addresses come into the program before, and leave it after, what they are an exception of. Main
 * lcore only. No DPDK in here; libbpf only.
 */
#ifndef HB_XDP_STEER_NAT_H
#define HB_XDP_STEER_NAT_H

#include <stdint.h>

#include "steer_maps.h"

struct hb_xdp_program;
struct hb_steer_kept;

struct hb_steer_nat {
    int answers_fd, own_fd; /* maps */
};

/* All that a generation needs. Unused bytes of keys are zero. */
struct hb_steer_nat_set {
    struct hb_steer_answer *answers;
    struct hb_steer_vip *own;
    uint32_t answers_count, own_count;
};

/* Finds the maps of an attached program. 0, or a negative errno with `problem` filled. */
int hb_steer_nat_open(struct hb_steer_nat *nat, const struct hb_xdp_program *program,
                      char *problem);
void hb_steer_nat_close(struct hb_steer_nat *nat);

/* What a left-over program has; NULL when it has nothing of it, or memory is short. */
struct hb_steer_kept *hb_steer_nat_keep(const struct hb_xdp_program *left_over);

/* Puts that into the new program and frees it. NULL is fine. 0 or a negative errno. */
int hb_steer_nat_restore(struct hb_steer_nat *nat, struct hb_steer_kept *kept);
void hb_steer_nat_forget(struct hb_steer_kept *kept);

/* Adds what is missing; removes what is not among these. 0 or a negative errno. */
int hb_steer_nat_add(struct hb_steer_nat *nat, const struct hb_steer_nat_set *set);
int hb_steer_nat_keep_only(struct hb_steer_nat *nat, const struct hb_steer_nat_set *set);

#endif
