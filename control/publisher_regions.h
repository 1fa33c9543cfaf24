/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * publisher_regions.h: the memory that control and the dataplane pass to each other.
 *
 * Three memfds: a generation on its way out, the generation that the dataplane hands back, and its
 * counters. What comes in is mapped read-only and only after it was shown that no access through
 * the contract's own offsets can leave the mapping, and that nobody can shrink the file under it (a
 * seal), which would end control with SIGBUS.
 */
#ifndef HB_CONTROL_PUBLISHER_REGIONS_H
#define HB_CONTROL_PUBLISHER_REGIONS_H

#include <stddef.h>
#include <stdint.h>

struct hb_region {
    const void *data; /* NULL: not mapped */
    size_t size;
};

/* A sealed memfd that holds a copy of the blob; the caller closes it. Negative errno when it fails.
 */
int hb_region_seal(const void *blob, size_t size);

/* Map what came with a hello, read-only; the descriptor stays the caller's. Return 0, or a negative
 * errno with the reason in `why`, for people. `instance` and `number` are what the hello says. */
int hb_region_map_counters(int fd, uint64_t instance, struct hb_region *region, char *why,
                           size_t why_size);
int hb_region_map_generation(int fd, uint64_t number, struct hb_region *region, char *why,
                             size_t why_size);

void hb_region_unmap(struct hb_region *region);

#endif
