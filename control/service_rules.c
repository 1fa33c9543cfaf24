/* SPDX-License-Identifier: BSD-3-Clause */
/* See service_rules.h. */
#include "service_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hb_service_rules_copy(struct hb_service_rules *to, const struct hb_service_rules *from)
{
    *to = *from;
    if (to->sources != NULL)
        to->sources->holders++;
}

void hb_service_rules_clear(struct hb_service_rules *rules)
{
    if (rules->sources != NULL && --rules->sources->holders == 0)
        free(rules->sources);
    memset(rules, 0, sizeof(*rules));
}

int hb_source_list_compare(const struct hb_source_list *a, const struct hb_source_list *b)
{
    if (a == b || a == NULL || b == NULL)
        return (a != NULL) - (b != NULL);
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    if (a->denies_others != b->denies_others)
        return a->denies_others ? 1 : -1;
    return memcmp(a->prefix, b->prefix, a->count * sizeof(a->prefix[0]));
}

bool hb_service_rules_same(const struct hb_service_rules *a, const struct hb_service_rules *b)
{
    return a->affinity == b->affinity && a->affinity_prefix == b->affinity_prefix &&
           a->new_flows == b->new_flows && a->flows == b->flows && a->quic_count == b->quic_count &&
           memcmp(a->quic, b->quic, sizeof(a->quic)) == 0 &&
           hb_source_list_compare(a->sources, b->sources) == 0;
}

const char *hb_ports_print(uint16_t first, uint16_t last, char *text)
{
    if (first == 0 && last == UINT16_MAX)
        snprintf(text, HB_PORTS_TEXT, "any");
    else if (first == last)
        snprintf(text, HB_PORTS_TEXT, "%u", first);
    else
        snprintf(text, HB_PORTS_TEXT, "%u-%u", first, last);
    return text;
}

const char *hb_vip_print(const struct hb_address *vip, uint8_t prefix_length, char *text)
{
    size_t used;

    hb_address_print(vip, text);
    used = strlen(text);
    if (prefix_length != hb_address_bits(vip->family))
        snprintf(text + used, HB_ADDRESS_TEXT - used, "/%u", prefix_length);
    return text;
}

bool hb_address_mask(struct hb_address *address, uint8_t length)
{
    bool clean = true;

    for (uint32_t bit = length; bit < 8 * HB_ADDRESS_SIZE; bit++) {
        uint8_t mask = (uint8_t)(0x80 >> bit % 8);

        clean = clean && (address->bytes[bit / 8] & mask) == 0;
        address->bytes[bit / 8] &= (uint8_t)~mask;
    }
    return clean;
}
