/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop.c: a worker's life: poll, forward, age, tell that it holds no generation, again.
 *
 * The generation is loaded once a burst and forgotten at the end of the turn, which is reported as
 * a quiescent state; so the main lcore knows when nobody uses an old one any more.
 */
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_rcu_qsbr.h>

#include "full_nat.h"
#include "nat_handover.h"
#include "nat_map.h"
#include "pipeline.h"
#include "stages.h"
#include "worker_state.h"

#define IDLE_POLLS_BEFORE_SLEEP 1000
#define AGED_PER_TURN_MAX       64 /* buckets, so that no burst waits long for ageing */

static const struct hb_generation *load_generation(struct hb_worker *worker)
{
    const struct hb_generation_set *set =
        atomic_load_explicit(&worker->config.head->current, memory_order_acquire);
    const struct hb_generation *generation;

    if (set == NULL)
        return NULL;
    generation = set->node[worker->config.numa_node];
    worker->counters->generation_number = generation->number;
    return generation;
}

/* Polls the port, and the kernel's side of it. */
static bool poll_port(struct hb_worker *worker, uint32_t index)
{
    const struct hb_kernel_way *kernel = &worker->config.kernel[index];
    uint16_t port = worker->config.ports[index];
    struct rte_mbuf *mbufs[HB_BURST];
    uint16_t count = rte_eth_rx_burst(port, (uint16_t)worker->config.index, mbufs, HB_BURST);
    const struct hb_generation *generation = load_generation(worker);

    if (unlikely(kernel->there))
        hb_punt_relay(worker, kernel->port, port);
    if (count == 0)
        return false;
    worker->rx_port = port;
    worker->punt_port = kernel->there ? kernel->port : HB_NO_PORT;
    worker->run(worker, generation, mbufs, count);
    return true;
}

static void count_expired(void *context, const struct hb_flow_value *flow)
{
    struct hb_worker *worker = context;

    worker->counters->flow_expiries++;
    hb_end_flow(worker, flow);
}

/* Ages as many buckets as the time since the last turn calls for. What is due is kept in fractions
 * of a bucket, else a small table on a fast loop would never be aged. */
static void age_flows(struct hb_worker *worker)
{
    uint64_t buckets = hb_flow_table_buckets(worker->flows);
    uint32_t elapsed_ms = worker->now_ms - worker->aged_ms;
    uint64_t now_due;

    worker->aged_ms = worker->now_ms;
    worker->age_due += buckets * elapsed_ms;
    if (worker->age_due > buckets * HB_SWEEP_MS)
        worker->age_due = buckets * HB_SWEEP_MS;
    now_due = worker->age_due / HB_SWEEP_MS;
    if (now_due == 0)
        return;
    if (now_due > AGED_PER_TURN_MAX)
        now_due = AGED_PER_TURN_MAX;
    worker->age_due -= now_due * HB_SWEEP_MS;
    hb_flow_table_age(worker->flows, worker->now_ms, (uint32_t)now_due, count_expired, worker);
    worker->counters->flows = hb_flow_table_used(worker->flows);
}

/* Answers of full NAT that other workers received. When there is no full NAT any more, what is left
 * in the rings is taken now and then. */
static bool take_handed(struct hb_worker *worker)
{
    const struct hb_generation *generation = load_generation(worker);
    bool full = generation != NULL && generation->nat != NULL && generation->nat->full;

    if (!full && (worker->counters->loops & 1023) != 0)
        return false;
    worker->punt_port = HB_NO_PORT; /* nothing of it is the kernel's */
    return hb_handover_take(worker, generation);
}

/* As if the time of all entries were over: the gauges stay exact. */
static void flush_flows(struct hb_worker *worker)
{
    hb_flow_table_flush(worker->flows, count_expired, worker);
    worker->counters->flows = hb_flow_table_used(worker->flows);
    atomic_store_explicit(&worker->flush, false, memory_order_release);
}

bool hb_loop_turn(struct hb_worker *worker, uint32_t now_ms)
{
    uint32_t elapsed_ms = now_ms - worker->now_ms;
    bool busy = false;

    worker->now_ms = now_ms;
    if (unlikely(atomic_load_explicit(&worker->flush, memory_order_acquire)))
        flush_flows(worker);
    for (uint32_t i = 0; i < worker->config.ports_count; i++)
        busy |= poll_port(worker, i);
    if (unlikely(worker->config.handover != NULL))
        busy |= take_handed(worker);
    age_flows(worker);
    if (worker->sessions != NULL)
        hb_full_nat_age(worker, elapsed_ms);
    if (unlikely(worker->counters->held_packets != 0))
        hb_fragments_age(worker);
    worker->counters->loops++;
    worker->counters->busy_loops += busy;
    rte_rcu_qsbr_quiescent(worker->config.head->qsbr, worker->config.index);
    return busy;
}

/* While it sleeps a worker is offline, so that nobody waits for it to be quiescent. */
static void rest(struct hb_worker *worker, bool busy)
{
    struct rte_rcu_qsbr *qsbr = worker->config.head->qsbr;

    worker->idle_polls = busy ? 0 : worker->idle_polls + 1;
    if (worker->config.idle_sleep_us == 0 || worker->idle_polls < IDLE_POLLS_BEFORE_SLEEP)
        return;
    rte_rcu_qsbr_thread_offline(qsbr, worker->config.index);
    rte_delay_us_sleep(worker->config.idle_sleep_us);
    rte_rcu_qsbr_thread_online(qsbr, worker->config.index);
}

uint32_t hb_worker_clock_ms(void)
{
    return (uint32_t)(rte_rdtsc() / (rte_get_tsc_hz() / 1000));
}

int hb_worker_run(void *argument)
{
    struct hb_worker *worker = argument;
    struct rte_rcu_qsbr *qsbr = worker->config.head->qsbr;
    uint64_t cycles_per_ms = rte_get_tsc_hz() / 1000; /* as in hb_worker_clock_ms() */

    worker->now_ms = (uint32_t)(rte_rdtsc() / cycles_per_ms);
    worker->aged_ms = worker->now_ms;
    rte_rcu_qsbr_thread_register(qsbr, worker->config.index);
    rte_rcu_qsbr_thread_online(qsbr, worker->config.index);
    while (!atomic_load_explicit(&worker->stop, memory_order_relaxed)) {
        /* The clock: one division a turn, whatever the turn brings. */
        bool busy = hb_loop_turn(worker, (uint32_t)(rte_rdtsc() / cycles_per_ms));

        rest(worker, busy);
    }
    rte_rcu_qsbr_thread_offline(qsbr, worker->config.index);
    rte_rcu_qsbr_thread_unregister(qsbr, worker->config.index);
    return 0;
}
