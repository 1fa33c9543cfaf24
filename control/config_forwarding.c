/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_forwarding.c: how a pool's packets get to its backends: the keys, and what must hold
 * between them.
 *
 * L3DSR has one number for a VIP at a backend, so a pool that forwards by it serves one VIP, whose
 * family is that of its backends, and no other pool has the same number for another VIP at one of
 * them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_internal.h"

#define ROWS(rows) .keys = (rows), .keys_count = sizeof(rows) / sizeof((rows)[0])
#define FIELD(member)                                                                              \
    .offset = offsetof(struct hb_forwarding_options, member),                                      \
    .size = sizeof(((struct hb_forwarding_options *)0)->member)

const struct hb_config_choice hb_config_forwardings[] = {
    {"ipip", HB_FORWARDING_IPIP},
    {"gue", HB_FORWARDING_GUE},
    {"gre", HB_FORWARDING_GRE},
    {"vxlan", HB_FORWARDING_VXLAN},
    {"l2", HB_FORWARDING_L2},
    {"l3dsr", HB_FORWARDING_L3DSR},
    {"nat", HB_FORWARDING_NAT},
    {"full_nat", HB_FORWARDING_FULL_NAT},
    {NULL, 0},
};

const struct hb_config_choice hb_config_fragments[] = {
    {"drop", 0},
    {"inner", HB_REWRITE_FRAGMENT_INNER},
    {"outer", HB_REWRITE_FRAGMENT_OUTER},
    {NULL, 0},
};

/* clang-format off */
#define UDP_KEYS(mode, preset_port) \
    {.name = "port", .type = HB_CONFIG_NUMBER, FIELD(mode.port), \
     .expected = "a port from 1 to 65535", .min = 1, .max = 65535, .preset = (preset_port)}, \
    {.name = "checksum", .type = HB_CONFIG_BOOLEAN, FIELD(mode.checksum), \
     .expected = "true or false"}, \
    {.name = "zero_checksum6", .type = HB_CONFIG_BOOLEAN, FIELD(mode.zero_checksum6), \
     .expected = "true or false"}

static const struct hb_config_key gue_keys[] = {
    UDP_KEYS(gue, HB_GUE_PORT),
    {.name = "variant", .type = HB_CONFIG_NUMBER, FIELD(gue_variant),
     .expected = "0 (with the GUE header) or 1 (without)", .max = 1},
};

static const struct hb_config_key vxlan_keys[] = {
    UDP_KEYS(vxlan, HB_VXLAN_PORT),
    {.name = "vni", .type = HB_CONFIG_NUMBER, FIELD(vxlan_vni),
     .expected = "a network identifier from 1 to 16777215", .min = 1, .max = 16777215,
     .required = true},
    {.name = "mac", .type = HB_CONFIG_MAC, FIELD(vxlan_mac),
     .expected = "the MAC address of the backends' VXLAN interfaces, such as 02:00:00:00:00:01"},
    {.name = "source_mac", .type = HB_CONFIG_MAC, FIELD(vxlan_source_mac),
     .expected = "a MAC address such as 02:00:00:00:00:01"},
};

static const struct hb_config_key l3dsr_keys[] = {
    {.name = "dscp", .type = HB_CONFIG_NUMBER, FIELD(dscp),
     .expected = "a DSCP from 1 to 63", .min = 1, .max = 63, .required = true},
};

const struct hb_config_schema hb_config_gue_schema = {
    .what = "a mapping such as { port: 6080, variant: 0 }", ROWS(gue_keys)};
const struct hb_config_schema hb_config_vxlan_schema = {
    .what = "a mapping such as { vni: 100 }", ROWS(vxlan_keys)};
const struct hb_config_schema hb_config_l3dsr_schema = {
    .what = "a mapping such as { dscp: 10 }", ROWS(l3dsr_keys)};
/* clang-format on */

/* The first line that a key of a mode stands at, or 0. */
static int line_of_keys(const struct hb_config_reader *reader,
                        const struct hb_config_schema *schema,
                        const struct hb_forwarding_options *options)
{
    for (uint32_t i = 0; i < schema->keys_count; i++) {
        const void *field = (const uint8_t *)options + schema->keys[i].offset;
        const struct hb_config_place *place = hb_config_find_place(reader, field);

        if (place != NULL)
            return place->line;
    }
    return 0;
}

