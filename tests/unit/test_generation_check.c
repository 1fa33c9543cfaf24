/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every check of a generation: a valid blob passes, then one thing is wrong at a time and the
 * reason, the record and the offset must name it. At the end random damage behind a right checksum:
 * whatever is accepted must be safe to use.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "blob.h"
#include "generation_check.h"

#define ALL_SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static struct hb_generation_limits limits = {
    .services_max = HB_SERVICES_MAX,
    .backends_max = HB_BACKENDS_MAX + 1,
    .ports = {0, 3},
    .ports_count = 2,
};

/* A blob under test, with pointers into its sections. */
struct subject {
    uint8_t *blob;
    size_t size;
    struct hb_generation_header *header;
    struct hb_service_record *services;
    struct hb_pool_record *pools;
    struct hb_backend_record *backends;
    struct hb_table_record *tables;
};

static struct subject build(const struct blob_plan *plan)
{
    struct subject s;

    s.blob = blob_build(plan, &s.size);
    s.header = (void *)s.blob;
    s.services = (void *)(s.blob + s.header->services.offset);
    s.pools = (void *)(s.blob + s.header->pools.offset);
    s.backends = (void *)(s.blob + s.header->backends.offset);
    s.tables = (void *)(s.blob + s.header->tables.offset);
    return s;
}

static struct hb_section *section_of(const struct subject *s, uint32_t index)
{
    struct hb_section *const sections[] = {&s->header->services, &s->header->pools,
                                           &s->header->backends, &s->header->tables};

    return sections[index];
}

static struct subject build_example(void)
{
    struct blob_plan plan = blob_example();

    return build(&plan);
}

static uint16_t *slots_of(const struct subject *s, uint32_t table)
{
    return (void *)(s->blob + s->tables[table].offset);
}

static void repair_digest(const struct subject *s, uint32_t table)
{
    blob_digest(slots_of(s, table), s->tables[table].slots, s->tables[table].digest);
}

static enum hb_reject check(struct subject *s, struct hb_generation_fault *fault)
{
    blob_repair_checksum(s->blob, s->size);
    return hb_generation_check(s->blob, s->size, &limits, fault);
}

/* The checksum is made right, then the blob must be refused for `reason` with its record, the
 * offset of `field` (NULL: any) and a text that has `words` in it. */
