/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash_method.c: the list of methods, and those that need no table. The others are in
 * hash_method_table.c.
 */
#include <stdlib.h>
#include <string.h>

#include "hashing/h32.h"
#include "hashing/hash_method_table.h"
#include "hashing/jump.h"
#include "hashing/modulo.h"
#include "hashing/rendezvous.h"
#include "hashing/ring.h"
#include "hashing/slot_key.h"

/* ---- modulo ---- */

static enum hb_table_error prepare_modulo(const struct hb_table_request *request, void **state)
{
    struct hb_modulo_map *map = calloc(1, sizeof(*map));
    uint32_t *order = calloc(request->count + 1, sizeof(*order));
    enum hb_table_error error = HB_TABLE_NO_MEMORY;

    if (map != NULL && order != NULL)
        error = hb_check_members(request, order);
    if (error == HB_TABLE_OK)
        error = hb_modulo_make(request->members, request->count, order, map);
    free(order);
    if (error != HB_TABLE_OK) {
        free(map);
        map = NULL;
    }
    *state = map;
    return error;
}

static uint32_t ask_modulo(const void *state, const char *key, size_t size)
{
    return hb_modulo_owner(state, hb_h32(key, size));
}

static uint32_t prefer_modulo(const void *state, const char *key, size_t size, uint32_t *members)
{
    const struct hb_modulo_map *map = state;
    uint32_t owner = ask_modulo(state, key, size), first = 0;

    while (map->member[first] != owner)
        first++;
    for (uint32_t i = 0; i < map->count; i++)
        members[i] = map->member[(first + i) % map->count];
    return map->count;
}

static size_t measure_modulo(const void *state)
{
    const struct hb_modulo_map *map = state;

    return sizeof(*map) + map->count * (sizeof(*map->last) + sizeof(*map->member));
}

static void release_modulo(void *state)
{
    if (state != NULL)
        hb_modulo_free(state);
    free(state);
}

static const struct hb_hash_method modulo = {
    .name = "modulo",
    .algorithm = HB_ALGORITHM_MODULO,
    .summary = "hash modulo the number of backends",
    .uses_weights = true,
    .moves_between_old = true,
    .prepare = prepare_modulo,
    .owner = ask_modulo,
    .prefer = prefer_modulo,
    .memory = measure_modulo,
    .release = release_modulo,
};

/* ---- ring ---- */

struct ring_state {
    struct hb_ring_map *map;
    bool ketama;
};

static enum hb_table_error prepare_ring(const struct hb_table_request *request, void **state)
{
    struct ring_state *ring = calloc(1, sizeof(*ring));
    enum hb_table_error error = HB_TABLE_NO_MEMORY;

    if (ring != NULL) {
        ring->ketama = request->options.ketama;
        error = hb_ring_from_members(request, hb_ring_hash_h32, &ring->map);
    }
    if (error != HB_TABLE_OK) {
        free(ring);
        ring = NULL;
    }
    *state = ring;
    return error;
}

static uint32_t hash_for_ring(const struct ring_state *ring, const char *key, size_t size)
{
    return ring->ketama ? hb_ketama_hash(key, size) : hb_h32(key, size);
}

static uint32_t ask_ring(const void *state, const char *key, size_t size)
{
    const struct ring_state *ring = state;

    return hb_ring_owner(ring->map, hash_for_ring(ring, key, size));
}

static uint32_t prefer_ring(const void *state, const char *key, size_t size, uint32_t *members)
{
    const struct ring_state *ring = state;

    return hb_ring_successors(ring->map, hash_for_ring(ring, key, size), ring->map->members_count,
                              members);
}

static size_t measure_ring(const void *state)
{
    const struct ring_state *ring = state;

    return sizeof(*ring) + hb_ring_memory(ring->map);
}

static void release_ring(void *state)
{
    struct ring_state *ring = state;

    if (ring != NULL)
        hb_ring_free(ring->map);
    free(ring);
}

static const struct hb_hash_method ring = {
    .name = "ring",
    .algorithm = HB_ALGORITHM_RING,
    .summary = "hash ring with virtual nodes",
    .uses_weights = true,
    .prepare = prepare_ring,
    .owner = ask_ring,
    .prefer = prefer_ring,
    .memory = measure_ring,
    .release = release_ring,
};

