/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool_policy.h"

/* What the rules count. */
struct count {
    uint32_t usable, wanted, undecided, unreachable; /* own members */
    uint32_t leaving, backups;                       /* that work */
    uint32_t minimum;
};

bool hb_member_is_usable(const struct hb_member_view *member)
{
    return member->wanted && member->up && member->reachable;
}

static struct count count_members(const struct hb_failure_config *failure,
                                  const struct hb_member_view *members, uint32_t count)
{
    struct count sum = {.minimum = failure->minimum > 0 ? failure->minimum : 1};

    for (uint32_t m = 0; m < count; m++) {
        const struct hb_member_view *member = &members[m];
        bool usable = hb_member_is_usable(member);

        if (member->leaving) {
            sum.leaving += usable;
        } else if (member->backup) {
            sum.backups += usable;
        } else if (member->wanted) {
            sum.wanted++;
            sum.usable += usable;
            sum.undecided += !member->checked;
            sum.unreachable += member->up && !member->reachable;
        }
    }
    return sum;
}

static bool panics(const struct hb_failure_config *failure, const struct count *sum)
{
    if (sum->usable < sum->minimum && failure->below == HB_BELOW_ALL)
        return sum->wanted > 0;
    return sum->wanted > 0 &&
           (uint64_t)sum->usable * HB_PANIC_ONE < (uint64_t)failure->panic * sum->wanted;
}

enum hb_pool_mode hb_pool_policy(const struct hb_failure_config *failure, enum hb_pool_mode mode,
                                 const struct hb_member_view *members, uint32_t count)
{
    struct count sum = count_members(failure, members, count);
    bool decided = sum.undecided == 0;

    if (sum.usable == 0 && sum.leaving > 0 && (!decided || sum.unreachable > 0))
        return HB_POOL_MODE_LEAVING;
    if (sum.usable < sum.minimum && failure->below == HB_BELOW_BACKUP && sum.backups > 0 &&
        (decided || mode == HB_POOL_MODE_BACKUP))
        return HB_POOL_MODE_BACKUP;
    if (panics(failure, &sum) && (decided || mode == HB_POOL_MODE_PANIC))
        return HB_POOL_MODE_PANIC;
    if (sum.usable == 0 || (sum.usable < sum.minimum && failure->below == HB_BELOW_CLOSE))
        return HB_POOL_MODE_CLOSED;
    return HB_POOL_MODE_NORMAL;
}

bool hb_pool_policy_stands(enum hb_pool_mode mode, const struct hb_member_view *member)
{
    switch (mode) {
    case HB_POOL_MODE_NORMAL:
        return !member->backup && !member->leaving && hb_member_is_usable(member);
    case HB_POOL_MODE_LEAVING:
        return member->leaving && hb_member_is_usable(member);
    case HB_POOL_MODE_BACKUP:
        return member->backup && !member->leaving && hb_member_is_usable(member);
    case HB_POOL_MODE_PANIC:
        return !member->backup && !member->leaving && member->wanted && member->checked &&
               member->reachable;
    case HB_POOL_MODE_CLOSED:
        return !member->backup && !member->leaving && member->up && member->reachable &&
               !member->disabled;
    }
    return false;
}

struct hb_pool_strength hb_pool_strength(const struct hb_failure_config *failure,
                                         const struct hb_member_view *members, uint32_t count)
{
    struct count sum = count_members(failure, members, count);

    return (struct hb_pool_strength){sum.usable, sum.wanted, sum.minimum};
}

const char *hb_pool_mode_name(enum hb_pool_mode mode)
{
    static const char *const names[HB_POOL_MODES] = {
        [HB_POOL_MODE_NORMAL] = "normal", [HB_POOL_MODE_LEAVING] = "leaving",
        [HB_POOL_MODE_BACKUP] = "backup", [HB_POOL_MODE_PANIC] = "panic",
        [HB_POOL_MODE_CLOSED] = "closed",
    };

    return names[mode];
}
