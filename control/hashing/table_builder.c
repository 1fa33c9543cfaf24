/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table_builder.c: the list of builders, and their errors in words.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "halbach/generation.h"
#include "hashing/member_order.h"
#include "hashing/ring.h"
#include "hashing/slot_key.h"
#include "hashing/table_builder.h"

const struct hb_table_builder *const hb_table_builders[] = {
    &hb_maglev, &hb_ring, &hb_rendezvous, &hb_jump, &hb_modulo, NULL,
};

const struct hb_table_builder *hb_table_builder_of(enum hb_algorithm algorithm)
{
    for (unsigned i = 0; hb_table_builders[i] != NULL; i++) {
        if (hb_table_builders[i]->algorithm == algorithm)
            return hb_table_builders[i];
    }
    return NULL;
}

const struct hb_table_builder *hb_table_builder_by_name(const char *name)
{
    for (unsigned i = 0; hb_table_builders[i] != NULL; i++) {
        if (strcmp(hb_table_builders[i]->name, name) == 0)
            return hb_table_builders[i];
    }
    return NULL;
}

uint32_t hb_table_smallest_size(uint32_t weighted)
{
    return hb_prime_above(weighted > HB_TABLE_SLOTS_MIN ? weighted : HB_TABLE_SLOTS_MIN);
}

const char *hb_table_error_text(enum hb_table_error error)
{
    switch (error) {
    case HB_TABLE_OK:
        return "built";
    case HB_TABLE_NO_MEMBERS:
        return "no backend has a weight above 0";
    case HB_TABLE_SIZE_NOT_PRIME:
        return "the table size is not a prime from 7 to 5000011";
    case HB_TABLE_SIZE_TOO_SMALL:
        return "the table has fewer slots than there are backends with a weight; use a larger "
               "prime";
    case HB_TABLE_DUPLICATE:
        return "two backends share an address; remove one of them";
    case HB_TABLE_NO_MEMORY:
        return "not enough memory to build the table";
    case HB_TABLE_BUCKETS:
        return "the buckets of a jump pool are not 0, 1, 2, ..., each once; number them so";
    case HB_TABLE_BUCKET_EMPTY:
        return "jump loses a backend at the end only; set jump_replacement to let others take over";
    case HB_TABLE_WEIGHTS_DIFFER:
        return "jump has no weights; give all backends the same or choose another algorithm";
    case HB_TABLE_TOO_MANY_POINTS:
        return "the ring has too many points; lower virtual_nodes or all weights";
    }
    return "unknown error";
}

static uint32_t count_weighted(const struct hb_table_request *request)
{
    uint32_t weighted = 0;

    for (uint32_t i = 0; i < request->count; i++)
        weighted += request->members[i].weight > 0;
    return weighted;
}

static uint64_t sum_weights(const struct hb_table_request *request)
{
    uint64_t weights = 0;

    for (uint32_t i = 0; i < request->count; i++)
        weights += request->members[i].weight;
    return weights;
}

static void explain_size(uint32_t slots, char *text, size_t size)
{
    if (slots < HB_TABLE_SLOTS_MIN || slots > HB_TABLE_SLOTS_MAX)
        snprintf(text, size, "%" PRIu32 " slots: a table has a prime number of them from %d to %d",
                 slots, HB_TABLE_SLOTS_MIN, HB_TABLE_SLOTS_MAX);
    else
        snprintf(text, size,
                 "%" PRIu32 " slots: that is not prime; the nearest primes are %" PRIu32
                 " and %" PRIu32,
                 slots, hb_prime_below(slots), hb_prime_above(slots));
}

static void explain_points(const struct hb_table_request *request, char *text, size_t size)
{
    uint64_t weights = sum_weights(request);

    if (weights <= HB_RING_POINTS_MAX)
        snprintf(text, size,
                 "the ring would have more than %d points; set virtual_nodes to %" PRIu64
                 " or less, or lower all weights",
                 HB_RING_POINTS_MAX, HB_RING_POINTS_MAX / weights);
    else
        snprintf(text, size,
                 "the weights add up to %" PRIu64 ", but a ring has at most %d points; lower them",
                 weights, HB_RING_POINTS_MAX);
}

const char *hb_table_explain(const struct hb_table_request *request, enum hb_table_error error,
                             char *text, size_t size)
{
    uint32_t weighted = count_weighted(request);

    switch (error) {
    case HB_TABLE_SIZE_NOT_PRIME:
        explain_size(request->slots, text, size);
        break;
    case HB_TABLE_SIZE_TOO_SMALL:
        snprintf(text, size,
                 "%" PRIu32 " slots are too few for %" PRIu32
                 " backends with a weight; the smallest prime that will do is %" PRIu32,
                 request->slots, weighted, hb_table_smallest_size(weighted));
        break;
    case HB_TABLE_TOO_MANY_POINTS:
        explain_points(request, text, size);
        break;
    default:
        snprintf(text, size, "%s", hb_table_error_text(error));
        break;
    }
    return text;
}

enum hb_table_error hb_check_members(const struct hb_table_request *request, uint32_t *order)
{
    if (count_weighted(request) == 0)
        return HB_TABLE_NO_MEMBERS;
    return hb_member_order(request->members, request->count, order);
}

enum hb_table_error hb_check_request(const struct hb_table_request *request, uint32_t *order)
{
    uint32_t slots = request->slots;

    if (slots < HB_TABLE_SLOTS_MIN || slots > HB_TABLE_SLOTS_MAX || !hb_is_prime(slots))
        return HB_TABLE_SIZE_NOT_PRIME;
    if (slots < count_weighted(request))
        return HB_TABLE_SIZE_TOO_SMALL;
    return hb_check_members(request, order);
}
