/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GET /metrics: everything that counts, for Prometheus (docs/api.md lists the families).
 *
 * A scrape is made in one go, so it is one version of the model: what is not configured any more
 * has no series (BL-114). What an alarm should watch is named for what it is: only what was really
 * dropped has "dropped" in its name, and a flow that is new is no error (BL-115).
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "api_internal.h"
#include "clock.h"
#include "metrics.h"

/* --- control --- */

static void add_control(FILE *to, const struct hb_control *control)
{
    const struct hb_publication *publication = &control->publication;
    const struct hb_label version[] = {{"version", HB_VERSION}, {NULL, NULL}};

    hb_metric_begin(to, "halbach_build_info", HB_METRIC_GAUGE, "Always 1; the version of control.");
    hb_metric_add(to, "halbach_build_info", version, 1);
    hb_metric_single(to, "halbach_dataplane_connected", HB_METRIC_GAUGE,
                     "1 while control is connected to the dataplane.", publication->connected);
    hb_metric_single(to, "halbach_generation_wanted", HB_METRIC_GAUGE,
                     "Number of the generation that control wants.", publication->wanted);
    hb_metric_single(to, "halbach_generation_serving", HB_METRIC_GAUGE,
                     "Number of the generation that the dataplane serves; 0: not known.",
                     publication->serving);
    hb_metric_single(to, "halbach_generation_rejects_total", HB_METRIC_COUNTER,
                     "Generations that the dataplane refused.", publication->rejects);
    hb_metric_single(to, "halbach_config_reloads_total", HB_METRIC_COUNTER,
                     "Reloads that were accepted.", control->reloads);
    hb_metric_single(to, "halbach_config_reload_failed_total", HB_METRIC_COUNTER,
                     "Reloads and rollbacks that were refused.", control->reloads_refused);
    hb_metric_single(to, "halbach_config_last_reload_success_timestamp_seconds", HB_METRIC_GAUGE,
                     "When the configuration in use was taken, seconds since 1970.",
                     control->loaded_unix);
    hb_metric_single(to, "halbach_config_rolled_back", HB_METRIC_GAUGE,
                     "1 while a former configuration is in use, not the file.",
                     control->history->rolled_back);
    hb_metric_single(to, "halbach_events_total", HB_METRIC_COUNTER,
                     "Events since the start of control.", hb_events_newest(control->events));
    hb_metric_single(to, "halbach_drain_forced_flows_total", HB_METRIC_COUNTER,
                     "Flows that did not stay after the deadline of a drain.",
                     control->drain_forced);
    hb_metric_single(to, "halbach_icmp_errors_ignored_total", HB_METRIC_COUNTER,
                     "ICMP errors to this machine about packets that no tunnel of it has sent.",
                     control->icmp_ignored);
    hb_metric_single(to, "halbach_maintenance_withdrawn", HB_METRIC_GAUGE,
                     "1 while the balancer is out of service for maintenance.",
                     control->maintenance.withdrawn);
    hb_metric_single(to, "halbach_maintenance_command_failed", HB_METRIC_GAUGE,
                     "1 while the command for the state has failed and will be run again.",
                     control->maintenance.hook == HB_HOOK_FAILED);
}

/* --- workers --- */

