/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_generator.c: sends packets of many flows at a given rate, and measures those that come
 * back.
 *
 *     bench_generator --lcores 0@0,1@0 --single-file-segments --no-pci --vdev net_memif0,... [--
 * options]
 *
 * Sends on port 0; receives on port 1, or nothing when there is no port 1. Reads jobs from its
 * input, one a line, as words KEY=VALUE:
 *
 *     rate=N       packets a second; 0: as many as the other side takes (default)
 *     seconds=S    how long (default 1)
 *     packets=N    ends after so many, if that comes first; 0: no limit (default)
 *     flows=N      clients (default 1)
 *     order=W      random (default) or turn: each client once, then again
 *     first=N      number of the first client (default 0)
 *     vips=N       client c goes to VIP c % N (default 1)
 *     kind=W       tcp (ACK, default), syn, udp
 *     tunnel=N     bytes of the tunnel header that packets come back with (default 20, IPIP)
 *     size=W       bytes of a frame, CRC included, or imix: 64, 594 and 1518 as 7:4:1 (default 64)
 *
 * and answers each with one line of JSON. With a rate, packets that the port does not take at once
 * are lost, and counted as `refused`. If the generator itself comes late by more than LATE_US, it
 * does not catch up (that would be a burst that nobody asked for) and counts it as `late`.
 *
 * Latency is the time from making a burst to reading the packet again, by the TSC of one core: both
 * rings, the balancer, and this program's own waiting are in it.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "bench_frames.h"

#define BURST       32
#define BUFFERS     32767 /* a ring of memif in zero-copy keeps as many as it has places */
#define RING        2048
#define LATE_US     100
#define TAIL_MS     200 /* how long to wait for the last packets */
#define DRAIN_US    20000
#define SUB_BITS    6 /* the histogram's buckets are within 1/64 of one another */
#define BUCKETS     ((64 - SUB_BITS) << SUB_BITS)
#define IMIX_PERIOD 12

struct job {
    uint64_t rate, packets;
    double seconds;
    uint32_t flows, first, vips, tunnel, size; /* size 0: IMIX */
    bool in_turn;
    enum frame_kind kind;
};

struct result {
    uint64_t sent, refused, late, received, bytes_sent;
    uint64_t cycles; /* of sending */
    uint64_t lowest, highest;
    uint64_t histogram[BUCKETS]; /* of cycles */
};

static struct rte_mempool *pool;
static bool receiving;
static struct job job;
static struct result result;

/* What the packets of one size look like. */
static const uint16_t imix[IMIX_PERIOD] = {64, 594, 64, 64, 594, 64, 1518, 64, 594, 64, 594, 64};
static uint32_t sum_of_size[FRAME_MAX + 1];

