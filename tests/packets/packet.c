/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "packet.h"

static const uint8_t ethernet[12] = {2, 0, 0, 0, 0, 0x10, 2, 0, 0, 0, 0, 0x99};

static void put16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void put_address(uint8_t *at, uint8_t family, const char *text)
{
    if (inet_pton(family == 6 ? AF_INET6 : AF_INET, text, at) != 1)
        fprintf(stderr, "not an address: %s\n", text);
}

uint16_t checksum(const uint8_t *bytes, uint32_t length)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < length; i++)
        sum += i % 2 == 0 ? (uint64_t)bytes[i] << 8 : bytes[i];
    /* The ones' complement sum is the remainder by 65,535, which is 0xffff rather than 0 unless all
     * bytes are zero. */
    return (uint16_t) ~(sum == 0 ? 0 : (sum - 1) % 65535 + 1);
}

static uint8_t *write_ethernet(struct frame *frame, const struct spec *spec)
{
    uint8_t *at = frame->bytes + 12;

    memcpy(frame->bytes, ethernet, sizeof(ethernet));
    for (uint8_t tag = 0; tag < spec->tags; tag++) {
        put16(at, tag + 1 < spec->tags ? 0x88a8 : 0x8100);
        put16(at + 2, (uint16_t)(100 + tag));
        at += 4;
    }
    put16(at, spec->family == 6 ? 0x86dd : 0x0800);
    return at + 2;
}

static uint8_t *write_ipv4(uint8_t *at, const struct spec *spec, uint32_t behind)
{
    uint32_t size = 20 + spec->options;

    memset(at, 1, size); /* options: "no operation" */
    at[0] = (uint8_t)(0x40 | size / 4);
    at[1] = spec->tos;
    put16(at + 2, (uint16_t)(size + behind));
    put16(at + 4, spec->id);
    put16(at + 6, spec->fragment);
    at[8] = spec->ttl != 0 ? spec->ttl : 64;
    at[9] = spec->protocol;
    put16(at + 10, 0);
    put_address(at + 12, 4, spec->source != NULL ? spec->source : "203.0.113.9");
    put_address(at + 16, 4, spec->destination != NULL ? spec->destination : "192.0.2.10");
    put16(at + 10, checksum(at, size));
    return at + size;
}

static uint8_t *write_ipv6(uint8_t *at, const struct spec *spec, uint32_t behind)
{
    uint8_t *next = at + 6;

    put16(at, (uint16_t)(0x6000 | spec->tos << 4));
    put16(at + 2, 0x1234); /* flow label */
    put16(at + 4, (uint16_t)(behind + 8 * spec->chain_count));
    at[7] = spec->ttl != 0 ? spec->ttl : 64;
    put_address(at + 8, 6, spec->source != NULL ? spec->source : "2001:db8:0:c::9");
    put_address(at + 24, 6, spec->destination != NULL ? spec->destination : "2001:db8:0:a::10");
    at += 40;
    for (uint8_t i = 0; i < spec->chain_count; i++) {
        *next = spec->chain[i];
        next = at;
        memset(at, 0, 8);
        at += 8;
    }
    *next = spec->protocol;
    return at;
}

static uint8_t *write_l4(uint8_t *at, const struct spec *spec)
{
    put16(at, spec->source_port != 0 ? spec->source_port : 40000);
    if (spec->protocol == 6) {
        put16(at + 2, spec->destination_port != 0 ? spec->destination_port : 80);
        memset(at + 4, 0x55, 16);
        at[12] = 0x50;
        at[13] = spec->flags != 0 ? spec->flags : SYN;
        return at + 20;
    }
    put16(at + 2, spec->destination_port != 0 ? spec->destination_port : 443);
    put16(at + 4, (uint16_t)(8 + spec->payload));
    put16(at + 6, 0xbeef);
    return at + 8;
}

struct frame build(const struct spec *spec)
{
    struct frame frame = {.family = spec->family, .tos = spec->tos};
    uint32_t behind = (spec->protocol == 6 ? 20 : 8) + spec->payload;
    uint8_t *at = write_ethernet(&frame, spec);

    frame.l3 = (uint32_t)(at - frame.bytes);
    frame.df = spec->family == 6 || (spec->fragment & DF) != 0;
    if (spec->family == 6)
        at = write_ipv6(at, spec, behind);
    else
        at = write_ipv4(at, spec, behind);
    at = write_l4(at, spec);
    for (uint32_t i = 0; i < spec->payload; i++)
        *at++ = (uint8_t)i;
    frame.length = (uint32_t)(at - frame.bytes);
    frame.ip_length = frame.length - frame.l3;
    assert(frame.length <= FRAME_MAX);
    return frame;
}

uint16_t checksum_l4(const struct frame *frame, uint8_t protocol)
{
    const uint8_t *ip = frame->bytes + frame->l3;
    uint32_t header = frame->family == 6 ? 40 : (ip[0] & 0xfu) * 4;
    uint32_t size = frame->family == 6 ? 32 : 8, length = frame->ip_length - header;
    uint8_t bytes[FRAME_MAX + 40] = {0};

    memcpy(bytes, ip + (frame->family == 6 ? 8 : 12), size);
    put16(bytes + size, (uint16_t)length);
    bytes[size + 3] = protocol;
    memcpy(bytes + size + 4, ip + header, length);
    return checksum(bytes, size + 4 + length);
}

struct frame build_icmp(const struct icmp *icmp)
{
    uint32_t length = icmp->payload;
    struct spec spec = {.family = icmp->family,
                        .protocol = icmp->family == 6 ? 58 : 1,
                        .source = icmp->source,
                        .destination = icmp->destination,
                        .ttl = icmp->ttl,
                        .tos = icmp->tos,
                        .tags = icmp->tags,
                        .options = icmp->options};
    struct frame frame;
    uint8_t *at;

