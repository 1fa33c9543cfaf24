/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GET /v1/status, /v1/services, /v1/backends (docs/api.md).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api_internal.h"
#include "clock.h"

json_t *hb_json_address(const struct hb_address *address)
{
    char text[HB_ADDRESS_TEXT];

    return address->family ? json_string(hb_address_print(address, text)) : json_null();
}

json_t *hb_json_hex(const uint8_t *bytes, size_t size)
{
    char text[65];

    for (size_t i = 0; i < size && i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return json_string(text);
}

json_t *hb_json_text_or_null(const char *text)
{
    return text[0] ? json_string(text) : json_null();
}

static json_t *mac_to_json(const uint8_t *mac)
{
    char text[18];

    snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
             mac[4], mac[5]);
    return json_string(text);
}

void hb_json_set_moves(json_t *object, const struct hb_model_pool *pool)
{
    const struct hb_pool_change none = {0}, *change = pool->changed ? &pool->change : &none;

    json_object_set_new(object, "moved", json_integer(change->moved));
    json_object_set_new(object, "ideal", json_integer(change->ideal));
    json_object_set_new(object, "collateral", json_integer(change->collateral));
}

/* --- status --- */

static json_t *describe_config(const struct hb_control *control)
{
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:o, s:I, s:o}", "file", control->options.config, "loaded_unix",
        (json_int_t)control->loaded_unix, "reloads", (json_int_t)control->reloads,
        "reloads_refused", (json_int_t)control->reloads_refused, "last_error",
        hb_json_text_or_null(control->last_error), "configuration",
        (json_int_t)control->history->in_use, "rollback", hb_json_rollback(control->history));
}

static json_t *describe_ports(const struct hb_hello_reply *hello)
{
    json_t *ports = json_array();

    for (uint32_t p = 0; p < hello->ports && p < HB_PORTS_MAX; p++) {
        const struct hb_port_info *port = &hello->port[p];
        json_t *object = json_pack(
            "{s:i, s:o, s:o, s:o, s:i, s:b}", "id", port->id, "interface",
            port->ifname[0]
                ? json_stringn(port->ifname, strnlen(port->ifname, sizeof(port->ifname)))
                : json_null(),
            "driver", json_stringn(port->driver, strnlen(port->driver, sizeof(port->driver))),
            "mac", mac_to_json(port->mac), "mtu", port->mtu, "link", port->link_up);

        json_array_append_new(ports, object);
    }
    return ports;
}

static json_t *describe_dataplane(const struct hb_control *control)
{
    const struct hb_hello_reply *hello = hb_publisher_hello(control->publisher);
    struct hb_worker_counters total = hb_counters_total(hb_publisher_counters(control->publisher));
    char instance[17];

    if (hello == NULL)
        return json_pack("{s:b, s:n, s:n, s:n, s:i, s:i, s:i, s:[], s:s}", "connected", 0, "pid",
                         "version", "instance", "workers", 0, "flows", 0, "flows_max", 0, "ports",
                         "problem", control->dataplane.problem);
    snprintf(instance, sizeof(instance), "%016" PRIx64, hello->instance);
    return json_pack("{s:b, s:I, s:o, s:s, s:I, s:o, s:o, s:o, s:n}", "connected", 1, "pid",
                     (json_int_t)hello->pid, "version",
                     json_stringn(hello->version, strnlen(hello->version, sizeof(hello->version))),
                     "instance", instance, "workers", (json_int_t)hello->workers, "flows",
                     hb_json_count(total.flows), "flows_max", hb_json_count(hello->flows_max),
                     "ports", describe_ports(hello), "problem");
}

static json_t *describe_generation(const struct hb_control *control)
{
    const struct hb_publication *publication = &control->publication;

    return json_pack("{s:I, s:I, s:b, s:i, s:i, s:I, s:o, s:o}", "wanted",
                     (json_int_t)publication->wanted, "serving", (json_int_t)publication->serving,
                     "in_sync", hb_publication_in_sync(publication), "adopt_us",
                     publication->adopt_us, "grace_us", publication->grace_us, "rejects",
                     (json_int_t)publication->rejects, "last_reject",
                     hb_json_text_or_null(publication->last_reject), "problem",
                     hb_json_text_or_null(control->problem));
}

static json_t *describe_change(const struct hb_pool_change *change)
{
    if (!change->any)
        return json_null();
    return json_pack("{s:i, s:i, s:i, s:I}", "moved", change->moved, "ideal", change->ideal,
                     "collateral", change->collateral, "generation",
                     (json_int_t)change->generation);
}

/* What is good to know about a pool although nothing is wrong with it, or null. */
static json_t *describe_warning(const struct hb_model_pool *pool)
{
    if (pool->algorithm != HB_ALGORITHM_MODULO)
        return json_null();
    return json_string("algorithm modulo is for comparison: any change of the backends moves "
                       "nearly all new flows; use maglev");
}

