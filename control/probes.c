/* SPDX-License-Identifier: BSD-3-Clause */
#include "probes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "health/tunnel.h"
#include "log.h"

#define TUNNELS_RETRY_MS 10000

#define BUCKETS 4096 /* of the hash table of probes */

/* One way of checking, for all pools that have it. Probes point to it. */
struct check {
    struct check *next;
    struct hb_health_config config;
    uint32_t probes;
};

struct hb_probe {
    struct hb_probes *probes;
    struct hb_probe *next; /* in its bucket */
    struct hb_health_target *target;
    struct hb_address address;
    struct check *check;
    char pool[HB_NAME_SIZE]; /* through the tunnel only, else "" */
    uint32_t tunnel;         /* its number, 0: none */
    struct hb_model_backend *sharers;
};

struct hb_probes {
    struct hb_health *health;
    struct hb_model *model;
    hb_probes_changed changed;
    void *context;
    struct check *checks;
    struct hb_probe *bucket[BUCKETS];
    struct hb_tunnels *tunnels; /* NULL: not needed yet, or not possible */
    uint64_t tunnels_tried_ms;
    char tunnels_problem[192];
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

/* ---- checks and probes ---- */

static struct check *find_check(struct hb_probes *probes, const struct hb_health_config *config)
{
    struct check *check = probes->checks;

    while (check != NULL && !hb_health_alike(&check->config, config))
        check = check->next;
    return check;
}

static struct check *claim_check(struct hb_probes *probes, const struct hb_health_config *config)
{
    struct check *check = find_check(probes, config);

    if (check == NULL) {
        check = calloc(1, sizeof(*check));
        if (check == NULL)
            return NULL;
        check->config = *config;
        check->next = probes->checks;
        probes->checks = check;
    }
    check->probes++;
    return check;
}

static void release_check(struct hb_probes *probes, struct check *check)
{
    struct check **link = &probes->checks;

    if (--check->probes > 0)
        return;
    while (*link != check)
        link = &(*link)->next;
    *link = check->next;
    free(check);
}

/* FNV-1a over the address: a server has few probes. */
static struct hb_probe **bucket_of(struct hb_probes *probes, const struct hb_address *address)
{
    uint32_t hash = UINT32_C(2166136261);

    for (size_t i = 0; i < sizeof(address->bytes); i++)
        hash = (hash ^ address->bytes[i]) * UINT32_C(16777619);
    return &probes->bucket[hash % BUCKETS];
}

static const char *pool_part(const struct hb_model_pool *pool)
{
    return pool->health.via == HB_VIA_TUNNEL ? pool->name : "";
}

static bool fits(const struct hb_probe *probe, const struct hb_model_pool *pool,
                 const struct hb_address *address)
{
    return hb_address_compare(&probe->address, address) == 0 &&
           hb_health_alike(&probe->check->config, &pool->health) &&
           strcmp(probe->pool, pool_part(pool)) == 0;
}

static void free_probe(struct hb_probe *probe)
{
    struct hb_probes *probes = probe->probes;

    hb_health_remove(probe->target); /* before its check, which the target reads */
    if (probe->tunnel != 0)
        hb_tunnels_release(probes->tunnels, probe->tunnel);
    if (probe->check != NULL)
        release_check(probes, probe->check);
    free(probe);
}

void hb_probes_close(struct hb_probes *probes)
{
    if (probes == NULL)
        return;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        while (probes->bucket[i] != NULL) {
            struct hb_probe *probe = probes->bucket[i];

            probes->bucket[i] = probe->next;
            for (struct hb_model_backend *b = probe->sharers; b != NULL; b = b->probe_next)
                b->probe = NULL;
            free_probe(probe);
        }
    }
    hb_health_close(probes->health);
    hb_tunnels_close(probes->tunnels);
    free(probes);
}

/* ---- the way through the tunnel ---- */

