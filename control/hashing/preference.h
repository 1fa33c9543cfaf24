/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * preference.h: which backends a key prefers, in order.
 *
 * The first is the key's owner, then come those that would take over, each backend once: the next
 * tokens round the ring, the next best scores of rendezvous, the next slots of a Maglev table, the
 * order of replacement of jump, the next rests of modulo. With zones, as many distinct zones as
 * there are come first (the best backend of each, in the key's order), then the rest: copies on the
 * first two don't share a fate. Backends that name no zone count as one zone together, for nothing
 * says that they stand apart.
 *
 * Pure; any thread.
 */
#ifndef HB_CONTROL_HASHING_PREFERENCE_H
#define HB_CONTROL_HASHING_PREFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "hashing/hash_method.h"

/* Writes up to `want` members (indexes; room for the request's count) for a key and returns how
 * many there are: fewer when fewer have a weight; 0 when memory is short. `zones` has the zone of
 * each member ("" or NULL: none), or is NULL: zones don't matter. */
uint32_t hb_preference(const struct hb_hash_method *method, const void *state,
                       const char *const *zones, const char *key, size_t size, uint32_t want,
                       uint32_t *members);

/* The part after the order: moves the first member of each zone to the front, keeping the order
 * otherwise. Returns the number of zones, or 0 when memory is short and nothing was moved. */
uint32_t hb_preference_spread(const char *const *zones, uint32_t *members, uint32_t count);

#endif
