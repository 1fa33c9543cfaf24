/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a changed model to a generation in the dataplane, and what the dataplane says back.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_server.h"
#include "clock.h"
#include "control.h"
#include "log.h"
#include "take_over.h"

/* What changes within 2 ms is published together. When much changes all the time, control publishes
 * for a quarter of its time at most, and nothing before the dataplane has taken the last one: the
 * checks go on in between, and however many changes wait, they are one more generation. */
#define COALESCE_US     2000
#define REST            3 /* times as long as publishing took */
#define REST_LONGEST_US 300000

/* --- sending --- */

static void send_if_due(struct hb_control *control)
{
    struct hb_publication *publication = &control->publication;
    struct hb_held_tables known;
    void *blob = NULL;
    size_t size = 0;
    int error;

    if (control->plan.pools == NULL || !hb_publication_due(publication, hb_now_ms()))
        return;
    hb_control_tables_to_leave_out(control, &known);
    error = hb_generation_encode(&control->plan, publication->wanted, &known, &blob, &size);
    free(known.digest);
    if (error == 0)
        error = hb_publisher_offer(control->publisher, blob, size);
    free(blob);
    if (error == 0) {
        hb_log(HB_LOG_DEBUG, "generation %" PRIu64 " sent, %zu bytes", publication->wanted, size);
        hb_publication_sent(publication, &control->plan);
        return;
    }
    hb_publication_not_sent(publication, hb_now_ms());
    hb_log(HB_LOG_ERROR, "generation %" PRIu64 " could not be sent: %s; trying again in %u ms",
           publication->wanted, strerror(-error), publication->pause_ms);
}

static void log_pool(const struct hb_model_pool *pool)
{
    if (pool->owner == NULL)
        hb_log(HB_LOG_WARNING, "pool %s: it has no table; all its packets are dropped (no_backend)",
               pool->name);
    else if (pool->change.any)
        hb_log(HB_LOG_INFO, "pool %s: %u usable, moved %u slots (ideal %u, collateral %u)",
               pool->name, pool->usable, pool->change.moved, pool->change.ideal,
               pool->change.collateral);
    else
        hb_log(HB_LOG_INFO, "pool %s: %u usable", pool->name, pool->usable);
}

/* Loudly: in these modes an operator should look. */
static void tell_mode(const struct hb_control *control, struct hb_model_pool *pool)
{
    static const char *const modes[] = {
        [HB_POOL_MODE_PANIC] = "panic: all backends are used, whatever their checks say",
        [HB_POOL_MODE_BACKUP] = "the backup pool serves",
        [HB_POOL_MODE_CLOSED] = "closed: new flows are dropped",
        [HB_POOL_MODE_LEAVING] = "removed backends serve until a new one is usable",
    };
    const struct hb_pool_strength *strength = &pool->strength;

    if (pool->mode == pool->told_mode)
        return;
    pool->told_mode = pool->mode;
    hb_events_add(control->events, HB_NEWS_POLICY, pool->name, NULL,
                  "pool %s: %s (%u of %u usable)", pool->name,
                  (size_t)pool->mode < sizeof(modes) / sizeof(*modes) && modes[pool->mode]
                      ? modes[pool->mode]
                      : "its own backends serve",
                  strength->usable, strength->wanted);
    if (pool->mode == HB_POOL_MODE_PANIC)
        hb_log(HB_LOG_WARNING,
               "pool %s: panic: %u of %u backends are usable; all of them are used, whatever their "
               "checks say",
               pool->name, strength->usable, strength->wanted);
    else if (pool->mode == HB_POOL_MODE_BACKUP)
        hb_log(HB_LOG_WARNING,
               "pool %s: %u of %u backends are usable and %u is the minimum; the backup pool %s "
               "serves",
               pool->name, strength->usable, strength->wanted, strength->minimum,
               pool->failure.backup);
    else if (pool->mode == HB_POOL_MODE_CLOSED)
        hb_log(HB_LOG_WARNING,
               "pool %s: closed: %u of %u backends are usable and %u is the minimum; new flows are "
               "dropped (no_backend)%s",
               pool->name, strength->usable, strength->wanted, strength->minimum,
               pool->owner != NULL ? ", established ones go on" : "");
    else if (pool->mode == HB_POOL_MODE_LEAVING)
        hb_log(HB_LOG_NOTICE, "pool %s: removed backends serve until a new one is usable",
               pool->name);
    else
        hb_log(HB_LOG_NOTICE, "pool %s: its own backends serve: %u of %u", pool->name,
               strength->usable, strength->wanted);
}

