/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_rules.c: what must hold between keys, after each of them was read by itself.
 *
 * Fields that the schema refused are empty here and are passed over.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_internal.h"

int hb_config_find_pool(const struct hb_config_entry *pools, uint32_t count, const char *name)
{
    uint32_t low = 0, high = count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        int order = strcmp(pools[middle].name, name);

        if (order == 0)
            return (int)pools[middle].index;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

static void complain_unknown_pool(struct hb_config_reader *reader, uint32_t service,
                                  const struct hb_config_place *place)
{
    const struct hb_config *config = reader->config;
    char path[HB_CONFIG_PATH];

    snprintf(path, sizeof(path), "services[%u].pool", service);
    /* Comparing with every pool is only for people, who mend a few at a time. */
    for (uint32_t i = 0; i < config->pools_count && reader->errors < 20; i++) {
        if (config->pools[i].name[0] == '\0' ||
            !hb_config_is_close(config->pools[i].name, place->text))
            continue;
        hb_config_complain(reader, place->line, path,
                           "no pool is named \"%s\"; did you mean \"%s\"?", place->text,
                           config->pools[i].name);
        return;
    }
    hb_config_complain(reader, place->line, path,
                       "no pool is named \"%s\"; add it under \"pools\" or name one of those",
                       place->text);
}

/* By name. Returns how many have one. */
static uint32_t sort_pools(const struct hb_config *config, struct hb_config_entry *pools)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < config->pools_count; i++) {
        if (config->pools[i].name[0] != '\0')
            pools[count++] = (struct hb_config_entry){.name = config->pools[i].name, .index = i};
    }
    qsort(pools, count, sizeof(*pools), hb_config_compare_entries);
    return count;
}

/* Gives every service its pool's index, and every pool its first service. */
static void resolve_pools(struct hb_config_reader *reader, const struct hb_config_entry *pools,
                          uint32_t pools_count, uint32_t *first_service)
{
    struct hb_config *config = reader->config;
    bool all_found = config->services_count > 0;

    for (uint32_t i = 0; i < config->pools_count; i++)
        first_service[i] = HB_CONFIG_NO_SERVICE;
    for (uint32_t i = 0; i < config->services_count; i++) {
        struct hb_service_config *service = &config->services[i];
        const struct hb_config_place *place = hb_config_find_place(reader, &service->pool);
        bool named = place != NULL && place->good;
        int pool = named ? hb_config_find_pool(pools, pools_count, place->text) : -1;

        if (pool < 0) {
            if (named)
                complain_unknown_pool(reader, i, place);
            all_found = false;
            continue;
        }
        service->pool = (uint32_t)pool;
        if (first_service[pool] == HB_CONFIG_NO_SERVICE)
            first_service[pool] = i;
    }
    for (uint32_t i = 0; !all_found && i < config->pools_count; i++) {
        if (first_service[i] == HB_CONFIG_NO_SERVICE)
            first_service[i] = HB_CONFIG_UNKNOWN_SERVICE;
    }
}

static void check_weights(struct hb_config_reader *reader, uint32_t pool_index)
{
    const struct hb_pool_config *pool = &reader->config->pools[pool_index];
    char path[HB_CONFIG_PATH];

    for (uint32_t i = 0; i < pool->backends_count; i++) {
        if (pool->backends[i].weight > 0)
            return;
    }
    if (pool->backends_count == 0)
        return;
    snprintf(path, sizeof(path), "pools[%u]", pool_index);
    hb_config_warn(reader, pool->line, path,
                   "every backend has weight 0, so new flows are dropped; give one a weight");
}

static void check_pool(struct hb_config_reader *reader, uint32_t pool_index, uint32_t service)
{
    const struct hb_pool_config *pool = &reader->config->pools[pool_index];
    char path[HB_CONFIG_PATH];

    hb_config_check_hashing(reader, pool_index);
    hb_config_check_failure(reader, pool_index);
    check_weights(reader, pool_index);
    hb_config_check_health(reader, pool_index, service);
    snprintf(path, sizeof(path), "pools[%u]", pool_index);
    if (service == HB_CONFIG_NO_SERVICE && !hb_config_is_backup(reader->config, pool->name))
        hb_config_warn(reader, pool->line, path, "no service uses it");
}

/* Bounded load places flows off their slots: only an entry knows where. */
static void check_tracking(struct hb_config_reader *reader, uint32_t index)
{
    static const char *const names[HB_TRACKINGS] = {"all", "changed", "off"};
    const struct hb_config *config = reader->config;
    const struct hb_service_config *service = &config->services[index];
    const struct hb_config_place *pool = hb_config_find_place(reader, &service->pool);
    char path[HB_CONFIG_PATH];

    if (service->tracking == HB_TRACKING_ALL || service->pool >= config->pools_count ||
        pool == NULL || strcmp(pool->text, config->pools[service->pool].name) != 0 ||
        config->pools[service->pool].bounded_load == 0)
        return;
    snprintf(path, sizeof(path), "services[%u].tracking", index);
    hb_config_complain(reader, hb_config_line_of(reader, &service->tracking, service->line), path,
                       "\"%s\", but its pool %s has bounded_load, which places flows off their "
                       "slots and so needs \"all\"; change one of them",
                       names[service->tracking], config->pools[service->pool].name);
}