static const struct {
    const char *name, *help;
    size_t offset;
    enum hb_metric_type type;
} worker_fields[] = {
#define COUNTER(field, family, help)                                                               \
    {                                                                                              \
        "halbach_worker_" family "_total", help, offsetof(struct hb_worker_counters, field),       \
            HB_METRIC_COUNTER                                                                      \
    }
#define GAUGE(field, family, help)                                                                 \
    {                                                                                              \
        "halbach_worker_" family, help, offsetof(struct hb_worker_counters, field),                \
            HB_METRIC_GAUGE                                                                        \
    }
    COUNTER(rx_packets, "received_packets", "Packets received."),
    COUNTER(rx_bytes, "received_bytes", "Bytes of received frames."),
    COUNTER(tx_packets, "sent_packets", "Packets sent, with their tunnel headers."),
    COUNTER(tx_bytes, "sent_bytes", "Bytes of sent frames."),
    COUNTER(punted_packets, "punted_packets", "Packets handed to the kernel."),
    COUNTER(made_packets, "made_packets", "Packets that the dataplane made itself."),
    GAUGE(held_packets, "held_packets", "Fragments that wait for the first of their datagram."),
    COUNTER(flow_hits, "flow_hits", "Packets whose flow had an entry."),
    COUNTER(flow_misses, "flow_new", "Packets whose flow had none: the first of a flow, mostly."),
    COUNTER(flow_inserts, "flow_inserts", "Entries made."),
    COUNTER(flow_insert_failures, "flow_cache_full", "Flows that found no room in the cache."),
    COUNTER(flow_expiries, "flow_expiries", "Entries that were idle for too long."),
    COUNTER(flow_evictions, "flow_evictions", "Entries of one packet that made way."),
    COUNTER(flow_reselects, "flow_reselects", "Flows whose backend was gone or down."),
    COUNTER(flow_overflows, "flow_overflows", "New flows passed on by bounded load."),
    COUNTER(icmp_sent, "icmp_sent", "ICMP errors and echo answers made."),
    COUNTER(icmp_relayed, "icmp_relayed", "ICMP messages about flows, handed to their backends."),
    COUNTER(icmp_elsewhere, "icmp_by_table", "Of those, about flows without an entry here."),
    COUNTER(fragments, "fragments", "Fragments forwarded."),
    COUNTER(drain_resets, "drain_resets", "Flows ended by a reset at a drain's deadline."),
    COUNTER(quic_routed, "quic_routed", "Packets whose connection id named their backend."),
    COUNTER(quic_unroutable, "quic_unroutable", "Short headers whose id did not."),
    GAUGE(nat_sessions, "nat_sessions", "Sessions of full NAT in use."),
    GAUGE(nat_sessions_max, "nat_sessions_max", "Sessions that there is room for."),
    COUNTER(nat_resets, "nat_resets", "Connections of full NAT reset: their backend was gone."),
    COUNTER(nat_handovers, "nat_handovers", "Answers given to the worker of their session."),
    COUNTER(kernel_packets, "kernel_sent_packets", "Packets that the kernel sent by a punt port."),
    COUNTER(kernel_losses, "kernel_lost_packets",
            "Packets of the kernel that a port did not take."),
    GAUGE(flows, "flows", "Entries in the flow cache."),
    GAUGE(flows_max, "flows_max", "Entries that there is room for."),
    GAUGE(generation_number, "generation", "Generation that the worker forwards by."),
#undef COUNTER
#undef GAUGE
};

static uint64_t read_field(const struct hb_worker_counters *worker, size_t offset)
{
    return __atomic_load_n((const uint64_t *)((const uint8_t *)worker + offset), __ATOMIC_RELAXED);
}

static void add_workers(FILE *to, const struct hb_counters_header *region)
{
    for (size_t f = 0; f < sizeof(worker_fields) / sizeof(*worker_fields); f++) {
        const char *name = worker_fields[f].name;

        hb_metric_begin(to, name, worker_fields[f].type, worker_fields[f].help);
        for (uint32_t w = 0; w < region->workers; w++) {
            char number[12];
            const struct hb_label labels[] = {{"worker", number}, {NULL, NULL}};

            snprintf(number, sizeof(number), "%u", w);
            hb_metric_add(to, name, labels,
                          read_field(hb_counters_worker(region, w), worker_fields[f].offset));
        }
    }
}

static void add_drops(FILE *to, const struct hb_counters_header *region)
{
    struct hb_worker_counters total = hb_counters_total(region);
    uint32_t reasons = region->drop_reasons > HB_DROP_COUNT ? region->drop_reasons : HB_DROP_COUNT;

    hb_metric_begin(to, "halbach_dropped_packets_total", HB_METRIC_COUNTER,
                    "Packets dropped, by reason.");
    for (uint32_t reason = 0; reason < reasons && reason < HB_DROPS_MAX; reason++) {
        const struct hb_label labels[] = {{"reason", hb_drop_name(reason)}, {NULL, NULL}};

        hb_metric_add(to, "halbach_dropped_packets_total", labels, total.drops[reason]);
    }
}

static void add_steering(FILE *to, const struct hb_counters_header *region)
{
    const struct {
        const char *fate;
        uint64_t packets;
    } rows[] = {
        {"redirected", region->steer_redirected},
        {"no_socket", region->steer_no_socket},
        {"passed", region->steer_passed},
        {"limited", region->steer_limited},
    };

    hb_metric_begin(to, "halbach_steered_packets_total", HB_METRIC_COUNTER,
                    "Packets by what the steering programs of AF_XDP ports did with them.");
    for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
        const struct hb_label labels[] = {{"fate", rows[r].fate}, {NULL, NULL}};

        hb_metric_add(to, "halbach_steered_packets_total", labels, rows[r].packets);
    }
}

