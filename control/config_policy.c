/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_policy.c: the keys that say what happens when backends fail or come up, and when the whole
 * balancer goes out of service; and what must hold between them.
 *
 * A pool's backup pool. Its backends become members of the pool as well, marked as backups and
 * checked as the pool's own ones are: so they have ids, health and flows of this pool before they
 * are needed, and a flow that was set up on one stays there when the pool has recovered.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_internal.h"

#define FIELD(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define ROWS(rows)          .keys = (rows), .keys_count = sizeof(rows) / sizeof((rows)[0])

static const struct hb_config_choice belows[] = {
    {"rest", HB_BELOW_REST},
    {"all", HB_BELOW_ALL},
    {"backup", HB_BELOW_BACKUP},
    {"close", HB_BELOW_CLOSE},
    {NULL, 0},
};

/* clang-format off */
static const struct hb_config_key failure_keys[] = {
    {.name = "minimum", .type = HB_CONFIG_NUMBER, FIELD(struct hb_failure_config, minimum),
     .expected = "a whole number from 1 to 65535", .min = 1, .max = HB_BACKENDS_MAX, .preset = 1},
    {.name = "below", .type = HB_CONFIG_CHOICE, FIELD(struct hb_failure_config, below),
     .expected = "rest, all, backup or close", .choices = belows},
    {.name = "panic", .type = HB_CONFIG_FRACTION, FIELD(struct hb_failure_config, panic),
     .expected = "a number from 0 to 1, such as 0.5 for half of the backends", .max = 1000000},
    {.name = "backup", .type = HB_CONFIG_NAME, FIELD(struct hb_failure_config, backup),
     .expected = "the name of another pool"},
};

static const struct hb_config_key maintenance_keys[] = {
    {.name = "on_withdraw", .type = HB_CONFIG_COMMAND,
     FIELD(struct hb_maintenance_config, on_withdraw),
     .expected = "a shell command of at most 255 characters"},
    {.name = "on_announce", .type = HB_CONFIG_COMMAND,
     FIELD(struct hb_maintenance_config, on_announce),
     .expected = "a shell command of at most 255 characters"},
    {.name = "time_limit", .type = HB_CONFIG_DURATION,
     FIELD(struct hb_maintenance_config, time_limit_ms),
     .expected = "a time from 100ms to 5m, such as 10s", .min = 100, .max = 300000,
     .preset = 10000},
    {.name = "quiet", .type = HB_CONFIG_NUMBER, FIELD(struct hb_maintenance_config, quiet),
     .expected = "a count of packets a second from 1 to 1000000", .min = 1, .max = 1000000,
     .preset = 10},
};
/* clang-format on */

const struct hb_config_schema hb_config_failure_schema = {
    .what = "a mapping such as { minimum: 2, below: all }", ROWS(failure_keys)};
const struct hb_config_schema hb_config_maintenance_schema = {
    .what = "a mapping of on_withdraw, on_announce, time_limit and quiet", ROWS(maintenance_keys)};

/* --- rules --- */

static const char *path_of(char path[HB_CONFIG_PATH], uint32_t pool, const char *key)
{
    snprintf(path, HB_CONFIG_PATH, "pools[%u].failure.%s", pool, key);
    return path;
}

void hb_config_check_failure(struct hb_config_reader *reader, uint32_t pool_index)
{
    const struct hb_pool_config *pool = &reader->config->pools[pool_index];
    const struct hb_failure_config *failure = &pool->failure;
    bool backup = hb_config_find_place(reader, failure->backup) != NULL;
    char path[HB_CONFIG_PATH];

    if (failure->below == HB_BELOW_BACKUP && !backup)
        hb_config_complain(reader, hb_config_line_of(reader, &failure->below, pool->line),
                           path_of(path, pool_index, "below"),
                           "\"backup\", but no backup pool is named; add \"backup: POOL\"");
    if (failure->below != HB_BELOW_BACKUP && backup && hb_config_is_good(reader, &failure->below))
        hb_config_warn(reader, hb_config_line_of(reader, failure->backup, pool->line),
                       path_of(path, pool_index, "backup"),
                       "the backup pool is never used; add \"below: backup\"");
    if (backup && pool->algorithm == HB_ALGORITHM_JUMP)
        hb_config_complain(reader, hb_config_line_of(reader, failure->backup, pool->line),
                           path_of(path, pool_index, "backup"),
                           "jump numbers its backends, and a backup pool would need numbers too; "
                           "use another algorithm, or \"below: all\"");
    if (failure->minimum > pool->backends_count && pool->backends_count > 0)
        hb_config_complain(reader, hb_config_line_of(reader, &failure->minimum, pool->line),
                           path_of(path, pool_index, "minimum"),
                           "%" PRIu32 ", but the pool has %" PRIu32 " backends; lower it",
                           failure->minimum, pool->backends_count);
}

