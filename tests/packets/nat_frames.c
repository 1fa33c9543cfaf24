/* SPDX-License-Identifier: BSD-3-Clause */
/* See nat_frames.h. */
#include "nat_frames.h"

#include <string.h>

struct layers {
    uint8_t *l3, *l4;
    uint32_t l4_length;
    uint8_t family, protocol;
};

static uint32_t get16(const uint8_t *at)
{
    return (uint32_t)(at[0] << 8 | at[1]);
}

static void put16_at(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static struct layers find_layers(struct frame *frame)
{
    uint32_t l3 = L3;
    struct layers layers;

    while (get16(frame->bytes + l3 - 2) == 0x8100 || get16(frame->bytes + l3 - 2) == 0x88a8)
        l3 += 4;
    layers.l3 = frame->bytes + l3;
    layers.family = layers.l3[0] >> 4;
    if (layers.family == 4) {
        layers.protocol = layers.l3[9];
        layers.l4 = layers.l3 + (layers.l3[0] & 0xf) * 4;
        layers.l4_length = get16(layers.l3 + 2) - (uint32_t)(layers.l4 - layers.l3);
    } else {
        layers.protocol = layers.l3[6];
        layers.l4 = layers.l3 + 40;
        while (layers.protocol == 0 || layers.protocol == 60) {
            layers.protocol = layers.l4[0];
            layers.l4 += 8 + layers.l4[1] * 8;
        }
        layers.l4_length = get16(layers.l3 + 4) + 40 - (uint32_t)(layers.l4 - layers.l3);
    }
    return layers;
}

/* Over the pseudo-header and the segment as it stands. */
static uint16_t sum_l4(const struct layers *layers)
{
    static uint8_t all[70000];
    uint32_t address = layers->family == 4 ? 4 : 16;

    if (layers->protocol == 1)
        return checksum(layers->l4, layers->l4_length);
    memcpy(all, layers->l3 + (layers->family == 4 ? 12 : 8), 2 * address);
    memcpy(all + 2 * address, (uint8_t[]){0, 0, 0, layers->protocol}, 4);
    put16_at(all + 2 * address + 4, (uint16_t)layers->l4_length);
    memcpy(all + 2 * address + 6, layers->l4, layers->l4_length);
    all[2 * address + 6 + layers->l4_length] = 0;
    return checksum(all, 2 * address + 6 + layers->l4_length + (layers->l4_length & 1));
}

static uint8_t *checksum_of(const struct layers *layers)
{
    switch (layers->protocol) {
    case 6:
        return layers->l4 + 16;
    case 17:
        return layers->l4 + 6;
    default:
        return layers->l4 + 2;
    }
}

struct frame whole(struct frame frame)
{
    struct layers layers = find_layers(&frame);
    uint16_t sum;

    put16_at(checksum_of(&layers), 0);
    sum = sum_l4(&layers);
    put16_at(checksum_of(&layers), sum == 0 && layers.protocol == 17 ? 0xffff : sum);
    return frame;
}

int is_sound(const struct frame *frame)
{
    struct frame copy = *frame;
    struct layers layers = find_layers(&copy);

    if (layers.family == 4 && checksum(layers.l3, (layers.l3[0] & 0xf) * 4u) != 0)
        return 0;
    if (layers.protocol == 17 && layers.family == 4 && get16(layers.l4 + 6) == 0)
        return 1;
    return sum_l4(&layers) == 0;
}

struct frame toward_backend(struct frame frame, uint8_t family)
{
    uint8_t rewrite[96];

    frame = whole(frame);
    write_rewrite(rewrite, family, 1);
    memcpy(frame.bytes, rewrite, 14);
    return frame;
}

struct frame toward_client_as_is(struct frame frame)
{
    memcpy(frame.bytes, (uint8_t[]){2, 0, 0, 0, 0, 0xc, 2, 0, 0, 0, 0, 0x10}, 12);
    return frame;
}

struct frame toward_client(struct frame frame)
{
    return toward_client_as_is(whole(frame));
}

struct frame cut_ip4(struct frame frame, uint32_t length)
{
    put16_at(frame.bytes + IP4_LENGTH, (uint16_t)length);
    frame.length = L3 + length;
    return fix4(frame);
}

struct frame icmp_error(const char *from, const char *to, uint8_t type, const struct frame *about,
                        uint32_t quoted, uint8_t ttl)
{
    bool six = about->family == 6;
    struct frame frame = build(&(struct spec){.family = about->family,
                                              .protocol = six ? 58 : 1,
                                              .source = from,
                                              .destination = to,
                                              .ttl = ttl,
                                              .payload = quoted});
    uint8_t *icmp = frame.bytes + (six ? L4_OF_6 : L4_OF_4);

    memset(icmp, 0, 8);
    icmp[0] = type;
    icmp[1] = 3;
    memcpy(icmp + 8, about->bytes + about->l3, quoted);
    return whole(frame);
}
