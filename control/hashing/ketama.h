/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ketama.h: the points that libketama makes; see ring.h. Inside of the ring, for it and its tests.
 */
#ifndef HB_CONTROL_HASHING_KETAMA_H
#define HB_CONTROL_HASHING_KETAMA_H

#include "hashing/ring.h"

#define HB_KETAMA_HASHES 40                           /* of each member when weights are equal */
#define HB_KETAMA_ROOM   (4 * (HB_KETAMA_HASHES + 1)) /* points for each, should a float round up */

/* MD5 hashes of a member of this weight: floor(40 * members * weight / weights), computed as in the
 * original. `weights` is the sum over members with a weight. */
uint32_t hb_ketama_hashes(uint32_t weight, uint64_t weights, uint32_t members);

/* Adds the points of all members, in the canonical order of `order`. The ring has room for
 * HB_KETAMA_ROOM points for each that has a weight. False when it has not. */
bool hb_ketama_add(struct hb_ring_map *ring, const struct hb_table_request *request,
                   const uint32_t *order);

#endif
