/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dataplane.h: the process as a whole: what it is made of, in the order in which it is built.
 *
 * Built by hb_dataplane_start step by step; when a step fails, what was built goes in the reverse
 * order and the first error is the one that is told. Main lcore only.
 */
#ifndef HB_DATAPLANE_DATAPLANE_H
#define HB_DATAPLANE_DATAPLANE_H

#include "api_listener.h"
#include "api_server.h"
#include "counters.h"
#include "eal_setup.h"
#include "generation_adopt.h"
#include "node_memory.h"
#include "options.h"
#include "port.h"
#include "worker.h"

struct hb_dataplane {
    struct hb_command_line line;
    struct hb_options options;
    char *program;

    int signals; /* signalfd of SIGINT and SIGTERM */
    struct hb_api_listener listener;
    struct hb_eal_plan plan;
    uint32_t workers_count;
    uint8_t worker_node[HB_WORKERS_MAX]; /* by worker index, as the next */
    uint32_t worker_lcore[HB_WORKERS_MAX];
    struct hb_node_memory memory;
    struct hb_ports ports;
    uint64_t instance; /* random for each start */
    struct hb_counters counters;
    struct hb_generation_head head;
    struct hb_adopted *adopted;
    struct hb_handover *handover; /* NULL with one worker */
    struct hb_worker *worker[HB_WORKERS_MAX];
    struct hb_api_handlers handlers;
    struct hb_api_server *server;
};

/* Builds all, once `line`, `options` and `program` are filled. Returns 0, or a negative errno with
 * `problem` (HB_TEXT_SIZE bytes) and nothing left behind. */
int hb_dataplane_start(struct hb_dataplane *dataplane, char *problem);

/* Serves the control socket until SIGINT or SIGTERM. Sleeps when there is nothing to do. */
void hb_dataplane_serve(struct hb_dataplane *dataplane);

/* The exact reverse of the start: the workers finish the burst in hand, a last report, ports, EAL.
 */
void hb_dataplane_stop(struct hb_dataplane *dataplane);

/* dataplane_report.c: what is told to people. */
void hb_report_start(const struct hb_dataplane *dataplane);
void hb_report_end(const struct hb_dataplane *dataplane);

/* dataplane_api.c: the answers to control. */
struct hb_api_handlers hb_dataplane_handlers(struct hb_dataplane *dataplane);

#endif