static uint32_t next_random(void)
{
    static uint64_t state = 88172645463325252ULL;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

static uint32_t next_client(uint64_t number)
{
    if (job.in_turn)
        return (uint32_t)(number % job.flows);
    return (uint32_t)((uint64_t)next_random() * job.flows >> 32);
}

static void fill(struct rte_mbuf *mbuf, uint64_t number, uint64_t now)
{
    uint32_t client = job.first + next_client(number);
    uint32_t size = job.size != 0 ? job.size : imix[number % IMIX_PERIOD];
    uint8_t *frame = rte_pktmbuf_mtod(mbuf, uint8_t *);

    mbuf->data_len = (uint16_t)(size - FRAME_CRC);
    mbuf->pkt_len = size - FRAME_CRC;
    if (job.size == 0)
        frame_write(frame, job.kind, size);
    frame_address(frame, sum_of_size[size], client, job.vips == 1 ? 0 : client % job.vips);
    if (receiving)
        memcpy(frame + frame_stamp_at(job.kind), &now, STAMP_SIZE);
    result.bytes_sent += size;
}

static uint32_t bucket_of(uint64_t value)
{
    uint32_t top;

    if (value < (1u << SUB_BITS))
        return (uint32_t)value;
    top = 63 - (uint32_t)__builtin_clzll(value);
    return (top - SUB_BITS + 1) << SUB_BITS |
           (uint32_t)(value >> (top - SUB_BITS) & ((1u << SUB_BITS) - 1));
}

static uint64_t value_of(uint32_t bucket)
{
    uint32_t group = bucket >> SUB_BITS, rest = bucket & ((1u << SUB_BITS) - 1);

    return group == 0 ? rest : (uint64_t)((1u << SUB_BITS) + rest) << (group - 1);
}

static void receive(void)
{
    const uint64_t mask = (UINT64_C(1) << 8 * STAMP_SIZE) - 1;
    uint32_t stamp_at = frame_stamp_at(job.kind) + job.tunnel;
    struct rte_mbuf *mbufs[BURST];
    uint16_t count = rte_eth_rx_burst(1, 0, mbufs, BURST);
    uint64_t now = rte_rdtsc();

    for (uint16_t i = 0; i < count; i++) {
        uint64_t stamp = 0, took;

        if (mbufs[i]->data_len >= stamp_at + STAMP_SIZE) {
            memcpy(&stamp, rte_pktmbuf_mtod_offset(mbufs[i], uint8_t *, stamp_at), STAMP_SIZE);
            took = (now - stamp) & mask;
            result.histogram[bucket_of(took)]++;
            result.lowest = RTE_MIN(result.lowest, took);
            result.highest = RTE_MAX(result.highest, took);
        }
    }
    rte_pktmbuf_free_bulk(mbufs, count);
    result.received += count;
}

/* A burst that is made in one go; false when there are no buffers just now. */
static bool make_burst(struct rte_mbuf **mbufs, uint64_t number)
{
    uint64_t now = rte_rdtsc();

    if (rte_pktmbuf_alloc_bulk(pool, mbufs, BURST) != 0)
        return false;
    for (uint16_t i = 0; i < BURST; i++)
        fill(mbufs[i], number + i, now);
    return true;
}

/* As fast as the other side takes them: what the port does not take is offered again. */
static void send_all_it_takes(uint64_t end)
{
    struct rte_mbuf *mbufs[BURST];
    uint16_t left = 0;

    while (rte_rdtsc() < end && (job.packets == 0 || result.sent < job.packets)) {
        if (left == 0 && make_burst(mbufs, result.sent))
            left = BURST;
        if (left > 0) {
            uint16_t took = rte_eth_tx_burst(0, 0, mbufs + BURST - left, left);

            left -= took;
            result.sent += took;
        }
        if (receiving)
            receive();
    }
    rte_pktmbuf_free_bulk(mbufs + BURST - left, left);
}

static void send_at_rate(uint64_t start, uint64_t end)
{
    /* In 1/65536 of a cycle, so that high rates are exact. */
    uint64_t burst_cycles = (uint64_t)((double)rte_get_tsc_hz() * BURST * 65536 / (double)job.rate);
    uint64_t slack = rte_get_tsc_hz() / 1000000 * LATE_US;
    uint64_t number = 0, due = 0;

    while (job.packets == 0 || number < job.packets) {
        uint64_t now = rte_rdtsc();
        struct rte_mbuf *mbufs[BURST];

        if (now >= end)
            break;
        if (now - start >= due >> 16) {
            uint16_t took = 0;

            if (make_burst(mbufs, number)) {
                took = rte_eth_tx_burst(0, 0, mbufs, BURST);
                rte_pktmbuf_free_bulk(mbufs + took, BURST - took);
            }
            result.sent += took;
            result.refused += BURST - took;
            number += BURST;
            due += burst_cycles;
            if (now - start > (due >> 16) + slack) {
                due = (now - start) << 16;
                result.late++;
            }
        }
        if (receiving)
            receive();
    }
}

static int run_job(void *unused)
{
    uint64_t ms = rte_get_tsc_hz() / 1000, start, end, tail;

    (void)unused;
    if (receiving) { /* what an earlier job left behind */
        for (end = rte_rdtsc() + 2 * ms; rte_rdtsc() < end;)
            receive();
    }
    memset(&result, 0, sizeof(result));
    result.lowest = UINT64_MAX;
    start = rte_rdtsc();
    end = start + (uint64_t)(job.seconds * (double)rte_get_tsc_hz());
    if (job.rate == 0)
        send_all_it_takes(end);
    else
        send_at_rate(start, end);
    result.cycles = rte_rdtsc() - start;
    tail = rte_rdtsc() + TAIL_MS * ms;
    while (receiving && result.received < result.sent && rte_rdtsc() < tail)
        receive();
    return 0;
}

static void write_frame(struct rte_mempool *unused, void *context, void *object, unsigned index)
{
    struct rte_mbuf *mbuf = object;

    (void)unused;
    (void)context;
    (void)index;
    frame_write((uint8_t *)mbuf->buf_addr + RTE_PKTMBUF_HEADROOM, job.kind, job.size);
}

/* What is the same in all packets of a job is written into every buffer before. */
static void prepare(void)
{
    static const uint16_t imix_sizes[] = {64, 594, 1518};
    uint8_t frame[FRAME_MAX];
    uint32_t sizes = job.size != 0 ? 1 : RTE_DIM(imix_sizes);

    for (uint32_t i = 0; i < sizes; i++) {
        uint32_t size = job.size != 0 ? job.size : imix_sizes[i];

        frame_write(frame, job.kind, size);
        sum_of_size[size] = frame_sum(frame + L3_AT);
    }
    if (job.size != 0)
        rte_mempool_obj_iter(pool, write_frame, NULL);
}

static double in_ns(uint64_t cycles)
{
    return 1e9 * (double)cycles / (double)rte_get_tsc_hz();
}

static double quantile_ns(double part)
{
    uint64_t total = 0, seen = 0;

    for (uint32_t i = 0; i < BUCKETS; i++)
        total += result.histogram[i];
    for (uint32_t i = 0; i < BUCKETS; i++) {
        seen += result.histogram[i];
        if (seen > 0 && (double)seen >= part * (double)total)
            return in_ns(value_of(i));
    }
    return 0;
}

static void print_result(void)
{
    printf("{\"seconds\": %.6f, \"sent\": %" PRIu64 ", \"refused\": %" PRIu64 ", \"late\": %" PRIu64
           ", \"bytes\": %" PRIu64 ", \"received\": %" PRIu64,
           in_ns(result.cycles) / 1e9, result.sent, result.refused, result.late, result.bytes_sent,
           result.received);
    if (result.received > 0)
        printf(", \"latency_ns\": {\"least\": %.0f, \"p50\": %.0f, \"p99\": %.0f, \"p99.9\": %.0f, "
               "\"most\": %.0f}",
               in_ns(result.lowest), quantile_ns(0.5), quantile_ns(0.99), quantile_ns(0.999),
               in_ns(result.highest));
    printf("}\n");
    fflush(stdout);
}

static bool set_word(const char *word)
{
    const char *value = strchr(word, '=');
    size_t length;

    if (value == NULL)
        return false;
    length = (size_t)(value++ - word);
#define IS(name) (length == sizeof(name) - 1 && memcmp(word, name, length) == 0)
    if (IS("rate"))
        job.rate = strtoull(value, NULL, 10);
    else if (IS("packets"))
        job.packets = strtoull(value, NULL, 10);
    else if (IS("seconds"))
        job.seconds = strtod(value, NULL);
    else if (IS("flows"))
        job.flows = (uint32_t)strtoul(value, NULL, 10);
    else if (IS("first"))
        job.first = (uint32_t)strtoul(value, NULL, 10);
    else if (IS("vips"))
        job.vips = (uint32_t)strtoul(value, NULL, 10);
    else if (IS("tunnel"))
        job.tunnel = (uint32_t)strtoul(value, NULL, 10);
    else if (IS("order"))
        job.in_turn = strcmp(value, "turn") == 0;
    else if (IS("kind"))
        job.kind = strcmp(value, "udp") == 0   ? FRAME_UDP
                   : strcmp(value, "syn") == 0 ? FRAME_SYN
                                               : FRAME_TCP;
    else if (IS("size"))
        job.size = strcmp(value, "imix") == 0 ? 0 : (uint32_t)strtoul(value, NULL, 10);
    else
        return false;
#undef IS
    return true;
}

static bool read_job(char *line)
{
    char *rest = NULL;

    job = (struct job){.seconds = 1, .flows = 1, .vips = 1, .tunnel = TUNNEL, .size = FRAME_MIN};
    for (char *word = strtok_r(line, " \n", &rest); word != NULL;
         word = strtok_r(NULL, " \n", &rest)) {
        if (!set_word(word)) {
            fprintf(stderr, "bench_generator: '%s' is not KEY=VALUE with a known key\n", word);
            return false;
        }
    }
    if (job.flows == 0 || job.vips == 0 ||
        (job.size != 0 && (job.size < FRAME_MIN || job.size > FRAME_MAX))) {
        fprintf(stderr, "bench_generator: flows and vips are at least 1, size is %d to %d\n",
                FRAME_MIN, FRAME_MAX);
        return false;
    }
    return true;
}

static bool open_port(uint16_t port)
{
    struct rte_eth_conf conf = {0};
    uint16_t rx = RING, tx = RING;

    return rte_eth_dev_configure(port, 1, 1, &conf) == 0 &&
           rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx) == 0 &&
           rte_eth_rx_queue_setup(port, 0, rx, rte_socket_id(), NULL, pool) == 0 &&
           rte_eth_tx_queue_setup(port, 0, tx, rte_socket_id(), NULL) == 0 &&
           rte_eth_dev_start(port) == 0;
}

