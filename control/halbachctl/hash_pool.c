/* SPDX-License-Identifier: BSD-3-Clause */
/* hash_pool.c: the backends that are compared, from a number, a list or a configuration. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "hash_input.h"
#include "hashing/ring.h"

#define WEIGHT_MAX 65535

void hb_hash_pool_free(struct hb_hash_pool *pool)
{
    free(pool->backends);
    free(pool->members);
    *pool = (struct hb_hash_pool){0};
}

static bool make_room(struct hb_hash_pool *pool, uint32_t count)
{
    struct hb_hash_backend *backends = reallocarray(pool->backends, count, sizeof(*backends));
    struct hb_table_member *members;
    uint32_t i;

    if (!backends)
        return false;
    pool->backends = backends;
    members = reallocarray(pool->members, count, sizeof(*members));
    if (!members)
        return false;
    pool->members = members;
    for (i = 0; i < pool->count; i++)
        members[i].identity = backends[i].identity;
    return true;
}

bool hb_hash_pool_add(struct hb_hash_pool *pool, const char *name, uint32_t weight,
                      const char *zone)
{
    struct hb_hash_backend *backend;

    /* Doubling at powers of two keeps large pools cheap to grow. */
    if ((pool->count & (pool->count - 1)) == 0 &&
        !make_room(pool, pool->count ? pool->count * 2 : 1))
        return false;
    backend = &pool->backends[pool->count];
    *backend = (struct hb_hash_backend){0};
    snprintf(backend->name, sizeof(backend->name), "%s", name);
    snprintf(backend->identity, sizeof(backend->identity), "%s", name);
    snprintf(backend->zone, sizeof(backend->zone), "%s", zone);
    pool->members[pool->count] = (struct hb_table_member){
        .identity = backend->identity,
        .weight = weight,
        .id = (uint16_t)(pool->count + 1),
        .bucket = pool->next_bucket++,
    };
    pool->count++;
    return true;
}

int hb_hash_pool_copy(const struct hb_ctl *ctl, const struct hb_hash_pool *from,
                      struct hb_hash_pool *to)
{
    uint32_t room = 1;

    *to = *from;
    to->backends = NULL;
    to->members = NULL;
    to->count = 0;
    while (room < from->count)
        room *= 2;
    if (!make_room(to, room))
        return hb_hash_no_memory(ctl);
    memcpy(to->backends, from->backends, from->count * sizeof(*to->backends));
    memcpy(to->members, from->members, from->count * sizeof(*to->members));
    to->count = from->count;
    for (uint32_t i = 0; i < to->count; i++)
        to->members[i].identity = to->backends[i].identity;
    return HB_EXIT_OK;
}

uint32_t hb_hash_pool_weighted(const struct hb_hash_pool *pool)
{
    uint32_t count = 0, i;

    for (i = 0; i < pool->count; i++)
        count += pool->members[i].weight > 0;
    return count;
}

struct hb_table_request hb_hash_request(const struct hb_hash_pool *pool,
                                        const struct hb_hash_choice *choice)
{
    return (struct hb_table_request){
        .members = pool->members,
        .count = pool->count,
        .slots = pool->table_size,
        .seed = pool->table_seed,
        .options = {.virtual_nodes = pool->virtual_nodes, .ketama = choice->ketama},
    };
}

/* ---- where they come from ---- */

static int number_pool(const struct hb_ctl *ctl, uint32_t count, struct hb_hash_pool *pool)
{
    uint32_t i;

    pool->numbered = true;
    for (i = 0; i < count; i++) {
        char name[16];

        snprintf(name, sizeof(name), "S%" PRIu32, i);
        if (!hb_hash_pool_add(pool, name, 1, ""))
            return hb_hash_no_memory(ctl);
    }
    return HB_EXIT_OK;
}

/* NAME [WEIGHT [ZONE]] */
static int read_line(const struct hb_ctl *ctl, const char *file, unsigned number, char *line,
                     struct hb_hash_pool *pool)
{
    static const char blanks[] = " \t\r\n";
    char *rest = NULL, *name, *weight, *zone;
    uint64_t value = 1;

    line[strcspn(line, "#")] = '\0';
    name = strtok_r(line, blanks, &rest);
    if (!name)
        return HB_EXIT_OK;
    weight = strtok_r(NULL, blanks, &rest);
    zone = strtok_r(NULL, blanks, &rest);
    if (strlen(name) >= HB_NAME_SIZE || (zone && strlen(zone) >= HB_NAME_SIZE) ||
        strtok_r(NULL, blanks, &rest) ||
        (weight && (strlen(weight) > 5 || weight[strspn(weight, "0123456789")] != '\0' ||
                    (value = strtoul(weight, NULL, 10)) > WEIGHT_MAX)))
        return hb_hash_refuse(ctl, HB_EXIT_FAILED,
                              "%s:%u: expected NAME [WEIGHT [ZONE]], with a weight from 0 to %d "
                              "and names of at most %d bytes",
                              file, number, WEIGHT_MAX, HB_NAME_SIZE - 1);
    if (pool->count == HB_BACKENDS_MAX)
        return hb_hash_refuse(ctl, HB_EXIT_FAILED, "%s:%u: more than %d backends", file, number,
                              HB_BACKENDS_MAX);
    if (!hb_hash_pool_add(pool, name, (uint32_t)value, zone ? zone : ""))
        return hb_hash_no_memory(ctl);
    return HB_EXIT_OK;
}

