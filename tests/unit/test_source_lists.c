/* SPDX-License-Identifier: BSD-3-Clause */
/* Equal lists of sources are found, and not by comparing each with each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "source_lists.h"

static uint32_t comparisons;

int __real_hb_source_list_compare(const struct hb_source_list *a, const struct hb_source_list *b);
int __wrap_hb_source_list_compare(const struct hb_source_list *a, const struct hb_source_list *b);

int __wrap_hb_source_list_compare(const struct hb_source_list *a, const struct hb_source_list *b)
{
    comparisons++;
    return __real_hb_source_list_compare(a, b);
}

/* `count` addresses of 10.0.0.0/8, the last of which is the one of `last`. */
static struct hb_source_list *make(uint32_t count, uint32_t last, bool denies_others)
{
    struct hb_source_list *list = calloc(1, sizeof(*list) + count * sizeof(list->prefix[0]));

    assert_non_null(list);
    list->holders = 1;
    list->count = count;
    list->denies_others = denies_others;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = i < count - 1 ? i : last;

        list->prefix[i] = (struct hb_prefix_record){
            .family = HB_FAMILY_IPV4,
            .length = 32,
            .address = {10, (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number}};
    }
    return list;
}

static void by_hand(void **state)
{
    struct hb_source_list *a = make(2, 7, true), *other_word = make(2, 7, false);
    struct hb_source_list *copy = make(2, 7, true), *longer = make(3, 7, true);
    const struct hb_source_list *lists[] = {longer, a, NULL, other_word, copy, NULL, a, longer};
    static const uint32_t want[] = {0, 1, 2, 3, 1, 2, 1, 0};
    uint32_t first[8];

    (void)state;
    assert_true(hb_source_lists_find_first(lists, 8, first));
    assert_memory_equal(first, want, sizeof(want));
    assert_true(hb_source_lists_find_first(lists, 0, first));
    free(a), free(other_word), free(copy), free(longer);
}

/* 1,000 lists of 100 prefixes, two equal ones each: every pair would be half a million comparisons,
 * sorting is 1,000 times the logarithm of it, and again once for each neighbour. */
static void many_lists(void **state)
{
    enum { LISTS = 1000, PREFIXES = 100 };
    const struct hb_source_list *lists[LISTS];
    uint32_t first[LISTS];

    (void)state;
    for (uint32_t i = 0; i < LISTS; i++)
        lists[i] = make(PREFIXES, PREFIXES + i % (LISTS / 2), false);
    comparisons = 0;
    assert_true(hb_source_lists_find_first(lists, LISTS, first));
    assert_in_range(comparisons, LISTS / 2, 11 * LISTS);
    for (uint32_t i = 0; i < LISTS; i++) {
        assert_int_equal(first[i], i % (LISTS / 2));
        free((void *)(uintptr_t)lists[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(many_lists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
