/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics.h: the text format that Prometheus reads (version 0.0.4), line by line.
 *
 * Values are integers without a sign and are printed exactly, all 64 bits; Prometheus stores them
 * as doubles. Label values are escaped, so any text may be one. Pure.
 */
#ifndef HB_CONTROL_METRICS_H
#define HB_CONTROL_METRICS_H

#include <stdint.h>
#include <stdio.h>

enum hb_metric_type { HB_METRIC_COUNTER, HB_METRIC_GAUGE };

struct hb_label {
    const char *name; /* NULL ends a list */
    const char *value;
};

/* Begins a family: "# HELP" and "# TYPE". All its samples follow, and nothing else until then. The
 * name of a counter ends in "_total". */
void hb_metric_begin(FILE *to, const char *name, enum hb_metric_type type, const char *help);

/* One sample; `labels` may be NULL. */
void hb_metric_add(FILE *to, const char *name, const struct hb_label *labels, uint64_t value);

/* A family of one sample without labels. */
void hb_metric_single(FILE *to, const char *name, enum hb_metric_type type, const char *help,
                      uint64_t value);

#endif
