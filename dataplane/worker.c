/* SPDX-License-Identifier: BSD-3-Clause */
/* worker.c: making, stopping, freeing and asking a worker; loop.c is its life. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_malloc.h>
#include <rte_random.h>

#include "flow_bucket.h"
#include "stages.h"
#include "worker_state.h"

static void open_counters(struct hb_worker *worker)
{
    struct hb_counters_header *region = worker->config.region;
    uint32_t index = worker->config.index;

    /* The functions of the contract serve readers; this worker is the one writer of its block. */
    worker->counters = (void *)(uintptr_t)hb_counters_worker(region, index);
    worker->services = (void *)(uintptr_t)hb_counters_services(region, index);
    worker->backends = (void *)(uintptr_t)hb_counters_backends(region, index);
    worker->quic = (void *)(uintptr_t)hb_counters_quic(region, index);
    worker->counters->lcore = worker->config.lcore;
    hb_talkers_init(&worker->talkers, (void *)(uintptr_t)hb_counters_talkers(region, index),
                    region->talkers_max, rte_rand());
    worker->counters->flows_max = hb_flow_table_capacity(worker->flows);
    worker->counters->nat_sessions_max = worker->config.sessions_max;
}

/* Zeroed memory on the node, or anywhere when the node has none (as without hugepages). */
static void *allocate(const char *what, size_t size, uint32_t node)
{
    void *memory = rte_zmalloc_socket(what, size, 64, (int)node);

    return memory != NULL ? memory : rte_zmalloc_socket(what, size, 64, SOCKET_ID_ANY);
}

static struct hb_nat_sessions *make_sessions(void *memory, const struct hb_worker_config *config)
{
    const struct hb_counters_header *region = config->region;
    struct hb_nat_sessions *sessions;
    struct hb_hash_key seed;

    for (uint32_t i = 0; i < HB_HASH_KEY_WORDS; i++)
        seed.word[i] = rte_rand();
    sessions = hb_nat_sessions_init(memory, config->sessions_max, &config->timeouts, &seed);
    if (region->nat_max == region->backends_max)
        hb_nat_sessions_count_in(sessions,
                                 (void *)(uintptr_t)hb_counters_nat(region, config->index));
    return sessions;
}

static const struct hb_variant *best_variant(void)
{
    uint32_t count;
    const struct hb_variant *variants = hb_variants(&count);

    return &variants[count - 1];
}

struct hb_worker *hb_worker_create(const struct hb_worker_config *config, char *error,
                                   uint32_t error_size)
{
    struct hb_worker *worker;
    void *flows = NULL, *loads = NULL, *fragments = NULL, *sessions = NULL;
    size_t sessions_bytes = hb_nat_sessions_bytes(config->sessions_max);

    if (config->flows_max == 0 || config->flows_max > HB_FLOW_TABLE_MAX ||
        config->flows6_max > config->flows_max) {
        snprintf(error, error_size,
                 "worker %u: a flow cache of %" PRIu64 " entries is not possible; give --flows so "
                 "that each worker gets 1 to %" PRIu64,
                 config->index, config->flows_max, HB_FLOW_TABLE_MAX);
        return NULL;
    }
    worker = allocate("hb_worker", sizeof(*worker), config->numa_node);
    if (worker != NULL)
        flows = allocate("hb_flows", hb_flow_table_bytes(config->flows_max, config->flows6_max),
                         config->numa_node);
    if (flows != NULL)
        loads = allocate("hb_loads", sizeof(struct hb_loads), config->numa_node);
    if (loads != NULL)
        fragments = allocate("hb_fragments", hb_fragment_table_bytes(), config->numa_node);
    if (fragments != NULL && config->sessions_max > 0)
        sessions = allocate("hb_sessions", sessions_bytes, config->numa_node);
    if (fragments == NULL || (config->sessions_max > 0 && sessions == NULL)) {
        snprintf(
            error, error_size,
            "worker %u: no memory for its flow cache of %" PRIu64 " entries and %u NAT sessions "
            "(%zu MB on NUMA node %u); reserve more hugepages, give EAL more memory (-m) or "
            "lower --flows or --nat-sessions",
            config->index, config->flows_max, config->sessions_max,
            (hb_flow_table_bytes(config->flows_max, config->flows6_max) + sessions_bytes) >> 20,
            config->numa_node);
        rte_free(fragments);
        rte_free(loads);
        rte_free(flows);
        rte_free(worker);
        return NULL;
    }
    worker->config = *config;
    worker->flows =
        hb_flow_table_init(flows, config->flows_max, config->flows6_max, &config->timeouts);
    worker->loads = loads;
    if (sessions != NULL)
        worker->sessions = make_sessions(sessions, config);
    worker->fragments = hb_fragment_table_init(fragments);
    worker->punt_port = HB_NO_PORT;
    worker->run = best_variant()->run;
    atomic_init(&worker->stop, false);
    atomic_init(&worker->flush, false);
    /* Workers share the outer source address: they start counting far from one another. */
    worker->ipv4_id = (uint16_t)(config->index * 0x9e37);
    worker->ipv6_fragment_id = config->index * 0x9e3779b9;
    open_counters(worker);
    return worker;
}

