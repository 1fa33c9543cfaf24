/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash_small_ring.h: a ring before and after backends join and leave, and what changes hands.
 *
 * The ring comes from --tokens and --space (worked by hand), or from --backends and --vnodes (at
 * h32("name#i")). --join NAME@TOKEN adds one token, --join NAME the backend with all its virtual
 * nodes; --leave NAME takes all tokens of a backend away. Joins come first.
 */
#ifndef HB_CTL_HASH_SMALL_RING_H
#define HB_CTL_HASH_SMALL_RING_H

#include "hash_input.h"
#include "hashing/ring.h"

/* Positions that change hands; names belong to the rings. */
struct hb_hash_handover {
    struct hb_ring_interval interval; /* `from` is not used: members have other numbers after it */
    uint64_t size;                    /* positions */
    const char *from, *to;
};

struct hb_hash_rings {
    struct hb_ring_map *before;
    struct hb_ring_map *after; /* NULL: nothing was asked to change */
    struct hb_hash_handover *handovers;
    uint32_t handovers_count;
    uint64_t moved; /* positions, all together */
};

/* `preset_backends` and `preset_vnodes` count when the options are not given. The caller frees the
 * rings in any case. */
int hb_hash_rings_load(const struct hb_ctl *ctl, uint32_t preset_backends, uint32_t preset_vnodes,
                       struct hb_hash_rings *rings);
void hb_hash_rings_free(struct hb_hash_rings *rings);

/* Positions that a point has; 0 when another token on the same position hides it. */
uint64_t hb_hash_point_size(const struct hb_ring_map *ring, uint32_t point);

/* [{"interval", "size", "share", "from", "to"}, ...] */
json_t *hb_hash_handovers_json(const struct hb_hash_rings *rings);
void hb_hash_show_handovers(const struct hb_screen *screen, const json_t *document);

#endif
