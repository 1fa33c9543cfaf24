/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums over the workers' counters. Each field is read whole; a sum is not one instant. */
#include <string.h>

#include "halbach/counters.h"
#include "publisher.h"

/* The counters are structs of 64-bit fields only, so that they can be added as arrays. */
static void add_fields(void *sum, const void *from, size_t size)
{
    uint64_t *total = sum;
    const uint64_t *field = from;
    size_t i;

    for (i = 0; i < size / sizeof(uint64_t); i++)
        total[i] += __atomic_load_n(&field[i], __ATOMIC_RELAXED);
}

struct hb_worker_counters hb_counters_total(const struct hb_counters_header *region)
{
    struct hb_worker_counters total = {0};
    uint64_t generation = UINT64_MAX;
    uint32_t i;

    if (!region || region->workers == 0)
        return total;
    for (i = 0; i < region->workers; i++) {
        const struct hb_worker_counters *worker = hb_counters_worker(region, i);
        uint64_t number = __atomic_load_n(&worker->generation_number, __ATOMIC_RELAXED);

        add_fields(&total, worker, sizeof(*worker));
        if (number < generation)
            generation = number;
    }
    total.lcore = 0;
    total.generation_number = generation;
    return total;
}

struct hb_service_counters hb_counters_service_total(const struct hb_counters_header *region,
                                                     uint32_t id)
{
    struct hb_service_counters total = {0};
    uint32_t i;

    if (!region || id >= region->services_max)
        return total;
    for (i = 0; i < region->workers; i++)
        add_fields(&total, &hb_counters_services(region, i)[id], sizeof(total));
    return total;
}

struct hb_quic_counters hb_counters_quic_total(const struct hb_counters_header *region, uint32_t id)
{
    struct hb_quic_counters total = {0};
    uint32_t i;

    if (!region || id >= region->services_max)
        return total;
    for (i = 0; i < region->workers; i++)
        add_fields(&total, &hb_counters_quic(region, i)[id], sizeof(total));
    return total;
}

struct hb_backend_counters hb_counters_backend_total(const struct hb_counters_header *region,
                                                     uint32_t id)
{
    struct hb_backend_counters total = {0};
    uint32_t i;

    if (!region || id >= region->backends_max)
        return total;
    for (i = 0; i < region->workers; i++)
        add_fields(&total, &hb_counters_backends(region, i)[id], sizeof(total));
    return total;
}

struct hb_nat_counters hb_counters_nat_total(const struct hb_counters_header *region, uint32_t id)
{
    struct hb_nat_counters total = {0};
    uint32_t i;

    if (!region || id >= region->nat_max)
        return total;
    for (i = 0; i < region->workers; i++)
        add_fields(&total, &hb_counters_nat(region, i)[id], sizeof(total));
    return total;
}
