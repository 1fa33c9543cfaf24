/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "wrap.h"

#define VNI 0x123456

static void put16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static uint16_t get16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

const char *wrap_name(const struct wrap *wrap)
{
    static const char *const names[] = {
        [HB_FORWARDING_IPIP] = "ipip",   [HB_FORWARDING_GUE] = "gue",
        [HB_FORWARDING_GUE1] = "gue1",   [HB_FORWARDING_GRE] = "gre",
        [HB_FORWARDING_VXLAN] = "vxlan", [HB_FORWARDING_L2] = "l2",
        [HB_FORWARDING_L3DSR] = "l3dsr",
    };

    return names[wrap->forwarding];
}

static uint32_t link_size(const struct wrap *wrap)
{
    return 14 + 4u * wrap->tags;
}

static uint32_t ip_size(const struct wrap *wrap)
{
    return wrap->family == 6 ? 40 : 20;
}

static bool is_tunnel(const struct wrap *wrap)
{
    return wrap->forwarding != HB_FORWARDING_L2 && wrap->forwarding != HB_FORWARDING_L3DSR;
}

static bool has_udp(const struct wrap *wrap)
{
    return wrap->forwarding == HB_FORWARDING_GUE || wrap->forwarding == HB_FORWARDING_GUE1 ||
           wrap->forwarding == HB_FORWARDING_VXLAN;
}

static uint32_t shim_size(const struct wrap *wrap)
{
    static const uint8_t sizes[] = {
        [HB_FORWARDING_GUE] = 12,
        [HB_FORWARDING_GUE1] = 8,
        [HB_FORWARDING_GRE] = 4,
        [HB_FORWARDING_VXLAN] = 30,
    };

    return wrap->forwarding < sizeof(sizes) ? sizes[wrap->forwarding] : 0;
}

uint32_t wrap_overhead(const struct wrap *wrap)
{
    return is_tunnel(wrap) ? ip_size(wrap) + shim_size(wrap) : 0;
}

/* Returns where the EtherType stands. */
static uint8_t *write_link(uint8_t *bytes, const struct wrap *wrap)
{
    memcpy(bytes, (uint8_t[]){2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0x10}, 12);
    if (wrap->tags == 0)
        return bytes + 12;
    put16(bytes + 12, 0x8100);
    put16(bytes + 14, 7);
    return bytes + 16;
}

static void write_backend(uint8_t *at, const struct wrap *wrap)
{
    char text[64];

    snprintf(text, sizeof(text), wrap->family == 6 ? "2001:db8:0:b::%u" : "198.51.100.%u",
             10 + wrap->number);
    assert(inet_pton(wrap->family == 6 ? AF_INET6 : AF_INET, text, at) == 1);
}

static void write_outer(uint8_t *at, const struct wrap *wrap)
{
    memset(at, 0, ip_size(wrap));
    if (wrap->family == 6) {
        at[0] = 0x60;
        at[7] = 64;
        inet_pton(AF_INET6, "2001:db8:0:1::", at + 8);
        at[8 + 15] = wrap->spread != 0 ? 0 : 0x10;
        write_backend(at + 24, wrap);
        return;
    }
    at[0] = 0x45;
    at[8] = 64;
    inet_pton(AF_INET, wrap->spread != 0 ? "198.51.100.128" : "198.51.100.10", at + 12);
    write_backend(at + 16, wrap);
}

static void write_shim(uint8_t *at, const struct wrap *wrap)
{
    memset(at, 0, shim_size(wrap));
    if (!has_udp(wrap))
        return;
    put16(at + 2, wrap->forwarding == HB_FORWARDING_VXLAN ? 4789 : 6080);
    if (wrap->forwarding != HB_FORWARDING_VXLAN)
        return;
    at[8] = 8;
    at[12] = VNI >> 16;
    put16(at + 13, VNI & 0xffff);
    memcpy(at + 16, (uint8_t[]){2, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2}, 12);
}

uint32_t write_wrap(uint8_t *bytes, const struct wrap *wrap)
{
    uint8_t *type = write_link(bytes, wrap);
    uint32_t size = link_size(wrap);

    put16(type, wrap->forwarding == HB_FORWARDING_L2 ? 0 : wrap->family == 6 ? 0x86dd : 0x0800);
    if (is_tunnel(wrap)) {
        write_outer(bytes + size, wrap);
        write_shim(bytes + size + ip_size(wrap), wrap);
        return size + wrap_overhead(wrap);
    }
    if (wrap->forwarding == HB_FORWARDING_L3DSR)
        write_backend(bytes + size, wrap);
    return size;
}

static uint32_t write_pseudo(uint8_t *all, const uint8_t *ip, uint8_t protocol, uint32_t length)
{
    bool ipv6 = ip[0] >> 4 == 6;
    uint32_t size = ipv6 ? 32 : 8;

    memset(all, 0, size + 8);
    memcpy(all, ip + (ipv6 ? 8 : 12), size);
    put16(all + size + 2, (uint16_t)length);
    all[size + 7] = protocol;
    return size + 8;
}

uint16_t pseudo_checksum(const uint8_t *ip, uint8_t protocol, const uint8_t *bytes, uint32_t length)
{
    uint8_t all[40 + 10000];
    uint32_t size = write_pseudo(all, ip, protocol, length);

    assert(length <= 10000);
    memcpy(all + size, bytes, length);
    return checksum(all, size + length);
}

uint16_t pseudo_checksum_of(const uint8_t *ip, uint8_t protocol, uint32_t length)
{
    uint8_t all[40];

    return checksum(all, write_pseudo(all, ip, protocol, length));
}

