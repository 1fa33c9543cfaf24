/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GET /v1/lookup (docs/api.md): asks the dataplane where a packet of one flow goes, and says why.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api_internal.h"

static const char *const source_names[] = {
    [HB_LOOKUP_NO_SERVICE] = "no_service", [HB_LOOKUP_NO_BACKEND] = "no_backend",
    [HB_LOOKUP_TABLE] = "table",           [HB_LOOKUP_FLOW] = "flow",
    [HB_LOOKUP_FLOW_STALE] = "flow_stale",
};

static bool parse_endpoint(struct hb_api_call *call, const char *name, struct hb_address *address,
                           uint16_t *port)
{
    const char *text = hb_api_argument(call, name);

    if (text != NULL && hb_address_port_parse(text, address, port))
        return true;
    hb_api_refuse(call, 400,
                  "argument '%s' is %s%s%s; expected ADDRESS:PORT, or [ADDRESS]:PORT for IPv6",
                  name, text ? "\"" : "missing", text ? text : "", text ? "\"" : "");
    return false;
}

/* Fills *flow from the query, or refuses the call. */
static bool parse_flow(struct hb_api_call *call, struct hb_flow_key *flow)
{
    const char *protocol = hb_api_argument(call, "protocol");
    struct hb_address client, vip;
    uint16_t client_port, vip_port;

    memset(flow, 0, sizeof(*flow));
    if (!parse_endpoint(call, "client", &client, &client_port) ||
        !parse_endpoint(call, "vip", &vip, &vip_port))
        return false;
    if (protocol == NULL || strcmp(protocol, "tcp") == 0) {
        flow->protocol = HB_PROTOCOL_TCP;
    } else if (strcmp(protocol, "udp") == 0) {
        flow->protocol = HB_PROTOCOL_UDP;
    } else if (strcmp(protocol, "sctp") == 0) {
        flow->protocol = HB_PROTOCOL_SCTP;
    } else {
        hb_api_refuse(call, 400, "argument 'protocol' is \"%s\"; expected tcp, udp or sctp",
                      protocol);
        return false;
    }
    if (client.family != vip.family) {
        hb_api_refuse(call, 400, "arguments 'client' and 'vip' are of different address families");
        return false;
    }
    flow->family = vip.family;
    memcpy(flow->source, client.bytes, sizeof(flow->source));
    memcpy(flow->destination, vip.bytes, sizeof(flow->destination));
    flow->source_port = htobe16(client_port);
    flow->destination_port = htobe16(vip_port);
    return true;
}

static const char *name_of(const struct hb_model_backend *backend)
{
    return backend ? backend->name : "a backend that is gone";
}

static void explain(const struct hb_lookup_reply *reply, const struct hb_model_backend *backend,
                    const struct hb_model_backend *owner, const struct hb_model_backend *previous,
                    char *why, size_t size)
{
    switch (reply->source) {
    case HB_LOOKUP_NO_SERVICE:
        snprintf(why, size,
                 "no service has this VIP, protocol and port: another port of a VIP is dropped "
                 "(no_service), another address is the kernel's");
        break;
    case HB_LOOKUP_NO_BACKEND:
        snprintf(why, size, "the pool has no usable backend; packets are dropped (no_backend)");
        break;
    case HB_LOOKUP_TABLE:
        snprintf(why, size, "%s; slot %u of %u belongs to %s%s%s%s",
                 reply->tracking == HB_TRACKING_OFF ||
                         (reply->tracking == HB_TRACKING_CHANGED && !reply->unsettled)
                     ? "such flows get no entry"
                     : "no worker has an entry for this flow",
                 reply->slot, reply->slots, name_of(backend),
                 previous ? ", and an established connection goes to " : "",
                 previous ? previous->name : "", previous ? ", who had it before" : "");
        break;
    case HB_LOOKUP_FLOW:
        snprintf(why, size,
                 "worker %u has an entry for this flow, last used %u ms ago; a new flow would go "
                 "to %s",
                 reply->worker, reply->flow_idle_ms,
                 owner ? owner->name : "nobody, since no backend is usable");
        break;
    case HB_LOOKUP_FLOW_STALE:
        snprintf(why, size,
                 "worker %u has an entry for this flow, but its backend is gone or down; slot %u "
                 "sends it to %s",
                 reply->worker, reply->slot, name_of(backend));
        break;
    default:
        snprintf(why, size, "the dataplane gave a reason that this control does not know");
    }
}

