/* SPDX-License-Identifier: BSD-3-Clause */
#include "publisher_regions.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "halbach/counters.h"
#include "halbach/generation.h"

static int write_all(int fd, const uint8_t *from, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, from, size);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        from += written;
        size -= (size_t)written;
    }
    return 0;
}

int hb_region_seal(const void *blob, size_t size)
{
    int fd = memfd_create("halbach-generation", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int error;

    if (fd < 0)
        return -errno;
    error = write_all(fd, blob, size);
    if (error == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        error = -errno;
    if (error != 0) {
        close(fd);
        return error;
    }
    return fd;
}

/* Sharing matters for counters only. A generation is sealed, so a private mapping shows the same
 * bytes, and kernels before 6.7 allow no shared one of a file that is sealed against writing. */
static int map_sealed(int fd, int seals, size_t least, int sharing, struct hb_region *region,
                      char *why, size_t why_size)
{
    struct stat status;
    int got = fcntl(fd, F_GET_SEALS);
    void *data;

    if (got < 0 || (got & seals) != seals) {
        snprintf(why, why_size, "it is not a memfd with the seals that the contract asks for");
        return -EPROTO;
    }
    if (fstat(fd, &status) != 0 || status.st_size < 0 || (uint64_t)status.st_size < least) {
        snprintf(why, why_size, "it is shorter than its own header");
        return -EPROTO;
    }
    data = mmap(NULL, (size_t)status.st_size, PROT_READ, sharing, fd, 0);
    if (data == MAP_FAILED) {
        int error = errno;

        snprintf(why, why_size, "it cannot be mapped: %s", strerror(error));
        return -error;
    }
    region->data = data;
    region->size = (size_t)status.st_size;
    return 0;
}

/* Keeps every access through hb_counters_worker() and its like inside the mapping.
 */
static int check_counters_layout(const struct hb_counters_header *header, uint64_t size, char *why,
                                 size_t why_size)
{
    uint64_t block;

    if (header->total_size > size)
        return snprintf(why, why_size, "it says %" PRIu64 " bytes and has %" PRIu64,
                        header->total_size, size);
    if (header->workers > HB_WORKERS_MAX || header->services_max > HB_SERVICES_MAX ||
        header->backends_max > HB_BACKENDS_MAX + 1 || header->drop_reasons > HB_DROPS_MAX ||
        header->talkers_max > HB_TALKERS_MAX || header->nat_max > HB_BACKENDS_MAX + 1)
        return snprintf(why, why_size,
                        "it counts %u workers, %u services, %u backends, %u drop reasons, %u "
                        "talkers, %u backends of NAT: more than the contract allows",
                        header->workers, header->services_max, header->backends_max,
                        header->drop_reasons, header->talkers_max, header->nat_max);

    block = hb_counters_block_bytes(header->services_max, header->backends_max, header->talkers_max,
                                    header->nat_max);
    if (header->header_size < sizeof(*header) || header->worker_offset < header->header_size ||
        header->worker_offset > header->total_size || header->worker_offset % sizeof(uint64_t) != 0)
        return snprintf(why, why_size, "its workers begin at a bad offset, %" PRIu64,
                        header->worker_offset);
    if (header->worker_stride < block || header->worker_stride % sizeof(uint64_t) != 0)
        return snprintf(why, why_size, "a worker's block has %" PRIu64 " bytes, it needs %" PRIu64,
                        header->worker_stride, block);
    if (header->workers > 0 &&
        header->worker_stride > (header->total_size - header->worker_offset) / header->workers)
        return snprintf(why, why_size, "it is too small for its %u workers", header->workers);
    return 0;
}

static int check_counters(const struct hb_region *region, uint64_t instance, char *why,
                          size_t why_size)
{
    /* A copy: the dataplane could write while this is looked at. */
    struct hb_counters_header header;

    memcpy(&header, region->data, sizeof(header));
    if (header.magic != HB_COUNTERS_MAGIC)
        return snprintf(why, why_size, "it does not begin with the magic number of counters");
    if (header.version != HB_COUNTERS_VERSION)
        return snprintf(why, why_size,
                        "it has version %u, this control reads version %u; install the same "
                        "release of both",
                        header.version, HB_COUNTERS_VERSION);
    if (header.instance != instance)
        return snprintf(why, why_size, "it is of another instance of the dataplane");
    return check_counters_layout(&header, region->size, why, why_size);
}

int hb_region_map_counters(int fd, uint64_t instance, struct hb_region *region, char *why,
                           size_t why_size)
{
    int error = map_sealed(fd, F_SEAL_SHRINK, sizeof(struct hb_counters_header), MAP_SHARED, region,
                           why, why_size);

    if (error == 0 && check_counters(region, instance, why, why_size) != 0) {
        hb_region_unmap(region);
        return -EPROTO;
    }
    return error;
}

static int check_generation(const struct hb_region *region, uint64_t number, char *why,
                            size_t why_size)
{
    const struct hb_generation_header *header = region->data;

    if (header->magic != HB_GENERATION_MAGIC)
        return snprintf(why, why_size, "it does not begin with the magic number of a generation");
    if (header->version != HB_GENERATION_VERSION || header->header_size != sizeof(*header))
        return snprintf(why, why_size,
                        "it has version %u, this control reads version %u; install the same "
                        "release of both",
                        header->version, HB_GENERATION_VERSION);
    if (header->total_size != region->size)
        return snprintf(why, why_size, "it says %" PRIu64 " bytes and has %zu", header->total_size,
                        region->size);
    if (header->number != number)
        return snprintf(why, why_size, "it has number %" PRIu64 ", the hello says %" PRIu64,
                        header->number, number);
    return 0;
}

int hb_region_map_generation(int fd, uint64_t number, struct hb_region *region, char *why,
                             size_t why_size)
{
    int error = map_sealed(fd, F_SEAL_SHRINK | F_SEAL_WRITE, sizeof(struct hb_generation_header),
                           MAP_PRIVATE, region, why, why_size);

    if (error == 0 && check_generation(region, number, why, why_size) != 0) {
        hb_region_unmap(region);
        return -EPROTO;
    }
    return error;
}

void hb_region_unmap(struct hb_region *region)
{
    if (region->data)
        munmap((void *)(uintptr_t)region->data, region->size);
    region->data = NULL;
    region->size = 0;
}
