/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_pipeline.c: what the pipeline costs a packet, on one core, without a NIC.
 *
 *     taskset -c 1 bench_pipeline -l 1 --in-memory --no-pci [-- [--quick] [--json] [--stages]
 *         [--variant=plain] [case ...]]
 *
 * Only hb_pipeline_run is timed, burst by burst, not the making of packets. Packets are warm in the
 * nearer caches, as with a NIC that writes into them; the flows of a burst are drawn at random from
 * all. A run gives the median of its bursts, a row the median, least and greatest of several runs.
 * Cycles are those of the TSC. On a shared machine compare within one run.
 *
 * A case is a name from the list below, or KIND:FLOWS:FLOWS_MAX:VIPS:BACKENDS, such as
 * tcp4:1000000:2000000:1:10. --json prints one object a line, for scripts/bench.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_atomic.h>
#include <rte_cycles.h>
#include <rte_eal.h>

#include "bench_stages.h"
#include "packet.h"
#include "pipeline.h"
#include "world.h"

#define RUNS_MAX    11
#define BURSTS      4000 /* in a run */
#define FRAME_ROOM  128
#define VIPS_MAX    1024
#define FLOOD_FIRST 0x80000000u /* clients from here on are strangers */

enum kind { TCP_V4, UDP_V4, TCP_V6, UDP_V6, NOT_VIP, DROP, FLOOD, KINDS };
static const char *const kinds[KINDS] = {"tcp4",    "udp4", "tcp6",     "udp6",
                                         "not-vip", "drop", "syn-flood"};

struct bench_case {
    const char *name;
    enum kind kind;
    uint32_t flows;     /* established before */
    uint32_t flows_max; /* of the table */
    uint32_t vips, backends;
    bool cold; /* packets come from memory, not from a cache */
    enum hb_tracking tracking;
    uint32_t bounded_load; /* in 1/1024 */
    uint32_t pools;
};

static const struct bench_case cases[] = {
    {"tcp4-1", TCP_V4, 1, 4096, 1, 10, false, HB_TRACKING_ALL, 0, 1},
    {"tcp4-1k", TCP_V4, 1000, 4096, 1, 10, false, HB_TRACKING_ALL, 0, 1},
    {"tcp4-100k", TCP_V4, 100000, 200000, 1, 10, false, HB_TRACKING_ALL, 0, 1},
    {"tcp4-1M", TCP_V4, 1000000, 2000000, 1, 10, false, HB_TRACKING_ALL, 0, 1},
    {"tcp4-1M-full", TCP_V4, 1000000, 1000000, 1, 10, false, HB_TRACKING_ALL, 0, 1},
    {"tcp4-10M-full", TCP_V4, 10000000, 10000000, 1, 10, false, HB_TRACKING_ALL, 0, 1},
    {"tcp4-1M-4096-services", TCP_V4, 1000000, 2000000, 1024, 10, false, HB_TRACKING_ALL, 0, 1},
    {"tcp4-1M-10k-backends", TCP_V4, 1000000, 2000000, 1, 10000, false, HB_TRACKING_ALL, 0, 1},
    {"tcp4-1-cold", TCP_V4, 1, 4096, 1, 10, true, HB_TRACKING_ALL, 0, 1},
    {"tcp4-1M-cold", TCP_V4, 1000000, 2000000, 1, 10, true, HB_TRACKING_ALL, 0, 1},
    {"tcp4-1-changed", TCP_V4, 1, 4096, 1, 10, false, HB_TRACKING_CHANGED, 0, 1},
    {"tcp4-1M-changed", TCP_V4, 1000000, 2000000, 1, 10, false, HB_TRACKING_CHANGED, 0, 1},
    {"tcp4-10M-changed", TCP_V4, 10000000, 10000000, 1, 10, false, HB_TRACKING_CHANGED, 0, 1},
    {"tcp4-10M-10k-backends-changed", TCP_V4, 10000000, 10000000, 1, 10000, false,
     HB_TRACKING_CHANGED, 0, 1},
    {"tcp4-1-off", TCP_V4, 1, 4096, 1, 10, false, HB_TRACKING_OFF, 0, 1},
    {"tcp4-1M-off", TCP_V4, 1000000, 2000000, 1, 10, false, HB_TRACKING_OFF, 0, 1},
    {"tcp4-10M-off", TCP_V4, 10000000, 10000000, 1, 10, false, HB_TRACKING_OFF, 0, 1},
    {"udp4-1", UDP_V4, 1, 4096, 1, 10, false, HB_TRACKING_ALL, 0, 1},
    {"udp4-1M", UDP_V4, 1000000, 2000000, 1, 10, false, HB_TRACKING_ALL, 0, 1},
    {"tcp6-1", TCP_V6, 1, 4096, 1, 10, false, HB_TRACKING_ALL, 0, 1},
    {"tcp6-100k", TCP_V6, 100000, 2000000, 1, 10, false, HB_TRACKING_ALL, 0, 1},
    {"udp6-100k", UDP_V6, 100000, 2000000, 1, 10, false, HB_TRACKING_ALL, 0, 1},
    {"syn-flood", FLOOD, 0, 1000000, 1, 10, false, HB_TRACKING_ALL, 0, 1},
    {"syn-flood-half-established", FLOOD, 500000, 1000000, 1, 10, false, HB_TRACKING_ALL, 0, 1},
    {"syn-flood-90%-established", FLOOD, 900000, 1000000, 1, 10, false, HB_TRACKING_ALL, 0, 1},
    {"syn-flood-bounded", FLOOD, 0, 1000000, 1, 10, false, HB_TRACKING_ALL, 256, 1},
    {"syn-flood-bounded-tight", FLOOD, 0, 1000000, 1, 1000, false, HB_TRACKING_ALL, 10, 1},
    {"not-vip", NOT_VIP, 0, 4096, 1, 10, false, HB_TRACKING_ALL, 0, 1},
    {"drop", DROP, 0, 4096, 1, 10, false, HB_TRACKING_ALL, 0, 1},
};

