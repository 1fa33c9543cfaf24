/* SPDX-License-Identifier: BSD-3-Clause */
/* The pipeline itself, compiled once more with a lap taken after each of its steps. */
#include <rte_cycles.h>

#include "bench_stages.h"
#include "pipeline.h"
#include "stages.h"

uint32_t stage_cycles[STAGES_COUNT][STAGE_BURSTS];
static uint64_t lap_start;
static uint32_t burst;

static void lap(unsigned stage)
{
    uint64_t now = rte_rdtsc();

    stage_cycles[stage][burst] = (uint32_t)(now - lap_start);
    lap_start = now;
}

#define hb_pipeline_run         untimed_run
#define hb_stage_parse(batch)   (lap(STAGE_begin), hb_stage_parse(batch), lap(STAGE_parse))
#define hb_stage_service(batch) (hb_stage_service(batch), lap(STAGE_service))
#define hb_stage_flow(batch)    (hb_stage_flow(batch), lap(STAGE_flow))
#define hb_stage_select(batch)  (hb_stage_select(batch), lap(STAGE_select))
#define hb_stage_encap(batch)   (hb_stage_encap(batch), lap(STAGE_encap))
#define hb_stage_output(batch)  (hb_stage_output(batch), lap(STAGE_output))

void untimed_run(struct hb_worker *worker, const struct hb_generation *generation,
                 struct rte_mbuf *const mbufs[], uint16_t count);
#include "pipeline.c"

void timed_pipeline_run(struct hb_worker *worker, const struct hb_generation *generation,
                        struct rte_mbuf *const mbufs[], uint16_t count)
{
    lap_start = rte_rdtsc();
    untimed_run(worker, generation, mbufs, count);
    lap(STAGE_end);
    burst = (burst + 1) % STAGE_BURSTS;
}
