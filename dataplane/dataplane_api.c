/* SPDX-License-Identifier: BSD-3-Clause */
/* The dataplane's answers to control: what stands behind each message of halbach/protocol.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dataplane.h"
#include "log.h"
#include "lookup.h"

#define FLUSH_TRIES 1000 /* of a millisecond */

static void answer_hello(void *context, struct hb_hello_reply *reply, int fds[2])
{
    const struct hb_dataplane *d = context;

    reply->instance = d->instance;
    reply->generation_number = hb_adopted_number(d->adopted);
    memcpy(reply->content, hb_adopted_content(d->adopted), sizeof(reply->content));
    for (uint32_t i = 0; i < d->workers_count; i++)
        reply->flows_max += hb_counters_worker(d->counters.region, i)->flows_max;
    reply->pid = (uint32_t)getpid();
    reply->workers = d->workers_count;
    reply->ports = d->ports.count;
    reply->tcp_idle_ms = d->options.timeouts.tcp_established_ms;
    snprintf(reply->version, sizeof(reply->version), "%s", HB_VERSION);
    for (uint32_t i = 0; i < d->ports.count; i++)
        hb_port_describe(&d->ports.port[i], &reply->port[i]);
    fds[0] = d->counters.fd;
    fds[1] = hb_adopted_fd(d->adopted);
}

static void answer_publish(void *context, const struct hb_publish *request, int fd,
                           struct hb_publish_reply *reply)
{
    struct hb_dataplane *d = context;

    (void)request; /* its number is for logs; the blob has the one that counts */
    hb_adopt(d->adopted, fd, reply);
}

static void answer_lookup(void *context, const struct hb_lookup *request,
                          struct hb_lookup_reply *reply)
{
    const struct hb_dataplane *d = context;

    hb_lookup_flow(hb_adopted_generation(d->adopted), d->worker, d->workers_count, &request->flow,
                   reply);
}

static void answer_settle(void *context, const struct hb_settle *request,
                          struct hb_settle_reply *reply)
{
    const struct hb_dataplane *d = context;

    hb_adopted_settle(d->adopted, request, reply);
}

/* Waits without keeping the CPU from the workers: they may share it with us. */
static void answer_flush(void *context, struct hb_flush_reply *reply)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct hb_dataplane *d = context;

    for (uint32_t i = 0; i < d->workers_count; i++) {
        reply->flows += hb_counters_worker(d->counters.region, i)->flows;
        hb_worker_flush(d->worker[i]);
    }
    for (int tries = 0; tries < FLUSH_TRIES && reply->workers < d->workers_count; tries++) {
        nanosleep(&pause, NULL);
        reply->workers = 0;
        for (uint32_t i = 0; i < d->workers_count; i++)
            reply->workers += hb_worker_is_flushed(d->worker[i]);
    }
    hb_log_notice("control asked for it: %" PRIu64 " flows forgotten", reply->flows);
}

static void log_line(void *context, const char *line)
{
    (void)context;
    hb_log_notice("%s", line);
}

struct hb_api_handlers hb_dataplane_handlers(struct hb_dataplane *dataplane)
{
    return (struct hb_api_handlers){
        .context = dataplane,
        .hello = answer_hello,
        .publish = answer_publish,
        .lookup = answer_lookup,
        .settle = answer_settle,
        .flush = answer_flush,
        .log = log_line,
    };
}
