/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * member_order.c: sorts members by identity.
 *
 * Sorting 10,000 strings by strcmp() alone takes longer than filling their table. Identities of a
 * pool start alike ("198.51.100."), so what follows the common beginning is packed into one number,
 * first byte highest, and the numbers are sorted.
 */
#include <stdlib.h>
#include <string.h>

#include "hashing/member_order.h"
#include "hashing/sort_keys.h"

/* Bytes of an identity that are packed into a key. */
#define PACKED 8

static size_t common_length(const struct hb_table_member *members, uint32_t count)
{
    size_t common = count > 0 ? strlen(members[0].identity) : 0;

    for (uint32_t i = 1; i < count; i++) {
        size_t length = 0;

        while (length < common && members[i].identity[length] == members[0].identity[length])
            length++;
        common = length;
    }
    return common;
}

/* Eight bytes, zero filled. */
static uint64_t pack_key(const char *text)
{
    uint64_t key = 0;

    for (unsigned n = 0; n < PACKED; n++) {
        key <<= 8;
        if (*text != '\0')
            key |= (unsigned char)*text++;
    }
    return key;
}

/* Sorts keys by the identities' bytes from `from` on; all are equal up to there. Those that are
 * equal in the next eight bytes too are sorted by the eight after them. Returns true when two are
 * the same. */
static bool sort_from(const struct hb_table_member *members, struct hb_key *keys,
                      struct hb_key *scratch, uint32_t count, size_t from)
{
    bool same = false;

    for (uint32_t i = 0; i < count; i++)
        keys[i].key = pack_key(members[keys[i].index].identity + from);
    hb_sort_keys(keys, scratch, count);
    for (uint32_t first = 0, next; first < count; first = next) {
        for (next = first + 1; next < count && keys[next].key == keys[first].key; next++)
            ;
        if (next - first == 1)
            continue;
        if ((keys[first].key & 255) == 0) /* both end there */
            same = true;
        else
            same |= sort_from(members, keys + first, scratch, next - first, from + PACKED);
    }
    return same;
}

enum hb_table_error hb_member_order(const struct hb_table_member *members, uint32_t count,
                                    uint32_t *order)
{
    struct hb_key *keys = calloc(2 * (size_t)count + 1, sizeof(*keys));
    enum hb_table_error error = HB_TABLE_OK;

    if (keys == NULL)
        return HB_TABLE_NO_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        keys[i].index = i;
    if (sort_from(members, keys, keys + count, count, common_length(members, count)))
        error = HB_TABLE_DUPLICATE;
    for (uint32_t i = 0; i < count; i++)
        order[i] = keys[i].index;
    free(keys);
    return error;
}
