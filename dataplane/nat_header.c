/* SPDX-License-Identifier: BSD-3-Clause */
/* See nat_header.h. */
#include "nat_header.h"

#include <string.h>

#include "nat_checksum.h"

enum {
    IPV4_BYTES = 20,
    IPV6_BYTES = 40,
    IPV6_HOP_BY_HOP = 0,
    IPV6_ROUTING = 43,
    IPV6_FRAGMENT = 44,
    IPV6_DESTINATION = 60,
    EXTENSIONS_MAX = 8,
    TCP_BYTES = 20,
    UDP_BYTES = 8,
    TCP_CHECKSUM = 16,
    UDP_CHECKSUM = 6,
};

static uint16_t load_be16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static bool read_ipv4(struct hb_nat_header *header, uint32_t readable)
{
    uint8_t *l3 = header->l3;
    uint32_t size = (l3[0] & 0xfu) * 4;
    uint16_t fragment;

    if (readable < IPV4_BYTES || size < IPV4_BYTES || size > readable)
        return false;
    fragment = load_be16(l3 + 6);
    header->family = HB_FAMILY_IPV4;
    header->protocol = l3[9];
    header->fragment = (fragment & 0x3fff) != 0;
    if ((fragment & 0x1fff) != 0)
        return true;
    header->l4 = l3 + size;
    header->l4_length = readable - size;
    return true;
}

static bool read_ipv6(struct hb_nat_header *header, uint32_t readable)
{
    uint8_t *l3 = header->l3;
    uint32_t at = IPV6_BYTES;

    if (readable < IPV6_BYTES)
        return false;
    header->family = HB_FAMILY_IPV6;
    header->protocol = l3[6];
    for (uint32_t depth = 0; depth < EXTENSIONS_MAX; depth++) {
        bool fragment = header->protocol == IPV6_FRAGMENT;

        if (!fragment && header->protocol != IPV6_HOP_BY_HOP && header->protocol != IPV6_ROUTING &&
            header->protocol != IPV6_DESTINATION)
            break;
        if (readable - at < 8)
            return false;
        header->protocol = l3[at];
        if (fragment) {
            header->fragment = true;
            if ((load_be16(l3 + at + 2) & 0xfff8) != 0)
                return true;
            at += 8;
            continue;
        }
        if (readable - at < 8 + l3[at + 1] * 8u)
            return false;
        at += 8 + l3[at + 1] * 8u;
    }
    header->l4 = l3 + at;
    header->l4_length = readable - at;
    return true;
}

bool hb_nat_read(struct hb_nat_header *header, uint8_t *l3, uint32_t readable)
{
    *header = (struct hb_nat_header){.l3 = l3};
    if (readable == 0)
        return false;
    if (l3[0] >> 4 == 4)
        return read_ipv4(header, readable);
    return l3[0] >> 4 == 6 && read_ipv6(header, readable);
}

bool hb_nat_has_ports(const struct hb_nat_header *header)
{
    if (header->l4 == NULL)
        return false;
    if (header->protocol == HB_PROTOCOL_TCP)
        return header->l4_length >= TCP_BYTES;
    return header->protocol == HB_PROTOCOL_UDP && header->l4_length >= UDP_BYTES;
}

static uint32_t address_offset(const struct hb_nat_header *header, enum hb_nat_end end)
{
    if (header->family == HB_FAMILY_IPV4)
        return end == HB_NAT_SOURCE_END ? 12 : 16;
    return end == HB_NAT_SOURCE_END ? 8 : 24;
}

static size_t address_size(const struct hb_nat_header *header)
{
    return header->family == HB_FAMILY_IPV4 ? 4 : 16;
}

const uint8_t *hb_nat_address(const struct hb_nat_header *header, enum hb_nat_end end)
{
    return header->l3 + address_offset(header, end);
}

/* TCP and UDP begin with the two ports; a quote holds them at least (RFC 792: eight bytes). */
static bool shows_ports(const struct hb_nat_header *header)
{
    return header->l4 != NULL && header->l4_length >= 4 &&
           (header->protocol == HB_PROTOCOL_TCP || header->protocol == HB_PROTOCOL_UDP);
}

hb_be16 hb_nat_port(const struct hb_nat_header *header, enum hb_nat_end end)
{
    if (!shows_ports(header))
        return 0;
    return hb_checksum_load(header->l4 + (end == HB_NAT_SOURCE_END ? 0 : 2));
}

void hb_nat_fix_checksum(struct hb_nat_header *header, uint64_t removed, uint64_t added)
{
    uint8_t *l4 = header->l4;

    if (l4 == NULL)
        return;
    if (header->protocol == HB_PROTOCOL_TCP && header->l4_length >= TCP_CHECKSUM + 2)
        hb_checksum_store(l4 + TCP_CHECKSUM,
                          hb_checksum_replace(hb_checksum_load(l4 + TCP_CHECKSUM), removed, added));
    else if (header->protocol == HB_PROTOCOL_UDP && header->l4_length >= UDP_CHECKSUM + 2)
        hb_checksum_store(l4 + UDP_CHECKSUM,
                          hb_checksum_replace_udp(hb_checksum_load(l4 + UDP_CHECKSUM), removed,
                                                  added, header->family == HB_FAMILY_IPV4));
}

void hb_nat_set_end(struct hb_nat_header *header, enum hb_nat_end end, const uint8_t *address,
                    hb_be16 port)
{
    uint8_t *at = header->l3 + address_offset(header, end);
    size_t size = address_size(header);
    uint64_t removed = hb_checksum_words(at, size), added = hb_checksum_words(address, size);

    memcpy(at, address, size);
    if (header->family == HB_FAMILY_IPV4)
        hb_checksum_store(header->l3 + 10,
                          hb_checksum_replace(hb_checksum_load(header->l3 + 10), removed, added));
    if (shows_ports(header)) {
        uint8_t *port_at = header->l4 + (end == HB_NAT_SOURCE_END ? 0 : 2);

        removed += hb_checksum_load(port_at);
        added += port;
        hb_checksum_store(port_at, port);
    }
    hb_nat_fix_checksum(header, removed, added);
}

bool hb_nat_take_hop(struct hb_nat_header *header)
{
    uint8_t *hops = header->l3 + (header->family == HB_FAMILY_IPV4 ? 8 : 7);
    uint16_t before;

    if (*hops <= 1)
        return false;
    before = hb_checksum_load(header->l3 + 8); /* IPv4: the TTL shares its word with the protocol */
    --*hops;
    if (header->family == HB_FAMILY_IPV4)
        hb_checksum_store(header->l3 + 10,
                          hb_checksum_replace(hb_checksum_load(header->l3 + 10), before,
                                              hb_checksum_load(header->l3 + 8)));
    return true;
}