static int read_list(const struct hb_ctl *ctl, const char *name, struct hb_hash_pool *pool)
{
    FILE *file = fopen(name, "r");
    int status = HB_EXIT_OK;
    unsigned number = 0;
    size_t room = 0;
    char *line = NULL;

    if (!file)
        return hb_hash_refuse(ctl, HB_EXIT_FAILED,
                              "--backends %s: %s; give a number, a configuration (.yaml) or a list "
                              "of backends",
                              name, strerror(errno));
    while (status == HB_EXIT_OK && getline(&line, &room, file) >= 0)
        status = read_line(ctl, name, ++number, line, pool);
    if (status == HB_EXIT_OK && ferror(file))
        status = hb_hash_refuse(ctl, HB_EXIT_FAILED, "--backends %s: cannot be read", name);
    free(line);
    fclose(file);
    return status;
}

static void on_report(void *context, bool warning, const char *message)
{
    const struct hb_ctl *ctl = context;

    if (!warning)
        hb_hash_refuse(ctl, 0, "%s", message);
}

static int find_pool(const struct hb_ctl *ctl, const char *file, const struct hb_config *config,
                     const struct hb_pool_config **found)
{
    uint32_t i;

    if (!ctl->pool && config->pools_count > 1)
        return hb_hash_refuse(ctl, HB_EXIT_USAGE, "%s has %" PRIu32 " pools; choose one: --pool %s",
                              file, config->pools_count, config->pools[0].name);
    for (i = 0; i < config->pools_count; i++) {
        if (!ctl->pool || strcmp(config->pools[i].name, ctl->pool) == 0) {
            *found = &config->pools[i];
            return HB_EXIT_OK;
        }
    }
    return hb_hash_refuse(ctl, HB_EXIT_FAILED,
                          "%s has no pool '%s'; 'halbachctl config check %s' lists them", file,
                          ctl->pool ? ctl->pool : "", file);
}

static int copy_config(const struct hb_ctl *ctl, const struct hb_config *config,
                       const struct hb_pool_config *from, struct hb_hash_pool *pool)
{
    uint32_t i;

    pool->table_seed = config->table_seed;
    pool->table_size = from->table_size;
    if (from->options.virtual_nodes > 0)
        pool->virtual_nodes = from->options.virtual_nodes;
    for (i = 0; i < from->backends_count; i++) {
        const struct hb_backend_config *backend = &from->backends[i];
        char address[HB_ADDRESS_TEXT];

        if (!hb_hash_pool_add(pool, backend->name, backend->weight, backend->zone))
            return hb_hash_no_memory(ctl);
        snprintf(pool->backends[i].identity, sizeof(pool->backends[i].identity), "%s",
                 hb_address_print(&backend->address, address));
        if (backend->bucket != HB_BUCKET_NONE) /* then all have one, from 0 to n - 1 */
            pool->members[i].bucket = backend->bucket;
    }
    return HB_EXIT_OK;
}

static int read_config(const struct hb_ctl *ctl, const char *file, struct hb_hash_pool *pool)
{
    struct hb_config *config = hb_config_load(file, on_report, (void *)(uintptr_t)ctl);
    const struct hb_pool_config *from = NULL;
    int status;

    if (!config)
        return hb_hash_refuse(ctl, HB_EXIT_FAILED,
                              "%s is refused; a list of backends must not end in .yaml", file);
    status = find_pool(ctl, file, config, &from);
    if (status == HB_EXIT_OK)
        status = copy_config(ctl, config, from, pool);
    hb_config_free(config);
    return status;
}

static bool ends_in(const char *text, const char *end)
{
    return strlen(text) > strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

int hb_hash_pool_load(const struct hb_ctl *ctl, uint32_t preset, struct hb_hash_pool *pool)
{
    const char *text = ctl->hash.backends;
    uint64_t count = preset, seed = HB_KEY_SEED, value;
    int status = hb_hash_number(ctl, "seed", ctl->hash.seed, 0, UINT32_MAX, &seed);

    *pool = (struct hb_hash_pool){
        .table_size = HB_HASH_TABLE_SIZE,
        .table_seed = seed,
        .virtual_nodes = HB_RING_VIRTUAL_NODES,
    };
    if (status != HB_EXIT_OK)
        return status;
    if (!text || text[strspn(text, "0123456789")] == '\0') {
        status = hb_hash_number(ctl, "backends", text, 1, HB_BACKENDS_MAX, &count);
        if (status == HB_EXIT_OK)
            status = number_pool(ctl, (uint32_t)count, pool);
    } else {
        status = ends_in(text, ".yaml") || ends_in(text, ".yml") ? read_config(ctl, text, pool)
                                                                 : read_list(ctl, text, pool);
    }
    if (status == HB_EXIT_OK && hb_hash_pool_weighted(pool) == 0)
        status = hb_hash_refuse(ctl, HB_EXIT_FAILED,
                                "%s: no backend has a weight above 0; there is nothing to hash to",
                                text ? text : "--backends");
    value = pool->table_size;
    if (status == HB_EXIT_OK)
        status = hb_hash_number(ctl, "table-size", ctl->hash.table_size, 1, UINT32_MAX, &value);
    pool->table_size = (uint32_t)value;
    return status;
}

int hb_hash_pool_vnodes(const struct hb_ctl *ctl, struct hb_hash_pool *pool)
{
    uint64_t value = pool->virtual_nodes;
    int status =
        hb_hash_number(ctl, "vnodes", ctl->hash.vnodes, 1, HB_RING_VIRTUAL_NODES_MAX, &value);

    pool->virtual_nodes = (uint32_t)value;
    return status;
}
