/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When slots have settled: the dataplane is asked, one pool after the other, which marks it has not
 * needed for the idle time of flows; those are taken away, and the next generation says so.
 *
 * A round begins every eighth of that time, 1 to 30 seconds, while something is unsettled and
 * the dataplane serves what is wanted. All that it finds goes out as one generation at its end.
 * What changed meanwhile is not touched: an answer counts only for the table that it is about.
 */
#include <inttypes.h>
#include <string.h>

#include "clock.h"
#include "control.h"
#include "log.h"
#include "pool_table.h"

#define ROUND_MIN_MS 1000
#define ROUND_MAX_MS 30000

uint32_t hb_control_idle_ms(const struct hb_control *control)
{
    return control->model->settle_after_ms != 0 ? control->model->settle_after_ms
                                                : control->dataplane.hello.tcp_idle_ms;
}

static void end_round(struct hb_control *control)
{
    struct hb_settling *settling = &control->settling;
    uint32_t pause = hb_control_idle_ms(control) / 8;

    pause = pause < ROUND_MIN_MS ? ROUND_MIN_MS : pause > ROUND_MAX_MS ? ROUND_MAX_MS : pause;
    settling->under_way = false;
    settling->next_ms = hb_now_ms() + pause;
    if (settling->settled > 0) {
        const char *verb = settling->settled == 1 ? " has" : "s have";

        hb_log(HB_LOG_INFO, "%u slot%s settled", settling->settled, verb);
        hb_events_add(control->events, HB_NEWS_SETTLED, NULL, NULL, "%u slot%s settled",
                      settling->settled, verb);
        hb_events_add_routine(control->events, "slots have settled");
        hb_control_changed(control);
    }
    settling->settled = 0;
}

static void on_settled(void *context, const struct hb_settle_reply *reply);

/* Asks for the next piece of the pool at hand, or of the next one that has unsettled slots. */
static void ask(struct hb_control *control)
{
    struct hb_settling *settling = &control->settling;
    struct hb_settle request = {.idle_ms = hb_control_idle_ms(control)};
    const struct hb_model *model = control->model;

    while (settling->pool < model->pools_count) {
        const struct hb_model_pool *pool = &model->pools[settling->pool];

        if (settling->first == 0 && (pool->owner == NULL || pool->history.unsettled_count == 0)) {
            settling->pool++;
            continue;
        }
        if (settling->first == 0) {
            memcpy(settling->asked, pool->digest, HB_DIGEST_SIZE);
            memcpy(settling->expected, pool->digest, HB_DIGEST_SIZE);
        }
        memcpy(request.digest, settling->asked, HB_DIGEST_SIZE);
        request.first = settling->first;
        if (hb_publisher_settle(control->publisher, &request, on_settled, control) == 0)
            return;
        break;
    }
    end_round(control);
}

/* Whether the answer is about the table that the pool has, but for what was settled by the pieces
 * before. */
static bool is_about(const struct hb_settling *settling, const struct hb_model_pool *pool,
                     const struct hb_settle_reply *reply)
{
    return reply->known && reply->first == settling->first && pool->owner != NULL &&
           memcmp(pool->digest, settling->expected, HB_DIGEST_SIZE) == 0 &&
           reply->count <= HB_SETTLE_WORDS * 64 && reply->count <= pool->slots - reply->first;
}

/* Takes the marks of one piece away; returns whether the pool has more. */
static bool take(struct hb_control *control, struct hb_model_pool *pool,
                 const struct hb_settle_reply *reply)
{
    struct hb_settling *settling = &control->settling;
    uint32_t settled = hb_pool_table_settle(pool, reply->idle, reply->first, reply->count);

    /* The plan has pointers into what has just changed. */
    if (settled > 0)
        hb_plan_clear(&control->plan);
    settling->settled += settled;
    settling->first += reply->count;
    memcpy(settling->expected, pool->digest, HB_DIGEST_SIZE);
    return reply->count > 0 && settling->first < pool->slots;
}

static void on_settled(void *context, const struct hb_settle_reply *reply)
{
    struct hb_control *control = context;
    struct hb_settling *settling = &control->settling;
    struct hb_model_pool *pool = NULL;

    if (reply == NULL) {
        settling->under_way = false; /* what was settled goes out when the dataplane is back */
        return;
    }
    if (settling->pool < control->model->pools_count)
        pool = &control->model->pools[settling->pool];
    if (pool == NULL || !is_about(settling, pool, reply) || !take(control, pool, reply)) {
        settling->pool++;
        settling->first = 0;
    }
    ask(control);
}

void hb_control_settle(struct hb_control *control)
{
    struct hb_settling *settling = &control->settling;

    if (settling->under_way || !hb_publication_in_sync(&control->publication) ||
        hb_now_ms() < settling->next_ms)
        return;
    settling->under_way = true;
    settling->pool = 0;
    settling->first = 0;
    ask(control);
}
