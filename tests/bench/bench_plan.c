/* SPDX-License-Identifier: BSD-3-Clause */
/* See bench_plan.h. */
#include "bench_plan.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "generation_builder.h"
#include "hashing/table_builder.h"

#define SERVICES_A_VIP 4

struct bench_plan {
    struct hb_plan plan;
    struct hb_held_tables held; /* by the dataplane, once the last memfd was adopted */
    uint64_t number;
    uint32_t backends; /* of each pool */
};

static void check(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static void *need(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    check(memory != NULL, "no memory for a generation");
    return memory;
}

static void fill_service(struct hb_service_record *service, uint32_t id, uint32_t pools)
{
    uint32_t vip = id / SERVICES_A_VIP;
    int udp = id % 2, v6 = id / 2 % 2;

    *service = (struct hb_service_record){
        .port = htons(udp ? 443 : 80),
        .port_last = htons(udp ? 443 : 80),
        .prefix_length = v6 ? 128 : 32,
        .protocol = udp ? HB_PROTOCOL_UDP : HB_PROTOCOL_TCP,
        .family = v6 ? HB_FAMILY_IPV6 : HB_FAMILY_IPV4,
        .id = id,
        .pool = vip % pools,
    };
    snprintf(service->name, sizeof(service->name), "s%u", id);
    if (v6) {
        inet_pton(AF_INET6, "2001:db8:0:a::10", service->address);
        service->address[6] ^= (uint8_t)(vip >> 8);
        service->address[7] ^= (uint8_t)vip;
    } else {
        uint32_t address = htonl(bench_plan_vip4(vip));

        memcpy(service->address, &address, sizeof(address));
    }
}

/* From 198.51.100.10; backends are 198.18.0.0/15 by id. */
static void fill_backend(struct hb_backend_record *backend, uint32_t id, uint32_t pool,
                         uint16_t port)
{
    static const uint8_t ethernet[14] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 16, 0x08, 0x00};
    uint32_t address = htonl(0xc6120000 + id);
    struct hb_rewrite *rewrite = &backend->rewrite;
    uint8_t *ip = rewrite->bytes + sizeof(ethernet);

    *backend = (struct hb_backend_record){.id = id,
                                          .incarnation = 1,
                                          .pool = pool,
                                          .use = HB_BACKEND_ACTIVE,
                                          .family = HB_FAMILY_IPV4,
                                          .weight = 1};
    snprintf(backend->name, sizeof(backend->name), "b%u", id);
    memcpy(backend->address, &address, sizeof(address));
    *rewrite = (struct hb_rewrite){.size = sizeof(ethernet) + 20,
                                   .l2_size = sizeof(ethernet),
                                   .family = HB_FAMILY_IPV4,
                                   .forwarding = HB_FORWARDING_IPIP,
                                   .port = port,
                                   .inner_max = 1500};
    memcpy(rewrite->bytes, ethernet, sizeof(ethernet));
    ip[0] = 0x45;
    ip[8] = 64;
    inet_pton(AF_INET, "198.51.100.10", ip + 12);
    memcpy(ip + 16, &address, sizeof(address));
}

/* Backends in a scattered order, each of them about equally often. */
static void fill_table(struct hb_plan_table *table, uint32_t slots, uint32_t first_id,
                       uint32_t backends)
{
    uint16_t *owner = need(slots, sizeof(*owner));

    for (uint32_t slot = 0; slot < slots; slot++)
        owner[slot] = (uint16_t)(first_id + (slot * UINT64_C(2654435761) >> 7) % backends);
    table->column.owner = owner;
    table->slots = slots;
    hb_table_digest(owner, slots, table->digest);
}

struct bench_plan *bench_plan_make(const struct bench_plan_size *size)
{
    struct bench_plan *made;
    struct hb_plan *plan;

