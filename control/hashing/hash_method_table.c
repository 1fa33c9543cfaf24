/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash_method_table.c: methods that look a key up in a table, as the dataplane does.
 */
#include <stdlib.h>
#include <string.h>

#include "hashing/h32.h"
#include "hashing/hash_method_table.h"

struct table_state {
    const struct hb_table_member *members;
    uint32_t count;
    uint32_t weighted; /* members that have a weight */
    uint32_t slots;
    uint16_t owner[]; /* index of the member */
};

static enum hb_table_error prepare(const struct hb_table_builder *builder,
                                   const struct hb_table_request *request, void **state)
{
    struct table_state *table =
        calloc(1, sizeof(*table) + (size_t)request->slots * sizeof(table->owner[0]));
    struct hb_table_member *numbered = calloc(request->count + 1, sizeof(*numbered));
    enum hb_table_error error = HB_TABLE_NO_MEMORY;

    if (table != NULL && numbered != NULL) {
        struct hb_table_request own = *request;

        table->members = request->members;
        table->count = request->count;
        table->slots = request->slots;
        for (uint32_t i = 0; i < request->count; i++) {
            numbered[i] = request->members[i];
            numbered[i].id = (uint16_t)i;
            table->weighted += numbered[i].weight > 0;
        }
        own.members = numbered;
        error = builder->build(&own, table->owner);
    }
    free(numbered);
    if (error != HB_TABLE_OK) {
        free(table);
        table = NULL;
    }
    *state = table;
    return error;
}

static enum hb_table_error prepare_maglev(const struct hb_table_request *request, void **state)
{
    return prepare(&hb_maglev, request, state);
}

static enum hb_table_error prepare_skeleton(const struct hb_table_request *request, void **state)
{
    return prepare(&hb_rendezvous, request, state);
}

static uint32_t slot_of(const struct table_state *table, const char *key, size_t size)
{
    return (uint32_t)((uint64_t)hb_h32(key, size) * table->slots >> 32);
}

static uint32_t ask(const void *state, const char *key, size_t size)
{
    const struct table_state *table = state;

    return table->owner[slot_of(table, key, size)];
}

/* From the key's slot on through the table; after it the members that own no slot, if any. */
static uint32_t prefer(const void *state, const char *key, size_t size, uint32_t *members)
{
    const struct table_state *table = state;
    bool *seen = calloc(table->count, sizeof(*seen));
    uint32_t slot = slot_of(table, key, size), found = 0;

    if (seen == NULL)
        return 0;
    for (uint32_t i = 0; i < table->slots && found < table->weighted; i++) {
        uint32_t member = table->owner[slot];

        if (!seen[member])
            members[found++] = member;
        seen[member] = true;
        slot = slot + 1 < table->slots ? slot + 1 : 0;
    }
    for (uint32_t i = 0; i < table->count && found < table->weighted; i++) {
        if (!seen[i] && table->members[i].weight > 0)
            members[found++] = i;
    }
    free(seen);
    return found;
}

static size_t measure(const void *state)
{
    const struct table_state *table = state;

    return sizeof(*table) + (size_t)table->slots * sizeof(table->owner[0]);
}

const struct hb_hash_method hb_maglev_method = {
    .name = "maglev",
    .algorithm = HB_ALGORITHM_MAGLEV,
    .summary = "Maglev table",
    .uses_table = true,
    .uses_weights = true,
    .moves_between_old = true,
    .prepare = prepare_maglev,
    .owner = ask,
    .prefer = prefer,
    .memory = measure,
    .release = free,
};

const struct hb_hash_method hb_skeleton_method = {
    .name = "skeleton",
    .algorithm = HB_ALGORITHM_RENDEZVOUS,
    .summary = "rendezvous in two levels: key to slot, slot to backend",
    .uses_table = true,
    .uses_weights = true,
    .prepare = prepare_skeleton,
    .owner = ask,
    .prefer = prefer,
    .memory = measure,
    .release = free,
};
