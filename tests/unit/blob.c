/* SPDX-License-Identifier: BSD-3-Clause */
/* See blob.h. */
#include "blob.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static void check(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "blob: %s\n", what);
    abort();
}

static uint8_t parse_address(const char *text, uint8_t address[HB_ADDRESS_SIZE])
{
    memset(address, 0, HB_ADDRESS_SIZE);
    if (inet_pton(AF_INET, text, address) == 1)
        return HB_FAMILY_IPV4;
    check(inet_pton(AF_INET6, text, address) == 1, "an address does not parse");
    return HB_FAMILY_IPV6;
}

uint32_t blob_add_pool(struct blob_plan *plan, const char *name, uint32_t slots)
{
    check(plan->pools < BLOB_POOLS_MAX, "too many pools");
    plan->pool[plan->pools] = (struct blob_pool){.name = name, .slots = slots};
    return plan->pools++;
}

uint32_t blob_add_service(struct blob_plan *plan, const char *name, const char *vip,
                          uint8_t protocol, uint16_t port, uint32_t pool)
{
    struct hb_service_record *service = &plan->service[plan->services];

    check(plan->services < BLOB_SERVICES_MAX, "too many services");
    *service = (struct hb_service_record){
        .port = htons(port),
        .port_last = htons(port),
        .protocol = protocol,
        .id = plan->services,
        .pool = pool,
    };
    service->family = parse_address(vip, service->address);
    service->prefix_length = hb_address_bits(service->family);
    snprintf(service->name, sizeof(service->name), "%s", name);
    return plan->services++;
}

static void fill_rewrite(struct hb_backend_record *backend)
{
    static const uint8_t macs[12] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 16};
    struct hb_rewrite *rewrite = &backend->rewrite;
    uint8_t *ip = rewrite->bytes + 14;

    *rewrite = (struct hb_rewrite){
        .l2_size = 14, .family = backend->family, .forwarding = HB_FORWARDING_IPIP};
    memcpy(rewrite->bytes, macs, sizeof(macs));
    if (backend->family == HB_FAMILY_IPV4) {
        rewrite->size = 14 + 20;
        rewrite->inner_max = 1480;
        rewrite->bytes[12] = 0x08;
        ip[0] = 0x45;
        ip[8] = 64;
        inet_pton(AF_INET, "198.51.100.10", ip + 12);
        memcpy(ip + 16, backend->address, 4);
    } else {
        rewrite->size = 14 + 40;
        rewrite->inner_max = 1460;
        rewrite->bytes[12] = 0x86;
        rewrite->bytes[13] = 0xdd;
        ip[0] = 0x60;
        ip[7] = 64;
        inet_pton(AF_INET6, "2001:db8:0:1::10", ip + 8);
        memcpy(ip + 24, backend->address, 16);
    }
}

uint32_t blob_add_backend(struct blob_plan *plan, const char *name, const char *address,
                          uint32_t pool)
{
    struct hb_backend_record *backend = &plan->backend[plan->backends];

    check(plan->backends < BLOB_BACKENDS_MAX, "too many backends");
    *backend = (struct hb_backend_record){.id = plan->backends + 1,
                                          .incarnation = 1,
                                          .pool = pool,
                                          .use = HB_BACKEND_ACTIVE,
                                          .weight = 1};
    backend->family = parse_address(address, backend->address);
    snprintf(backend->name, sizeof(backend->name), "%s", name);
    fill_rewrite(backend);
    return plan->backends++;
}

struct blob_plan blob_example(void)
{
    struct blob_plan plan = {.number = 1};
    uint32_t web = blob_add_pool(&plan, "web", 13), dns = blob_add_pool(&plan, "dns", 7);

    blob_add_service(&plan, "www", "192.0.2.10", HB_PROTOCOL_TCP, 80, web);
    blob_add_service(&plan, "dns6", "2001:db8:0:a::10", HB_PROTOCOL_UDP, 53, dns);
    blob_add_backend(&plan, "web1", "198.51.100.11", web);
    blob_add_backend(&plan, "web2", "2001:db8:0:b::12", web);
    blob_add_backend(&plan, "dns1", "198.51.100.21", dns);
    blob_add_backend(&plan, "dns2", "198.51.100.22", dns);
    return plan;
}

static void fill_slots(const struct blob_plan *plan, uint32_t pool, uint16_t *owner)
{
    uint16_t ids[BLOB_BACKENDS_MAX];
    uint32_t count = 0, slots = plan->pool[pool].slots;

    if (plan->pool[pool].owner != NULL) {
        memcpy(owner, plan->pool[pool].owner, slots * sizeof(*owner));
        return;
    }
    for (uint32_t i = 0; i < plan->backends; i++)
        if (plan->backend[i].pool == pool && plan->backend[i].use != HB_BACKEND_DOWN)
            ids[count++] = (uint16_t)plan->backend[i].id;
    check(count > 0, "a pool with a table has no backend");
    for (uint32_t i = 0; i < slots; i++)
        owner[i] = ids[i % count];
}

/* The columns behind the owners. */
static void fill_past(const struct blob_pool *pool, uint8_t *body)
{
    uint64_t column = hb_table_previous_offset(pool->slots);
    uint64_t *unsettled = (void *)(body + 2 * column);

    memcpy(body + column, pool->previous, pool->slots * sizeof(*pool->previous));
    if (pool->unsettled != NULL)
        memcpy(unsettled, pool->unsettled, hb_table_unsettled_bytes(pool->slots));
    for (uint32_t slot = 0; slot < pool->slots; slot++)
        if (pool->previous[slot] != HB_BACKEND_NONE)
            unsettled[slot / 64] |= UINT64_C(1) << slot % 64;
}

