/* SPDX-License-Identifier: BSD-3-Clause */
/* See nat_quote.h. */
#include "nat_quote.h"

#include <stddef.h>

#include "nat_checksum.h"

enum {
    ICMP = 1,
    ICMPV6 = 58,
    ICMP_BYTES = 8, /* before the quote, in both */
    ICMP_CHECKSUM = 2,
    UNREACHABLE = 3,
    TIME_EXCEEDED = 11,
    PARAMETER_PROBLEM = 12,
    V6_ERRORS_LAST = 4, /* 1 to 4: unreachable, too big, time exceeded, parameter problem */
};

bool hb_nat_is_error(const struct hb_nat_header *outer)
{
    uint8_t type;

    if (outer->l4 == NULL || outer->fragment || outer->l4_length < ICMP_BYTES)
        return false;
    type = outer->l4[0];
    if (outer->family == HB_FAMILY_IPV4)
        return outer->protocol == ICMP &&
               (type == UNREACHABLE || type == TIME_EXCEEDED || type == PARAMETER_PROBLEM);
    return outer->protocol == ICMPV6 && type >= 1 && type <= V6_ERRORS_LAST;
}

bool hb_nat_read_quote(const struct hb_nat_header *outer, struct hb_nat_header *quote)
{
    if (!hb_nat_is_error(outer) ||
        !hb_nat_read(quote, outer->l4 + ICMP_BYTES, outer->l4_length - ICMP_BYTES))
        return false;
    return quote->family == outer->family && quote->l4 != NULL && quote->l4_length >= 4 &&
           (quote->protocol == HB_PROTOCOL_TCP || quote->protocol == HB_PROTOCOL_UDP);
}

/* The words of the quote that can change: the IP header to its end, ports and checksum. */
static uint64_t sum_quote(const struct hb_nat_header *quote)
{
    size_t bytes =
        (size_t)(quote->l4 - quote->l3) + (quote->l4_length < 20 ? quote->l4_length & ~1u : 20u);

    return hb_checksum_words(quote->l3, bytes);
}

/* The error's own addresses are in the sum of ICMPv6 alone, by the pseudo-header. */
static uint64_t sum_addresses(const struct hb_nat_header *outer)
{
    if (outer->family == HB_FAMILY_IPV4)
        return 0;
    return hb_checksum_words(hb_nat_address(outer, HB_NAT_SOURCE_END), 32);
}

void hb_nat_translate_error(struct hb_nat_header *outer, const struct hb_nat_exchange own[],
                            uint32_t own_count, struct hb_nat_header *quote,
                            const struct hb_nat_exchange quoted[], uint32_t quoted_count)
{
    uint64_t removed = sum_quote(quote) + sum_addresses(outer);
    uint8_t *check = outer->l4 + ICMP_CHECKSUM;

    for (uint32_t i = 0; i < own_count; i++)
        hb_nat_set_end(outer, own[i].end, own[i].address, 0);
    for (uint32_t i = 0; i < quoted_count; i++)
        hb_nat_set_end(quote, quoted[i].end, quoted[i].address, quoted[i].port);
    hb_checksum_store(check, hb_checksum_replace(hb_checksum_load(check), removed,
                                                 sum_quote(quote) + sum_addresses(outer)));
}
