/* SPDX-License-Identifier: BSD-3-Clause */
#include "address_prefix.h"

#include <stdio.h>
#include <string.h>

#include "halbach/generation.h" /* hb_address_bits */

/* The bits of byte `index` that belong to a prefix of `length` bits. */
static uint8_t mask_of(uint8_t length, uint32_t index)
{
    int bits = (int)length - 8 * (int)index;

    return bits >= 8 ? 0xff : bits <= 0 ? 0 : (uint8_t)(0xff << (8 - bits));
}

bool hb_address_prefix_parse(const char *text, struct hb_address_prefix *prefix, bool *stray)
{
    const char *slash = strchr(text, '/'), *at;
    char address[HB_ADDRESS_TEXT];
    unsigned length = 0;

    *stray = false;
    memset(prefix, 0, sizeof(*prefix));
    if (slash == NULL || (size_t)(slash - text) >= sizeof(address))
        return false;
    memcpy(address, text, (size_t)(slash - text));
    address[slash - text] = '\0';
    at = slash + 1;
    if (*at == '\0' || strlen(at) > 3 || (*at == '0' && at[1] != '\0'))
        return false;
    for (; *at != '\0'; at++) {
        if (*at < '0' || *at > '9')
            return false;
        length = length * 10 + (unsigned)(*at - '0');
    }
    if (!hb_address_parse(address, &prefix->address) ||
        length > hb_address_bits(prefix->address.family)) {
        memset(prefix, 0, sizeof(*prefix));
        return false;
    }
    prefix->length = (uint8_t)length;
    for (uint32_t i = 0; i < sizeof(prefix->address.bytes); i++)
        *stray |= (prefix->address.bytes[i] & ~mask_of(prefix->length, i)) != 0;
    return !*stray;
}

bool hb_address_or_prefix_parse(const char *text, struct hb_address_prefix *prefix, bool *stray)
{
    if (strchr(text, '/') != NULL)
        return hb_address_prefix_parse(text, prefix, stray);
    *stray = false;
    memset(prefix, 0, sizeof(*prefix));
    if (!hb_address_parse(text, &prefix->address))
        return false;
    prefix->length = hb_address_bits(prefix->address.family);
    return true;
}

void hb_address_mask(struct hb_address *address, uint8_t length)
{
    for (uint32_t i = 0; i < sizeof(address->bytes); i++)
        address->bytes[i] &= mask_of(length, i);
}

const char *hb_address_prefix_print(const struct hb_address_prefix *prefix, char *text)
{
    char address[HB_ADDRESS_TEXT];

    snprintf(text, HB_ADDRESS_PREFIX_TEXT, "%s/%u", hb_address_print(&prefix->address, address),
             prefix->length);
    return text;
}

bool hb_address_prefix_holds(const struct hb_address_prefix *prefix,
                             const struct hb_address *address)
{
    if (prefix->address.family == 0 || prefix->address.family != address->family)
        return false;
    for (uint32_t i = 0; i < sizeof(address->bytes); i++) {
        if (((prefix->address.bytes[i] ^ address->bytes[i]) & mask_of(prefix->length, i)) != 0)
            return false;
    }
    return true;
}

bool hb_address_prefix_equal(const struct hb_address_prefix *a, const struct hb_address_prefix *b)
{
    return a->length == b->length && hb_address_compare(&a->address, &b->address) == 0;
}
