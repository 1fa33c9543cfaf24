/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool_table.h: the lookup table of one pool, rebuilt only when one of its inputs changed.
 *
 * The inputs are the usable members (address, weight, id), the table's size, the algorithm and the
 * seed. Everything a table depends on is kept beside it and compared, so no list of "things that
 * need a rebuild" can be incomplete. Pure.
 */
#ifndef HB_CONTROL_POOL_TABLE_H
#define HB_CONTROL_POOL_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "model.h"

/* An input with no member yet and room for all of the pool's backends; NULL: no memory. */
struct hb_table_input *hb_table_input_new(const struct hb_model_pool *pool, uint64_t seed);
void hb_table_input_add(struct hb_table_input *input, const struct hb_model_backend *backend);
uint32_t hb_table_input_count(const struct hb_table_input *input);

/* Takes `input` over. If it differs from what the pool's table was built from, builds the new
 * table, fills in digests, each backend's slots and pool->change, and sets pool->changed. -ENOMEM:
 * the old table stays. A table that cannot be built for another reason leaves the pool without one;
 * `problem` says so. */
int hb_pool_table_update(struct hb_model_pool *pool, struct hb_table_input *input, char *problem,
                         size_t size);

/* The least number of slots that any method must move between two tables with these shares: what
 * the shrinking owners have too many. By id; `from` and `to` have `slots` entries. */
uint32_t hb_table_ideal(const uint16_t *from, const uint16_t *to, uint32_t slots);

#endif
