/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A new configuration meets the running model. Two passes: `stage` builds the new pools and
 * services beside the old ones, taking over what has the same identity, and is all that can fail;
 * `commit` swaps them in and lets go of what left.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_internal.h"

struct known {
    const struct hb_model_backend *backend;
    const struct hb_model_pool *pool;
};

struct stage {
    struct hb_model *model;
    struct hb_model_diff *diff;
    uint64_t now_ms;
    struct hb_model_pool *pools;
    uint32_t pools_count;
    struct hb_model_service *services;
    uint32_t *pool_at;   /* index in the file to index in `pools` */
    struct known *known; /* the old model's backends by address, for health that is known */
    uint32_t known_count;
};

static int compare_pools(const void *a, const void *b)
{
    return strcmp(((const struct hb_model_pool *)a)->name, ((const struct hb_model_pool *)b)->name);
}

static int compare_backends(const void *a, const void *b)
{
    return hb_address_compare(&(*(struct hb_model_backend *const *)a)->address,
                              &(*(struct hb_model_backend *const *)b)->address);
}

static int compare_known(const void *a, const void *b)
{
    return hb_address_compare(&((const struct known *)a)->backend->address,
                              &((const struct known *)b)->backend->address);
}

static bool index_known(struct stage *stage)
{
    const struct hb_model *model = stage->model;
    uint32_t count = 0;

    for (uint32_t p = 0; p < model->pools_count; p++)
        count += model->pools[p].backends_count;
    stage->known = calloc(count ? count : 1, sizeof(*stage->known));
    if (stage->known == NULL)
        return false;
    for (uint32_t p = 0; p < model->pools_count; p++) {
        for (uint32_t b = 0; b < model->pools[p].backends_count; b++)
            stage->known[stage->known_count++] =
                (struct known){model->pools[p].backends[b], &model->pools[p]};
    }
    if (count > 0)
        qsort(stage->known, count, sizeof(*stage->known), compare_known);
    return true;
}

/* A backend that is new to this pool, but whose address another pool (perhaps the same one under an
 * older name) has probed in the same way, starts with what that found: renaming a pool makes no
 * gap. */
static void borrow_health(const struct stage *stage, const struct hb_model_pool *pool,
                          struct hb_model_backend *backend)
{
    const struct known wanted = {backend, pool};
    const struct known *found = NULL, *end = stage->known + stage->known_count;

    if (stage->known_count > 0)
        found = bsearch(&wanted, stage->known, stage->known_count, sizeof(*found), compare_known);
    if (found == NULL)
        return;
    while (found > stage->known && compare_known(found - 1, &wanted) == 0)
        found--;
    for (; found < end && compare_known(found, &wanted) == 0; found++) {
        if (!hb_health_alike(&found->pool->health, &pool->health))
            continue;
        backend->state = found->backend->state;
        backend->state.draining = backend->state.disabled = backend->state.reset = false;
        backend->state.drain_since_ms = 0;
        memcpy(backend->reason, found->backend->reason, sizeof(backend->reason));
        return;
    }
}

static struct hb_model_backend *stage_backend(struct stage *stage, struct hb_model_pool *pool,
                                              const struct hb_backend_config *config)
{
    struct hb_model *model = stage->model;
    struct hb_model_backend *backend = calloc(1, sizeof(*backend));
    char key[HB_ID_KEY_SIZE];

    if (backend == NULL)
        return NULL;
    backend->address = config->address;
    hb_address_print(&backend->address, backend->identity);
    snprintf(backend->reason, sizeof(backend->reason), "not probed yet");
    hb_backend_key(key, pool->name, &backend->address);
    backend->id = hb_ids_claim(model->backend_ids, key, model->reusable, model->context);
    if (backend->id == HB_ID_NONE) {
        hb_model_refuse_id(model, backend->identity, pool->name, stage->diff);
        free(backend);
        return NULL;
    }
    backend->incarnation = hb_ids_incarnation(model->backend_ids, backend->id);
    borrow_health(stage, pool, backend);
    /* Who comes with its pool has nobody to take a share from. */
    backend->ramps = hb_model_pool(model, pool->name) != NULL;
    hb_backend_start_tally(model, backend);
    return backend;
}

struct hb_health_config hb_model_health(const struct hb_config *config, uint32_t pool)
{
    struct hb_health_config health = config->pools[pool].health;

