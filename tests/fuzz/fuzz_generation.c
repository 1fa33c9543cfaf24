/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Damaged generations: whatever control sends, the check neither reads outside the blob nor lets
 * anything through that the packet path could trip over. The checksum is made right again after
 * most damage, so that the checks behind it are reached. Run with the address sanitizer this finds
 * reads outside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "fuzz.h"
#include "generation_build.h"
#include "generation_check.h"
#include "service_extras.h"
#include "service_map.h"
#include "wrap.h"

/* Every forwarding mode over both families, two of which are members of the first pool. */
enum { SERVICES = 4, POOLS = 2, BACKENDS = 14, TABLES = 2, SLOTS = 13, PREFIXES = 4, QUICS = 2 };

/* Sections in the order of generation.h; each is a multiple of 64 bytes, but the last two. */
struct blob {
    struct hb_generation_header header;
    struct hb_service_record services[SERVICES];
    struct hb_pool_record pools[POOLS];
    struct hb_backend_record backends[BACKENDS];
    struct hb_table_record tables[TABLES];
    struct hb_prefix_record prefixes[PREFIXES];
    struct hb_quic_record quic[QUICS];
    uint16_t slots[TABLES][64]; /* 128 bytes each; the first table has a past */
};

static const struct hb_generation_limits limits = {
    .services_max = 16, .backends_max = 16, .ports = {0}, .ports_count = 1};

static void *aligned(size_t bytes)
{
    void *memory = NULL;

    assert_int_equal(posix_memalign(&memory, 64, bytes + 1), 0);
    return memory;
}

static void seal(uint8_t *bytes, uint64_t size)
{
    struct hb_generation_header *header = (void *)bytes;

    if (size < sizeof(*header))
        return;
    header->checksum = 0;
    header->checksum = XXH3_64bits(bytes, size);
}

static void digest(struct hb_table_record *table, const uint16_t *slots)
{
    XXH128_canonical_t canonical;

    XXH128_canonicalFromHash(
        &canonical,
        XXH3_128bits_withSeed(slots, hb_table_body_bytes(SLOTS, table->flags), table->flags));
    memcpy(table->digest, &canonical, HB_DIGEST_SIZE);
}

static void fill_backend(struct hb_backend_record *backend, uint32_t id, uint32_t pool)
{
    struct wrap wrap = {.forwarding = (uint8_t)(1 + (id - 1) / 2),
                        .family = id % 2 ? 4 : 6,
                        .number = (uint16_t)id,
                        .tags = id / 4 % 2};
    struct wrap address = {
        .forwarding = HB_FORWARDING_L3DSR, .family = wrap.family, .number = (uint16_t)id};
    struct hb_rewrite *rewrite = &backend->rewrite;
    uint8_t bytes[64];

    backend->id = id;
    backend->pool = pool;
    backend->use = HB_BACKEND_ACTIVE;
    backend->family = wrap.family;
    memcpy(backend->address, bytes + write_wrap(bytes, &address), wrap.family == 6 ? 16 : 4);
    strcpy(backend->name, "backend");
    rewrite->l2_size = (uint8_t)(14 + 4 * wrap.tags);
    rewrite->family = wrap.family;
    rewrite->forwarding = wrap.forwarding;
    rewrite->dscp = wrap.forwarding == HB_FORWARDING_L3DSR ? 10 : 0;
    rewrite->inner_max = 1500;
    rewrite->size = (uint8_t)write_wrap(rewrite->bytes, &wrap);
}

/* A service with a prefix, a range, a list, limits and affinity, and one with QUIC. */
static void fill_extras(struct blob *blob)
{
    struct hb_service_record *wide = &blob->services[2], *quic = &blob->services[3];

    *wide = (struct hb_service_record){.address = {198, 18},
                                       .prefix_length = 24,
                                       .port = __builtin_bswap16(8000),
                                       .port_last = __builtin_bswap16(8999),
                                       .affinity = HB_AFFINITY_SOURCE,
                                       .affinity_prefix = 24,
                                       .prefix_list = 1,
                                       .flags = HB_SERVICE_DENY_OTHERS,
                                       .flows_max = 1000,
                                       .new_flows_rate = 100,
                                       .protocol = HB_PROTOCOL_SCTP,
                                       .family = HB_FAMILY_IPV4,
                                       .id = 2};
    *quic = (struct hb_service_record){.address = {198, 18},
                                       .prefix_length = 24,
                                       .port_last = UINT16_MAX,
                                       .quic_count = QUICS,
                                       .protocol = HB_PROTOCOL_UDP,
                                       .family = HB_FAMILY_IPV4,
                                       .id = 3};
    strcpy(wide->name, "wide");
    strcpy(quic->name, "quic");
    for (uint32_t i = 0; i < PREFIXES; i++)
        blob->prefixes[i] = (struct hb_prefix_record){.address = {10, (uint8_t)i},
                                                      .list = 1,
                                                      .family = HB_FAMILY_IPV4,
                                                      .length = 16,
                                                      .allow = i % 2};
    blob->quic[0] = (struct hb_quic_record){.server_id_length = 3, .nonce_length = 8};
    blob->quic[1] = (struct hb_quic_record){
        .config_id = 6, .server_id_length = 8, .nonce_length = 11, .encrypted = 1, .key = {1}};
    for (uint32_t i = 0; i < BACKENDS; i++) {
        blob->backends[i].server_id_length = 3;
        blob->backends[i].server_id[0] = (uint8_t)i;
    }
}

