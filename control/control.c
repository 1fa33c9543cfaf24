/* SPDX-License-Identifier: BSD-3-Clause */
#include "control.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_server.h"
#include "background.h"
#include "clock.h"
#include "log.h"
#include "notify.h"

#define START_WAIT_MS 300 /* for the dataplane's hello, before ids are given out without it */
#define TICK_MS       1000

static void on_terminate(evutil_socket_t signal_number, short what, void *context)
{
    struct hb_control *control = context;

    (void)what;
    hb_log(HB_LOG_NOTICE, "signal %d: leaving; the dataplane goes on with what it has",
           (int)signal_number);
    event_base_loopbreak(control->base);
}

static void on_hang_up(evutil_socket_t signal_number, short what, void *context)
{
    const struct hb_actor actor = {.by = HB_ACTOR_SIGNAL};
    struct hb_control *control = context;
    struct hb_model_diff diff;

    (void)signal_number;
    (void)what;
    if (!control->started)
        return;
    hb_events_begin(control->events, &actor);
    hb_control_reload(control, &diff, NULL, NULL);
    hb_events_end(control->events);
}

static void on_start_timer(evutil_socket_t fd, short what, void *context)
{
    struct hb_control *control = context;

    (void)fd;
    (void)what;
    if (!control->started && !hb_control_start_model(control, NULL)) {
        control->failed = true;
        event_base_loopbreak(control->base);
    }
}

static void on_publish_timer(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    hb_control_publish_touched(context);
}

static void on_tick(evutil_socket_t fd, short what, void *context)
{
    struct hb_control *control = context;

    (void)fd;
    (void)what;
    if (!control->started)
        return;
    hb_control_read_tallies(control);
    if (hb_publication_due(&control->publication, hb_now_ms()) || control->problem[0] != '\0')
        hb_control_publish_touched(control);
    if (control->state_dirty)
        hb_control_save_soon(control);
    hb_control_save_history_soon(control);
    hb_control_settle(control);
    hb_control_tick_nat(control);
    hb_control_age_paths(control);
    hb_control_watch_drains(control);
    hb_maintenance_tick(control);
}

static void on_probe_changed(void *context, struct hb_model_pool *pool,
                             struct hb_model_backend *backend)
{
    struct hb_control *control = context;

    hb_log(HB_LOG_NOTICE, "pool %s: backend %s (%s) is %s: %s", pool->name, backend->name,
           backend->identity, hb_backend_state_name(&backend->state), backend->reason);
    hb_events_add(control->events, HB_NEWS_BACKEND, pool->name, backend->name,
                  "backend %s is %s: %s", backend->name, hb_backend_state_name(&backend->state),
                  backend->reason);
    control->state_dirty = true;
    hb_pool_touch(pool);
    hb_control_changed(control);
}

/* The first hop of a backend is no event, only a reason for a generation. */
static void tell_hop(struct hb_control *control, const struct hb_model_pool *pool,
                     const struct hb_model_backend *backend, const struct hb_next_hop *hop)
{
    if (!hop->resolved && backend->hop.resolved)
        hb_events_add(control->events, HB_NEWS_ROUTE, pool->name, backend->name,
                      "backend %s cannot be reached: %s", backend->name, hop->problem);
    else if (backend->hop.resolved)
        hb_events_add(control->events, HB_NEWS_ROUTE, pool->name, backend->name,
                      "backend %s has another next hop, through %s", backend->name, hop->ifname);
    else if (hop->resolved)
        hb_events_add_cause(control->events, "next hop of backend %s found", backend->name);
}

static void on_hop_changed(void *context, const struct hb_address *address)
{
    struct hb_control *control = context;
    char text[HB_ADDRESS_TEXT];
    struct hb_next_hop hop;

    if (!hb_next_hops_get(control->hops, address, &hop))
        return;
    hb_control_client_hop_changed(control, address, &hop);
    for (uint32_t p = 0; p < control->model->pools_count; p++) {
        struct hb_model_backend *backend = hb_pool_backend(&control->model->pools[p], address);

        if (backend == NULL)
            continue;
        tell_hop(control, &control->model->pools[p], backend, &hop);
        hb_path_forget(&backend->path); /* another way may carry more */
        backend->hop = hop;
        hb_pool_touch(&control->model->pools[p]);
    }
    hb_log(HB_LOG_DEBUG, "next hop of %s: %s", hb_address_print(address, text),
           hop.resolved ? hop.ifname : hop.problem);
    hb_control_changed(control);
}

static bool open_timers(struct hb_control *control)
{
    struct event_base *base = control->base;
    struct timeval wait = {0, START_WAIT_MS * 1000}, tick = {TICK_MS / 1000, 0};

    control->terminate[0] = evsignal_new(base, SIGTERM, on_terminate, control);
    control->terminate[1] = evsignal_new(base, SIGINT, on_terminate, control);
    control->hang_up = evsignal_new(base, SIGHUP, on_hang_up, control);
    control->start_timer = evtimer_new(base, on_start_timer, control);
    control->publish_timer = evtimer_new(base, on_publish_timer, control);
    control->life_timer = evtimer_new(base, hb_control_on_life_timer, control);
    control->tick = event_new(base, -1, EV_PERSIST, on_tick, control);
    return control->terminate[0] && control->terminate[1] && control->hang_up &&
           control->start_timer && control->publish_timer && control->life_timer && control->tick &&
           event_add(control->terminate[0], NULL) == 0 &&
           event_add(control->terminate[1], NULL) == 0 && event_add(control->hang_up, NULL) == 0 &&
           event_add(control->start_timer, &wait) == 0 && event_add(control->tick, &tick) == 0;
}