static void expect(struct subject *s, enum hb_reject reason, uint32_t record, const void *field,
                   const char *words)
{
    struct hb_generation_fault fault;

    if (check(s, &fault) != reason)
        fail_msg("%s (%s) instead of %s", hb_reject_text(fault.reason), fault.text,
                 hb_reject_text(reason));
    assert_int_equal(fault.reason, reason);
    assert_int_equal(fault.record, record);
    if (field != NULL)
        assert_int_equal(fault.offset, (const uint8_t *)field - s->blob);
    if (strstr(fault.text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", fault.text, words);
    free(s->blob);
}

static void a_valid_generation_passes(void **state)
{
    struct subject s = build_example();
    struct hb_generation_fault fault;

    (void)state;
    assert_int_equal(check(&s, &fault), HB_REJECT_NONE);
    assert_int_equal(fault.reason, HB_REJECT_NONE);
    free(s.blob);
}

static void an_empty_generation_passes(void **state)
{
    struct blob_plan plan = {.number = 1};
    struct subject s = build(&plan);
    struct hb_generation_fault fault;

    (void)state;
    assert_int_equal(check(&s, &fault), HB_REJECT_NONE);
    free(s.blob);
}

static void a_cut_blob_is_refused_at_every_length(void **state)
{
    struct subject s = build_example();
    struct hb_generation_fault fault;

    (void)state;
    for (size_t size = 0; size < s.size; size++) {
        /* Exactly so many bytes, so that a sanitizer sees a read behind them. */
        void *exact = NULL;
        uint8_t *cut;

        assert_int_equal(posix_memalign(&exact, 64, size + (size == 0)), 0);
        cut = exact;
        memcpy(cut, s.blob, size);
        assert_int_equal(hb_generation_check(cut, size, &limits, &fault), HB_REJECT_SIZE);
        if (size >= sizeof(*s.header)) { /* a header that tells the truth about a cut blob */
            ((struct hb_generation_header *)cut)->total_size = size;
            blob_repair_checksum(cut, size);
            assert_int_not_equal(hb_generation_check(cut, size, &limits, &fault), HB_REJECT_NONE);
        }
        free(cut);
    }
    free(s.blob);
}

static void a_longer_blob_is_refused(void **state)
{
    struct subject s = build_example();

    (void)state;
    s.header->total_size++;
    expect(&s, HB_REJECT_SIZE, 0, &s.header->total_size, "the header says");
}

static void a_wrong_header_is_refused(void **state)
{
    struct subject s;

    (void)state;
    s = build_example(), s.header->magic ^= 1;
    expect(&s, HB_REJECT_MAGIC, 0, &s.header->magic, "not a generation");
    s = build_example(), s.header->magic = __builtin_bswap64(s.header->magic);
    expect(&s, HB_REJECT_MAGIC, 0, &s.header->magic, "byte order");
    s = build_example(), s.header->version = HB_GENERATION_VERSION + 1;
    expect(&s, HB_REJECT_VERSION, 0, &s.header->version, "format 4, this dataplane reads 3");
    s = build_example(), s.header->header_size = 200;
    expect(&s, HB_REJECT_VERSION, 0, &s.header->header_size, "200");
    s = build_example(), s.header->flags = 1;
    expect(&s, HB_REJECT_VERSION, 0, &s.header->flags, "flags");
    s = build_example(), s.header->number = 0;
    expect(&s, HB_REJECT_VERSION, 0, &s.header->number, "number 0");
    s = build_example(), s.header->reserved[0] = 1;
    expect(&s, HB_REJECT_VERSION, 0, s.header->reserved, "reserved");
}

static void a_wrong_checksum_is_refused_whatever_byte_changed(void **state)
{
    struct subject s = build_example();
    struct hb_generation_fault fault;

    (void)state;
    for (size_t at = offsetof(struct hb_generation_header, checksum); at < s.size; at += 7) {
        s.blob[at] ^= 0x10;
        assert_int_not_equal(hb_generation_check(s.blob, s.size, &limits, &fault), HB_REJECT_NONE);
        if (at >= sizeof(*s.header)) {
            assert_int_equal(fault.reason, HB_REJECT_CHECKSUM);
            assert_int_equal(fault.offset, offsetof(struct hb_generation_header, checksum));
        }
        s.blob[at] ^= 0x10;
    }
    free(s.blob);
}

static void a_wrong_section_is_refused(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        static const uint64_t offsets[] = {0, 64, 1, 193, UINT64_MAX, UINT64_MAX - 63, 1u << 31};
        struct subject s;

        for (size_t k = 0; k < sizeof(offsets) / sizeof(offsets[0]); k++) {
            s = build_example();
            section_of(&s, i)->offset = offsets[k];
            expect(&s, HB_REJECT_SECTION, i, &section_of(&s, i)->offset, "section");
        }
        s = build_example(), section_of(&s, i)->offset += 32;
        expect(&s, HB_REJECT_SECTION, i, &section_of(&s, i)->offset, "misaligned");
        s = build_example(), section_of(&s, i)->count = UINT32_MAX;
        expect(&s, HB_REJECT_SECTION, i, &section_of(&s, i)->count, "at most");
        s = build_example(), section_of(&s, i)->count = 4000;
        expect(&s, HB_REJECT_SECTION, i, &section_of(&s, i)->offset, "outside");
        s = build_example(), section_of(&s, i)->record_size += 64;
        expect(&s, HB_REJECT_SECTION, i, &section_of(&s, i)->record_size, "records of");
        s = build_example(), section_of(&s, i)->record_size = 0;
        expect(&s, HB_REJECT_SECTION, i, &section_of(&s, i)->record_size, "records of");
        s = build_example(), section_of(&s, i)->offset = s.size & ~(size_t)63;
        expect(&s, HB_REJECT_SECTION, i, &section_of(&s, i)->offset, "outside");
    }
}

static void overlapping_sections_are_refused(void **state)
{
    struct subject s;

    (void)state;
    s = build_example(), s.header->pools.offset = s.header->services.offset;
    expect(&s, HB_REJECT_SECTION, 1, &s.header->pools.offset, "overlaps section services");
    s = build_example(), s.header->tables.offset = s.header->backends.offset + 64;
    expect(&s, HB_REJECT_SECTION, 3, &s.header->tables.offset, "overlaps section backends");
}

static void bad_names_are_refused(void **state)
{
    struct subject s;

    (void)state;
    s = build_example(), memset(s.services[1].name, 0, HB_NAME_SIZE);
    expect(&s, HB_REJECT_NAME, 1, s.services[1].name, "service 1");
    s = build_example(), memset(s.pools[0].name, 'x', HB_NAME_SIZE);
    expect(&s, HB_REJECT_NAME, 0, s.pools[0].name, "pool 0");
    s = build_example(), s.backends[3].name[HB_NAME_SIZE - 1] = 'x';
    expect(&s, HB_REJECT_NAME, 3, s.backends[3].name, "backend 3");
    s = build_example(), s.services[0].name[1] = '\n';
    expect(&s, HB_REJECT_NAME, 0, s.services[0].name, "control characters");
}

static void bad_services_are_refused(void **state)
{
    static const uint8_t families[] = {0, 2, 5, 10, 255}, protocols[] = {0, 1, 133, 255};
    struct subject s;

    (void)state;
    for (size_t i = 0; i < sizeof(families); i++) {
        s = build_example(), s.services[0].family = families[i];
        expect(&s, HB_REJECT_SERVICE, 0, &s.services[0].family, "service 0 (www): family");
    }
    for (size_t i = 0; i < sizeof(protocols); i++) {
        s = build_example(), s.services[1].protocol = protocols[i];
        expect(&s, HB_REJECT_SERVICE, 1, &s.services[1].protocol, "service 1 (dns6): protocol");
    }
    s = build_example(), s.services[1].family = HB_FAMILY_IPV4;
    expect(&s, HB_REJECT_SERVICE, 1, s.services[1].address, "not an IPv4 address");
    s = build_example(), memset(s.services[0].address, 0, HB_ADDRESS_SIZE);
    expect(&s, HB_REJECT_SERVICE, 0, s.services[0].address, "not an IPv4 address");
    s = build_example(), s.services[0].port = 0;
    expect(&s, HB_REJECT_SERVICE, 0, &s.services[0].port, "port 0");
    s = build_example(), s.services[1].id = HB_SERVICES_MAX;
    expect(&s, HB_REJECT_SERVICE, 1, &s.services[1].id, "id 4096");
    s = build_example(), s.services[1].id = s.services[0].id;
    expect(&s, HB_REJECT_SERVICE, 1, &s.services[1].id, "follows");
    s = build_example(), s.services[0].tracking = 3;
    expect(&s, HB_REJECT_SERVICE, 0, &s.services[0].tracking, "tracking 3");
    s = build_example(), s.services[0].tracking = 2, s.pools[0].bounded_load = 1;
    expect(&s, HB_REJECT_SERVICE, 0, &s.services[0].tracking, "which needs 0 (all)");
    s = build_example(), s.services[0].reserved[3] = 1;
    expect(&s, HB_REJECT_SERVICE, 0, s.services[0].reserved, "reserved");
}

/* BL-86: every port that there is may be a service's. */
static void all_ports_and_the_largest_ids_pass(void **state)
{
    static const uint16_t ports[] = {1, 255, 256, 32767, 32768, 40000, 65535};
    struct hb_generation_fault fault;

    (void)state;
    for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
        struct blob_plan plan = blob_example();
        struct subject s;

        plan.service[0].port = plan.service[0].port_last = htons(ports[i]);
        plan.service[1].id = HB_SERVICES_MAX - 1;
        plan.backend[3].id = HB_BACKENDS_MAX;
        plan.backend[3].rewrite.port = 3;
        s = build(&plan);
        assert_int_equal(check(&s, &fault), HB_REJECT_NONE);
        free(s.blob);
    }
}

