/* SPDX-License-Identifier: BSD-3-Clause */
/* See affinity.h. */
#include "affinity.h"

uint64_t hb_affinity_hash(const struct hb_service_extra *extra, const struct hb_flow_query *flow,
                          const struct hb_hash_key *key)
{
    uint32_t port = extra->affinity == HB_AFFINITY_SOURCE_PORT ? flow->ports & 0xffff : 0;
    uint64_t words[4] = {0};
    struct hb_flow_query source = {
        .ports = port, .kind = flow->kind & 0xff00, .addresses = (const uint8_t *)words};

    if (!hb_flow_is_ipv6(flow)) {
        source.source = flow->source & (uint32_t)extra->source_mask[0];
        return hb_flow_hash_ipv4(&source, key);
    }
    words[0] = hb_load64(flow->addresses) & extra->source_mask[0];
    words[1] = hb_load64(flow->addresses + 8) & extra->source_mask[1];
    return hb_flow_hash_ipv6(&source, key);
}