static void fill(struct blob *blob)
{
    struct hb_generation_header *header = &blob->header;

    memset(blob, 0, sizeof(*blob));
    *header = (struct hb_generation_header){
        .magic = HB_GENERATION_MAGIC,
        .version = HB_GENERATION_VERSION,
        .header_size = sizeof(*header),
        .total_size = sizeof(*blob),
        .number = 1,
        .services = {offsetof(struct blob, services), SERVICES, sizeof(blob->services[0])},
        .pools = {offsetof(struct blob, pools), POOLS, sizeof(blob->pools[0])},
        .backends = {offsetof(struct blob, backends), BACKENDS, sizeof(blob->backends[0])},
        .tables = {offsetof(struct blob, tables), TABLES, sizeof(blob->tables[0])},
        .prefixes = {offsetof(struct blob, prefixes), PREFIXES, sizeof(blob->prefixes[0])},
        .quic = {offsetof(struct blob, quic), QUICS, sizeof(blob->quic[0])},
        .sources = {0, 0, sizeof(struct hb_source_record)},
    };
    for (uint32_t i = 0; i < SERVICES; i++) {
        blob->services[i] = (struct hb_service_record){.address = {192, 0, 2, 10},
                                                       .port = (hb_be16)(80 + i),
                                                       .port_last = (hb_be16)(80 + i),
                                                       .prefix_length = 32,
                                                       .protocol = HB_PROTOCOL_TCP,
                                                       .family = HB_FAMILY_IPV4,
                                                       .id = i,
                                                       .pool = i % POOLS};
        strcpy(blob->services[i].name, "service");
    }
    fill_extras(blob);
    for (uint32_t i = 0; i < POOLS; i++) {
        blob->pools[i].table = i;
        strcpy(blob->pools[i].name, "pool");
    }
    for (uint32_t i = 0; i < BACKENDS; i++)
        fill_backend(&blob->backends[i], i + 1, i < 2 ? 0 : 1);
    for (uint32_t i = 0; i < SLOTS; i++) {
        blob->slots[0][i] = (uint16_t)(1 + i % 2);
        blob->slots[1][i] = (uint16_t)(3 + i % (BACKENDS - 2));
    }
    blob->slots[0][16 + 3] = 1; /* previous */
    blob->slots[0][16 + 4] = 2;
    blob->slots[0][32] = 0x58; /* 3, 4, and 6 without one */
    blob->tables[0].flags = HB_TABLE_TWO_OWNERS;
    for (uint32_t i = 0; i < TABLES; i++) {
        blob->tables[i].offset = offsetof(struct blob, slots) + i * sizeof(blob->slots[0]);
        blob->tables[i].slots = SLOTS;
        digest(&blob->tables[i], blob->slots[i]);
    }
    seal((uint8_t *)blob, sizeof(*blob));
}

/* What the packet path takes for granted when it copies headers and patches them. */
static void check_rewrite(const struct hb_rewrite *rewrite)
{
    struct wrap wrap = {.forwarding = rewrite->forwarding, .family = rewrite->family};
    uint32_t address = rewrite->forwarding == HB_FORWARDING_L3DSR ? 16 : 0;

    assert_in_range(rewrite->forwarding, HB_FORWARDING_IPIP, HB_FORWARDING_L3DSR);
    assert_true(rewrite->family == 4 || rewrite->family == 6);
    assert_true(rewrite->l2_size == 14 || rewrite->l2_size == 18);
    assert_int_equal(rewrite->size, rewrite->l2_size + wrap_overhead(&wrap));
    assert_in_range(rewrite->size + address, 14, HB_REWRITE_BYTES);
    assert_in_range(rewrite->inner_max, 68, 65535 - wrap_overhead(&wrap));
    assert_true(rewrite->spread <= 64 && rewrite->dscp < 64);
    assert_int_equal(rewrite->port, 0);
}

