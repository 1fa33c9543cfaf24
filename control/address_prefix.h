/* SPDX-License-Identifier: BSD-3-Clause */
/* address_prefix.h: a block of addresses, as text and as a question. Pure. */
#ifndef HB_CONTROL_ADDRESS_PREFIX_H
#define HB_CONTROL_ADDRESS_PREFIX_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"

struct hb_address_prefix {
    struct hb_address address; /* bits behind the prefix are zero; family 0: none */
    uint8_t length;            /* bits */
};

#define HB_ADDRESS_PREFIX_TEXT (HB_ADDRESS_TEXT + 4)

/* Parses "198.51.100.128/25". *stray: the text is a prefix but for bits that are set behind it;
 * *prefix has what is written then. */
bool hb_address_prefix_parse(const char *text, struct hb_address_prefix *prefix, bool *stray);

/* The same, and takes an address alone as the prefix that holds nothing else. */
bool hb_address_or_prefix_parse(const char *text, struct hb_address_prefix *prefix, bool *stray);

/* Clears the bits of an address behind a prefix of `length` bits. */
void hb_address_mask(struct hb_address *address, uint8_t length);

/* Prints it into `text` (HB_ADDRESS_PREFIX_TEXT bytes) and returns that. */
const char *hb_address_prefix_print(const struct hb_address_prefix *prefix, char *text);

bool hb_address_prefix_equal(const struct hb_address_prefix *a, const struct hb_address_prefix *b);

/* False for a prefix of family 0 and for addresses of the other family. */
bool hb_address_prefix_holds(const struct hb_address_prefix *prefix,
                             const struct hb_address *address);

#endif
