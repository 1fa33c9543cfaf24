/* SPDX-License-Identifier: BSD-3-Clause */
#include "preview.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pool_table.h"

/* --- pools and members, before and after --- */

static const char *name_of(const struct hb_preview_pool *pool)
{
    return pool->before ? pool->before->name : pool->after->name;
}

static const struct hb_address *address_of(const struct hb_preview_backend *backend)
{
    return backend->before ? &backend->before->address : &backend->after->address;
}

static int compare_pools(const void *a, const void *b)
{
    return strcmp(name_of(a), name_of(b));
}

static int compare_backends(const void *a, const void *b)
{
    return hb_address_compare(address_of(a), address_of(b));
}

static int compare_name(const void *name, const void *pool)
{
    return strcmp(name, name_of(pool));
}

static int compare_address(const void *address, const void *backend)
{
    return hb_address_compare(address, address_of(backend));
}

struct hb_preview_pool *hb_preview_pool_named(const struct hb_preview *preview, const char *name)
{
    if (preview->pools_count == 0)
        return NULL;
    return bsearch(name, preview->pools, preview->pools_count, sizeof(*preview->pools),
                   compare_name);
}

struct hb_preview_backend *hb_preview_backend_at(const struct hb_preview_pool *pool,
                                                 const struct hb_address *address)
{
    if (pool->backends_count == 0)
        return NULL;
    return bsearch(address, pool->backends, pool->backends_count, sizeof(*pool->backends),
                   compare_address);
}

static int pair_backends(struct hb_preview_pool *pool)
{
    const struct hb_model_pool *before = pool->before;
    const struct hb_pool_config *after = pool->after;
    uint32_t old = before ? before->backends_count : 0, new = after ? after->backends_count : 0;

    pool->backends = calloc(old + new + 1, sizeof(*pool->backends));
    if (pool->backends == NULL)
        return -ENOMEM;
    for (uint32_t b = 0; b < old; b++)
        pool->backends[b].before = before->backends[b];
    pool->backends_count = old; /* sorted by address already */
    for (uint32_t b = 0; b < new; b++) {
        const struct hb_backend_config *config = &after->backends[b];
        struct hb_preview_backend *known = NULL;

        if (old > 0)
            known = bsearch(&config->address, pool->backends, old, sizeof(*known), compare_address);
        if (known == NULL)
            known = &pool->backends[pool->backends_count++];
        known->after = config;
    }
    qsort(pool->backends, pool->backends_count, sizeof(*pool->backends), compare_backends);
    return 0;
}

static int pair_pools(struct hb_preview *preview)
{
    const struct hb_model *model = preview->model;
    const struct hb_config *config = preview->config;
    uint32_t old = model->pools_count;
    int error = 0;

    preview->pools = calloc(old + config->pools_count + 1, sizeof(*preview->pools));
    if (preview->pools == NULL)
        return -ENOMEM;
    for (uint32_t p = 0; p < old; p++)
        preview->pools[p].before = &model->pools[p];
    preview->pools_count = old; /* sorted by name already */
    for (uint32_t p = 0; p < config->pools_count; p++) {
        struct hb_preview_pool *known = NULL;

        if (old > 0)
            known =
                bsearch(config->pools[p].name, preview->pools, old, sizeof(*known), compare_name);
        if (known == NULL)
            known = &preview->pools[preview->pools_count++];
        known->after = &config->pools[p];
    }
    qsort(preview->pools, preview->pools_count, sizeof(*preview->pools), compare_pools);
    for (uint32_t p = 0; p < preview->pools_count && error == 0; p++)
        error = pair_backends(&preview->pools[p]);
    return error;
}

/* --- the new tables --- */

/* Members keep their ids and new ones get what is left, so tables can be compared by id. */
static int number_members(struct hb_preview_pool *pool)
{
    bool *taken = calloc(HB_BACKENDS_MAX + 1, sizeof(*taken));
    uint32_t next = 1;

    if (taken == NULL)
        return -ENOMEM;
    for (uint32_t b = 0; b < pool->backends_count; b++) {
        if (pool->backends[b].before == NULL)
            continue;
        pool->backends[b].id = pool->backends[b].before->id;
        taken[pool->backends[b].id] = true;
    }
    for (uint32_t b = 0; b < pool->backends_count; b++) {
        if (pool->backends[b].before != NULL)
            continue;
        while (next <= HB_BACKENDS_MAX && taken[next])
            next++;
        pool->backends[b].id = next++;
    }
    free(taken);
    return next <= HB_BACKENDS_MAX + 1 ? 0 : -ENOSPC;
}

/* An operator's weight outlives a reload. */
static uint32_t weight_after(const struct hb_preview_backend *backend)
{
    const struct hb_model_backend *before = backend->before;

    return before != NULL && before->weight_is_set ? before->weight : backend->after->weight;
}

/* What the pool's policy will see of a member; one that is removed is like none. */
static struct hb_member_view view_after(const struct hb_preview_backend *backend,
                                        const struct hb_health_config *health)
{
    struct hb_member_view view = {.up = true, .checked = true, .reachable = true};

    if (backend->after == NULL)
        return (struct hb_member_view){.leaving = true};
    if (backend->before != NULL)
        view = hb_member_view(backend->before);
    view.wanted =
        weight_after(backend) > 0 && !(backend->before != NULL && backend->before->state.draining);
    view.backup = backend->after->backup;
    view.leaving = false;
    view.up = view.up || health->type == HB_HEALTH_NONE;
    view.checked = view.checked || view.up;
    return view;
}