    if (health.port == 0 && hb_health_type_has_port(health.type))
        health.port = config->pools[pool].nat.port;
    for (uint32_t s = 0; s < config->services_count; s++) {
        const struct hb_service_config *service = &config->services[s];

        if (service->pool != pool)
            continue;
        if (health.port == 0 && hb_health_type_has_port(health.type))
            health.port = service->port;
        if (health.vip.family == 0 && health.via == HB_VIA_TUNNEL)
            health.vip = service->vip;
        break;
    }
    return health;
}

static bool stage_pool(struct stage *stage, const struct hb_config *config, uint32_t index)
{
    const struct hb_pool_config *from = &config->pools[index];
    struct hb_model_pool *pool = &stage->pools[stage->pools_count];
    const struct hb_model_pool *old = hb_model_pool(stage->model, from->name);

    memcpy(pool->name, from->name, sizeof(pool->name));
    pool->algorithm = from->algorithm;
    pool->table_size = from->table_size;
    pool->options = from->options;
    pool->bounded_load = from->bounded_load;
    pool->forwarding = from->forwarding;
    pool->nat = from->nat;
    pool->encap = from->encap;
    pool->health = hb_model_health(config, index);
    pool->failure = from->failure;
    pool->slow_start_ms = from->slow_start_ms;
    /* Room for members that stay on as leaving ones as well. */
    pool->backends = calloc(from->backends_count + (old ? old->backends_count : 0),
                            sizeof(struct hb_model_backend *));
    stage->pools_count++;
    if (pool->backends == NULL)
        return false;
    for (uint32_t b = 0; b < from->backends_count; b++) {
        struct hb_model_backend *backend =
            old ? hb_pool_backend(old, &from->backends[b].address) : NULL;

        if (backend == NULL)
            backend = stage_backend(stage, pool, &from->backends[b]);
        if (backend == NULL)
            return false;
        pool->backends[pool->backends_count++] = backend;
    }
    return true;
}

static bool stage_services(struct stage *stage, const struct hb_config *config)
{
    struct hb_model *model = stage->model;
    char key[HB_ID_KEY_SIZE];

    for (uint32_t s = 0; s < config->services_count; s++) {
        const struct hb_service_config *from = &config->services[s];
        struct hb_model_service *service = &stage->services[s];
        const struct hb_model_service *old = NULL;
        uint32_t known;

        memcpy(service->name, from->name, sizeof(service->name));
        service->vip = from->vip;
        service->prefix_length = from->prefix_length;
        service->protocol = from->protocol;
        service->port = from->port;
        service->port_last = from->port_last;
        service->tracking = from->tracking;
        service->mss_max = from->mss_max;
        hb_service_rules_copy(&service->rules, &from->rules);
        service->pool = from->pool; /* index in the file until commit */
        hb_model_service_key(key, service);
        known = hb_ids_find(model->service_ids, key);
        if (known != HB_ID_NONE)
            old = hb_model_service_by_id(model, known);
        service->id = hb_ids_claim(model->service_ids, key, NULL, NULL);
        if (service->id == HB_ID_NONE) {
            snprintf(stage->diff->error, sizeof(stage->diff->error),
                     "no service id is free for %s: %u services are the limit; remove some", key,
                     HB_SERVICES_MAX);
            return false;
        }
        if (old != NULL) {
            service->tally = old->tally;
            service->quic = old->quic;
        } else {
            hb_service_start_tally(model, service);
        }
    }
    return true;
}

static bool is_old(const struct stage *stage, const struct hb_model_pool *pool,
                   const struct hb_model_backend *backend)
{
    const struct hb_model_pool *old = hb_model_pool(stage->model, pool->name);

    return old != NULL && hb_pool_backend(old, &backend->address) == backend;
}

/* Undoes a stage that failed: what it made goes, what it borrowed from the model stays there. */
static void unstage(struct stage *stage)
{
    struct hb_model *model = stage->model;
    char key[HB_ID_KEY_SIZE];

    for (uint32_t p = 0; p < stage->pools_count; p++) {
        struct hb_model_pool *pool = &stage->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++) {
            if (is_old(stage, pool, pool->backends[b]))
                continue;
            hb_ids_release(model->backend_ids,
                           hb_backend_key(key, pool->name, &pool->backends[b]->address));
            free(pool->backends[b]);
        }
        free(pool->backends);
    }
    for (uint32_t id = 0; id < HB_SERVICES_MAX; id++) {
        const char *held = hb_ids_key(model->service_ids, id);

        if (held != NULL && hb_model_service_by_id(model, id) == NULL) {
            snprintf(key, sizeof(key), "%s", held);
            hb_ids_release(model->service_ids, key);
        }
    }
}