static json_t *describe_pools(struct hb_control *control)
{
    const struct hb_model *model = control->model;
    json_t *pools = json_array();

    for (uint32_t p = 0; p < model->pools_count; p++) {
        const struct hb_model_pool *pool = &model->pools[p];
        json_t *object;

        object = json_pack(
            "{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:f, s:o, s:o, s:o}", "name", pool->name,
            "forwarding", hb_forwarding_name(pool->forwarding), "algorithm",
            hb_algorithm_name(pool->algorithm), "table_size", pool->table_size, "backends",
            pool->backends_count, "usable", pool->usable, "unsettled",
            pool->owner ? pool->history.unsettled_count : 0, "bounded_load",
            (double)pool->bounded_load / HB_BOUNDED_LOAD_ONE, "digest",
            pool->owner ? hb_json_hex(pool->owners, sizeof(pool->owners)) : json_null(),
            "last_change", describe_change(&pool->change), "warning", describe_warning(pool));
        json_object_set_new(object, "nat", hb_json_pool_nat(control, pool));
        hb_json_set_pool_life(object, pool);
        json_array_append_new(pools, object);
    }
    return pools;
}

/* By the state that people see: each backend counts once. */
static json_t *count_backends(const struct hb_model *model)
{
    static const char *const states[] = {"up",      "down",     "draining",
                                         "unknown", "disabled", "assumed"};
    int counts[6] = {0}, total = 0;

    for (uint32_t p = 0; p < model->pools_count; p++) {
        for (uint32_t b = 0; b < model->pools[p].backends_count; b++) {
            const char *state = hb_backend_state_name(&model->pools[p].backends[b]->state);

            total++;
            for (int s = 0; s < 6; s++)
                counts[s] += strcmp(state, states[s]) == 0;
        }
    }
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "total", total, states[0], counts[0],
                     states[1], counts[1], states[2], counts[2], states[3], counts[3], states[4],
                     counts[4], states[5], counts[5]);
}

void hb_api_get_status(struct hb_api_call *call)
{
    struct hb_control *control = call->control;
    const struct hb_model *model = control->model;

    hb_api_answer(call, 200,
                  json_pack("{s:s, s:I, s:I, s:o, s:o, s:o, s:i, s:o, s:o, s:I, s:I, s:o}",
                            "version", HB_VERSION, "pid", (json_int_t)getpid(), "uptime_s",
                            (json_int_t)((hb_now_ms() - control->started_ms) / 1000), "config",
                            describe_config(control), "dataplane", describe_dataplane(control),
                            "generation", describe_generation(control), "services",
                            model->services_count, "backends", count_backends(model), "pools",
                            describe_pools(control), "drain_forced",
                            (json_int_t)control->drain_forced, "icmp_ignored",
                            (json_int_t)control->icmp_ignored, "maintenance",
                            hb_maintenance_describe(control)));
}

/* --- services --- */

/* What it says beside VIP, protocol, ports and pool; null where it says nothing. */
static void describe_rules(json_t *object, const struct hb_service_rules *rules)
{
    static const char *const affinities[HB_AFFINITIES] = {"flow", "source", "source_port"};

    json_object_set_new(object, "affinity", json_string(affinities[rules->affinity]));
    json_object_set_new(object, "affinity_prefix",
                        rules->affinity != HB_AFFINITY_FLOW ? json_integer(rules->affinity_prefix)
                                                            : json_null());
    json_object_set_new(object, "source_prefixes",
                        json_integer(rules->sources ? rules->sources->count : 0));
    json_object_set_new(object, "new_flows_limit",
                        rules->new_flows ? json_integer(rules->new_flows) : json_null());
    json_object_set_new(object, "flows_limit",
                        rules->flows ? json_integer(rules->flows) : json_null());
    json_object_set_new(object, "quic_configurations", json_integer(rules->quic_count));
}

/* What its QUIC packets were; null without configurations of connection ids. */
static json_t *describe_quic(struct hb_control *control, struct hb_model_service *service)
{
    struct hb_quic_counters counts;
    json_t *object;

    if (service->rules.quic_count == 0)
        return json_null();
    counts = hb_control_quic_counts(control, service);
    object = json_object();
    for (unsigned outcome = 0; outcome < HB_QUIC_OUTCOME_COUNT; outcome++)
        json_object_set_new(object, hb_quic_outcome_name(outcome),
                            hb_json_count(counts.packets[outcome]));
    return object;
}

static json_t *describe_service(struct hb_control *control, struct hb_model_service *service)
{
    static const char *const tracking_names[HB_TRACKINGS] = {"all", "changed", "off"};
    const struct hb_model_pool *pool = &control->model->pools[service->pool];
    struct hb_counts counts = hb_control_service_counts(control, service);
    char vip[HB_ADDRESS_TEXT], ports[HB_PORTS_TEXT];
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:i, s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o}",
        "name", service->name, "tracking", tracking_names[service->tracking], "vip",
        hb_vip_print(&service->vip, service->prefix_length, vip), "protocol",
        hb_protocol_name(service->protocol), "port", service->port, "ports",
        hb_ports_print(service->port, service->port_last, ports), "pool", pool->name, "usable",
        pool->usable, "total", pool->backends_count, "packets", hb_json_count(counts.packets),
        "bytes", hb_json_count(counts.bytes), "new_flows", hb_json_count(counts.new_flows), "drops",
        hb_json_count(counts.drops), "denied", hb_json_count(counts.denied), "limited",
        hb_json_count(counts.limited), "too_big", hb_json_count(counts.too_big));

    describe_rules(object, &service->rules);
    json_object_set_new(object, "flows",
                        service->rules.flows
                            ? hb_json_count(hb_control_service_flows(control, service->id))
                            : json_null());
    json_object_set_new(object, "quic", describe_quic(control, service));
    return object;
}

