/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_plan.h: generations of any size for measuring, laid out by control's own builder.
 *
 * VIP number v is 192.0.2.10 and 2001:db8:0:a::10 with v mixed into two bytes (bench_plan_vip4),
 * and has four services: TCP 80 and UDP 443 of each family. Pools take turns over the VIPs; each
 * has its own backends and its own table. Every rewrite is IPIP over IPv4 by one port.
 *
 * One thread. Not for use outside of benchmarks: running out of memory ends the program.
 */
#ifndef HB_BENCH_PLAN_H
#define HB_BENCH_PLAN_H

#include <stdint.h>

struct bench_plan_size {
    uint32_t vips;     /* 1 to 1,024: HB_SERVICES_MAX / 4 */
    uint32_t pools;    /* 1 to vips */
    uint32_t backends; /* of each pool */
    uint32_t slots;    /* M of each pool's table */
    uint16_t port;     /* the dataplane's port that rewrites name */
};

struct bench_plan;

/* The IPv4 address of a VIP as a number in host byte order. */
static inline uint32_t bench_plan_vip4(uint32_t vip)
{
    return 0xc000020a ^ (vip >> 8) << 16 ^ (vip & 0xff) << 8;
}

/* NULL, with a message on stderr, when the size is out of range. */
struct bench_plan *bench_plan_make(const struct bench_plan_size *size);
void bench_plan_free(struct bench_plan *plan);

/* Changes the table of one pool in about one slot of a hundred, as when a backend's weight changes.
 */
void bench_plan_change(struct bench_plan *plan, uint32_t pool);

/* The next generation as a sealed memfd, which the caller closes. Tables that the one before had
 * are only named. *number is its number, *size its bytes. */
int bench_plan_memfd(struct bench_plan *plan, uint64_t *number, uint64_t *size);

#endif