    if (icmp->quote != NULL)
        length = icmp->quoted != 0 ? icmp->quoted : icmp->quote->ip_length;
    spec.payload = length;
    frame = build(&spec);
    at = frame.bytes + frame.length - length - 8;
    memset(at, 0, 8);
    at[0] = icmp->type;
    at[1] = icmp->code;
    put16(at + 4, (uint16_t)(icmp->word >> 16));
    put16(at + 6, (uint16_t)icmp->word);
    if (icmp->quote != NULL)
        memcpy(at + 8, icmp->quote->bytes + icmp->quote->l3, length);
    put16(at + 2, icmp->family == 6 ? checksum_l4(&frame, 58) : checksum(at, 8 + length));
    return frame;
}

struct frame fragment(const struct frame *whole, uint32_t id, uint32_t start, uint32_t length)
{
    struct frame frame = *whole;
    uint32_t header = frame.family == 6 ? 40 : 20;
    bool last = length == 0;
    uint8_t *ip = frame.bytes + L3;

    if (last)
        length = whole->ip_length - header - start;
    if (frame.family == 6) {
        uint8_t *at = ip + header;

        at[0] = ip[6];
        at[1] = 0;
        put16(at + 2, (uint16_t)(start | !last));
        put16(at + 4, (uint16_t)(id >> 16));
        put16(at + 6, (uint16_t)id);
        ip[6] = 44;
        put16(ip + 4, (uint16_t)(8 + length));
        memcpy(at + 8, whole->bytes + L3 + header + start, length);
        header += 8;
    } else {
        put16(ip + 2, (uint16_t)(header + length));
        put16(ip + 4, (uint16_t)id);
        put16(ip + 6, (uint16_t)(start / 8 | (last ? 0 : MF)));
        memcpy(ip + header, whole->bytes + L3 + header + start, length);
        frame.df = false;
        frame = fix4(frame);
    }
    frame.ip_length = header + length;
    frame.length = L3 + frame.ip_length;
    return frame;
}

struct frame build_arp(void)
{
    struct frame frame = {.length = 60};

    memcpy(frame.bytes, ethernet, sizeof(ethernet));
    memset(frame.bytes, 0xff, 6);
    put16(frame.bytes + ETHERTYPE, 0x0806);
    memcpy(frame.bytes + L3, (uint8_t[]){0, 1, 8, 0, 6, 4, 0, 1}, 8);
    return frame;
}

struct frame poke8(struct frame frame, uint32_t at, uint8_t value)
{
    frame.bytes[at] = value;
    return frame;
}

struct frame poke16(struct frame frame, uint32_t at, uint16_t value)
{
    put16(frame.bytes + at, value);
    return frame;
}

struct frame poke_address(struct frame frame, uint32_t at, const char *address)
{
    put_address(frame.bytes + at, frame.family, address);
    return frame;
}

struct frame fix4(struct frame frame)
{
    put16(frame.bytes + IP4_CHECKSUM, 0);
    put16(frame.bytes + IP4_CHECKSUM, checksum(frame.bytes + L3, (frame.bytes[L3] & 0xf) * 4));
    return frame;
}

struct frame cut(struct frame frame, uint32_t length)
{
    frame.length = length;
    return frame;
}

struct frame pad(struct frame frame, uint32_t length)
{
    while (frame.length < length)
        frame.bytes[frame.length++] = 0xee;
    return frame;
}

uint32_t write_rewrite(uint8_t *bytes, uint8_t outer_family, uint16_t number)
{
    uint8_t *at = bytes + 14;
    char text[64];

    memcpy(bytes, (uint8_t[]){2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0x10}, 12);
    put16(bytes + 12, outer_family == 6 ? 0x86dd : 0x0800);
    if (outer_family == 6) {
        memset(at, 0, 40);
        at[0] = 0x60;
        at[7] = 64;
        put_address(at + 8, 6, "2001:db8:0:1::10");
        snprintf(text, sizeof(text), "2001:db8:0:b::%u", 10 + number);
        put_address(at + 24, 6, text);
        return 14 + 40;
    }
    memset(at, 0, 20);
    at[0] = 0x45;
    at[8] = 64;
    put_address(at + 12, 4, "198.51.100.10");
    snprintf(text, sizeof(text), "198.51.100.%u", 10 + number);
    put_address(at + 16, 4, text);
    return 14 + 20;
}

struct frame tunnel(const struct frame *in, uint8_t outer_family, uint16_t number, uint16_t id,
                    uint32_t label)
{
    struct frame out = {.family = outer_family, .tos = in->tos, .df = in->df, .l3 = L3};
    uint32_t size = write_rewrite(out.bytes, outer_family, number);
    uint8_t *outer = out.bytes + L3;
    uint8_t protocol = in->family == 6 ? 41 : 4;

    if (outer_family == 6) {
        put16(outer, (uint16_t)(0x6000 | in->tos << 4 | label >> 16));
        put16(outer + 2, (uint16_t)label);
        put16(outer + 4, (uint16_t)in->ip_length);
        outer[6] = protocol;
    } else {
        outer[1] = in->tos;
        put16(outer + 2, (uint16_t)(20 + in->ip_length));
        put16(outer + 4, in->df ? 0 : id);
        put16(outer + 6, in->df ? DF : 0);
        outer[9] = protocol;
        put16(outer + 10, checksum(outer, 20));
    }
    memcpy(out.bytes + size, in->bytes + in->l3, in->ip_length);
    out.length = size + in->ip_length;
    out.ip_length = out.length - L3;
    return out;
}
