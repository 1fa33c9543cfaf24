/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters region: its layout, who may write it, and the sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "counters.h"

static void the_header_describes_the_region(void **state)
{
    struct hb_counters counters;
    const struct hb_counters_header *region;
    struct stat about;

    (void)state;
    assert_int_equal(hb_counters_create(&counters, 3, 77), 0);
    region = counters.region;
    assert_int_equal(region->magic, HB_COUNTERS_MAGIC);
    assert_int_equal(region->version, HB_COUNTERS_VERSION);
    assert_int_equal(region->instance, 77);
    assert_int_equal(region->workers, 3);
    assert_int_equal(region->backends_max, HB_BACKENDS_MAX + 1);
    assert_int_equal(fstat(counters.fd, &about), 0);
    assert_int_equal(region->total_size, about.st_size);
    /* The last counter of the last worker lies inside. */
    assert_true((const uint8_t *)(hb_counters_quic(region, 2) + region->services_max) <=
                (const uint8_t *)region + region->total_size);
    assert_true((const void *)(hb_counters_quic(region, 0) + region->services_max) <=
                (const void *)hb_counters_worker(region, 1));
    hb_counters_destroy(&counters);
    assert_int_equal(counters.fd, -1);
}

static void others_may_only_read_it(void **state)
{
    struct hb_counters counters;
    uint64_t *view;

    (void)state;
    assert_int_equal(hb_counters_create(&counters, 1, 1), 0);
    assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, counters.fd, 0),
                     MAP_FAILED);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(counters.fd, 0), -1);
    assert_int_equal(ftruncate(counters.fd, 1 << 30), -1);
    assert_int_equal(write(counters.fd, "x", 1), -1);
    view = mmap(NULL, 4096, PROT_READ, MAP_SHARED, counters.fd, 0);
    assert_ptr_not_equal(view, MAP_FAILED);
    assert_int_equal(view[0], HB_COUNTERS_MAGIC);
    munmap(view, 4096);
    hb_counters_destroy(&counters);
}

static void sums_are_over_all_workers(void **state)
{
    struct hb_counters counters;
    struct hb_worker_counters sum;

    (void)state;
    assert_int_equal(hb_counters_create(&counters, 3, 1), 0);
    for (uint32_t i = 0; i < 3; i++) {
        struct hb_worker_counters *worker =
            (void *)(uintptr_t)hb_counters_worker(counters.region, i);

        worker->rx_packets = UINT64_C(1) << 40;
        worker->drops[HB_DROPS_MAX - 1] = i + 1;
    }
    sum = hb_counters_sum(counters.region);
    assert_int_equal(sum.rx_packets, UINT64_C(3) << 40);
    assert_int_equal(sum.drops[HB_DROPS_MAX - 1], 6);
    hb_counters_destroy(&counters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_header_describes_the_region),
        cmocka_unit_test(others_may_only_read_it),
        cmocka_unit_test(sums_are_over_all_workers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
