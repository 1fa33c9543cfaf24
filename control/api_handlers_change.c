/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * POST /v1/backends/NAME/drain, /undrain and /weight (docs/api.md).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api_internal.h"
#include "duration.h"

/* --- which backends --- */

/* What a request is about: all backends of a name, in one pool or in all. By id. */
struct choice {
    bool *chosen;
    bool *changed;
};

static void clear_choice(struct choice *choice)
{
    free(choice->chosen);
    free(choice->changed);
}

/* Answers for itself when it returns false. */
static bool choose(struct hb_api_call *call, struct choice *choice)
{
    const struct hb_model *model = call->control->model;
    const char *only = hb_api_argument(call, "pool");
    uint32_t count = 0;

    *choice = (struct choice){calloc(HB_BACKENDS_MAX + 1, sizeof(bool)),
                              calloc(HB_BACKENDS_MAX + 1, sizeof(bool))};
    if (choice->chosen == NULL || choice->changed == NULL) {
        hb_api_answer(call, 500, NULL);
    } else if (only != NULL && hb_model_pool(model, only) == NULL) {
        hb_api_refuse(call, 404, "no pool is named \"%s\"; 'halbachctl status' lists them", only);
    } else {
        for (uint32_t p = 0; p < model->pools_count; p++) {
            const struct hb_model_pool *pool = &model->pools[p];

            for (uint32_t b = 0; b < pool->backends_count; b++) {
                if (strcmp(pool->backends[b]->name, call->argument) != 0 ||
                    (only != NULL && strcmp(only, pool->name) != 0))
                    continue;
                choice->chosen[pool->backends[b]->id] = true;
                count++;
            }
        }
        if (count > 0)
            return true;
        hb_api_refuse(
            call, 404, "no backend%s%s%s is named \"%s\"; 'halbachctl backends' lists them",
            only ? " of pool \"" : "", only ? only : "", only ? "\"" : "", call->argument);
    }
    clear_choice(choice);
    return false;
}

typedef bool (*would_change)(const struct hb_model_backend *backend, const void *order);

static bool note_changed(const struct hb_model *model, struct choice *choice, would_change would,
                         const void *order)
{
    bool any = false;

    for (uint32_t p = 0; p < model->pools_count; p++) {
        for (uint32_t b = 0; b < model->pools[p].backends_count; b++) {
            const struct hb_model_backend *backend = model->pools[p].backends[b];

            choice->changed[backend->id] = choice->chosen[backend->id] && would(backend, order);
            any = any || choice->changed[backend->id];
        }
    }
    return any;
}

static json_t *describe_chosen(const struct hb_control *control, const struct choice *choice)
{
    const struct hb_model *model = control->model;
    json_t *backends = json_array();

    for (uint32_t p = 0; p < model->pools_count; p++) {
        const struct hb_model_pool *pool = &model->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++) {
            const struct hb_model_backend *backend = pool->backends[b];
            json_t *object;

            if (!choice->chosen[backend->id])
                continue;
            object =
                json_pack("{s:s, s:s, s:b, s:o, s:i, s:o}", "pool", pool->name, "name",
                          backend->name, "changed", choice->changed[backend->id], "flows",
                          hb_json_count(hb_control_backend_flows(control, backend->id)), "weight",
                          backend->weight, "drain", hb_json_drain(control, pool, backend));
            hb_json_set_moves(object, pool);
            json_array_append_new(backends, object);
        }
    }
    return json_pack("{s:o}", "backends", backends);
}

/* --- guard --- */

/* Refuses to take the chosen ones away from a pool that would fall under its minimum by it.
 * Answers for itself when it returns false. */
static bool guard(struct hb_api_call *call, const struct choice *choice, const char *what)
{
    const struct hb_model *model = call->control->model;
    const char *force = hb_api_argument(call, "force");
    bool *nobody;
    bool good = true;

    if (force != NULL && strcmp(force, "1") == 0)
        return true;
    nobody = calloc(HB_BACKENDS_MAX + 1, sizeof(*nobody));
    for (uint32_t p = 0; nobody != NULL && good && p < model->pools_count; p++) {
        const struct hb_model_pool *pool = &model->pools[p];
        struct hb_pool_strength now = hb_model_strength_without(pool, nobody);
        struct hb_pool_strength then = hb_model_strength_without(pool, choice->changed);

        good = then.usable >= then.minimum || then.usable == now.usable;
        if (!good)
            hb_api_refuse(call, 409,
                          "pool \"%s\" would have %u usable backend%s, and its minimum is %u; "
                          "nothing was changed. To %s all the same, use --force (force=1)",
                          pool->name, then.usable, then.usable == 1 ? "" : "s", then.minimum, what);
    }
    free(nobody);
    return good;
}

/* --- drain, undrain, weight --- */

static void refuse_to_forget(struct hb_api_call *call, int error)
{
    hb_api_refuse(call, 500,
                  "nothing was changed, because it could not be remembered: %s: %s; check the "
                  "folder's mode and free space",
                  call->control->options.state, strerror(-error));
}