/* ---- rendezvous ---- */

struct rendezvous_state {
    const struct hb_table_member *members;
    uint32_t count;
    uint32_t order[];
};

static enum hb_table_error prepare_rendezvous(const struct hb_table_request *request, void **state)
{
    struct rendezvous_state *made =
        calloc(1, sizeof(*made) + (request->count + 1) * sizeof(made->order[0]));
    enum hb_table_error error = HB_TABLE_NO_MEMORY;

    if (made != NULL) {
        made->members = request->members;
        made->count = request->count;
        error = hb_check_members(request, made->order);
    }
    if (error != HB_TABLE_OK) {
        free(made);
        made = NULL;
    }
    *state = made;
    return error;
}

static uint32_t ask_rendezvous(const void *state, const char *key, size_t size)
{
    const struct rendezvous_state *r = state;

    return hb_rendezvous_owner(r->members, r->count, r->order, key, size);
}

static uint32_t prefer_rendezvous(const void *state, const char *key, size_t size,
                                  uint32_t *members)
{
    const struct rendezvous_state *r = state;

    return hb_rendezvous_rank(r->members, r->count, r->order, key, size, members);
}

static size_t measure_rendezvous(const void *state)
{
    const struct rendezvous_state *r = state;

    return sizeof(*r) + (r->count + 1) * sizeof(r->order[0]);
}

static const struct hb_hash_method rendezvous = {
    .name = "rendezvous",
    .algorithm = HB_ALGORITHM_RENDEZVOUS,
    .summary = "highest random weight, asked backend by backend",
    .uses_weights = true,
    .prepare = prepare_rendezvous,
    .owner = ask_rendezvous,
    .prefer = prefer_rendezvous,
    .memory = measure_rendezvous,
    .release = free,
};

/* ---- jump ---- */

static enum hb_table_error prepare_jump(const struct hb_table_request *request, void **state)
{
    struct hb_jump_map *map = calloc(1, sizeof(*map));
    uint32_t *order = calloc(request->count + 1, sizeof(*order));
    enum hb_table_error error = HB_TABLE_NO_MEMORY;

    if (map != NULL && order != NULL)
        error = hb_check_members(request, order);
    if (error == HB_TABLE_OK)
        error = hb_jump_make(request, map);
    free(order);
    if (error != HB_TABLE_OK) {
        free(map);
        map = NULL;
    }
    *state = map;
    return error;
}

static uint32_t ask_jump(const void *state, const char *key, size_t size)
{
    return hb_jump_owner(state, hb_h32(key, size));
}

static uint32_t prefer_jump(const void *state, const char *key, size_t size, uint32_t *members)
{
    return hb_jump_rank(state, hb_h32(key, size), members);
}

/* The arithmetic needs nothing; this is what finds members by their buckets. */
static size_t measure_jump(const void *state)
{
    const struct hb_jump_map *map = state;

    return sizeof(*map) + map->buckets * (sizeof(*map->by_bucket) + sizeof(*map->usable));
}

static void release_jump(void *state)
{
    if (state != NULL)
        hb_jump_free(state);
    free(state);
}

static const struct hb_hash_method jump = {
    .name = "jump",
    .algorithm = HB_ALGORITHM_JUMP,
    .summary = "jump consistent hash: numbered buckets, only the last can go",
    .prepare = prepare_jump,
    .owner = ask_jump,
    .prefer = prefer_jump,
    .memory = measure_jump,
    .release = release_jump,
};

const struct hb_hash_method *const hb_hash_methods[] = {
    &modulo, &ring, &rendezvous, &hb_skeleton_method, &jump, &hb_maglev_method, NULL,
};

const struct hb_hash_method *hb_hash_method_by_name(const char *name)
{
    for (unsigned i = 0; hb_hash_methods[i] != NULL; i++) {
        if (strcmp(hb_hash_methods[i]->name, name) == 0)
            return hb_hash_methods[i];
    }
    return NULL;
}
