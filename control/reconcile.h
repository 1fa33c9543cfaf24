/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reconcile.h: from the model to what a generation must contain.
 *
 * Nothing is remembered from one call to the next but the tables, which are rebuilt only for pools
 * whose inputs changed (members, weights, ids, buckets, size, algorithm with its options, seed). So
 * it may be called after any change, and twice is as good as once; what it yields depends only on
 * what the model says now. With thousands of backends looking at all of them costs more than
 * everything else that follows a verdict, so hb_reconcile_touched() looks only at pools that
 * whoever changed something has marked; its plan is the same.
 *
 * Which members stand in a pool's table is for its policy to say (pool_policy.h). Members that a
 * reload has removed are kept while none that is configured is usable and one of those has not
 * proved anything yet (not probed, or its next hop is still being resolved): so a pool whose
 * members are all replaced by one reload has no gap (BL-79). As soon as a configured member is
 * usable, or all of them have failed, the leaving ones are dropped for good. With jump, members
 * that are not in the table hold their buckets without getting slots (pool_table.h).
 *
 * A backend's record says ACTIVE, DRAINING or DOWN; one that never had a good probe, or that cannot
 * be forwarded to, is DOWN. Who stands in the table is not DOWN, whatever its check says. A backend
 * keeps its last rewrite when its next hop is lost later: whether it still works is for its health
 * check to say. A rewrite of another forwarding mode than the pool's is not kept.
 *
 * Pure. One thread.
 */
#ifndef HB_CONTROL_RECONCILE_H
#define HB_CONTROL_RECONCILE_H

#include <stdint.h>

#include "halbach/generation.h"
#include "model.h"
#include "rewrite.h"

/* One table of a plan; the columns belong to the model's pool and are valid until the next
 * reconcile.
 */
struct hb_plan_table {
    uint8_t digest[HB_DIGEST_SIZE];
    struct hb_table_columns column;
    uint32_t slots;
};

/* All of a generation but its number and its layout. Equal plans are equal in every byte. */
struct hb_plan {
    struct hb_hash_key hash_key;
    struct hb_service_record *services; /* sorted by id */
    uint32_t services_count;
    struct hb_pool_record *pools; /* sorted by name */
    uint32_t pools_count;
    struct hb_backend_record *backends; /* sorted by id */
    uint32_t backends_count;
    struct hb_plan_table *tables; /* no two alike, in the order of the first pool that has each */
    uint32_t tables_count;
    struct hb_prefix_record *prefixes; /* sorted by list, then address */
    uint32_t prefixes_count;
    struct hb_quic_record *quic;
    uint32_t quic_count;
    struct hb_source_record *sources;
    uint32_t sources_count;
    struct hb_settings settings;
    uint8_t content[HB_DIGEST_SIZE]; /* of all of the above */
};

/* Brings rewrites, memberships and tables of the model up to date and fills *plan. -ENOMEM: *plan
 * is empty; tables built so far are kept and the call can be repeated. `problem` (of `size` bytes)
 * is "" or names a pool whose table could not be built. */
int hb_reconcile(struct hb_model *model, struct hb_port_list ports, struct hb_plan *plan,
                 char *problem, size_t size);

/* The same, for the model's own last plan or an empty one, by way of what has been touched since
 * (hb_model_touch(), hb_pool_touch()). `ports` are as they were, or the model is touched. -ENOMEM:
 * *plan is empty, and what was touched still is. */
int hb_reconcile_touched(struct hb_model *model, struct hb_port_list ports, struct hb_plan *plan,
                         char *problem, size_t size);

void hb_plan_clear(struct hb_plan *plan);

#endif