/* Opened when the first probe needs it; tried again now and then, and after each reload. */
static bool have_tunnels(struct hb_probes *probes)
{
    uint64_t now_ms = hb_now_ms();
    char problem[sizeof(probes->tunnels_problem)];

    if (probes->tunnels != NULL)
        return true;
    if (probes->tunnels_tried_ms != 0 && now_ms - probes->tunnels_tried_ms < TUNNELS_RETRY_MS)
        return false;
    probes->tunnels_tried_ms = now_ms;
    probes->tunnels = hb_tunnels_open(problem, sizeof(problem));
    if (probes->tunnels != NULL) {
        probes->tunnels_problem[0] = '\0';
        return true;
    }
    if (strcmp(problem, probes->tunnels_problem) != 0)
        hb_log(HB_LOG_ERROR, "%s", problem);
    memcpy(probes->tunnels_problem, problem, sizeof(problem));
    return false;
}

/* From this machine to the VIP. Answers come back to the address that leads to the backend, if it
 * is of the VIP's family. */
static bool find_ends(const struct hb_model_backend *backend, const struct hb_address *vip,
                      struct hb_check_way *way, char *problem, size_t size)
{
    struct hb_address own = hb_tunnels_source(vip);
    char text[HB_ADDRESS_TEXT];

    /* The kernel would keep such a packet to itself, and somebody here might answer it. */
    if (hb_address_compare(&own, vip) == 0) {
        snprintf(problem, size,
                 "%s is an address of this machine, so nothing to it ever leaves; remove it here",
                 hb_address_print(vip, text));
        return false;
    }
    way->to = *vip;
    way->from = backend->hop.source.family == vip->family ? backend->hop.source : own;
    return true;
}

/* Before each probe through a tunnel: its headers follow the backend's. */
static bool prepare(void *context, struct hb_check_way *way, char *problem, size_t size)
{
    struct hb_probe *probe = context;
    const struct hb_model_backend *backend = probe->sharers;
    struct hb_probes *probes = probe->probes;

    if (backend->rewrite.size == 0) {
        snprintf(problem, size, "no tunnel yet: %s",
                 backend->problem[0] ? backend->problem : "its next hop is not known");
        return false;
    }
    if (!have_tunnels(probes)) {
        snprintf(problem, size, "%s", probes->tunnels_problem);
        return false;
    }
    if (probe->tunnel == 0)
        probe->tunnel = hb_tunnels_claim(probes->tunnels);
    if (probe->tunnel == 0) {
        snprintf(problem, size, "all %u tunnels for checks are taken", HB_BACKENDS_MAX);
        return false;
    }
    if (!hb_tunnels_set(probes->tunnels, probe->tunnel, backend->hop.ifindex, &backend->rewrite,
                        problem, size) ||
        !find_ends(backend, &probe->check->config.vip, way, problem, size))
        return false;
    way->mark = hb_tunnels_mark(probe->tunnel);
    return true;
}

/* ---- results ---- */

/* "port 80", "http port 80 through the tunnel to 192.0.2.10", "icmp", ... */
static void print_title(const struct hb_health_config *config, char *text, size_t size)
{
    char vip[HB_ADDRESS_TEXT], port[16] = "";
    bool plain = config->type == HB_HEALTH_TCP;

    if (hb_health_type_has_port(config->type))
        snprintf(port, sizeof(port), "%sport %u", plain ? "" : " ", config->port);
    snprintf(text, size, "%s%s%s%s", plain ? "" : hb_health_type_name(config->type), port,
             config->via == HB_VIA_TUNNEL ? " through the tunnel to " : "",
             config->via == HB_VIA_TUNNEL ? hb_address_print(&config->vip, vip) : "");
}

static void note_result(struct hb_model_backend *backend, const struct hb_health_config *config,
                        const struct hb_probe_result *result)
{
    char title[96];

    print_title(config, title, sizeof(title));
    snprintf(backend->reason, sizeof(backend->reason), "%s: %s", title,
             result->detail != NULL ? result->detail : hb_probe_reason_text(result->reason));
    if (result->success || result->reason == HB_PROBE_LOCAL_ERROR)
        return;
    memcpy(backend->last_failure, backend->reason, sizeof(backend->last_failure));
    backend->last_failure_ms = result->started_ms;
}

/* Whether a good result may not bring the backend back yet. Damping never leaves a pool without
 * anybody: one that falls now and then is better than none. */
