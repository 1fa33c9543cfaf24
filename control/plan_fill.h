/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan_fill.h: the records of a plan, from a model whose rewrites and tables are up to date.
 *
 * A plan is made anew after a configuration. After anything else it is patched: records of
 * backends are sorted by id and those of untouched pools stay as they are, so a verdict costs the
 * records of one pool, not of ten thousand backends. Tables and pools, of which there are few, are
 * listed again each time. A patched plan equals one that is made anew in every byte.
 *
 * Pure; one thread.
 */
#ifndef HB_CONTROL_PLAN_FILL_H
#define HB_CONTROL_PLAN_FILL_H

#include "reconcile.h"

/* Fills an empty plan. -ENOMEM: it is empty again. */
int hb_plan_make(struct hb_plan *plan, const struct hb_model *model, struct hb_port_list ports);

/* Brings up to date what hb_plan_make() made of this model, which has had the same services, pools
 * and backends since: the backends of pools that are due (hb_pool_is_due()), and all else that is
 * not a service's. -ENOMEM: the plan is empty. */
int hb_plan_patch(struct hb_plan *plan, const struct hb_model *model, struct hb_port_list ports);

#endif
