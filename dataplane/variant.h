/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * variant.h: the packet path, compiled for more than one instruction set.
 *
 * The stages that every packet passes, and the pipeline that calls them, are compiled once for the
 * oldest processor that DPDK runs on ("plain"), and once more for each set of instructions that
 * makes them faster. In the latter their exported names get an ending, by the list below, so that
 * a variant calls its own stages, directly. A worker takes the best one that its processor can run
 * when it is made; after that nothing asks any more. All variants do the same: tests/packets runs
 * its rows through each one that the machine has.
 *
 * Side exits, the careful parser and stages for rare packets are compiled once.
 */
#ifndef HB_DATAPLANE_VARIANT_H
#define HB_DATAPLANE_VARIANT_H

#ifdef HB_VARIANT
#define HB_VARIANT_PASTE(name, variant) name##_##variant
#define HB_VARIANT_NAME(name, variant)  HB_VARIANT_PASTE(name, variant)
#define hb_pipeline_run                 HB_VARIANT_NAME(hb_pipeline_run, HB_VARIANT)
#define hb_stage_parse                  HB_VARIANT_NAME(hb_stage_parse, HB_VARIANT)
#define hb_stage_service                HB_VARIANT_NAME(hb_stage_service, HB_VARIANT)
#define hb_stage_flow                   HB_VARIANT_NAME(hb_stage_flow, HB_VARIANT)
#define hb_flow_follow                  HB_VARIANT_NAME(hb_flow_follow, HB_VARIANT)
#define hb_flow_next_state              HB_VARIANT_NAME(hb_flow_next_state, HB_VARIANT)
#define hb_stage_select                 HB_VARIANT_NAME(hb_stage_select, HB_VARIANT)
#define hb_stage_encap                  HB_VARIANT_NAME(hb_stage_encap, HB_VARIANT)
#define hb_stage_output                 HB_VARIANT_NAME(hb_stage_output, HB_VARIANT)
#endif

#include "batch.h"

struct hb_worker;

/* hb_pipeline_run, of one variant. */
typedef void hb_pipeline(struct hb_worker *worker, const struct hb_generation *generation,
                         struct rte_mbuf *const mbufs[], uint16_t count);

struct hb_variant {
    const char *name; /* "plain", or the instruction set that it needs */
    hb_pipeline *run;
    void (*parse)(struct hb_batch *batch); /* its hb_stage_parse, for tests */
};

/* Those that this processor can run, the best one last; `*count` of them, at least one. */
const struct hb_variant *hb_variants(uint32_t *count);

#endif
