/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool_policy.h: which members of a pool stand in its table, also when too few of them work.
 *
 * Members are own ones, or backups: those of the pool's backup pool, which belong to this pool as
 * well but serve only when it needs them. An own member is
 *
 *     wanted     no operator speaks against it: not drained, weight above 0
 *     usable     wanted, up, and it can be forwarded to
 *     undecided  wanted, and its first check has not answered yet
 *
 * The rules, first one first; `minimum` is at least 1:
 *
 *     mode      when                                          who stands in the table
 *     leaving   none is usable, and some own member or its     those that a reload has removed and
 *               next hop is undecided                          that still work (reconcile.h)
 *     backup    fewer than `minimum` are usable, below: backup the backups that are up
 *     panic     the same, below: all; or the usable part of    every wanted member that can be
 *               the wanted ones is smaller than `panic`        forwarded to and was ever checked,
 *                                                              whatever its check says
 *     closed    fewer than `minimum` are usable, below: close; nobody gets a new flow
 *               or none is
 *     normal    else                                           the usable ones
 *
 * Backup and panic are measures against a loss: they are not entered while any own member is
 * undecided, so that neither a start nor a reload sets them off; once entered they stay as long as
 * their condition holds. A backup without usable members is no help: the other rules follow.
 *
 * A closed pool has a table all the same as long as one of its members is up and only an operator,
 * or `below: close`, keeps new flows from it: then established flows without an entry in a flow
 * cache (tracking: changed) find their way by it, and the dataplane drops the new ones.
 *
 * Pure.
 */
#ifndef HB_CONTROL_POOL_POLICY_H
#define HB_CONTROL_POOL_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"

enum hb_pool_mode {
    HB_POOL_MODE_NORMAL = 0,
    HB_POOL_MODE_LEAVING,
    HB_POOL_MODE_BACKUP,
    HB_POOL_MODE_PANIC,
    HB_POOL_MODE_CLOSED,
};
#define HB_POOL_MODES 5

/* One member as the rules see it. */
struct hb_member_view {
    bool backup;
    bool leaving;
    bool wanted;
    bool up;
    bool checked;   /* its health is not unknown */
    bool disabled;  /* the deadline of its drain has passed */
    bool reachable; /* it has a rewrite */
};

bool hb_member_is_usable(const struct hb_member_view *member);

/* `mode` is the one until now. */
enum hb_pool_mode hb_pool_policy(const struct hb_failure_config *failure, enum hb_pool_mode mode,
                                 const struct hb_member_view *members, uint32_t count);

/* Whether a member stands in the table of a pool in this mode. */
bool hb_pool_policy_stands(enum hb_pool_mode mode, const struct hb_member_view *member);

/* How many own members are usable, and how many of them there could be. */
struct hb_pool_strength {
    uint32_t usable;
    uint32_t wanted;
    uint32_t minimum;
};
struct hb_pool_strength hb_pool_strength(const struct hb_failure_config *failure,
                                         const struct hb_member_view *members, uint32_t count);

const char *hb_pool_mode_name(enum hb_pool_mode mode);

#endif
