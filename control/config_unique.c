/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_unique.c: what may be in a configuration only once: names; the VIP, protocol and ports of
 * a service (config_services.c has these); the address of a backend in its pool.
 *
 * Duplicates are found by sorting, so a file of 65,535 backends is checked as readily as one of
 * three. Each complaint names the lines of both.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_internal.h"

static int compare_keys(const struct hb_config_entry *a, const struct hb_config_entry *b)
{
    return a->name != NULL ? strcmp(a->name, b->name) : hb_address_compare(a->address, b->address);
}

int hb_config_compare_entries(const void *left, const void *right)
{
    const struct hb_config_entry *a = left, *b = right;
    int order = compare_keys(a, b);

    if (order == 0 && a->pool != b->pool)
        order = a->pool < b->pool ? -1 : 1;
    if (order == 0)
        order = a->index < b->index ? -1 : a->index > b->index;
    return order;
}

typedef void (*duplicate_report)(struct hb_config_reader *reader,
                                 const struct hb_config_entry *first,
                                 const struct hb_config_entry *again);

/* Sorts and reports each entry whose key an earlier one has. */
static void find_duplicates(struct hb_config_reader *reader, struct hb_config_entry *entries,
                            uint32_t count, duplicate_report report)
{
    const struct hb_config_entry *first = entries;

    qsort(entries, count, sizeof(*entries), hb_config_compare_entries);
    for (uint32_t i = 1; i < count; i++) {
        if (compare_keys(first, &entries[i]) == 0)
            report(reader, first, &entries[i]);
        else
            first = &entries[i];
    }
}

static void report_service_name(struct hb_config_reader *reader,
                                const struct hb_config_entry *first,
                                const struct hb_config_entry *again)
{
    char path[HB_CONFIG_PATH];

    snprintf(path, sizeof(path), "services[%u].name", again->index);
    hb_config_complain(reader, again->line, path,
                       "\"%s\" is the name of services[%u] at line %d already; choose another",
                       again->name, first->index, first->line);
}

static void check_service_duplicates(struct hb_config_reader *reader,
                                     struct hb_config_entry *entries)
{
    const struct hb_config *config = reader->config;
    uint32_t names = 0;

    for (uint32_t i = 0; i < config->services_count; i++) {
        const struct hb_service_config *service = &config->services[i];

        if (service->name[0] != '\0')
            entries[names++] = (struct hb_config_entry){
                .name = service->name,
                .index = i,
                .line = hb_config_line_of(reader, service->name, service->line),
            };
    }
    find_duplicates(reader, entries, names, report_service_name);
    hb_config_check_service_keys(reader);
}

static void report_pool_name(struct hb_config_reader *reader, const struct hb_config_entry *first,
                             const struct hb_config_entry *again)
{
    char path[HB_CONFIG_PATH];

    snprintf(path, sizeof(path), "pools[%u].name", again->index);
    hb_config_complain(reader, again->line, path,
                       "\"%s\" is the name of pools[%u] at line %d already; choose another",
                       again->name, first->index, first->line);
}

static void check_pool_names(struct hb_config_reader *reader, struct hb_config_entry *entries)
{
    const struct hb_config *config = reader->config;
    uint32_t count = 0;

    for (uint32_t i = 0; i < config->pools_count; i++) {
        const struct hb_pool_config *pool = &config->pools[i];

        if (pool->name[0] != '\0')
            entries[count++] = (struct hb_config_entry){
                .name = pool->name,
                .index = i,
                .line = hb_config_line_of(reader, pool->name, pool->line),
            };
    }
    find_duplicates(reader, entries, count, report_pool_name);
}

static void report_backend_name(struct hb_config_reader *reader,
                                const struct hb_config_entry *first,
                                const struct hb_config_entry *again)
{
    char path[HB_CONFIG_PATH];

    snprintf(path, sizeof(path), "pools[%u].backends[%u].name", again->pool, again->index);
    hb_config_complain(reader, again->line, path,
                       "\"%s\" is the name of another backend of this pool at line %d already; "
                       "choose another",
                       again->name, first->line);
}

static void report_backend_address(struct hb_config_reader *reader,
                                   const struct hb_config_entry *first,
                                   const struct hb_config_entry *again)
{
    const struct hb_backend_config *backends = reader->config->pools[again->pool].backends;
    char path[HB_CONFIG_PATH], text[HB_ADDRESS_TEXT];

    snprintf(path, sizeof(path), "pools[%u].backends[%u].address", again->pool, again->index);
    hb_config_complain(reader, again->line, path,
                       "%s is the address of backend \"%s\" at line %d already; with direct server "
                       "return a port cannot tell two backends apart, so remove one of them",
                       hb_address_print(again->address, text), backends[first->index].name,
                       first->line);
}

static void check_backend_duplicates(struct hb_config_reader *reader, uint32_t pool_index,
                                     struct hb_config_entry *entries)
{
    const struct hb_pool_config *pool = &reader->config->pools[pool_index];
    uint32_t names = 0, addresses = 0;

    for (uint32_t i = 0; i < pool->backends_count; i++) {
        const struct hb_backend_config *backend = &pool->backends[i];

        if (backend->name[0] != '\0')
            entries[names++] = (struct hb_config_entry){
                .name = backend->name,
                .pool = pool_index,
                .index = i,
                .line = hb_config_line_of(reader, backend->name, backend->line),
            };
    }
    find_duplicates(reader, entries, names, report_backend_name);
    for (uint32_t i = 0; i < pool->backends_count; i++) {
        const struct hb_backend_config *backend = &pool->backends[i];

        if (backend->address.family != 0)
            entries[addresses++] = (struct hb_config_entry){
                .address = &backend->address,
                .pool = pool_index,
                .index = i,
                .line = hb_config_line_of(reader, &backend->address, backend->line),
            };
    }
    find_duplicates(reader, entries, addresses, report_backend_address);
}

void hb_config_check_unique(struct hb_config_reader *reader, struct hb_config_entry *entries)
{
    check_service_duplicates(reader, entries);
    check_pool_names(reader, entries);
    for (uint32_t i = 0; i < reader->config->pools_count; i++)
        check_backend_duplicates(reader, i, entries);
}
