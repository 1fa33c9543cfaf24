/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counters.h: the dataplane's side of the counters region (halbach/counters.h).
 *
 * Made once at start. The workers write through the mapping; everybody else who gets the file
 * descriptor can only map it for reading, because it is sealed against later writable mappings.
 */
#ifndef HB_DATAPLANE_COUNTERS_H
#define HB_DATAPLANE_COUNTERS_H

#include <stdint.h>

#include "halbach/counters.h"

struct hb_counters {
    int fd; /* the memfd, to be passed to control */
    struct hb_counters_header *region;
};

/* Makes the region for `workers` workers, all zero. `instance` is the one of the hello. Returns 0
 * or -errno; then nothing is left behind. */
int hb_counters_create(struct hb_counters *counters, uint32_t workers, uint64_t instance);

/* Unmaps and closes. Control keeps its own mapping. */
void hb_counters_destroy(struct hb_counters *counters);

/* Sums of all workers. Any thread. */
struct hb_worker_counters hb_counters_sum(const struct hb_counters_header *region);

#endif