void hb_api_get_services(struct hb_api_call *call)
{
    const struct hb_model *model = call->control->model;
    json_t *services = json_array();

    for (uint32_t s = 0; s < model->services_count; s++)
        json_array_append_new(services, describe_service(call->control, &model->services[s]));
    hb_api_answer(call, 200, json_pack("{s:o}", "services", services));
}

/* --- backends --- */

static json_t *describe_hop(const struct hb_model_backend *backend)
{
    const struct hb_next_hop *hop = &backend->hop;

    if (!hop->resolved)
        return json_pack("{s:b, s:n, s:n, s:n, s:n, s:s}", "resolved", 0, "interface", "gateway",
                         "mac", "source", "problem",
                         hop->problem[0] ? hop->problem : "not asked yet");
    return json_pack("{s:b, s:s, s:o, s:o, s:o, s:o}", "resolved", 1, "interface", hop->ifname,
                     "gateway", hb_json_address(&hop->gateway), "mac",
                     mac_to_json(hop->gateway_mac), "source", hb_json_address(&hop->source),
                     "problem", hb_json_text_or_null(backend->problem));
}

/* What ICMP errors have told about the way to it. */
static json_t *describe_path(const struct hb_path *path, const struct hb_counts *counts)
{
    uint64_t left_ms = hb_path_left_ms(path, hb_now_ms());
    json_t *object =
        json_pack("{s:o, s:o, s:o}", "unreachable",
                  hb_json_count(path->unreachable + counts->unreachable), "time_exceeded",
                  hb_json_count(path->time_exceeded), "too_big", hb_json_count(path->too_big));

    json_object_set_new(object, "mtu", path->mtu ? json_integer(path->mtu) : json_null());
    json_object_set_new(object, "left_s",
                        path->mtu ? json_integer((json_int_t)(left_ms / 1000)) : json_null());
    return object;
}

static json_t *describe_backend(struct hb_control *control, const struct hb_model_pool *pool,
                                struct hb_model_backend *backend)
{
    static const char *const health[] = {"unknown", "up", "down"};
    struct hb_counts counts = hb_control_backend_counts(control, backend);
    uint64_t since_ms =
        backend->state.draining ? backend->state.drain_since_ms : backend->state.health_since_ms;
    json_t *object = json_pack(
        "{s:s, s:s, s:o, s:i, s:i, s:s, s:s, s:b, s:b, s:s, s:I}", "pool", pool->name, "name",
        backend->name, "address", hb_json_address(&backend->address), "id", backend->id, "weight",
        backend->weight, "state", hb_backend_state_name(&backend->state), "health",
        health[backend->state.health], "draining", backend->state.draining, "leaving",
        backend->leaving, "reason", backend->reason, "since_s",
        since_ms ? (json_int_t)((hb_now_ms() - since_ms) / 1000) : (json_int_t)0);

    json_object_set_new(object, "bucket",
                        pool->algorithm == HB_ALGORITHM_JUMP ? json_integer(backend->bucket)
                                                             : json_null());
    json_object_set_new(object, "zone", hb_json_text_or_null(backend->zone));
    json_object_set_new(object, "slots", json_integer(backend->slots));
    json_object_set_new(
        object, "share",
        json_real(pool->slots ? (double)backend->slots / (double)pool->slots : 0.0));
    json_object_set_new(object, "flows",
                        hb_json_count(hb_control_backend_flows(control, backend->id)));
    json_object_set_new(object, "new_flows", hb_json_count(counts.new_flows));
    json_object_set_new(object, "packets", hb_json_count(counts.packets));
    json_object_set_new(object, "bytes", hb_json_count(counts.bytes));
    json_object_set_new(object, "returned_packets", hb_json_count(counts.returned_packets));
    json_object_set_new(object, "returned_bytes", hb_json_count(counts.returned_bytes));
    json_object_set_new(object, "nat", hb_json_backend_nat(control, pool, backend));
    hb_json_set_health(object, pool, backend);
    json_object_set_new(object, "next_hop", describe_hop(backend));
    json_object_set_new(object, "path", describe_path(&backend->path, &counts));
    hb_json_set_backend_life(object, control, pool, backend);
    return object;
}

void hb_api_get_backends(struct hb_api_call *call)
{
    const struct hb_model *model = call->control->model;
    json_t *backends = json_array();

    for (uint32_t p = 0; p < model->pools_count; p++) {
        const struct hb_model_pool *pool = &model->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++)
            json_array_append_new(backends,
                                  describe_backend(call->control, pool, pool->backends[b]));
    }
    hb_api_answer(call, 200, json_pack("{s:o}", "backends", backends));
}