/* What is measured: the best variant of the packet path that there is, unless told otherwise. */
static const struct hb_variant *variant;
static hb_pipeline *variant_timed;

/* Returns false when there is none of that name; NULL: the best. */
static bool choose_variant(const char *name)
{
    uint32_t count;
    const struct hb_variant *all = hb_variants(&count);

    while (count > 0 && name != NULL && strcmp(all[count - 1].name, name) != 0)
        count--;
    if (count == 0)
        return false;
    variant = &all[count - 1];
    variant_timed = timed_pipeline_run;
#ifdef HB_HAVE_AVX2
    if (strcmp(variant->name, "avx2") == 0)
        variant_timed = timed_pipeline_run_avx2;
#endif
#ifdef HB_HAVE_AVX512
    if (strcmp(variant->name, "avx512") == 0)
        variant_timed = timed_pipeline_run_avx512;
#endif
    return true;
}

/* A frame that is copied for each packet, and where the client's number goes. */
struct template
{
    uint8_t bytes[FRAME_ROOM];
    uint16_t length;
    uint8_t family;
    uint32_t sum; /* of the IPv4 header without the source address */
};

/* To the VIP of that number: see world.c. */
static struct template make_template(enum kind kind, uint8_t flags, uint32_t vip)
{
    struct template template = {.family = kind == TCP_V6 || kind == UDP_V6 ? 6 : 4};
    struct frame frame;

    switch (kind) {
    case UDP_V4:
        frame = UDP4(.payload = 18); /* 60 bytes: 64 with the checksum of the frame */
        break;
    case TCP_V6:
        frame = TCP6(.flags = flags);
        break;
    case UDP_V6:
        frame = UDP6(.payload = 18);
        break;
    case NOT_VIP:
        frame = TCP4(.destination = "192.0.2.200", .payload = 6);
        break;
    case DROP:
        frame = TCP4(.fragment = MF, .payload = 6);
        break;
    default:
        frame = TCP4(.flags = flags, .payload = 6);
    }
    memcpy(template.bytes, frame.bytes, frame.length);
    if (template.family == 4) {
        template.bytes[IP4_DESTINATION + 1] ^= (uint8_t)(vip >> 8);
        template.bytes[IP4_DESTINATION + 2] ^= (uint8_t)vip;
    }
    template.length = (uint16_t)frame.length;
    if (template.family == 4) {
        memset(template.bytes + IP4_CHECKSUM, 0, 2);
        memset(template.bytes + IP4_SOURCE, 0, 4);
        template.sum = (uint16_t)~checksum(template.bytes + L3, 20);
    }
    return template;
}