/* Keys of another mode than the pool's say something that will not happen. */
static void check_keys(struct hb_config_reader *reader, uint32_t index,
                       const struct hb_config_schema *schema, enum hb_forwarding mode)
{
    const struct hb_pool_config *pool = &reader->config->pools[index];
    int line = line_of_keys(reader, schema, &pool->encap);
    const char *name = hb_forwarding_name(mode);
    bool needed = mode != HB_FORWARDING_GUE;
    char path[HB_CONFIG_PATH];

    snprintf(path, sizeof(path), "pools[%u].%s", index, name);
    if (line != 0 && pool->forwarding != mode)
        hb_config_complain(reader, line, path,
                           "the pool forwards by %s; remove it, or set \"forwarding: %s\"",
                           hb_forwarding_name(pool->forwarding), name);
    else if (line == 0 && pool->forwarding == mode && needed)
        hb_config_complain(reader, hb_config_line_of(reader, &pool->forwarding, pool->line), path,
                           "\"forwarding: %s\" needs it; expected %s", name, schema->what);
}

static void check_pool(struct hb_config_reader *reader, uint32_t index)
{
    struct hb_pool_config *pool = &reader->config->pools[index];
    char path[HB_CONFIG_PATH];

    if (!hb_config_is_good(reader, &pool->forwarding))
        return;
    check_keys(reader, index, &hb_config_gue_schema, HB_FORWARDING_GUE);
    check_keys(reader, index, &hb_config_vxlan_schema, HB_FORWARDING_VXLAN);
    check_keys(reader, index, &hb_config_l3dsr_schema, HB_FORWARDING_L3DSR);
    if (pool->encap.fragment == HB_REWRITE_FRAGMENT_OUTER &&
        !hb_forwarding_is_tunnel(pool->forwarding)) {
        snprintf(path, sizeof(path), "pools[%u].fragment", index);
        hb_config_complain(reader, hb_config_line_of(reader, &pool->encap.fragment, pool->line),
                           path, "\"outer\", but %s has no outer packet; expected drop or inner",
                           hb_forwarding_name(pool->forwarding));
    }
    if (pool->forwarding == HB_FORWARDING_GUE && pool->encap.gue_variant == 1)
        pool->forwarding = HB_FORWARDING_GUE1;
}

/* ---- the prefix that outer sources are taken from (BL-08) ---- */

static void check_outside(struct hb_config_reader *reader, const struct hb_address_prefix *prefix,
                          const struct hb_address *address, const char *what, int line)
{
    char text[HB_ADDRESS_TEXT], prefix_text[HB_ADDRESS_PREFIX_TEXT];

    if (!hb_address_prefix_holds(prefix, address))
        return;
    hb_config_complain(
        reader, hb_config_line_of(reader, prefix, 0),
        prefix->address.family == HB_FAMILY_IPV4 ? "tunnel.source_prefix" : "tunnel.source_prefix6",
        "%s holds %s at line %d, which is %s; use a prefix that nothing else is in",
        hb_address_prefix_print(prefix, prefix_text), hb_address_print(address, text), line, what);
}

static void check_prefix(struct hb_config_reader *reader, const struct hb_address_prefix *prefix)
{
    const struct hb_config *config = reader->config;

    if (prefix->address.family == 0)
        return;
    check_outside(reader, prefix, &config->tunnel_source, "the tunnel source",
                  hb_config_line_of(reader, &config->tunnel_source, 0));
    check_outside(reader, prefix, &config->tunnel_source6, "the tunnel source",
                  hb_config_line_of(reader, &config->tunnel_source6, 0));
    for (uint32_t s = 0; s < config->services_count; s++)
        check_outside(reader, prefix, &config->services[s].vip, "a VIP",
                      hb_config_line_of(reader, &config->services[s].vip, 0));
    for (uint32_t p = 0; p < config->pools_count; p++) {
        for (uint32_t b = 0; b < config->pools[p].backends_count; b++) {
            const struct hb_backend_config *backend = &config->pools[p].backends[b];

            check_outside(reader, prefix, &backend->address, "a backend", backend->line);
        }
    }
}

/* ---- L3DSR: one number, one VIP ---- */

/* The pool of a service if it forwards by L3DSR, else NULL. */
static const struct hb_pool_config *l3dsr_pool(const struct hb_config_reader *reader,
                                               const struct hb_service_config *service)
{
    const struct hb_config *config = reader->config;
    const struct hb_config_place *place = hb_config_find_place(reader, &service->pool);
    const struct hb_pool_config *pool;

    if (place == NULL || service->vip.family == 0 || service->pool >= config->pools_count)
        return NULL;
    pool = &config->pools[service->pool];
    if (strcmp(place->text, pool->name) != 0 || pool->forwarding != HB_FORWARDING_L3DSR)
        return NULL;
    return pool;
}

/* A backend of an L3DSR pool, and the VIP that its number stands for. */
struct mark {
    const struct hb_backend_config *backend;
    const struct hb_pool_config *pool;
    const struct hb_address *vip;
};

