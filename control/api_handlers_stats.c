/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GET /v1/stats and /v1/drops (docs/api.md): straight from the mapped counters, so of the
 * dataplane's present life only. Zeros while none is connected.
 */
#include <stddef.h>
#include <string.h>

#include "api_internal.h"

/* The members that totals and workers have in common. */
static const struct {
    const char *name;
    size_t offset;
} fields[] = {
#define FIELD(name)                                                                                \
    {                                                                                              \
#name, offsetof(struct hb_worker_counters, name)                                           \
    }
    FIELD(rx_packets),
    FIELD(rx_bytes),
    FIELD(tx_packets),
    FIELD(tx_bytes),
    FIELD(punted_packets),
    FIELD(made_packets),
    FIELD(held_packets),
    FIELD(flows),
    FIELD(flows_max),
    FIELD(flow_hits),
    FIELD(flow_misses),
    FIELD(flow_inserts),
    FIELD(flow_insert_failures),
    FIELD(flow_expiries),
    FIELD(flow_evictions),
    FIELD(flow_reselects),
    FIELD(flow_overflows),
    FIELD(icmp_sent),
    FIELD(icmp_relayed),
    FIELD(icmp_elsewhere),
    FIELD(fragments),
    FIELD(drain_resets),
    FIELD(nat_sessions),
    FIELD(nat_sessions_max),
    FIELD(nat_resets),
    FIELD(nat_handovers),
    FIELD(kernel_packets),
    FIELD(kernel_losses),
    FIELD(quic_routed),
    FIELD(quic_unroutable),
#undef FIELD
};

static uint64_t sum_drops(const struct hb_worker_counters *worker)
{
    uint64_t sum = 0;

    for (unsigned reason = 0; reason < HB_DROPS_MAX; reason++)
        sum += worker->drops[reason];
    return sum;
}

static void add_fields(json_t *object, const struct hb_worker_counters *worker)
{
    for (size_t f = 0; f < sizeof(fields) / sizeof(*fields); f++) {
        uint64_t value;

        memcpy(&value, (const uint8_t *)worker + fields[f].offset, sizeof(value));
        json_object_set_new(object, fields[f].name, hb_json_count(value));
    }
    json_object_set_new(object, "dropped_packets", hb_json_count(sum_drops(worker)));
}

/* What the steering programs of AF_XDP ports did before the dataplane saw a packet. */
static json_t *describe_steering(const struct hb_counters_header *region)
{
    const struct hb_counters_header none = {0}, *from = region ? region : &none;

    return json_pack("{s:o, s:o, s:o, s:o}", "redirected", hb_json_count(from->steer_redirected),
                     "no_socket", hb_json_count(from->steer_no_socket), "passed",
                     hb_json_count(from->steer_passed), "limited",
                     hb_json_count(from->steer_limited));
}

void hb_api_get_stats(struct hb_api_call *call)
{
    const struct hb_counters_header *region = hb_publisher_counters(call->control->publisher);
    struct hb_worker_counters total = hb_counters_total(region);
    json_t *totals = json_object(), *workers = json_array();

    add_fields(totals, &total);
    for (uint32_t w = 0; region != NULL && w < region->workers; w++) {
        const struct hb_worker_counters *worker = hb_counters_worker(region, w);
        json_t *object =
            json_pack("{s:i, s:o, s:o}", "worker", w, "lcore", hb_json_count(worker->lcore),
                      "generation", hb_json_count(worker->generation_number));

        add_fields(object, worker);
        json_array_append_new(workers, object);
    }
    hb_api_answer(call, 200,
                  json_pack("{s:o, s:o, s:o}", "totals", totals, "steering",
                            describe_steering(region), "workers", workers));
}

void hb_api_get_drops(struct hb_api_call *call)
{
    const struct hb_counters_header *region = hb_publisher_counters(call->control->publisher);
    struct hb_worker_counters total = hb_counters_total(region);
    uint32_t reasons =
        region && region->drop_reasons > HB_DROP_COUNT ? region->drop_reasons : HB_DROP_COUNT;
    json_t *drops = json_array();

    for (uint32_t reason = 0; reason < reasons && reason < HB_DROPS_MAX; reason++)
        json_array_append_new(drops, json_pack("{s:s, s:s, s:o}", "reason", hb_drop_name(reason),
                                               "text", hb_drop_text(reason), "packets",
                                               hb_json_count(total.drops[reason])));
    hb_api_answer(
        call, 200,
        json_pack("{s:o, s:o}", "total", hb_json_count(sum_drops(&total)), "drops", drops));
}