static void set_client(uint8_t *frame, const struct template *template, uint32_t client)
{
    /* 11.0.0.0 and up, then what follows; ports count too, so that flows differ in both. */
    uint32_t address = 0x0b000000 + (client & 0x80ffffff);
    uint16_t port = (uint16_t)(1024 + client % 60000);

    if (template->family == 4) {
        uint32_t sum = template->sum + (address >> 16) + (address & 0xffff);
        uint32_t source = htonl(address);
        uint16_t folded;

        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        folded = htons((uint16_t)~sum);
        memcpy(frame + IP4_SOURCE, &source, 4);
        memcpy(frame + IP4_CHECKSUM, &folded, 2);
        port = htons(port);
        memcpy(frame + L4_OF_4, &port, 2);
    } else {
        uint32_t source = htonl(client);

        memcpy(frame + IP6_SOURCE + 12, &source, 4);
        port = htons(port);
        memcpy(frame + L4_OF_6, &port, 2);
    }
}

static int compare(const void *a, const void *b)
{
    return (*(const uint32_t *)a > *(const uint32_t *)b) -
           (*(const uint32_t *)a < *(const uint32_t *)b);
}

struct load {
    struct world *world;
    struct template template[VIPS_MAX];
    uint32_t clients; /* 0: every packet has a new one */
    uint32_t vips;
    uint32_t client; /* the last one */
    bool in_turn;
    bool freed;
    bool cold;
    bool by_stage;
};

static uint64_t random_state = 88172645463325252ULL;

static uint32_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 16);
}

static uint32_t next_client(struct load *load)
{
    if (load->clients == 0)
        return load->client = FLOOD_FIRST | (load->client + 1);
    if (!load->in_turn)
        return (uint32_t)((uint64_t)next_random() * load->clients >> 32);
    load->client++;
    if (load->client >= load->clients)
        load->client = 0;
    return load->client;
}

static struct rte_mbuf **make_burst(struct load *load)
{
    struct rte_mbuf **burst = world_make_burst(load->world, load->template[0].length, load->freed);

    for (uint32_t i = 0; i < HB_BURST; i++) {
        uint8_t *frame = rte_pktmbuf_mtod(burst[i], uint8_t *);
        uint32_t client = next_client(load);
        const struct template *template = &load->template[client % load->vips];

        memcpy(frame, template->bytes, sizeof(template->bytes));
        set_client(frame, template, client);
    }
    rte_mb(); /* what was written just now is in the cache, not on its way there */
    return burst;
}

/* One burst; returns its cycles. Cold packets are made by the stock, so that the first ones have
 * left the caches by the time that the last are made. */
static uint32_t run_burst(struct load *load)
{
    struct world *world = load->world;
    struct rte_mbuf **burst;
    uint64_t start;

    if (!load->cold) {
        burst = make_burst(load);
    } else {
        uint32_t due = world->next == 0 ? world->packets / HB_BURST : 0;

        for (uint32_t i = 0; i < due; i++)
            make_burst(load);
        burst = world_take_burst(world);
    }
    start = rte_rdtsc();
    if (load->by_stage)
        variant_timed(world->worker, world->generation, burst, HB_BURST);
    else
        variant->run(world->worker, world->generation, burst, HB_BURST);
    return (uint32_t)(rte_rdtsc() - start);
}

