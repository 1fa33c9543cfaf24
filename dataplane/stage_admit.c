/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage_admit.c: which packets and which new flows a service takes.
 *
 * Sources. A service may have a list of prefixes that are allowed or denied. Every packet is asked
 * for, not only the first of a flow: a prefix that is added to a list holds from the next packet
 * on.
 *
 * Limits. A service may say how many new flows it takes a second and how many it has at a time, so
 * that a flood to one VIP leaves the flow cache, and the servers, to the others. Each worker has
 * its part of both and keeps to it by itself. The first is a token bucket, a token a flow. For the
 * second, the entries of the service are counted: the entry's tag says for which service it counts
 * until it ends, whatever becomes of the configuration. Flows that had an entry before the limit
 * was there are not among them.
 *
 * Above a limit the packet that would begin a flow is dropped. A packet that may belong to a flow
 * which began before (TCP, and not a SYN) is never: it goes on by the lookup table, without an
 * entry, so that it takes no room. Where a service's TCP flows have no entries, or only on some
 * slots, every SYN is asked for, here; else stage_select asks, who knows whether there is an entry.
 */
#include "flow_bucket.h"
#include "prefix_set.h"
#include "service_extras.h"
#include "stages.h"
#include "worker_state.h"

_Static_assert(HB_BURST <= HB_PREFIX_FIND_MAX, "a burst is one search");

static const struct hb_service *service_of(const struct hb_batch *batch,
                                           const struct hb_packet *packet)
{
    return &batch->generation->services[packet->service];
}

/* The packets of one family that have a list, and what their lists say. */
struct asked {
    uint32_t count;
    uint8_t at[HB_BURST];
    const struct hb_prefix_set *set[HB_BURST];
    bool allowed[HB_BURST];
};

/* Marks the packets that are denied. */
static void find_denied(const struct hb_batch *batch, bool denied[])
{
    struct hb_prefix_edge6 address6[HB_BURST];
    uint32_t address4[HB_BURST];
    struct asked ask4 = {0}, ask6 = {0};

    for (uint8_t i = 0; i < batch->count; i++) {
        const struct hb_packet *packet = &batch->packet[i];
        const struct hb_prefix_set *set;

        denied[i] = false;
        if ((service_of(batch, packet)->features & HB_HAS_LIST) == 0)
            continue;
        set = batch->generation->extra[packet->service].list;
        if (hb_flow_is_ipv6(&packet->flow)) {
            address6[ask6.count] = hb_prefix_address6(packet->flow.addresses);
            ask6.set[ask6.count] = set;
            ask6.at[ask6.count++] = i;
        } else {
            address4[ask4.count] = __builtin_bswap32(packet->flow.source);
            ask4.set[ask4.count] = set;
            ask4.at[ask4.count++] = i;
        }
    }
    hb_prefix_set_find4(ask4.set, address4, ask4.count, ask4.allowed);
    hb_prefix_set_find6(ask6.set, address6, ask6.count, ask6.allowed);
    for (uint32_t i = 0; i < ask4.count; i++)
        denied[ask4.at[i]] = !ask4.allowed[i];
    for (uint32_t i = 0; i < ask6.count; i++)
        denied[ask6.at[i]] = !ask6.allowed[i];
}

/* Takes the token of one flow, if there is one. */
static bool take_token(struct hb_worker *worker, uint16_t id, const struct hb_service_extra *extra)
{
    return hb_token_take_at(&worker->rates[id], &extra->rate, worker->now_ms);
}

static void refuse(struct hb_batch *batch, struct hb_packet *packet, enum hb_drop_reason reason)
{
    batch->worker->services[service_of(batch, packet)->id].limited++;
    hb_drop(batch, packet, reason);
}

/* A SYN of a service that does not track all its TCP flows. */
static bool is_untracked_syn(const struct hb_batch *batch, const struct hb_packet *packet)
{
    const struct hb_service *service = service_of(batch, packet);

    return (service->features & HB_HAS_LIMIT) != 0 && service->tracking != HB_TRACKING_ALL &&
           packet->event == HB_EVENT_SYN;
}

void hb_stage_admit(struct hb_batch *batch)
{
    const struct hb_generation *generation = batch->generation;
    bool denied[HB_BURST];
    const bool *is_denied = denied;
    struct hb_packet *packet;

    find_denied(batch, denied);
    HB_BATCH_FOREACH (packet, batch) {
        uint16_t id = service_of(batch, packet)->id;

        if (*is_denied++) {
            batch->worker->services[id].denied++;
            hb_drop(batch, packet, HB_DROP_DENIED);
        } else if (is_untracked_syn(batch, packet) &&
                   generation->extra[packet->service].limits_rate &&
                   !take_token(batch->worker, id, &generation->extra[packet->service])) {
            refuse(batch, packet, HB_DROP_LIMIT_NEW_FLOWS);
        }
    }
}

/* Which limit speaks against one more flow of the service; HB_DROP_COUNT: none does. */
static enum hb_drop_reason find_limit(struct hb_batch *batch, const struct hb_packet *packet,
                                      bool has_entry)
{
    const struct hb_service_extra *extra = &batch->generation->extra[packet->service];
    struct hb_worker *worker = batch->worker;
    uint16_t id = service_of(batch, packet)->id;

    if (extra->limits_flows && !has_entry) {
        uint64_t most = extra->flows_share + (worker->config.index < extra->flows_rest);

        if (worker->services[id].flows >= most)
            return HB_DROP_LIMIT_FLOWS;
    }
    if (extra->limits_rate && !take_token(worker, id, extra))
        return HB_DROP_LIMIT_NEW_FLOWS;
    return HB_DROP_COUNT;
}

enum hb_admission hb_admit_flow(struct hb_batch *batch, struct hb_packet *packet, hb_flow_ref entry)
{
    const struct hb_flow_table *flows = batch->worker->flows;
    uint8_t state = HB_FLOW_FREE;
    enum hb_drop_reason reason;

    if (service_of(batch, packet)->tracking != HB_TRACKING_ALL)
        return HB_ADMITTED;
    if (entry != HB_FLOW_NONE)
        state = hb_flow_next_state(hb_flow_table_get(flows, entry).state, packet->event);
    if (state != HB_FLOW_FREE || hb_flow_next_state(HB_FLOW_FREE, packet->event) == HB_FLOW_FREE)
        return HB_ADMITTED; /* goes on, or begins nothing */
    reason = find_limit(batch, packet, entry != HB_FLOW_NONE);
    if (reason == HB_DROP_COUNT)
        return HB_ADMITTED;
    if (packet->event != HB_EVENT_SYN && packet->event != HB_EVENT_UDP)
        return HB_PASSED;
    refuse(batch, packet, reason);
    return HB_REFUSED;
}

void hb_admit_count(struct hb_batch *batch, const struct hb_packet *packet, hb_flow_ref entry)
{
    const struct hb_generation *generation = batch->generation;
    struct hb_worker *worker = batch->worker;
    uint16_t id = service_of(batch, packet)->id;

    if ((service_of(batch, packet)->features & HB_HAS_LIMIT) == 0 ||
        !generation->extra[packet->service].limits_flows)
        return;
    if (unlikely(worker->flows->tags == NULL))
        hb_flow_table_attach(worker->flows, generation->flow_tags[worker->config.index]);
    hb_flow_table_tag(worker->flows->tags, entry, (uint16_t)(id + 1));
    worker->services[id].flows++;
}
