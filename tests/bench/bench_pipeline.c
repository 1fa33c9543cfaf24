/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_pipeline.c: what the pipeline costs a packet, on one core, without a NIC.
 *
 *     bench_pipeline [EAL arguments]      without any: no hugepages
 *
 * Bursts of 64 TCP packets of established flows go through hb_loop_turn on a port made of rings;
 * only that call is timed, not the making of packets. Packets are warm in the cache, as with a NIC
 * that writes into it. Absolute figures depend on the machine; compare within one run.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>

#include "rig.h"

#define BURSTS 60000

static void set_client(struct rte_mbuf *mbuf, uint32_t client)
{
    uint8_t *frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
    uint32_t source = htonl(0x0b000000 + client);
    uint16_t sum;

    memcpy(frame + IP4_SOURCE, &source, 4);
    memset(frame + IP4_CHECKSUM, 0, 2);
    sum = htons(checksum(frame + L3, 20));
    memcpy(frame + IP4_CHECKSUM, &sum, 2);
}

static int compare(const void *a, const void *b)
{
    return (*(const uint32_t *)a > *(const uint32_t *)b) -
           (*(const uint32_t *)a < *(const uint32_t *)b);
}

/* Sends bursts, their clients in turn or at random; returns the cycles that the worker took for the
 * median one, so that a machine with other things to do does not spoil the figure. */
static uint32_t run(struct rig *rig, uint32_t bursts, uint32_t clients, bool in_turn)
{
    static uint32_t cycles[BURSTS];
    struct frame frame = TCP4(.flags = ACK);
    uint32_t client = 0, seed = 1;

    for (uint32_t burst = 0; burst < bursts; burst++) {
        uint64_t start;

        for (uint32_t i = 0; i < HB_BURST; i++) {
            struct rte_mbuf *mbuf = rte_pktmbuf_alloc(rig_pool());

            seed = seed * 1664525 + 1013904223;
            client = in_turn ? (client + 1) % clients : (uint32_t)((uint64_t)seed * clients >> 32);
            memcpy(rte_pktmbuf_append(mbuf, (uint16_t)frame.length), frame.bytes, frame.length);
            set_client(mbuf, client);
            send_mbuf(rig, mbuf);
        }
        start = rte_rdtsc();
        hb_loop_turn(rig->worker, rig->now_ms);
        cycles[burst] = (uint32_t)(rte_rdtsc() - start);
        take_all(rig, PORT);
    }
    qsort(cycles, bursts, sizeof(cycles[0]), compare);
    return cycles[bursts / 2];
}

static int bench(uint32_t clients)
{
    struct rig *rig;
    void *state;
    double cycles;

    if (rig_setup_with(&state, clients < 4096 ? 4096 : 2 * (uint64_t)clients) != 0)
        return 1;
    rig = state;
    for (uint16_t id = 1; id <= 10; id++)
        add_backend(rig, id, 0, 4);
    share_table(rig, 0);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    publish(rig);
    run(rig, 2 * clients / HB_BURST + 10, clients, true); /* every flow is established now */
    cycles = (double)run(rig, 20000, clients, false) / HB_BURST;
    printf("%8u flows: %6.1f ns, %5.0f cycles a packet (%llu of the flows have an entry)\n",
           clients, 1e9 * cycles / (double)rte_get_tsc_hz(), cycles,
           (unsigned long long)hb_counters_worker(rig->region, 0)->flows);
    rig_teardown(&state);
    return 0;
}

int main(int argc, char **argv)
{
    static const uint32_t clients[] = {1, 1000, 100000, 1000000};
    int failed;

    if (argc > 1)
        failed = rte_eal_init(argc, argv) < 0 ? 1 : rig_open_ports();
    else
        failed = rig_open();
    for (uint32_t i = 0; failed == 0 && i < 4; i++)
        failed = bench(clients[i]);
    rig_close();
    return failed;
}
