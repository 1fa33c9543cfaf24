/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions that a dataplane of another build, or a broken one, may hand over; and sums over workers.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "halbach/counters.h"
#include "halbach/generation.h"
#include "publisher.h"
#include "publisher_regions.h"

#define BLOCK                                                                                      \
    (sizeof(struct hb_worker_counters) + 8 * sizeof(struct hb_backend_counters) +                  \
     4 * (sizeof(struct hb_service_counters) + sizeof(struct hb_quic_counters)))
#define SIZE (sizeof(struct hb_counters_header) + 2 * BLOCK)

static struct hb_counters_header good_header(void)
{
    return (struct hb_counters_header){
        .magic = HB_COUNTERS_MAGIC,
        .version = HB_COUNTERS_VERSION,
        .header_size = sizeof(struct hb_counters_header),
        .total_size = SIZE,
        .instance = 9,
        .workers = 2,
        .services_max = 4,
        .backends_max = 8,
        .drop_reasons = HB_DROP_COUNT,
        .worker_offset = sizeof(struct hb_counters_header),
        .worker_stride = BLOCK,
    };
}

static int make_memfd(const void *data, size_t data_size, size_t size, int seals)
{
    int fd = memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, data_size), data_size);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

/* Maps a region with this header; NULL words: it must be fine. */
static void try_counters(const struct hb_counters_header *header, size_t size, int seals,
                         const char *words)
{
    struct hb_region region = {0};
    char why[256] = "";
    int fd = make_memfd(header, sizeof(*header), size, seals);
    int error = hb_region_map_counters(fd, 9, &region, why, sizeof(why));

    close(fd);
    if (words) {
        assert_int_equal(error, -EPROTO);
        assert_null(region.data);
        if (!strstr(why, words))
            fail_msg("\"%s\" does not say \"%s\"", why, words);
    } else {
        assert_int_equal(error, 0);
        assert_int_equal(region.size, size);
        hb_region_unmap(&region);
    }
}

static void test_counters_that_fit(void **state)
{
    struct hb_counters_header header = good_header();

    (void)state;
    try_counters(&header, SIZE, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE, NULL);
    try_counters(&header, SIZE + 4096, F_SEAL_SHRINK, NULL); /* whole huge pages, say */
    header.worker_stride += 64; /* a later build may append fields to a block */
    try_counters(&header, SIZE + 128, F_SEAL_SHRINK, "too small for its 2 workers");
    header.total_size += 128;
    try_counters(&header, SIZE + 128, F_SEAL_SHRINK, NULL);
    header = good_header();
    header.workers = 0;
    try_counters(&header, SIZE, F_SEAL_SHRINK, NULL);
}

