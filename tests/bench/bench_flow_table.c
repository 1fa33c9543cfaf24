/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_flow_table.c: the flow cache beside DPDK's rte_hash, on one core, in one run.
 *
 *     taskset -c 1 bench_flow_table -l 1 --in-memory --no-pci [-- [--json] FLOWS ...]
 *
 * Both hold the same IPv4 flows, established, and are asked for them at random in bursts of 64,
 * hashing included for both; keys are made before and lie in the nearest cache. rte_hash has
 * 16-byte keys, CRC hashes, no locks, and holds an index as its data. The flow cache is measured as
 * the pipeline uses it (hash and prefetch in one pass, then the look-up with the refresh of the
 * entry) and through hb_flow_table_find. Figures are medians of the bursts, in ns a flow.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_atomic.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_malloc.h>

#include "flow_bucket.h"

#define BURST  64
#define BURSTS 20000

struct key16 {
    uint32_t source, destination, ports, kind;
};

static const struct hb_hash_key hash_key = {
    {UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xc2b2ae3d27d4eb4f), 3, 4, 5, 6,
     UINT64_C(0x165667b19e3779f9), UINT64_C(0x27d4eb2f165667c5)}};
static const struct hb_flow_timeouts timeouts = {3000, 3600000, 10000, 1000, 60000};
static uint32_t cycles[BURSTS];
static bool json; /* one object a line, for scripts/bench */
static uint64_t random_state = 88172645463325252ULL;

static uint32_t next_random(uint32_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 32) * below >> 32);
}

static struct key16 make_key(uint32_t n)
{
    return (struct key16){
        .source = 0x0b + n * 256,
        .destination = 0x0a0200c0,
        .ports = 0x50000000 | (1024 + n % 60000),
        .kind = HB_FLOW_KIND(HB_PROTOCOL_TCP, HB_FAMILY_IPV4),
    };
}

static struct hb_flow_query make_query(uint32_t n)
{
    struct key16 key = make_key(n);

    return (struct hb_flow_query){
        .source = key.source, .destination = key.destination, .ports = key.ports, .kind = key.kind};
}

static int compare(const void *a, const void *b)
{
    return (*(const uint32_t *)a > *(const uint32_t *)b) -
           (*(const uint32_t *)a < *(const uint32_t *)b);
}

static double median_ns(uint32_t bursts, uint32_t per_burst)
{
    qsort(cycles, bursts, sizeof(cycles[0]), compare);
    return 1e9 * cycles[bursts / 2] / per_burst / (double)rte_get_tsc_hz();
}

static void fail(const char *what)
{
    fprintf(stderr, "bench: %s: reserve more hugepages or ask for fewer flows\n", what);
    exit(1);
}

static enum hb_flow_insert insert(struct hb_flow_table *table, uint32_t n, uint8_t state)
{
    struct hb_flow_query query = make_query(n);
    struct hb_flow_value value = {.incarnation = 1, .backend = 1, .state = state}, displaced;
    hb_flow_ref entry;

    query.hash = hb_flow_hash_ipv4(&query, &hash_key);
    return hb_flow_table_insert(table, &query, &value, 1000, &displaced, &entry);
}

/* Inserts in bursts of one, each timed; so ns of single inserts, memory and all. */
static double time_inserts(struct hb_flow_table *table, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t start = rte_rdtsc();

        for (uint32_t n = 0; n < 8; n++)
            insert(table, first + 8 * i + n, HB_FLOW_TCP_ESTABLISHED);
        cycles[i] = (uint32_t)(rte_rdtsc() - start);
    }
    return median_ns(count, 8);
}

