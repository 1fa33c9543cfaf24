/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GET /v1/history and POST /v1/rollback (docs/api.md).
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api_internal.h"
#include "history_file.h"

static json_t *describe_generation(const struct hb_past_generation *generation)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:s, s:o, s:s}", "number",
                     (json_int_t)generation->number, "first", (json_int_t)generation->first,
                     "count", (json_int_t)(generation->number - generation->first + 1), "unix",
                     (json_int_t)generation->unix_s, "first_unix",
                     (json_int_t)generation->first_unix_s, "configuration",
                     generation->configuration ? json_integer((json_int_t)generation->configuration)
                                               : json_null(),
                     "moved", (json_int_t)generation->moved, "outcome",
                     hb_outcome_name(generation->outcome), "actor",
                     hb_actor_json(&generation->actor), "cause", generation->cause);
}

static json_t *describe_action(const struct hb_past_action *action)
{
    return json_pack("{s:I, s:o, s:o, s:s}", "unix", (json_int_t)action->unix_s, "generation",
                     action->generation ? json_integer((json_int_t)action->generation)
                                        : json_null(),
                     "actor", hb_actor_json(&action->actor), "action", action->text);
}

static json_t *describe_configuration(const struct hb_history *history,
                                      const struct hb_past_configuration *configuration)
{
    return json_pack("{s:I, s:I, s:I, s:b, s:o, s:s}", "number", (json_int_t)configuration->number,
                     "unix", (json_int_t)configuration->unix_s, "size",
                     (json_int_t)configuration->size, "in_use",
                     configuration->number == history->in_use, "actor",
                     hb_actor_json(&configuration->actor), "cause", configuration->cause);
}

json_t *hb_json_rollback(const struct hb_history *history)
{
    if (!history->rolled_back)
        return json_null();
    return json_pack("{s:I, s:o}", "unix", (json_int_t)history->rolled_back_unix, "actor",
                     hb_actor_json(&history->rolled_back_by));
}

void hb_api_get_history(struct hb_api_call *call)
{
    const struct hb_history *history = call->control->history;
    json_t *generations = json_array(), *configurations = json_array();
    json_t *actions = json_array();

    for (uint32_t g = 0; g < history->generations_count; g++)
        json_array_append_new(generations, describe_generation(&history->generations[g]));
    for (uint32_t c = 0; c < history->configurations_count; c++)
        json_array_append_new(configurations,
                              describe_configuration(history, &history->configurations[c]));
    for (uint32_t a = 0; a < history->actions_count; a++)
        json_array_append_new(actions, describe_action(&history->actions[a]));
    hb_api_answer(call, 200,
                  json_pack("{s:I, s:o, s:o, s:o, s:o}", "in_use", (json_int_t)history->in_use,
                            "rollback", hb_json_rollback(history), "configurations", configurations,
                            "generations", generations, "actions", actions));
}

/* The number to go back to, or 0 after a refusal. */
static uint64_t choose(struct hb_api_call *call)
{
    const struct hb_history *history = call->control->history;
    uint64_t number;

    if (!hb_api_number(call, "to", INT64_MAX, hb_history_previous(history), &number))
        return 0;
    if (hb_history_find(history, number) != NULL)
        return number;
    if (hb_api_argument(call, "to") != NULL)
        hb_api_refuse(call, 404,
                      "configuration %" PRIu64 " is not kept; 'halbachctl history' lists those "
                      "that are",
                      number);
    else
        hb_api_refuse(call, 404,
                      "no configuration before number %" PRIu64 " is kept; 'halbachctl history' "
                      "lists those that are",
                      history->in_use);
    return 0;
}

void hb_api_post_rollback(struct hb_api_call *call)
{
    struct hb_control *control = call->control;
    uint64_t from = control->history->in_use, to = choose(call);
    json_t *complaints, *warnings, *answer;
    uint8_t before[HB_DIGEST_SIZE];
    struct hb_model_diff diff;
    int error;

    if (to == 0)
        return;
    complaints = json_array();
    warnings = json_array();
    memcpy(before, control->publication.wanted_content, sizeof(before));
    error = hb_control_roll_back(control, to, &diff, complaints, warnings);
    if (error != 0) {
        json_decref(warnings);
        hb_api_answer(call, error == -ENOMEM ? 500 : 422,
                      json_pack("{s:{s:s, s:o}}", "error", "message",
                                "the former configuration was refused as a whole and nothing has "
                                "changed; roll back to another one",
                                "complaints", complaints));
        return;
    }
    json_decref(complaints);
    answer = hb_json_reload(control, before, &diff, warnings);
    json_object_set_new(answer, "from", json_integer((json_int_t)from));
    json_object_set_new(answer, "to", json_integer((json_int_t)to));
    hb_api_answer_applied(call, answer);
}
