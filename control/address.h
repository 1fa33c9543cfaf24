/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * address.h: an IP address with its family, parsed and printed in one canonical way.
 */
#ifndef HB_CONTROL_ADDRESS_H
#define HB_CONTROL_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "halbach/types.h"

struct hb_address {
    uint8_t family; /* enum hb_family; 0: unset */
    uint8_t bytes[HB_ADDRESS_SIZE];
};

#define HB_ADDRESS_TEXT 48 /* room for any address and the final zero */

/* Parses a numeric IPv4 or IPv6 address: the whole string, no port, no prefix length, no zone, no
 * IPv4 with leading zeros ("198.51.100.011" is octal to some and decimal to others). */
bool hb_address_parse(const char *text, struct hb_address *address);

/* Prints the canonical text (RFC 5952 for IPv6) into `text` of HB_ADDRESS_TEXT bytes; returns
 * `text`. */
const char *hb_address_print(const struct hb_address *address, char *text);

/* -1, 0 or 1 by family, then by bytes. */
int hb_address_compare(const struct hb_address *a, const struct hb_address *b);

/* Parses "ADDRESS:PORT" or "[ADDRESS]:PORT" (the brackets are required for IPv6). */
bool hb_address_port_parse(const char *text, struct hb_address *address, uint16_t *port);

#endif
