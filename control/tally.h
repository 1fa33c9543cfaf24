/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tally.h: what an object has counted, although ids are reused and the dataplane restarts.
 *
 * The dataplane counts by id and never resets. An object's own count is therefore: what its id had
 * counted since the object got the id, plus what it counted in earlier lives of the dataplane. The
 * last values before a dataplane died are those that were read last; control reads once a second.
 * Pure.
 */
#ifndef HB_CONTROL_TALLY_H
#define HB_CONTROL_TALLY_H

#include <stdint.h>

struct hb_counts {
    uint64_t packets;
    uint64_t bytes;
    uint64_t new_flows;
    uint64_t drops; /* services only, as what follows */
    uint64_t denied;
    uint64_t limited;
    uint64_t unreachable; /* backends only */
};

struct hb_tally {
    uint64_t instance;     /* life of the dataplane that `base` and `last` belong to; 0: none yet */
    struct hb_counts base; /* what the id had counted when the object got it */
    struct hb_counts last; /* what the id had counted when it was read last */
    struct hb_counts carried; /* from earlier lives */
};

/* The object gets its id now; `raw` is what the id counted before, in life `instance` (0: not
 * known). */
void hb_tally_start(struct hb_tally *tally, uint64_t instance, struct hb_counts raw);

/* The object's count, given what its id has counted in life `instance`. */
struct hb_counts hb_tally_read(struct hb_tally *tally, uint64_t instance, struct hb_counts raw);

/* The count as of the last reading, while no dataplane is connected. */
struct hb_counts hb_tally_last(const struct hb_tally *tally);

#endif
