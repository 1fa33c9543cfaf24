/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.h: a worker, a generation and a stock of packets, for measuring and nothing else.
 *
 * The port is a sink: what is sent to it is gone at no cost, and the packets belong to the bench
 * again. So a run measures the pipeline from the first header read to the last one written, and no
 * driver.
 */
#ifndef HB_BENCH_WORLD_H
#define HB_BENCH_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "generation.h"
#include "worker_state.h"

#define SINK_PORT     0
#define WORLD_PACKETS 512   /* as many as a receive ring holds; bursts take them in turn */
#define WORLD_COLD    32768 /* far more than the core's own caches hold */

struct world_size {
    uint64_t flows_max;
    uint32_t vips;     /* of each family, each with TCP 80 and UDP 443: four services a VIP */
    uint32_t pools;    /* each with a table; VIPs take them in turn */
    uint32_t backends; /* pools take them in turn, too */
    uint32_t slots;    /* of each table */
    uint32_t packets;  /* in the stock: WORLD_PACKETS or WORLD_COLD */
    enum hb_tracking tracking; /* of all services */
    uint32_t bounded_load;     /* in 1/1024; of one pool only */
};

struct world {
    struct hb_worker *worker;
    struct hb_generation *generation;
    struct hb_counters_header *region;
    struct hb_generation_head head;
    struct rte_mbuf *stock[WORLD_COLD];
    uint32_t packets; /* in the stock */
    uint32_t next;    /* of the stock */
};

/* Once a program, after EAL: the pool and the sink. */
bool world_open(void);

/* NULL, with a message on stderr, when memory is short. */
struct world *world_make(const struct world_size *size);
void world_free(struct world *world);

/* The next HB_BURST packets of the stock, each set back to an untouched frame of `length` bytes
 * behind the usual headroom; the caller writes the bytes. `freed`: the last burst on them ended in
 * the pool, so others take their place. */
struct rte_mbuf **world_make_burst(struct world *world, uint16_t length, bool freed);

/* The next HB_BURST packets as they were made: for a stock that was made as a whole before. */
struct rte_mbuf **world_take_burst(struct world *world);

#endif