/* Returns how many slots moved. */
static uint64_t note_changes(struct hb_control *control)
{
    uint64_t moved = 0;

    for (uint32_t p = 0; p < control->model->pools_count; p++) {
        struct hb_model_pool *pool = &control->model->pools[p];

        tell_mode(control, pool);
        if (!pool->changed)
            continue;
        pool->change.generation = control->publication.wanted;
        moved += pool->change.any ? pool->change.moved : 0;
        log_pool(pool);
    }
    return moved;
}

/* Another generation is wanted: what has happened since the last one is its cause. */
static void note_generation(struct hb_control *control, uint64_t moved)
{
    struct hb_past_generation generation = {.number = control->publication.wanted,
                                            .unix_s = hb_now_unix(),
                                            .configuration = control->history->in_use,
                                            .moved = moved};

    generation.routine = hb_events_take_cause(control->events, generation.cause, &generation.actor);
    hb_history_add(control->history, &generation);
}

/* What has happened, but led to no other generation, is not the cause of a later one. */
static void drop_cause(struct hb_control *control)
{
    struct hb_actor actor;
    char cause[HB_EVENT_CAUSE];

    hb_events_take_cause(control->events, cause, &actor);
}

/* Who has no flows that a change of a table could move. Who owned slots before control began, or
 * while nobody counted, may have some. */
static void note_unused(struct hb_control *control)
{
    bool counted = hb_publisher_counters(control->publisher) != NULL;

    for (uint32_t p = 0; p < control->model->pools_count; p++) {
        const struct hb_model_pool *pool = &control->model->pools[p];

        for (uint32_t b = 0; hb_pool_is_due(control->model, pool) && b < pool->backends_count;
             b++) {
            struct hb_model_backend *backend = pool->backends[b];

            backend->unused = counted && !backend->remembered &&
                              hb_control_backend_counts(control, backend).packets == 0;
        }
    }
}

static void follow_model(struct hb_control *control)
{
    struct hb_port_list ports = {control->dataplane.hello.port, control->dataplane.hello.ports};
    char problem[sizeof(control->problem)];
    bool another;
    uint64_t moved;
    int error;

    note_unused(control);
    control->model->now_ms = hb_now_ms();
    control->model->now_unix_ms = hb_now_unix_ms();
    error = hb_reconcile_touched(control->model, ports, &control->plan, problem, sizeof(problem));
    if (error != 0)
        snprintf(problem, sizeof(problem), "not enough memory to build a generation");
    if (problem[0] != '\0' && strcmp(problem, control->problem) != 0)
        hb_log(HB_LOG_ERROR, "%s", problem);
    memcpy(control->problem, problem, sizeof(problem));
    if (error != 0)
        return; /* the tick tries again */
    another = hb_publication_want(&control->publication, control->plan.content);
    control->state_dirty |= another;
    moved = note_changes(control);
    if (another)
        note_generation(control, moved);
    else
        drop_cause(control);
    /* The generation carries the tables that have changed, so until the files are there the
     * dataplane is the memory: it need not wait for a disk. */
    send_if_due(control);
    hb_control_save_slots(control);
}

void hb_control_publish_touched(struct hb_control *control)
{
    uint64_t begin_us = hb_now_us(), took_us;

    control->change_waits = false;
    event_del(control->publish_timer);
    /* Without ports nothing can be forwarded, and nobody would take a generation. */
    if (control->started && control->dataplane.ever_connected)
        follow_model(control);
    hb_control_schedule(control); /* slow starts may have begun */
    took_us = hb_now_us() - begin_us;
    control->rest_until_us =
        hb_now_us() + (took_us * REST < REST_LONGEST_US ? took_us * REST : REST_LONGEST_US);
}

void hb_control_publish(struct hb_control *control)
{
    hb_model_touch(control->model);
    hb_control_publish_touched(control);
}

void hb_control_changed(struct hb_control *control)
{
    uint64_t now_us = hb_now_us(), wait_us = COALESCE_US;
    struct timeval soon;

    if (!control->started || evtimer_pending(control->publish_timer, NULL))
        return;
    control->change_waits = control->publication.under_way != 0;
    if (control->change_waits)
        return; /* its answer brings this here again */
    if (control->rest_until_us > now_us + wait_us)
        wait_us = control->rest_until_us - now_us;
    soon = (struct timeval){.tv_sec = 0, .tv_usec = (suseconds_t)wait_us};
    event_add(control->publish_timer, &soon);
}

