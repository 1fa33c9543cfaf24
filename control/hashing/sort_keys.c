/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "hashing/sort_keys.h"

static void sort_by_byte(const struct hb_key *from, struct hb_key *to, uint32_t count,
                         unsigned shift)
{
    uint32_t start[256] = {0}, next = 0;

    for (uint32_t i = 0; i < count; i++)
        start[from[i].key >> shift & 255]++;
    for (unsigned byte = 0; byte < 256; byte++) {
        uint32_t size = start[byte];

        start[byte] = next;
        next += size;
    }
    for (uint32_t i = 0; i < count; i++)
        to[start[from[i].key >> shift & 255]++] = from[i];
}

void hb_sort_keys(struct hb_key *keys, struct hb_key *scratch, uint32_t count)
{
    struct hb_key *from = keys, *to = scratch;
    uint64_t differ = 0;

    for (uint32_t i = 1; i < count; i++)
        differ |= keys[i].key ^ keys[0].key;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        struct hb_key *before = from;

        if ((differ >> shift & 255) == 0)
            continue;
        sort_by_byte(from, to, count, shift);
        from = to;
        to = before;
    }
    if (from != keys)
        memcpy(keys, from, count * sizeof(*keys));
}
