/* SPDX-License-Identifier: BSD-3-Clause */
/* See counters.h. */
#include "counters.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

/* A worker's block starts on a page of its own, so that it lies on the NUMA node of the worker, who
 * touches it first. */
#define BLOCK_ALIGN 4096

static uint64_t align_block(uint64_t bytes)
{
    return (bytes + BLOCK_ALIGN - 1) & ~(uint64_t)(BLOCK_ALIGN - 1);
}

static uint64_t read_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int hb_counters_create(struct hb_counters *counters, uint32_t workers, uint64_t instance)
{
    const uint32_t backends_max = HB_BACKENDS_MAX + 1;
    const uint64_t stride = align_block(
        hb_counters_block_bytes(HB_SERVICES_MAX, backends_max, HB_TALKERS_MAX, backends_max));
    const struct hb_counters_header header = {
        .magic = HB_COUNTERS_MAGIC,
        .version = HB_COUNTERS_VERSION,
        .header_size = sizeof(header),
        .total_size = BLOCK_ALIGN + workers * stride,
        .instance = instance,
        .started_unix_ns = read_clock(),
        .workers = workers,
        .services_max = HB_SERVICES_MAX,
        .backends_max = backends_max,
        .drop_reasons = HB_DROP_COUNT,
        .talkers_max = HB_TALKERS_MAX,
        .nat_max = backends_max,
        .worker_offset = BLOCK_ALIGN,
        .worker_stride = stride,
    };
    int error;

    *counters = (struct hb_counters){.fd = -1};
    counters->fd = memfd_create("halbach-counters", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (counters->fd < 0)
        return -errno;
    if (ftruncate(counters->fd, (off_t)header.total_size) != 0)
        goto fail;
    counters->region =
        mmap(NULL, header.total_size, PROT_READ | PROT_WRITE, MAP_SHARED, counters->fd, 0);
    if (counters->region == MAP_FAILED) {
        counters->region = NULL;
        goto fail;
    }
    *counters->region = header;
    if (fcntl(counters->fd, F_ADD_SEALS,
              F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0)
        goto fail;
    return 0;

fail:
    error = -errno;
    hb_counters_destroy(counters);
    return error;
}

void hb_counters_destroy(struct hb_counters *counters)
{
    if (counters->region != NULL)
        munmap(counters->region, counters->region->total_size);
    if (counters->fd >= 0)
        close(counters->fd);
    *counters = (struct hb_counters){.fd = -1};
}

struct hb_worker_counters hb_counters_sum(const struct hb_counters_header *region)
{
    const size_t fields = sizeof(struct hb_worker_counters) / sizeof(uint64_t);
    struct hb_worker_counters sum = {0};
    uint64_t *to = (uint64_t *)&sum;

    for (uint32_t worker = 0; worker < region->workers; worker++) {
        const uint64_t *from = (const uint64_t *)hb_counters_worker(region, worker);

        for (size_t i = 0; i < fields; i++)
            to[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    }
    return sum;
}