static uint32_t run_bursts(struct load *load, uint32_t bursts)
{
    static uint32_t cycles[BURSTS];

    for (uint32_t i = 0; i < bursts; i++) {
        cycles[i % BURSTS] = run_burst(load);
        if (i % 16 == 0)
            load->world->worker->now_ms++;
    }
    if (bursts < BURSTS)
        return 0;
    qsort(cycles, BURSTS, sizeof(cycles[0]), compare);
    return cycles[BURSTS / 2];
}

static void fill_templates(struct load *load, enum kind kind, uint8_t flags)
{
    for (uint32_t vip = 0; vip < load->vips; vip++)
        load->template[vip] = make_template(kind, flags, vip);
}

/* Every client once, in turn, at a clock that stands still; returns how many had an entry. */
static uint64_t pass_all(struct load *load, uint32_t clients)
{
    const struct hb_worker_counters *counters = load->world->worker->counters;
    uint32_t now_ms = load->world->worker->now_ms;
    uint64_t hits = counters->flow_hits;
    static struct load turn;

    turn = *load;
    turn.clients = clients;
    turn.in_turn = true;
    turn.freed = false;
    turn.cold = false;
    turn.by_stage = false;
    if (turn.template[0].family == 4 && load->clients == 0)
        fill_templates(&turn, TCP_V4, ACK);
    for (uint32_t i = 0; i < (clients + HB_BURST - 1) / HB_BURST; i++)
        run_burst(&turn);
    load->world->worker->now_ms = now_ms;
    load->world->next = 0; /* where a cold stock is made */
    return counters->flow_hits - hits;
}

static double median_stage(unsigned stage)
{
    qsort(stage_cycles[stage], STAGE_BURSTS, sizeof(stage_cycles[stage][0]), compare);
    return (double)stage_cycles[stage][STAGE_BURSTS / 2] / HB_BURST;
}

static void print_stages(void)
{
#define PRINT(name) printf("  " #name " %.1f", median_stage(STAGE_##name));
    printf("    cycles a packet:");
    STAGES(PRINT)
    printf("\n");
}

static double in_ns(uint32_t burst_cycles)
{
    return 1e9 * burst_cycles / HB_BURST / (double)rte_get_tsc_hz();
}

static void print_row(const struct bench_case *row, const uint32_t *cycles, uint32_t runs)
{
    printf("%-28s %6.1f ns  (%.1f to %.1f)  %5.0f cycles", row->name, in_ns(cycles[runs / 2]),
           in_ns(cycles[0]), in_ns(cycles[runs - 1]), (double)cycles[runs / 2] / HB_BURST);
}

static void print_json(const struct bench_case *row, const uint32_t *cycles, uint32_t runs)
{
    printf("{\"case\": \"%s\", \"kind\": \"%s\", \"flows\": %u, \"flows_max\": %u, "
           "\"services\": %u, \"backends\": %u, \"variant\": \"%s\", \"cycles\": %.1f, "
           "\"ns\": [",
           row->name, kinds[row->kind], row->flows, row->flows_max, 4 * row->vips, row->backends,
           variant->name, (double)cycles[runs / 2] / HB_BURST);
    for (uint32_t i = 0; i < runs; i++)
        printf("%s%.2f", i > 0 ? ", " : "", in_ns(cycles[i]));
    printf("]");
}