void hb_worker_stop(struct hb_worker *worker)
{
    atomic_store_explicit(&worker->stop, true, memory_order_relaxed);
}

void hb_worker_flush(struct hb_worker *worker)
{
    atomic_store_explicit(&worker->flush, true, memory_order_release);
}

bool hb_worker_is_flushed(const struct hb_worker *worker)
{
    return !atomic_load_explicit(&worker->flush, memory_order_acquire);
}

void hb_worker_destroy(struct hb_worker *worker)
{
    struct rte_mbuf *mbuf;

    if (worker == NULL)
        return;
    hb_fragment_flush(worker->fragments);
    while ((mbuf = hb_fragment_next_out(worker->fragments, HB_FRAGMENT_LOST)) != NULL)
        hb_drop_mbuf(worker, mbuf, HB_DROP_FRAGMENT_NO_FIRST);
    worker->counters->held_packets = 0;
    rte_free(worker->fragments);
    rte_free(worker->sessions);
    rte_free(worker->loads);
    rte_free(worker->flows);
    rte_free(worker);
}

/* The table keeps the low bits of an incarnation: the backend's own, when they agree, tells the
 * rest. */
static uint32_t complete(const struct hb_worker *worker, const struct hb_flow_value *value)
{
    const struct hb_generation_set *set =
        atomic_load_explicit(&worker->config.head->current, memory_order_acquire);
    const struct hb_generation *generation =
        set != NULL ? set->node[worker->config.numa_node] : NULL;
    uint32_t now;

    if (generation == NULL || value->backend >= generation->backends_count)
        return value->incarnation;
    now = generation->backends[value->backend].incarnation;
    return ((now ^ value->incarnation) & HB_FLOW_INCARNATION_MASK) == 0 ? now : value->incarnation;
}

bool hb_worker_peek_flow(const struct hb_worker *worker, const struct hb_flow_key *flow,
                         uint64_t hash, struct hb_flow_view *view)
{
    uint32_t now_ms = __atomic_load_n(&worker->now_ms, __ATOMIC_RELAXED);
    struct hb_flow_query query = hb_flow_query_of(flow, hash);
    const struct hb_flow_query *queries[] = {&query};
    struct hb_flow_value value;
    hb_flow_ref entry;

    hb_flow_table_find(worker->flows, queries, 1, now_ms, &entry);
    if (entry == HB_FLOW_NONE)
        return false;
    value = hb_flow_table_get(worker->flows, entry);
    view->backend = value.backend;
    view->incarnation = complete(worker, &value);
    view->idle_ms = hb_flow_table_idle_ms(worker->flows, entry, now_ms);
    return true;
}
