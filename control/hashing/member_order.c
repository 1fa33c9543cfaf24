/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * member_order.c: sorts members by identity.
 *
 * Sorting 10,000 strings by strcmp() alone takes longer than filling their table. Identities of a
 * pool start alike ("198.51.100."), so what follows the common beginning is packed into one number,
 * first byte highest, and most comparisons are of two numbers.
 */
#include <stdlib.h>
#include <string.h>

#include "hashing/member_order.h"

struct keyed {
    uint64_t key;     /* eight bytes after the common beginning, zero filled */
    const char *rest; /* what follows them, for equal keys */
    uint32_t index;
};

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

static struct keyed make_key(const char *identity, size_t common, uint32_t index)
{
    struct keyed made = {.rest = identity + common, .index = index};

    for (unsigned n = 0; n < 8; n++) {
        made.key <<= 8;
        if (*made.rest != '\0')
            made.key |= (unsigned char)*made.rest++;
    }
    return made;
}

static int compare_keys(const void *left, const void *right)
{
    const struct keyed *a = left, *b = right;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return strcmp(a->rest, b->rest);
}

enum hb_table_error hb_member_order(const struct hb_table_member *members, uint32_t count,
                                    uint32_t *order)
{
    struct keyed *keyed = calloc(count > 0 ? count : 1, sizeof(*keyed));
    enum hb_table_error error = HB_TABLE_OK;
    size_t common = common_length(members, count);

    if (keyed == NULL)
        return HB_TABLE_NO_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        keyed[i] = make_key(members[i].identity, common, i);
    qsort(keyed, count, sizeof(*keyed), compare_keys);
    for (uint32_t i = 0; i < count; i++) {
        order[i] = keyed[i].index;
        if (i > 0 && compare_keys(&keyed[i - 1], &keyed[i]) == 0)
            error = HB_TABLE_DUPLICATE;
    }
    free(keyed);
    return error;
}