/* Builds what services have and asks it, as the packet path would. */
static void walk_services(const uint8_t *bytes)
{
    const struct hb_generation_header *header = (const void *)bytes;
    struct hb_service_sections sections = {
        .services = (const void *)(bytes + header->services.offset),
        .prefixes = (const void *)(bytes + header->prefixes.offset),
        .quic = (const void *)(bytes + header->quic.offset),
        .backends = (const void *)(bytes + header->backends.offset),
        .services_count = header->services.count,
        .prefixes_count = header->prefixes.count,
        .quic_count = header->quic.count,
        .backends_count = header->backends.count,
        .workers = 2,
    };
    void *map_memory = aligned(hb_service_map_bytes(sections.services, sections.services_count));
    void *extras_memory = aligned(hb_service_extras_bytes(&sections));
    struct hb_service_extras extras = hb_service_extras_build(extras_memory, &sections);
    uint32_t duplicate;
    struct hb_service_map *map =
        hb_service_map_build(map_memory, sections.services, sections.services_count, &duplicate);

    assert_non_null(map);
    for (uint32_t i = 0; i < sections.services_count; i++) {
        struct hb_flow_key key = {.source = {10, 1, 2, 3},
                                  .destination_port = sections.services[i].port_last,
                                  .protocol = sections.services[i].protocol,
                                  .family = sections.services[i].family};
        uint8_t server_id[HB_QUIC_SERVER_ID_MAX], id[HB_QUIC_CID_MAX] = {0};
        uint32_t source = 0x0a010203;
        bool allowed;

        memcpy(key.destination, sections.services[i].address, sizeof(key.destination));
        assert_true(hb_service_map_find(map, &key) >= 0);
        if (extras.extra == NULL)
            continue;
        if (extras.extra[i].list != NULL)
            hb_prefix_set_find4((const struct hb_prefix_set *[]){extras.extra[i].list}, &source, 1,
                                &allowed);
        for (uint32_t q = 0; q < sections.services[i].quic_count; q++)
            assert_true(hb_quic_read_server_id(&extras.quic[extras.extra[i].quic_first + q], id,
                                               sizeof(id), server_id));
    }
    free(map_memory);
    free(extras_memory);
}

/* What the packet path does with an accepted generation, without any check of its own. */
static void walk(const uint8_t *bytes, uint64_t size)
{
    const struct hb_generation_header *header = (const void *)bytes;
    const struct hb_service_record *services = (const void *)(bytes + header->services.offset);
    const struct hb_pool_record *pools = (const void *)(bytes + header->pools.offset);
    const struct hb_backend_record *backends = (const void *)(bytes + header->backends.offset);
    const struct hb_table_record *tables = (const void *)(bytes + header->tables.offset);
    const struct hb_backend_record *by_id[HB_BACKENDS_MAX + 1] = {NULL};

    assert_int_equal(header->total_size, size);
    walk_services(bytes);
    for (uint32_t i = 0; i < header->backends.count; i++)
        by_id[backends[i].id] = &backends[i];
    for (uint32_t i = 0; i < header->services.count; i++) {
        const struct hb_pool_record *pool = &pools[services[i].pool];

        assert_true(services[i].pool < header->pools.count);
        if (pool->table == HB_POOL_NO_TABLE)
            continue;
        for (uint32_t slot = 0; slot < tables[pool->table].slots; slot++) {
            struct hb_table_columns column =
                hb_table_columns(bytes + tables[pool->table].offset, tables[pool->table].slots,
                                 tables[pool->table].flags);
            const struct hb_backend_record *backend = by_id[column.owner[slot]];

            assert_non_null(backend);
            check_rewrite(&backend->rewrite);
            if (column.unsettled == NULL || column.previous[slot] == HB_BACKEND_NONE)
                continue;
            assert_true(hb_slot_is_unsettled(column.unsettled, slot));
            assert_non_null(by_id[column.previous[slot]]);
        }
    }
}

static void *allocate(void *context, size_t bytes, uint32_t node)
{
    (void)context, (void)node;
    return memset(aligned(bytes), 0, bytes);
}

static void release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

/* Adopts it after another one, and lets go of both. */
static void adopt(const void *blob)
{
    const struct hb_node_memory memory = {.nodes = 1,
                                          .allocate = allocate,
                                          .release = release,
                                          .workers = 1,
                                          .worker_node = (const uint8_t[]){0}};
    struct hb_table_store *store = hb_table_store_create(&memory);
    struct hb_built_generation *first = hb_generation_build(blob, NULL, store, &memory), *second;

    assert_non_null(first);
    hb_generation_begin(first, 1000);
    second = hb_generation_build(blob, first, store, &memory);
    assert_non_null(second);
    hb_generation_begin(second, 2000);
    hb_generation_free(first, store, &memory);
    hb_generation_free(second, store, &memory);
    hb_table_store_destroy(store);
}