static struct hb_section place(size_t *end, uint32_t count, uint32_t record_size)
{
    size_t at = (*end + HB_SECTION_ALIGN - 1) & ~(size_t)(HB_SECTION_ALIGN - 1);

    *end = at + (size_t)count * record_size;
    return (struct hb_section){at, count, record_size};
}

static void fill_tables(const struct blob_plan *plan, uint8_t *blob, size_t *end)
{
    struct hb_generation_header *header = (void *)blob;
    struct hb_pool_record *pools = (void *)(blob + header->pools.offset);
    struct hb_table_record *table = (void *)(blob + header->tables.offset);

    for (uint32_t i = 0; i < plan->pools; i++) {
        const struct blob_pool *pool = &plan->pool[i];
        uint64_t bytes;
        void *body;

        snprintf(pools[i].name, sizeof(pools[i].name), "%s", pool->name);
        pools[i].table = HB_POOL_NO_TABLE;
        pools[i].bounded_load = pool->bounded_load;
        if (pool->slots == 0)
            continue;
        pools[i].table =
            (uint32_t)(table - (struct hb_table_record *)(blob + header->tables.offset));
        table->slots = pool->slots;
        table->flags = pool->previous != NULL ? HB_TABLE_TWO_OWNERS : 0;
        bytes = hb_table_body_bytes(pool->slots, table->flags);
        body = calloc(1, bytes);
        check(body != NULL, "no memory");
        fill_slots(plan, i, body);
        if (pool->previous != NULL)
            fill_past(pool, body);
        blob_body_digest(body, pool->slots, table->flags, table->digest);
        if (!pool->leave_out_body) {
            table->offset = place(end, 1, (uint32_t)bytes).offset;
            memcpy(blob + table->offset, body, bytes);
        }
        free(body);
        table++;
    }
}

void *blob_build(const struct blob_plan *plan, size_t *size)
{
    struct hb_generation_header header = {
        .magic = HB_GENERATION_MAGIC,
        .version = HB_GENERATION_VERSION,
        .header_size = sizeof(header),
        .number = plan->number,
    };
    size_t end = sizeof(header), room;
    uint32_t tables = 0;
    uint8_t *blob;

    for (uint32_t i = 0; i < plan->pools; i++)
        tables += plan->pool[i].slots > 0;
    header.services = place(&end, plan->services, sizeof(struct hb_service_record));
    header.pools = place(&end, plan->pools, sizeof(struct hb_pool_record));
    header.backends = place(&end, plan->backends, sizeof(struct hb_backend_record));
    header.tables = place(&end, tables, sizeof(struct hb_table_record));
    header.prefixes = place(&end, plan->prefixes, sizeof(struct hb_prefix_record));
    header.quic = place(&end, plan->quics, sizeof(struct hb_quic_record));
    header.sources = place(&end, 0, sizeof(struct hb_source_record));
    for (uint32_t i = 0; i < HB_HASH_KEY_WORDS; i++)
        header.hash_key.word[i] = 0x0123456789abcdef * (i + 1);
    room = end;
    for (uint32_t i = 0; i < plan->pools; i++)
        room += hb_table_body_bytes(plan->pool[i].slots, HB_TABLE_TWO_OWNERS) + HB_SECTION_ALIGN;
    room = (room + 63) & ~(size_t)63;
    blob = aligned_alloc(HB_SECTION_ALIGN, room);
    check(blob != NULL, "no memory");
    memset(blob, 0, room);
    memcpy(blob, &header, sizeof(header));
    memcpy(blob + header.services.offset, plan->service, plan->services * sizeof(plan->service[0]));
    memcpy(blob + header.backends.offset, plan->backend, plan->backends * sizeof(plan->backend[0]));
    memcpy(blob + header.prefixes.offset, plan->many != NULL ? plan->many : plan->prefix,
           plan->prefixes * sizeof(plan->prefix[0]));
    memcpy(blob + header.quic.offset, plan->quic, plan->quics * sizeof(plan->quic[0]));
    fill_tables(plan, blob, &end);
    ((struct hb_generation_header *)blob)->total_size = end;
    *size = end;
    blob_repair_checksum(blob, end);
    return blob;
}

void blob_repair_checksum(void *blob, size_t size)
{
    struct hb_generation_header *header = blob;

    header->checksum = 0;
    header->checksum = XXH3_64bits(blob, size);
}

void blob_digest(const uint16_t *owner, uint32_t slots, uint8_t digest[HB_DIGEST_SIZE])
{
    blob_body_digest(owner, slots, 0, digest);
}

void blob_body_digest(const void *body, uint32_t slots, uint32_t flags,
                      uint8_t digest[HB_DIGEST_SIZE])
{
    XXH128_canonical_t canonical;

    XXH128_canonicalFromHash(&canonical,
                             XXH3_128bits_withSeed(body, hb_table_body_bytes(slots, flags), flags));
    memcpy(digest, &canonical, HB_DIGEST_SIZE);
}

int blob_memfd(const void *blob, size_t size, int seals)
{
    int fd = memfd_create("test-generation", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    check(fd >= 0, "no memfd");
    check(write(fd, blob, size) == (ssize_t)size, "a memfd does not take the blob");
    check(fcntl(fd, F_ADD_SEALS, seals) == 0, "a memfd does not take the seals");
    return fd;
}

int blob_sealed_memfd(const void *blob, size_t size)
{
    return blob_memfd(blob, size, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}
