/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * generation_adopt.h: from a published memfd to what the workers forward by.
 *
 *     check -> take the tables -> build aside -> VIPs into the steering programs
 *       -> one pointer store -> wait for every worker -> free the old -> VIPs that are gone out of
 * them
 *
 * A packet sees exactly one generation, and no packet waits for a swap. Whatever fails leaves the
 * old generation serving. Main lcore only.
 */
#ifndef HB_DATAPLANE_GENERATION_ADOPT_H
#define HB_DATAPLANE_GENERATION_ADOPT_H

#include "generation_build.h"
#include "generation_check.h"
#include "port.h"

/* The adopted generation and those that wait to be freed. */
struct hb_adopted;

/* `head`, `memory` and `ports` must outlive it. NULL when memory is short. */
struct hb_adopted *hb_adopted_create(struct hb_generation_head *head,
                                     const struct hb_node_memory *memory, struct hb_ports *ports);

/* Frees everything; no worker runs any more. */
void hb_adopted_destroy(struct hb_adopted *adopted);

/* Adopts the generation in the memfd `fd` (-1: none came), which it owns from here on. Fills all of
 * *reply but its header. A refusal is logged, its repetitions are not. */
void hb_adopt(struct hb_adopted *adopted, int fd, struct hb_publish_reply *reply);

/* Tells of adoptions that came too fast to be logged one by one; for housekeeping. */
void hb_adopted_log(struct hb_adopted *adopted);

/* Number and content of the adopted generation; 0 and zeros when there is none. */
uint64_t hb_adopted_number(const struct hb_adopted *adopted);
const uint8_t *hb_adopted_content(const struct hb_adopted *adopted);

/* Its memfd, or -1. Stays the adopter's. */
int hb_adopted_fd(const struct hb_adopted *adopted);

/* Answers SETTLE: all of *reply but its header. */
void hb_adopted_settle(const struct hb_adopted *adopted, const struct hb_settle *request,
                       struct hb_settle_reply *reply);

/* As one of the workers sees it; NULL when there is none. */
const struct hb_generation *hb_adopted_generation(const struct hb_adopted *adopted);

#endif
