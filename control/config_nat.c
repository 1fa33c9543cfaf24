/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_nat.c: the keys of NAT and full NAT, and what must hold between them.
 *
 *     forwarding: full_nat
 *     nat: { port: 8080, sources: [198.51.100.64/28], ports: 1024-65535, client_address: proxy_v2 }
 *
 * With NAT an answer tells by the backend's address and port which service it is of. So no two
 * services may share both, which is complained about here with what can be done.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_internal.h"
#include "config_nat.h"

#define FIELD(member)                                                                              \
    .offset = offsetof(struct hb_nat_config, member),                                              \
    .size = sizeof(((struct hb_nat_config *)0)->member)

static bool complain_node(struct hb_config_reader *reader, const yaml_node_t *node,
                          const char *path, const char *expected)
{
    char quoted[HB_CONFIG_QUOTED];

    hb_config_complain(reader, (int)node->start_mark.line + 1, path, "expected %s, found %s%s%s",
                       expected, node->type == YAML_SCALAR_NODE ? "\"" : "a list or mapping",
                       node->type == YAML_SCALAR_NODE
                           ? hb_config_quote((const char *)node->data.scalar.value, quoted)
                           : "",
                       node->type == YAML_SCALAR_NODE ? "\"" : "");
    return false;
}

static bool read_small(const char *text, char end, uint32_t max, uint32_t *value, const char **rest)
{
    char *stop;
    unsigned long number;

    if (*text < '0' || *text > '9' || (text[0] == '0' && text[1] != end && text[1] != '\0'))
        return false;
    number = strtoul(text, &stop, 10);
    if (*stop != end || number > max)
        return false;
    *value = (uint32_t)number;
    *rest = stop;
    return true;
}

static bool read_prefix(const char *text, struct hb_nat_prefix *prefix)
{
    const char *slash = strchr(text, '/'), *rest;
    char address[HB_ADDRESS_TEXT];
    uint32_t length, bits;

    if (slash != NULL && (size_t)(slash - text) >= sizeof(address))
        return false;
    snprintf(address, sizeof(address), "%.*s", slash ? (int)(slash - text) : HB_ADDRESS_TEXT - 1,
             text);
    if (!hb_address_parse(address, &prefix->address))
        return false;
    bits = hb_address_bits(prefix->address.family);
    length = bits;
    if (slash != NULL && !read_small(slash + 1, '\0', bits, &length, &rest))
        return false;
    prefix->length = (uint8_t)length;
    for (uint32_t bit = length; bit < bits; bit++)
        if (prefix->address.bytes[bit / 8] >> (7 - bit % 8) & 1)
            return false;
    return bits - length <= HB_NAT_PREFIX_BITS;
}

static bool read_sources(struct hb_config_reader *reader, const struct hb_config_key *key,
                         const yaml_node_t *node, const char *path, void *object)
{
    struct hb_nat_sources *sources = (void *)((uint8_t *)object + key->offset);
    const yaml_node_item_t *item;

    if (node->type != YAML_SEQUENCE_NODE)
        return complain_node(reader, node, path, key->expected);
    for (item = node->data.sequence.items.start; item < node->data.sequence.items.top; item++) {
        const yaml_node_t *one = yaml_document_get_node(reader->document, *item);

        if (sources->count == HB_NAT_PREFIXES_MAX) {
            hb_config_complain(reader, (int)one->start_mark.line + 1, path,
                               "more than %d prefixes; join some", HB_NAT_PREFIXES_MAX);
            return false;
        }
        if (one->type != YAML_SCALAR_NODE ||
            !read_prefix((const char *)one->data.scalar.value, &sources->prefix[sources->count]))
            return complain_node(reader, one, path,
                                 "an address or a prefix of up to 1024 addresses, the bits behind "
                                 "it zero, such as 198.51.100.64/28");
        if (!hb_config_check_unicast(reader, (int)one->start_mark.line + 1, path,
                                     &sources->prefix[sources->count].address))
            return false;
        sources->count++;
    }
    return true;
}

