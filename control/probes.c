/* SPDX-License-Identifier: BSD-3-Clause */
#include "probes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"

struct hb_probe {
    struct hb_probes *probes;
    struct hb_probe *next;
    struct hb_health_target *target;
    struct hb_address address;
    struct hb_health_config config;
    struct hb_model_backend *sharers;
};

struct hb_probes {
    struct hb_health *health;
    struct hb_model *model;
    hb_probes_changed changed;
    void *context;
    struct hb_probe *list;
};

struct hb_probes *hb_probes_open(struct event_base *base, struct hb_model *model,
                                 hb_probes_changed changed, void *context)
{
    struct hb_probes *probes = calloc(1, sizeof(*probes));

    if (probes == NULL)
        return NULL;
    probes->model = model;
    probes->changed = changed;
    probes->context = context;
    probes->health = hb_health_open(base);
    if (probes->health == NULL) {
        free(probes);
        return NULL;
    }
    return probes;
}

void hb_probes_close(struct hb_probes *probes)
{
    if (probes == NULL)
        return;
    while (probes->list != NULL) {
        struct hb_probe *probe = probes->list;

        probes->list = probe->next;
        for (struct hb_model_backend *b = probe->sharers; b != NULL; b = b->probe_next)
            b->probe = NULL;
        hb_health_remove(probe->target);
        free(probe);
    }
    hb_health_close(probes->health);
    free(probes);
}

static bool is_alike(const struct hb_probe *probe, const struct hb_address *address,
                     const struct hb_health_config *config)
{
    return hb_address_compare(&probe->address, address) == 0 &&
           probe->config.type == config->type && probe->config.port == config->port &&
           probe->config.interval_ms == config->interval_ms &&
           probe->config.timeout_ms == config->timeout_ms;
}

static void apply_result(struct hb_probe *probe, struct hb_model_backend *backend,
                         const struct hb_probe_result *result)
{
    struct hb_model_pool *pool = &probe->probes->model->pools[backend->pool];
    enum hb_backend_health before = backend->state.health;
    bool changed;

    snprintf(backend->reason, sizeof(backend->reason), "port %u: %s", probe->config.port,
             hb_probe_reason_text(result->reason));
    if (result->reason == HB_PROBE_LOCAL_ERROR)
        return; /* says nothing about the backend */
    changed = hb_backend_state_apply(
        &backend->state, result->success ? HB_EVENT_PROBE_SUCCEEDED : HB_EVENT_PROBE_FAILED,
        pool->health.rise, pool->health.fall, result->started_ms, hb_now_ms());
    if (changed || before != backend->state.health)
        probe->probes->changed(probe->probes->context, pool, backend);
}

static void on_result(void *context, const struct hb_probe_result *result)
{
    struct hb_probe *probe = context;

    for (struct hb_model_backend *backend = probe->sharers; backend != NULL;
         backend = backend->probe_next)
        apply_result(probe, backend, result);
}

static struct hb_probe *start_probe(struct hb_probes *probes, const struct hb_address *address,
                                    const struct hb_health_config *config)
{
    struct hb_probe *probe = calloc(1, sizeof(*probe));

    if (probe == NULL)
        return NULL;
    probe->probes = probes;
    probe->address = *address;
    probe->config = *config;
    probe->target = hb_health_add(probes->health, address, config, on_result, probe);
    if (probe->target == NULL) {
        free(probe);
        return NULL;
    }
    probe->next = probes->list;
    probes->list = probe;
    return probe;
}

static void end_probe(struct hb_probes *probes, struct hb_probe *probe)
{
    struct hb_probe **link = &probes->list;

    while (*link != probe)
        link = &(*link)->next;
    *link = probe->next;
    hb_health_remove(probe->target);
    free(probe);
}

void hb_probes_leave(struct hb_probes *probes, struct hb_model_backend *backend)
{
    struct hb_probe *probe = backend->probe;
    struct hb_model_backend **link;

    if (probe == NULL)
        return;
    link = &probe->sharers;
    while (*link != backend)
        link = &(*link)->probe_next;
    *link = backend->probe_next;
    backend->probe = NULL;
    backend->probe_next = NULL;
    if (probe->sharers == NULL)
        end_probe(probes, probe);
}

static bool sync_backend(struct hb_probes *probes, const struct hb_model_pool *pool,
                         struct hb_model_backend *backend)
{
    const struct hb_health_config *config = &pool->health;
    struct hb_probe *probe = backend->probe;

    if (probe != NULL && is_alike(probe, &backend->address, config))
        return true;
    hb_probes_leave(probes, backend);
    if (config->type == HB_HEALTH_NONE)
        return true;
    if (config->port == 0) {
        snprintf(backend->reason, sizeof(backend->reason),
                 "no port to probe: no service uses the pool; set health.port");
        return true;
    }
    for (probe = probes->list; probe != NULL; probe = probe->next) {
        if (is_alike(probe, &backend->address, config))
            break;
    }
    if (probe == NULL)
        probe = start_probe(probes, &backend->address, config);
    if (probe == NULL) {
        hb_log(HB_LOG_ERROR,
               "pool %s: cannot start probing %s: not enough memory; "
               "'halbachctl reload' tries again",
               pool->name, backend->identity);
        return false;
    }
    backend->probe = probe;
    backend->probe_next = probe->sharers;
    probe->sharers = backend;
    return true;
}

unsigned hb_probes_sync(struct hb_probes *probes)
{
    unsigned failed = 0;

    for (uint32_t p = 0; p < probes->model->pools_count; p++) {
        const struct hb_model_pool *pool = &probes->model->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++)
            failed += !sync_backend(probes, pool, pool->backends[b]);
    }
    return failed;
}
