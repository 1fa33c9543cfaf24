/* SPDX-License-Identifier: BSD-3-Clause */
/* See dataplane.h. `steps` near the end is the table of contents. */
#include "dataplane.h"
#include "flow_table.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_rcu_qsbr.h>

#include "log.h"
#include "nat_handover.h"
#include "notify.h"

#define HOUSEKEEPING_MS 1000

static int fail_memory(char *problem, const char *what)
{
    snprintf(problem, HB_TEXT_SIZE,
             "no memory for %s; reserve more hugepages, or give EAL more memory (-m)", what);
    return -ENOMEM;
}

/* Before EAL makes its threads, so that they leave the signals to us. */
static int take_signals(struct hb_dataplane *d, char *problem)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    d->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (d->signals >= 0)
        return 0;
    snprintf(problem, HB_TEXT_SIZE, "no signalfd: %s", strerror(errno));
    return -errno;
}

static void return_signals(struct hb_dataplane *d)
{
    close(d->signals);
}

/* First of all that others can see: it tells whether another dataplane runs, before anything of
 * that one could be disturbed. */
static int open_listener(struct hb_dataplane *d, char *problem)
{
    return hb_api_listener_open(&d->listener, d->options.socket, problem);
}

static void close_listener(struct hb_dataplane *d)
{
    hb_api_listener_close(&d->listener);
}

static int start_eal(struct hb_dataplane *d, char *problem)
{
    struct hb_machine machine;
    uint32_t lcore;
    int error;

    hb_machine_look(&d->options, &machine);
    error = hb_eal_make_plan(d->program, &d->line, &d->options, &machine, &d->plan, problem);
    if (error == 0)
        error = hb_eal_start(&d->plan, problem);
    if (error != 0)
        return error;
    d->workers_count = 0;
    RTE_LCORE_FOREACH_WORKER (lcore) {
        uint32_t node = rte_lcore_to_socket_id(lcore);

        d->worker_lcore[d->workers_count] = lcore;
        d->worker_node[d->workers_count++] = (uint8_t)(node < HB_NODES_MAX ? node : 0);
    }
    return 0;
}

static void stop_eal(struct hb_dataplane *d)
{
    (void)d;
    hb_eal_stop();
}

static int open_ports(struct hb_dataplane *d, char *problem)
{
    int error = hb_ports_open(&d->ports, &d->options, d->worker_node, d->workers_count, problem);

    if (error != 0)
        hb_ports_close(&d->ports);
    return error;
}

static void close_ports(struct hb_dataplane *d)
{
    hb_ports_close(&d->ports);
}

static int make_counters(struct hb_dataplane *d, char *problem)
{
    int error;

    if (getrandom(&d->instance, sizeof(d->instance), 0) != sizeof(d->instance))
        d->instance = (uint64_t)time(NULL) << 32 | (uint64_t)getpid();
    error = hb_counters_create(&d->counters, d->workers_count, d->instance);
    if (error != 0)
        snprintf(problem, HB_TEXT_SIZE, "the counters region cannot be made (memfd): %s",
                 strerror(-error));
    return error;
}

static void free_counters(struct hb_dataplane *d)
{
    hb_counters_destroy(&d->counters);
}

static void *allocate_on_node(void *context, size_t bytes, uint32_t node)
{
    (void)context;
    return rte_zmalloc_socket("halbach_generation", bytes, 64, (int)node);
}

static void release_on_node(void *context, void *memory)
{
    (void)context;
    rte_free(memory);
}

static int make_generation_head(struct hb_dataplane *d, char *problem)
{
    size_t bytes = rte_rcu_qsbr_get_memsize(d->workers_count);

    d->memory = (struct hb_node_memory){
        .allocate = allocate_on_node,
        .release = release_on_node,
        .workers = d->workers_count,
        .worker_node = d->worker_node,
        .flow_tags_bytes = hb_flow_table_tags_bytes(d->options.flows / d->workers_count, 0)};
    for (uint32_t i = 0; i < d->workers_count; i++)
        d->memory.nodes |= 1u << d->worker_node[i];
    d->head.qsbr = rte_zmalloc("halbach_qsbr", bytes, RTE_CACHE_LINE_SIZE);
    if (d->head.qsbr == NULL || rte_rcu_qsbr_init(d->head.qsbr, d->workers_count) != 0) {
        rte_free(d->head.qsbr);
        return fail_memory(problem, "the workers' quiescent states");
    }
    d->adopted = hb_adopted_create(&d->head, &d->memory, &d->ports);
    if (d->adopted == NULL) {
        rte_free(d->head.qsbr);
        return fail_memory(problem, "the list of tables");
    }
    return 0;
}

static void free_generation_head(struct hb_dataplane *d)
{
    hb_adopted_destroy(d->adopted);
    rte_free(d->head.qsbr);
}

static void free_workers(struct hb_dataplane *d)
{
    for (uint32_t i = 0; i < d->workers_count; i++) {
        hb_worker_destroy(d->worker[i]);
        d->worker[i] = NULL;
    }
    hb_handover_destroy(d->handover);
    d->handover = NULL;
}