static void duplicate_services_are_refused(void **state)
{
    struct blob_plan plan = blob_example();
    struct subject s;
    struct hb_generation_fault fault;

    (void)state;
    blob_add_service(&plan, "www-udp", "192.0.2.10", HB_PROTOCOL_UDP, 80, 0);
    blob_add_service(&plan, "www-tls", "192.0.2.10", HB_PROTOCOL_TCP, 443, 0);
    /* The same bits in the other family are another address. */
    blob_add_service(&plan, "bits6", "c000:20a::", HB_PROTOCOL_TCP, 80, 0);
    s = build(&plan);
    assert_int_equal(check(&s, &fault), HB_REJECT_NONE);
    free(s.blob);
    blob_add_service(&plan, "again", "192.0.2.10", HB_PROTOCOL_TCP, 80, 0);
    s = build(&plan);
    expect(&s, HB_REJECT_SERVICE_DUPLICATE, 5, s.services[5].address,
           "service 5 (again): has the address, protocol and port of service 0 (www)");
}

static void wrong_pool_indexes_are_refused(void **state)
{
    static const uint32_t indexes[] = {2, 3, 65536, UINT32_MAX};
    struct subject s;

    (void)state;
    for (size_t i = 0; i < sizeof(indexes) / sizeof(indexes[0]); i++) {
        s = build_example(), s.services[1].pool = indexes[i];
        expect(&s, HB_REJECT_POOL_INDEX, 1, &s.services[1].pool, "service 1 (dns6): names pool");
        s = build_example(), s.backends[2].pool = indexes[i];
        expect(&s, HB_REJECT_POOL_INDEX, 2, &s.backends[2].pool, "backend 2 (dns1): names pool");
    }
}

