/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What becomes of live flows: for every service, and every backend of the pool that serves it now,
 * the part of the flows that stay. preview.h has the rule.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "preview.h"

/* Of the slots of each backend (by its old id): those that lead to the same address in the new
 * table of `to`. NULL when the tables cannot be laid beside each other (*error 0), or without
 * memory. */
static uint32_t *count_staying(const struct hb_preview_pool *from, const struct hb_preview_pool *to,
                               int *error)
{
    const struct hb_model_pool *before = from->before;
    uint16_t *id_in_to;
    uint32_t *staying;

    *error = 0;
    if (before->owner == NULL || to->owner == NULL || before->slots != to->slots)
        return NULL;
    id_in_to = calloc(HB_BACKENDS_MAX + 1, sizeof(*id_in_to));
    staying = calloc(HB_BACKENDS_MAX + 1, sizeof(*staying));
    if (id_in_to == NULL || staying == NULL) {
        *error = -ENOMEM;
        free(staying);
        staying = NULL;
        goto free_ids;
    }
    for (uint32_t b = 0; b < before->backends_count; b++) {
        const struct hb_model_backend *backend = before->backends[b];
        const struct hb_preview_backend *same = hb_preview_backend_at(to, &backend->address);

        if (same != NULL)
            id_in_to[backend->id] = (uint16_t)same->id;
    }
    for (uint32_t s = 0; s < before->slots; s++)
        staying[before->owner[s]] += id_in_to[before->owner[s]] == to->owner[s];
free_ids:
    free(id_in_to);
    return staying;
}

/* The part of a backend's flows that the tables lead back to it when they are selected anew. */
static double part_reselected(const struct hb_preview_backend *backend,
                              const struct hb_preview_pool *to, const uint32_t *staying)
{
    const struct hb_preview_backend *same = hb_preview_backend_at(to, &backend->before->address);

    if (to->slots == 0)
        return 0.0;
    /* One that owns no slot now (it drains) has flows from any of them. */
    if (staying != NULL && backend->before->slots > 0)
        return (double)staying[backend->before->id] / (double)backend->before->slots;
    return same ? (double)same->slots / (double)to->slots : 0.0;
}

/* Flow entries that name it decide: it is up or drains. */
static bool serves(const struct hb_preview_backend *backend)
{
    return backend->before != NULL && backend->before->rewrite.size > 0 &&
           backend->before->state.health == HB_BACKEND_UP;
}

static void note_part(struct hb_preview_backend *backend, double part)
{
    if (part < backend->kept_least)
        backend->kept_least = part;
    if (part > backend->kept_most)
        backend->kept_most = part;
}

/* What one service of pool `from` means for its flows, when `to` serves it in future (NULL: nobody
 * does). */
static int follow_service(const struct hb_preview *preview, struct hb_preview_pool *from,
                          const struct hb_preview_pool *to)
{
    bool entries_decide = from == to && !preview->reseeded;
    uint32_t *staying = NULL;
    int error = 0;

    if (to != NULL && !preview->reseeded)
        staying = count_staying(from, to, &error);
    for (uint32_t b = 0; b < from->backends_count && error == 0; b++) {
        struct hb_preview_backend *backend = &from->backends[b];

        if (!serves(backend))
            continue;
        if (to == NULL)
            note_part(backend, 0.0);
        else if (entries_decide && backend->after != NULL)
            note_part(backend, 1.0);
        else
            note_part(backend, part_reselected(backend, to, staying));
    }
    free(staying);
    return error;
}

static int compare_services(const void *a, const void *b)
{
    const struct hb_service_config *left = *(const struct hb_service_config *const *)a;
    const struct hb_service_config *right = *(const struct hb_service_config *const *)b;
    int order = hb_address_compare(&left->vip, &right->vip);

    if (order == 0)
        order = (int)left->prefix_length - (int)right->prefix_length;
    if (order == 0)
        order = (int)left->protocol - (int)right->protocol;
    if (order == 0)
        order = (int)left->port - (int)right->port;
    return order ? order : (int)left->port_last - (int)right->port_last;
}

static int follow_services(struct hb_preview *preview)
{
    const struct hb_config *config = preview->config;
    const struct hb_service_config **sorted = calloc(config->services_count + 1, sizeof(*sorted));
    int error = 0;

    if (sorted == NULL)
        return -ENOMEM;
    for (uint32_t s = 0; s < config->services_count; s++)
        sorted[s] = &config->services[s];
    qsort(sorted, config->services_count, sizeof(*sorted), compare_services);
    for (uint32_t s = 0; s < preview->model->services_count && error == 0; s++) {
        const struct hb_model_service *service = &preview->model->services[s];
        const struct hb_service_config wanted = {.vip = service->vip,
                                                 .prefix_length = service->prefix_length,
                                                 .protocol = service->protocol,
                                                 .port = service->port,
                                                 .port_last = service->port_last};
        const struct hb_service_config *key = &wanted, **same;
        struct hb_preview_pool *from =
            hb_preview_pool_named(preview, preview->model->pools[service->pool].name);

        same = bsearch(&key, sorted, config->services_count, sizeof(*sorted), compare_services);
        error = follow_service(
            preview, from,
            same ? hb_preview_pool_named(preview, config->pools[(*same)->pool].name) : NULL);
    }
    free(sorted);
    return error;
}

static void add_flows(struct hb_preview_flows *to, const struct hb_preview_flows *flows)
{
    to->live += flows->live;
    to->kept += flows->kept;
    to->broken += flows->broken;
    to->unsure += flows->unsure;
}

/* Rounded so that nothing is promised: what may go either way is unsure. */
static void count_flows(struct hb_preview_backend *backend, uint64_t live)
{
    struct hb_preview_flows *flows = &backend->flows;
    double most = (double)live * backend->kept_most;

    flows->live = live;
    flows->kept = (uint64_t)((double)live * backend->kept_least);
    flows->broken = live - (uint64_t)most - ((double)(uint64_t)most < most);
    flows->unsure = live - flows->kept - flows->broken;
}

int hb_preview_flows(struct hb_preview *preview, hb_flows_of flows, void *context)
{
    int error;

    preview->flows_known = flows != NULL;
    for (uint32_t p = 0; p < preview->pools_count; p++) {
        for (uint32_t b = 0; b < preview->pools[p].backends_count; b++) {
            preview->pools[p].backends[b].kept_least = 1.0;
            preview->pools[p].backends[b].kept_most = 0.0;
        }
    }
    error = follow_services(preview);
    for (uint32_t p = 0; p < preview->pools_count && error == 0; p++) {
        struct hb_preview_pool *pool = &preview->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++) {
            struct hb_preview_backend *backend = &pool->backends[b];
            bool has_flows = backend->kept_least <= backend->kept_most;

            if (!has_flows)
                backend->kept_most = 1.0;
            else if (flows != NULL)
                count_flows(backend, flows(context, backend->before->id));
            add_flows(&pool->flows, &backend->flows);
        }
        add_flows(&preview->flows, &pool->flows);
    }
    return error;
}
