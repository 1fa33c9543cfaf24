/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan_nat.h: what a plan needs for pools that NAT or full NAT reaches: sources, the balancer's own
 * addresses, the way to clients.
 *
 * Pure; one thread.
 */
#ifndef HB_CONTROL_PLAN_NAT_H
#define HB_CONTROL_PLAN_NAT_H

#include "reconcile.h"

/* Whether any pool is NAT or full NAT; without one nothing of this is planned. */
bool hb_model_has_nat(const struct hb_model *model);

/* Fills the plan's sources, which its pools, in the model's order, name, and the way to clients
 * (zero before the call, and where there is none after it). Sources of an earlier call are
 * replaced. -ENOMEM: nothing is filled. */
int hb_plan_nat(struct hb_plan *plan, const struct hb_model *model, struct hb_port_list ports);

#endif
