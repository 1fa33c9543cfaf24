/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables by digest: one copy a node, held as often as taken, freed by the last holder. */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "blob.h"
#include "table_store.h"
#include "test_memory.h"

static const uint16_t slots[13] = {9, 3, 9, 65535, 3, 9, 9, 9, 3, 3, 9, 9, 9};

static struct hb_table *take(struct hb_table_store *store, const uint8_t digest[HB_DIGEST_SIZE],
                             const uint16_t *owner, uint32_t count)
{
    struct hb_table_record record = {.slots = count};

    memcpy(record.digest, digest, HB_DIGEST_SIZE);
    return hb_table_store_take(store, &record, owner);
}

static void a_table_is_stored_once_and_freed_by_the_last_holder(void **state)
{
    struct test_memory memory;
    struct hb_table_store *store;
    struct hb_table *first, *second;
    uint8_t digest[HB_DIGEST_SIZE];

    (void)state;
    test_memory_init(&memory, 0x5); /* nodes 0 and 2 */
    store = hb_table_store_create(&memory.memory);
    blob_digest(slots, 13, digest);
    assert_null(take(store, digest, NULL, 13));
    first = take(store, digest, slots, 13);
    assert_non_null(first);
    assert_int_equal(memory.out, 2);
    assert_ptr_equal(take(store, digest, NULL, 13), first);
    second = take(store, digest, slots, 13);
    assert_ptr_equal(second, first);
    assert_int_equal(memory.out, 2);
    assert_memory_equal(hb_table_on_node(first, 0).owner, slots, sizeof(slots));
    assert_memory_equal(hb_table_on_node(first, 2).owner, slots, sizeof(slots));
    assert_null(hb_table_on_node(first, 1).owner);
    assert_int_equal(hb_table_slots(first), 13);
    hb_table_store_release(store, first);
    hb_table_store_release(store, first);
    assert_int_equal(hb_table_store_count(store), 1);
    hb_table_store_release(store, first);
    assert_int_equal(hb_table_store_count(store), 0);
    assert_int_equal(memory.out, 0);
    hb_table_store_release(store, NULL);
    hb_table_store_destroy(store);
}

static void a_held_table_lists_its_ids(void **state)
{
    struct test_memory memory;
    struct hb_table_store *store;
    struct hb_held_table held;
    struct hb_table *table;
    uint8_t digest[HB_DIGEST_SIZE];
    uint32_t count;

    (void)state;
    test_memory_init(&memory, 0x2);
    store = hb_table_store_create(&memory.memory);
    blob_digest(slots, 13, digest);
    assert_false(hb_table_store_find(store, digest, &held));
    table = take(store, digest, slots, 13);
    assert_true(hb_table_store_find(store, digest, &held));
    assert_int_equal(held.slots, 13);
    assert_memory_equal(held.column.owner, slots, sizeof(slots));
    assert_int_equal(held.ids_count, 3);
    assert_int_equal(held.ids[0], 3);
    assert_int_equal(held.ids[1], 9);
    assert_int_equal(held.ids[2], 65535);
    assert_ptr_equal(hb_table_ids(table, &count), held.ids);
    assert_int_equal(count, 3);
    digest[0] ^= 1;
    assert_false(hb_table_store_find(store, digest, &held));
    hb_table_store_release(store, table);
    hb_table_store_destroy(store);
}