static bool is_held(const struct hb_model_pool *pool, struct hb_model_backend *backend,
                    uint64_t now_ms)
{
    const struct hb_damping_config *config = &pool->health.damping;
    size_t used = strlen(backend->reason);

    if (backend->state.health != HB_BACKEND_FAILED ||
        !hb_damping_holds(&backend->damping, config, now_ms) || pool->usable == 0)
        return false;
    snprintf(backend->reason + used, sizeof(backend->reason) - used,
             "; held down for %u s more because it fell too often",
             (unsigned)(hb_damping_left_ms(&backend->damping, config, now_ms) / 1000 + 1));
    return true;
}

static void apply_result(struct hb_probe *probe, struct hb_model_backend *backend,
                         const struct hb_probe_result *result)
{
    struct hb_model_pool *pool = &probe->probes->model->pools[backend->pool];
    enum hb_backend_health before = backend->state.health;
    uint32_t rise = pool->health.rise;
    uint64_t now_ms = hb_now_ms();
    bool changed;

    if (result->reason == HB_PROBE_UNSURE)
        return; /* the last reason still holds */
    note_result(backend, &probe->check->config, result);
    if (result->reason == HB_PROBE_LOCAL_ERROR)
        return; /* says nothing about the backend */
    if (result->success && is_held(pool, backend, now_ms))
        rise = UINT32_MAX; /* it is counted, and decides nothing yet */
    changed = hb_backend_state_apply(
        &backend->state, result->success ? HB_EVENT_PROBE_SUCCEEDED : HB_EVENT_PROBE_FAILED, rise,
        pool->health.fall, result->started_ms, now_ms);
    if (before == HB_BACKEND_UP && backend->state.health == HB_BACKEND_FAILED)
        hb_damping_fall(&backend->damping, &pool->health.damping, now_ms);
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

/* ---- who takes part in which probe ---- */

static struct hb_probe *start_probe(struct hb_probes *probes, const struct hb_model_pool *pool,
                                    const struct hb_address *address)
{
    struct hb_probe *probe = calloc(1, sizeof(*probe));
    struct hb_probe **bucket = bucket_of(probes, address);

    if (probe == NULL)
        return NULL;
    probe->probes = probes;
    probe->address = *address;
    snprintf(probe->pool, sizeof(probe->pool), "%s", pool_part(pool));
    probe->check = claim_check(probes, &pool->health);
    if (probe->check != NULL)
        probe->target =
            hb_health_add(probes->health, address, &probe->check->config,
                          pool->health.via == HB_VIA_TUNNEL ? prepare : NULL, on_result, probe);
    if (probe->target == NULL) {
        free_probe(probe);
        return NULL;
    }
    probe->next = *bucket;
    *bucket = probe;
    return probe;
}

static void end_probe(struct hb_probes *probes, struct hb_probe *probe)
{
    struct hb_probe **link = bucket_of(probes, &probe->address);

    while (*link != probe)
        link = &(*link)->next;
    *link = probe->next;
    free_probe(probe);
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

static struct hb_probe *find_probe(struct hb_probes *probes, const struct hb_model_pool *pool,
                                   const struct hb_address *address)
{
    struct hb_probe *probe = *bucket_of(probes, address);

    while (probe != NULL && !fits(probe, pool, address))
        probe = probe->next;
    return probe;
}

static bool sync_backend(struct hb_probes *probes, const struct hb_model_pool *pool,
                         struct hb_model_backend *backend)
{
    const struct hb_health_config *config = &pool->health;
    struct hb_probe *probe = backend->probe;

    backend->state.assumed = hb_health_only_assumes(config);
    if (probe != NULL && fits(probe, pool, &backend->address))
        return true;
    if (probe != NULL)
        backend->state.successes = backend->state.failures = 0;
    hb_probes_leave(probes, backend);
    if (config->type == HB_HEALTH_NONE)
        return true;
    if (config->port == 0 && hb_health_type_has_port(config->type)) {
        snprintf(backend->reason, sizeof(backend->reason),
                 "no port to probe: no service uses the pool; set health.port");
        return true;
    }
    probe = find_probe(probes, pool, &backend->address);
    if (probe == NULL)
        probe = start_probe(probes, pool, &backend->address);
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

    probes->tunnels_tried_ms = 0;
    for (uint32_t p = 0; p < probes->model->pools_count; p++) {
        const struct hb_model_pool *pool = &probes->model->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++)
            failed += !sync_backend(probes, pool, pool->backends[b]);
    }
    return failed;
}
