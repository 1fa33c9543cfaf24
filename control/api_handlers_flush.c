/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * POST /v1/flush (docs/api.md): the dataplane forgets all entries of its flow caches.
 *
 * Where slots have settled, that breaks no connection: the lookup table sends its packets where the
 * entry did (docs/connections.md). Where it would break some it has to be forced.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api_internal.h"
#include "log.h"

static bool has_flows(const struct hb_control *control, const struct hb_model_pool *pool)
{
    for (uint32_t b = 0; b < pool->backends_count; b++)
        if (hb_control_backend_flows(control, pool->backends[b]->id) != 0)
            return true;
    return false;
}

/* Refuses to forget what the table does not know. Answers for itself when it returns false. */
static bool guard(struct hb_api_call *call)
{
    const struct hb_model *model = call->control->model;
    const char *force = hb_api_argument(call, "force");
    char why[128];

    if (force != NULL && strcmp(force, "1") == 0)
        return true;
    for (uint32_t p = 0; p < model->pools_count; p++) {
        const struct hb_model_pool *pool = &model->pools[p];

        if (pool->owner == NULL && has_flows(call->control, pool))
            snprintf(why, sizeof(why), "has no lookup table, since no backend takes new flows");
        else if (pool->owner != NULL && pool->history.unsettled_count > 0)
            snprintf(why, sizeof(why), "has %u unsettled slots", pool->history.unsettled_count);
        else if (pool->bounded_load != 0)
            snprintf(why, sizeof(why), "has bounded_load, which places flows off their slots");
        else
            continue;
        hb_api_refuse(call, 409,
                      "pool \"%s\" %s, so connections that only the flow caches know would break; "
                      "nothing was flushed. To flush all the same, use --force (force=1)",
                      pool->name, why);
        return false;
    }
    return true;
}

static void on_flushed(void *context, const struct hb_flush_reply *reply)
{
    struct hb_api_call *call = context;
    struct hb_control *control = call->control;
    const struct hb_hello_reply *hello = hb_publisher_hello(control->publisher);
    char actor[HB_ACTOR_TEXT], text[HB_EVENT_CAUSE];

    if (reply == NULL) {
        hb_api_refuse(call, 503,
                      "the dataplane went away before it answered; whoever follows it "
                      "begins with empty flow caches");
        return;
    }
    hb_actor_print(&call->actor, actor);
    hb_log(HB_LOG_NOTICE, "the flow caches were flushed by %s: %" PRIu64 " entries",
           actor[0] != '\0' ? actor : "an operator", reply->flows);
    snprintf(text, sizeof(text), "flow caches flushed: %" PRIu64 " entries forgotten",
             reply->flows);
    hb_events_begin(control->events, &call->actor);
    hb_events_add(control->events, HB_NEWS_FLUSH, NULL, NULL, "%s", text);
    hb_control_note_action(control, text);
    hb_events_end(control->events);
    hb_api_answer(call, 200,
                  json_pack("{s:o, s:i, s:i}", "flows", hb_json_count(reply->flows),
                            "workers_flushed", reply->workers, "workers",
                            hello != NULL ? hello->workers : reply->workers));
}

void hb_api_post_flush(struct hb_api_call *call)
{
    int error;

    if (!guard(call))
        return;
    error = hb_publisher_flush(call->control->publisher, on_flushed, call);
    if (error == -ENOTCONN)
        hb_api_refuse(call, 503, "the dataplane is not connected: %s",
                      call->control->dataplane.problem);
    else if (error != 0)
        hb_api_refuse(call, 500, "the dataplane could not be asked: %s", strerror(-error));
}