/* Reads `deadline` and `at_deadline`; answers for itself when it returns false. */
static bool read_order(struct hb_api_call *call, struct hb_drain_order *order)
{
    const char *deadline = hb_api_argument(call, "deadline");
    const char *at_deadline = hb_api_argument(call, "at_deadline");

    *order = (struct hb_drain_order){.at_deadline = HB_AT_DEADLINE_REASSIGN};
    if (deadline != NULL &&
        (!hb_duration_parse(deadline, &order->deadline_ms) || order->deadline_ms == 0))
        hb_api_refuse(call, 400, "deadline is \"%s\"; expected a time such as 30s, 10m or 2h",
                      deadline);
    else if (at_deadline != NULL && deadline == NULL)
        hb_api_refuse(call, 400, "at_deadline needs a deadline; add deadline=10m");
    else if (at_deadline != NULL && !hb_at_deadline_parse(at_deadline, &order->at_deadline))
        hb_api_refuse(call, 400, "at_deadline is \"%s\"; expected keep, reassign or reset",
                      at_deadline);
    else
        return true;
    return false;
}

static bool would_drain(const struct hb_model_backend *backend, const void *order)
{
    (void)order;
    return !backend->state.draining;
}

static bool would_undrain(const struct hb_model_backend *backend, const void *order)
{
    (void)order;
    return backend->state.draining;
}

void hb_api_post_drain(struct hb_api_call *call)
{
    struct hb_control *control = call->control;
    struct hb_drain_order order;
    struct choice choice;
    int error = 0;

    if (!read_order(call, &order) || !choose(call, &choice))
        return;
    if (!note_changed(control->model, &choice, would_drain, NULL) && order.deadline_ms == 0)
        hb_control_publish_touched(control); /* so that no moves of an earlier change are told */
    else if (guard(call, &choice, "drain"))
        error = hb_control_drain(control, choice.chosen, &order);
    else
        goto clear;
    if (error != 0)
        refuse_to_forget(call, error);
    else
        hb_api_answer_applied(call, describe_chosen(control, &choice));
clear:
    clear_choice(&choice);
}

void hb_api_post_undrain(struct hb_api_call *call)
{
    struct hb_control *control = call->control;
    struct choice choice;
    int error = 0;

    if (!choose(call, &choice))
        return;
    if (note_changed(control->model, &choice, would_undrain, NULL))
        error = hb_control_undrain(control, choice.chosen);
    else
        hb_control_publish_touched(control);
    if (error != 0)
        refuse_to_forget(call, error);
    else
        hb_api_answer_applied(call, describe_chosen(control, &choice));
    clear_choice(&choice);
}

struct weight_order {
    bool set;
    uint32_t weight;
};

/* Reads `weight` or `reset`; answers for itself when it returns false. */
static bool read_weight(struct hb_api_call *call, struct weight_order *order)
{
    const char *text = hb_api_argument(call, "weight"), *reset = hb_api_argument(call, "reset");
    char *end = NULL;
    unsigned long weight = text ? strtoul(text, &end, 10) : 0;

    if (text == NULL && reset != NULL && strcmp(reset, "1") == 0) {
        *order = (struct weight_order){0};
        return true;
    }
    if (text == NULL || reset != NULL || text[0] < '0' || text[0] > '9' || *end != '\0' ||
        weight > UINT16_MAX) {
        if (text != NULL && reset == NULL)
            hb_api_refuse(call, 400, "weight is \"%s\"; expected a whole number from 0 to %u", text,
                          UINT16_MAX);
        else
            hb_api_refuse(call, 400,
                          "expected weight=N, a whole number from 0 to %u, or reset=1 for the "
                          "configured one",
                          UINT16_MAX);
        return false;
    }
    *order = (struct weight_order){true, (uint32_t)weight};
    return true;
}

static bool would_weigh(const struct hb_model_backend *backend, const void *context)
{
    const struct weight_order *order = context;

    return order->set != backend->weight_is_set || (order->set && order->weight != backend->weight);
}

/* Only a weight of 0 takes a backend away. */
static bool would_stop(const struct hb_model_backend *backend, const void *context)
{
    const struct weight_order *order = context;

    return backend->weight > 0 && (order->set ? order->weight : backend->configured_weight) == 0;
}

static bool check_weightless(struct hb_api_call *call, const struct choice *choice)
{
    const struct hb_model *model = call->control->model;

    for (uint32_t p = 0; p < model->pools_count; p++) {
        const struct hb_model_pool *pool = &model->pools[p];

        for (uint32_t b = 0; pool->algorithm == HB_ALGORITHM_JUMP && b < pool->backends_count;
             b++) {
            if (!choice->chosen[pool->backends[b]->id])
                continue;
            hb_api_refuse(call, 409,
                          "pool \"%s\" has the algorithm jump, which has no weights; drain the "
                          "backend, or use maglev",
                          pool->name);
            return false;
        }
    }
    return true;
}

void hb_api_post_weight(struct hb_api_call *call)
{
    struct hb_control *control = call->control;
    struct weight_order order;
    struct choice choice;
    int error;

    if (!read_weight(call, &order) || !choose(call, &choice))
        return;
    note_changed(control->model, &choice, would_stop, &order);
    if (!check_weightless(call, &choice) || !guard(call, &choice, "set the weight to 0"))
        goto clear;
    note_changed(control->model, &choice, would_weigh, &order);
    error = hb_control_set_weight(control, choice.chosen, order.set, order.weight);
    if (error != 0)
        refuse_to_forget(call, error);
    else
        hb_api_answer_applied(call, describe_chosen(control, &choice));
clear:
    clear_choice(&choice);
}