/* *second: the share of the flows that stand in their second bucket. */
static double time_find(struct hb_flow_table *table, uint32_t flows, bool quick, double *second)
{
    struct hb_flow_query query[BURST];
    const struct hb_flow_query *queries[BURST];
    hb_flow_ref found[BURST];
    uint64_t missing = 0, not_first = 0;

    for (uint32_t b = 0; b < BURSTS; b++) {
        uint64_t start;

        for (uint32_t i = 0; i < BURST; i++) {
            query[i] = make_query(next_random(flows));
            queries[i] = &query[i];
        }
        rte_mb();
        start = rte_rdtsc();
        for (uint32_t i = 0; i < BURST; i++) {
            query[i].hash = hb_flow_hash_ipv4(&query[i], &hash_key);
            hb_flow_prefetch(table, &table->shelf[0], query[i].hash);
        }
        if (quick) {
            uint32_t left = 0;

            for (uint32_t i = 0; i < BURST; i++) {
                uint32_t bucket = hb_flow_first_bucket(&table->shelf[0], query[i].hash);
                hb_flow_ref at = hb_flow_find_in(table, bucket, &query[i], 1001);

                if (at != HB_FLOW_NONE)
                    hb_flow_table_touch(table, at, HB_FLOW_TCP_ESTABLISHED, 1001);
                else
                    queries[left++] = &query[i];
            }
            not_first += left;
            hb_flow_table_find(table, queries, left, 1001, found);
            for (uint32_t i = 0; i < left; i++) {
                missing += found[i] == HB_FLOW_NONE;
                if (found[i] != HB_FLOW_NONE)
                    hb_flow_table_touch(table, found[i], HB_FLOW_TCP_ESTABLISHED, 1001);
            }
        } else {
            hb_flow_table_find(table, queries, BURST, 1001, found);
            for (uint32_t i = 0; i < BURST; i++)
                missing += found[i] == HB_FLOW_NONE;
        }
        cycles[b] = (uint32_t)(rte_rdtsc() - start);
    }
    if (missing != 0)
        printf("  %" PRIu64 " look-ups found nothing!", missing);
    *second = (double)not_first / BURSTS / BURST;
    return median_ns(BURSTS, BURST);
}

static void ignore(void *context, const struct hb_flow_value *value)
{
    (void)context;
    (void)value;
}

static void bench_own(uint32_t flows, uint32_t load)
{
    uint64_t size = (uint64_t)flows * 90 / load;
    size_t bytes = hb_flow_table_bytes(size, 0);
    size_t bytes4 = hb_flow_table_bytes(size, 1);
    void *memory = rte_malloc(NULL, bytes, 64);
    uint32_t last = flows / 50 / 8 < BURSTS ? flows / 50 / 8 : BURSTS, full = 0;
    struct hb_flow_table *table;
    double add_ns, expire_ns, find_ns, stage_ns, second;
    uint64_t start;

    if (memory == NULL)
        fail("no memory for the flow cache");
    table = hb_flow_table_init(memory, size, 0, &timeouts);
    for (uint32_t n = 0; n < flows - 8 * last; n++)
        full += insert(table, n, HB_FLOW_TCP_ESTABLISHED) == HB_FLOW_FULL;
    add_ns = time_inserts(table, flows - 8 * last, last);
    find_ns = time_find(table, flows, false, &second);
    stage_ns = time_find(table, flows, true, &second);
    if (!json)
        printf(
            "  own, %2u %% load  find %5.1f ns, as the stage does it %5.1f (%.0f %% in the second "
            "bucket); add (the last 2 %%) %5.1f;",
            load, find_ns, stage_ns, 100 * second, add_ns);
    full += hb_flow_table_used(table) != flows;
    start = rte_rdtsc();
    hb_flow_table_age(table, 1001 + 3600000, hb_flow_table_buckets(table), ignore, NULL);
    expire_ns = 1e9 * (double)(rte_rdtsc() - start) / flows / (double)rte_get_tsc_hz();
    if (json)
        printf("{\"table\": \"own\", \"flows\": %u, \"load_percent\": %u, \"find_ns\": %.2f, "
               "\"stage_ns\": %.2f, \"second_percent\": %.1f, \"add_ns\": %.1f, "
               "\"expire_ns\": %.2f, \"bytes\": %.2f, \"lost\": %u}\n",
               flows, load, find_ns, stage_ns, 100 * second, add_ns, expire_ns,
               (double)bytes4 / flows, full);
    else
        printf(" expire %4.1f; %4.1f bytes a flow, %4.1f with IPv6's eighth; lost %u\n", expire_ns,
               (double)bytes4 / flows, (double)bytes / flows, full);
    rte_free(memory);
}

