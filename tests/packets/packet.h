/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packet.h: frames for tests, as small builder calls.
 *
 *     TCP4()                                   a SYN from the client to the IPv4 VIP, port 80
 *     UDP6(.payload = 9, .source_port = 7)     a datagram to the IPv6 VIP, port 443
 *     fix4(poke8(TCP4(), IP4_TTL, 0))          the first with TTL 0 and a right checksum
 *     cut(TCP4(), 33)                          its first 33 bytes
 *
 * Addresses are those of the field cases: client 203.0.113.9, VIPs 192.0.2.10 and 2001:db8:0:a::10,
 * backend number n on 198.51.100.(10+n) or 2001:db8:0:b::(10+n, in hex digits as in ::11).
 * Nothing here is shared with the code under test; checksums are computed in another way.
 */
#ifndef HB_TEST_PACKET_H
#define HB_TEST_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#define FRAME_MAX 1800

/* Offsets in an untagged frame. */
enum {
    ETHERTYPE = 12,
    L3 = 14,
    IP4_VERSION = L3,
    IP4_TOS = L3 + 1,
    IP4_LENGTH = L3 + 2,
    IP4_FRAGMENT = L3 + 6,
    IP4_TTL = L3 + 8,
    IP4_PROTOCOL = L3 + 9,
    IP4_CHECKSUM = L3 + 10,
    IP4_SOURCE = L3 + 12,
    IP4_DESTINATION = L3 + 16,
    L4_OF_4 = L3 + 20,
    IP6_LENGTH = L3 + 4,
    IP6_NEXT = L3 + 6,
    IP6_HOPS = L3 + 7,
    IP6_SOURCE = L3 + 8,
    IP6_DESTINATION = L3 + 24,
    L4_OF_6 = L3 + 40,
    TCP_OFFSET = 12, /* from the L4 header */
    TCP_FLAGS = 13,
    UDP_LENGTH = 4,
};

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16, URG = 32 };
enum { DF = 0x4000, MF = 0x2000 };

struct frame {
    uint32_t length;
    /* What the builder knows, whatever was poked into the bytes since. */
    uint32_t l3;        /* where the IP packet begins */
    uint32_t ip_length; /* how long it is */
    uint8_t family;
    uint8_t tos;
    bool df;
    uint8_t bytes[FRAME_MAX];
};

/* Fields that are left out have the defaults of the comment above. */
struct spec {
    uint8_t family;
    uint8_t protocol;
    const char *source, *destination;
    uint16_t source_port, destination_port;
    uint8_t flags; /* of TCP; SYN */
    uint8_t ttl;   /* 64 */
    uint8_t tos;
    uint8_t tags;      /* VLAN tags, the outermost 0x88a8 when there is more than one */
    uint8_t options;   /* bytes of IPv4 options, a multiple of 4 */
    uint16_t fragment; /* flags and offset word */
    uint16_t id;
    uint32_t payload;  /* bytes behind the TCP or UDP header, counting up */
    uint8_t chain[12]; /* types of IPv6 extension headers of 8 bytes, chain_count of them */
    uint8_t chain_count;
};

struct frame build(const struct spec *spec);
#define TCP4(...)        build(&(struct spec){.family = 4, .protocol = 6, ##__VA_ARGS__})
#define TCP6(...)        build(&(struct spec){.family = 6, .protocol = 6, ##__VA_ARGS__})
#define UDP4(...)        build(&(struct spec){.family = 4, .protocol = 17, ##__VA_ARGS__})
#define UDP6(...)        build(&(struct spec){.family = 6, .protocol = 17, ##__VA_ARGS__})
#define IP4(number, ...) build(&(struct spec){.family = 4, .protocol = (number), ##__VA_ARGS__})
#define IP6(number, ...) build(&(struct spec){.family = 6, .protocol = (number), ##__VA_ARGS__})

/* An ICMP message (ICMPv6 with family 6), its checksum right: type, code, the 32 bits behind the
 * checksum, and what follows. */
struct icmp {
    uint8_t family;
    uint8_t type, code;
    uint32_t word;
    const struct frame *quote; /* of its IP packet the first `quoted` bytes; 0: all */
    uint32_t quoted;
    uint32_t payload; /* without a quote: bytes counting up */
    const char *source, *destination;
    uint8_t ttl, tos, tags, options;
};
struct frame build_icmp(const struct icmp *icmp);
#define ICMP4(...) build_icmp(&(struct icmp){.family = 4, ##__VA_ARGS__})
#define ICMP6(...) build_icmp(&(struct icmp){.family = 6, ##__VA_ARGS__})

/* The fragment of an untagged packet without options or extension headers that holds `length` bytes
 * of its payload from `start` on; without `length` all that are left, and none follow. */
struct frame fragment(const struct frame *whole, uint32_t id, uint32_t start, uint32_t length);

/* The checksum of TCP or ICMPv6 over an IP packet's payload, pseudo header included: 0 when the one
 * in the packet is right. */
uint16_t checksum_l4(const struct frame *frame, uint8_t protocol);

/* An ARP request, padded to 60 bytes. */
struct frame build_arp(void);

/* Changes to a frame. */
struct frame poke8(struct frame frame, uint32_t at, uint8_t value);
struct frame poke16(struct frame frame, uint32_t at, uint16_t value);
struct frame poke_address(struct frame frame, uint32_t at, const char *address);
struct frame fix4(struct frame frame); /* the checksum of an untagged IPv4 header */
struct frame cut(struct frame frame, uint32_t length);
struct frame pad(struct frame frame, uint32_t length); /* with 0xee */

/* What must leave for backend `number` when `in` is tunnelled: `id` counts only without DF, `label`
 * only with an outer IPv6 header. */
struct frame tunnel(const struct frame *in, uint8_t outer_family, uint16_t number, uint16_t id,
                    uint32_t label);

/* The rewrite of backend `number`: Ethernet and the outer header with zeroes where packets differ.
 * Returns its size. */
uint32_t write_rewrite(uint8_t *bytes, uint8_t outer_family, uint16_t number);

/* The Internet checksum over `length` bytes (RFC 1071), by remainder instead of folding. */
uint16_t checksum(const uint8_t *bytes, uint32_t length);

#endif