static int compare_marks(const void *left, const void *right)
{
    const struct mark *a = left, *b = right;
    int order = hb_address_compare(&a->backend->address, &b->backend->address);

    if (order == 0)
        order = a->pool->encap.dscp - b->pool->encap.dscp;
    return order != 0 ? order : a->backend->line - b->backend->line;
}

static void check_family(struct hb_config_reader *reader, uint32_t index,
                         const struct hb_pool_config *pool)
{
    const struct hb_service_config *service = &reader->config->services[index];
    char path[HB_CONFIG_PATH], text[HB_ADDRESS_TEXT];

    snprintf(path, sizeof(path), "services[%u].vip", index);
    for (uint32_t b = 0; b < pool->backends_count; b++) {
        const struct hb_backend_config *backend = &pool->backends[b];

        if (backend->address.family == 0 || backend->address.family == service->vip.family)
            continue;
        hb_config_complain(reader, hb_config_line_of(reader, &service->vip, service->line), path,
                           "it is IPv%u, but %s of its l3dsr pool %s is %s, and l3dsr cannot "
                           "change the family; make a pool for each family",
                           service->vip.family, backend->name, pool->name,
                           hb_address_print(&backend->address, text));
        return;
    }
}

/* Fills `first` (by pool) with each L3DSR pool's VIP; complains about a second one. */
static void find_vips(struct hb_config_reader *reader, const struct hb_address **first)
{
    const struct hb_config *config = reader->config;
    char path[HB_CONFIG_PATH], text[HB_ADDRESS_TEXT];

    for (uint32_t s = 0; s < config->services_count; s++) {
        const struct hb_service_config *service = &config->services[s];
        const struct hb_pool_config *pool = l3dsr_pool(reader, service);

        if (pool == NULL)
            continue;
        check_family(reader, s, pool);
        if (first[service->pool] == NULL)
            first[service->pool] = &service->vip;
        if (hb_address_compare(first[service->pool], &service->vip) == 0)
            continue;
        snprintf(path, sizeof(path), "services[%u].vip", s);
        hb_config_complain(reader, hb_config_line_of(reader, &service->vip, service->line), path,
                           "its l3dsr pool %s serves %s already, and one DSCP stands for one VIP; "
                           "make a pool with another DSCP",
                           pool->name, hb_address_print(first[service->pool], text));
    }
}

static uint32_t list_marks(const struct hb_config *config, const struct hb_address *const *first,
                           struct mark *marks)
{
    uint32_t count = 0;

    for (uint32_t p = 0; p < config->pools_count; p++) {
        const struct hb_pool_config *pool = &config->pools[p];

        for (uint32_t b = 0; first[p] != NULL && b < pool->backends_count; b++) {
            if (marks != NULL)
                marks[count] = (struct mark){&pool->backends[b], pool, first[p]};
            count++;
        }
    }
    return count;
}

static void check_marks(struct hb_config_reader *reader, struct mark *marks, uint32_t count)
{
    char text[HB_ADDRESS_TEXT];

    qsort(marks, count, sizeof(*marks), compare_marks);
    for (uint32_t i = 1; i < count; i++) {
        const struct mark *before = &marks[i - 1], *mark = &marks[i];

        if (mark->backend->address.family == 0 ||
            hb_address_compare(&before->backend->address, &mark->backend->address) != 0 ||
            before->pool->encap.dscp != mark->pool->encap.dscp ||
            hb_address_compare(before->vip, mark->vip) == 0)
            continue;
        hb_config_complain(reader, mark->backend->line, "pools",
                           "%s is in the l3dsr pools %s and %s, whose DSCP %u stands for two VIPs; "
                           "give one of them another",
                           hb_address_print(&mark->backend->address, text), before->pool->name,
                           mark->pool->name, mark->pool->encap.dscp);
    }
}

static void check_l3dsr(struct hb_config_reader *reader)
{
    const struct hb_config *config = reader->config;
    const struct hb_address **first = calloc(config->pools_count + 1, sizeof(*first));
    struct mark *marks = NULL;
    uint32_t count;

    if (first == NULL) {
        reader->no_memory = true;
        return;
    }
    find_vips(reader, first);
    count = list_marks(config, first, NULL);
    marks = calloc(count + 1, sizeof(*marks));
    if (marks == NULL)
        reader->no_memory = true;
    else
        check_marks(reader, marks, list_marks(config, first, marks));
    free(marks);
    free(first);
}

void hb_config_check_forwarding(struct hb_config_reader *reader)
{
    for (uint32_t i = 0; i < reader->config->pools_count; i++)
        check_pool(reader, i);
    check_prefix(reader, &reader->config->tunnel_prefix);
    check_prefix(reader, &reader->config->tunnel_prefix6);
    check_l3dsr(reader);
}
