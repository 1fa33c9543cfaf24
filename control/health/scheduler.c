/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scheduler.c: starts each target's probes at their times; see health.h, plan.h and checker.h.
 *
 * One libevent timer a target. Probes of different targets share nothing, so a slow one delays no
 * other.
 */
#include "health.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>

#include <event2/event.h>

#include "checker.h"
#include "http_engine.h"
#include "plan.h"

/* One row a kind of checker. */
static const struct hb_checker *const checkers[] = {
    &hb_checker_tcp,  &hb_checker_http, &hb_checker_https, &hb_checker_udp,
    &hb_checker_icmp, &hb_checker_grpc, &hb_checker_grpcs, &hb_checker_exec,
};

struct hb_health {
    struct event_base *base;
    struct hb_http *http; /* NULL until a checker needs it */
    uint32_t added;       /* targets ever */
    uint64_t random;      /* state of the generator for jitter */
    LIST_HEAD(, hb_health_target) targets;
};

struct hb_health_target {
    struct hb_health *health;
    const struct hb_checker *checker;
    struct hb_check *check;
    struct hb_address address;
    struct hb_check_way way;
    const struct hb_health_config *config;
    struct event *timer; /* the next start */
    uint64_t interval_us;
    uint64_t planned_us; /* of the next start */
    uint32_t phase;
    bool running;
    uint64_t started_us; /* of the probe that is running */
    uint32_t late_us;
    hb_probe_prepare prepare;
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

/* libevent counts from when the loop last woke up, unless it is told to look at the clock. */
static int set_timer(struct event_base *base, struct event *timer, uint64_t delay_us)
{
    struct timeval delay = {.tv_sec = (time_t)(delay_us / 1000000),
                            .tv_usec = (suseconds_t)(delay_us % 1000000)};

    event_base_update_cache_time(base);
    return evtimer_add(timer, &delay);
}

static void on_probe_done(void *context, enum hb_probe_reason reason, const char *detail)
{
    struct hb_health_target *target = context;
    struct hb_probe_result result = {
        .success = reason == HB_PROBE_OK || reason == HB_PROBE_ASSUMED,
        .reason = reason,
        .started_ms = target->started_us / 1000,
        .duration_us = (uint32_t)(read_clock_us() - target->started_us),
        .late_us = target->late_us,
        .detail = detail,
    };

    target->running = false;
    target->done(target->context, &result); /* last: it may remove the target */
}

/* xorshift64 (G. Marsaglia, 2003): jitter needs to be spread, not to be secret. */
static uint64_t next_random(struct hb_health *health)
{
    uint64_t x = health->random;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return health->random = x;
}

/* Plans the next start, `delay_us` from now. */
static int plan_start(struct hb_health_target *target, uint64_t now_us, uint64_t delay_us)
{
    uint64_t jitter_us = (uint64_t)target->config->jitter_ms * 1000;

    if (jitter_us > 0)
        delay_us += next_random(target->health) % jitter_us;
    target->planned_us = now_us + delay_us;
    return set_timer(target->health->base, target->timer, delay_us);
}

static void on_start_time(evutil_socket_t fd, short what, void *context)
{
    struct hb_health_target *target = context;
    uint64_t now_us = read_clock_us(), planned_us = target->planned_us;
    const char *detail = NULL;
    char problem[160];
    int reason;

    (void)fd;
    (void)what;
    plan_start(target, now_us,
               hb_plan_next_us(target->phase, target->interval_us, now_us) - now_us);
    if (target->running)
        return; /* it is late; its next turn will do */
    target->running = true;
    target->started_us = now_us;
    target->late_us = now_us > planned_us ? (uint32_t)(now_us - planned_us) : 0;
    if (target->prepare != NULL &&
        !target->prepare(target->context, &target->way, problem, sizeof(problem))) {
        on_probe_done(target, HB_PROBE_LOCAL_ERROR, problem);
        return;
    }
    reason = target->checker->begin(target->check, &detail);
    if (reason != HB_PROBE_UNDER_WAY)
        on_probe_done(target, (enum hb_probe_reason)reason, detail);
}

static const struct hb_checker *find_checker(enum hb_health_type type)
{
    for (size_t i = 0; i < sizeof(checkers) / sizeof(checkers[0]); i++) {
        if (checkers[i]->type == type)
            return checkers[i];
    }
    return NULL;
}

static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

struct hb_health *hb_health_open(struct event_base *base)
{
    struct hb_health *health = calloc(1, sizeof(*health));

    if (!health)
        return NULL;
    health->base = base;
    if (getrandom(&health->random, sizeof(health->random), GRND_NONBLOCK) < 0 ||
        health->random == 0)
        health->random = read_clock_us() | 1;
    LIST_INIT(&health->targets);
    raise_file_limit();
    return health;
}

void hb_health_close(struct hb_health *health)
{
    struct hb_health_target *target;

    if (!health)
        return;
    while ((target = LIST_FIRST(&health->targets)))
        hb_health_remove(target);
    hb_http_close(health->http);
    free(health);
}

static struct hb_check *create_check(struct hb_health_target *target)
{
    struct hb_health *health = target->health;

    if (target->checker->needs_http && health->http == NULL) {
        health->http = hb_http_open(health->base);
        if (health->http == NULL)
            return NULL;
    }
    return target->checker->create(&(struct hb_check_setup){.base = health->base,
                                                            .http = health->http,
                                                            .config = target->config,
                                                            .way = &target->way,
                                                            .address = &target->address,
                                                            .done = on_probe_done,
                                                            .context = target});
}

struct hb_health_target *hb_health_add(struct hb_health *health, const struct hb_address *address,
                                       const struct hb_health_config *config,
                                       hb_probe_prepare prepare, hb_probe_done done, void *context)
{
    const struct hb_checker *checker = find_checker(config->type);
    struct hb_health_target *target;

    if (!checker || config->interval_ms == 0 ||
        (config->port == 0 && hb_health_type_has_port(config->type))) {
        errno = EINVAL;
        return NULL;
    }
    target = calloc(1, sizeof(*target));
    if (!target)
        return NULL;
    target->health = health;
    target->checker = checker;
    target->address = *address;
    target->way.to = *address;
    target->config = config;
    target->interval_us = (uint64_t)config->interval_ms * 1000;
    target->phase = hb_plan_phase(health->added++);
    target->prepare = prepare;
    target->done = done;
    target->context = context;
    LIST_INSERT_HEAD(&health->targets, target, all);
    target->check = create_check(target);
    target->timer = evtimer_new(health->base, on_start_time, target);
    if (!target->check || !target->timer ||
        plan_start(target, read_clock_us(),
                   hb_plan_first_delay_us(target->phase, target->interval_us)) < 0) {
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
        return "answered as expected";
    case HB_PROBE_ASSUMED:
        return "did not object, so it is assumed to be up";
    case HB_PROBE_REFUSED:
        return "refused the probe";
    case HB_PROBE_TIMEOUT:
        return "did not answer in time";
    case HB_PROBE_UNREACHABLE:
        return "cannot be reached";
    case HB_PROBE_WRONG:
        return "did not answer as expected";
    case HB_PROBE_UNSURE:
        return "is silent after an error";
    case HB_PROBE_LOCAL_ERROR:
        return "could not be probed: this machine lacks descriptors, ports or permission";
    }
    return "ended for an unknown reason";
}
