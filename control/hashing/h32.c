/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * h32.c: FNV-1a with a mixing step, and keys from mulberry32.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hashing/h32.h"

#define FNV_PRIME UINT32_C(16777619)

uint32_t hb_fnv1a(uint32_t state, const void *bytes, size_t size)
{
    const uint8_t *byte = bytes;

    for (size_t i = 0; i < size; i++)
        state = (state ^ byte[i]) * FNV_PRIME;
    return state;
}

uint32_t hb_fmix32(uint32_t state)
{
    state ^= state >> 16;
    state *= UINT32_C(0x85ebca6b);
    state ^= state >> 13;
    state *= UINT32_C(0xc2b2ae35);
    return state ^ state >> 16;
}

uint32_t hb_h32(const void *bytes, size_t size)
{
    return hb_fmix32(hb_fnv1a(HB_FNV1A_START, bytes, size));
}

uint32_t hb_h32_text(const char *text)
{
    return hb_h32(text, strlen(text));
}

uint32_t hb_h32_pair(const char *first, size_t size, const char *second)
{
    uint32_t state = hb_fnv1a(hb_fnv1a(HB_FNV1A_START, first, size), "|", 1);

    return hb_fmix32(hb_fnv1a(state, second, strlen(second)));
}

uint32_t hb_mulberry32(struct hb_key_source *source)
{
    uint32_t a = source->state += UINT32_C(0x6d2b79f5);
    uint32_t mixed = (a ^ a >> 15) * (a | 1);

    mixed ^= mixed + (mixed ^ mixed >> 7) * (mixed | 61);
    return mixed ^ mixed >> 14;
}

/* The product has 62 bits, so the whole part of r * 10^9 is exact. */
size_t hb_next_key(struct hb_key_source *source, char text[HB_KEY_TEXT])
{
    uint32_t number = (uint32_t)((hb_mulberry32(source) * UINT64_C(1000000000)) >> 32);

    return (size_t)snprintf(text, HB_KEY_TEXT, "user:%" PRIu32, number);
}