static void bad_settings_are_refused(void **state)
{
    struct subject s;

    (void)state;
    s = build_example(), s.header->settings.echo = HB_ECHOS;
    expect(&s, HB_REJECT_SETTINGS, 0, &s.header->settings.echo, "echo 3");
    s = build_example(), s.header->settings.icmp_source4[0] = 224;
    expect(&s, HB_REJECT_SETTINGS, 0, s.header->settings.icmp_source4, "224.0.0.0");
    s = build_example(), s.header->settings.icmp_source4[0] = 127;
    expect(&s, HB_REJECT_SETTINGS, 0, s.header->settings.icmp_source4, "127.0.0.0");
    s = build_example(), s.header->settings.icmp_source4[3] = 1;
    expect(&s, HB_REJECT_SETTINGS, 0, s.header->settings.icmp_source4, "0.0.0.1");
    s = build_example(), s.header->settings.icmp_source6[0] = 0xff;
    expect(&s, HB_REJECT_SETTINGS, 0, s.header->settings.icmp_source6, "group");
    s = build_example(), s.header->settings.icmp_source6[15] = 1;
    expect(&s, HB_REJECT_SETTINGS, 0, s.header->settings.icmp_source6, "loopback");
    s = build_example(), s.header->settings.to_clients[1].size = 15;
    expect(&s, HB_REJECT_SETTINGS, 1, &s.header->settings.to_clients[1].size, "15 bytes");
    s = build_example(), s.header->settings.reserved64[2] = 1;
    expect(&s, HB_REJECT_SETTINGS, 0, s.header->settings.reserved, "reserved");
}

static void a_bad_mss_is_refused(void **state)
{
    struct subject s;

    (void)state;
    s = build_example(), s.services[0].mss_max = 87;
    expect(&s, HB_REJECT_SERVICE, 0, &s.services[0].mss_max, "MSS 87");
    s = build_example(), s.services[0].protocol = HB_PROTOCOL_UDP, s.services[0].mss_max = 1400;
    expect(&s, HB_REJECT_SERVICE, 0, &s.services[0].mss_max, "MSS 1400");
}

static void bad_backends_are_refused(void **state)
{
    struct subject s;

    (void)state;
    s = build_example(), s.backends[0].id = 0;
    expect(&s, HB_REJECT_BACKEND, 0, &s.backends[0].id, "backend 0 (web1): id 0");
    s = build_example(), s.backends[3].id = HB_BACKENDS_MAX + 1;
    expect(&s, HB_REJECT_BACKEND, 3, &s.backends[3].id, "id 65536");
    s = build_example(), s.backends[2].id = s.backends[1].id;
    expect(&s, HB_REJECT_BACKEND, 2, &s.backends[2].id, "sorted by unique ids");
    s = build_example(), s.backends[1].use = 0;
    expect(&s, HB_REJECT_BACKEND, 1, &s.backends[1].use, "use 0");
    s = build_example(), s.backends[1].use = 5;
    expect(&s, HB_REJECT_BACKEND, 1, &s.backends[1].use, "use 5");
    s = build_example(), s.backends[1].family = 7;
    expect(&s, HB_REJECT_BACKEND, 1, &s.backends[1].family, "family 7");
    s = build_example(), s.backends[0].address[9] = 1;
    expect(&s, HB_REJECT_BACKEND, 0, s.backends[0].address, "not an IPv4 address");
    s = build_example(), s.backends[0].reserved[3] = 1;
    expect(&s, HB_REJECT_BACKEND, 0, s.backends[0].reserved, "reserved");
}

