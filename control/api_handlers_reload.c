/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * POST /v1/reload (docs/api.md).
 */
#include <errno.h>
#include <string.h>

#include "api_internal.h"

static json_t *describe_changed_pools(const struct hb_model *model)
{
    json_t *pools = json_array();

    for (uint32_t p = 0; p < model->pools_count; p++) {
        const struct hb_model_pool *pool = &model->pools[p];
        json_t *object;

        if (!pool->changed)
            continue;
        object = json_pack("{s:s}", "name", pool->name);
        hb_json_set_moves(object, pool);
        json_array_append_new(pools, object);
    }
    return pools;
}

json_t *hb_json_reload(const struct hb_control *control, const uint8_t before[HB_DIGEST_SIZE],
                       const struct hb_model_diff *diff, json_t *warnings)
{
    return json_pack("{s:b, s:I, s:{s:i, s:i, s:i}, s:{s:i, s:i, s:i}, s:o, s:o}", "changed",
                     memcmp(before, control->publication.wanted_content, HB_DIGEST_SIZE) != 0,
                     "configuration", (json_int_t)control->history->in_use, "services", "added",
                     diff->services_added, "removed", diff->services_removed, "changed",
                     diff->services_changed, "backends", "added", diff->backends_added, "removed",
                     diff->backends_removed, "changed", diff->backends_changed, "pools",
                     describe_changed_pools(control->model), "warnings", warnings);
}

void hb_api_post_reload(struct hb_api_call *call)
{
    struct hb_control *control = call->control;
    uint8_t before[HB_DIGEST_SIZE];
    struct hb_model_diff diff;
    json_t *complaints = json_array(), *warnings = json_array();
    int error;

    memcpy(before, control->publication.wanted_content, sizeof(before));
    error = hb_control_reload(control, &diff, complaints, warnings);
    if (error != 0) {
        json_decref(warnings);
        hb_api_answer(call, error == -ENOMEM ? 500 : 422,
                      json_pack("{s:{s:s, s:o}}", "error", "message",
                                "the configuration was refused as a whole and nothing has changed; "
                                "mend the file and reload again",
                                "complaints", complaints));
        return;
    }
    json_decref(complaints);
    hb_api_answer_applied(call, hb_json_reload(control, before, &diff, warnings));
}
