/* SPDX-License-Identifier: BSD-3-Clause */
/* See generation_answers.h. The map of the generation has them all. */
#include "generation_answers.h"

#include <stdlib.h>
#include <string.h>

#include "nat_map.h"

static const struct hb_nat *find_map(const struct hb_built_generation *built)
{
    for (uint32_t node = 0; node < HB_NODES_MAX; node++)
        if (built->set.node[node] != NULL)
            return built->set.node[node]->nat;
    return NULL;
}

static void add_slot(struct hb_steer_nat_set *set, const struct hb_nat_slot *slot)
{
    if (slot->kind == HB_NAT_OWN) {
        struct hb_steer_vip *own = &set->own[set->own_count++];

        *own = (struct hb_steer_vip){.family = slot->key.family};
        memcpy(own->bytes, slot->key.address, sizeof(own->bytes));
    } else if (slot->kind == HB_NAT_BACKEND || slot->kind == HB_NAT_ADDRESS) {
        struct hb_steer_answer *answer = &set->answers[set->answers_count++];

        *answer = (struct hb_steer_answer){
            .port = slot->key.port, .protocol = slot->key.protocol, .family = slot->key.family};
        memcpy(answer->bytes, slot->key.address, sizeof(answer->bytes));
    }
}

bool hb_answers_list(const struct hb_built_generation *built, struct hb_steer_nat_set *set)
{
    const struct hb_nat *nat = find_map(built);

    *set = (struct hb_steer_nat_set){0};
    if (nat == NULL)
        return true;
    set->answers = calloc((size_t)nat->mask + 1, sizeof(*set->answers));
    set->own = calloc((size_t)nat->mask + 1, sizeof(*set->own));
    if (set->answers == NULL || set->own == NULL) {
        hb_answers_free(set);
        return false;
    }
    for (uint32_t i = 0; i <= nat->mask; i++)
        add_slot(set, &nat->slots[i]);
    return true;
}

void hb_answers_free(struct hb_steer_nat_set *set)
{
    free(set->answers);
    free(set->own);
    *set = (struct hb_steer_nat_set){0};
}