/* Both columns and the marks come to every node; each list of ids holds its own column's. */
static void a_table_may_have_a_past(void **state)
{
    struct test_memory memory;
    struct hb_table_store *store;
    struct hb_held_table held;
    struct hb_table_record record = {.slots = 7, .flags = HB_TABLE_TWO_OWNERS};
    alignas(8) uint8_t body[16 + 16 + 8] = {0};
    uint16_t owner[7] = {1, 2, 1, 2, 1, 2, 1}, previous[7] = {0, 3, 0, 4, 0, 3, 0};
    uint64_t unsettled = 0x6a; /* 1, 3, 5; and 6, whose previous owner is gone */
    struct hb_table *table;

    (void)state;
    memcpy(body, owner, sizeof(owner));
    memcpy(body + 16, previous, sizeof(previous));
    memcpy(body + 32, &unsettled, sizeof(unsettled));
    assert_int_equal(hb_table_body_bytes(7, HB_TABLE_TWO_OWNERS), sizeof(body));
    blob_body_digest(body, 7, HB_TABLE_TWO_OWNERS, record.digest);
    test_memory_init(&memory, 0x3);
    store = hb_table_store_create(&memory.memory);
    table = hb_table_store_take(store, &record, body);
    memset(body, 0xff, sizeof(body)); /* nothing may lie in the caller's memory */
    for (uint32_t node = 0; node < 2; node++) {
        struct hb_table_columns column = hb_table_on_node(table, node);

        assert_memory_equal(column.owner, owner, sizeof(owner));
        assert_memory_equal(column.previous, previous, sizeof(previous));
        for (uint32_t slot = 0; slot < 7; slot++)
            assert_int_equal(hb_slot_is_unsettled(column.unsettled, slot), unsettled >> slot & 1);
    }
    assert_true(hb_table_store_find(store, record.digest, &held));
    assert_int_equal(held.flags, HB_TABLE_TWO_OWNERS);
    assert_int_equal(held.ids_count, 2);
    assert_int_equal(held.previous_ids_count, 3);
    assert_int_equal(held.previous_ids[0], HB_BACKEND_NONE);
    assert_int_equal(held.previous_ids[1], 3);
    assert_int_equal(held.previous_ids[2], 4);
    hb_table_store_release(store, table);
    assert_int_equal(memory.out, 0);
    hb_table_store_destroy(store);
}

static void many_tables_are_kept_apart(void **state)
{
    enum { COUNT = 5000 };
    static struct hb_table *tables[COUNT];
    struct test_memory memory;
    struct hb_table_store *store;
    uint8_t digest[HB_DIGEST_SIZE];
    uint16_t own[7] = {0};

    (void)state;
    test_memory_init(&memory, 0x1);
    store = hb_table_store_create(&memory.memory);
    for (uint32_t i = 0; i < COUNT; i++) {
        own[0] = (uint16_t)i;
        blob_digest(own, 7, digest);
        tables[i] = take(store, digest, own, 7);
    }
    assert_int_equal(hb_table_store_count(store), COUNT);
    for (uint32_t i = 0; i < COUNT; i += 2)
        hb_table_store_release(store, tables[i]);
    assert_int_equal(memory.out, COUNT / 2);
    for (uint32_t i = 0; i < COUNT; i++) {
        struct hb_held_table held;

        own[0] = (uint16_t)i;
        blob_digest(own, 7, digest);
        assert_int_equal(hb_table_store_find(store, digest, &held), i % 2 == 1);
        if (i % 2 == 1)
            assert_int_equal(held.column.owner[0], i);
    }
    for (uint32_t i = 1; i < COUNT; i += 2)
        hb_table_store_release(store, tables[i]);
    assert_int_equal(memory.out, 0);
    hb_table_store_destroy(store);
}

static void short_memory_leaves_nothing_behind(void **state)
{
    struct test_memory memory;
    struct hb_table_store *store;
    uint8_t digest[HB_DIGEST_SIZE];

    (void)state;
    test_memory_init(&memory, 0x7);
    store = hb_table_store_create(&memory.memory);
    blob_digest(slots, 13, digest);
    for (int k = 0; k < 3; k++) {
        memory.fail_in = k;
        assert_null(take(store, digest, slots, 13));
        assert_int_equal(memory.out, 0);
        assert_int_equal(hb_table_store_count(store), 0);
    }
    hb_table_store_destroy(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_stored_once_and_freed_by_the_last_holder),
        cmocka_unit_test(a_held_table_lists_its_ids),
        cmocka_unit_test(a_table_may_have_a_past),
        cmocka_unit_test(many_tables_are_kept_apart),
        cmocka_unit_test(short_memory_leaves_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
