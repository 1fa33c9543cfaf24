/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct input_member {
    struct hb_address address;
    uint32_t weight;
    uint32_t id;
};

struct hb_table_input {
    enum hb_algorithm algorithm;
    uint32_t slots;
    uint64_t seed;
    uint32_t count;
    uint32_t room;
    struct input_member member[];
};

struct hb_table_input *hb_table_input_new(const struct hb_model_pool *pool, uint64_t seed)
{
    /* Zeroed, padding included: inputs are compared as bytes. */
    struct hb_table_input *input =
        calloc(1, sizeof(*input) + pool->backends_count * sizeof(struct input_member));

    if (input == NULL)
        return NULL;
    input->algorithm = pool->algorithm;
    input->slots = pool->table_size;
    input->seed = seed;
    input->room = pool->backends_count;
    return input;
}

void hb_table_input_add(struct hb_table_input *input, const struct hb_model_backend *backend)
{
    struct input_member *member = &input->member[input->count];

    if (input->count == input->room)
        return;
    member->address = backend->address;
    member->weight = backend->weight;
    member->id = backend->id;
    input->count++;
}

uint32_t hb_table_input_count(const struct hb_table_input *input)
{
    return input->count;
}

static bool same_input(const struct hb_table_input *a, const struct hb_table_input *b)
{
    return a->algorithm == b->algorithm && a->slots == b->slots && a->seed == b->seed &&
           a->count == b->count &&
           memcmp(a->member, b->member, a->count * sizeof(struct input_member)) == 0;
}

uint32_t hb_table_ideal(const uint16_t *from, const uint16_t *to, uint32_t slots)
{
    int32_t *surplus = calloc(HB_BACKENDS_MAX + 1, sizeof(*surplus));
    uint32_t ideal = 0;

    if (surplus == NULL)
        return 0;
    for (uint32_t s = 0; s < slots; s++) {
        surplus[from[s]]++;
        surplus[to[s]]--;
    }
    for (uint32_t id = 0; id <= HB_BACKENDS_MAX; id++)
        ideal += surplus[id] > 0 ? (uint32_t)surplus[id] : 0;
    free(surplus);
    return ideal;
}

/* Builds what `input` says into a new array; NULL with *error set when that cannot be. */
static uint16_t *build(const struct hb_table_input *input, uint8_t digest[HB_DIGEST_SIZE],
                       uint8_t owners[HB_DIGEST_SIZE], enum hb_table_error *error)
{
    struct hb_table_member *members = calloc(input->count, sizeof(*members));
    char(*texts)[HB_ADDRESS_TEXT] = calloc(input->count, sizeof(*texts));
    uint16_t *owner = malloc(input->slots * sizeof(*owner));

    *error = HB_TABLE_NO_MEMORY;
    if (members != NULL && texts != NULL && owner != NULL) {
        for (uint32_t m = 0; m < input->count; m++) {
            members[m].identity = hb_address_print(&input->member[m].address, texts[m]);
            members[m].weight = input->member[m].weight;
            members[m].id = (uint16_t)input->member[m].id;
        }
        *error = hb_maglev.build(members, input->count, input->slots, input->seed, owner);
    }
    if (*error == HB_TABLE_OK) {
        hb_table_digest(owner, input->slots, digest);
        hb_table_owners_digest(owner, input->slots, members, input->count, owners);
    } else {
        free(owner);
        owner = NULL;
    }
    free(members);
    free(texts);
    return owner;
}

static void note_change(struct hb_model_pool *pool, const uint16_t *owner, uint32_t slots)
{
    struct hb_pool_change *change = &pool->change;

    memset(change, 0, sizeof(*change));
    change->any = true;
    if (pool->owner != NULL && owner != NULL && pool->slots == slots) {
        struct hb_table_change moves = hb_table_compare(pool->owner, owner, slots);

        change->moved = moves.moved;
        change->collateral = moves.collateral;
        change->ideal = hb_table_ideal(pool->owner, owner, slots);
        return;
    }
    /* From or to nothing, or to another size: every slot is a new one. */
    change->moved = owner ? slots : pool->slots;
    change->ideal = change->moved;
}

static void count_slots(struct hb_model_pool *pool)
{
    uint32_t *count = calloc(HB_BACKENDS_MAX + 1, sizeof(*count));

    for (uint32_t s = 0; count != NULL && pool->owner != NULL && s < pool->slots; s++)
        count[pool->owner[s]]++;
    for (uint32_t b = 0; b < pool->backends_count; b++)
        pool->backends[b]->slots = count ? count[pool->backends[b]->id] : 0;
    free(count);
}

static void replace(struct hb_model_pool *pool, struct hb_table_input *input, uint16_t *owner,
                    const uint8_t *digest, const uint8_t *owners)
{
    bool first = pool->input == NULL;

    if (!first && (pool->owner != NULL || owner != NULL))
        note_change(pool, owner, input->slots);
    pool->changed = pool->owner != NULL || owner != NULL;
    free(pool->input);
    free(pool->owner);
    pool->input = input;
    pool->owner = owner;
    pool->slots = owner ? input->slots : 0;
    memcpy(pool->digest, digest, HB_DIGEST_SIZE);
    memcpy(pool->owners, owners, HB_DIGEST_SIZE);
    count_slots(pool);
}

int hb_pool_table_update(struct hb_model_pool *pool, struct hb_table_input *input, char *problem,
                         size_t size)
{
    uint8_t digest[HB_DIGEST_SIZE] = {0}, owners[HB_DIGEST_SIZE] = {0};
    enum hb_table_error error;
    uint16_t *owner = NULL;

    pool->changed = false;
    if (pool->input != NULL && same_input(pool->input, input)) {
        free(input);
        return 0;
    }
    if (input->count > 0) {
        owner = build(input, digest, owners, &error);
        if (owner == NULL && error == HB_TABLE_NO_MEMORY) {
            free(input);
            return -ENOMEM;
        }
        if (owner == NULL)
            snprintf(problem, size, "pool %s has no table: %s", pool->name,
                     hb_table_error_text(error));
    }
    replace(pool, input, owner, digest, owners);
    return 0;
}
