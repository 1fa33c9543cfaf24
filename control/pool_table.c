/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hashing/jump.h"
#include "ramp.h"

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
    member->ramp = usable ? entry->ramp : 0;
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
    uint32_t ideal = 0, last = 0;
    int32_t *surplus;

    for (uint32_t s = 0; s < slots; s++) {
        last = from[s] > last ? from[s] : last;
        last = to[s] > last ? to[s] : last;
    }
    surplus = calloc(last + 1, sizeof(*surplus));
    if (surplus == NULL)
        return 0;
    for (uint32_t s = 0; s < slots; s++) {
        surplus[from[s]]++;
        surplus[to[s]]--;
    }
    for (uint32_t id = 0; id <= last; id++)
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

void hb_built_table_free(struct hb_built_table *table)
{
    free(table->owner);
    free(table->final);
    memset(table, 0, sizeof(*table));
}

/* What a builder takes; members and their identities as text. */
struct roster {
    struct hb_table_member *members;
    char (*texts)[HB_ADDRESS_TEXT];
    uint32_t count;
    uint32_t newcomers;
};

static void free_roster(struct roster *roster)
{
    free(roster->members);
    free(roster->texts);
}

/* With or without those that are in their slow start; a bucket is held in either case. */
static bool fill_roster(const struct hb_table_input *input, bool newcomers, struct roster *roster)
{
    bool jump = input->kind.algorithm == HB_ALGORITHM_JUMP;

    *roster = (struct roster){.members = calloc(input->count + 1, sizeof(*roster->members)),
                              .texts = calloc(input->count + 1, sizeof(*roster->texts))};
    if (roster->members == NULL || roster->texts == NULL) {
        free_roster(roster);
        return false;
    }
    for (uint32_t m = 0; m < input->count; m++) {
        const struct hb_table_entry *entry = &input->member[m];
        struct hb_table_member *member = &roster->members[roster->count];
        bool takes_part = newcomers || entry->ramp == 0;

        roster->newcomers += entry->ramp != 0;
        if (!takes_part && !jump)
            continue;
        member->identity = hb_address_print(&entry->address, roster->texts[roster->count++]);
        member->weight = takes_part ? entry->weight : 0;
        member->id = (uint16_t)entry->id;
        member->bucket = entry->bucket;
    }
    return true;
}

static struct hb_table_request request_of(const struct hb_table_input *input,
                                          const struct roster *roster)
{
    return (struct hb_table_request){.members = roster->members,
                                     .count = roster->count,
                                     .slots = input->kind.slots,
                                     .seed = input->kind.seed,
                                     .options = input->kind.options};
}

/* By id, how far each has come. */
static void list_progress(const struct hb_table_input *input, uint32_t *progress)
{
    for (uint32_t id = 0; id <= HB_BACKENDS_MAX; id++)
        progress[id] = HB_RAMP_FULL;
    for (uint32_t m = 0; m < input->count; m++) {
        if (input->member[m].ramp != 0)
            progress[input->member[m].id] = input->member[m].ramp;
    }
}

/* table->owner is the one in the end: it becomes `final`, and the one for now takes its place. */
static enum hb_table_error slow_down(const struct hb_table_input *input,
                                     struct hb_built_table *table)
{
    uint32_t *progress = calloc(2 * (HB_BACKENDS_MAX + 1), sizeof(*progress));
    enum hb_table_error error = HB_TABLE_NO_MEMORY;
    struct hb_table_request request;
    struct roster roster;
    uint16_t *owner = NULL;

    if (progress != NULL && fill_roster(input, false, &roster)) {
        request = request_of(input, &roster);
        owner = build(&input->kind, &request, &error);
        free_roster(&roster);
    }
    if (owner != NULL) {
        list_progress(input, progress);
        hb_ramp_blend(owner, table->owner, input->kind.slots, input->kind.seed, progress,
                      HB_BACKENDS_MAX, progress + HB_BACKENDS_MAX + 1);
        table->final = table->owner;
        table->owner = owner;
    }
    free(progress);
    /* What cannot be built without the newcomers needs them at once. */
    return error == HB_TABLE_NO_MEMORY ? error : HB_TABLE_OK;
}

int hb_table_input_build(const struct hb_table_input *input, struct hb_built_table *table,
                         char *problem, size_t size)
{
    enum hb_table_error error = HB_TABLE_OK;
    struct hb_table_request request;
    struct roster roster;

    memset(table, 0, sizeof(*table));
    if (input->usable == 0)
        return 0;
    if (!fill_roster(input, true, &roster))
        return -ENOMEM;
    request = request_of(input, &roster);
    table->owner = build(&input->kind, &request, &error);
    if (table->owner != NULL && roster.newcomers > 0)
        error = slow_down(input, table);
    if (error == HB_TABLE_OK)
        hb_table_owners_digest(table->owner, request.slots, roster.members, request.count,
                               table->owners);
    else if (error != HB_TABLE_NO_MEMORY)
        hb_table_explain(&request, error, problem, size);
    if (error != HB_TABLE_OK)
        hb_built_table_free(table);
    free_roster(&roster);
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

static uint32_t last_id(const struct hb_model_pool *pool)
{
    uint32_t last = 0;

    for (uint32_t b = 0; b < pool->backends_count; b++)
        last = pool->backends[b]->id > last ? pool->backends[b]->id : last;
    return last;
}

/* `final` NULL: as the table is. */
static void count_slots(struct hb_model_pool *pool, const uint16_t *final)
{
    uint32_t ids = last_id(pool) + 1;
    uint32_t *count = calloc(2 * (size_t)ids, sizeof(*count));
    uint32_t *to_come = count ? count + ids : NULL;

    for (uint32_t s = 0; count != NULL && pool->owner != NULL && s < pool->slots; s++) {
        count[pool->owner[s]]++;
        to_come[final ? final[s] : pool->owner[s]]++;
    }
    for (uint32_t b = 0; b < pool->backends_count; b++) {
        pool->backends[b]->slots = count ? count[pool->backends[b]->id] : 0;
        pool->backends[b]->slots_to_come = count ? to_come[pool->backends[b]->id] : 0;
    }
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
    count_slots(pool, table->final);
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

int hb_pool_table_update(struct hb_model_pool *pool, struct hb_table_input *input)
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
        hb_built_table_free(&table);
        hb_table_input_free(input);
        return -ENOMEM;
    }
    if (same) {
        hb_table_input_free(input);
    } else {
        free(table.final);
        memcpy(pool->problem, why, sizeof(why));
    }
    return 0;
}
