/* SPDX-License-Identifier: BSD-3-Clause */
/* See plan_nat.h. */
#include "plan_nat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rewrite_nat.h"

bool hb_model_has_nat(const struct hb_model *model)
{
    for (uint32_t p = 0; p < model->pools_count; p++)
        if (hb_config_is_nat(model->pools[p].forwarding))
            return true;
    return false;
}

static void plan_prefix(struct hb_plan *plan, const struct hb_nat_config *nat,
                        const struct hb_nat_prefix *prefix)
{
    uint32_t bits = hb_address_bits(prefix->address.family);
    uint32_t count = 1u << (bits - prefix->length);

    for (uint32_t i = 0; i < count; i++) {
        struct hb_source_record *record = &plan->sources[plan->sources_count++];
        uint32_t last = bits / 8 - 1; /* a prefix has ten bits at most: the last two bytes */

        memcpy(record->address, prefix->address.bytes, sizeof(record->address));
        record->address[last] = (uint8_t)(record->address[last] + i);
        record->address[last - 1] = (uint8_t)(record->address[last - 1] + (i >> 8));
        record->family = prefix->address.family;
        record->port_first = nat->ports.first;
        record->port_last = nat->ports.last;
    }
}

static void plan_own(struct hb_plan *plan, const struct hb_address *address)
{
    struct hb_source_record *record = &plan->sources[plan->sources_count++];

    memcpy(record->address, address->bytes, sizeof(record->address));
    record->family = address->family;
    record->own = 1;
}

int hb_plan_nat(struct hb_plan *plan, const struct hb_model *model, struct hb_port_list ports)
{
    char problem[192];

    if (!hb_model_has_nat(model))
        return 0;
    if (plan->sources == NULL)
        plan->sources = malloc(HB_SOURCES_MAX * sizeof(*plan->sources));
    if (plan->sources == NULL)
        return -ENOMEM;
    memset(plan->sources, 0, HB_SOURCES_MAX * sizeof(*plan->sources));
    plan->sources_count = 0;
    for (uint32_t p = 0; p < model->pools_count; p++) {
        const struct hb_model_pool *pool = &model->pools[p];

        if (pool->forwarding != HB_FORWARDING_FULL_NAT)
            continue;
        plan->pools[p].sources_first = plan->sources_count;
        for (uint32_t i = 0; i < pool->nat.sources.count; i++)
            plan_prefix(plan, &pool->nat, &pool->nat.sources.prefix[i]);
        plan->pools[p].sources_count = plan->sources_count - plan->pools[p].sources_first;
    }
    for (uint32_t i = 0; i < model->own_count; i++)
        plan_own(plan, &model->own[i]);
    for (uint32_t i = 0; i < 2; i++)
        hb_client_hop_make(&model->client[i], &model->to_clients[i], ports,
                           &plan->settings.to_clients[i], problem, sizeof(problem));
    return 0;
}
