/* SPDX-License-Identifier: BSD-3-Clause */
#include "damping.h"

#include <math.h>

static double reuse_of(const struct hb_damping_config *config)
{
    return config->reuse / HB_DAMPING_ONE;
}

/* From here the penalty takes max_hold to decay to `reuse`. */
static double ceiling_of(const struct hb_damping_config *config)
{
    double highest = reuse_of(config) * exp2((double)config->max_hold_ms / config->half_life_ms);
    double suppress = config->suppress / HB_DAMPING_ONE;

    /* Never so low that nothing is ever held: who wants that says so. */
    return highest > suppress ? highest : suppress;
}

double hb_damping_penalty(const struct hb_damping *damping, const struct hb_damping_config *config,
                          uint64_t now_ms)
{
    double age_ms = now_ms > damping->since_ms ? (double)(now_ms - damping->since_ms) : 0;

    if (!config->enabled || damping->penalty <= 0)
        return 0;
    return damping->penalty * exp2(-age_ms / config->half_life_ms);
}

void hb_damping_fall(struct hb_damping *damping, const struct hb_damping_config *config,
                     uint64_t now_ms)
{
    double penalty = hb_damping_penalty(damping, config, now_ms) + 1;

    if (!config->enabled)
        return;
    damping->penalty = fmin(penalty, ceiling_of(config));
    damping->since_ms = now_ms;
    if (damping->penalty >= config->suppress / HB_DAMPING_ONE)
        damping->held = true;
}

bool hb_damping_holds(struct hb_damping *damping, const struct hb_damping_config *config,
                      uint64_t now_ms)
{
    if (damping->held && hb_damping_penalty(damping, config, now_ms) < reuse_of(config))
        damping->held = false;
    return damping->held;
}

uint64_t hb_damping_left_ms(const struct hb_damping *damping,
                            const struct hb_damping_config *config, uint64_t now_ms)
{
    double penalty = hb_damping_penalty(damping, config, now_ms);

    if (!damping->held || penalty <= reuse_of(config))
        return 0;
    return (uint64_t)(log2(penalty / reuse_of(config)) * config->half_life_ms);
}
