/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool_table.h: the lookup table of one pool, rebuilt only when one of its inputs changed.
 *
 * The inputs are the usable members (address, weight, id, bucket), the table's size, the algorithm
 * with its options and the seed; and how far each has come in its slow start (ramp.h). Everything a
 * table depends on is kept beside it and compared, so no list of "things that need a rebuild" can
 * be incomplete.
 *
 * Jump. The number of its buckets counts, and a last one that is merely missing would make it
 * smaller. So for jump the members that take no new flows now (down, draining, weight 0, no next
 * hop) are inputs too, with weight 0: they hold their buckets. What falls on such a bucket goes to
 * the others as jump.h describes under jump_replacement, whether the pool has that option or not: a
 * failure or a drain is not a removal, the backend will be back, and until then only its own slots
 * move; the other choice would be to drop a part of the new flows. What the option decides is which
 * files are taken: hb_model_check().
 *
 * Pure.
 */
#ifndef HB_CONTROL_POOL_TABLE_H
#define HB_CONTROL_POOL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model.h"

/* What a table is like, whoever stands in it. */
struct hb_table_kind {
    enum hb_algorithm algorithm;
    uint32_t slots;
    struct hb_table_options options;
    uint64_t seed;
};

struct hb_table_entry {
    struct hb_address address;
    uint32_t weight;
    uint32_t id; /* 1 to HB_BACKENDS_MAX */
    uint32_t bucket;
    uint32_t ramp; /* progress of its slow start, 1 to HB_RAMP_FULL - 1; 0: it is in none */
};

/* An input with no member yet and room for so many; NULL: no memory. Freed with
 * hb_table_input_free() unless it was taken over. */
struct hb_table_input *hb_table_input_new(const struct hb_table_kind *kind, uint32_t room);
void hb_table_input_free(struct hb_table_input *input);

/* The next member; those that are usable first, each group in the order of addresses. One that is
 * not usable is passed over unless its bucket must be held. */
void hb_table_input_add(struct hb_table_input *input, const struct hb_table_entry *entry,
                        bool usable);
uint32_t hb_table_input_count(const struct hb_table_input *input); /* of usable members */
bool hb_table_input_same(const struct hb_table_input *a, const struct hb_table_input *b);

struct hb_built_table {
    uint16_t *owner; /* NULL: no usable member, or it cannot be built; the caller's */
    uint16_t *final; /* the same after all slow starts; NULL when there are none */
    uint8_t owners[HB_DIGEST_SIZE];
};
/* 0 or -ENOMEM. When it cannot be built for another reason, `problem` says why; it is left alone
 * otherwise. */
int hb_table_input_build(const struct hb_table_input *input, struct hb_built_table *table,
                         char *problem, size_t size);

void hb_built_table_free(struct hb_built_table *table);

/* Makes the history forget backends that are no members any more, if any have left. -ENOMEM. */
int hb_pool_table_forget(struct hb_model_pool *pool);

/* Takes the marks of settled slots away: as hb_history_settle(). */
uint32_t hb_pool_table_settle(struct hb_model_pool *pool, const uint64_t *bits, uint32_t first,
                              uint32_t count);

/* Takes `input` over. If it differs from what the pool's table was built from, builds the new
 * table, fills in digests, each backend's slots (now and to come) and pool->change, and sets
 * pool->changed. -ENOMEM: the old table stays. A table that cannot be built for another reason
 * leaves the pool without one; pool->problem says so. */
int hb_pool_table_update(struct hb_model_pool *pool, struct hb_table_input *input);

/* What is moved by a change of table; NULL is no table. Tables of different sizes, or one and none,
 * have nothing in common: every slot moves. */
struct hb_pool_change hb_pool_change_of(const uint16_t *from, uint32_t from_slots,
                                        const uint16_t *to, uint32_t to_slots);

/* The least number of slots that any method must move between two tables with these shares: what
 * the shrinking owners have too many. By id; `from` and `to` have `slots` entries. */
uint32_t hb_table_ideal(const uint16_t *from, const uint16_t *to, uint32_t slots);

#endif
