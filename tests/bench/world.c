/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>

#include "packet.h"
#include "service_map.h"
#include "world.h"

#define ROOM (RTE_PKTMBUF_HEADROOM + 384) /* bytes of a packet's buffer */

static struct rte_mempool *pool;

static uint16_t swallow(void *queue, struct rte_mbuf **mbufs, uint16_t count)
{
    (void)queue;
    (void)mbufs;
    return count;
}

bool world_open(void)
{
    static void *queues[1];
    struct rte_eth_fp_ops *port = &rte_eth_fp_ops[SINK_PORT];

    port->tx_pkt_burst = swallow;
    port->txq.data = queues;
    port->txq.clbk = queues;
    pool = rte_pktmbuf_pool_create("bench", 2 * WORLD_COLD - 1, 256, 0, ROOM, 0);
    if (pool == NULL)
        fprintf(stderr, "bench: no memory for packets: reserve hugepages or run with --no-huge\n");
    return pool != NULL;
}

static void *need(size_t size)
{
    void *memory = rte_zmalloc(NULL, size, 64);

    if (memory == NULL) {
        fprintf(stderr, "bench: no memory (%zu MB): reserve more hugepages\n", size >> 20);
        exit(1);
    }
    return memory;
}

static struct hb_counters_header *make_region(const struct world_size *size)
{
    uint64_t stride =
        hb_counters_block_bytes(size->vips * 4, size->backends + 2, HB_TALKERS_MAX, 0);
    struct hb_counters_header *region = need(sizeof(*region) + stride);

    region->workers = 1;
    region->services_max = size->vips * 4;
    region->backends_max = size->backends + 1;
    region->talkers_max = HB_TALKERS_MAX;
    region->worker_offset = sizeof(*region);
    region->worker_stride = stride;
    return region;
}

/* Every VIP has four services: TCP 80 and UDP 443, by IPv4 and IPv6; VIP 0 is that of packet.h. */
static void list_services(struct hb_service_record *records, struct hb_service *services,
                          const struct world_size *size)
{
    for (uint32_t i = 0; i < 4 * size->vips; i++) {
        uint32_t vip = i / 4;
        bool udp = (i & 1) != 0, v6 = (i & 2) != 0;

        records[i].id = i;
        records[i].family = v6 ? HB_FAMILY_IPV6 : HB_FAMILY_IPV4;
        records[i].protocol = udp ? HB_PROTOCOL_UDP : HB_PROTOCOL_TCP;
        records[i].port = records[i].port_last = htons(udp ? 443 : 80);
        records[i].prefix_length = hb_address_bits(records[i].family);
        inet_pton(v6 ? AF_INET6 : AF_INET, v6 ? "2001:db8:0:a::10" : "192.0.2.10",
                  records[i].address);
        records[i].address[v6 ? 6 : 1] ^= (uint8_t)(vip >> 8);
        records[i].address[v6 ? 7 : 2] ^= (uint8_t)vip;
        services[i] = (struct hb_service){.id = (uint16_t)i, .pool = vip % size->pools};
        services[i].tracking =
            (uint8_t)(udp && size->tracking == HB_TRACKING_CHANGED ? HB_TRACKING_ALL
                                                                   : size->tracking);
    }
}

/* Every backend is a member. */
static const struct hb_pool_bound *make_bound(uint32_t backends)
{
    struct hb_pool_bound *bound = need(sizeof(*bound));
    uint16_t *member = need(backends * sizeof(*member));

    for (uint32_t i = 0; i < backends; i++)
        member[i] = (uint16_t)(i + 1);
    *bound = (struct hb_pool_bound){.member = member, .members = backends, .weights = backends};
    return bound;
}

/* Backend id 1 + i is of pool i modulo pools. */
static struct hb_pool *make_pools(const struct world_size *size)
{
    struct hb_pool *pools = need(size->pools * sizeof(*pools));

    for (uint32_t p = 0; p < size->pools; p++) {
        uint32_t members = (size->backends - p + size->pools - 1) / size->pools;
        uint16_t *owner = need(size->slots * sizeof(*owner));

        for (uint32_t slot = 0; slot < size->slots; slot++) {
            uint32_t member = (uint32_t)((slot * UINT64_C(2654435761) >> 7) % members);

            owner[slot] = (uint16_t)(1 + p + member * size->pools);
        }
        pools[p] = (struct hb_pool){
            .owner = owner, .slots = size->slots, .bounded_load = (uint16_t)size->bounded_load};
    }
    return pools;
}