#define EXPECT_REWRITE(index, change, words)                                                       \
    do {                                                                                           \
        struct subject s = build_example();                                                        \
        struct hb_rewrite *rewrite = &s.backends[index].rewrite;                                   \
        uint8_t *ip = rewrite->bytes + 14;                                                         \
        (void)ip;                                                                                  \
        change;                                                                                    \
        expect(&s, HB_REJECT_REWRITE, index, NULL, words);                                         \
    } while (0)

static void bad_rewrites_are_refused(void **state)
{
    (void)state;
    EXPECT_REWRITE(0, rewrite->size = 0, "backend 0 (web1): has no rewrite");
    EXPECT_REWRITE(0, rewrite->size = 33, "33 bytes, must be 34");
    EXPECT_REWRITE(0, rewrite->size = 255, "255 bytes");
    EXPECT_REWRITE(1, rewrite->size = 34, "must be 54");
    EXPECT_REWRITE(0, rewrite->l2_size = 0, "0 bytes of layer 2");
    EXPECT_REWRITE(0, rewrite->l2_size = 200, "200 bytes of layer 2");
    EXPECT_REWRITE(0, (rewrite->l2_size = 18, rewrite->size = 38), "no VLAN tag");
    EXPECT_REWRITE(0, rewrite->family = HB_FAMILY_IPV6, "outer family 6");
    EXPECT_REWRITE(0, rewrite->forwarding = 2, "34 bytes, must be 46 for IPv4");
    EXPECT_REWRITE(0, rewrite->forwarding = 99, "forwarding 99");
    EXPECT_REWRITE(0, rewrite->port = 1, "port 1 is not a port");
    EXPECT_REWRITE(0, rewrite->inner_max = 0, "inner_max 0");
    EXPECT_REWRITE(1, rewrite->inner_max = 65500, "inner_max 65500");
    EXPECT_REWRITE(0, memset(rewrite->bytes, 0, 6), "MAC address is zero");
    EXPECT_REWRITE(0, rewrite->bytes[12] = 0x86, "EtherType 0x8600");
    EXPECT_REWRITE(0, ip[0] = 0x46, "0x46");
    EXPECT_REWRITE(0, ip[3] = 1, "is not zero");
    EXPECT_REWRITE(0, ip[9] = 4, "is not zero");
    EXPECT_REWRITE(0, ip[8] = 0, "TTL");
    EXPECT_REWRITE(0, ip[19] ^= 1, "not addressed");
    EXPECT_REWRITE(1, ip[0] = 0x45, "version 6");
    EXPECT_REWRITE(1, ip[6] = 41, "is not zero");
    EXPECT_REWRITE(1, ip[7] = 0, "hop limit");
    EXPECT_REWRITE(1, ip[39] ^= 1, "not addressed");
}

static void a_down_backend_needs_no_rewrite(void **state)
{
    struct blob_plan plan = blob_example();
    struct hb_generation_fault fault;
    struct subject s;

    (void)state;
    plan.backend[1].use = HB_BACKEND_DOWN;
    memset(&plan.backend[1].rewrite, 0, sizeof(plan.backend[1].rewrite));
    s = build(&plan);
    assert_int_equal(check(&s, &fault), HB_REJECT_NONE);
    slots_of(&s, 0)[5] = 2;
    repair_digest(&s, 0);
    expect(&s, HB_REJECT_SLOT, 0, &slots_of(&s, 0)[5],
           "pool 0 (web): slot 5 of its table 0 names backend id 2, which has no rewrite");
}

static void a_bounded_load_is_accepted(void **state)
{
    struct blob_plan plan = blob_example();
    struct hb_generation_fault fault;
    struct subject s;

    (void)state;
    plan.pool[0].bounded_load = 1;
    plan.pool[1].bounded_load = HB_BOUNDED_LOAD_MAX;
    s = build(&plan);
    assert_int_equal(check(&s, &fault), HB_REJECT_NONE);
    free(s.blob);
}

