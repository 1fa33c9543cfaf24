/* SPDX-License-Identifier: BSD-3-Clause */
/* When a mark was needed last: by hand, over swaps of generations, and over the clock's wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "blob.h"
#include "generation_build.h"
#include "slot_uses.h"
#include "test_memory.h"

#define SLOTS 13

static const uint8_t nodes[] = {0, 0, 1};

static void two_workers(struct test_memory *memory)
{
    test_memory_init(memory, 0x3);
    memory->memory.workers = 3;
    memory->memory.worker_node = nodes;
}

static uint64_t idle(const struct hb_slot_uses *uses, uint32_t now_ms)
{
    uint64_t bits;

    hb_slot_uses_idle(uses, now_ms, 1000, 0, &bits, 1);
    return bits;
}

static void by_hand(void **state)
{
    uint16_t owner[SLOTS] = {1, 1, 2, 2}, previous[SLOTS] = {2, 0, 1};
    uint64_t unsettled = 0x7;
    struct hb_table_columns column = {owner, previous, &unsettled};
    struct test_memory memory;
    struct hb_slot_uses *uses;
    uint32_t start = (uint32_t)-500; /* the clock wraps soon */

    (void)state;
    two_workers(&memory);
    uses = hb_slot_uses_create(&memory.memory, (char[HB_NAME_SIZE]){"web"}, SLOTS);
    assert_int_equal(memory.out, 3);
    hb_slot_uses_begin(uses, &column, start);
    assert_int_equal(idle(uses, start + 999), 0);
    assert_int_equal(idle(uses, start + 1000), 0x7); /* marked slots alone */
    uses->used[2][1] = start + 600;
    assert_int_equal(idle(uses, start + 1000), 0x5);
    uses->used[0][1] = start + 900; /* the latest of all workers counts */
    assert_int_equal(idle(uses, start + 1600), 0x5);
    assert_int_equal(idle(uses, start + 1900), 0x7);
    /* A generation that changes nothing here; then slot 0 gets another owner, and 3 a mark. */
    hb_slot_uses_begin(uses, &column, start + 1900);
    assert_int_equal(idle(uses, start + 1900), 0x7);
    owner[0] = 3;
    unsettled = 0xe;
    hb_slot_uses_begin(uses, &column, start + 2000);
    assert_int_equal(idle(uses, start + 2000), 0x6);
    unsettled = 0xf; /* slot 0 was settled in between: its time begins anew */
    hb_slot_uses_begin(uses, &column, start + 2500);
    assert_int_equal(idle(uses, start + 3400), 0xe);
    assert_int_equal(idle(uses, start + 3500), 0xf);
    /* A worker's clock may be ahead of the main lcore's by a little. */
    uses->used[1][2] = start + 3600;
    assert_int_equal(idle(uses, start + 3500), 0xb);
    hb_slot_uses_release(uses, &memory.memory);
    assert_int_equal(memory.out, 0);
}

/* As the dataplane does it: the notes of a pool pass to the next generation while it stays
 * unsettled, and are gone when it has settled or has another size. */
