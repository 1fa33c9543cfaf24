/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * POST /v1/backends/NAME/drain and /undrain (docs/api.md).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api_internal.h"

/* --- drain --- */

/* Notes the ids of backends of this name, in `only` or in all pools. Returns how many. */
static uint32_t choose(const struct hb_model *model, const char *name,
                       const struct hb_model_pool *only, bool draining, bool *chosen, bool *changed)
{
    uint32_t count = 0;

    for (uint32_t p = 0; p < model->pools_count; p++) {
        const struct hb_model_pool *pool = &model->pools[p];

        if (only != NULL && only != pool)
            continue;
        for (uint32_t b = 0; b < pool->backends_count; b++) {
            const struct hb_model_backend *backend = pool->backends[b];

            if (strcmp(backend->name, name) != 0)
                continue;
            chosen[backend->id] = true;
            changed[backend->id] = backend->state.draining != draining;
            count++;
        }
    }
    return count;
}

static json_t *describe_chosen(const struct hb_control *control, const bool *chosen,
                               const bool *changed)
{
    const struct hb_model *model = control->model;
    json_t *backends = json_array();

    for (uint32_t p = 0; p < model->pools_count; p++) {
        const struct hb_model_pool *pool = &model->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++) {
            const struct hb_model_backend *backend = pool->backends[b];
            json_t *object;

            if (!chosen[backend->id])
                continue;
            object = json_pack("{s:s, s:s, s:b, s:o}", "pool", pool->name, "name", backend->name,
                               "changed", changed[backend->id], "flows",
                               hb_json_count(hb_control_backend_flows(control, backend->id)));
            hb_json_set_moves(object, pool);
            json_array_append_new(backends, object);
        }
    }
    return json_pack("{s:o}", "backends", backends);
}

static bool any(const bool *flags)
{
    for (uint32_t id = 0; id <= HB_BACKENDS_MAX; id++) {
        if (flags[id])
            return true;
    }
    return false;
}

static void refuse_unknown(struct hb_api_call *call, const char *pool)
{
    if (pool != NULL)
        hb_api_refuse(call, 404,
                      "no backend of pool \"%s\" is named \"%s\"; 'halbachctl backends' lists them",
                      pool, call->argument);
    else
        hb_api_refuse(call, 404, "no backend is named \"%s\"; 'halbachctl backends' lists them",
                      call->argument);
}

static void set_draining(struct hb_api_call *call, bool draining)
{
    struct hb_control *control = call->control;
    const char *pool_name = hb_api_argument(call, "pool");
    const struct hb_model_pool *pool = pool_name ? hb_model_pool(control->model, pool_name) : NULL;
    bool *chosen = calloc(2 * (HB_BACKENDS_MAX + 1), sizeof(*chosen));
    bool *changed;
    int error = 0;

    if (chosen == NULL) {
        hb_api_answer(call, 500, NULL);
        return;
    }
    changed = chosen + HB_BACKENDS_MAX + 1;
    if (pool_name != NULL && pool == NULL) {
        hb_api_refuse(call, 404, "no pool is named \"%s\"; 'halbachctl status' lists them",
                      pool_name);
        goto free_chosen;
    }
    if (choose(control->model, call->argument, pool, draining, chosen, changed) == 0) {
        refuse_unknown(call, pool_name);
        goto free_chosen;
    }
    if (any(changed))
        error = hb_control_set_draining(control, chosen, draining);
    else
        hb_control_publish(control); /* so that no moves of an earlier change are told */
    if (error != 0)
        hb_api_refuse(call, 500,
                      "nothing was changed, because it could not be remembered: %s: %s; check the "
                      "folder's mode and free space",
                      control->options.state, strerror(-error));
    else
        hb_api_answer_applied(call, describe_chosen(control, chosen, changed));
free_chosen:
    free(chosen);
}

void hb_api_post_drain(struct hb_api_call *call)
{
    set_draining(call, true);
}

void hb_api_post_undrain(struct hb_api_call *call)
{
    set_draining(call, false);
}
