/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first configuration, with what is remembered of the time before. Reloads are in
 * control_reload.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_server.h"
#include "clock.h"
#include "control.h"
#include "log.h"
#include "notify.h"
#include "slot_files.h"
#include "take_over.h"

static void remember_owners(struct hb_model_pool *pool)
{
    bool *owns = calloc(HB_BACKENDS_MAX + 1, sizeof(*owns));

    for (uint32_t slot = 0; owns != NULL && slot < pool->history.slots; slot++)
        owns[pool->history.owner[slot]] = true;
    for (uint32_t b = 0; b < pool->backends_count; b++)
        pool->backends[b]->remembered = owns == NULL || owns[pool->backends[b]->id];
    free(owns);
}

/* From what the dataplane serves where its generation carries it, else from the files. */
static void take_over_slots(struct hb_control *control, const void *blob)
{
    struct hb_model *model = control->model;

    hb_slot_files_prune(control->slots, model);
    for (uint32_t p = 0; p < model->pools_count; p++) {
        int error = hb_slot_file_load(control->slots, &model->pools[p], model->table_seed);

        if (error != 0 && error != -ENOENT)
            hb_log(HB_LOG_WARNING,
                   "pool %s: the file with the owners of its slots is not usable (%s); it starts "
                   "without it",
                   model->pools[p].name, strerror(-error));
    }
    if (blob != NULL)
        hb_take_over_tables(model, blob);
    for (uint32_t p = 0; p < model->pools_count; p++)
        remember_owners(&model->pools[p]);
}

void hb_control_backend_left(void *context, struct hb_model_backend *backend)
{
    struct hb_control *control = context;

    if (control->probes != NULL)
        hb_probes_leave(control->probes, backend);
    if (backend->watched)
        hb_next_hops_unwatch(control->hops, &backend->address);
    control->state_dirty = true;
}

void hb_control_sync(struct hb_control *control)
{
    for (uint32_t p = 0; p < control->model->pools_count; p++) {
        const struct hb_model_pool *pool = &control->model->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++) {
            struct hb_model_backend *backend = pool->backends[b];

            if (!backend->watched)
                backend->watched = hb_next_hops_watch(control->hops, &backend->address) == 0;
            hb_next_hops_get(control->hops, &backend->address, &backend->hop);
        }
    }
    hb_control_sync_nat(control);
    hb_probes_sync(control->probes);
}

bool hb_control_start_model(struct hb_control *control, const void *blob)
{
    const struct hb_state *known = control->known_valid ? &control->known : NULL;
    struct hb_model *model = control->model;
    struct hb_model_diff diff;

    event_del(control->start_timer);
    if (known != NULL)
        hb_take_over_state_ids(model, known);
    if (blob != NULL)
        hb_take_over_blob_ids(model, blob);
    if (hb_model_apply(model, control->first_config, hb_now_ms(), &diff) != 0) {
        hb_log(HB_LOG_ERROR, "%s: %s", control->options.config, diff.error);
        return false;
    }
    hb_model_release_unused(model);
    hb_take_over_backends(model, blob, known, true, hb_now_ms(), hb_now_unix_ms());
    hb_model_set_clock(model, hb_now_ms(), hb_now_unix_ms());
    take_over_slots(control, blob);
    if (known != NULL && known->withdrawn) {
        control->maintenance.withdrawn = true;
        control->maintenance.since_unix = known->withdrawn_since_unix;
    }
    hb_api_configure(control->api, &control->first_config->api);
    hb_control_accept_first(control, control->first_config);
    hb_config_free(control->first_config);
    control->first_config = NULL;
    hb_state_clear(&control->known);
    control->started = true;
    hb_control_sync(control);
    hb_events_add(control->events, HB_NEWS_CONTROL, NULL, NULL, "start of control");
    hb_control_publish(control);
    hb_control_save(control);
    hb_api_start(control->api);
    hb_notify("READY=1");
    return true;
}
