/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_stages.h: the pipeline, with a clock between its stages. */
#ifndef HB_BENCH_STAGES_H
#define HB_BENCH_STAGES_H

#include "variant.h"

/* The laps of hb_pipeline_run, in its order. */
#define STAGES(X)        X(begin) X(parse) X(service) X(flow) X(select) X(encap) X(output) X(end)
#define STAGE_ENUM(name) STAGE_##name,
enum { STAGES(STAGE_ENUM) STAGES_COUNT };

/* hb_pipeline_run; notes the TSC cycles of each stage, burst by burst. */
#define STAGE_BURSTS 4000
extern uint32_t stage_cycles[STAGES_COUNT][STAGE_BURSTS];
hb_pipeline timed_pipeline_run;
hb_pipeline timed_pipeline_run_avx2, timed_pipeline_run_avx512;

#endif
