/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_port.c: one worker of the dataplane on any ports that EAL has, with buffers of any size.
 *
 *     bench_port -l 0,1 --in-memory --no-pci --vdev net_pcap0,... --vdev net_null0 -- [KEY=VALUE
 * ...]
 *
 * halbach-dataplane itself sizes its buffers for NICs. A capture of a million packets that net_pcap
 * keeps in buffers (infinite_rx) needs a million of them, small ones; dpdk-testpmd has options for
 * that, this program does the same for a comparison of both on one port. The worker, its loop, the
 * flow cache and the adoption of generations are the dataplane's own.
 *
 *     buffers=N size=N  number and bytes of packet buffers, headroom included (16383, 2176)
 *     in=P out=P        ports (0, 1; the same one is allowed)
 *     flows=N           of the flow cache (1000000)
 *     vips, pools, backends, slots: of the generation, as in bench_plan.h (1, 1, 10, 65537)
 *     warm=S runs=N seconds=S   measures N times for S seconds, after S seconds (2, 5, 1)
 *     swaps=N           generations a second, each with one pool's table changed (0)
 *     gaps=1            times every turn of the worker's loop: how long its queue is left alone
 *     gaps=2            the same of a loop that does nothing: what the machine itself takes away
 *
 * Prints one line of JSON a run.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_rcu_qsbr.h>

#include "bench_plan.h"
#include "counters.h"
#include "generation_adopt.h"
#include "worker_state.h"

#define RING     1024
#define LONG_US  50 /* turns longer than this are counted */
#define FINE     65536
#define SWAP_MAX 100000

static struct settings {
    uint32_t buffers, size, in, out, flows, vips, pools, backends, slots, runs, swaps, gaps;
    double warm, seconds;
} settings = {.buffers = 16383,
              .size = RTE_MBUF_DEFAULT_BUF_SIZE,
              .in = 0,
              .out = 1,
              .flows = 1000000,
              .vips = 1,
              .pools = 1,
              .backends = 10,
              .slots = 65537,
              .runs = 5,
              .warm = 2,
              .seconds = 1};

/* Of the turns of a worker's loop; written by the worker while `on` is set. */
static struct gaps {
    atomic_bool on;
    uint64_t turns, longest, over; /* cycles; turns over LONG_US */
    uint64_t count[FINE];          /* by length in 1/16 us; the last one takes the rest */
} gaps;

static struct bench_plan *plan;
static struct hb_generation_head head;
static struct hb_ports ports;
static struct hb_adopted *adopted;
static struct hb_counters counters;
static struct hb_worker *worker;

static void give_up(const char *what)
{
    fprintf(stderr, "bench_port: %s\n", what);
    exit(1);
}

static void *allocate(void *context, size_t bytes, uint32_t node)
{
    (void)context;
    return rte_zmalloc_socket("bench", bytes, 64, (int)node);
}

static void release(void *context, void *memory)
{
    (void)context;
    rte_free(memory);
}

static bool set_word(const char *word)
{
    static const struct {
        const char *name;
        uint32_t *value;
    } words[] = {{"buffers", &settings.buffers}, {"size", &settings.size},
                 {"in", &settings.in},           {"out", &settings.out},
                 {"flows", &settings.flows},     {"vips", &settings.vips},
                 {"pools", &settings.pools},     {"backends", &settings.backends},
                 {"slots", &settings.slots},     {"runs", &settings.runs},
                 {"swaps", &settings.swaps},     {"gaps", &settings.gaps}};
    const char *value = strchr(word, '=');
    size_t length = value != NULL ? (size_t)(value - word) : 0;

    for (uint32_t i = 0; length > 0 && i < RTE_DIM(words); i++)
        if (strlen(words[i].name) == length && memcmp(words[i].name, word, length) == 0) {
            *words[i].value = (uint32_t)strtoul(value + 1, NULL, 10);
            return true;
        }
    if (length == 4 && memcmp(word, "warm", length) == 0)
        settings.warm = strtod(value + 1, NULL);
    else if (length == 7 && memcmp(word, "seconds", length) == 0)
        settings.seconds = strtod(value + 1, NULL);
    else
        return false;
    return true;
}

