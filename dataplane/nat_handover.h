/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nat_handover.h: packets that one worker gives to another.
 *
 * For each pair of workers there is one ring, which one of them fills and the other empties: no
 * packet costs more than two plain stores and a release. Made by the main lcore before the workers
 * begin.
 */
#ifndef HB_DATAPLANE_NAT_HANDOVER_H
#define HB_DATAPLANE_NAT_HANDOVER_H

#include <stdbool.h>
#include <stdint.h>

struct hb_generation;
struct hb_handover;
struct hb_worker;
struct rte_mbuf;

/* NULL when memory is short, or for one worker, who needs none (*needed tells which). */
struct hb_handover *hb_handover_create(uint32_t workers, bool *needed);

/* Frees it with the packets that are in it. NULL is allowed. No worker runs. */
void hb_handover_destroy(struct hb_handover *handover);

/* Gives a packet away. False: there is no such worker or no room, and it is still the caller's. */
bool hb_handover_give(struct hb_worker *worker, uint32_t to, struct rte_mbuf *mbuf);

/* Takes what others gave and runs it through the pipeline. Returns whether there was anything. */
bool hb_handover_take(struct hb_worker *worker, const struct hb_generation *generation);

#endif
