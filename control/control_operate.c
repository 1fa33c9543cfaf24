/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What operators do to single backends: drain, undrain, weight. Each is in the state file before it
 * is in the table, and an error of saving leaves everything as it was: what was answered holds.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "control.h"
#include "log.h"

/* What an operator can change, to be put back. */
struct saved {
    struct hb_model_backend *backend;
    struct hb_model_pool *pool;
    struct hb_backend_state state;
    struct hb_drain drain;
    bool weight_is_set;
    uint32_t weight;
    char what[64]; /* was done to it; "": nothing */
};

struct operation {
    struct saved *saved;
    uint32_t count;
};

static bool begin(const struct hb_control *control, const bool *chosen, struct operation *operation)
{
    const struct hb_model *model = control->model;

    memset(operation, 0, sizeof(*operation));
    operation->saved = calloc(HB_BACKENDS_MAX + 1, sizeof(*operation->saved));
    for (uint32_t p = 0; operation->saved != NULL && p < model->pools_count; p++) {
        for (uint32_t b = 0; b < model->pools[p].backends_count; b++) {
            struct hb_model_backend *backend = model->pools[p].backends[b];

            if (!chosen[backend->id])
                continue;
            hb_pool_touch(&model->pools[p]);
            operation->saved[operation->count++] = (struct saved){backend,
                                                                  &model->pools[p],
                                                                  backend->state,
                                                                  backend->drain,
                                                                  backend->weight_is_set,
                                                                  backend->weight,
                                                                  ""};
        }
    }
    return operation->saved != NULL;
}

/* Saves and publishes, or takes everything back. */
static int end(struct hb_control *control, struct operation *operation)
{
    int error = hb_control_save(control);

    for (uint32_t i = 0; error != 0 && i < operation->count; i++) {
        const struct saved *saved = &operation->saved[i];

        saved->backend->state = saved->state;
        saved->backend->drain = saved->drain;
        saved->backend->weight_is_set = saved->weight_is_set;
        saved->backend->weight = saved->weight;
    }
    for (uint32_t i = 0; error == 0 && i < operation->count; i++) {
        const struct saved *saved = &operation->saved[i];

        if (saved->what[0] != '\0')
            hb_events_add(control->events, HB_NEWS_DRAIN, saved->pool->name, saved->backend->name,
                          "backend %s: %s", saved->backend->name, saved->what);
    }
    free(operation->saved);
    if (error != 0)
        return error;
    hb_control_publish_touched(control);
    hb_control_save_history(control); /* who did it outlasts a crash as well */
    return 0;
}

/* The event comes when it is remembered. */
static void tell(struct saved *saved, const char *what)
{
    snprintf(saved->what, sizeof(saved->what), "%s", what);
    hb_log(HB_LOG_NOTICE, "pool %s: backend %s (%s): %s by an operator", saved->pool->name,
           saved->backend->name, saved->backend->identity, what);
}

/* --- drain --- */

static void set_deadline(struct hb_drain *drain, const struct hb_drain_order *order)
{
    drain->at_deadline = order->at_deadline;
    drain->deadline_ms = hb_now_ms() + order->deadline_ms;
    drain->deadline_unix_ms = hb_now_unix_ms() + order->deadline_ms;
    drain->overdue = false;
}

static void drain_one(struct hb_control *control, struct saved *saved,
                      const struct hb_drain_order *order)
{
    struct hb_model_backend *backend = saved->backend;
    const struct hb_health_config *health = &saved->pool->health;
    bool news = !backend->state.draining;
    bool dated = order->deadline_ms != 0 && !backend->state.disabled;
    char text[sizeof(saved->what)];

    if (news) {
        memset(&backend->drain, 0, sizeof(backend->drain));
        backend->drain.flows_at_start = hb_control_backend_flows(control, backend->id);
        hb_backend_state_apply(&backend->state, HB_EVENT_DRAIN, health->rise, health->fall,
                               hb_now_ms(), hb_now_ms());
    }
    if (dated)
        set_deadline(&backend->drain, order);
    if (!news && !dated)
        return;
    if (dated)
        snprintf(text, sizeof(text), "%s %" PRIu64 " s from now (%s)",
                 news ? "draining, deadline" : "drain's deadline set to", order->deadline_ms / 1000,
                 hb_at_deadline_name(order->at_deadline));
    tell(saved, dated ? text : "draining");
}

int hb_control_drain(struct hb_control *control, const bool *chosen,
                     const struct hb_drain_order *order)
{
    struct operation operation;

    if (!begin(control, chosen, &operation))
        return -ENOMEM;
    for (uint32_t i = 0; i < operation.count; i++)
        drain_one(control, &operation.saved[i], order);
    return end(control, &operation);
}

int hb_control_undrain(struct hb_control *control, const bool *chosen)
{
    struct operation operation;

    if (!begin(control, chosen, &operation))
        return -ENOMEM;
    for (uint32_t i = 0; i < operation.count; i++) {
        struct saved *saved = &operation.saved[i];
        const struct hb_health_config *health = &saved->pool->health;

        if (!saved->state.draining)
            continue;
        hb_backend_state_apply(&saved->backend->state, HB_EVENT_UNDRAIN, health->rise, health->fall,
                               hb_now_ms(), hb_now_ms());
        memset(&saved->backend->drain, 0, sizeof(saved->backend->drain));
        tell(saved, "undrained");
    }
    return end(control, &operation);
}

/* --- weight --- */

int hb_control_set_weight(struct hb_control *control, const bool *chosen, bool set, uint32_t weight)
{
    struct operation operation;
    char what[64];

    if (!begin(control, chosen, &operation))
        return -ENOMEM;
    for (uint32_t i = 0; i < operation.count; i++) {
        hb_backend_set_weight(operation.saved[i].backend, set, weight);
        snprintf(what, sizeof(what), set ? "weight set to %u" : "weight as configured again (%u)",
                 operation.saved[i].backend->weight);
        tell(&operation.saved[i], what);
    }
    return end(control, &operation);
}