static void add_dataplane(FILE *to, const struct hb_counters_header *region)
{
    if (region == NULL)
        return;
    hb_metric_single(to, "halbach_dataplane_start_timestamp_seconds", HB_METRIC_GAUGE,
                     "When the dataplane started, seconds since 1970.",
                     region->started_unix_ns / 1000000000);
    add_workers(to, region);
    add_drops(to, region);
    add_steering(to, region);
}

/* --- pools, services and backends --- */

/* One value of an object, so that a family's samples stand together. */
struct family {
    const char *name, *help;
    enum hb_metric_type type;
};

enum {
    POOL_HEALTHY,
    POOL_USABLE,
    POOL_MINIMUM,
    POOL_NORMAL,
    POOL_UNSETTLED,
    POOL_NAT_PORTS,
    POOL_NAT_USED,
    POOL_ALL
};

static const struct family pool_families[POOL_ALL] = {
    {"halbach_pool_healthy_backends", "Backends of its own that could take new flows.",
     HB_METRIC_GAUGE},
    {"halbach_pool_usable_backends", "Backends that take new flows.", HB_METRIC_GAUGE},
    {"halbach_pool_minimum_backends", "Below it the pool's failure policy applies.",
     HB_METRIC_GAUGE},
    {"halbach_pool_normal", "1 while its own backends serve; 0: panic, backup, closed, leaving.",
     HB_METRIC_GAUGE},
    {"halbach_pool_unsettled_slots", "Slots that had another owner lately.", HB_METRIC_GAUGE},
    {"halbach_pool_nat_ports", "Source ports of full NAT, for each backend.", HB_METRIC_GAUGE},
    {"halbach_pool_nat_ports_used", "Of those, in use for the backend that needs most.",
     HB_METRIC_GAUGE},
};

static void add_pools(FILE *to, struct hb_control *control)
{
    const struct hb_model *model = control->model;

    for (int f = 0; f < POOL_ALL; f++) {
        const struct family *family = &pool_families[f];

        hb_metric_begin(to, family->name, family->type, family->help);
        for (uint32_t p = 0; p < model->pools_count; p++) {
            const struct hb_model_pool *pool = &model->pools[p];
            const struct hb_label labels[] = {{"pool", pool->name}, {NULL, NULL}};
            struct hb_nat_use nat;
            bool full_nat = hb_pool_nat_use(control, pool, &nat);
            const uint64_t values[POOL_ALL] = {
                [POOL_HEALTHY] = pool->strength.usable,
                [POOL_USABLE] = pool->usable,
                [POOL_MINIMUM] = pool->failure.minimum > 0 ? pool->failure.minimum : 1,
                [POOL_NORMAL] = pool->mode == HB_POOL_MODE_NORMAL,
                [POOL_UNSETTLED] = pool->owner ? pool->history.unsettled_count : 0,
                [POOL_NAT_PORTS] = nat.ports,
                [POOL_NAT_USED] = nat.most,
            };

            if (full_nat || f < POOL_NAT_PORTS)
                hb_metric_add(to, family->name, labels, values[f]);
        }
    }
}

enum {
    SERVICE_PACKETS,
    SERVICE_BYTES,
    SERVICE_FLOWS,
    SERVICE_DROPS,
    SERVICE_DENIED,
    SERVICE_LIMITED,
    SERVICE_TOO_BIG,
    SERVICE_USABLE,
    SERVICE_ALL
};

static const struct family service_families[SERVICE_ALL] = {
    {"halbach_service_packets_total", "Packets forwarded for the service.", HB_METRIC_COUNTER},
    {"halbach_service_bytes_total", "Bytes of those, without tunnel headers.", HB_METRIC_COUNTER},
    {"halbach_service_new_flows_total", "Flows that began.", HB_METRIC_COUNTER},
    {"halbach_service_dropped_packets_total", "Packets for the service that were dropped.",
     HB_METRIC_COUNTER},
    {"halbach_service_denied_packets_total", "Of the drops: by its list of sources.",
     HB_METRIC_COUNTER},
    {"halbach_service_limited_packets_total", "Of the drops: by its limits on flows.",
     HB_METRIC_COUNTER},
    {"halbach_service_too_big_packets_total", "Of the drops: their senders were told what fits.",
     HB_METRIC_COUNTER},
    {"halbach_service_usable_backends", "Backends that take its new flows.", HB_METRIC_GAUGE},
};