static struct hb_generation *make_generation(const struct world_size *size)
{
    struct hb_generation *generation = need(sizeof(*generation));
    struct hb_service_record *records = need(4 * size->vips * sizeof(*records));
    struct hb_service *services = need(4 * size->vips * sizeof(*services));
    struct hb_backend *backends = need((size->backends + 1) * sizeof(*backends));
    struct hb_pool *pools = make_pools(size);
    uint32_t duplicate;

    list_services(records, services, size);
    for (uint32_t id = 1; id <= size->backends; id++) {
        backends[id] = (struct hb_backend){.use = HB_BACKEND_ACTIVE,
                                           .l2_size = 14,
                                           .family = HB_FAMILY_IPV4,
                                           .forwarding = HB_FORWARDING_IPIP,
                                           .port = SINK_PORT,
                                           .inner_max = 1480,
                                           .incarnation = 1,
                                           .pool = (uint16_t)((id - 1) % size->pools),
                                           .weight = 1};
        backends[id].size = (uint8_t)write_rewrite(backends[id].bytes, 4, 1);
        backends[id].bytes[IP4_DESTINATION + 3] = (uint8_t)id;
        backends[id].bytes[IP4_DESTINATION + 2] = (uint8_t)(id >> 8);
        hb_backend_complete(&backends[id]);
    }
    *generation = (struct hb_generation){
        .map = hb_service_map_build(need(hb_service_map_bytes(records, 4 * size->vips)), records,
                                    4 * size->vips, &duplicate),
        .services = services,
        .pools = pools,
        .backends = backends,
        .services_count = 4 * size->vips,
        .pools_count = size->pools,
        .backends_count = size->backends + 1,
        .selective = size->tracking != HB_TRACKING_ALL,
        .fetch_slots = size->tracking != HB_TRACKING_ALL && hb_tables_are_far(pools, size->pools),
        .number = 1,
        .bounds = size->bounded_load != 0 ? make_bound(size->backends) : NULL,
    };
    for (uint32_t i = 0; i < HB_HASH_KEY_WORDS; i++)
        generation->hash_key.word[i] = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    rte_free(records);
    return generation;
}

struct world *world_make(const struct world_size *size)
{
    struct world *world = need(sizeof(*world));
    struct hb_worker_config config = {
        .flows_max = size->flows_max,
        .timeouts = {3000, 3600000, 10000, 1000, 60000},
        .head = &world->head,
    };
    char error[256];

    world->packets = size->packets;
    world->region = make_region(size);
    world->generation = make_generation(size);
    config.region = world->region;
    world->worker = hb_worker_create(&config, error, sizeof(error));
    if (world->worker == NULL) {
        fprintf(stderr, "bench: %s\n", error);
        world_free(world);
        return NULL;
    }
    world->worker->punt_port = SINK_PORT;
    world->worker->now_ms = 1000;
    if (rte_pktmbuf_alloc_bulk(pool, world->stock, size->packets) != 0)
        exit(1);
    return world;
}

void world_free(struct world *world)
{
    for (uint32_t i = 0; i < world->packets; i++)
        rte_pktmbuf_free(world->stock[i]);
    hb_worker_destroy(world->worker);
    if (world->generation->bounds != NULL)
        rte_free((void *)(uintptr_t)world->generation->bounds->member);
    rte_free((void *)(uintptr_t)world->generation->bounds);
    rte_free((void *)(uintptr_t)world->generation->map);
    rte_free((void *)(uintptr_t)world->generation->services);
    for (uint32_t p = 0; p < world->generation->pools_count; p++)
        rte_free((void *)(uintptr_t)world->generation->pools[p].owner);
    rte_free((void *)(uintptr_t)world->generation->pools);
    rte_free((void *)(uintptr_t)world->generation->backends);
    rte_free(world->generation);
    rte_free(world->region);
    rte_free(world);
}

struct rte_mbuf **world_take_burst(struct world *world)
{
    struct rte_mbuf **burst = &world->stock[world->next];

    world->next = (world->next + HB_BURST) % world->packets;
    return burst;
}

struct rte_mbuf **world_make_burst(struct world *world, uint16_t length, bool freed)
{
    struct rte_mbuf **burst = world_take_burst(world);

    if (freed && rte_pktmbuf_alloc_bulk(pool, burst, HB_BURST) != 0)
        exit(1);
    for (uint32_t i = 0; i < HB_BURST; i++) {
        rte_pktmbuf_reset(burst[i]);
        rte_pktmbuf_append(burst[i], length);
    }
    return burst;
}
