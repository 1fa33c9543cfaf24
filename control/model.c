/* SPDX-License-Identifier: BSD-3-Clause */
#include "model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_internal.h"
#include "pool_table.h"

struct hb_model *hb_model_new(void)
{
    struct hb_model *model = calloc(1, sizeof(*model));

    if (model == NULL)
        return NULL;
    model->backend_ids = hb_ids_new(1, HB_BACKENDS_MAX);
    model->service_ids = hb_ids_new(0, HB_SERVICES_MAX);
    if (model->backend_ids == NULL || model->service_ids == NULL) {
        hb_model_free(model);
        return NULL;
    }
    return model;
}

void hb_pool_clear(struct hb_model_pool *pool)
{
    free(pool->backends);
    hb_table_input_free(pool->input);
    hb_history_clear(&pool->history);
    pool->backends = NULL;
    pool->backends_count = 0;
    pool->input = NULL;
    pool->owner = NULL;
}

void hb_backend_end(struct hb_model *model, struct hb_model_backend *backend)
{
    if (model->left != NULL)
        model->left(model->context, backend);
    free(backend);
}

void hb_services_free(struct hb_model_service *services, uint32_t count)
{
    for (uint32_t s = 0; services != NULL && s < count; s++)
        hb_service_rules_clear(&services[s].rules);
    free(services);
}

void hb_model_free(struct hb_model *model)
{
    if (model == NULL)
        return;
    for (uint32_t p = 0; p < model->pools_count; p++) {
        for (uint32_t b = 0; b < model->pools[p].backends_count; b++)
            hb_backend_end(model, model->pools[p].backends[b]);
        hb_pool_clear(&model->pools[p]);
    }
    free(model->pools);
    hb_services_free(model->services, model->services_count);
    hb_ids_free(model->backend_ids);
    hb_ids_free(model->service_ids);
    free(model);
}

void hb_model_drop(struct hb_model *model, struct hb_model_pool *pool, uint32_t index)
{
    struct hb_model_backend *backend = pool->backends[index];
    char key[HB_ID_KEY_SIZE];

    memmove(&pool->backends[index], &pool->backends[index + 1],
            (pool->backends_count - index - 1) * sizeof(*pool->backends));
    pool->backends_count--;
    pool->members_left = true;
    model->touched = true;
    hb_ids_release(model->backend_ids, hb_backend_key(key, pool->name, &backend->address));
    hb_backend_end(model, backend);
}

/* Nobody had an id before its first incarnation, so all that it has counted is the object's own;
 * this also lets counts go on over a restart of control. */
static void start_tally(struct hb_model *model, struct hb_tally *tally, bool service, uint32_t id,
                        uint32_t incarnation)
{
    struct hb_counts raw = {0};
    uint64_t instance = 0;

    if (model->raw_counts != NULL && incarnation > 1)
        raw = model->raw_counts(model->context, service, id, &instance);
    hb_tally_start(tally, instance, raw);
}

void hb_backend_start_tally(struct hb_model *model, struct hb_model_backend *backend)
{
    start_tally(model, &backend->tally, false, backend->id, backend->incarnation);
}

void hb_service_start_tally(struct hb_model *model, struct hb_model_service *service)
{
    uint32_t incarnation = hb_ids_incarnation(model->service_ids, service->id);
    struct hb_quic_counters raw = {0};
    uint64_t instance = 0;

    start_tally(model, &service->tally, true, service->id, incarnation);
    if (model->raw_quic != NULL && incarnation > 1)
        raw = model->raw_quic(model->context, service->id, &instance);
    hb_quic_tally_start(&service->quic, instance, raw);
}

static bool claim_all(struct hb_model *model)
{
    char key[HB_ID_KEY_SIZE];

    for (uint32_t p = 0; p < model->pools_count; p++) {
        const struct hb_model_pool *pool = &model->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++) {
            hb_backend_key(key, pool->name, &pool->backends[b]->address);
            if (hb_ids_claim(model->backend_ids, key, model->reusable, model->context) ==
                HB_ID_NONE)
                return false;
        }
    }
    for (uint32_t s = 0; s < model->services_count; s++) {
        const struct hb_model_service *service = &model->services[s];

        hb_model_service_key(key, service);
        if (hb_ids_claim(model->service_ids, key, NULL, NULL) == HB_ID_NONE)
            return false;
    }
    return true;
}

/* `id_of` has the pool's new ids by the old ones, where they differ. */
static void renumber_history(struct hb_model_pool *pool, uint16_t *id_of)
{
    for (uint32_t b = 0; b < pool->backends_count; b++)
        if (id_of[pool->backends[b]->id] == HB_BACKEND_NONE)
            id_of[pool->backends[b]->id] = (uint16_t)pool->backends[b]->id;
    hb_history_renumber(&pool->history, id_of);
    memset(id_of, 0, (HB_BACKENDS_MAX + 1) * sizeof(*id_of));
}

