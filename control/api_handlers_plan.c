/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * POST /v1/plan (docs/api.md): what the configuration in the body would change. Changes nothing:
 * not the model, not the log, not what the status says about reloads.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

#include "api_internal.h"
#include "preview_json.h"

struct lists {
    json_t *complaints, *warnings;
};

static void on_report(void *context, bool warning, const char *message)
{
    struct lists *lists = context;

    json_array_append_new(warning ? lists->warnings : lists->complaints, json_string(message));
}

/* The body, terminated, or NULL without memory. */
static char *read_body(struct hb_api_call *call, size_t *size)
{
    struct evbuffer *buffer = evhttp_request_get_input_buffer(call->http);
    char *text;

    *size = evbuffer_get_length(buffer);
    text = malloc(*size + 1);
    if (text == NULL)
        return NULL;
    evbuffer_copyout(buffer, text, *size);
    text[*size] = '\0';
    return text;
}

static uint64_t flows_of(void *context, uint32_t id)
{
    return hb_control_backend_flows(context, id);
}

/* Only if nothing speaks against it; complaints go to the list. NULL: refused, or no memory. */
static struct hb_config *read_config(struct hb_api_call *call, struct lists *lists)
{
    const char *file = hb_api_argument(call, "file");
    struct hb_config *config = NULL;
    struct hb_model_diff diff;
    size_t size;
    char *text = read_body(call, &size);

    if (text != NULL)
        config = hb_config_parse(text, size, file ? file : "plan", on_report, lists);
    free(text);
    if (config == NULL || hb_model_check(call->control->model, config, &diff) == 0)
        return config;
    on_report(lists, false, diff.error);
    hb_config_free(config);
    return NULL;
}

/* NULL without memory. */
static json_t *make_plan(struct hb_control *control, const struct hb_config *config)
{
    bool counted = hb_publisher_counters(control->publisher) != NULL;
    struct hb_preview preview;
    json_t *plan;

    /* What is about to be published anyway is not the plan's doing. */
    if (evtimer_pending(control->publish_timer, NULL))
        hb_control_publish(control);
    if (hb_preview_make(control->model, config, counted ? flows_of : NULL, control, &preview) != 0)
        return NULL;
    plan = hb_preview_json(&preview);
    hb_preview_clear(&preview);
    return plan;
}

/* Plan, complaints, or neither: no memory. */
static void answer(struct hb_api_call *call, json_t *plan, struct lists *lists)
{
    if (plan != NULL) {
        json_object_set(plan, "warnings", lists->warnings);
        hb_api_answer(call, 200, plan);
    } else if (json_array_size(lists->complaints) > 0) {
        hb_api_answer(call, 422,
                      json_pack("{s:{s:s, s:O, s:O}}", "error", "message",
                                "this configuration would be refused as a whole; mend the file "
                                "and plan again",
                                "complaints", lists->complaints, "warnings", lists->warnings));
    } else {
        hb_api_answer(call, 500, NULL);
    }
}

void hb_api_post_plan(struct hb_api_call *call)
{
    struct hb_control *control = call->control;
    struct lists lists = {json_array(), json_array()};
    struct hb_config *config = read_config(call, &lists);

    if (config != NULL && !control->dataplane.ever_connected)
        hb_api_refuse(call, 503,
                      "there are no tables to compare with, since the dataplane has not been "
                      "connected yet; 'halbachctl hash plan --old FILE' compares two files");
    else
        answer(call, config ? make_plan(control, config) : NULL, &lists);
    hb_config_free(config);
    json_decref(lists.complaints);
    json_decref(lists.warnings);
}
