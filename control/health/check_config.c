/* SPDX-License-Identifier: BSD-3-Clause */
#include "check_config.h"

#include <string.h>

static const char *const type_names[HB_HEALTH_TYPES] = {
    [HB_HEALTH_NONE] = "none",   [HB_HEALTH_TCP] = "tcp",   [HB_HEALTH_HTTP] = "http",
    [HB_HEALTH_HTTPS] = "https", [HB_HEALTH_UDP] = "udp",   [HB_HEALTH_ICMP] = "icmp",
    [HB_HEALTH_GRPC] = "grpc",   [HB_HEALTH_EXEC] = "exec", [HB_HEALTH_GRPCS] = "grpcs",
};

const char *hb_health_type_name(enum hb_health_type type)
{
    return type < HB_HEALTH_TYPES && type_names[type] != NULL ? type_names[type] : "unknown";
}

bool hb_health_type_has_port(enum hb_health_type type)
{
    return type == HB_HEALTH_TCP || type == HB_HEALTH_HTTP || type == HB_HEALTH_HTTPS ||
           type == HB_HEALTH_UDP || type == HB_HEALTH_GRPC || type == HB_HEALTH_GRPCS;
}

static bool same_bytes(const struct hb_check_bytes *a, const struct hb_check_bytes *b)
{
    return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

static bool same_statuses(const struct hb_check_statuses *a, const struct hb_check_statuses *b)
{
    return a->count == b->count && memcmp(a->range, b->range, a->count * sizeof(a->range[0])) == 0;
}

static bool same_way(const struct hb_health_config *a, const struct hb_health_config *b)
{
    return a->type == b->type && a->port == b->port && a->via == b->via &&
           hb_address_compare(&a->vip, &b->vip) == 0;
}

static bool same_rhythm(const struct hb_health_config *a, const struct hb_health_config *b)
{
    return a->interval_ms == b->interval_ms && a->timeout_ms == b->timeout_ms &&
           a->jitter_ms == b->jitter_ms;
}

bool hb_health_alike(const struct hb_health_config *a, const struct hb_health_config *b)
{
    return same_way(a, b) && same_rhythm(a, b) && a->verify == b->verify &&
           strcmp(a->path, b->path) == 0 && strcmp(a->host, b->host) == 0 &&
           strcmp(a->ca, b->ca) == 0 && same_statuses(&a->statuses, &b->statuses) &&
           same_bytes(&a->body, &b->body) && same_bytes(&a->send, &b->send) &&
           same_bytes(&a->expect, &b->expect) && strcmp(a->grpc_service, b->grpc_service) == 0 &&
           strcmp(a->command, b->command) == 0;
}

bool hb_health_only_assumes(const struct hb_health_config *config)
{
    return config->type == HB_HEALTH_UDP && config->expect.length == 0;
}

bool hb_check_status_accepted(const struct hb_check_statuses *statuses, long status)
{
    if (statuses->count == 0)
        return status >= 200 && status <= 299;
    for (uint32_t i = 0; i < statuses->count; i++) {
        if (status >= statuses->range[i].first && status <= statuses->range[i].last)
            return true;
    }
    return false;
}