static uint64_t service_value(struct hb_control *control, struct hb_model_service *service,
                              int family)
{
    struct hb_counts counts = hb_control_service_counts(control, service);
    const uint64_t values[SERVICE_ALL] = {
        counts.packets,   counts.bytes,
        counts.new_flows, counts.drops,
        counts.denied,    counts.limited,
        counts.too_big,   control->model->pools[service->pool].usable};

    return values[family];
}

static void add_services(FILE *to, struct hb_control *control)
{
    const struct hb_model *model = control->model;

    for (int f = 0; f < SERVICE_ALL; f++) {
        const struct family *family = &service_families[f];

        hb_metric_begin(to, family->name, family->type, family->help);
        for (uint32_t s = 0; s < model->services_count; s++) {
            struct hb_model_service *service = &model->services[s];
            char vip[HB_ADDRESS_TEXT], ports[HB_PORTS_TEXT];
            const struct hb_label labels[] = {
                {"service", service->name},
                {"vip", hb_vip_print(&service->vip, service->prefix_length, vip)},
                {"protocol", hb_protocol_name(service->protocol)},
                {"port", hb_ports_print(service->port, service->port_last, ports)},
                {NULL, NULL}};

            hb_metric_add(to, family->name, labels, service_value(control, service, f));
        }
    }
}

/* Of services with configurations of connection ids. */
static void add_quic(FILE *to, struct hb_control *control)
{
    static const char name[] = "halbach_service_quic_packets_total";
    const struct hb_model *model = control->model;

    hb_metric_begin(to, name, HB_METRIC_COUNTER,
                    "Packets of the QUIC service, by what their connection id was.");
    for (uint32_t s = 0; s < model->services_count; s++) {
        struct hb_model_service *service = &model->services[s];
        struct hb_quic_counters counts = hb_control_quic_counts(control, service);

        for (unsigned o = 0; service->rules.quic_count > 0 && o < HB_QUIC_OUTCOME_COUNT; o++) {
            const struct hb_label labels[] = {
                {"service", service->name}, {"outcome", hb_quic_outcome_name(o)}, {NULL, NULL}};

            hb_metric_add(to, name, labels, counts.packets[o]);
        }
    }
}

enum {
    BACKEND_PACKETS,
    BACKEND_BYTES,
    BACKEND_NEW_FLOWS,
    BACKEND_RETURNED_PACKETS,
    BACKEND_RETURNED_BYTES,
    BACKEND_NAT_EXHAUSTED,
    BACKEND_NAT_SESSIONS,
    BACKEND_FLOWS,
    BACKEND_UP,
    BACKEND_ASSUMED,
    BACKEND_HELD,
    BACKEND_DRAINING,
    BACKEND_REACHABLE,
    BACKEND_WEIGHT,
    BACKEND_SLOTS,
    BACKEND_UNREACHABLE,
    BACKEND_TIME_EXCEEDED,
    BACKEND_TOO_BIG,
    BACKEND_PATH_MTU,
    BACKEND_ALL
};

static const struct family backend_families[BACKEND_ALL] = {
    {"halbach_backend_packets_total", "Packets forwarded to the backend.", HB_METRIC_COUNTER},
    {"halbach_backend_bytes_total", "Bytes of those, without tunnel headers.", HB_METRIC_COUNTER},
    {"halbach_backend_new_flows_total", "Flows that began.", HB_METRIC_COUNTER},
    {"halbach_backend_returned_packets_total", "Answers of NAT that came back through here.",
     HB_METRIC_COUNTER},
    {"halbach_backend_returned_bytes_total", "Bytes of those.", HB_METRIC_COUNTER},
    {"halbach_backend_nat_exhausted_total", "New connections that found no source port free.",
     HB_METRIC_COUNTER},
    {"halbach_backend_nat_sessions", "Sessions of full NAT, each with a source port.",
     HB_METRIC_GAUGE},
    {"halbach_backend_flows", "Entries in the flow caches.", HB_METRIC_GAUGE},
    {"halbach_backend_up", "1 while its health checks succeed.", HB_METRIC_GAUGE},
    {"halbach_backend_assumed", "1 while it is up, but its check takes silence for success.",
     HB_METRIC_GAUGE},
    {"halbach_backend_held", "1 while damping keeps it down, whatever its checks say.",
     HB_METRIC_GAUGE},
    {"halbach_backend_draining", "1 while it is drained.", HB_METRIC_GAUGE},
    {"halbach_backend_reachable", "1 while a next hop to it is known.", HB_METRIC_GAUGE},
    {"halbach_backend_weight", "Its weight.", HB_METRIC_GAUGE},
    {"halbach_backend_slots", "Slots of the pool's table that it owns.", HB_METRIC_GAUGE},
    {"halbach_backend_unreachable_total", "ICMP unreachable errors on the way to it.",
     HB_METRIC_COUNTER},
    {"halbach_backend_time_exceeded_total", "ICMP time exceeded errors on the way to it.",
     HB_METRIC_COUNTER},
    {"halbach_backend_too_big_total", "ICMP packet too big errors on the way to it.",
     HB_METRIC_COUNTER},
    {"halbach_backend_path_mtu_bytes", "What such errors say fits the way; 0: what the link says.",
     HB_METRIC_GAUGE},
};