static void test_counters_that_do_not_fit(void **state)
{
    /* Each row spoils one field of a good header. */
    static const struct {
        size_t offset, width;
        uint64_t value;
        const char *words;
    } rows[] = {
#define FIELD(name)                                                                                \
    offsetof(struct hb_counters_header, name), sizeof(((struct hb_counters_header *)0)->name)
        {FIELD(magic), 1, "magic number"},
        {FIELD(version), 5, "version 5, this control reads version 4"},
        {FIELD(instance), 8, "another instance"},
        {FIELD(total_size), SIZE + 1, "it says"},
        {FIELD(total_size), UINT64_MAX, "it says"},
        {FIELD(total_size), SIZE - 1, "too small for its 2 workers"},
        {FIELD(total_size), 0, "bad offset"},
        {FIELD(header_size), 64, "bad offset"},
        {FIELD(header_size), 4096, "bad offset"},
        {FIELD(workers), 3, "too small for its 3 workers"},
        {FIELD(workers), HB_WORKERS_MAX + 1, "129 workers"},
        {FIELD(workers), UINT32_MAX, "workers"},
        {FIELD(services_max), 5, "it needs"},
        {FIELD(services_max), UINT32_MAX, "services"},
        {FIELD(backends_max), 9, "it needs"},
        {FIELD(backends_max), UINT32_MAX, "backends"},
        {FIELD(drop_reasons), HB_DROPS_MAX + 1, "65 drop reasons"},
        {FIELD(talkers_max), HB_TALKERS_MAX + 1, "129 talkers"},
        {FIELD(nat_max), HB_BACKENDS_MAX + 2, "backends of NAT"},
        {FIELD(talkers_max), 1, "it needs"},
        {FIELD(worker_offset), 0, "bad offset"},
        {FIELD(worker_offset), 132, "bad offset"},
        {FIELD(worker_offset), SIZE + 8, "bad offset"},
        {FIELD(worker_offset), UINT64_MAX - 7, "bad offset"},
        {FIELD(worker_offset), SIZE, "too small"},
        {FIELD(worker_stride), 0, "it needs"},
        {FIELD(worker_stride), BLOCK + 4, "bytes"},
        {FIELD(worker_stride), UINT64_MAX - 7, "too small"},
        {FIELD(worker_stride), UINT64_C(1) << 63, "too small"},
#undef FIELD
    };
    struct hb_counters_header header;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        header = good_header();
        memcpy((uint8_t *)&header + rows[i].offset, &rows[i].value, rows[i].width);
        try_counters(&header, SIZE, F_SEAL_SHRINK, rows[i].words);
    }
    header = good_header();
    try_counters(&header, SIZE, F_SEAL_GROW, "seals"); /* could shrink under control: SIGBUS */
    try_counters(&header, sizeof(header) - 1, F_SEAL_SHRINK, "shorter than its own header");
    try_counters(&header, 0, F_SEAL_SHRINK, "shorter than its own header");
}

static void test_descriptors_that_are_no_memfd(void **state)
{
    struct hb_region region = {0};
    char why[256];
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(hb_region_map_counters(ends[0], 9, &region, why, sizeof(why)), -EPROTO);
    assert_int_equal(hb_region_map_generation(ends[0], 1, &region, why, sizeof(why)), -EPROTO);
    assert_non_null(strstr(why, "not a memfd"));
    close(ends[0]);
    close(ends[1]);
}

static void try_generation(const struct hb_generation_header *header, size_t size, int seals,
                           const char *words)
{
    struct hb_region region = {0};
    char why[256] = "";
    int fd = make_memfd(header, sizeof(*header), size, seals);
    int error = hb_region_map_generation(fd, 3, &region, why, sizeof(why));

    close(fd);
    if (words) {
        assert_int_equal(error, -EPROTO);
        assert_non_null(strstr(why, words));
    } else {
        assert_int_equal(error, 0);
        assert_memory_equal(region.data, header, sizeof(*header));
        hb_region_unmap(&region);
    }
}

static void test_generations(void **state)
{
    const struct hb_generation_header good = {
        .magic = HB_GENERATION_MAGIC,
        .version = HB_GENERATION_VERSION,
        .header_size = sizeof(good),
        .total_size = sizeof(good) + 64,
        .number = 3,
    };
    struct hb_generation_header header = good;

    (void)state;
    try_generation(&good, sizeof(good) + 64, F_SEAL_WRITE | F_SEAL_SHRINK, NULL);
    try_generation(&good, sizeof(good) + 64, F_SEAL_SHRINK, "seals");
    try_generation(&good, sizeof(good) + 64, F_SEAL_WRITE, "seals");
    try_generation(&good, sizeof(good) + 65, F_SEAL_WRITE | F_SEAL_SHRINK, "it says");
    try_generation(&good, sizeof(good) - 1, F_SEAL_WRITE | F_SEAL_SHRINK, "shorter");
    header.magic++;
    try_generation(&header, sizeof(good) + 64, F_SEAL_WRITE | F_SEAL_SHRINK, "magic");
    header = good;
    header.version = 7;
    try_generation(&header, sizeof(good) + 64, F_SEAL_WRITE | F_SEAL_SHRINK, "version 7");
    header = good;
    header.number = 4;
    try_generation(&header, sizeof(good) + 64, F_SEAL_WRITE | F_SEAL_SHRINK, "number 4");
}