static void notes_pass_from_generation_to_generation(void **state)
{
    struct test_memory memory;
    struct hb_table_store *store;
    struct blob_plan plan = blob_example();
    uint16_t previous[SLOTS] = {[3] = 1};
    struct hb_built_generation *first, *second, *third;
    struct hb_settle request = {.idle_ms = 1000};
    struct hb_settle_reply reply;
    size_t size;
    void *blob;

    (void)state;
    two_workers(&memory);
    store = hb_table_store_create(&memory.memory);
    plan.pool[0].previous = previous;
    blob = blob_build(&plan, &size);
    first = hb_generation_build(blob, NULL, store, &memory.memory);
    free(blob);
    hb_generation_begin(first, 5000);
    assert_ptr_equal(first->set.node[1]->past[0].used, first->pools[0].uses->used);
    assert_null(first->pools[1].uses);
    previous[4] = 1;
    blob = blob_build(&plan, &size);
    second = hb_generation_build(blob, first, store, &memory.memory);
    free(blob);
    hb_generation_begin(second, 5600);
    assert_ptr_equal(second->pools[0].uses, first->pools[0].uses);
    hb_generation_free(first, store, &memory.memory);

    memcpy(request.digest, hb_table_content(second->pools[0].table), HB_DIGEST_SIZE);
    reply = (struct hb_settle_reply){0};
    hb_generation_settle(second, &request, 6000, &reply);
    assert_int_equal(reply.known, 1);
    assert_int_equal(reply.count, SLOTS);
    assert_int_equal(reply.idle[0], 1 << 3);
    reply = (struct hb_settle_reply){0};
    hb_generation_settle(second, &request, 6600, &reply);
    assert_int_equal(reply.idle[0], 1 << 3 | 1 << 4);
    reply = (struct hb_settle_reply){0};
    request.first = 64;
    hb_generation_settle(second, &request, 6600, &reply);
    assert_int_equal(reply.known, 0);
    request.first = 0;
    request.digest[0] ^= 1;
    hb_generation_settle(second, &request, 6600, &reply);
    assert_int_equal(reply.known, 0);
    hb_generation_settle(NULL, &request, 6600, &reply);
    assert_int_equal(reply.known, 0);

    plan.pool[0].previous = NULL;
    blob = blob_build(&plan, &size);
    third = hb_generation_build(blob, second, store, &memory.memory);
    free(blob);
    assert_null(third->pools[0].uses);
    assert_null(third->set.node[0]->past);
    hb_generation_free(second, store, &memory.memory);
    hb_generation_free(third, store, &memory.memory);
    assert_int_equal(memory.out, 0);
    hb_table_store_destroy(store);
}

static void *allocate_all_but_notes(void *context, size_t bytes, uint32_t node)
{
    return bytes == SLOTS * sizeof(uint32_t) ? NULL : test_allocate(context, bytes, node);
}

/* A change is adopted all the same; the next generation tries again. */
static void without_memory_for_notes_a_pool_goes_on(void **state)
{
    struct test_memory memory;
    struct hb_table_store *store;
    struct blob_plan plan = blob_example();
    uint16_t previous[SLOTS] = {[3] = 1};
    struct hb_built_generation *first, *second;
    struct hb_settle request = {0};
    struct hb_settle_reply reply = {0};
    size_t size;
    void *blob;

    (void)state;
    two_workers(&memory);
    store = hb_table_store_create(&memory.memory);
    plan.pool[0].previous = previous;
    blob = blob_build(&plan, &size);
    memory.memory.allocate = allocate_all_but_notes;
    first = hb_generation_build(blob, NULL, store, &memory.memory);
    assert_non_null(first);
    assert_null(first->pools[0].uses);
    assert_non_null(first->set.node[0]->past[0].unsettled);
    assert_null(first->set.node[0]->past[0].used);
    hb_generation_begin(first, 5000);
    memcpy(request.digest, hb_table_content(first->pools[0].table), HB_DIGEST_SIZE);
    hb_generation_settle(first, &request, 6000, &reply);
    assert_int_equal(reply.known, 0);
    memory.memory.allocate = test_allocate;
    second = hb_generation_build(blob, first, store, &memory.memory);
    assert_non_null(second->pools[0].uses);
    free(blob);
    hb_generation_free(first, store, &memory.memory);
    hb_generation_free(second, store, &memory.memory);
    assert_int_equal(memory.out, 0);
    hb_table_store_destroy(store);
}

static void short_memory_leaves_nothing_behind(void **state)
{
    struct test_memory memory;

    (void)state;
    two_workers(&memory);
    for (int k = 0; k < 3; k++) {
        memory.fail_in = k;
        assert_null(hb_slot_uses_create(&memory.memory, (char[HB_NAME_SIZE]){"web"}, SLOTS));
        assert_int_equal(memory.out, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(notes_pass_from_generation_to_generation),
        cmocka_unit_test(without_memory_for_notes_a_pool_goes_on),
        cmocka_unit_test(short_memory_leaves_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
