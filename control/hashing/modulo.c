/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * modulo.c: hash modulo the sum of the weights.
 */
#include <stdlib.h>

#include "hashing/member_order.h"
#include "hashing/modulo.h"
#include "hashing/slot_key.h"

/* Euclid. */
static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    while (b != 0) {
        uint32_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

enum hb_table_error hb_modulo_make(const struct hb_table_member *members, uint32_t count,
                                   const uint32_t *order, struct hb_modulo_map *map)
{
    uint32_t common = 0;

    *map = (struct hb_modulo_map){0};
    for (uint32_t i = 0; i < count; i++)
        common = common_divisor(common, members[i].weight);
    if (common == 0)
        return HB_TABLE_NO_MEMBERS;
    map->last = calloc(count, sizeof(*map->last));
    map->member = calloc(count, sizeof(*map->member));
    if (map->last == NULL || map->member == NULL) {
        hb_modulo_free(map);
        return HB_TABLE_NO_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t weight = members[order[i]].weight;

        if (weight == 0)
            continue;
        map->divisor += weight / common; /* 65,535 members of 65,535 fit into 32 bits */
        map->last[map->count] = map->divisor;
        map->member[map->count] = order[i];
        map->count++;
    }
    return HB_TABLE_OK;
}

void hb_modulo_free(struct hb_modulo_map *map)
{
    free(map->last);
    free(map->member);
    *map = (struct hb_modulo_map){0};
}

uint32_t hb_modulo_owner(const struct hb_modulo_map *map, uint64_t hash)
{
    uint32_t rest = (uint32_t)(hash % map->divisor);
    uint32_t low = 0, high = map->count - 1;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (map->last[middle] <= rest)
            low = middle + 1;
        else
            high = middle;
    }
    return map->member[low];
}

static enum hb_table_error build(const struct hb_table_request *request, uint16_t *owner)
{
    uint32_t *order = calloc(request->count + 1, sizeof(*order));
    struct hb_modulo_map map = {0};
    enum hb_table_error error = HB_TABLE_NO_MEMORY;

    if (order != NULL)
        error = hb_check_request(request, order);
    if (error == HB_TABLE_OK)
        error = hb_modulo_make(request->members, request->count, order, &map);
    for (uint32_t slot = 0; error == HB_TABLE_OK && slot < request->slots; slot++) {
        uint64_t hash = hb_slot_key(slot, request->seed);

        owner[slot] = request->members[hb_modulo_owner(&map, hash)].id;
    }
    hb_modulo_free(&map);
    free(order);
    return error;
}

const struct hb_table_builder hb_modulo = {
    .name = "modulo", .algorithm = HB_ALGORITHM_MODULO, .build = build};