static bool read_ports(struct hb_config_reader *reader, const struct hb_config_key *key,
                       const yaml_node_t *node, const char *path, void *field)
{
    struct hb_nat_ports *ports = field;
    const char *text, *rest;
    uint32_t first, last;

    if (node->type != YAML_SCALAR_NODE)
        return complain_node(reader, node, path, key->expected);
    text = (const char *)node->data.scalar.value;
    if (!read_small(text, '-', 65535, &first, &rest) ||
        !read_small(rest + 1, '\0', 65535, &last, &rest) || first == 0 || last < first)
        return complain_node(reader, node, path, key->expected);
    *ports = (struct hb_nat_ports){(uint16_t)first, (uint16_t)last};
    return true;
}

static const struct hb_config_choice client_addresses[] = {
    {"none", HB_CLIENT_NOT_TOLD},
    {"proxy_v2", HB_CLIENT_BY_PROXY_V2},
    {"tcp_option", HB_CLIENT_BY_OPTION},
    {"tcp_option_28", HB_CLIENT_BY_OPTION_28},
    {NULL, 0},
};

static const struct hb_config_key nat_keys[] = {
    {.name = "port",
     .type = HB_CONFIG_NUMBER,
     FIELD(port),
     .expected = "the backends' port, from 1 to 65535",
     .min = 1,
     .max = 65535},
    {.name = "sources",
     .type = HB_CONFIG_CUSTOM,
     FIELD(sources),
     .read = read_sources,
     .expected = "a list of addresses and prefixes, such as [198.51.100.64/28]"},
    {.name = "ports",
     .type = HB_CONFIG_OWN,
     FIELD(ports),
     .read = read_ports,
     .expected = "a range of ports, such as 1024-65535"},
    {.name = "client_address",
     .type = HB_CONFIG_CHOICE,
     FIELD(client_address),
     .expected = "none, proxy_v2, tcp_option or tcp_option_28",
     .choices = client_addresses},
};

const struct hb_config_schema hb_config_nat_schema = {
    .what = "a mapping of port, sources, ports and client_address",
    .keys = nat_keys,
    .keys_count = sizeof(nat_keys) / sizeof(nat_keys[0]),
};

/* ---- rules ---- */

bool hb_config_is_nat(enum hb_forwarding forwarding)
{
    return forwarding == HB_FORWARDING_NAT || forwarding == HB_FORWARDING_FULL_NAT;
}

static bool uses(const struct hb_config_reader *reader, const struct hb_service_config *service,
                 uint32_t pool_index)
{
    const struct hb_config *config = reader->config;
    const struct hb_config_place *place = hb_config_find_place(reader, &service->pool);

    return service->pool == pool_index && place != NULL && place->good &&
           strcmp(place->text, config->pools[pool_index].name) == 0;
}

static void check_keys(struct hb_config_reader *reader, uint32_t index)
{
    const struct hb_pool_config *pool = &reader->config->pools[index];
    const struct hb_nat_config *nat = &pool->nat;
    bool full_keys = nat->sources.count > 0 || nat->ports.first != 0 || nat->client_address != 0;
    char path[HB_CONFIG_PATH];

    snprintf(path, sizeof(path), "pools[%u].fragment", index);
    if (hb_config_is_nat(pool->forwarding) && pool->encap.fragment == HB_REWRITE_FRAGMENT_INNER)
        hb_config_complain(reader, hb_config_line_of(reader, &pool->encap.fragment, pool->line),
                           path, "\"inner\", but NAT does not cut packets; remove it");
    snprintf(path, sizeof(path), "pools[%u].nat", index);
    if (!hb_config_is_nat(pool->forwarding) && (full_keys || nat->port != 0))
        hb_config_complain(reader, pool->line, path,
                           "it is for pools with \"forwarding: nat\" or \"full_nat\"; set that, or "
                           "remove it");
    else if (pool->forwarding == HB_FORWARDING_NAT && full_keys)
        hb_config_complain(reader, pool->line, path,
                           "sources, ports and client_address are for \"forwarding: full_nat\"; "
                           "with nat the backends see the client itself");
    else if (pool->forwarding == HB_FORWARDING_FULL_NAT && nat->sources.count == 0 &&
             hb_config_is_good(reader, &nat->sources))
        hb_config_complain(reader, pool->line, path,
                           "full_nat needs \"sources\": addresses that are routed to this balancer "
                           "and belong to no host, such as [198.51.100.64/28]");
}