    if (size->vips < 1 || size->vips > HB_SERVICES_MAX / SERVICES_A_VIP || size->pools < 1 ||
        size->pools > size->vips || size->backends < 1 ||
        (uint64_t)size->pools * size->backends > HB_BACKENDS_MAX ||
        size->slots < HB_TABLE_SLOTS_MIN || size->slots > HB_TABLE_SLOTS_MAX) {
        fprintf(
            stderr,
            "bench: a generation of %u VIPs, %u pools of %u backends, %u slots is not possible: "
            "at most %d VIPs, as many pools, %d backends in all, %d to %d slots\n",
            size->vips, size->pools, size->backends, size->slots, HB_SERVICES_MAX / SERVICES_A_VIP,
            HB_BACKENDS_MAX, HB_TABLE_SLOTS_MIN, HB_TABLE_SLOTS_MAX);
        return NULL;
    }
    made = need(1, sizeof(*made));
    plan = &made->plan;
    made->backends = size->backends;
    *plan = (struct hb_plan){
        .services_count = size->vips * SERVICES_A_VIP,
        .pools_count = size->pools,
        .backends_count = size->pools * size->backends,
        .tables_count = size->pools,
    };
    plan->services = need(plan->services_count, sizeof(*plan->services));
    plan->pools = need(plan->pools_count, sizeof(*plan->pools));
    plan->backends = need(plan->backends_count, sizeof(*plan->backends));
    plan->tables = need(plan->tables_count, sizeof(*plan->tables));
    for (uint32_t i = 0; i < HB_HASH_KEY_WORDS; i++)
        plan->hash_key.word[i] = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t id = 0; id < plan->services_count; id++)
        fill_service(&plan->services[id], id, size->pools);
    for (uint32_t i = 0; i < plan->backends_count; i++)
        fill_backend(&plan->backends[i], i + 1, i / size->backends, size->port);
    for (uint32_t pool = 0; pool < size->pools; pool++) {
        snprintf(plan->pools[pool].name, sizeof(plan->pools[pool].name), "p%u", pool);
        plan->pools[pool].table = pool;
        fill_table(&plan->tables[pool], size->slots, 1 + pool * size->backends, size->backends);
    }
    made->held.digest = need(size->pools, sizeof(*made->held.digest));
    return made;
}

void bench_plan_free(struct bench_plan *plan)
{
    if (plan == NULL)
        return;
    for (uint32_t t = 0; t < plan->plan.tables_count; t++)
        free((void *)(uintptr_t)plan->plan.tables[t].column.owner);
    free(plan->plan.services);
    free(plan->plan.pools);
    free(plan->plan.backends);
    free(plan->plan.tables);
    free(plan->held.digest);
    free(plan);
}

void bench_plan_change(struct bench_plan *plan, uint32_t pool)
{
    struct hb_plan_table *table = &plan->plan.tables[pool];
    uint16_t *owner = (uint16_t *)(uintptr_t)table->column.owner;
    uint32_t first = 1 + pool * plan->backends;

    for (uint32_t slot = plan->number % 100 % table->slots; slot < table->slots; slot += 100)
        owner[slot] = (uint16_t)(first + (owner[slot] - first + 1) % plan->backends);
    hb_table_digest(owner, table->slots, table->digest);
}

int bench_plan_memfd(struct bench_plan *plan, uint64_t *number, uint64_t *size)
{
    int fd = memfd_create("bench-generation", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    uint8_t *blob;
    size_t bytes;

    *number = ++plan->number;
    memcpy(plan->plan.content, number, sizeof(*number));
    check(hb_generation_encode(&plan->plan, *number, &plan->held, (void **)&blob, &bytes) == 0,
          "no memory for a generation");
    check(fd >= 0, "no memfd");
    for (size_t done = 0; done < bytes;) {
        ssize_t wrote = write(fd, blob + done, bytes - done);

        check(wrote > 0, "a memfd does not take the generation");
        done += (size_t)wrote;
    }
    check(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0,
          "a memfd does not take the seals");
    free(blob);
    plan->held.count = plan->plan.tables_count;
    for (uint32_t t = 0; t < plan->plan.tables_count; t++)
        memcpy(plan->held.digest[t], plan->plan.tables[t].digest, HB_DIGEST_SIZE);
    *size = bytes;
    return fd;
}
