/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan_fill.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model_internal.h"
#include "plan_nat.h"
#include "source_lists.h"
#include <xxhash.h>

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

static void fill_backend(struct hb_backend_record *record, const struct hb_model_backend *backend)
{
    record->id = backend->id;
    record->incarnation = backend->incarnation;
    record->pool = backend->pool;
    record->use = use_of(backend);
    record->family = backend->address.family;
    record->weight = (uint16_t)backend->weight;
    memcpy(record->address, backend->address.bytes, sizeof(record->address));
    record->rewrite = backend->rewrite;
    memcpy(record->server_id, backend->server_id, sizeof(record->server_id));
    record->server_id_length = backend->server_id_length;
    memcpy(record->name, backend->name, sizeof(record->name));
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

/* The records stand as `sorted` does. Lists are numbered by the first service that has them. */
static bool plan_lists(struct hb_plan *plan, const struct hb_model_service *const *sorted)
{
    uint32_t count = plan->services_count;
    const struct hb_source_list **lists = calloc((size_t)count + 1, sizeof(*lists));
    uint32_t *first = calloc((size_t)count + 1, sizeof(*first));
    bool known = lists != NULL && first != NULL;

    for (uint32_t s = 0; known && s < count; s++)
        lists[s] = sorted[s]->rules.sources;
    known = known && hb_source_lists_find_first(lists, count, first);
    for (uint32_t s = 0; known && s < count; s++) {
        if (lists[s] == NULL)
            continue;
        plan->services[s].prefix_list = first[s] + 1;
        plan->services[s].flags = lists[s]->denies_others ? HB_SERVICE_DENY_OTHERS : 0;
        for (uint32_t i = 0; first[s] == s && i < lists[s]->count; i++) {
            plan->prefixes[plan->prefixes_count] = lists[s]->prefix[i];
            plan->prefixes[plan->prefixes_count++].list = s + 1;
        }
    }
    free(lists);
    free(first);
    return known;
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
    bool planned;

    if (sorted == NULL)
        return false;
    for (uint32_t s = 0; s < model->services_count; s++)
        sorted[s] = &model->services[s];
    qsort(sorted, model->services_count, sizeof(*sorted), compare_service_ids);
    for (uint32_t s = 0; s < model->services_count; s++)
        plan_service(plan, sorted[s]);
    planned = plan_lists(plan, sorted);
    free(sorted);
    return planned;
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

static void fill_pool(struct hb_plan *plan, const struct hb_model_pool *pool)
{
    struct hb_pool_record *record = &plan->pools[plan->pools_count++];

    memset(record, 0, sizeof(*record));
    record->table = plan_table(plan, pool);
    record->bounded_load = pool->bounded_load;
    if (pool->mode == HB_POOL_MODE_CLOSED && pool->owner != NULL)
        record->flags = HB_POOL_CLOSED;
    memcpy(record->owners, pool->owners, sizeof(record->owners));
    memcpy(record->name, pool->name, sizeof(record->name));
}

/* All but services and backends, whatever it was before. */
static int fill_rest(struct hb_plan *plan, const struct hb_model *model, struct hb_port_list ports)
{
    memset(&plan->settings, 0, sizeof(plan->settings));
    plan->hash_key = model->hash_key;
    hb_icmp_config_apply(&model->icmp, &plan->settings);
    plan->settings.punt_rate = model->punt_rate;
    plan->pools_count = plan->tables_count = 0;
    for (uint32_t p = 0; p < model->pools_count; p++)
        fill_pool(plan, &model->pools[p]);
    if (hb_plan_nat(plan, model, ports) != 0) {
        hb_plan_clear(plan);
        return -ENOMEM;
    }
    digest_plan(plan);
    return 0;
}

int hb_plan_make(struct hb_plan *plan, const struct hb_model *model, struct hb_port_list ports)
{
    if (!allocate_plan(plan, model) || !plan_services(plan, model)) {
        hb_plan_clear(plan);
        return -ENOMEM;
    }
    for (uint32_t p = 0; p < model->pools_count; p++) {
        const struct hb_model_pool *pool = &model->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++)
            fill_backend(&plan->backends[plan->backends_count++], pool->backends[b]);
    }
    qsort(plan->backends, plan->backends_count, sizeof(*plan->backends), compare_backend_ids);
    return fill_rest(plan, model, ports);
}

int hb_plan_patch(struct hb_plan *plan, const struct hb_model *model, struct hb_port_list ports)
{
    for (uint32_t p = 0; p < model->pools_count; p++) {
        const struct hb_model_pool *pool = &model->pools[p];

        for (uint32_t b = 0; hb_pool_is_due(model, pool) && b < pool->backends_count; b++) {
            const struct hb_backend_record key = {.id = pool->backends[b]->id};

            fill_backend(bsearch(&key, plan->backends, plan->backends_count,
                                 sizeof(*plan->backends), compare_backend_ids),
                         pool->backends[b]);
        }
    }
    return fill_rest(plan, model, ports);
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