/* One family on all sides. */
static void check_family(struct hb_config_reader *reader, uint32_t index)
{
    const struct hb_config *config = reader->config;
    const struct hb_pool_config *pool = &config->pools[index];
    uint8_t family = pool->backends_count > 0 ? pool->backends[0].address.family : 0;
    char path[HB_CONFIG_PATH];

    for (uint32_t b = 1; b < pool->backends_count && family != 0; b++) {
        const struct hb_backend_config *backend = &pool->backends[b];

        if (backend->address.family == 0 || backend->address.family == family)
            continue;
        snprintf(path, sizeof(path), "pools[%u].backends[%u].address", index, b);
        hb_config_complain(reader, backend->line, path,
                           "an IPv%u backend in a NAT pool that begins with an IPv%u one; NAT does "
                           "not translate between them, so make two pools",
                           backend->address.family, family);
        return;
    }
    for (uint32_t s = 0; s < config->services_count && family != 0; s++) {
        const struct hb_service_config *service = &config->services[s];

        if (!uses(reader, service, index) || service->vip.family == 0 ||
            service->vip.family == family)
            continue;
        snprintf(path, sizeof(path), "services[%u].vip", s);
        hb_config_complain(
            reader, service->line, path,
            "an IPv%u VIP, but pool %s reaches IPv%u backends by NAT, which does not "
            "translate between them; use a tunnel, or backends of the VIP's family",
            service->vip.family, pool->name, family);
    }
    for (uint32_t i = 0; i < pool->nat.sources.count && family != 0; i++) {
        if (pool->nat.sources.prefix[i].address.family == family)
            continue;
        snprintf(path, sizeof(path), "pools[%u].nat.sources", index);
        hb_config_complain(reader, hb_config_line_of(reader, &pool->nat.sources, pool->line), path,
                           "an IPv%u source for IPv%u backends; NAT does not translate between "
                           "them",
                           pool->nat.sources.prefix[i].address.family, family);
    }
}

/* An answer as it comes: where from, by which service's doing. */
struct answer {
    struct hb_address address;
    uint32_t rest; /* port and protocol */
    uint32_t service, pool;
};

static int compare_answers(const void *left, const void *right)
{
    const struct answer *a = left, *b = right;
    int order = hb_address_compare(&a->address, &b->address);

    if (order == 0)
        order = (a->rest > b->rest) - (a->rest < b->rest);
    return order != 0 ? order : (a->service > b->service) - (a->service < b->service);
}

static uint32_t list_answers(const struct hb_config_reader *reader, struct answer *answers)
{
    const struct hb_config *config = reader->config;
    uint32_t count = 0;

    for (uint32_t s = 0; s < config->services_count; s++) {
        const struct hb_service_config *service = &config->services[s];
        const struct hb_pool_config *pool;
        uint16_t port;

        if (service->pool >= config->pools_count || !uses(reader, service, service->pool))
            continue;
        pool = &config->pools[service->pool];
        if (pool->forwarding != HB_FORWARDING_NAT)
            continue;
        port = pool->nat.port != 0 ? pool->nat.port : service->port;
        for (uint32_t b = 0; b < pool->backends_count; b++) {
            if (answers != NULL)
                answers[count] = (struct answer){pool->backends[b].address,
                                                 (uint32_t)port | (uint32_t)service->protocol << 16,
                                                 s, service->pool};
            count++;
        }
    }
    return count;
}

static void complain_alike(struct hb_config_reader *reader, const struct answer *first,
                           const struct answer *second)
{
    const struct hb_config *config = reader->config;
    const struct hb_service_config *service = &config->services[second->service];
    char path[HB_CONFIG_PATH], text[HB_ADDRESS_TEXT];

    snprintf(path, sizeof(path), "services[%u]", second->service);
    hb_config_complain(
        reader, service->line, path,
        "answers of backend %s from its port %u would be of this service or of %s at "
        "line %d; with nat a backend's port must name one service, so give each a "
        "pool of its own with another \"nat: { port: ... }\", or use full_nat",
        hb_address_print(&first->address, text), first->rest & 0xffff,
        config->services[first->service].name, config->services[first->service].line);
}