static uint64_t backend_value(struct hb_control *control, const struct hb_model_pool *pool,
                              struct hb_model_backend *backend, int family)
{
    struct hb_counts counts = hb_control_backend_counts(control, backend);
    const uint64_t values[BACKEND_ALL] = {
        [BACKEND_PACKETS] = counts.packets,
        [BACKEND_BYTES] = counts.bytes,
        [BACKEND_NEW_FLOWS] = counts.new_flows,
        [BACKEND_RETURNED_PACKETS] = counts.returned_packets,
        [BACKEND_RETURNED_BYTES] = counts.returned_bytes,
        [BACKEND_NAT_EXHAUSTED] = counts.nat_exhausted,
        [BACKEND_NAT_SESSIONS] =
            hb_counters_nat_total(hb_publisher_counters(control->publisher), backend->id).sessions,
        [BACKEND_FLOWS] = hb_control_backend_flows(control, backend->id),
        [BACKEND_UP] = backend->state.health == HB_BACKEND_UP,
        [BACKEND_ASSUMED] = backend->state.health == HB_BACKEND_UP && backend->state.assumed,
        [BACKEND_HELD] =
            hb_damping_left_ms(&backend->damping, &pool->health.damping, hb_now_ms()) > 0,
        [BACKEND_DRAINING] = backend->state.draining,
        [BACKEND_REACHABLE] = backend->hop.resolved,
        [BACKEND_WEIGHT] = backend->weight,
        [BACKEND_SLOTS] = backend->slots,
        [BACKEND_UNREACHABLE] = counts.unreachable + backend->path.unreachable,
        [BACKEND_TIME_EXCEEDED] = backend->path.time_exceeded,
        [BACKEND_TOO_BIG] = backend->path.too_big,
        [BACKEND_PATH_MTU] = backend->path.mtu,
    };

    return values[family];
}

static void add_backends(FILE *to, struct hb_control *control)
{
    const struct hb_model *model = control->model;

    for (int f = 0; f < BACKEND_ALL; f++) {
        const struct family *family = &backend_families[f];

        hb_metric_begin(to, family->name, family->type, family->help);
        for (uint32_t p = 0; p < model->pools_count; p++) {
            const struct hb_model_pool *pool = &model->pools[p];

            for (uint32_t b = 0; b < pool->backends_count; b++) {
                struct hb_model_backend *backend = pool->backends[b];
                /* A name may be given to another address while the old one is leaving. */
                const struct hb_label labels[] = {{"pool", pool->name},
                                                  {"backend", backend->name},
                                                  {"address", backend->identity},
                                                  {NULL, NULL}};

                hb_metric_add(to, family->name, labels, backend_value(control, pool, backend, f));
            }
        }
    }
}

void hb_api_get_metrics(struct hb_api_call *call)
{
    struct hb_control *control = call->control;
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    if (to != NULL) {
        add_control(to, control);
        add_dataplane(to, hb_publisher_counters(control->publisher));
        add_pools(to, control);
        add_services(to, control);
        add_quic(to, control);
        add_backends(to, control);
    }
    if (to == NULL || fclose(to) != 0)
        hb_api_answer(call, 500, NULL);
    else
        hb_api_answer_text(call, "text/plain; version=0.0.4; charset=utf-8", text, size);
    free(text);
}
