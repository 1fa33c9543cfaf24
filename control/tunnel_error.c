/* SPDX-License-Identifier: BSD-3-Clause */
/* See tunnel_error.h. */
#include "tunnel_error.h"

#include <string.h>

#define HEADER             8 /* in front of the quote */
#define QUOTED_MIN         8 /* behind the quoted IP header */
#define UNREACHABLE        3
#define FRAG_NEEDED        4 /* code of that */
#define TIME_EXCEEDED      11
#define UNREACHABLE6       1
#define TOO_BIG6           2
#define TIME_EXCEEDED6     3
#define PROTOCOL_IPV4      4
#define PROTOCOL_UDP       17
#define PROTOCOL_IPV6      41
#define PROTOCOL_FRAGMENT6 44
#define PROTOCOL_GRE       47
#define IPV4_SIZE          20
#define IPV6_SIZE          40

static uint32_t get16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static bool is_sound(const uint8_t *message, size_t size)
{
    uint32_t sum = 0;

    for (size_t i = 0; i + 1 < size; i += 2)
        sum += get16(message + i);
    if (size % 2 != 0)
        sum += (uint32_t)message[size - 1] << 8;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return sum == 0xffff;
}

/* ---- the message ---- */

static bool read_kind4(const uint8_t *message, struct hb_tunnel_error *error)
{
    if (message[0] == TIME_EXCEEDED) {
        error->kind = HB_TUNNEL_TIME_EXCEEDED;
        return true;
    }
    error->kind = message[1] == FRAG_NEEDED ? HB_TUNNEL_TOO_BIG : HB_TUNNEL_UNREACHABLE;
    error->mtu = message[1] == FRAG_NEEDED ? get16(message + 6) : 0;
    return message[0] == UNREACHABLE;
}

static bool read_kind6(const uint8_t *message, struct hb_tunnel_error *error)
{
    switch (message[0]) {
    case UNREACHABLE6:
        error->kind = HB_TUNNEL_UNREACHABLE;
        return true;
    case TIME_EXCEEDED6:
        error->kind = HB_TUNNEL_TIME_EXCEEDED;
        return true;
    case TOO_BIG6:
        error->kind = HB_TUNNEL_TOO_BIG;
        error->mtu = get16(message + 4) << 16 | get16(message + 6);
        return true;
    default:
        return false;
    }
}

static void set_payload(struct hb_tunnel_error *error, const uint8_t *packet, size_t size,
                        size_t header)
{
    error->payload = packet + header;
    error->size = size - header;
}

/* Tunnel packets have no IPv4 options; of one that was cut only the first fragment tells. */
static bool read_quote4(const uint8_t *packet, size_t size, struct hb_tunnel_error *error)
{
    if (size < IPV4_SIZE + QUOTED_MIN || packet[0] != 0x45 || (get16(packet + 6) & 0x1fff) != 0)
        return false;
    error->source.family = error->to.family = HB_FAMILY_IPV4;
    memcpy(error->source.bytes, packet + 12, 4);
    memcpy(error->to.bytes, packet + 16, 4);
    error->protocol = packet[9];
    set_payload(error, packet, size, IPV4_SIZE);
    return true;
}

/* The one extension header that a tunnel packet may have is that of a fragment. */
static bool read_quote6(const uint8_t *packet, size_t size, struct hb_tunnel_error *error)
{
    size_t header = IPV6_SIZE;

    if (size < header + QUOTED_MIN || packet[0] >> 4 != 6)
        return false;
    error->source.family = error->to.family = HB_FAMILY_IPV6;
    memcpy(error->source.bytes, packet + 8, HB_ADDRESS_SIZE);
    memcpy(error->to.bytes, packet + 24, HB_ADDRESS_SIZE);
    error->protocol = packet[6];
    if (error->protocol == PROTOCOL_FRAGMENT6) {
        if ((get16(packet + header + 2) & 0xfff8) != 0)
            return false;
        error->protocol = packet[header];
        header += 8;
    }
    set_payload(error, packet, size, header);
    return true;
}

bool hb_tunnel_error_read(uint8_t family, const uint8_t *message, size_t size,
                          struct hb_tunnel_error *error)
{
    memset(error, 0, sizeof(*error));
    if (size < HEADER)
        return false;
    if (family == HB_FAMILY_IPV6)
        return read_kind6(message, error) && read_quote6(message + HEADER, size - HEADER, error);
    return read_kind4(message, error) && is_sound(message, size) &&
           read_quote4(message + HEADER, size - HEADER, error);
}

/* ---- whose packet it was ---- */

static uint32_t address_size(uint8_t family)
{
    return family == HB_FAMILY_IPV4 ? 4 : HB_ADDRESS_SIZE;
}

/* The low `spread` bits are the flow's (struct hb_rewrite). */
static bool is_source(const struct hb_address *source, const uint8_t *made, uint8_t spread)
{
    uint32_t bits = address_size(source->family) * 8 - spread;

    if (memcmp(source->bytes, made, bits / 8) != 0)
        return false;
    return bits % 8 == 0 || (source->bytes[bits / 8] ^ made[bits / 8]) >> (8 - bits % 8) == 0;
}

/* `shim`: what the rewrite has behind its IP header. */
static bool is_mode(const struct hb_tunnel_error *error, uint8_t forwarding, const uint8_t *shim)
{
    switch (forwarding) {
    case HB_FORWARDING_IPIP:
        return error->protocol == PROTOCOL_IPV4 || error->protocol == PROTOCOL_IPV6;
    case HB_FORWARDING_GRE:
        return error->protocol == PROTOCOL_GRE;
    case HB_FORWARDING_GUE:
    case HB_FORWARDING_GUE1:
    case HB_FORWARDING_VXLAN:
        return error->protocol == PROTOCOL_UDP && error->size >= 4 &&
               memcmp(error->payload + 2, shim + 2, 2) == 0;
    default:
        return false;
    }
}

static void read_inner(const uint8_t *packet, size_t size, struct hb_address *inner)
{
    if (size >= IPV4_SIZE && packet[0] >> 4 == 4) {
        inner->family = HB_FAMILY_IPV4;
        memcpy(inner->bytes, packet + 16, 4);
    } else if (size >= IPV6_SIZE && packet[0] >> 4 == 6) {
        inner->family = HB_FAMILY_IPV6;
        memcpy(inner->bytes, packet + 24, HB_ADDRESS_SIZE);
    }
}

bool hb_tunnel_error_is_of(const struct hb_tunnel_error *error, const struct hb_rewrite *rewrite,
                           struct hb_address *inner)
{
    bool ipv4 = error->to.family == HB_FAMILY_IPV4;
    const uint8_t *outer = rewrite->bytes + rewrite->l2_size;
    uint32_t header = ipv4 ? IPV4_SIZE : IPV6_SIZE, size = address_size(error->to.family), shim;

    memset(inner, 0, sizeof(*inner));
    if (rewrite->family != error->to.family || rewrite->size < rewrite->l2_size + header)
        return false;
    shim = (uint32_t)rewrite->size - rewrite->l2_size - header;
    if (!is_mode(error, rewrite->forwarding, outer + header) ||
        memcmp(error->to.bytes, outer + header - size, size) != 0 ||
        !is_source(&error->source, outer + header - 2 * size, rewrite->spread))
        return false;
    if (error->size > shim)
        read_inner(error->payload + shim, error->size - shim, inner);
    return true;
}
