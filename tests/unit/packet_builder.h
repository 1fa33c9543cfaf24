/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packet_builder.h: packets put together header by header, outermost first, for tests.
 *
 * Length fields are given by hand, so that a test can also lie. Header only; a test
 * uses what it needs of it.
 */
#ifndef HB_TEST_PACKET_BUILDER_H
#define HB_TEST_PACKET_BUILDER_H

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKET_MAX 512

struct packet {
    uint8_t bytes[PACKET_MAX];
    uint32_t size;
};

#define UNUSED_OK __attribute__((unused)) static

UNUSED_OK uint8_t *put_bytes(struct packet *packet, const void *bytes, uint32_t size)
{
    uint8_t *at = packet->bytes + packet->size;

    if (packet->size + size > PACKET_MAX)
        abort();
    memcpy(at, bytes, size);
    packet->size += size;
    return at;
}

UNUSED_OK void put_be16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

UNUSED_OK void put_ethernet(struct packet *packet, uint16_t ether_type)
{
    static const uint8_t addresses[12] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
    uint8_t type[2];

    put_be16(type, ether_type);
    put_bytes(packet, addresses, sizeof(addresses));
    put_bytes(packet, type, sizeof(type));
}

/* The tag's own EtherType stands in the header before it. */
UNUSED_OK void put_vlan(struct packet *packet, uint16_t tci, uint16_t ether_type)
{
    uint8_t tag[4];

    put_be16(tag, tci);
    put_be16(tag + 2, ether_type);
    put_bytes(packet, tag, sizeof(tag));
}

UNUSED_OK void put_address(struct packet *packet, int family, const char *text)
{
    uint8_t address[16];

    if (inet_pton(family, text, address) != 1)
        abort();
    put_bytes(packet, address, family == AF_INET ? 4 : 16);
}

/* Computes an IPv4 header's checksum (RFC 1071), after fields were set or changed. */
UNUSED_OK void set_ipv4_checksum(uint8_t *ip)
{
    uint32_t sum = 0;

    put_be16(ip + 10, 0);
    for (int i = 0; i < (ip[0] & 15) * 4; i += 2)
        sum += (uint32_t)ip[i] << 8 | ip[i + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    put_be16(ip + 10, (uint16_t)~sum);
}

/* IPv4 without options. `payload`: bytes that will follow. Returns where the header is. */
UNUSED_OK uint8_t *put_ipv4(struct packet *packet, const char *source, const char *destination,
                            uint8_t protocol, uint8_t tos, uint32_t payload)
{
    uint8_t fixed[12] = {0x45, tos, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0};
    uint8_t *ip = packet->bytes + packet->size;

    put_be16(fixed + 2, (uint16_t)(20 + payload));
    put_bytes(packet, fixed, sizeof(fixed));
    put_address(packet, AF_INET, source);
    put_address(packet, AF_INET, destination);
    set_ipv4_checksum(ip);
    return ip;
}

UNUSED_OK uint8_t *put_ipv6(struct packet *packet, const char *source, const char *destination,
                            uint8_t next_header, uint8_t traffic_class, uint32_t payload)
{
    uint8_t fixed[8] = {(uint8_t)(0x60 | traffic_class >> 4),
                        (uint8_t)(traffic_class << 4 | 0x0a),
                        0xbc,
                        0xde,
                        0,
                        0,
                        next_header,
                        64};
    uint8_t *ip = packet->bytes + packet->size;

    put_be16(fixed + 4, (uint16_t)payload);
    put_bytes(packet, fixed, sizeof(fixed));
    put_address(packet, AF_INET6, source);
    put_address(packet, AF_INET6, destination);
    return ip;
}

/* Eight bytes of UDP header and `data` bytes that count up. No checksum: nothing here looks at it.
 */
UNUSED_OK void put_udp(struct packet *packet, uint32_t data)
{
    uint8_t header[8] = {0x30, 0x39, 0, 53, 0, 0, 0, 0};

    put_be16(header + 4, (uint16_t)(8 + data));
    put_bytes(packet, header, sizeof(header));
    for (uint32_t i = 0; i < data; i++)
        put_bytes(packet, &(uint8_t){(uint8_t)i}, 1);
}

UNUSED_OK void print_packet(const char *title, const uint8_t *bytes, uint32_t size)
{
    printf("%s (%u bytes):", title, size);
    for (uint32_t i = 0; i < size; i++)
        printf("%s%02x", i % 16 ? " " : "\n    ", bytes[i]);
    printf("\n");
}

#endif