static bool open_model(struct hb_control *control)
{
    control->model = hb_model_new();
    if (control->model == NULL)
        return false;
    control->model->left = hb_control_backend_left;
    control->model->reusable = hb_control_id_reusable;
    control->model->raw_counts = hb_control_raw_counts;
    control->model->raw_quic = hb_control_raw_quic;
    control->model->context = control;
    return true;
}

/* The parts in the order of their dependence; the first that fails has said why, or there is no
 * memory. */
static bool open_parts(struct hb_control *control)
{
    const struct hb_control_options *options = &control->options;

    control->history = hb_history_open(options->state);
    control->events = hb_events_new();
    if (control->history == NULL || control->events == NULL) {
        hb_log(HB_LOG_ERROR, "not enough memory to start");
        return false;
    }
    control->first_config = hb_control_read_first(control);
    if (control->first_config == NULL) {
        hb_log(HB_LOG_ERROR,
               "%s: not usable, see above; 'halbachctl config check %s' checks it "
               "again",
               options->config, options->config);
        return false;
    }
    control->loaded_unix = hb_now_unix();
    control->base = event_base_new();
    if (control->base == NULL || !open_timers(control) || !hb_maintenance_open(control) ||
        !open_model(control)) {
        hb_log(HB_LOG_ERROR, "cannot set up the event loop: not enough memory or descriptors");
        return false;
    }
    control->background = hb_background_open(control->base);
    if (control->background == NULL) {
        hb_log(HB_LOG_ERROR, "cannot start the thread that writes files: %s", strerror(errno));
        return false;
    }
    /* Before the state file is touched: a second control must not disturb the first. */
    control->api = hb_api_open(control->base, options->socket, control);
    if (control->api == NULL)
        return false;
    control->known_valid = hb_state_load(options->state, &control->known) == 0;
    control->publication.highest = control->known.generation;
    control->hops = hb_next_hops_open(control->base, on_hop_changed, control);
    if (control->hops == NULL) {
        hb_log(HB_LOG_ERROR, "cannot ask the kernel for routes and neighbours (netlink): %s",
               strerror(errno));
        return false;
    }
    hb_control_listen(control);
    control->probes = hb_probes_open(control->base, control->model, on_probe_changed, control);
    control->publisher =
        hb_publisher_open(control->base, options->dataplane, &hb_control_publisher_events, control);
    if (control->probes == NULL || control->publisher == NULL) {
        hb_log(HB_LOG_ERROR, "cannot set up probes and the dataplane's connection: not enough "
                             "memory");
        return false;
    }
    return true;
}

struct hb_control *hb_control_open(const struct hb_control_options *options)
{
    struct hb_control *control = calloc(1, sizeof(*control));

    if (control == NULL) {
        hb_log(HB_LOG_ERROR, "not enough memory to start");
        return NULL;
    }
    control->options = *options;
    if (asprintf(&control->slots, "%s.slots", options->state) < 0) {
        hb_log(HB_LOG_ERROR, "not enough memory to start");
        free(control);
        return NULL;
    }
    control->started_ms = hb_now_ms();
    snprintf(control->dataplane.problem, sizeof(control->dataplane.problem), "not connected yet");
    signal(SIGPIPE, SIG_IGN);
    if (!open_parts(control)) {
        hb_control_close(control);
        return NULL;
    }
    return control;
}

int hb_control_run(struct hb_control *control)
{
    hb_log(HB_LOG_NOTICE, "halbach-control " HB_VERSION ": configuration %s, dataplane %s, API %s",
           control->options.config, control->options.dataplane, control->options.socket);
    if (event_base_dispatch(control->base) < 0) {
        hb_log(HB_LOG_ERROR, "the event loop failed: %s", strerror(errno));
        return 1;
    }
    hb_notify("STOPPING=1");
    return control->failed ? 1 : 0;
}

static void free_event(struct event *event)
{
    if (event != NULL)
        event_free(event);
}

/* The reverse of open_parts(). */
void hb_control_close(struct hb_control *control)
{
    if (control->started) {
        hb_control_save(control);
        hb_control_save_history(control);
    }
    hb_background_close(control->background);
    control->background = NULL;
    if (control->publisher != NULL)
        hb_publisher_close(
            control->publisher); /* lookups are answered while the API still stands */
    control->publisher = NULL;
    hb_probes_close(control->probes);
    control->probes = NULL;
    hb_plan_clear(&control->plan);
    hb_publication_clear(&control->publication);
    hb_state_clear(&control->known);
    hb_api_close(control->api);
    hb_model_free(control->model);
    hb_icmp_socket_close(control->icmp[1]);
    hb_icmp_socket_close(control->icmp[0]);
    if (control->hops != NULL)
        hb_next_hops_close(control->hops);
    hb_maintenance_close(control);
    free_event(control->tick);
    free_event(control->life_timer);
    free_event(control->publish_timer);
    free_event(control->start_timer);
    free_event(control->hang_up);
    free_event(control->terminate[1]);
    free_event(control->terminate[0]);
    if (control->base != NULL)
        event_base_free(control->base);
    hb_config_free(control->first_config);
    free(control->first_text);
    hb_history_close(control->history);
    hb_events_free(control->events);
    free(control->slots);
    free(control);
}