static void bad_tables_are_refused(void **state)
{
    struct subject s;

    (void)state;
    s = build_example(), s.pools[1].table = 2;
    expect(&s, HB_REJECT_TABLE_INDEX, 1, &s.pools[1].table, "pool 1 (dns): names table 2");
    s = build_example(), s.pools[1].table = UINT32_MAX - 1;
    expect(&s, HB_REJECT_TABLE_INDEX, 1, &s.pools[1].table, "names table");
    s = build_example(), s.pools[1].flags = 2;
    expect(&s, HB_REJECT_TABLE_INDEX, 1, &s.pools[1].flags, "flags");
    s = build_example(), s.pools[1].sources_count = 1;
    expect(&s, HB_REJECT_SOURCE, 1, &s.pools[1].sources_first, "there are 0");
    s = build_example(), s.pools[0].reserved32 = 1;
    expect(&s, HB_REJECT_TABLE_INDEX, 0, &s.pools[0].flags, "reserved");
    s = build_example(), s.pools[0].reserved[2] = 1;
    expect(&s, HB_REJECT_TABLE_INDEX, 0, &s.pools[0].flags, "reserved");
    s = build_example(), s.pools[1].bounded_load = HB_BOUNDED_LOAD_MAX + 1;
    expect(&s, HB_REJECT_TABLE_INDEX, 1, &s.pools[1].bounded_load,
           "pool 1 (dns): bounded_load 10241, must be 0 to 10240");
    s = build_example(), s.tables[0].slots = 6;
    expect(&s, HB_REJECT_TABLE, 0, &s.tables[0].slots, "6 slots");
    s = build_example(), s.tables[0].slots = UINT32_MAX;
    expect(&s, HB_REJECT_TABLE, 0, &s.tables[0].slots, "slots");
    s = build_example(), s.tables[0].slots = HB_TABLE_SLOTS_MAX;
    expect(&s, HB_REJECT_TABLE, 0, &s.tables[0].offset, "outside");
    s = build_example(), s.tables[0].flags = 2;
    expect(&s, HB_REJECT_TABLE, 0, &s.tables[0].flags, "flags");
    s = build_example(), s.tables[1].offset += 2;
    expect(&s, HB_REJECT_TABLE, 1, &s.tables[1].offset, "misaligned");
    s = build_example(), s.tables[1].offset = UINT64_MAX - 63;
    expect(&s, HB_REJECT_TABLE, 1, &s.tables[1].offset, "outside");
    s = build_example(), s.tables[1].offset = s.tables[0].offset;
    expect(&s, HB_REJECT_TABLE, 1, NULL, "overlap");
    s = build_example(), s.tables[1].offset = s.header->backends.offset;
    expect(&s, HB_REJECT_TABLE, 1, NULL, "overlap");
    s = build_example(), s.tables[1].digest[15] ^= 1;
    expect(&s, HB_REJECT_TABLE_DIGEST, 1, s.tables[1].digest, "table 1");
    s = build_example(), slots_of(&s, 1)[6] ^= 1;
    expect(&s, HB_REJECT_TABLE_DIGEST, 1, s.tables[1].digest, "table 1");
}

