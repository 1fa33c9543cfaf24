/* SPDX-License-Identifier: BSD-3-Clause */
#include "model_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct hb_port_info eth0 = {
    .id = 3, .mtu = 1500, .link_up = 1, .ifindex = 7, .ifname = "eth0", .driver = "net_af_xdp"};
const struct hb_port_list one_port = {&eth0, 1};

struct hb_address address_of(const char *text)
{
    struct hb_address address = {0};

    assert_true(hb_address_parse(text, &address));
    return address;
}

struct hb_config *make_config(void)
{
    struct hb_config *config = calloc(1, sizeof(*config));

    assert_non_null(config);
    for (unsigned w = 0; w < HB_HASH_KEY_WORDS; w++)
        config->hash_key.word[w] = 0x9e3779b97f4a7c15u * (w + 1);
    config->table_seed = 42;
    return config;
}

static uint32_t find_pool(const struct hb_config *config, const char *name)
{
    uint32_t p = 0;

    while (p < config->pools_count && strcmp(config->pools[p].name, name) != 0)
        p++;
    assert_true(p < config->pools_count);
    return p;
}

struct hb_pool_config *add_pool(struct hb_config *config, const char *name)
{
    struct hb_pool_config *pool;

    config->pools = realloc(config->pools, (config->pools_count + 1) * sizeof(*config->pools));
    pool = &config->pools[config->pools_count++];
    memset(pool, 0, sizeof(*pool));
    snprintf(pool->name, sizeof(pool->name), "%s", name);
    pool->algorithm = HB_ALGORITHM_MAGLEV;
    pool->table_size = 251;
    pool->forwarding = HB_FORWARDING_IPIP;
    pool->health = (struct hb_health_config){.type = HB_HEALTH_TCP,
                                             .port = 80,
                                             .interval_ms = 1000,
                                             .timeout_ms = 500,
                                             .rise = 2,
                                             .fall = 2};
    return pool;
}

struct hb_backend_config *add_backend(struct hb_config *config, const char *pool_name,
                                      const char *address, uint32_t weight)
{
    struct hb_pool_config *pool = &config->pools[find_pool(config, pool_name)];
    struct hb_backend_config *backend;

    pool->backends = realloc(pool->backends, (pool->backends_count + 1) * sizeof(*pool->backends));
    backend = &pool->backends[pool->backends_count++];
    memset(backend, 0, sizeof(*backend));
    snprintf(backend->name, sizeof(backend->name), "b-%s", address);
    backend->address = address_of(address);
    backend->weight = weight;
    return backend;
}

void add_service(struct hb_config *config, const char *vip, uint8_t protocol, uint16_t port,
                 const char *pool)
{
    struct hb_service_config *service;

    config->services =
        realloc(config->services, (config->services_count + 1) * sizeof(*config->services));
    service = &config->services[config->services_count++];
    memset(service, 0, sizeof(*service));
    snprintf(service->name, sizeof(service->name), "s-%s-%u-%u", vip, protocol, port);
    service->vip = address_of(vip);
    service->protocol = protocol;
    service->port = service->port_last = port;
    service->prefix_length = hb_address_bits(service->vip.family);
    service->pool = find_pool(config, pool);
}

struct hb_config *make_web(unsigned backends)
{
    struct hb_config *config = make_config();
    char address[32];

    add_pool(config, "web");
    for (unsigned b = 1; b <= backends; b++) {
        snprintf(address, sizeof(address), "198.51.100.%u", b);
        add_backend(config, "web", address, 1);
    }
    add_service(config, "192.0.2.10", HB_PROTOCOL_TCP, 80, "web");
    add_service(config, "2001:db8:a::10", HB_PROTOCOL_TCP, 80, "web");
    return config;
}

void free_config(struct hb_config *config)
{
    for (uint32_t p = 0; p < config->pools_count; p++)
        free(config->pools[p].backends);
    free(config->pools);
    for (uint32_t s = 0; s < config->services_count; s++)
        hb_service_rules_clear(&config->services[s].rules);
    free(config->services);
    free(config);
}

struct hb_model_diff apply(struct hb_model *model, struct hb_config *config)
{
    struct hb_model_diff diff;

    assert_int_equal(hb_model_apply(model, config, NOW_MS, &diff), 0);
    free_config(config);
    return diff;
}

struct hb_model_backend *backend_at(struct hb_model *model, const char *pool, const char *text)
{
    struct hb_address address = address_of(text);
    struct hb_model_pool *found = hb_model_pool(model, pool);

    return found ? hb_pool_backend(found, &address) : NULL;
}

struct hb_next_hop resolved_hop(void)
{
    struct hb_next_hop hop = {
        .resolved = true,
        .ifindex = 7,
        .ifname = "eth0",
        .mtu = 1500,
        .source_mac = {2, 0, 0, 0, 0, 0x10},
        .gateway_mac = {2, 0, 0, 0, 0, 1},
    };

    hop.gateway = address_of("203.0.113.1");
    hop.source = address_of("203.0.113.10");
    return hop;
}

void resolve_all(struct hb_model *model)
{
    for (uint32_t p = 0; p < model->pools_count; p++) {
        for (uint32_t b = 0; b < model->pools[p].backends_count; b++) {
            struct hb_model_backend *backend = model->pools[p].backends[b];

            backend->hop = resolved_hop();
            if (backend->address.family == HB_FAMILY_IPV6)
                backend->hop.source = address_of("2001:db8:1::10");
        }
    }
}

void probe(struct hb_model *model, const char *pool, const char *address, bool success)
{
    static uint64_t later = NOW_MS;
    struct hb_model_backend *backend = backend_at(model, pool, address);

    assert_non_null(backend);
    later += 1000;
    hb_backend_state_apply(&backend->state,
                           success ? HB_EVENT_PROBE_SUCCEEDED : HB_EVENT_PROBE_FAILED, 2, 2, later,
                           later + 1);
}

void all_up(struct hb_model *model)
{
    for (uint32_t p = 0; p < model->pools_count; p++) {
        for (uint32_t b = 0; b < model->pools[p].backends_count; b++)
            hb_backend_state_apply(&model->pools[p].backends[b]->state, HB_EVENT_TAKE_OVER_UP, 2, 2,
                                   NOW_MS, NOW_MS);
    }
}

void reconcile(struct hb_model *model, struct hb_plan *plan)
{
    char problem[256];

    hb_plan_clear(plan);
    assert_int_equal(hb_reconcile(model, one_port, plan, problem, sizeof(problem)), 0);
    assert_string_equal(problem, "");
}

uint32_t slots_of(struct hb_model *model, const char *pool, const char *address)
{
    const struct hb_model_pool *found = hb_model_pool(model, pool);
    uint32_t id = backend_at(model, pool, address)->id, count = 0;

    for (uint32_t s = 0; s < found->slots; s++)
        count += found->owner[s] == id;
    return count;
}