static void test_seal_makes_what_it_accepts(void **state)
{
    struct hb_generation_header header = {
        .magic = HB_GENERATION_MAGIC,
        .version = HB_GENERATION_VERSION,
        .header_size = sizeof(header),
        .total_size = sizeof(header),
        .number = 3,
    };
    struct hb_region region = {0};
    char why[256];
    int fd = hb_region_seal(&header, sizeof(header));

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(hb_region_map_generation(fd, 3, &region, why, sizeof(why)), 0);
    hb_region_unmap(&region);
    close(fd);
}

/* BL-111: sums of 64-bit counters at the edges of smaller types. */
static void test_sums_over_workers(void **state)
{
    _Alignas(64) static uint8_t memory[SIZE];
    struct hb_counters_header *region = (void *)memory;
    struct hb_worker_counters *worker;
    struct hb_service_counters *service;
    struct hb_backend_counters *backend;
    uint32_t i;

    (void)state;
    *region = good_header();
    for (i = 0; i < 2; i++) {
        worker = (void *)(uintptr_t)hb_counters_worker(region, i);
        service = (void *)(uintptr_t)hb_counters_services(region, i);
        backend = (void *)(uintptr_t)hb_counters_backends(region, i);
        worker->lcore = i + 1;
        worker->generation_number = 8 - i;
        worker->rx_packets = UINT64_C(0xffffffff) + i;
        worker->tx_packets = i ? UINT64_C(1) << 63 : (UINT64_C(1) << 63) - 1;
        worker->drops[HB_DROPS_MAX - 1] = UINT64_C(0x7fffffff) + i;
        service[3].bytes = (UINT64_C(1) << 53) + i;
        backend[7].flows = 1 + i;
    }
    assert_true(hb_counters_total(region).rx_packets == UINT64_C(0x1ffffffff));
    assert_true(hb_counters_total(region).tx_packets == UINT64_MAX);
    assert_true(hb_counters_total(region).drops[HB_DROPS_MAX - 1] == UINT64_C(0xffffffff));
    assert_true(hb_counters_total(region).generation_number == 7);
    assert_true(hb_counters_total(region).lcore == 0);
    assert_true(hb_counters_service_total(region, 3).bytes == (UINT64_C(1) << 54) + 1);
    assert_true(hb_counters_backend_total(region, 7).flows == 3);
    for (i = 0; i < 2; i++)
        ((struct hb_quic_counters *)(uintptr_t)hb_counters_quic(region, i))[3]
            .packets[HB_QUIC_BACKEND_DOWN] = UINT64_C(0xffffffff) + i;
    assert_true(hb_counters_quic_total(region, 3).packets[HB_QUIC_BACKEND_DOWN] ==
                UINT64_C(0x1ffffffff));
    assert_true(hb_counters_quic_total(region, 4).packets[HB_QUIC_BACKEND_DOWN] == 0);
    assert_true(hb_counters_backend_total(region, 8).flows == 0);
    assert_true(hb_counters_service_total(region, 4).bytes == 0);
    assert_true(hb_counters_total(NULL).rx_packets == 0);
    assert_true(hb_counters_service_total(NULL, 0).bytes == 0);
    assert_true(hb_counters_backend_total(NULL, 0).flows == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters_that_fit),
        cmocka_unit_test(test_counters_that_do_not_fit),
        cmocka_unit_test(test_descriptors_that_are_no_memfd),
        cmocka_unit_test(test_generations),
        cmocka_unit_test(test_seal_makes_what_it_accepts),
        cmocka_unit_test(test_sums_over_workers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
