/* SPDX-License-Identifier: BSD-3-Clause */
/* pipeline.h: one burst, from received to sent, punted or dropped. The worker's loop calls the
 * variant of it that suits the processor (variant.h). */
#ifndef HB_DATAPLANE_PIPELINE_H
#define HB_DATAPLANE_PIPELINE_H

#include "batch.h"
#include "variant.h"

struct hb_worker;

/* Takes `count` packets (1 to HB_BURST) to their end; owns them from here on. All are decided by
 * `generation`, NULL when control has not published any yet. Worker's lcore. */
void hb_pipeline_run(struct hb_worker *worker, const struct hb_generation *generation,
                     struct rte_mbuf *const mbufs[], uint16_t count);

#endif