static void bad_slots_are_refused(void **state)
{
    static const struct {
        uint16_t id;
        const char *words;
    } rows[] = {{0, "no backend"},
                {5, "not in this generation"},
                {65535, "not in this generation"},
                {3, "another pool"}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (uint32_t slot = 0; slot < 13; slot += 6) {
            struct subject s = build_example();

            slots_of(&s, 0)[slot] = rows[i].id;
            repair_digest(&s, 0);
            expect(&s, HB_REJECT_SLOT, 0, &slots_of(&s, 0)[slot], rows[i].words);
        }
}

/* A table that the dataplane holds already. */
struct held {
    uint8_t digest[HB_DIGEST_SIZE];
    uint16_t owner[13];
    struct hb_held_table table;
};

static bool find_held(void *context, const uint8_t digest[HB_DIGEST_SIZE],
                      struct hb_held_table *table)
{
    struct held *held = context;

    if (memcmp(held->digest, digest, HB_DIGEST_SIZE) != 0)
        return false;
    *table = held->table;
    return true;
}

static void a_table_that_is_held_need_not_be_carried(void **state)
{
    static const uint16_t good[] = {1, 2}, bad[] = {1, 2, 4};
    struct blob_plan plan = blob_example();
    struct hb_generation_limits with_held = limits;
    struct hb_generation_fault fault;
    struct held held = {.table = {.slots = 13}};
    struct subject s;

    (void)state;
    plan.pool[0].leave_out_body = 1;
    s = build(&plan);
    for (uint16_t i = 0; i < 13; i++)
        held.owner[i] = i % 2 + 1;
    blob_digest(held.owner, 13, held.digest);
    held.table.column.owner = held.owner;
    with_held.find_table = find_held;
    with_held.context = &held;
    assert_int_equal(hb_generation_check(s.blob, s.size, &with_held, &fault), HB_REJECT_NONE);
    held.table.ids = good, held.table.ids_count = 2;
    assert_int_equal(hb_generation_check(s.blob, s.size, &with_held, &fault), HB_REJECT_NONE);
    held.table.ids = bad, held.table.ids_count = 3;
    assert_int_equal(hb_generation_check(s.blob, s.size, &with_held, &fault), HB_REJECT_SLOT);
    assert_non_null(strstr(fault.text, "id 4, which belongs to another pool"));
    held.table.slots = 7;
    assert_int_equal(hb_generation_check(s.blob, s.size, &with_held, &fault),
                     HB_REJECT_TABLE_UNKNOWN);
    assert_int_equal(hb_generation_check(s.blob, s.size, &limits, &fault), HB_REJECT_TABLE_UNKNOWN);
    assert_int_equal(fault.record, 0);
    assert_non_null(strstr(fault.text, "publish the generation again with all tables"));
    free(s.blob);
}

static void seals_are_checked(void **state)
{
    static const int seals[] = {F_SEAL_WRITE, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL};
    static const char *const words[] = {"writing", "shrinking", "growing", "new seals"};
    struct subject s = build_example();
    struct hb_generation_fault fault;
    uint64_t size;
    int fd = blob_sealed_memfd(s.blob, s.size);

    (void)state;
    assert_int_equal(hb_generation_check_fd(fd, &size, &fault), HB_REJECT_NONE);
    assert_int_equal(size, s.size);
    close(fd);
    for (size_t i = 0; i < sizeof(seals) / sizeof(seals[0]); i++) {
        fd = blob_memfd(s.blob, s.size, ALL_SEALS & ~seals[i]);
        assert_int_equal(hb_generation_check_fd(fd, &size, &fault), HB_REJECT_SEALS);
        assert_non_null(strstr(fault.text, words[i]));
        close(fd);
    }
    fd = blob_memfd(s.blob, s.size, 0);
    assert_int_equal(hb_generation_check_fd(fd, &size, &fault), HB_REJECT_SEALS);
    close(fd);
    assert_int_equal(hb_generation_check_fd(-1, &size, &fault), HB_REJECT_NO_FD);
    free(s.blob);
}

static void other_files_are_no_generations(void **state)
{
    struct hb_generation_fault fault;
    uint64_t size;
    int pipes[2], fd;
    FILE *file = tmpfile();

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(hb_generation_check_fd(pipes[0], &size, &fault), HB_REJECT_SEALS);
    close(pipes[0]);
    close(pipes[1]);
    assert_non_null(file);
    assert_int_not_equal(hb_generation_check_fd(fileno(file), &size, &fault), HB_REJECT_NONE);
    fclose(file);
    fd = open("/dev/null", O_RDONLY);
    assert_int_equal(hb_generation_check_fd(fd, &size, &fault), HB_REJECT_SEALS);
    close(fd);
    fd = blob_sealed_memfd("short", 5);
    assert_int_equal(hb_generation_check_fd(fd, &size, &fault), HB_REJECT_SIZE);
    close(fd);
}

static uint64_t random_state = 0x5eed;

static uint32_t random32(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

/* Uses an accepted blob as the dataplane does, with assertions at every index. */
static void walk(const struct subject *s)
{
    const struct hb_generation_header *h = s->header;
    const struct hb_service_record *services = (void *)(s->blob + h->services.offset);
    const struct hb_pool_record *pools = (void *)(s->blob + h->pools.offset);
    const struct hb_backend_record *backends = (void *)(s->blob + h->backends.offset);
    const struct hb_table_record *tables = (void *)(s->blob + h->tables.offset);

    for (uint32_t i = 0; i < h->services.count; i++) {
        assert_true(services[i].pool < h->pools.count && services[i].id < limits.services_max);
        assert_true(strnlen(services[i].name, HB_NAME_SIZE) < HB_NAME_SIZE);
    }
    for (uint32_t i = 0; i < h->backends.count; i++) {
        assert_true(backends[i].id > 0 && backends[i].id <= HB_BACKENDS_MAX);
        assert_true(backends[i].pool < h->pools.count);
        assert_true(backends[i].rewrite.size <= HB_REWRITE_BYTES);
    }
    for (uint32_t i = 0; i < h->pools.count; i++) {
        const struct hb_table_record *table = &tables[pools[i].table];

        if (pools[i].table == HB_POOL_NO_TABLE)
            continue;
        assert_true(pools[i].table < h->tables.count);
        for (uint32_t slot = 0; slot < table->slots; slot++) {
            uint16_t id = ((const uint16_t *)(s->blob + table->offset))[slot];
            uint32_t k = 0;

            while (k < h->backends.count && backends[k].id != id)
                k++;
            assert_true(k < h->backends.count && backends[k].pool == i);
            assert_true(backends[k].rewrite.size > 0);
        }
    }
}

static void random_damage_is_refused_or_harmless(void **state)
{
    struct subject s = build_example();
    uint8_t *good = malloc(s.size);
    uint32_t accepted = 0;

    (void)state;
    memcpy(good, s.blob, s.size);
    for (uint32_t round = 0; round < 20000; round++) {
        struct hb_generation_fault fault;

        memcpy(s.blob, good, s.size);
        for (uint32_t flips = 1 + random32() % 3; flips > 0; flips--)
            s.blob[random32() % s.size] ^= (uint8_t)(1u << random32() % 8);
        if (round % 2 == 0)
            for (uint32_t table = 0; table < 2; table++)
                if (s.tables[table].offset < s.size && s.tables[table].slots < 64 &&
                    s.tables[table].offset + 128 < s.size && s.tables[table].offset % 2 == 0)
                    repair_digest(&s, table);
        if (check(&s, &fault) != HB_REJECT_NONE) {
            assert_true(fault.text[0] != '\0' && fault.offset < s.size + 64);
            continue;
        }
        accepted++;
        walk(&s);
    }
    assert_true(accepted > 0); /* flips in gaps, weights and MAC addresses do no harm */
    free(good);
    free(s.blob);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_valid_generation_passes),
        cmocka_unit_test(an_empty_generation_passes),
        cmocka_unit_test(a_cut_blob_is_refused_at_every_length),
        cmocka_unit_test(a_longer_blob_is_refused),
        cmocka_unit_test(a_wrong_header_is_refused),
        cmocka_unit_test(a_wrong_checksum_is_refused_whatever_byte_changed),
        cmocka_unit_test(a_wrong_section_is_refused),
        cmocka_unit_test(overlapping_sections_are_refused),
        cmocka_unit_test(bad_names_are_refused),
        cmocka_unit_test(bad_services_are_refused),
        cmocka_unit_test(all_ports_and_the_largest_ids_pass),
        cmocka_unit_test(duplicate_services_are_refused),
        cmocka_unit_test(wrong_pool_indexes_are_refused),
        cmocka_unit_test(bad_settings_are_refused),
        cmocka_unit_test(a_bad_mss_is_refused),
        cmocka_unit_test(bad_backends_are_refused),
        cmocka_unit_test(bad_rewrites_are_refused),
        cmocka_unit_test(a_down_backend_needs_no_rewrite),
        cmocka_unit_test(a_bounded_load_is_accepted),
        cmocka_unit_test(bad_tables_are_refused),
        cmocka_unit_test(bad_slots_are_refused),
        cmocka_unit_test(a_table_that_is_held_need_not_be_carried),
        cmocka_unit_test(seals_are_checked),
        cmocka_unit_test(other_files_are_no_generations),
        cmocka_unit_test(random_damage_is_refused_or_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
