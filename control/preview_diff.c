/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a configuration adds, removes and changes, counted as hb_model_apply() counts it, and
 * whether it differs at all.
 */
#include <string.h>

#include "model_internal.h"
#include "preview.h"

/* The service of now that has the same VIP, protocol and ports. */
static const struct hb_model_service *find_service(const struct hb_model *model,
                                                   const struct hb_service_config *config)
{
    char key[HB_ID_KEY_SIZE];

    hb_service_key(key, &config->vip, config->prefix_length, config->protocol, config->port,
                   config->port_last);
    return hb_model_service_by_id(model, hb_ids_find(model->service_ids, key));
}

static void count_services(struct hb_preview *preview)
{
    const struct hb_config *config = preview->config;
    const struct hb_model *model = preview->model;
    struct hb_model_diff *diff = &preview->diff;
    uint32_t kept = 0;

    for (uint32_t s = 0; s < config->services_count; s++) {
        const struct hb_service_config *new = &config->services[s];
        const struct hb_model_service *old = find_service(model, new);

        if (old == NULL)
            continue;
        kept++;
        diff->services_changed +=
            strcmp(old->name, new->name) != 0 || old->tracking != new->tracking ||
            old->mss_max != new->mss_max || !hb_service_rules_same(&old->rules, &new->rules) ||
            strcmp(model->pools[old->pool].name, config->pools[new->pool].name) != 0;
    }
    diff->services_added = config->services_count - kept;
    diff->services_removed = model->services_count - kept;
}

static void count_backend(const struct hb_preview_backend *backend, struct hb_model_diff *diff)
{
    const struct hb_model_backend *before = backend->before;
    const struct hb_backend_config *after = backend->after;

    if (after != NULL && after->backup && (before == NULL || before->backup))
        return; /* its own pool counts it */
    if (after != NULL && (before == NULL || before->leaving))
        diff->backends_added++;
    else if (after == NULL)
        diff->backends_removed += !before->leaving && !before->backup;
    else if (hb_backend_differs(before, after))
        diff->backends_changed++;
}

static bool same_damping(const struct hb_damping_config *a, const struct hb_damping_config *b)
{
    return a->enabled == b->enabled && a->half_life_ms == b->half_life_ms &&
           a->suppress == b->suppress && a->reuse == b->reuse && a->max_hold_ms == b->max_hold_ms;
}

static bool same_health(const struct hb_health_config *a, const struct hb_health_config *b)
{
    return hb_health_alike(a, b) && a->rise == b->rise && a->fall == b->fall &&
           same_damping(&a->damping, &b->damping);
}

/* Of a pool that stays. */
static bool same_settings(const struct hb_config *config, const struct hb_preview_pool *pool)
{
    const struct hb_model_pool *before = pool->before;
    const struct hb_pool_config *after = pool->after;
    struct hb_health_config health;

    if (before == NULL || after == NULL)
        return true;
    health = hb_model_health(config, (uint32_t)(after - config->pools));
    return before->algorithm == after->algorithm && before->table_size == after->table_size &&
           before->forwarding == after->forwarding &&
           hb_forwarding_equal(&before->encap, &after->encap) &&
           memcmp(&before->nat, &after->nat, sizeof(before->nat)) == 0 &&
           before->bounded_load == after->bounded_load &&
           before->slow_start_ms == after->slow_start_ms &&
           before->failure.minimum == after->failure.minimum &&
           before->failure.below == after->failure.below &&
           before->failure.panic == after->failure.panic &&
           strcmp(before->failure.backup, after->failure.backup) == 0 &&
           before->options.virtual_nodes == after->options.virtual_nodes &&
           before->options.ketama == after->options.ketama &&
           before->options.jump_replacement == after->options.jump_replacement &&
           same_health(&before->health, &health);
}

void hb_preview_diff(struct hb_preview *preview)
{
    const struct hb_config *config = preview->config;
    const struct hb_model *model = preview->model;
    struct hb_model_diff *diff = &preview->diff;

    memset(diff, 0, sizeof(*diff));
    count_services(preview);
    preview->settings_changed =
        hb_address_compare(&config->tunnel_source, &model->tunnel_source) != 0 ||
        hb_address_compare(&config->tunnel_source6, &model->tunnel_source6) != 0 ||
        !hb_icmp_config_equal(&config->icmp, &model->icmp) ||
        !hb_address_prefix_equal(&config->tunnel_prefix, &model->tunnel_prefix) ||
        !hb_address_prefix_equal(&config->tunnel_prefix6, &model->tunnel_prefix6) ||
        config->settle_after_ms != model->settle_after_ms ||
        config->punt_rate != model->punt_rate ||
        memcmp(&config->maintenance, &model->maintenance, sizeof(model->maintenance)) != 0;
    preview->changed = preview->reseeded || preview->settings_changed;
    for (uint32_t p = 0; p < preview->pools_count; p++) {
        struct hb_preview_pool *pool = &preview->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++)
            count_backend(&pool->backends[b], diff);
        pool->settings_changed = !same_settings(config, pool);
        preview->changed |= pool->settings_changed || pool->before == NULL || pool->after == NULL;
    }
    if (diff->services_added + diff->services_removed + diff->services_changed +
            diff->backends_added + diff->backends_removed + diff->backends_changed >
        0)
        preview->changed = true;
}