static int apply_policy(struct hb_preview_pool *pool)
{
    const struct hb_pool_config *after = pool->after;
    enum hb_pool_mode mode = pool->before ? pool->before->mode : HB_POOL_MODE_NORMAL;
    struct hb_member_view *views = calloc(pool->backends_count + 1, sizeof(*views));

    if (views == NULL)
        return -ENOMEM;
    for (uint32_t b = 0; b < pool->backends_count; b++)
        views[b] = view_after(&pool->backends[b], &after->health);
    mode = hb_pool_policy(&after->failure, mode, views, pool->backends_count);
    for (uint32_t b = 0; b < pool->backends_count; b++) {
        pool->backends[b].usable = hb_pool_policy_stands(mode, &views[b]);
        pool->usable += pool->backends[b].usable && mode != HB_POOL_MODE_CLOSED;
    }
    free(views);
    return 0;
}

static void add_members(struct hb_table_input *input, struct hb_preview_pool *pool, bool usable)
{
    for (uint32_t b = 0; b < pool->backends_count; b++) {
        const struct hb_preview_backend *backend = &pool->backends[b];
        struct hb_table_entry entry = {*address_of(backend), 0, backend->id, 0, 0};

        if (backend->after == NULL || backend->usable != usable ||
            (backend->after->backup && !usable))
            continue;
        entry.weight = weight_after(backend);
        if (usable && entry.weight == 0)
            entry.weight = 1;
        entry.bucket = backend->after->bucket;
        hb_table_input_add(input, &entry, usable);
    }
}

/* Builds the new table, unless the running one has the same inputs. Takes `input` over. */
static int build_table(struct hb_preview_pool *pool, struct hb_table_input *input)
{
    const struct hb_model_pool *before = pool->before;
    struct hb_built_table table;
    int error = 0;

    if (before != NULL && before->input != NULL && hb_table_input_same(before->input, input)) {
        pool->owner = before->owner;
        memcpy(pool->owners, before->owners, sizeof(pool->owners));
        memcpy(pool->problem, before->problem, sizeof(pool->problem));
    } else {
        error = hb_table_input_build(input, &table, pool->problem, sizeof(pool->problem));
        free(table.final); /* NULL: a preview is of what has settled */
        pool->owner = pool->built = table.owner;
        memcpy(pool->owners, table.owners, sizeof(pool->owners));
        if (error == 0 && before != NULL && (before->owner != NULL || table.owner != NULL))
            pool->change = hb_pool_change_of(before->owner, before->slots, table.owner,
                                             pool->after->table_size);
    }
    pool->slots = pool->owner ? pool->after->table_size : 0;
    hb_table_input_free(input);
    return error;
}

static int count_slots(struct hb_preview_pool *pool)
{
    uint32_t *count = calloc(HB_BACKENDS_MAX + 1, sizeof(*count));

    if (count == NULL)
        return -ENOMEM;
    for (uint32_t s = 0; s < pool->slots; s++)
        count[pool->owner[s]]++;
    for (uint32_t b = 0; b < pool->backends_count; b++)
        pool->backends[b].slots = count[pool->backends[b].id];
    free(count);
    return 0;
}

static int preview_table(const struct hb_config *config, struct hb_preview_pool *pool)
{
    const struct hb_pool_config *after = pool->after;
    struct hb_table_kind kind = {0};
    struct hb_table_input *input;
    int error;

    if (after == NULL) /* its table goes with it, which moves nothing */
        return 0;
    error = number_members(pool);
    if (error != 0)
        return error;
    kind = (struct hb_table_kind){after->algorithm, after->table_size, after->options,
                                  config->table_seed};
    input = hb_table_input_new(&kind, after->backends_count);
    if (input == NULL)
        return -ENOMEM;
    error = apply_policy(pool);
    if (error != 0) {
        hb_table_input_free(input);
        return error;
    }
    add_members(input, pool, true);
    add_members(input, pool, false);
    error = build_table(pool, input);
    return error ? error : count_slots(pool);
}

int hb_preview_make(const struct hb_model *model, const struct hb_config *config, hb_flows_of flows,
                    void *context, struct hb_preview *preview)
{
    int error;

    memset(preview, 0, sizeof(*preview));
    preview->model = model;
    preview->config = config;
    preview->reseeded = model->table_seed != config->table_seed ||
                        memcmp(&model->hash_key, &config->hash_key, sizeof(model->hash_key)) != 0;
    error = pair_pools(preview);
    for (uint32_t p = 0; p < preview->pools_count && error == 0; p++)
        error = preview_table(config, &preview->pools[p]);
    if (error == 0)
        error = hb_preview_flows(preview, flows, context);
    if (error == 0)
        hb_preview_diff(preview);
    else
        hb_preview_clear(preview);
    return error;
}

void hb_preview_clear(struct hb_preview *preview)
{
    for (uint32_t p = 0; p < preview->pools_count; p++) {
        free(preview->pools[p].backends);
        free(preview->pools[p].built);
    }
    free(preview->pools);
    memset(preview, 0, sizeof(*preview));
}