bool hb_backend_differs(const struct hb_model_backend *backend,
                        const struct hb_backend_config *config)
{
    return strcmp(backend->name, config->name) != 0 || strcmp(backend->zone, config->zone) != 0 ||
           backend->configured_weight != config->weight || backend->bucket != config->bucket ||
           backend->backup != config->backup ||
           backend->server_id_length != config->server_id_length ||
           memcmp(backend->server_id, config->server_id, sizeof(backend->server_id)) != 0;
}

static void note_backend_change(struct hb_model_backend *backend,
                                const struct hb_backend_config *config, bool old,
                                struct hb_model_diff *diff)
{
    if (config->backup && (!old || backend->backup))
        ; /* its own pool counts it */
    else if (!old || backend->leaving)
        diff->backends_added++;
    else if (hb_backend_differs(backend, config))
        diff->backends_changed++;
    memcpy(backend->name, config->name, sizeof(backend->name));
    memcpy(backend->zone, config->zone, sizeof(backend->zone));
    memcpy(backend->server_id, config->server_id, sizeof(backend->server_id));
    backend->server_id_length = config->server_id_length;
    backend->configured_weight = config->weight;
    if (!backend->weight_is_set)
        backend->weight = config->weight;
    backend->bucket = config->bucket;
    backend->backup = config->backup;
    backend->leaving = false;
}

static void commit_health(struct hb_model_pool *pool, struct hb_model_backend *backend,
                          uint64_t now_ms)
{
    if (pool->health.type != HB_HEALTH_NONE)
        return;
    /* What an earlier check found says nothing any more. */
    if (backend->state.health == HB_BACKEND_FAILED)
        backend->state.health = HB_BACKEND_UNKNOWN;
    hb_backend_state_apply(&backend->state, HB_EVENT_TAKE_OVER_UP, pool->health.rise,
                           pool->health.fall, now_ms, now_ms);
    snprintf(backend->reason, sizeof(backend->reason), "no health check is configured");
}

/* Old members that the file no longer has: those that work stay on for now, as leaving ones, and
 * reconcile decides; the others go at once (BL-78). */
static void commit_leavers(struct stage *stage, struct hb_model_pool *pool,
                           struct hb_model_pool *old)
{
    char key[HB_ID_KEY_SIZE];
    uint32_t leaving = 0;

    for (uint32_t b = 0; b < old->backends_count; b++) {
        struct hb_model_backend *backend = old->backends[b];

        if (pool != NULL && hb_pool_backend(pool, &backend->address) != NULL)
            continue;
        if (!backend->leaving && !backend->backup)
            stage->diff->backends_removed++;
        if (pool != NULL && !backend->backup &&
            hb_backend_takes_new_flows(&backend->state, backend->weight) &&
            backend->rewrite.size > 0) {
            backend->leaving = true;
            pool->backends[pool->backends_count + leaving++] = backend;
            continue;
        }
        hb_ids_release(stage->model->backend_ids,
                       hb_backend_key(key, old->name, &backend->address));
        hb_backend_end(stage->model, backend);
        old->members_left = true;
    }
    if (leaving > 0) {
        pool->backends_count += leaving;
        qsort(pool->backends, pool->backends_count, sizeof(struct hb_model_backend *),
              compare_backends);
    }
}

static void take_table(struct hb_model_pool *pool, struct hb_model_pool *old)
{
    pool->input = old->input;
    pool->owner = old->owner;
    pool->slots = old->slots;
    pool->history = old->history;
    pool->members_left = old->members_left;
    memset(&old->history, 0, sizeof(old->history));
    pool->usable = old->usable;
    pool->mode = old->mode;
    pool->told_mode = old->told_mode;
    pool->change = old->change;
    memcpy(pool->digest, old->digest, sizeof(pool->digest));
    memcpy(pool->owners, old->owners, sizeof(pool->owners));
    memcpy(pool->problem, old->problem, sizeof(pool->problem));
    old->input = NULL;
    old->owner = NULL;
}

static void commit_pools(struct stage *stage, const struct hb_config *config)
{
    struct hb_model *model = stage->model;

    for (uint32_t p = 0; p < stage->pools_count; p++) {
        struct hb_model_pool *pool = &stage->pools[p];

        /* Still in the order of the file. */
        for (uint32_t b = 0; b < pool->backends_count; b++) {
            bool old = is_old(stage, pool, pool->backends[b]);

            note_backend_change(pool->backends[b], &config->pools[p].backends[b], old, stage->diff);
            commit_health(pool, pool->backends[b], stage->now_ms);
        }
        qsort(pool->backends, pool->backends_count, sizeof(struct hb_model_backend *),
              compare_backends);
    }
    qsort(stage->pools, stage->pools_count, sizeof(*stage->pools), compare_pools);
    for (uint32_t i = 0; i < model->pools_count; i++) {
        struct hb_model_pool *old = &model->pools[i];
        struct hb_model_pool *pool =
            bsearch(old, stage->pools, stage->pools_count, sizeof(*stage->pools), compare_pools);

        commit_leavers(stage, pool, old);
        if (pool != NULL)
            take_table(pool, old);
        hb_pool_clear(old);
    }
}