/* --- joining --- */

static bool has_address(const struct hb_pool_config *pool, const struct hb_address *address)
{
    for (uint32_t b = 0; b < pool->backends_count; b++) {
        if (hb_address_compare(&pool->backends[b].address, address) == 0)
            return true;
    }
    return false;
}

/* Those that are its own already are passed over. `own` is how many the backup has itself. */
static void join(struct hb_config_reader *reader, struct hb_pool_config *pool,
                 const struct hb_pool_config *backup, uint32_t own)
{
    size_t room = pool->backends_count + (size_t)own;
    struct hb_backend_config *grown = realloc(pool->backends, room * sizeof(*grown));
    uint32_t mine = pool->backends_count;

    if (grown == NULL) {
        reader->no_memory = true;
        return;
    }
    pool->backends = grown;
    for (uint32_t b = 0; b < own; b++) {
        if (has_address(&(struct hb_pool_config){.backends = grown, .backends_count = mine},
                        &backup->backends[b].address))
            continue;
        grown[pool->backends_count] = backup->backends[b];
        grown[pool->backends_count].backup = true;
        grown[pool->backends_count].bucket = HB_BUCKET_NONE;
        pool->backends_count++;
    }
}

/* The pool's backup, or NULL when it has none, or after a complaint. */
static const struct hb_pool_config *find_backup(struct hb_config_reader *reader,
                                                const struct hb_config_entry *pools,
                                                uint32_t pools_count, uint32_t pool_index)
{
    const struct hb_pool_config *pool = &reader->config->pools[pool_index];
    const char *name = pool->failure.backup;
    int line = hb_config_line_of(reader, name, pool->line);
    char path[HB_CONFIG_PATH];
    int found;

    if (name[0] == '\0')
        return NULL;
    found = hb_config_find_pool(pools, pools_count, name);
    if (found < 0)
        hb_config_complain(reader, line, path_of(path, pool_index, "backup"),
                           "no pool is named \"%s\"; name one of those under \"pools\"", name);
    else if ((uint32_t)found == pool_index)
        hb_config_complain(reader, line, path_of(path, pool_index, "backup"),
                           "a pool cannot be its own backup; name another one");
    return found < 0 || pool->failure.below != HB_BELOW_BACKUP ? NULL
                                                               : &reader->config->pools[found];
}

void hb_config_join_backups(struct hb_config_reader *reader, const struct hb_config_entry *pools,
                            uint32_t pools_count)
{
    struct hb_config *config = reader->config;
    const struct hb_pool_config **backup = calloc(config->pools_count + 1, sizeof(*backup));
    uint32_t *own = calloc(config->pools_count + 1, sizeof(*own));
    uint64_t total = 0;

    if (own == NULL || backup == NULL)
        reader->no_memory = true;
    for (uint32_t p = 0; !reader->no_memory && p < config->pools_count; p++) {
        own[p] = config->pools[p].backends_count;
        backup[p] = find_backup(reader, pools, pools_count, p);
    }
    for (uint32_t p = 0; !reader->no_memory && reader->errors == 0 && p < config->pools_count;
         p++) {
        if (backup[p] != NULL)
            join(reader, &config->pools[p], backup[p], own[backup[p] - config->pools]);
        total += config->pools[p].backends_count;
    }
    if (total > HB_BACKENDS_MAX)
        hb_config_complain(reader, 0, "pools",
                           "%" PRIu64 " backends in all with those of backup pools, but the limit "
                           "is %d; remove some",
                           total, HB_BACKENDS_MAX);
    free(backup);
    free(own);
}
