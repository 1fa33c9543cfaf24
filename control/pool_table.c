/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hashing/jump.h"

struct hb_table_input {
    struct hb_table_kind kind;
    uint32_t usable; /* the first of the members */
    uint32_t count;
    uint32_t room;
    uint64_t *held; /* buckets, as bits; jump only */
    struct hb_table_entry member[];
};

struct hb_table_input *hb_table_input_new(const struct hb_table_kind *kind, uint32_t room)
{
    /* Zeroed, padding included: inputs are compared as bytes. */
    struct hb_table_input *input = calloc(1, sizeof(*input) + room * sizeof(struct hb_table_entry));

    if (input == NULL)
        return NULL;
    input->kind = *kind;
    input->room = room;
    if (kind->algorithm != HB_ALGORITHM_JUMP)
        return input;
    input->kind.options.jump_replacement = true;
    input->held = calloc(HB_JUMP_BUCKETS_MAX / 64, sizeof(*input->held));
    if (input->held != NULL)
        return input;
    free(input);
    return NULL;
}

void hb_table_input_free(struct hb_table_input *input)
{
    if (input == NULL)
        return;
    free(input->held);
    free(input);
}

/* False when the bucket is out of range or held already: members that leave may have a number that
 * another one has now. */
static bool hold_bucket(struct hb_table_input *input, uint32_t bucket)
{
    uint64_t bit = UINT64_C(1) << (bucket % 64);

    if (bucket >= HB_JUMP_BUCKETS_MAX || (input->held[bucket / 64] & bit) != 0)
        return false;
    input->held[bucket / 64] |= bit;
    return true;
}

void hb_table_input_add(struct hb_table_input *input, const struct hb_table_entry *entry,
                        bool usable)
{
    struct hb_table_entry *member = &input->member[input->count];
    bool jump = input->kind.algorithm == HB_ALGORITHM_JUMP;

    if (input->count == input->room || (!usable && !jump))
        return;
    if (jump && !hold_bucket(input, entry->bucket))
        return;
    member->bucket = jump ? entry->bucket : 0;
    member->address = entry->address;
    member->weight = usable ? entry->weight : 0;
    member->id = entry->id;
    input->count++;
    input->usable += usable;
}

uint32_t hb_table_input_count(const struct hb_table_input *input)
{
    return input->usable;
}

