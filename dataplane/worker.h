/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.h: one worker lcore and all that it owns.
 *
 * A worker runs to completion: it receives from its own queues, decides, rewrites and sends on its
 * own queues. Nothing that it writes is written by anyone else; nothing that it reads from others
 * changes under it, except the pointer to the generation.
 */
#ifndef HB_DATAPLANE_WORKER_H
#define HB_DATAPLANE_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "halbach/counters.h"
#include "halbach/flow_key.h"
#include "halbach/types.h"

struct hb_handover;
struct hb_worker; /* worker_state.h holds its fields, for the stages and the tests */
struct rte_rcu_qsbr;

/* The generation of each NUMA node: one store of a pointer to this switches all workers at once. */
struct hb_generation_set {
    const struct hb_generation *node[8]; /* by NUMA node; filled for nodes that have workers */
};

/* Where the main lcore publishes. Written by the main lcore only. */
struct hb_generation_head {
    const struct hb_generation_set *_Atomic current; /* NULL until the first generation */
    struct rte_rcu_qsbr *qsbr;                       /* thread ids are worker indexes */
};

/* Idle times after which a flow entry is removed, in milliseconds. */
struct hb_flow_timeouts {
    uint32_t tcp_syn_ms;         /* SYN seen, nothing after it: 3,000 */
    uint32_t tcp_established_ms; /* 3,600,000 */
    uint32_t tcp_fin_ms;         /* 10,000 */
    uint32_t tcp_rst_ms;         /* 1,000 */
    uint32_t udp_ms;             /* 60,000 */
};

struct hb_worker_config {
    uint32_t index; /* 0 to workers - 1; queue `index` of every port is its own */
    uint32_t lcore;
    uint32_t numa_node;
    uint16_t ports[HB_PORTS_MAX]; /* ports it receives from */
    uint32_t ports_count;
    struct hb_kernel_way {
        bool there;
        uint16_t port;      /* the TAP */
    } kernel[HB_PORTS_MAX]; /* of each of `ports`: the way to the kernel, if it has one */
    uint64_t flows_max;     /* flows that its cache holds */
    uint64_t flows6_max;    /* of which IPv6 at most; 0: an eighth */
    uint32_t sessions_max;  /* of full NAT; 0: none is possible */
    const struct hb_handover *handover; /* nat_handover.h; NULL: this is the only worker */
    uint32_t udp_checksum_ports;        /* bit mask by port id: those that compute UDP checksums */
    const _Atomic uint32_t
        *links_down;        /* the same: those without a link; NULL: none that is known */
    uint32_t idle_sleep_us; /* sleep so long after many idle polls in a row; 0: never */
    struct hb_flow_timeouts timeouts;
    struct hb_counters_header *region; /* counters; it writes its own block only */
    const struct hb_generation_head *head;
    /* All workers, this one too, for peek.h: the owner's array, filled before any is launched. */
    struct hb_worker *const *siblings;
    uint32_t siblings_count;
};

/* Allocates a worker and its flow cache on its NUMA node. Main lcore, before launch. Returns NULL
 * with a message for a person in `error` when memory is short. */
struct hb_worker *hb_worker_create(const struct hb_worker_config *config, char *error,
                                   uint32_t error_size);

/* The worker's life, to be launched on its lcore with rte_eal_remote_launch: polls until
 * hb_worker_stop(), finishes the burst in hand, flushes what it buffered. Returns 0. */
int hb_worker_run(void *worker);

/* Asks a worker to stop. Any thread. */
void hb_worker_stop(struct hb_worker *worker);

/* Frees it. Main lcore, after its lcore has returned. */
void hb_worker_destroy(struct hb_worker *worker);

/* The clock that workers go by: milliseconds, wraps. Any thread. */
uint32_t hb_worker_clock_ms(void);

/* Asks a worker to forget all its flows; the second tells whether it has. Main lcore. */
void hb_worker_flush(struct hb_worker *worker);
bool hb_worker_is_flushed(const struct hb_worker *worker);

struct hb_flow_view {
    uint16_t backend;
    uint32_t incarnation;
    uint32_t idle_ms;
};

/* Looks for a flow in the cache of a running worker. Main lcore; the worker may change the entry at
 * the same time, so the answer is a snapshot for a person, never an input to a decision. */
bool hb_worker_peek_flow(const struct hb_worker *worker, const struct hb_flow_key *flow,
                         uint64_t hash, struct hb_flow_view *view);

#endif
