/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What speaks against a configuration, given the one that is in use: the part of hb_model_apply()
 * that a plan asks for without applying anything.
 */
#include <errno.h>
#include <stdio.h>

#include "model_internal.h"

/* --- jump: buckets --- */

/* The backend that had a bucket and is a member no more, or NULL. */
static const struct hb_model_backend *
find_removed(const struct hb_model_pool *old, const struct hb_pool_config *pool, uint32_t bucket)
{
    for (uint32_t b = 0; b < old->backends_count; b++) {
        const struct hb_model_backend *backend = old->backends[b];
        bool stays = false;

        if (backend->leaving || backend->bucket != bucket)
            continue;
        for (uint32_t i = 0; i < pool->backends_count && !stays; i++)
            stays = hb_address_compare(&pool->backends[i].address, &backend->address) == 0;
        return stays ? NULL : backend;
    }
    return NULL;
}

static void refuse_bucket(const struct hb_config *config, const struct hb_pool_config *pool,
                          const struct hb_backend_config *backend, const struct hb_model_pool *old,
                          const struct hb_model_backend *same, struct hb_model_diff *diff)
{
    const struct hb_model_backend *removed = find_removed(old, pool, backend->bucket);

    snprintf(diff->error, sizeof(diff->error),
             "%s:%d: pool %s: %s had bucket %u and now has %u%s%s%s: jump loses backends at the "
             "end only; give the number to a new backend, or set \"jump_replacement: true\" and "
             "keep the others' numbers",
             config->file ? config->file : "", backend->line, pool->name, backend->name,
             same->bucket, backend->bucket, removed ? ", since " : "", removed ? removed->name : "",
             removed ? " is removed" : "");
}

/* A file by itself has buckets 0 to n - 1, so a backend that was removed from their middle shows
 * in that another one has taken its number. A new backend may: then only that bucket changes hands.
 * One that stays may not: all of its own keys would move too. */
static bool check_buckets(const struct hb_model *model, const struct hb_config *config,
                          const struct hb_pool_config *pool, struct hb_model_diff *diff)
{
    const struct hb_model_pool *old = hb_model_pool(model, pool->name);

    if (old == NULL || old->algorithm != HB_ALGORITHM_JUMP ||
        pool->algorithm != HB_ALGORITHM_JUMP || pool->options.jump_replacement)
        return true;
    for (uint32_t b = 0; b < pool->backends_count; b++) {
        const struct hb_backend_config *backend = &pool->backends[b];
        const struct hb_model_backend *same = hb_pool_backend(old, &backend->address);

        if (same == NULL || same->leaving || same->bucket == backend->bucket)
            continue;
        refuse_bucket(config, pool, backend, old, same, diff);
        return false;
    }
    return true;
}

/* --- ids --- */

static uint32_t count_free_ids(const struct hb_model *model)
{
    const struct hb_id_registry *ids = model->backend_ids;
    uint32_t count = 0;

    for (uint32_t id = hb_ids_first(ids); id < hb_ids_end(ids); id++) {
        if (hb_ids_key(ids, id) == NULL &&
            (model->reusable == NULL ||
             model->reusable(model->context, id, hb_ids_incarnation(ids, id))))
            count++;
    }
    return count;
}

void hb_model_refuse_id(const struct hb_model *model, const char *identity, const char *pool,
                        struct hb_model_diff *diff)
{
    snprintf(diff->error, sizeof(diff->error),
             "no backend id is free for %s in pool %s: %u are in use, and the dataplane still "
             "has flows of the others or no room for more; remove backends, or reload again later",
             identity, pool, hb_ids_used(model->backend_ids));
}

/* Ids of what the file removes are free only after it was applied. */
static bool check_room(const struct hb_model *model, const struct hb_config *config,
                       struct hb_model_diff *diff)
{
    uint32_t room = count_free_ids(model);
    char key[HB_ID_KEY_SIZE], text[HB_ADDRESS_TEXT];

    for (uint32_t p = 0; p < config->pools_count; p++) {
        const struct hb_pool_config *pool = &config->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++) {
            const struct hb_address *address = &pool->backends[b].address;

            hb_backend_key(key, pool->name, address);
            if (hb_ids_find(model->backend_ids, key) != HB_ID_NONE)
                continue;
            if (room > 0) {
                room--;
                continue;
            }
            hb_model_refuse_id(model, hb_address_print(address, text), pool->name, diff);
            return false;
        }
    }
    return true;
}

int hb_model_check(const struct hb_model *model, const struct hb_config *config,
                   struct hb_model_diff *diff)
{
    diff->error[0] = '\0';
    for (uint32_t p = 0; p < config->pools_count; p++) {
        if (!check_buckets(model, config, &config->pools[p], diff))
            return -EINVAL;
    }
    return check_room(model, config, diff) ? 0 : -ENOSPC;
}
