/* SPDX-License-Identifier: BSD-3-Clause */
#include "reconcile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_internal.h"
#include "plan_fill.h"
#include "pool_table.h"
#include "rewrite_nat.h"

/* The hop, with no larger an MTU than the path of the tunnel behind it has. */
static struct hb_next_hop hop_of(const struct hb_model_pool *pool,
                                 const struct hb_model_backend *backend)
{
    struct hb_next_hop hop = backend->hop;

    if (hb_forwarding_is_tunnel(pool->forwarding) && backend->path.mtu != 0 &&
        backend->path.mtu < hop.mtu)
        hop.mtu = backend->path.mtu;
    return hop;
}

static void update_rewrite(const struct hb_model *model, const struct hb_model_pool *pool,
                           struct hb_model_backend *backend, struct hb_port_list ports)
{
    bool ipv4 = backend->address.family == HB_FAMILY_IPV4;
    struct hb_rewrite_wish wish = {
        .forwarding = pool->forwarding,
        .options = &pool->encap,
        .source = ipv4 ? &model->tunnel_source : &model->tunnel_source6,
        .prefix = ipv4 ? &model->tunnel_prefix : &model->tunnel_prefix6,
    };
    struct hb_next_hop hop = hop_of(pool, backend);
    bool made;

    if (hb_config_is_nat(pool->forwarding))
        made = hb_rewrite_make_nat(&backend->address, &hop, pool->forwarding, &pool->nat, ports,
                                   &backend->rewrite, backend->problem, sizeof(backend->problem));
    else
        made = hb_rewrite_make(&backend->address, &hop, &wish, ports, &backend->rewrite,
                               backend->problem, sizeof(backend->problem));
    /* What was made for another mode would reach a backend that does not expect it (BL-55). */
    if (!made && backend->rewrite.forwarding != pool->forwarding)
        memset(&backend->rewrite, 0, sizeof(backend->rewrite));
}

static bool is_usable(const struct hb_model_backend *backend)
{
    return backend->rewrite.size > 0 &&
           hb_backend_takes_new_flows(&backend->state, backend->weight);
}

/* Nothing speaks against it yet: it may become usable without anything being repaired. */
static bool is_undecided(const struct hb_model_backend *backend)
{
    if (backend->state.draining || backend->weight == 0)
        return false;
    return backend->state.health == HB_BACKEND_UNKNOWN ||
           (backend->state.health == HB_BACKEND_UP && backend->rewrite.size == 0);
}

/* Applies the rule about leaving members; what is left of them stands in the table. */
static void settle_leaving(struct hb_model *model, struct hb_model_pool *pool)
{
    bool usable = false, undecided = false;

    for (uint32_t b = 0; b < pool->backends_count; b++) {
        const struct hb_model_backend *backend = pool->backends[b];

        if (backend->leaving)
            continue;
        usable = usable || is_usable(backend);
        undecided = undecided || is_undecided(backend);
    }
    for (uint32_t b = pool->backends_count; b-- > 0;) {
        struct hb_model_backend *backend = pool->backends[b];

        if (backend->leaving && (usable || !undecided || !is_usable(backend)))
            hb_model_drop(model, pool, b);
    }
}

/* Members in the order of addresses: those that stand in the table, or those that do not. */
static void add_members(struct hb_table_input *input, const struct hb_model_pool *pool, bool stand,
                        uint64_t now_ms)
{
    for (uint32_t b = 0; b < pool->backends_count; b++) {
        const struct hb_model_backend *backend = pool->backends[b];
        struct hb_table_entry entry = {backend->address, backend->weight, backend->id,
                                       backend->bucket, hb_backend_ramp(pool, backend, now_ms)};

        if (backend->stands != stand || (backend->backup && !stand))
            continue;
        /* A closed pool's members that shall have no new flows have old ones. */
        if (stand && entry.weight == 0)
            entry.weight = 1;
        hb_table_input_add(input, &entry, stand);
    }
}

/* Decides who stands in the pool's table. */
static int apply_policy(struct hb_model_pool *pool)
{
    struct hb_member_view *views = calloc(pool->backends_count + 1, sizeof(*views));

    if (views == NULL)
        return -ENOMEM;
    for (uint32_t b = 0; b < pool->backends_count; b++)
        views[b] = hb_member_view(pool->backends[b]);
    pool->mode = hb_pool_policy(&pool->failure, pool->mode, views, pool->backends_count);
    pool->strength = hb_pool_strength(&pool->failure, views, pool->backends_count);
    for (uint32_t b = 0; b < pool->backends_count; b++)
        pool->backends[b]->stands = hb_pool_policy_stands(pool->mode, &views[b]);
    free(views);
    return 0;
}

static int update_pool(struct hb_model *model, struct hb_model_pool *pool,
                       struct hb_port_list ports)
{
    struct hb_table_kind kind = {pool->algorithm, pool->table_size, pool->options,
                                 model->table_seed};
    struct hb_table_input *input;

    for (uint32_t b = 0; b < pool->backends_count; b++)
        update_rewrite(model, pool, pool->backends[b], ports);
    settle_leaving(model, pool);
    if (apply_policy(pool) != 0 || hb_pool_table_forget(pool) != 0)
        return -ENOMEM;
    hb_pool_follow_ramps(model, pool);
    input = hb_table_input_new(&kind, pool->backends_count);
    if (input == NULL)
        return -ENOMEM;
    add_members(input, pool, true, model->now_ms);
    add_members(input, pool, false, model->now_ms);
    pool->usable = pool->mode == HB_POOL_MODE_CLOSED ? 0 : hb_table_input_count(input);
    return hb_pool_table_update(pool, input);
}

/* What a reconcile is about has been done. */
static void settle_touches(struct hb_model *model)
{
    model->touched = false;
    for (uint32_t p = 0; p < model->pools_count; p++) {
        struct hb_model_pool *pool = &model->pools[p];

        if (pool->touched || pool->ramps)
            pool->next_ms = hb_pool_next_ms(pool, model->now_ms);
        pool->touched = false;
    }
}

static void tell_problem(const struct hb_model *model, char *problem, size_t size)
{
    problem[0] = '\0';
    for (uint32_t p = 0; p < model->pools_count; p++) {
        const struct hb_model_pool *pool = &model->pools[p];

        if (pool->problem[0] != '\0')
            snprintf(problem, size, "pool %s has no table: %s", pool->name, pool->problem);
    }
}

int hb_reconcile_touched(struct hb_model *model, struct hb_port_list ports, struct hb_plan *plan,
                         char *problem, size_t size)
{
    int error = 0;

    for (uint32_t p = 0; p < model->pools_count; p++) {
        struct hb_model_pool *pool = &model->pools[p];

        pool->changed = false;
        pool->touched = hb_pool_is_due(model, pool);
        if (pool->touched && error == 0)
            error = update_pool(model, pool, ports);
    }
    tell_problem(model, problem, size);
    /* Members may have been dropped just now. */
    if (error == 0 && (model->touched || plan->pools == NULL)) {
        hb_plan_clear(plan);
        error = hb_plan_make(plan, model, ports);
    } else if (error == 0) {
        error = hb_plan_patch(plan, model, ports);
    } else {
        hb_plan_clear(plan);
    }
    if (error == 0)
        settle_touches(model);
    return error;
}

int hb_reconcile(struct hb_model *model, struct hb_port_list ports, struct hb_plan *plan,
                 char *problem, size_t size)
{
    memset(plan, 0, sizeof(*plan));
    model->touched = true;
    return hb_reconcile_touched(model, ports, plan, problem, size);
}
