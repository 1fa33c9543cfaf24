/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scheduler.c: starts each target's probes at their times; see health.h, plan.h and checker.h.
 *
 * One libevent timer a target. Probes of different targets share nothing, so a slow one delays no
 * other.
 */
#include "health.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <time.h>

#include <event2/event.h>

#include "checker.h"
#include "plan.h"

/* One row a kind of checker. */
static const struct hb_checker *const checkers[] = {
    &hb_checker_tcp,
};

struct hb_health {
    struct event_base *base;
    uint32_t added; /* targets ever */
    LIST_HEAD(, hb_health_target) targets;
};

struct hb_health_target {
    struct hb_health *health;
    const struct hb_checker *checker;
    struct hb_check *check;
    struct event *timer; /* the next start */
    uint64_t interval_us;
    uint32_t phase;
    bool running;
    uint64_t started_us; /* of the probe that is running */
    hb_probe_done done;
    void *context;
    LIST_ENTRY(hb_health_target) all;
};

static uint64_t read_clock_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static int set_timer(struct event *timer, uint64_t delay_us)
{
    struct timeval delay = {.tv_sec = (time_t)(delay_us / 1000000),
                            .tv_usec = (suseconds_t)(delay_us % 1000000)};

    return evtimer_add(timer, &delay);
}

static void on_probe_done(void *context, enum hb_probe_reason reason)
{
    struct hb_health_target *target = context;
    struct hb_probe_result result = {
        .success = reason == HB_PROBE_OK,
        .reason = reason,
        .started_ms = target->started_us / 1000,
        .duration_us = (uint32_t)(read_clock_us() - target->started_us),
    };

    target->running = false;
    target->done(target->context, &result); /* last: it may remove the target */
}

static void on_start_time(evutil_socket_t fd, short what, void *context)
{
    struct hb_health_target *target = context;
    uint64_t now_us = read_clock_us();

    (void)fd;
    (void)what;
    set_timer(target->timer, hb_plan_next_us(target->phase, target->interval_us, now_us) - now_us);
    if (target->running)
        return; /* it is late; its next turn will do */
    target->running = true;
    target->started_us = now_us;
    target->checker->begin(target->check);
}

static const struct hb_checker *find_checker(enum hb_health_type type)
{
    for (size_t i = 0; i < sizeof(checkers) / sizeof(checkers[0]); i++) {
        if (checkers[i]->type == type)
            return checkers[i];
    }
    return NULL;
}

struct hb_health *hb_health_open(struct event_base *base)
{
    struct hb_health *health = calloc(1, sizeof(*health));

    if (!health)
        return NULL;
    health->base = base;
    LIST_INIT(&health->targets);
    return health;
}

void hb_health_close(struct hb_health *health)
{
    struct hb_health_target *target;

    if (!health)
        return;
    while ((target = LIST_FIRST(&health->targets)))
        hb_health_remove(target);
    free(health);
}

struct hb_health_target *hb_health_add(struct hb_health *health, const struct hb_address *address,
                                       const struct hb_health_config *config, hb_probe_done done,
                                       void *context)
{
    const struct hb_checker *checker = find_checker(config->type);
    struct hb_health_target *target;

    if (!checker || config->port == 0 || config->interval_ms == 0) {
        errno = EINVAL;
        return NULL;
    }
    target = calloc(1, sizeof(*target));
    if (!target)
        return NULL;
    target->health = health;
    target->checker = checker;
    target->interval_us = (uint64_t)config->interval_ms * 1000;
    target->phase = hb_plan_phase(health->added++);
    target->done = done;
    target->context = context;
    LIST_INSERT_HEAD(&health->targets, target, all);
    target->check = checker->create(health->base, address, config, on_probe_done, target);
    target->timer = evtimer_new(health->base, on_start_time, target);
    if (!target->check || !target->timer ||
        set_timer(target->timer, hb_plan_first_delay_us(target->phase, target->interval_us)) < 0) {
        hb_health_remove(target);
        errno = ENOMEM;
        return NULL;
    }
    return target;
}

void hb_health_remove(struct hb_health_target *target)
{
    if (!target)
        return;
    if (target->timer)
        event_free(target->timer);
    if (target->check)
        target->checker->destroy(target->check);
    LIST_REMOVE(target, all);
    free(target);
}

const char *hb_probe_reason_text(enum hb_probe_reason reason)
{
    switch (reason) {
    case HB_PROBE_OK:
        return "accepted the connection";
    case HB_PROBE_REFUSED:
        return "refused the connection";
    case HB_PROBE_TIMEOUT:
        return "did not answer in time";
    case HB_PROBE_UNREACHABLE:
        return "cannot be reached";
    case HB_PROBE_LOCAL_ERROR:
        return "could not be probed: this machine lacks descriptors, ports or permission";
    }
    return "ended for an unknown reason";
}
