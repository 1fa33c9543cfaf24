/* SPDX-License-Identifier: BSD-3-Clause */
/* See source_lists.h. */
#include "source_lists.h"

#include <stdlib.h>

#include <xxhash.h>

/* The digest tells most lists apart without a look at their prefixes, which may be many. */
struct entry {
    uint64_t digest;
    const struct hb_source_list *list;
    uint32_t index;
};

static int compare_lists(const struct entry *a, const struct entry *b)
{
    int order = (a->digest > b->digest) - (a->digest < b->digest);

    return order != 0 ? order : hb_source_list_compare(a->list, b->list);
}

/* Equal lists stand together, the first of them in front. */
static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int order = compare_lists(a, b);

    return order != 0 ? order : (a->index > b->index) - (a->index < b->index);
}

bool hb_source_lists_find_first(const struct hb_source_list *const *lists, uint32_t count,
                                uint32_t *first)
{
    struct entry *entries = calloc((size_t)count + 1, sizeof(*entries));

    if (entries == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_source_list *list = lists[i];

        entries[i] = (struct entry){.list = list, .index = i};
        if (list != NULL)
            entries[i].digest = XXH3_64bits(list->prefix, list->count * sizeof(list->prefix[0]));
    }
    qsort(entries, count, sizeof(*entries), compare_entries);
    for (uint32_t i = 0; i < count; i++) {
        bool same = i > 0 && compare_lists(&entries[i - 1], &entries[i]) == 0;

        first[entries[i].index] = same ? first[entries[i - 1].index] : entries[i].index;
    }
    free(entries);
    return true;
}