struct frame fix_l4(struct frame frame)
{
    uint8_t *ip = frame.bytes + frame.l3;
    bool ipv6 = frame.family == 6;
    uint32_t header = ipv6 ? 40 : (ip[0] & 0xfu) * 4;
    uint8_t protocol = ipv6 ? ip[6] : ip[9], *field = ip + header + (protocol == 6 ? 16 : 6);
    uint16_t sum;

    put16(field, 0);
    sum = pseudo_checksum(ip, protocol, ip + header, frame.ip_length - header);
    put16(field, protocol == 17 && sum == 0 ? 0xffff : sum);
    return frame;
}

/* The number that an outer header has for what is inside. */
static uint8_t put_shim(uint8_t *at, const struct frame *in, const struct wrap *wrap)
{
    uint8_t inner = in->family == 6 ? 41 : 4;
    uint16_t type = in->family == 6 ? 0x86dd : 0x0800;

    if (wrap->forwarding == HB_FORWARDING_GRE) {
        put16(at + 2, type);
        return 47;
    }
    if (!has_udp(wrap))
        return inner;
    put16(at, wrap->source_port);
    put16(at + 4, (uint16_t)(shim_size(wrap) + in->ip_length));
    if (wrap->forwarding == HB_FORWARDING_GUE)
        at[9] = inner;
    if (wrap->forwarding == HB_FORWARDING_VXLAN)
        put16(at + 28, type);
    return 17;
}

static void put_source(uint8_t *end, const struct wrap *wrap)
{
    for (uint8_t bit = 0; bit < wrap->spread; bit++)
        end[-1 - bit / 8] |= (uint8_t)((wrap->source >> bit & 1) << bit % 8);
}

static void put_outer(uint8_t *at, const struct frame *in, const struct wrap *wrap,
                      uint8_t protocol)
{
    uint32_t behind = shim_size(wrap) + in->ip_length;

    if (wrap->family == 6) {
        put16(at, (uint16_t)(0x6000 | in->tos << 4 | wrap->label >> 16));
        put16(at + 2, (uint16_t)wrap->label);
        put16(at + 4, (uint16_t)behind);
        at[6] = protocol;
        put_source(at + 24, wrap);
        return;
    }
    at[1] = in->tos;
    put16(at + 2, (uint16_t)(20 + behind));
    put16(at + 4, in->df ? 0 : wrap->id);
    put16(at + 6, in->df ? DF : 0);
    at[9] = protocol;
    put_source(at + 16, wrap);
    put16(at + 10, checksum(at, 20));
}

static void put_tunnel(struct frame *out, const struct frame *in, const struct wrap *wrap)
{
    uint8_t *outer = out->bytes + link_size(wrap), *shim = outer + ip_size(wrap);
    uint8_t protocol = put_shim(shim, in, wrap);
    uint16_t sum;

    put_outer(outer, in, wrap, protocol);
    memcpy(shim + shim_size(wrap), in->bytes + in->l3, in->ip_length);
    if (!has_udp(wrap) || !wrap->checksum)
        return;
    sum = pseudo_checksum(outer, 17, shim, shim_size(wrap) + in->ip_length);
    put16(shim + 6, sum != 0 ? sum : 0xffff);
}

/* The packet anew, as if it had been sent to the backend with that DSCP. */
static void put_l3dsr(struct frame *out, const struct wrap *wrap)
{
    uint8_t *ip = out->bytes + out->l3;
    uint16_t checksum_before = get16(ip + (ip[0] & 0xfu) * 4 + 6);
    bool no_checksum = out->family == 4 && ip[9] == 17 && checksum_before == 0;

    if (out->family == 6) {
        put16(ip, (uint16_t)((get16(ip) & 0xf03f) | wrap->dscp << 6));
        write_backend(ip + 24, wrap);
    } else {
        ip[1] = (uint8_t)((ip[1] & 3) | wrap->dscp << 2);
        write_backend(ip + 16, wrap);
        put16(ip + 10, 0);
        put16(ip + 10, checksum(ip, (ip[0] & 0xfu) * 4));
    }
    if (!no_checksum)
        *out = fix_l4(*out);
}

struct frame wrap_frame(const struct frame *in, const struct wrap *wrap)
{
    struct frame out = {.family = is_tunnel(wrap) ? wrap->family : in->family,
                        .tos = in->tos,
                        .df = in->df,
                        .l3 = link_size(wrap)};
    uint32_t size = write_wrap(out.bytes, wrap);

    out.length = size + in->ip_length;
    out.ip_length = out.length - out.l3;
    assert(out.length <= FRAME_MAX);
    if (is_tunnel(wrap)) {
        put_tunnel(&out, in, wrap);
        return out;
    }
    put16(out.bytes + out.l3 - 2, in->family == 6 ? 0x86dd : 0x0800);
    memcpy(out.bytes + size, in->bytes + in->l3, in->ip_length);
    if (wrap->forwarding == HB_FORWARDING_L3DSR)
        put_l3dsr(&out, wrap);
    return out;
}

void read_free_fields(struct wrap *wrap, const struct frame *out)
{
    const uint8_t *outer = out->bytes + link_size(wrap), *shim = outer + ip_size(wrap);
    const uint8_t *end = outer + (wrap->family == 6 ? 24 : 16);

    wrap->label = (outer[1] & 0xfu) << 16 | get16(outer + 2);
    wrap->source_port = has_udp(wrap) ? get16(shim) : 0;
    wrap->source = 0;
    for (uint8_t bit = 0; bit < wrap->spread; bit++)
        wrap->source |= (uint64_t)(end[-1 - bit / 8] >> bit % 8 & 1) << bit;
}