bool hb_table_input_same(const struct hb_table_input *a, const struct hb_table_input *b)
{
    const struct hb_table_options *left = &a->kind.options, *right = &b->kind.options;

    return a->kind.algorithm == b->kind.algorithm && a->kind.slots == b->kind.slots &&
           a->kind.seed == b->kind.seed && left->virtual_nodes == right->virtual_nodes &&
           left->ketama == right->ketama && left->jump_replacement == right->jump_replacement &&
           a->count == b->count &&
           memcmp(a->member, b->member, a->count * sizeof(struct hb_table_entry)) == 0;
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

/* Builds what the request says into a new array; NULL with *error set when that cannot be. */
static uint16_t *build(const struct hb_table_kind *kind, const struct hb_table_request *request,
                       enum hb_table_error *error)
{
    const struct hb_table_builder *builder = hb_table_builder_of(kind->algorithm);
    uint16_t *owner = malloc(request->slots * sizeof(*owner));

    *error = owner && builder ? builder->build(request, owner) : HB_TABLE_NO_MEMORY;
    if (*error == HB_TABLE_OK)
        return owner;
    free(owner);
    return NULL;
}

int hb_table_input_build(const struct hb_table_input *input, struct hb_built_table *table,
                         char *problem, size_t size)
{
    struct hb_table_member *members = calloc(input->count + 1, sizeof(*members));
    char(*texts)[HB_ADDRESS_TEXT] = calloc(input->count + 1, sizeof(*texts));
    struct hb_table_request request = {.members = members,
                                       .count = input->count,
                                       .slots = input->kind.slots,
                                       .seed = input->kind.seed,
                                       .options = input->kind.options};
    enum hb_table_error error = members && texts ? HB_TABLE_OK : HB_TABLE_NO_MEMORY;

    memset(table, 0, sizeof(*table));
    if (error == HB_TABLE_OK && input->usable > 0) {
        for (uint32_t m = 0; m < input->count; m++) {
            members[m].identity = hb_address_print(&input->member[m].address, texts[m]);
            members[m].weight = input->member[m].weight;
            members[m].id = (uint16_t)input->member[m].id;
            members[m].bucket = input->member[m].bucket;
        }
        table->owner = build(&input->kind, &request, &error);
    }
    if (table->owner != NULL) {
        hb_table_owners_digest(table->owner, request.slots, members, request.count, table->owners);
    } else if (error != HB_TABLE_OK && error != HB_TABLE_NO_MEMORY) {
        hb_table_explain(&request, error, problem, size);
    }
    free(members);
    free(texts);
    return error == HB_TABLE_NO_MEMORY ? -ENOMEM : 0;
}

struct hb_pool_change hb_pool_change_of(const uint16_t *from, uint32_t from_slots,
                                        const uint16_t *to, uint32_t to_slots)
{
    struct hb_pool_change change = {.any = true};

    if (from != NULL && to != NULL && from_slots == to_slots) {
        struct hb_table_change moves = hb_table_compare(from, to, to_slots);

        change.moved = moves.moved;
        change.collateral = moves.collateral;
        change.ideal = hb_table_ideal(from, to, to_slots);
        return change;
    }
    change.moved = to ? to_slots : from ? from_slots : 0;
    change.ideal = change.moved;
    return change;
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

static void digest_columns(struct hb_model_pool *pool)
{
    struct hb_table_columns column = hb_history_columns(&pool->history);

    memset(pool->digest, 0, HB_DIGEST_SIZE);
    if (pool->owner != NULL)
        hb_table_columns_digest(&column, pool->slots, pool->digest);
}

/* By id: who has no flows. NULL: no memory. */
static bool *list_unused(const struct hb_model_pool *pool)
{
    bool *unused = calloc(HB_BACKENDS_MAX + 1, sizeof(*unused));

    for (uint32_t b = 0; unused != NULL && b < pool->backends_count; b++)
        unused[pool->backends[b]->id] = pool->backends[b]->unused;
    return unused;
}

static int follow(struct hb_model_pool *pool, uint16_t *owner, const struct hb_table_kind *kind)
{
    bool *unused = list_unused(pool);
    int error = unused == NULL
                    ? -ENOMEM
                    : hb_history_follow(&pool->history, owner, kind->slots, kind->seed, unused);

    free(unused);
    return error;
}

/* Takes both over, or on -ENOMEM neither. */
static int replace(struct hb_model_pool *pool, struct hb_table_input *input,
                   const struct hb_built_table *table)
{
    bool first = pool->input == NULL, any = pool->owner != NULL || table->owner != NULL;
    uint32_t slots = table->owner ? input->kind.slots : 0;
    struct hb_pool_change change =
        hb_pool_change_of(pool->owner, pool->slots, table->owner, input->kind.slots);

    if (table->owner != NULL && follow(pool, table->owner, &input->kind) != 0)
        return -ENOMEM;
    if (!first && any)
        pool->change = change;
    pool->changed = any;
    hb_table_input_free(pool->input);
    pool->input = input;
    pool->owner = table->owner;
    pool->slots = slots;
    memcpy(pool->owners, table->owners, HB_DIGEST_SIZE);
    digest_columns(pool);
    count_slots(pool);
    return 0;
}

int hb_pool_table_forget(struct hb_model_pool *pool)
{
    uint16_t *id_of;

    if (!pool->members_left)
        return 0;
    id_of = calloc(HB_BACKENDS_MAX + 1, sizeof(*id_of));
    if (id_of == NULL)
        return -ENOMEM;
    for (uint32_t b = 0; b < pool->backends_count; b++)
        id_of[pool->backends[b]->id] = (uint16_t)pool->backends[b]->id;
    hb_history_renumber(&pool->history, id_of);
    digest_columns(pool);
    pool->members_left = false;
    free(id_of);
    return 0;
}

uint32_t hb_pool_table_settle(struct hb_model_pool *pool, const uint64_t *bits, uint32_t first,
                              uint32_t count)
{
    uint32_t settled = hb_history_settle(&pool->history, bits, first, count);

    if (settled > 0)
        digest_columns(pool);
    return settled;
}

int hb_pool_table_update(struct hb_model_pool *pool, struct hb_table_input *input, char *problem,
                         size_t size)
{
    struct hb_built_table table;
    char why[sizeof(pool->problem)] = "";
    bool same = pool->input != NULL && hb_table_input_same(pool->input, input);

    pool->changed = false;
    if (!same && hb_table_input_build(input, &table, why, sizeof(why)) != 0) {
        hb_table_input_free(input);
        return -ENOMEM;
    }
    if (!same && replace(pool, input, &table) != 0) {
        free(table.owner);
        hb_table_input_free(input);
        return -ENOMEM;
    }
    if (same)
        hb_table_input_free(input);
    else
        memcpy(pool->problem, why, sizeof(why));
    if (pool->problem[0] != '\0')
        snprintf(problem, size, "pool %s has no table: %s", pool->name, pool->problem);
    return 0;
}