/* A generation is no longer under way. */
static void resume_changes(struct hb_control *control)
{
    if (control->change_waits)
        hb_control_changed(control);
}

/* --- counters --- */

static struct hb_counts raw_backend(const struct hb_counters_header *region, uint32_t id)
{
    struct hb_backend_counters raw = hb_counters_backend_total(region, id);
    struct hb_nat_counters nat = hb_counters_nat_total(region, id);

    return (struct hb_counts){
        .packets = raw.packets,
        .bytes = raw.bytes,
        .new_flows = raw.new_flows,
        .returned_packets = raw.returned_packets,
        .returned_bytes = raw.returned_bytes,
        .unreachable = raw.unreachable,
        .nat_exhausted = nat.exhausted,
    };
}

static struct hb_counts raw_service(const struct hb_counters_header *region, uint32_t id)
{
    struct hb_service_counters raw = hb_counters_service_total(region, id);

    return (struct hb_counts){
        .packets = raw.packets,
        .bytes = raw.bytes,
        .new_flows = raw.new_flows,
        .drops = raw.drops,
        .denied = raw.denied,
        .limited = raw.limited,
        .too_big = raw.too_big,
    };
}

struct hb_counts hb_control_raw_counts(void *context, bool service, uint32_t id, uint64_t *instance)
{
    const struct hb_control *control = context;
    const struct hb_counters_header *region = hb_publisher_counters(control->publisher);

    *instance = region ? region->instance : 0;
    return service ? raw_service(region, id) : raw_backend(region, id);
}

struct hb_counts hb_control_backend_counts(struct hb_control *control,
                                           struct hb_model_backend *backend)
{
    const struct hb_counters_header *region = hb_publisher_counters(control->publisher);

    if (region == NULL)
        return hb_tally_last(&backend->tally);
    return hb_tally_read(&backend->tally, region->instance, raw_backend(region, backend->id));
}

struct hb_counts hb_control_service_counts(struct hb_control *control,
                                           struct hb_model_service *service)
{
    const struct hb_counters_header *region = hb_publisher_counters(control->publisher);

    if (region == NULL)
        return hb_tally_last(&service->tally);
    return hb_tally_read(&service->tally, region->instance, raw_service(region, service->id));
}

struct hb_quic_counters hb_control_raw_quic(void *context, uint32_t id, uint64_t *instance)
{
    const struct hb_control *control = context;
    const struct hb_counters_header *region = hb_publisher_counters(control->publisher);

    *instance = region ? region->instance : 0;
    return hb_counters_quic_total(region, id);
}

struct hb_quic_counters hb_control_quic_counts(struct hb_control *control,
                                               struct hb_model_service *service)
{
    uint64_t instance;
    struct hb_quic_counters raw = hb_control_raw_quic(control, service->id, &instance);

    return instance ? hb_quic_tally_read(&service->quic, instance, raw)
                    : hb_quic_tally_last(&service->quic);
}

uint64_t hb_control_service_flows(const struct hb_control *control, uint32_t id)
{
    return hb_counters_service_total(hb_publisher_counters(control->publisher), id).flows;
}

uint64_t hb_control_backend_flows(const struct hb_control *control, uint32_t id)
{
    return hb_counters_backend_total(hb_publisher_counters(control->publisher), id).flows;
}

void hb_control_read_tallies(struct hb_control *control)
{
    if (hb_publisher_counters(control->publisher) == NULL)
        return;
    for (uint32_t p = 0; p < control->model->pools_count; p++) {
        const struct hb_model_pool *pool = &control->model->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++)
            hb_control_backend_counts(control, pool->backends[b]);
    }
    for (uint32_t s = 0; s < control->model->services_count; s++) {
        hb_control_service_counts(control, &control->model->services[s]);
        hb_control_quic_counts(control, &control->model->services[s]);
    }
}

/* An id that no flow names. Without the dataplane nobody knows, except for one never given out. */
bool hb_control_id_reusable(void *context, uint32_t id, uint32_t incarnation)
{
    const struct hb_control *control = context;
    const struct hb_counters_header *region = hb_publisher_counters(control->publisher);

    if (region == NULL)
        return incarnation == 0;
    return id < region->backends_max && hb_counters_backend_total(region, id).flows == 0;
}

static bool is_id_in_use(void *context, uint32_t id)
{
    return hb_control_backend_flows(context, id) != 0;
}

/* --- what the dataplane says --- */

static void forget_rewrites(struct hb_control *control)
{
    for (uint32_t p = 0; p < control->model->pools_count; p++) {
        const struct hb_model_pool *pool = &control->model->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++)
            pool->backends[b]->rewrite.size = 0;
    }
}