int hb_model_assign_ids(struct hb_model *model)
{
    uint16_t *id_of = calloc(HB_BACKENDS_MAX + 1, sizeof(*id_of));
    char key[HB_ID_KEY_SIZE];

    if (id_of == NULL)
        return -ENOMEM;
    hb_model_touch(model);
    if (!claim_all(model)) {
        free(id_of);
        return -ENOSPC;
    }
    for (uint32_t p = 0; p < model->pools_count; p++) {
        struct hb_model_pool *pool = &model->pools[p];
        bool any = false;

        for (uint32_t b = 0; b < pool->backends_count; b++) {
            struct hb_model_backend *backend = pool->backends[b];
            uint32_t id =
                hb_ids_find(model->backend_ids, hb_backend_key(key, pool->name, &backend->address));
            uint32_t incarnation = hb_ids_incarnation(model->backend_ids, id);

            if (id == backend->id && incarnation == backend->incarnation)
                continue;
            id_of[backend->id] = (uint16_t)id;
            any = any || id != backend->id;
            backend->id = id;
            backend->incarnation = incarnation;
            hb_backend_start_tally(model, backend);
        }
        if (any)
            renumber_history(pool, id_of);
    }
    free(id_of);
    for (uint32_t s = 0; s < model->services_count; s++) {
        struct hb_model_service *service = &model->services[s];
        uint32_t id = hb_ids_find(model->service_ids, hb_model_service_key(key, service));

        if (id != service->id) {
            service->id = id;
            hb_service_start_tally(model, service);
        }
    }
    hb_model_index_services(model);
    return 0;
}

void hb_model_release_unused(struct hb_model *model)
{
    struct hb_id_registry *registries[] = {model->backend_ids, model->service_ids};
    bool *in_model = calloc(HB_BACKENDS_MAX + 1, sizeof(*in_model));
    char key[HB_ID_KEY_SIZE];

    if (in_model == NULL)
        return; /* they stay taken, no more */
    for (uint32_t r = 0; r < 2; r++) {
        struct hb_id_registry *ids = registries[r];

        memset(in_model, 0, (HB_BACKENDS_MAX + 1) * sizeof(*in_model));
        for (uint32_t p = 0; r == 0 && p < model->pools_count; p++) {
            for (uint32_t b = 0; b < model->pools[p].backends_count; b++)
                in_model[model->pools[p].backends[b]->id] = true;
        }
        for (uint32_t s = 0; r == 1 && s < model->services_count; s++)
            in_model[model->services[s].id] = true;
        for (uint32_t id = hb_ids_first(ids); id < hb_ids_end(ids); id++) {
            if (hb_ids_key(ids, id) == NULL || in_model[id])
                continue;
            snprintf(key, sizeof(key), "%s", hb_ids_key(ids, id));
            hb_ids_release(ids, key);
        }
    }
    free(in_model);
}

static int compare_pool_name(const void *key, const void *pool)
{
    return strcmp(key, ((const struct hb_model_pool *)pool)->name);
}

struct hb_model_pool *hb_model_pool(const struct hb_model *model, const char *name)
{
    if (model->pools_count == 0)
        return NULL;
    return bsearch(name, model->pools, model->pools_count, sizeof(*model->pools),
                   compare_pool_name);
}

static int compare_backend_address(const void *key, const void *backend)
{
    return hb_address_compare(key, &(*(struct hb_model_backend *const *)backend)->address);
}

struct hb_model_backend *hb_pool_backend(const struct hb_model_pool *pool,
                                         const struct hb_address *address)
{
    struct hb_model_backend **found = NULL;

    if (pool->backends_count > 0)
        found = bsearch(address, pool->backends, pool->backends_count, sizeof(*pool->backends),
                        compare_backend_address);
    return found ? *found : NULL;
}

struct hb_model_backend *hb_model_backend_by_id(const struct hb_model *model, uint32_t id,
                                                struct hb_model_pool **pool)
{
    for (uint32_t p = 0; p < model->pools_count; p++) {
        for (uint32_t b = 0; b < model->pools[p].backends_count; b++) {
            if (model->pools[p].backends[b]->id != id)
                continue;
            if (pool != NULL)
                *pool = &model->pools[p];
            return model->pools[p].backends[b];
        }
    }
    return NULL;
}

void hb_model_index_services(struct hb_model *model)
{
    for (uint32_t s = 0; s < model->services_count; s++)
        model->service_at[model->services[s].id] = (uint16_t)s;
}

const struct hb_model_service *hb_model_service_by_id(const struct hb_model *model, uint32_t id)
{
    uint32_t at = id < HB_SERVICES_MAX ? model->service_at[id] : UINT32_MAX;

    return at < model->services_count && model->services[at].id == id ? &model->services[at] : NULL;
}

const char *hb_backend_key(char *key, const char *pool, const struct hb_address *address)
{
    char text[HB_ADDRESS_TEXT];

    snprintf(key, HB_ID_KEY_SIZE, "%s %s", pool, hb_address_print(address, text));
    return key;
}

const char *hb_service_key(char *key, const struct hb_address *vip, uint8_t prefix_length,
                           uint8_t protocol, uint16_t port, uint16_t port_last)
{
    char text[HB_ADDRESS_TEXT], ports[HB_PORTS_TEXT];

    snprintf(key, HB_ID_KEY_SIZE, "%s %s %s", hb_protocol_name(protocol),
             hb_vip_print(vip, prefix_length, text), hb_ports_print(port, port_last, ports));
    return key;
}

const char *hb_algorithm_name(enum hb_algorithm algorithm)
{
    const struct hb_table_builder *builder = hb_table_builder_of(algorithm);

    return builder ? builder->name : "unknown";
}

const char *hb_protocol_name(uint8_t protocol)
{
    switch (protocol) {
    case HB_PROTOCOL_TCP:
        return "tcp";
    case HB_PROTOCOL_UDP:
        return "udp";
    case HB_PROTOCOL_SCTP:
        return "sctp";
    default:
        return "unknown";
    }
}