/* One complaint for a service is enough. */
static void check_answers(struct hb_config_reader *reader)
{
    uint32_t count = list_answers(reader, NULL), told = UINT32_MAX;
    struct answer *answers = calloc(count + 1, sizeof(*answers));

    if (answers == NULL) {
        reader->no_memory = true;
        return;
    }
    list_answers(reader, answers);
    qsort(answers, count, sizeof(*answers), compare_answers);
    for (uint32_t i = 1; i < count; i++) {
        if (answers[i].address.family == 0 || answers[i].rest != answers[i - 1].rest ||
            hb_address_compare(&answers[i].address, &answers[i - 1].address) != 0 ||
            answers[i].service == told)
            continue;
        told = answers[i].service;
        complain_alike(reader, &answers[i - 1], &answers[i]);
    }
    free(answers);
}

static bool covers(const struct hb_nat_prefix *prefix, const struct hb_address *address)
{
    if (prefix->address.family != address->family)
        return false;
    for (uint32_t bit = 0; bit < prefix->length; bit++)
        if ((prefix->address.bytes[bit / 8] ^ address->bytes[bit / 8]) >> (7 - bit % 8) & 1)
            return false;
    return true;
}

/* A source that is something else too would take that one's packets. */
static void check_source(struct hb_config_reader *reader, uint32_t index,
                         const struct hb_nat_prefix *prefix)
{
    const struct hb_config *config = reader->config;
    const struct hb_pool_config *pool = &config->pools[index];
    int line = hb_config_line_of(reader, &pool->nat.sources, pool->line);
    const struct hb_address *tunnels[] = {&config->tunnel_source, &config->tunnel_source6};
    char path[HB_CONFIG_PATH], text[HB_ADDRESS_TEXT];

    snprintf(path, sizeof(path), "pools[%u].nat.sources", index);
    for (int i = 0; i < 2; i++)
        if (covers(prefix, tunnels[i]))
            hb_config_complain(reader, line, path,
                               "%s is the tunnel source as well, the balancer's own address; leave "
                               "it out",
                               hb_address_print(tunnels[i], text));
    for (uint32_t s = 0; s < config->services_count; s++)
        if (covers(prefix, &config->services[s].vip))
            hb_config_complain(
                reader, line, path, "%s is the VIP of service %s as well; leave it out",
                hb_address_print(&config->services[s].vip, text), config->services[s].name);
    for (uint32_t p = 0; p < config->pools_count; p++)
        for (uint32_t b = 0; b < config->pools[p].backends_count; b++)
            if (covers(prefix, &config->pools[p].backends[b].address))
                hb_config_complain(reader, line, path,
                                   "%s is the backend at line %d as well; leave it out",
                                   hb_address_print(&config->pools[p].backends[b].address, text),
                                   config->pools[p].backends[b].line);
}

uint32_t hb_nat_count_sources(const struct hb_nat_config *nat)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < nat->sources.count; i++)
        count += 1u << (hb_address_bits(nat->sources.prefix[i].address.family) -
                        nat->sources.prefix[i].length);
    return count;
}

void hb_config_check_nat(struct hb_config_reader *reader)
{
    struct hb_config *config = reader->config;
    uint32_t sources = 0;

    for (uint32_t p = 0; p < config->pools_count; p++) {
        struct hb_nat_config *nat = &config->pools[p].nat;

        check_keys(reader, p);
        if (!hb_config_is_nat(config->pools[p].forwarding))
            continue;
        check_family(reader, p);
        for (uint32_t i = 0; i < nat->sources.count; i++)
            check_source(reader, p, &nat->sources.prefix[i]);
        sources += hb_nat_count_sources(nat);
        if (nat->ports.first == 0)
            nat->ports = (struct hb_nat_ports){1024, 65535};
    }
    if (sources > HB_NAT_SOURCES_MAX)
        hb_config_complain(reader, 0, "pools",
                           "%u source addresses of full_nat in all, but the limit is %d; remove "
                           "some",
                           sources, HB_NAT_SOURCES_MAX);
    check_answers(reader);
}
