/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker_state.h: the fields of a worker, for the packet path and its tests. Others use worker.h.
 *
 * A worker's memory is on the NUMA node of its lcore. After hb_worker_create, only its own lcore
 * writes it, except `stop`.
 */
#ifndef HB_DATAPLANE_WORKER_STATE_H
#define HB_DATAPLANE_WORKER_STATE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <rte_config.h>

#include "batch.h"
#include "bounded_load.h"
#include "flow_table.h"
#include "fragment_table.h"
#include "generation.h"
#include "nat_session.h"
#include "talkers.h"
#include "token_bucket.h"
#include "variant.h"
#include "worker.h"

#define HB_NO_PORT UINT16_MAX

_Static_assert(RTE_MAX_ETHPORTS <= HB_PORTS_MAX, "every port id indexes the transmit buffers");

/* Packets that wait for one port until the burst has passed the pipeline. A burst fits always. */
struct hb_tx_buffer {
    uint16_t count;
    struct hb_packet *packet[HB_BURST]; /* the context of each one; not for punts */
    struct rte_mbuf *mbuf[HB_BURST];
};

struct hb_worker {
    /* Set by hb_worker_create (main lcore, before launch); only read after that. */
    alignas(64) struct hb_worker_config config;
    struct hb_worker_counters *counters;  /* its block of the region; written by this worker only */
    struct hb_service_counters *services; /* by service id; the same */
    struct hb_backend_counters *backends; /* by backend id; the same */
    struct hb_flow_table *flows;          /* written by this worker only */
    struct hb_loads *loads;               /* the same; `bounded` when in use */
    struct hb_nat_sessions *sessions;     /* the same; NULL: none are possible */
    struct hb_fragment_table *fragments;  /* the same */
    hb_pipeline *run;                     /* hb_pipeline_run of the best variant there is */

    /* Written by any thread; read by the worker each turn. */
    alignas(64) atomic_bool stop;
    atomic_bool flush; /* wanted; taken back by the worker when it has done it */

    /* Written by the worker only. */
    alignas(64) uint32_t now_ms; /* coarse clock, may wrap; the same for a whole turn */
    uint32_t aged_ms;            /* when ageing last took up its due */
    uint64_t age_due;            /* buckets to age, in fractions of HB_SWEEP_MS */
    uint32_t idle_polls;         /* turns in a row that received nothing */
    uint32_t tx_pending;         /* bit mask of the ports whose buffer holds packets */
    uint16_t punt_port; /* to the kernel, for what comes by the port in hand; or HB_NO_PORT */
    struct hb_token_bucket punt_rate[2]; /* see punt.c */
    uint16_t ipv4_id;                    /* of the next outer IPv4 header that needs one */
    uint32_t ipv6_fragment_id;           /* of the next outer IPv6 packet that is cut */
    struct hb_loads *bounded;            /* NULL until a pool bounds its load */
    struct hb_talkers talkers;           /* its entries are in the region */
    uint16_t rx_port;                    /* of the burst in hand */
    uint16_t answers_count;              /* packets of its own that wait for the end of the burst */
    uint16_t released;                   /* fragments that were held and can go on */
    struct hb_token_bucket icmp_rate;    /* of its own ICMP messages */
    struct hb_token_bucket relay_rate;   /* of ICMP errors handed on */
    struct rte_mbuf *answers[HB_BURST];  /* see answer.h */
    struct hb_tx_buffer punt;
    struct hb_tx_buffer tx[HB_PORTS_MAX]; /* by port id */
    struct hb_batch batch;
    struct hb_token_bucket rates[HB_SERVICES_MAX]; /* by service id: limits on new flows */
};
_Static_assert(HB_PORTS_MAX <= 32, "tx_pending has a bit for each port");
_Static_assert(offsetof(struct hb_worker, now_ms) % 64 == 0,
               "own writes share no line with `stop`");

/* One turn of the worker's loop at a time that the caller says: every port is polled once and what
 * came passes the pipeline. Returns whether anything came. For hb_worker_run and the tests. */
bool hb_loop_turn(struct hb_worker *worker, uint32_t now_ms);

/* Every bucket of the flow cache is aged once in about this time. A power of two. */
#define HB_SWEEP_MS 2048

/* The gauges of live flows, exact at any time: called wherever an entry begins, ends or changes its
 * backend. */
static inline void hb_count_flow(struct hb_worker *worker, uint16_t backend)
{
    worker->backends[backend].flows++;
    if (unlikely(worker->bounded != NULL))
        hb_loads_add(worker->bounded, backend);
}

static inline void hb_uncount_flow(struct hb_worker *worker, uint16_t backend)
{
    worker->backends[backend].flows--;
    if (unlikely(worker->bounded != NULL))
        hb_loads_remove(worker->bounded, backend);
}

/* An entry has ended: for its backend, and for its service if that counted it (stage_admit.c). */
static inline void hb_end_flow(struct hb_worker *worker, const struct hb_flow_value *flow)
{
    hb_uncount_flow(worker, flow->backend);
    if (unlikely(flow->tag != 0))
        worker->services[flow->tag - 1].flows--;
}

#endif