static void open_ports(void)
{
    uint32_t cache = settings.buffers > 1024 ? 256 : 0;
    struct rte_mempool *pool = rte_pktmbuf_pool_create(
        "bench_port", settings.buffers, cache, 0, (uint16_t)settings.size, (int)rte_socket_id());
    uint16_t id;

    if (pool == NULL)
        give_up("no memory for the packet buffers: reserve more hugepages or ask for fewer");
    RTE_ETH_FOREACH_DEV (id) {
        struct rte_eth_conf conf = {0};
        uint16_t rx = RING, tx = RING;

        if (rte_eth_dev_configure(id, 1, 1, &conf) != 0 ||
            rte_eth_dev_adjust_nb_rx_tx_desc(id, &rx, &tx) != 0 ||
            rte_eth_rx_queue_setup(id, 0, rx, rte_socket_id(), NULL, pool) != 0 ||
            rte_eth_tx_queue_setup(id, 0, tx, rte_socket_id(), NULL) != 0 ||
            rte_eth_dev_start(id) != 0)
            give_up("a port does not start; see the message of its driver");
        ports.port[ports.count++] = (struct hb_port){.id = id, .claim = -1};
    }
    if (!rte_eth_dev_is_valid_port((uint16_t)settings.in) ||
        !rte_eth_dev_is_valid_port((uint16_t)settings.out))
        give_up("in= or out= is not a port that EAL has");
}

static void adopt_next(struct hb_publish_reply *reply)
{
    uint64_t number, size;

    memset(reply, 0, sizeof(*reply));
    hb_adopt(adopted, bench_plan_memfd(plan, &number, &size), reply);
    if (reply->reason != HB_REJECT_NONE)
        give_up(reply->text);
}

static void make_worker(uint32_t lcore)
{
    static struct hb_node_memory memory = {.nodes = 1, .allocate = allocate, .release = release};
    struct bench_plan_size size = {settings.vips, settings.pools, settings.backends, settings.slots,
                                   (uint16_t)settings.out};
    struct hb_worker_config config = {.lcore = lcore,
                                      .ports = {(uint16_t)settings.in},
                                      .ports_count = 1,
                                      .flows_max = settings.flows,
                                      .timeouts = {3000, 3600000, 10000, 1000, 60000},
                                      .head = &head};
    char problem[HB_TEXT_SIZE];

    head.qsbr = rte_zmalloc("qsbr", rte_rcu_qsbr_get_memsize(1), RTE_CACHE_LINE_SIZE);
    if (head.qsbr == NULL || rte_rcu_qsbr_init(head.qsbr, 1) != 0 ||
        hb_counters_create(&counters, 1, 1) != 0)
        give_up("no memory for the worker's surroundings");
    config.region = counters.region;
    worker = hb_worker_create(&config, problem, sizeof(problem));
    if (worker == NULL)
        give_up(problem);
    plan = bench_plan_make(&size);
    adopted = hb_adopted_create(&head, &memory, &ports);
    if (plan == NULL || adopted == NULL)
        exit(1);
}

static void note_turn(uint64_t cycles, uint64_t per_us)
{
    uint64_t index = 16 * cycles / per_us;

    gaps.turns++;
    gaps.longest = RTE_MAX(gaps.longest, cycles);
    gaps.over += cycles > LONG_US * per_us;
    gaps.count[RTE_MIN(index, (uint64_t)FINE - 1)]++;
}

/* hb_worker_run, with the time of each turn taken; of turns that do nothing, if so asked. */
static int run_timed(void *unused)
{
    uint64_t per_us = rte_get_tsc_hz() / 1000000, before;

    (void)unused;
    rte_rcu_qsbr_thread_register(head.qsbr, 0);
    rte_rcu_qsbr_thread_online(head.qsbr, 0);
    before = rte_rdtsc();
    while (!atomic_load_explicit(&worker->stop, memory_order_relaxed)) {
        uint64_t now;

        if (settings.gaps == 1)
            hb_loop_turn(worker, (uint32_t)(before / (per_us * 1000)));
        now = rte_rdtsc();
        if (atomic_load_explicit(&gaps.on, memory_order_relaxed))
            note_turn(now - before, per_us);
        before = now;
    }
    rte_rcu_qsbr_thread_offline(head.qsbr, 0);
    rte_rcu_qsbr_thread_unregister(head.qsbr, 0);
    return 0;
}

