/* SPDX-License-Identifier: BSD-3-Clause */
/* What tables are compared by: digests, and what a change moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "table_fixture.h"

static void digest_text(const uint16_t *owner, uint32_t slots, const struct pool *pool, char *text)
{
    uint8_t digest[HB_DIGEST_SIZE];

    hb_table_owners_digest(owner, slots, pool->members, pool->count, digest);
    print_digest(digest, text);
}

static void test_content_digest_sees_every_slot(void **state)
{
    uint16_t owner[251] = {0};
    uint8_t before[HB_DIGEST_SIZE], after[HB_DIGEST_SIZE];

    (void)state;
    hb_table_digest(owner, 251, before);
    for (int slot = 0; slot < 251; slot++) {
        owner[slot] = 1;
        hb_table_digest(owner, 251, after);
        assert_memory_not_equal(before, after, sizeof(after));
        owner[slot] = 0;
    }
    hb_table_digest(owner, 250, after);
    assert_memory_not_equal(before, after, sizeof(after));
    hb_table_digest(owner, 251, after);
    assert_memory_equal(before, after, sizeof(after));
}

/* XXH3 of 128 bits in canonical form, checked against `xxhsum -H128` of the bytes 01 00 02 00 03
 * 00. */
static void test_content_digest_is_pinned(void **state)
{
    const uint8_t bytes[6] = {1, 0, 2, 0, 3, 0};
    uint16_t owner[3];
    uint8_t digest[HB_DIGEST_SIZE];
    char text[33];

    (void)state;
    memcpy(owner, bytes, sizeof(owner));
    hb_table_digest(owner, 3, digest);
    assert_string_equal(print_digest(digest, text), "26121f4bc95d869c5e03b39ffd128642");
}

/* BL-62: ids, the order of members and members without a slot are not in the digest of owners. */
static void test_owners_digest_knows_identities_only(void **state)
{
    struct pool pool = make_pool(10);
    uint16_t owner[251], renumbered[251];
    char expected[33], text[33];
    uint64_t random = 3;

    (void)state;
    assert_int_equal(build_maglev(pool.members, 9, 251, 1, owner), HB_TABLE_OK);
    digest_text(owner, 251, &pool, expected);
    for (int round = 0; round < 20; round++) {
        shuffle_pool(&pool, &random);
        digest_text(owner, 251, &pool, text);
        assert_string_equal(text, expected);
    }
    while (pool.members[9].id != 10) /* the one that has no slot */
        shuffle_pool(&pool, &random);
    pool.count = 9;
    digest_text(owner, 251, &pool, text);
    assert_string_equal(text, expected);
    for (int i = 0; i < 10; i++)
        pool.members[i].id = (uint16_t)(65535 - 7 * pool.members[i].id);
    for (int slot = 0; slot < 251; slot++)
        renumbered[slot] = (uint16_t)(65535 - 7 * owner[slot]);
    digest_text(renumbered, 251, &pool, text);
    assert_string_equal(text, expected);
    free_pool(&pool);
}

static void test_owners_digest_sees_slots_and_names(void **state)
{
    struct pool pool = make_pool(10);
    uint16_t owner[251];
    char expected[33], text[33];
    int other = 1;

    (void)state;
    assert_int_equal(build_maglev(pool.members, 10, 251, 1, owner), HB_TABLE_OK);
    digest_text(owner, 251, &pool, expected);
    while (owner[other] == owner[0])
        other++;
    owner[0] = owner[other];
    digest_text(owner, 251, &pool, text);
    assert_string_not_equal(text, expected);
    assert_int_equal(build_maglev(pool.members, 10, 251, 1, owner), HB_TABLE_OK);
    pool.members[4].identity = "10.0.0.55"; /* the same place in the order */
    digest_text(owner, 251, &pool, text);
    assert_string_not_equal(text, expected);
    free_pool(&pool);
}

static void test_compare(void **state)
{
    const uint16_t from[7] = {1, 1, 2, 2, 3, 3, 3};
    const uint16_t to[7] = {1, 2, 2, 1, 1, 2, 2}; /* 3 left: its slots had to move */
    const uint16_t joined[7] = {1, 4, 2, 2, 3, 1, 3};
    struct hb_table_change change;

    (void)state;
    change = hb_table_compare(from, to, 7);
    assert_int_equal(change.moved, 5);
    assert_int_equal(change.collateral, 2);
    change = hb_table_compare(from, joined, 7);
    assert_int_equal(change.moved, 2);
    assert_int_equal(change.collateral, 1);
    change = hb_table_compare(from, from, 7);
    assert_int_equal(change.moved, 0);
    assert_int_equal(change.collateral, 0);
}

static void test_error_texts(void **state)
{
    (void)state;
    for (int error = HB_TABLE_OK; error <= HB_TABLE_TOO_MANY_POINTS; error++)
        assert_string_not_equal(hb_table_error_text(error), "unknown error");
    assert_string_equal(hb_table_error_text(99), "unknown error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_content_digest_sees_every_slot),
        cmocka_unit_test(test_content_digest_is_pinned),
        cmocka_unit_test(test_owners_digest_knows_identities_only),
        cmocka_unit_test(test_owners_digest_sees_slots_and_names),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_error_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