/* Ports that need another process (memif) are up when that is there. */
static bool wait_for_link(uint16_t port)
{
    struct rte_eth_link link = {0};

    for (int i = 0; i < 1000; i++) {
        if (rte_eth_link_get_nowait(port, &link) == 0 && link.link_status == RTE_ETH_LINK_UP)
            return true;
        usleep(10000);
    }
    fprintf(stderr, "bench_generator: port %u has no link after 10 s\n", port);
    return false;
}

int main(int argc, char **argv)
{
    unsigned worker;
    char line[512];

    if (rte_eal_init(argc, argv) < 0)
        return 1;
    worker = rte_get_next_lcore(rte_lcore_id(), 1, 0);
    pool = rte_pktmbuf_pool_create("generator", BUFFERS, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
                                   (int)rte_socket_id());
    if (worker == RTE_MAX_LCORE || pool == NULL || rte_eth_dev_count_avail() == 0) {
        fprintf(stderr, "bench_generator: needs two lcores, a port, and 40 MB of hugepages\n");
        return 1;
    }
    receiving = rte_eth_dev_count_avail() > 1;
    for (uint16_t port = 0; port <= receiving; port++)
        if (!open_port(port) || !wait_for_link(port))
            return 1;
    printf("{\"ready\": true, \"receives\": %s}\n", receiving ? "true" : "false");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (!read_job(line))
            return 1;
        prepare();
        rte_eal_remote_launch(run_job, NULL, worker);
        /* Sleeping, not rte_eal_wait_lcore: both may be on one CPU. */
        while (rte_eal_get_lcore_state(worker) == RUNNING)
            usleep(1000);
        rte_eal_wait_lcore(worker);
        usleep(DRAIN_US); /* the next job writes the buffers anew: none may be on its way */
        print_result();
    }
    for (uint16_t port = 0; port <= receiving; port++)
        rte_eth_dev_stop(port);
    rte_eal_cleanup();
    return 0;
}