static bool run_case(const struct bench_case *row, uint32_t runs, bool stages, bool json)
{
    struct world_size size = {row->flows_max, row->vips,
                              row->pools,     row->backends,
                              65537,          row->cold ? WORLD_COLD : WORLD_PACKETS,
                              row->tracking,  row->bounded_load};
    struct world *world = world_make(&size);
    uint32_t cycles[RUNS_MAX];
    uint64_t found = 0;
    static struct load load;

    if (world == NULL)
        return false;
    load = (struct load){
        .world = world,
        .clients = row->kind == FLOOD ? 0 : row->flows + (row->flows == 0),
        .vips = row->vips,
        .freed = row->kind == DROP,
        .cold = row->cold,
    };
    fill_templates(&load, row->kind, row->kind == FLOOD ? SYN : ACK);
    if (row->flows > 0) { /* the second packet establishes a flow */
        pass_all(&load, row->flows);
        found = pass_all(&load, row->flows);
    }
    if (row->kind == FLOOD) /* until the table is full and turned over */
        run_bursts(&load, 3 * row->flows_max / HB_BURST);
    run_bursts(&load, BURSTS);
    for (uint32_t i = 0; i < runs; i++)
        cycles[i] = run_bursts(&load, BURSTS);
    qsort(cycles, runs, sizeof(cycles[0]), compare);
    if (json)
        print_json(row, cycles, runs);
    else
        print_row(row, cycles, runs);
    if (row->flows > 0 && row->tracking == HB_TRACKING_ALL && found < row->flows)
        printf(json ? ", \"fit_percent\": %.2f" : "  only %.2f %% of the flows fit",
               100.0 * (double)found / row->flows);
    if (row->kind == FLOOD && row->flows > 0)
        printf(json ? ", \"established_lost\": %lld" : "  established flows lost: %lld",
               (long long)found - (long long)pass_all(&load, row->flows));
    printf(json ? "}\n" : "\n");
    if (stages && !json) {
        load.by_stage = true;
        run_bursts(&load, BURSTS);
        print_stages();
    }
    fflush(stdout);
    world_free(world);
    return true;
}

/* KIND:FLOWS:MOST_FLOWS:VIPS:BACKENDS, or KIND-changed:..., and :POOLS at the end if there are more
 * than one. */
static bool describe_case(const char *text, struct bench_case *found)
{
    char kind[16];
    int end = 0;
    char *changed;
    int read;

    *found = (struct bench_case){.name = text, .tracking = HB_TRACKING_ALL, .pools = 1};
    read = sscanf(text, "%15[^:]:%u:%u:%u:%u%n:%u%n", kind, &found->flows, &found->flows_max,
                  &found->vips, &found->backends, &end, &found->pools, &end);
    if (read < 5 || text[end] != '\0' || found->vips < 1 || found->vips > VIPS_MAX ||
        found->pools < 1 || found->pools > found->vips || found->backends < found->pools)
        return false;
    changed = strstr(kind, "-changed");
    if (changed != NULL) {
        *changed = '\0';
        found->tracking = HB_TRACKING_CHANGED;
    }
    while (found->kind < KINDS && strcmp(kinds[found->kind], kind) != 0)
        found->kind++;
    return found->kind < KINDS;
}

/* One of the list by its name, or one that is described by numbers. */
static bool find_case(const char *text, struct bench_case *found)
{

    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(cases[i].name, text) == 0) {
            *found = cases[i];
            return true;
        }
    }
    return describe_case(text, found);
}

int main(int argc, char **argv)
{
    int used = rte_eal_init(argc, argv);
    bool stages = false, json = false;
    uint32_t runs = RUNS_MAX;
    struct bench_case row;

    if (used < 0 || !world_open() || !choose_variant(NULL))
        return 1;
    for (argv += used + 1; used + 1 < argc && *argv != NULL && **argv == '-'; argv++) {
        if (strcmp(*argv, "--quick") == 0)
            runs = 3;
        else if (strcmp(*argv, "--stages") == 0)
            stages = true;
        else if (strcmp(*argv, "--json") == 0)
            json = true;
        else if (strncmp(*argv, "--variant=", 10) == 0 && !choose_variant(*argv + 10)) {
            fprintf(stderr, "bench: this machine has no variant '%s' of the packet path\n",
                    *argv + 10);
            return 1;
        }
    }
    if (!json)
        printf("packet path: %s\n", variant->name);
    for (uint32_t i = 0; *argv == NULL && i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (!run_case(&cases[i], runs, stages, json))
            return 1;
    }
    for (; *argv != NULL; argv++) {
        if (!find_case(*argv, &row)) {
            fprintf(stderr, "bench: there is no case '%s'\n", *argv);
            return 1;
        }
        if (!run_case(&row, runs, stages, json))
            return 1;
    }
    rte_eal_cleanup();
    return 0;
}
