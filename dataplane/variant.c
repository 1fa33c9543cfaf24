/* SPDX-License-Identifier: BSD-3-Clause */
/* See variant.h. */
#include "variant.h"

#include "pipeline.h"
#include "stages.h"

#ifdef HB_HAVE_AVX2
hb_pipeline hb_pipeline_run_avx2;
void hb_stage_parse_avx2(struct hb_batch *batch);
#endif
#ifdef HB_HAVE_AVX512
hb_pipeline hb_pipeline_run_avx512;
void hb_stage_parse_avx512(struct hb_batch *batch);
#endif

static const struct hb_variant variants[] = {
    {"plain", hb_pipeline_run, hb_stage_parse},
#ifdef HB_HAVE_AVX2
    {"avx2", hb_pipeline_run_avx2, hb_stage_parse_avx2},
#endif
#ifdef HB_HAVE_AVX512
    {"avx512", hb_pipeline_run_avx512, hb_stage_parse_avx512},
#endif
};

/* The instruction sets that meson.build lets the compiler use for it. */
static bool has_avx2(void)
{
#ifdef HB_HAVE_AVX2
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2");
#else
    return false;
#endif
}

/* x86-64-v4. */
static bool has_avx512(void)
{
#ifdef HB_HAVE_AVX512
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

const struct hb_variant *hb_variants(uint32_t *count)
{
    *count = !has_avx2() ? 1 : !has_avx512() ? 2 : 3;
    return variants;
}
