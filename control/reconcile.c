/* SPDX-License-Identifier: BSD-3-Clause */
#include "reconcile.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_internal.h"
#include "plan_nat.h"
#include "pool_table.h"
#include "rewrite_nat.h"
#include <xxhash.h>

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

/* Who is in the table takes part, even where a check speaks against it: a flow that has just been
 * set up must stay. */
static enum hb_backend_use use_of(const struct hb_model_backend *backend)
{
    if (backend->rewrite.size == 0 ||
        (backend->state.health == HB_BACKEND_UNKNOWN && !backend->state.disabled))
        return HB_BACKEND_DOWN;
    if (backend->stands && backend->state.health == HB_BACKEND_FAILED)
        return HB_BACKEND_ACTIVE;
    return hb_backend_use_of(&backend->state);
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
                       struct hb_port_list ports, char *problem, size_t size)
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
    return hb_pool_table_update(pool, input, problem, size);
}

static uint32_t plan_table(struct hb_plan *plan, const struct hb_model_pool *pool)
{
    struct hb_plan_table *table = plan->tables;

    if (pool->owner == NULL)
        return HB_POOL_NO_TABLE;
    for (uint32_t t = 0; t < plan->tables_count; t++, table++) {
        if (table->slots == pool->slots && memcmp(table->digest, pool->digest, HB_DIGEST_SIZE) == 0)
            return t;
    }
    memcpy(table->digest, pool->digest, HB_DIGEST_SIZE);
    table->column = hb_history_columns(&pool->history);
    table->slots = pool->slots;
    return plan->tables_count++;
}

static void plan_backend(struct hb_plan *plan, const struct hb_model_backend *backend,
                         uint32_t pool)
{
    struct hb_backend_record *record = &plan->backends[plan->backends_count++];

    record->id = backend->id;
    record->incarnation = backend->incarnation;
    record->pool = pool;
    record->use = use_of(backend);
    record->family = backend->address.family;
    record->weight = (uint16_t)backend->weight;
    memcpy(record->address, backend->address.bytes, sizeof(record->address));
    record->rewrite = backend->rewrite;
    memcpy(record->server_id, backend->server_id, sizeof(record->server_id));
    record->server_id_length = backend->server_id_length;
    memcpy(record->name, backend->name, sizeof(record->name));
}

/* Lists are numbered by the first service, in the order of ids, that has them. */
static uint32_t plan_list(struct hb_plan *plan, const struct hb_model_service *const *sorted,
                          uint32_t index)
{
    const struct hb_source_list *list = sorted[index]->rules.sources;
    uint32_t first = 0;

    if (list == NULL)
        return 0;
    while (!hb_source_list_same(sorted[first]->rules.sources, list))
        first++;
    for (uint32_t i = 0; first == index && i < list->count; i++) {
        plan->prefixes[plan->prefixes_count] = list->prefix[i];
        plan->prefixes[plan->prefixes_count++].list = first + 1;
    }
    return first + 1;
}

static void plan_service(struct hb_plan *plan, const struct hb_model_service *service)
{
    struct hb_service_record *record = &plan->services[plan->services_count++];
    const struct hb_service_rules *rules = &service->rules;

    memcpy(record->address, service->vip.bytes, sizeof(record->address));
    record->port = htobe16(service->port);
    record->port_last = htobe16(service->port_last);
    record->prefix_length = service->prefix_length;
    record->protocol = service->protocol;
    record->family = service->vip.family;
    record->id = service->id;
    record->pool = service->pool;
    record->tracking = service->tracking;
    record->mss_max = service->mss_max;
    record->affinity = rules->affinity;
    record->affinity_prefix = rules->affinity_prefix;
    record->new_flows_rate = rules->new_flows;
    record->flows_max = rules->flows;
    record->quic_count = rules->quic_count;
    record->quic_first = rules->quic_count > 0 ? plan->quic_count : 0;
    for (uint32_t q = 0; q < rules->quic_count; q++)
        plan->quic[plan->quic_count++] = rules->quic[q];
    memcpy(record->name, service->name, sizeof(record->name));
}

static int compare_service_ids(const void *a, const void *b)
{
    uint32_t left = (*(const struct hb_model_service *const *)a)->id;
    uint32_t right = (*(const struct hb_model_service *const *)b)->id;

    return (left > right) - (left < right);
}

/* In the order of ids, so that the order of the file says nothing. */
static bool plan_services(struct hb_plan *plan, const struct hb_model *model)
{
    const struct hb_model_service **sorted = calloc(model->services_count + 1, sizeof(*sorted));

    if (sorted == NULL)
        return false;
    for (uint32_t s = 0; s < model->services_count; s++)
        sorted[s] = &model->services[s];
    qsort(sorted, model->services_count, sizeof(*sorted), compare_service_ids);
    for (uint32_t s = 0; s < model->services_count; s++) {
        const struct hb_source_list *list = sorted[s]->rules.sources;
        struct hb_service_record *record = &plan->services[s];

        plan_service(plan, sorted[s]);
        record->prefix_list = plan_list(plan, sorted, s);
        record->flags = list != NULL && list->denies_others ? HB_SERVICE_DENY_OTHERS : 0;
    }
    free(sorted);
    return true;
}

