/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service_rules.h: what a service says beside its VIP, protocol, ports and pool: affinity, sources
 * that it takes, limits, connection ids of QUIC. The same in the configuration and in the model.
 *
 * A list of sources may have a quarter of a million prefixes, so it is shared: whoever copies rules
 * becomes one more holder of the list, and nobody changes it once it is sorted. One thread. Pure.
 */
#ifndef HB_CONTROL_SERVICE_RULES_H
#define HB_CONTROL_SERVICE_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"
#include "halbach/generation.h"

#define HB_QUIC_CONFIGS_MAX 7 /* of a service: ids 0 to 6 */

struct hb_source_list {
    uint32_t holders;
    uint32_t count;
    bool denies_others;               /* those that no prefix matches */
    struct hb_prefix_record prefix[]; /* `list` 0; sorted by family, address, length */
};

struct hb_service_rules {
    uint8_t affinity;        /* enum hb_affinity */
    uint8_t affinity_prefix; /* bits; 0 with HB_AFFINITY_FLOW */
    uint8_t quic_count;
    struct hb_source_list *sources; /* NULL: all are allowed */
    uint32_t new_flows;             /* a second; 0: no limit */
    uint32_t flows;                 /* at a time; 0: no limit */
    struct hb_quic_record quic[HB_QUIC_CONFIGS_MAX];
};

/* `to` holds nothing before. */
void hb_service_rules_copy(struct hb_service_rules *to, const struct hb_service_rules *from);
void hb_service_rules_clear(struct hb_service_rules *rules);
bool hb_service_rules_same(const struct hb_service_rules *a, const struct hb_service_rules *b);

/* An order of lists; 0: equal, or none twice. */
int hb_source_list_compare(const struct hb_source_list *a, const struct hb_source_list *b);

/* "any", "80" or "8000-8999", into HB_PORTS_TEXT bytes; returns `text`. */
#define HB_PORTS_TEXT 16
const char *hb_ports_print(uint16_t first, uint16_t last, char *text);

/* "192.0.2.10" or "192.0.2.0/24", into HB_ADDRESS_TEXT bytes; returns `text`. */
const char *hb_vip_print(const struct hb_address *vip, uint8_t prefix_length, char *text);

/* Clears the bits of an address behind a prefix; false when some were set. */
bool hb_address_mask(struct hb_address *address, uint8_t length);

#endif