/* The model exists already, and a dataplane that it did not follow from the start comes. */
static void meet_dataplane(struct hb_control *control, const void *blob)
{
    struct hb_model *model = control->model;

    if (blob != NULL)
        hb_take_over_blob_ids(model, blob);
    if (hb_model_assign_ids(model) == 0 &&
        hb_take_over_doubt_ids(model, blob, is_id_in_use, control) &&
        hb_model_assign_ids(model) != 0)
        hb_log(HB_LOG_ERROR, "backend ids ran out; restart halbach-dataplane to free those that "
                             "old flows hold");
    hb_model_release_unused(model);
    if (blob != NULL)
        hb_take_over_backends(model, blob, NULL, false, hb_now_ms(), hb_now_unix_ms());
}

static void on_connected(void *context, const struct hb_hello_reply *hello, const void *blob,
                         size_t size)
{
    struct hb_control *control = context;
    bool other_life = control->dataplane.hello.instance != hello->instance;
    uint64_t wanted = control->publication.wanted;

    control->dataplane.hello = *hello;
    control->dataplane.ever_connected = true;
    control->dataplane.problem[0] = '\0';
    if (blob != NULL && !hb_blob_readable(blob, size))
        blob = NULL;
    hb_publication_connected(&control->publication, blob ? hello->generation_number : 0,
                             hello->content, blob, size);
    hb_log(HB_LOG_NOTICE,
           "connected to halbach-dataplane %.*s (pid %u), which serves generation "
           "%" PRIu64,
           (int)sizeof(hello->version), hello->version, hello->pid, hello->generation_number);
    hb_events_add(control->events, HB_NEWS_DATAPLANE, NULL, NULL,
                  "the dataplane (pid %u) connected and serves generation %" PRIu64, hello->pid,
                  hello->generation_number);
    if (control->started && control->publication.wanted != wanted) {
        hb_events_add_cause(control->events, "the dataplane came with a generation of its own");
        note_generation(control, 0);
    }
    if (!control->started) {
        if (!hb_control_start_model(control, blob)) {
            control->failed = true;
            event_base_loopbreak(control->base);
        }
        return;
    }
    /* A rewrite names a port by its number, which another life may give to another port. */
    if (other_life)
        forget_rewrites(control);
    meet_dataplane(control, blob);
    hb_control_publish(control);
}

static void on_disconnected(void *context, const char *why)
{
    struct hb_control *control = context;

    hb_control_read_tallies(control); /* for the last time in this life */
    hb_publication_disconnected(&control->publication);
    resume_changes(control);
    snprintf(control->dataplane.problem, sizeof(control->dataplane.problem), "%s", why);
    hb_log(HB_LOG_WARNING, "%s", why);
    hb_events_add(control->events, HB_NEWS_DATAPLANE, NULL, NULL, "%s", why);
}

static void tell_outcome(struct hb_control *control, const struct hb_publish_reply *reply,
                         bool news)
{
    bool served = reply->reason == HB_REJECT_NONE;

    hb_history_outcome(control->history, reply->number,
                       served ? HB_OUTCOME_SERVED : HB_OUTCOME_REFUSED);
    if (served)
        hb_events_add(control->events, HB_NEWS_PUBLISHED, NULL, NULL,
                      "generation %" PRIu64 " serves", reply->number);
    else if (news)
        hb_events_add(control->events, HB_NEWS_REJECTED, NULL, NULL, "the dataplane refused %s",
                      control->publication.last_reject);
}

static void on_published(void *context, const struct hb_publish_reply *reply)
{
    struct hb_control *control = context;
    struct hb_publication *publication = &control->publication;
    bool news = hb_publication_answered(publication, reply, hb_now_ms());

    tell_outcome(control, reply, news);
    if (reply->reason == HB_REJECT_NONE)
        hb_log(HB_LOG_INFO, "generation %" PRIu64 " serves (adopted in %u us, grace %u us)",
               publication->serving, publication->adopt_us, publication->grace_us);
    else if (news)
        hb_log(HB_LOG_ERROR,
               "the dataplane refused %s (%s, record %u, offset %" PRIu64
               "); it goes on with generation %" PRIu64,
               publication->last_reject, hb_reject_text(reply->reason), reply->record,
               reply->offset, reply->number);
    send_if_due(control);
    resume_changes(control);
    hb_api_published(control->api);
}

const struct hb_publisher_events hb_control_publisher_events = {
    .connected = on_connected,
    .disconnected = on_disconnected,
    .published = on_published,
};
