/* SPDX-License-Identifier: BSD-3-Clause */
/* The pipeline itself, compiled once more with a lap taken after each of its steps; and so for each
 * variant (variant.h). */
#include <rte_cycles.h>

#include "bench_stages.h"
#include "pipeline.h"
#include "stages.h"

#ifdef HB_VARIANT
#define STAGE(name) HB_VARIANT_NAME(name, HB_VARIANT)
#else
#define STAGE(name) name
uint32_t stage_cycles[STAGES_COUNT][STAGE_BURSTS];
#endif
static uint64_t lap_start;
static uint32_t burst;

static void lap(unsigned stage)
{
    uint64_t now = rte_rdtsc();

    stage_cycles[stage][burst] = (uint32_t)(now - lap_start);
    lap_start = now;
}

#undef hb_pipeline_run
#undef hb_stage_parse
#undef hb_stage_service
#undef hb_stage_flow
#undef hb_stage_select
#undef hb_stage_encap
#undef hb_stage_output
#define hb_pipeline_run         untimed_run
#define hb_stage_parse(batch)   (lap(STAGE_begin), STAGE(hb_stage_parse)(batch), lap(STAGE_parse))
#define hb_stage_service(batch) (STAGE(hb_stage_service)(batch), lap(STAGE_service))
#define hb_stage_flow(batch)    (STAGE(hb_stage_flow)(batch), lap(STAGE_flow))
#define hb_stage_select(batch)  (STAGE(hb_stage_select)(batch), lap(STAGE_select))
#define hb_stage_encap(batch)   (STAGE(hb_stage_encap)(batch), lap(STAGE_encap))
#define hb_stage_output(batch)  (STAGE(hb_stage_output)(batch), lap(STAGE_output))

static hb_pipeline untimed_run;
#include "pipeline.c"

void STAGE(timed_pipeline_run)(struct hb_worker *worker, const struct hb_generation *generation,
                               struct rte_mbuf *const mbufs[], uint16_t count)
{
    lap_start = rte_rdtsc();
    untimed_run(worker, generation, mbufs, count);
    lap(STAGE_end);
    burst = (burst + 1) % STAGE_BURSTS;
}