static void commit_services(struct stage *stage, const struct hb_config *config)
{
    struct hb_model *model = stage->model;
    bool kept[HB_SERVICES_MAX] = {false}; /* by id */
    char key[HB_ID_KEY_SIZE];

    for (uint32_t s = 0; s < config->services_count; s++) {
        struct hb_model_service *service = &stage->services[s];
        const struct hb_model_service *old = hb_model_service_by_id(model, service->id);
        const char *pool = config->pools[service->pool].name;

        if (old == NULL)
            stage->diff->services_added++;
        else if (strcmp(old->name, service->name) != 0 || old->tracking != service->tracking ||
                 old->mss_max != service->mss_max ||
                 !hb_service_rules_same(&old->rules, &service->rules) ||
                 strcmp(model->pools[old->pool].name, pool) != 0)
            stage->diff->services_changed++;
        service->pool = stage->pool_at[service->pool];
        kept[service->id] = true;
    }
    for (uint32_t s = 0; s < model->services_count; s++) {
        const struct hb_model_service *old = &model->services[s];

        if (kept[old->id])
            continue;
        stage->diff->services_removed++;
        hb_ids_release(model->service_ids, hb_model_service_key(key, old));
    }
}

/* Where each pool of the file stands once they are sorted by name. */
static void find_pools(struct stage *stage, const struct hb_config *config)
{
    for (uint32_t p = 0; p < config->pools_count; p++) {
        for (uint32_t other = 0; other < config->pools_count; other++)
            stage->pool_at[p] += strcmp(config->pools[other].name, config->pools[p].name) < 0;
    }
}

static void number_pools(struct hb_model *model)
{
    for (uint32_t p = 0; p < model->pools_count; p++) {
        for (uint32_t b = 0; b < model->pools[p].backends_count; b++)
            model->pools[p].backends[b]->pool = p;
    }
}

int hb_model_apply(struct hb_model *model, const struct hb_config *config, uint64_t now_ms,
                   struct hb_model_diff *diff)
{
    struct stage stage = {.model = model, .diff = diff, .now_ms = now_ms};
    bool staged;
    int error;

    memset(diff, 0, sizeof(*diff));
    error = hb_model_check(model, config, diff);
    if (error != 0)
        return error;
    stage.pools = calloc(config->pools_count + 1, sizeof(*stage.pools));
    stage.services = calloc(config->services_count + 1, sizeof(*stage.services));
    stage.pool_at = calloc(config->pools_count + 1, sizeof(*stage.pool_at));
    staged = stage.pools && stage.services && stage.pool_at && index_known(&stage);
    for (uint32_t p = 0; staged && p < config->pools_count; p++)
        staged = stage_pool(&stage, config, p);
    staged = staged && stage_services(&stage, config);
    if (!staged) {
        if (stage.pools != NULL)
            unstage(&stage);
        free(stage.pools);
        hb_services_free(stage.services, config->services_count);
        free(stage.pool_at);
        free(stage.known);
        if (diff->error[0] != '\0')
            return -ENOSPC;
        snprintf(diff->error, sizeof(diff->error), "not enough memory for the configuration");
        return -ENOMEM;
    }
    find_pools(&stage, config);
    commit_services(&stage, config);
    commit_pools(&stage, config);
    free(stage.pool_at);
    free(stage.known);
    free(model->pools);
    hb_services_free(model->services, model->services_count);
    model->pools = stage.pools;
    model->pools_count = stage.pools_count;
    number_pools(model);
    model->services = stage.services;
    model->services_count = config->services_count;
    hb_model_index_services(model);
    model->hash_key = config->hash_key;
    model->table_seed = config->table_seed;
    model->tunnel_source = config->tunnel_source;
    model->tunnel_source6 = config->tunnel_source6;
    model->icmp = config->icmp;
    model->tunnel_prefix = config->tunnel_prefix;
    model->tunnel_prefix6 = config->tunnel_prefix6;
    model->settle_after_ms = config->settle_after_ms;
    model->maintenance = config->maintenance;
    model->punt_rate = config->punt_rate;
    hb_model_touch(model);
    return 0;
}