static int compare_backend_ids(const void *a, const void *b)
{
    uint32_t left = ((const struct hb_backend_record *)a)->id;
    uint32_t right = ((const struct hb_backend_record *)b)->id;

    return (left > right) - (left < right);
}

/* What the generation means: everything but its number and which tables it carries. */
static void digest_plan(struct hb_plan *plan)
{
    XXH3_state_t *state = XXH3_createState();
    uint32_t counts[] = {plan->services_count, plan->pools_count,    plan->backends_count,
                         plan->tables_count,   plan->prefixes_count, plan->quic_count,
                         plan->sources_count};

    memset(plan->content, 0, sizeof(plan->content));
    if (state == NULL)
        return; /* equal to nothing that was published: at worst it is published once more */
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, counts, sizeof(counts));
    XXH3_128bits_update(state, &plan->hash_key, sizeof(plan->hash_key));
    XXH3_128bits_update(state, plan->services, plan->services_count * sizeof(*plan->services));
    XXH3_128bits_update(state, plan->pools, plan->pools_count * sizeof(*plan->pools));
    XXH3_128bits_update(state, plan->backends, plan->backends_count * sizeof(*plan->backends));
    XXH3_128bits_update(state, &plan->settings, sizeof(plan->settings));
    XXH3_128bits_update(state, plan->prefixes, plan->prefixes_count * sizeof(*plan->prefixes));
    XXH3_128bits_update(state, plan->quic, plan->quic_count * sizeof(*plan->quic));
    XXH3_128bits_update(state, plan->sources, plan->sources_count * sizeof(*plan->sources));
    for (uint32_t t = 0; t < plan->tables_count; t++)
        XXH3_128bits_update(state, plan->tables[t].digest, HB_DIGEST_SIZE);
    XXH128_canonicalFromHash((XXH128_canonical_t *)plan->content, XXH3_128bits_digest(state));
    XXH3_freeState(state);
}

static bool allocate_plan(struct hb_plan *plan, const struct hb_model *model)
{
    uint32_t backends = 0, prefixes = 0, quic = 0;

    for (uint32_t s = 0; s < model->services_count; s++) {
        const struct hb_service_rules *rules = &model->services[s].rules;

        prefixes += rules->sources != NULL ? rules->sources->count : 0;
        quic += rules->quic_count;
    }
    for (uint32_t p = 0; p < model->pools_count; p++)
        backends += model->pools[p].backends_count;
    plan->services = calloc(model->services_count + 1, sizeof(*plan->services));
    plan->pools = calloc(model->pools_count + 1, sizeof(*plan->pools));
    plan->backends = calloc(backends + 1, sizeof(*plan->backends));
    plan->tables = calloc(model->pools_count + 1, sizeof(*plan->tables));
    plan->prefixes = calloc(prefixes + 1, sizeof(*plan->prefixes));
    plan->quic = calloc(quic + 1, sizeof(*plan->quic));
    return plan->services && plan->pools && plan->backends && plan->tables && plan->prefixes &&
           plan->quic;
}

static int fill_plan(struct hb_plan *plan, const struct hb_model *model, struct hb_port_list ports)
{
    plan->hash_key = model->hash_key;
    hb_icmp_config_apply(&model->icmp, &plan->settings);
    plan->settings.punt_rate = model->punt_rate;
    for (uint32_t p = 0; p < model->pools_count; p++) {
        const struct hb_model_pool *pool = &model->pools[p];
        struct hb_pool_record *record = &plan->pools[plan->pools_count++];

        record->table = plan_table(plan, pool);
        record->bounded_load = pool->bounded_load;
        if (pool->mode == HB_POOL_MODE_CLOSED && pool->owner != NULL)
            record->flags = HB_POOL_CLOSED;
        memcpy(record->owners, pool->owners, sizeof(record->owners));
        memcpy(record->name, pool->name, sizeof(record->name));
        for (uint32_t b = 0; b < pool->backends_count; b++)
            plan_backend(plan, pool->backends[b], p);
    }
    qsort(plan->backends, plan->backends_count, sizeof(*plan->backends), compare_backend_ids);
    if (hb_plan_nat(plan, model, ports) != 0)
        return -ENOMEM;
    digest_plan(plan);
    return 0;
}

int hb_reconcile(struct hb_model *model, struct hb_port_list ports, struct hb_plan *plan,
                 char *problem, size_t size)
{
    int error;

    memset(plan, 0, sizeof(*plan));
    problem[0] = '\0';
    for (uint32_t p = 0; p < model->pools_count; p++) {
        error = update_pool(model, &model->pools[p], ports, problem, size);
        if (error != 0)
            return error;
    }
    if (!allocate_plan(plan, model) || !plan_services(plan, model) ||
        fill_plan(plan, model, ports) != 0) {
        hb_plan_clear(plan);
        return -ENOMEM;
    }
    return 0;
}

void hb_plan_clear(struct hb_plan *plan)
{
    free(plan->services);
    free(plan->pools);
    free(plan->backends);
    free(plan->tables);
    free(plan->prefixes);
    free(plan->quic);
    free(plan->sources);
    memset(plan, 0, sizeof(*plan));
}
