/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_nat_rules.c: what must hold between the keys of NAT pools and the services that they
 * serve.
 *
 * With NAT an answer tells by the backend's address and port which service it is of. So no two
 * services may share both, and none has a prefix or several ports; which is complained about here
 * with what can be done.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_internal.h"
#include "config_nat.h"

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

static bool is_one_address(const struct hb_service_config *service)
{
    return service->prefix_length == hb_address_bits(service->vip.family);
}

static bool is_one_port(const struct hb_service_config *service)
{
    return service->port == service->port_last;
}

/* What a pool's NAT can't serve. A session of full NAT knows which address and port its client
 * used; with NAT the service alone has to say. */
static void check_service(struct hb_config_reader *reader, uint32_t index,
                          const struct hb_pool_config *pool)
{
    const struct hb_service_config *service = &reader->config->services[index];
    bool by_map = pool->forwarding == HB_FORWARDING_NAT;
    char path[HB_CONFIG_PATH], text[HB_ADDRESS_TEXT], ports[HB_PORTS_TEXT];

    if (service->protocol == HB_PROTOCOL_SCTP) {
        snprintf(path, sizeof(path), "services[%u].protocol", index);
        hb_config_complain(reader, hb_config_line_of(reader, &service->protocol, service->line),
                           path,
                           "service %s is SCTP, but pool %s has \"forwarding: %s\", which carries "
                           "TCP and UDP alone; use a pool with a tunnel, l2 or l3dsr",
                           service->name, pool->name, by_map ? "nat" : "full_nat");
    }
    if (!by_map || service->vip.family == 0 || service->port_last == 0)
        return;
    if (!is_one_address(service)) {
        snprintf(path, sizeof(path), "services[%u].vip", index);
        hb_config_complain(reader, hb_config_line_of(reader, &service->vip, service->line), path,
                           "service %s is the prefix %s, but pool %s has \"forwarding: nat\", "
                           "where answers need one VIP; use full_nat or a tunnel",
                           service->name, hb_vip_print(&service->vip, service->prefix_length, text),
                           pool->name);
    } else if (!is_one_port(service)) {
        snprintf(path, sizeof(path), "services[%u].port", index);
        hb_config_complain(reader, hb_config_line_of(reader, &service->port, service->line), path,
                           "service %s has the ports %s, but pool %s has \"forwarding: nat\", "
                           "where answers need one port; use full_nat or a tunnel",
                           service->name, hb_ports_print(service->port, service->port_last, ports),
                           pool->name);
    }
}

static void check_services(struct hb_config_reader *reader, uint32_t pool)
{
    const struct hb_config *config = reader->config;

    for (uint32_t s = 0; s < config->services_count; s++)
        if (uses(reader, &config->services[s], pool))
            check_service(reader, s, &config->pools[pool]);
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
        if (pool->forwarding != HB_FORWARDING_NAT || !is_one_address(service) ||
            !is_one_port(service))
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

/* A source that is something else too would take that one's packets. */
static void check_source(struct hb_config_reader *reader, uint32_t index,
                         const struct hb_address_prefix *prefix)
{
    const struct hb_config *config = reader->config;
    const struct hb_pool_config *pool = &config->pools[index];
    int line = hb_config_line_of(reader, &pool->nat.sources, pool->line);
    const struct hb_address *tunnels[] = {&config->tunnel_source, &config->tunnel_source6};
    char path[HB_CONFIG_PATH], text[HB_ADDRESS_TEXT];

    snprintf(path, sizeof(path), "pools[%u].nat.sources", index);
    for (int i = 0; i < 2; i++)
        if (hb_address_prefix_holds(prefix, tunnels[i]))
            hb_config_complain(reader, line, path,
                               "%s is the tunnel source as well, the balancer's own address; leave "
                               "it out",
                               hb_address_print(tunnels[i], text));
    for (uint32_t s = 0; s < config->services_count; s++) {
        const struct hb_service_config *service = &config->services[s];
        struct hb_address_prefix vip = {service->vip, service->prefix_length};

        if (hb_address_prefix_holds(prefix, &vip.address) ||
            hb_address_prefix_holds(&vip, &prefix->address))
            hb_config_complain(reader, line, path,
                               "%s is the VIP of service %s as well; leave it out",
                               hb_vip_print(&vip.address, vip.length, text), service->name);
    }
}

static void check_backends_in(struct hb_config_reader *reader, uint32_t index,
                              const struct hb_address_prefix *prefix,
                              const struct hb_config_entry *backends, uint32_t count)
{
    const struct hb_pool_config *pool = &reader->config->pools[index];
    const struct hb_config_entry *end = backends + count;
    const struct hb_config_entry *at = hb_config_first_from(backends, count, &prefix->address);
    int line = hb_config_line_of(reader, &pool->nat.sources, pool->line);
    char path[HB_CONFIG_PATH], text[HB_ADDRESS_TEXT];

    snprintf(path, sizeof(path), "pools[%u].nat.sources", index);
    for (; at != NULL && at < end && hb_address_prefix_holds(prefix, at->address); at++)
        hb_config_complain(reader, line, path, "%s is the backend at line %d as well; leave it out",
                           hb_address_print(at->address, text),
                           reader->config->pools[at->pool].backends[at->index].line);
}

void hb_config_check_nat_sources(struct hb_config_reader *reader,
                                 const struct hb_config_entry *backends, uint32_t count)
{
    const struct hb_config *config = reader->config;

    for (uint32_t p = 0; p < config->pools_count; p++)
        for (uint32_t i = 0; hb_config_is_nat(config->pools[p].forwarding) &&
                             i < config->pools[p].nat.sources.count;
             i++)
            check_backends_in(reader, p, &config->pools[p].nat.sources.prefix[i], backends, count);
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
        check_services(reader, p);
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