/* Checks a copy of exactly `size` bytes, so that a sanitizer sees any read behind its end. */
static enum hb_reject check_copy(const void *blob, uint64_t size)
{
    struct hb_generation_fault fault;
    enum hb_reject reason;
    void *copy = NULL;

    assert_int_equal(posix_memalign(&copy, HB_SECTION_ALIGN, size), 0);
    memcpy(copy, blob, size);
    reason = hb_generation_check(copy, size, &limits, &fault);
    assert_int_equal(reason, fault.reason);
    assert_true(reason < HB_REJECT_COUNT);
    if (reason == HB_REJECT_NONE) {
        walk(copy, size);
        adopt(copy);
    } else {
        assert_true(fault.text[0] != '\0');
    }
    free(copy);
    return reason;
}

#ifndef HB_LIBFUZZER
static void undamaged_is_accepted(void **state)
{
    struct blob blob;

    (void)state;
    fill(&blob);
    assert_int_equal(check_copy(&blob, sizeof(blob)), HB_REJECT_NONE);
}

static void every_truncation_is_refused(void **state)
{
    /* Behind the last slot there is only padding, which may be missing. */
    const uint64_t used = offsetof(struct blob, slots[TABLES - 1][SLOTS]);
    struct blob blob;

    (void)state;
    for (uint64_t size = 0; size < used; size += size < sizeof(blob.header) ? 1 : 8) {
        fill(&blob);
        assert_int_not_equal(check_copy(&blob, size), HB_REJECT_NONE);
        blob.header.total_size = size;
        seal((uint8_t *)&blob, size);
        assert_int_not_equal(check_copy(&blob, size), HB_REJECT_NONE);
    }
}

static void damage_is_refused_or_harmless(void **state)
{
    uint64_t rounds = fuzz_setting("HB_FUZZ_ROUNDS", 200000);
    uint64_t seen[HB_REJECT_COUNT] = {0};
    uint32_t reasons = 0;

    (void)state;
    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t random = fuzz_setting("HB_FUZZ_SEED", 1) * rounds + round;
        struct blob blob;

        fill(&blob);
        fuzz_damage(&random, (uint8_t *)&blob, sizeof(blob));
        if (fuzz_below(&random, 4) == 0)
            for (uint32_t i = 0; i < TABLES; i++)
                digest(&blob.tables[i], blob.slots[i]);
        if (fuzz_below(&random, 16) != 0)
            seal((uint8_t *)&blob, sizeof(blob));
        seen[check_copy(&blob, sizeof(blob))]++;
    }
    for (uint32_t i = 0; i < HB_REJECT_COUNT; i++)
        reasons += seen[i] > 0;
    print_message("%llu rounds reached %u of %u reasons\n", (unsigned long long)rounds, reasons,
                  (unsigned)HB_REJECT_COUNT);
    /* All but NO_FD, SEALS and NO_MEMORY can be reached from here; fewer would mean that the damage
     * stops at the door. */
    assert_true(rounds < 100000 || reasons >= 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(undamaged_is_accepted),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(damage_is_refused_or_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else

/* The input: what to do at the end, then bytes to change, each as offset and value. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct script script = {data, size};
    uint8_t how = take8(&script);
    struct blob blob;

    fill(&blob);
    while (script.left >= 3) {
        uint32_t at = take16(&script) % sizeof(blob);

        ((uint8_t *)&blob)[at] = take8(&script);
    }
    for (uint32_t i = 0; i < TABLES && (how & 1) == 0; i++)
        digest(&blob.tables[i], blob.slots[i]);
    if ((how & 2) == 0)
        seal((uint8_t *)&blob, sizeof(blob));
    check_copy(&blob, (how & 4) == 0 ? sizeof(blob) : sizeof(blob) / 2);
    return 0;
}

/* The blob as it is, in each way to end it, and with each of its words changed: a section that the
 * checks never let past says nothing about what is behind it. */
void fuzz_seeds(void)
{
    for (uint8_t how = 0; how < 8; how++)
        save_seed(&(struct seed){.bytes = {how}, .size = 1});
    for (uint32_t at = 0; at < sizeof(struct blob); at += 4) {
        struct seed seed = {.bytes = {0}, .size = 1};

        put16(&seed, at);
        put8(&seed, 1 + at / 4 % 7);
        save_seed(&seed);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return fuzz_begin(0);
}
#endif