/* ---- addresses with two meanings ---- */

/* Reports `address` at `line` if it is one of the balancer's own tunnel sources. */
static void check_not_source(struct hb_config_reader *reader, const struct hb_address *address,
                             int line, const char *path)
{
    const struct hb_config *config = reader->config;
    const struct hb_address *sources[] = {&config->tunnel_source, &config->tunnel_source6};
    char text[HB_ADDRESS_TEXT];

    for (int i = 0; i < 2; i++) {
        if (address->family == 0 || hb_address_compare(address, sources[i]) != 0)
            continue;
        hb_config_complain(reader, line, path,
                           "%s is the tunnel source at line %d, the balancer's own address; use "
                           "another",
                           hb_address_print(address, text),
                           hb_config_line_of(reader, sources[i], 0));
    }
}

/* `entries` has room for every backend of the file. */
static void check_addresses(struct hb_config_reader *reader, struct hb_config_entry *entries)
{
    const struct hb_config *config = reader->config;
    uint32_t count = 0;

    for (uint32_t p = 0; p < config->pools_count; p++) {
        const struct hb_pool_config *pool = &config->pools[p];

        for (uint32_t i = 0; i < pool->backends_count; i++) {
            const struct hb_backend_config *backend = &pool->backends[i];
            char path[HB_CONFIG_PATH];
            int line;

            if (backend->address.family == 0)
                continue;
            line = hb_config_line_of(reader, &backend->address, backend->line);
            snprintf(path, sizeof(path), "pools[%u].backends[%u].address", p, i);
            check_not_source(reader, &backend->address, line, path);
            entries[count++] = (struct hb_config_entry){
                .address = &backend->address, .pool = p, .index = i, .line = line};
        }
    }
    qsort(entries, count, sizeof(*entries), hb_config_compare_entries);
    hb_config_check_vips(reader, entries, count);
    hb_config_check_nat_sources(reader, entries, count);
}

static uint64_t count_backends(const struct hb_config *config)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < config->pools_count; i++)
        total += config->pools[i].backends_count;
    return total;
}

/* With a seed that is known anybody can aim flows at a backend. */
static void check_seed(struct hb_config_reader *reader)
{
    static const char *const examples[] = {
        "change-me-to-something-secret",                /* README.md */
        "replace-this-with-the-output-of-openssl-rand", /* docs/halbach.yaml */
    };
    const char *seed = reader->config->seed;

    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        if (strcmp(seed, examples[i]) == 0)
            hb_config_warn(reader, hb_config_line_of(reader, seed, 1), "seed",
                           "it is the example of the documentation, which everybody knows; take "
                           "the output of 'openssl rand -hex 16'");
    }
}

void hb_config_apply_rules(struct hb_config_reader *reader)
{
    const struct hb_config *config = reader->config;
    uint64_t backends = count_backends(config);
    uint64_t room = backends + config->pools_count + config->services_count + 1;
    struct hb_config_entry *pools = calloc(config->pools_count + 1, sizeof(*pools));
    uint32_t *first_service = calloc(config->pools_count + 1, sizeof(*first_service));
    struct hb_config_entry *entries = calloc(room, sizeof(*entries));
    uint32_t names;

    if (pools == NULL || first_service == NULL || entries == NULL) {
        reader->no_memory = true;
        goto free_all;
    }
    if (backends > HB_BACKENDS_MAX)
        hb_config_complain(reader, 0, "pools",
                           "%" PRIu64 " backends in all, but the limit is %d; remove some",
                           backends, HB_BACKENDS_MAX);
    check_seed(reader);
    hb_config_check_unique(reader, entries);
    names = sort_pools(config, pools);
    resolve_pools(reader, pools, names, first_service);
    for (uint32_t i = 0; i < config->pools_count; i++)
        check_pool(reader, i, first_service[i]);
    for (uint32_t i = 0; i < config->services_count; i++) {
        check_tracking(reader, i);
        hb_config_check_service(reader, i);
        hb_config_check_mss(reader, i);
    }
    hb_config_check_lists(reader);
    check_addresses(reader, entries);
    hb_config_join_backups(reader, pools, names);
    for (uint32_t i = 0; i < config->pools_count; i++)
        hb_config_check_server_ids(reader, i);
    hb_config_check_forwarding(reader);
    hb_config_check_nat(reader);
free_all:
    free(entries);
    free(first_service);
    free(pools);
}