static int make_workers(struct hb_dataplane *d, char *problem)
{
    bool needed;

    d->handover = hb_handover_create(d->workers_count, &needed);
    if (needed && d->handover == NULL)
        return fail_memory(problem, "the rings between workers");
    for (uint32_t i = 0; i < d->workers_count; i++) {
        struct hb_worker_config config = {
            .index = i,
            .lcore = d->worker_lcore[i],
            .numa_node = d->worker_node[i],
            .ports_count = d->ports.count,
            .flows_max = d->options.flows / d->workers_count,
            .sessions_max = d->options.nat_sessions / d->workers_count,
            .handover = d->handover,
            .links_down = &d->ports.links_down,
            .flows6_max = d->options.flows6 / d->workers_count,
            .idle_sleep_us = d->options.idle_sleep_us,
            .timeouts = d->options.timeouts,
            .region = d->counters.region,
            .head = &d->head,
            .siblings = d->worker,
            .siblings_count = d->workers_count,
        };

        for (uint32_t p = 0; p < d->ports.count; p++) {
            config.ports[p] = d->ports.port[p].id;
            config.udp_checksum_ports |= (uint32_t)d->ports.port[p].udp_checksum << config.ports[p];
            config.kernel[p] = (struct hb_kernel_way){d->ports.port[p].punt_id != HB_PORT_NONE,
                                                      d->ports.port[p].punt_id};
        }
        d->worker[i] = hb_worker_create(&config, problem, HB_TEXT_SIZE);
        if (d->worker[i] == NULL) {
            free_workers(d);
            return -ENOMEM;
        }
    }
    return 0;
}

static void halt_workers(struct hb_dataplane *d)
{
    for (uint32_t i = 0; i < d->workers_count; i++)
        hb_worker_stop(d->worker[i]);
    for (uint32_t i = 0; i < d->workers_count; i++)
        rte_eal_wait_lcore(d->worker_lcore[i]);
    hb_report_end(d);
}

static int launch_workers(struct hb_dataplane *d, char *problem)
{
    for (uint32_t i = 0; i < d->workers_count; i++) {
        int error = rte_eal_remote_launch(hb_worker_run, d->worker[i], d->worker_lcore[i]);

        if (error != 0) {
            snprintf(problem, HB_TEXT_SIZE, "worker %u cannot be started on lcore %u: %s", i,
                     d->worker_lcore[i], strerror(-error));
            halt_workers(d);
            return error;
        }
    }
    return 0;
}

static int open_server(struct hb_dataplane *d, char *problem)
{
    d->handlers = hb_dataplane_handlers(d);
    d->server = hb_api_server_create(&d->listener, &d->handlers);
    if (d->server != NULL)
        return 0;
    snprintf(problem, HB_TEXT_SIZE, "the control socket cannot be served: %s", strerror(errno));
    return -errno;
}

static void close_server(struct hb_dataplane *d)
{
    hb_api_server_destroy(d->server);
}

/* A step that fails leaves nothing of itself behind. */
static const struct step {
    const char *name;
    int (*up)(struct hb_dataplane *dataplane, char *problem);
    void (*down)(struct hb_dataplane *dataplane);
} steps[] = {
    {"signals", take_signals, return_signals},
    {"listener", open_listener, close_listener},
    {"eal", start_eal, stop_eal},
    {"ports", open_ports, close_ports},
    {"counters", make_counters, free_counters},
    {"generation", make_generation_head, free_generation_head},
    {"workers", make_workers, free_workers},
    {"launch", launch_workers, halt_workers},
    {"server", open_server, close_server},
};

static void go_down(struct hb_dataplane *dataplane, size_t built)
{
    while (built > 0)
        steps[--built].down(dataplane);
}

int hb_dataplane_start(struct hb_dataplane *dataplane, char *problem)
{
    /* For the tests: lets the start fail behind the step of this name. */
    const char *test_failure = getenv("HALBACH_TEST_FAIL_AFTER");

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        int error = steps[i].up(dataplane, problem);

        if (error != 0) {
            go_down(dataplane, i);
            return error;
        }
        if (test_failure != NULL && strcmp(test_failure, steps[i].name) == 0) {
            snprintf(problem, HB_TEXT_SIZE, "asked to fail after step '%s'", steps[i].name);
            go_down(dataplane, i + 1);
            return -ECANCELED;
        }
    }
    hb_report_start(dataplane);
    hb_notify("READY=1");
    return 0;
}

void hb_dataplane_stop(struct hb_dataplane *dataplane)
{
    hb_notify("STOPPING=1");
    go_down(dataplane, sizeof(steps) / sizeof(steps[0]));
}

/* Once a second: another tool may have detached a steering program. */
static void watch_steering(struct hb_ports *ports)
{
    for (uint32_t i = 0; i < ports->count; i++) {
        struct hb_port *port = &ports->port[i];
        bool lost = port->steer != NULL && !hb_steer_attached(port->steer);

        if (lost && !port->steering_lost)
            hb_log_error(
                "%s: the steering program has been detached by someone else; VIP packets go "
                "to the kernel now; restart halbach-dataplane",
                port->kernel.name);
        port->steering_lost = lost;
    }
}

void hb_dataplane_serve(struct hb_dataplane *dataplane)
{
    struct pollfd ready[] = {
        {.fd = dataplane->signals, .events = POLLIN},
        {.fd = hb_api_server_fd(dataplane->server), .events = POLLIN},
    };

    struct signalfd_siginfo signal;

    /* Reading the signal takes it, so that a second one can end the process at once. */
    while (read(dataplane->signals, &signal, sizeof(signal)) != (ssize_t)sizeof(signal)) {
        int timeout = hb_api_server_timeout_ms(dataplane->server);

        if (timeout < 0 || timeout > HOUSEKEEPING_MS)
            timeout = HOUSEKEEPING_MS;
        (void)poll(ready, 2, timeout);
        hb_api_server_step(dataplane->server);
        watch_steering(&dataplane->ports);
        hb_ports_watch_links(&dataplane->ports);
        hb_ports_steer_count(&dataplane->ports, dataplane->counters.region);
        hb_adopted_log(dataplane->adopted);
    }
}