static void bench_rte_hash(uint32_t flows)
{
    struct rte_hash_parameters parameters = {.name = "bench",
                                             .entries = flows,
                                             .key_len = sizeof(struct key16),
                                             .hash_func = rte_hash_crc};
    struct rte_hash *hash = rte_hash_create(&parameters);
    uint32_t lost = 0, last = flows / 50 / 8 < BURSTS ? flows / 50 / 8 : BURSTS;
    struct key16 keys[BURST];
    const void *pointers[BURST];
    void *data[BURST];
    uint64_t hits;
    double find_ns, add_ns;

    if (hash == NULL)
        fail(rte_strerror(rte_errno));
    for (uint32_t n = 0; n < flows - 8 * last; n++) {
        struct key16 key = make_key(n);

        lost += rte_hash_add_key_data(hash, &key, (void *)1) != 0;
    }
    for (uint32_t i = 0; i < last; i++) {
        uint64_t start = rte_rdtsc();

        for (uint32_t n = 0; n < 8; n++) {
            struct key16 key = make_key(flows - 8 * last + 8 * i + n);

            lost += rte_hash_add_key_data(hash, &key, (void *)1) != 0;
        }
        cycles[i] = (uint32_t)(rte_rdtsc() - start);
    }
    add_ns = median_ns(last, 8);
    for (uint32_t b = 0; b < BURSTS; b++) {
        uint64_t start;

        for (uint32_t i = 0; i < BURST; i++) {
            keys[i] = make_key(next_random(flows));
            pointers[i] = &keys[i];
        }
        rte_mb();
        start = rte_rdtsc();
        rte_hash_lookup_bulk_data(hash, pointers, BURST, &hits, data);
        cycles[b] = (uint32_t)(rte_rdtsc() - start);
    }
    find_ns = median_ns(BURSTS, BURST);
    if (json)
        printf("{\"table\": \"rte_hash\", \"flows\": %u, \"find_ns\": %.2f, \"add_ns\": %.1f, "
               "\"lost\": %u}\n",
               flows, find_ns, add_ns, lost);
    else
        printf("  rte_hash         find %5.1f ns;%39sadd (the last 2 %%) %5.1f; lost %u\n", find_ns,
               "", add_ns, lost);
    rte_hash_free(hash);
}

/* How full the places are when the first flow finds none, without the limit at 90 %. */
static void find_first_loss(uint32_t flows)
{
    void *memory = rte_malloc(NULL, hb_flow_table_bytes(flows, 1), 64);
    struct hb_flow_table *table;
    uint64_t places;
    uint32_t n = 0;

    if (memory == NULL)
        fail("no memory for the flow cache");
    table = hb_flow_table_init(memory, flows, 1, &timeouts);
    places = (uint64_t)table->shelf[0].count * HB_FLOW_PLACES;
    table->limit = table->shelf[0].limit = places;
    while (insert(table, n, HB_FLOW_TCP_ESTABLISHED) != HB_FLOW_FULL)
        n++;
    if (json)
        printf("{\"table\": \"own\", \"flows\": %u, \"first_loss_percent\": %.2f}\n", flows,
               100.0 * n / (double)places);
    else
        printf("  own, no limit    the first flow that finds no place comes at %.1f %% of the "
               "places\n",
               100.0 * n / (double)places);
    rte_free(memory);
}

int main(int argc, char **argv)
{
    static char *usual[] = {"100000", "1000000", "4000000", NULL};
    int used = rte_eal_init(argc, argv);

    if (used < 0)
        return 1;
    argv = used + 1 < argc ? argv + used + 1 : usual;
    if (*argv != NULL && strcmp(*argv, "--json") == 0) {
        json = true;
        argv = argv[1] != NULL ? argv + 1 : usual;
    }
    for (; *argv != NULL; argv++) {
        uint32_t flows = (uint32_t)strtoul(*argv, NULL, 10);

        if (!json)
            printf("%u flows\n", flows);
        bench_own(flows, 50);
        bench_own(flows, 90);
        bench_rte_hash(flows);
        find_first_loss(flows);
        fflush(stdout);
    }
    rte_eal_cleanup();
    return 0;
}