/* Publishes at the wanted rate until `end` (cycles), and says what it took. */
static void swap_until(uint64_t end)
{
    static uint64_t adopt_ns[SWAP_MAX], grace_ns[SWAP_MAX];
    uint64_t period = rte_get_tsc_hz() / settings.swaps, next = rte_rdtsc();
    uint32_t count = 0;

    while (rte_rdtsc() < end && count < SWAP_MAX) {
        struct hb_publish_reply reply;

        bench_plan_change(plan, count % settings.pools);
        adopt_next(&reply);
        adopt_ns[count] = reply.adopt_ns;
        grace_ns[count++] = reply.grace_ns;
        next += period;
        while (rte_rdtsc() < next)
            usleep(50);
    }
    printf("\"adopt_ns\": [");
    for (uint32_t i = 0; i < count; i++)
        printf("%s%" PRIu64, i > 0 ? ", " : "", adopt_ns[i]);
    printf("], \"grace_ns\": [");
    for (uint32_t i = 0; i < count; i++)
        printf("%s%" PRIu64, i > 0 ? ", " : "", grace_ns[i]);
    printf("], ");
}

static void print_gaps(void)
{
    double us = (double)rte_get_tsc_hz() / 1e6;
    uint64_t seen = 0;
    uint32_t at = 0;

    while (at < FINE - 1 && (seen += gaps.count[at]) * 1000 < gaps.turns * 999)
        at++;
    printf("\"turns\": %" PRIu64 ", \"turn_p99.9_us\": %.2f, \"turn_longest_us\": %.1f, "
           "\"turns_over_%d_us\": %" PRIu64 ", ",
           gaps.turns, (at + 1) / 16.0, (double)gaps.longest / us, LONG_US, gaps.over);
}

static void sleep_until(uint64_t end)
{
    while (rte_rdtsc() < end)
        usleep(1000);
}

static void measure(void)
{
    struct hb_worker_counters before = *worker->counters, after;
    uint64_t start = rte_rdtsc(), took;
    uint64_t end = start + (uint64_t)(settings.seconds * (double)rte_get_tsc_hz());

    memset(&gaps, 0, sizeof(gaps));
    atomic_store(&gaps.on, settings.gaps != 0);
    printf("{");
    if (settings.swaps > 0)
        swap_until(end);
    sleep_until(end);
    after = *worker->counters;
    took = rte_rdtsc() - start;
    atomic_store(&gaps.on, false);
    if (settings.gaps) {
        usleep(10000); /* the worker has seen it by then */
        print_gaps();
    }
    printf("\"seconds\": %.6f, \"received\": %" PRIu64 ", \"sent\": %" PRIu64
           ", \"flow_hits\": %" PRIu64 ", \"flow_misses\": %" PRIu64 ", \"flows\": %" PRIu64 "}\n",
           (double)took / (double)rte_get_tsc_hz(), after.rx_packets - before.rx_packets,
           after.tx_packets - before.tx_packets, after.flow_hits - before.flow_hits,
           after.flow_misses - before.flow_misses, after.flows);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int used = rte_eal_init(argc, argv);
    struct hb_publish_reply reply;
    uint32_t lcore;

    if (used < 0)
        return 1;
    for (int i = used + 1; i < argc; i++)
        if (!set_word(argv[i]))
            give_up("arguments are KEY=VALUE; the source names the keys");
    lcore = rte_get_next_lcore(rte_lcore_id(), 1, 0);
    if (lcore == RTE_MAX_LCORE)
        give_up("needs two lcores: -l 0,1, or --lcores 0@0,1@0 on one CPU");
    open_ports();
    make_worker(lcore);
    rte_eal_remote_launch(settings.gaps ? run_timed : hb_worker_run, settings.gaps ? NULL : worker,
                          lcore);
    adopt_next(&reply);
    sleep_until(rte_rdtsc() + (uint64_t)(settings.warm * (double)rte_get_tsc_hz()));
    for (uint32_t i = 0; i < settings.runs; i++)
        measure();
    hb_worker_stop(worker);
    while (rte_eal_get_lcore_state(lcore) == RUNNING)
        usleep(1000);
    rte_eal_wait_lcore(lcore);
    hb_adopted_destroy(adopted);
    hb_worker_destroy(worker);
    hb_counters_destroy(&counters);
    bench_plan_free(plan);
    rte_free(head.qsbr);
    for (uint32_t i = 0; i < ports.count; i++)
        rte_eth_dev_stop(ports.port[i].id);
    rte_eal_cleanup();
    return 0;
}
