/* SPDX-License-Identifier: BSD-3-Clause */
/* config_nat.h: what a pool's NAT is told by its configuration. */
#ifndef HB_CONTROL_CONFIG_NAT_H
#define HB_CONTROL_CONFIG_NAT_H

#include <stdbool.h>
#include <stdint.h>

#include "address_prefix.h"
#include "halbach/generation.h"

#define HB_NAT_PREFIXES_MAX 16
#define HB_NAT_PREFIX_BITS  10  /* a prefix has at most 2^10 addresses */
#define HB_NAT_OWN_MAX      256 /* own addresses of the balancer */
#define HB_NAT_SOURCES_MAX  (HB_SOURCES_MAX - HB_NAT_OWN_MAX)

enum hb_client_address {
    HB_CLIENT_NOT_TOLD = 0,
    HB_CLIENT_BY_PROXY_V2,
    HB_CLIENT_BY_OPTION,
    HB_CLIENT_BY_OPTION_28,
};

struct hb_nat_sources {
    struct hb_address_prefix prefix[HB_NAT_PREFIXES_MAX];
    uint32_t count;
};

struct hb_nat_ports {
    uint16_t first, last;
};

struct hb_nat_config {
    uint16_t port;                 /* of the backends; 0: the service's */
    struct hb_nat_sources sources; /* full NAT only, as the rest */
    struct hb_nat_ports ports;
    uint8_t client_address; /* enum hb_client_address */
};

bool hb_config_is_nat(enum hb_forwarding forwarding);

/* How many addresses its prefixes have. */
uint32_t hb_nat_count_sources(const struct hb_nat_config *nat);

#endif