/* What the dataplane can't say: it answers by the table, and the limit by the moment. */
static void mention_bound(const struct hb_lookup_reply *reply, const struct hb_model_pool *pool,
                          char *why, size_t size)
{
    size_t length = strlen(why);

    if (pool->bounded_load != 0 && reply->slots != 0)
        snprintf(why + length, size - length,
                 "; pool %s bounds the load: a backend at its limit passes a new flow on",
                 pool->name);
}

static void set_slot(json_t *answer, const struct hb_lookup_reply *reply,
                     const struct hb_model_backend *owner)
{
    bool known = reply->slots != 0;

    json_object_set_new(answer, "slot", known ? json_integer(reply->slot) : json_null());
    json_object_set_new(answer, "slots", known ? json_integer(reply->slots) : json_null());
    json_object_set_new(answer, "slot_owner", owner ? json_string(owner->name) : json_null());
}

static json_t *describe_reply(const struct hb_model *model, const struct hb_lookup_reply *reply)
{
    bool is_service = reply->source != HB_LOOKUP_NO_SERVICE;
    bool is_flow = reply->source == HB_LOOKUP_FLOW || reply->source == HB_LOOKUP_FLOW_STALE;
    const struct hb_model_service *service =
        is_service ? hb_model_service_by_id(model, reply->service) : NULL;
    const struct hb_model_backend *backend = hb_model_backend_by_id(model, reply->backend, NULL);
    const struct hb_model_backend *owner =
        hb_model_backend_by_id(model, reply->table_backend, NULL);
    char why[384], hash[17];
    json_t *answer;

    explain(reply, backend, owner, hb_model_backend_by_id(model, reply->previous_backend, NULL),
            why, sizeof(why));
    if (service != NULL)
        mention_bound(reply, &model->pools[service->pool], why, sizeof(why));
    snprintf(hash, sizeof(hash), "%016" PRIx64, reply->hash);
    answer =
        json_pack("{s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:s}", "source",
                  reply->source <= HB_LOOKUP_FLOW_STALE ? source_names[reply->source] : "unknown",
                  "generation", (json_int_t)reply->generation_number, "service",
                  service ? json_string(service->name) : json_null(), "pool",
                  service ? json_string(model->pools[service->pool].name) : json_null(), "backend",
                  backend ? json_string(backend->name) : json_null(), "backend_address",
                  backend ? hb_json_address(&backend->address) : json_null(), "backend_state",
                  backend ? json_string(hb_backend_state_name(&backend->state)) : json_null(),
                  "hash", hash, "worker", is_flow ? json_integer(reply->worker) : json_null(),
                  "idle_ms", is_flow ? json_integer(reply->flow_idle_ms) : json_null(), "why", why);
    set_slot(answer, reply, owner);
    return answer;
}

static void on_lookup_done(void *context, const struct hb_lookup_reply *reply)
{
    struct hb_api_call *call = context;

    if (reply == NULL)
        hb_api_refuse(call, 503, "the dataplane went away before it answered; ask again");
    else
        hb_api_answer(call, 200, describe_reply(call->control->model, reply));
}

void hb_api_get_lookup(struct hb_api_call *call)
{
    struct hb_flow_key flow;
    int error;

    if (!parse_flow(call, &flow))
        return;
    error = hb_publisher_lookup(call->control->publisher, &flow, on_lookup_done, call);
    if (error == -ENOTCONN)
        hb_api_refuse(call, 503, "the dataplane is not connected: %s",
                      call->control->dataplane.problem);
    else if (error != 0)
        hb_api_refuse(call, 500, "the dataplane could not be asked: %s", strerror(-error));
}
