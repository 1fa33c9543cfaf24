/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables whose slots had other owners before: what the checker takes and refuses of the second
 * column and the marks, and what the workers get. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "blob.h"
#include "generation_build.h"
#include "generation_check.h"
#include "test_memory.h"

#define SLOTS 13

static const struct hb_generation_limits limits = {
    .services_max = HB_SERVICES_MAX, .backends_max = HB_BACKENDS_MAX + 1, .ports_count = 1};

/* Pool "web" of blob_example(): its backends are 1 and 2, those of "dns" 3 and 4. */
struct subject {
    uint8_t *blob;
    size_t size;
    struct hb_table_record *table;
    uint16_t *previous;
    uint64_t *unsettled;
};

static struct subject build_subject(struct blob_plan *plan, const uint16_t previous[SLOTS],
                                    uint64_t unsettled)
{
    struct subject s;
    struct hb_generation_header *header;
    uint16_t copy[SLOTS];

    memcpy(copy, previous, sizeof(copy));
    plan->pool[0].previous = copy;
    plan->pool[0].unsettled = &unsettled;
    s.blob = blob_build(plan, &s.size);
    header = (void *)s.blob;
    s.table = (void *)(s.blob + header->tables.offset);
    s.previous = (void *)(s.blob + s.table->offset + hb_table_previous_offset(SLOTS));
    s.unsettled = (void *)(s.blob + s.table->offset + 2 * hb_table_previous_offset(SLOTS));
    return s;
}

static struct subject example(void)
{
    static const uint16_t previous[SLOTS] = {[3] = 1, [4] = 2, [12] = 1};
    struct blob_plan plan = blob_example();

    return build_subject(&plan, previous, 1 << 7); /* 7: its previous owner is gone */
}

static enum hb_reject judge(struct subject *s, struct hb_generation_fault *fault)
{
    blob_body_digest(s->blob + s->table->offset, s->table->slots, s->table->flags,
                     s->table->digest);
    blob_repair_checksum(s->blob, s->size);
    return hb_generation_check(s->blob, s->size, &limits, fault);
}

static void expect(struct subject *s, const void *field, const char *words)
{
    struct hb_generation_fault fault;

    assert_int_equal(judge(s, &fault), HB_REJECT_PREVIOUS);
    assert_int_equal(fault.record, 0);
    assert_int_equal(fault.offset, (const uint8_t *)field - s->blob);
    if (strstr(fault.text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", fault.text, words);
    free(s->blob);
}

/* Also slot 3: it was given back to the owner that it had, and is unsettled all the same. */
static void a_past_is_accepted(void **state)
{
    struct subject s = example();
    struct hb_generation_fault fault;

    (void)state;
    assert_int_equal(s.table->flags, HB_TABLE_TWO_OWNERS);
    assert_int_equal(judge(&s, &fault), HB_REJECT_NONE);
    free(s.blob);
}

static void each_mistake_is_refused(void **state)
{
    struct subject s;

    (void)state;
    s = example(), s.previous[4] = 3;
    expect(&s, &s.previous[4], "slot 4 of its table 0 had backend id 3, which belongs to another");
    s = example(), s.previous[12] = 9;
    expect(&s, &s.previous[12], "had backend id 9, which is not in this generation");
    s = example(), s.previous[0] = 1;
    expect(&s, &s.previous[0], "slot 0 has a previous owner (1) and is not marked");
    s = example(), *s.unsettled &= ~(UINT64_C(1) << 4);
    expect(&s, &s.previous[4], "slot 4 has a previous owner (2) and is not marked");
    s = example(), *s.unsettled |= UINT64_C(1) << SLOTS;
    expect(&s, s.unsettled, "marks beyond slot 12");
    s = example(), *s.unsettled |= UINT64_C(1) << 63;
    expect(&s, s.unsettled, "marks beyond slot 12");
    s = example(), s.previous[SLOTS] = 1; /* the gap in front of the marks */
    expect(&s, s.unsettled, "between its columns");
    s = example(), s.previous[-1] = 1; /* the gap behind the owners */
    expect(&s, s.unsettled, "between its columns");
    s = example(), *s.unsettled = 0, memset(s.previous, 0, SLOTS * sizeof(*s.previous));
    expect(&s, s.unsettled, "none of its 13 slots is unsettled");
}

/* Its columns are within the blob, share no byte with another table, and are all in the digest. */
static void the_whole_body_counts(void **state)
{
    struct hb_generation_fault fault;
    struct subject s = example();

    (void)state;
    s.table[0].offset = s.size - 64; /* the owners fit, the rest does not */
    blob_repair_checksum(s.blob, s.size);
    assert_int_equal(hb_generation_check(s.blob, s.size, &limits, &fault), HB_REJECT_TABLE);
    free(s.blob);
    s = example();
    s.table[1].offset = s.table[0].offset + 64; /* where the marks are */
    blob_repair_checksum(s.blob, s.size);
    assert_int_equal(hb_generation_check(s.blob, s.size, &limits, &fault), HB_REJECT_TABLE);
    assert_non_null(strstr(fault.text, "overlap"));
    free(s.blob);
    s = example();
    s.previous[4] ^= 3;
    blob_repair_checksum(s.blob, s.size);
    assert_int_equal(hb_generation_check(s.blob, s.size, &limits, &fault), HB_REJECT_TABLE_DIGEST);
    free(s.blob);
    s = example(); /* the same bytes as a longer table with one column are another table */
    s.table[0].slots = (uint32_t)hb_table_body_bytes(SLOTS, HB_TABLE_TWO_OWNERS) / 2;
    s.table[0].flags = 0;
    blob_repair_checksum(s.blob, s.size);
    assert_int_equal(hb_generation_check(s.blob, s.size, &limits, &fault), HB_REJECT_TABLE_DIGEST);
    free(s.blob);
}

/* A backend that was an owner before may be down, and without a next hop. */
static void a_previous_owner_may_be_down(void **state)
{
    static const uint16_t previous[SLOTS] = {[3] = 1};
    struct blob_plan plan = blob_example();
    struct hb_generation_fault fault;
    struct subject s;

    (void)state;
    plan.backend[0].use = HB_BACKEND_DOWN;
    memset(&plan.backend[0].rewrite, 0, sizeof(plan.backend[0].rewrite));
    s = build_subject(&plan, previous, 0);
    assert_int_equal(judge(&s, &fault), HB_REJECT_NONE);
    free(s.blob);
}

/* A generation that only names the table: the held one is judged by its ids, and must be of the
 * same form. */
static void a_held_past_is_checked(void **state)
{
    static const uint16_t previous[SLOTS] = {[3] = 1, [4] = 2};
    struct test_memory memory;
    struct hb_table_store *store;
    struct hb_generation_limits with_held = limits;
    struct hb_generation_fault fault;
    struct blob_plan plan = blob_example();
    struct subject s = build_subject(&plan, previous, 0), named;
    struct hb_table *table;

    (void)state;
    test_memory_init(&memory, 0x1);
    store = hb_table_store_create(&memory.memory);
    table = hb_table_store_take(store, s.table, s.blob + s.table->offset);
    with_held.find_table = hb_table_store_find;
    with_held.context = store;
    plan.pool[0].leave_out_body = 1;
    named = build_subject(&plan, previous, 0);
    assert_int_equal(hb_generation_check(named.blob, named.size, &with_held, &fault),
                     HB_REJECT_NONE);
    named.table->flags = 0;
    blob_repair_checksum(named.blob, named.size);
    assert_int_equal(hb_generation_check(named.blob, named.size, &with_held, &fault),
                     HB_REJECT_TABLE_UNKNOWN);
    free(named.blob);
    /* Backend 1 leaves; the owners do not name it any more, the previous ones do. */
    plan.pool[0].leave_out_body = 0;
    plan.pool[0].owner = (uint16_t[SLOTS]){2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    named = build_subject(&plan, previous, 0);
    hb_table_store_release(store, table);
    table = hb_table_store_take(store, named.table, named.blob + named.table->offset);
    free(named.blob);
    plan.pool[0].leave_out_body = 1;
    plan.backend[0].id = 1;
    plan.backend[0].pool = 1;
    named = build_subject(&plan, previous, 0);
    assert_int_equal(hb_generation_check(named.blob, named.size, &with_held, &fault),
                     HB_REJECT_PREVIOUS);
    assert_non_null(strstr(fault.text, "(held here) has backend id 1 as a previous owner"));
    free(named.blob);
    free(s.blob);
    hb_table_store_release(store, table);
    hb_table_store_destroy(store);
}

/* The workers get the columns, of that pool alone; and none once all has settled. */
static void the_workers_get_the_past(void **state)
{
    struct test_memory memory;
    struct hb_table_store *store;
    struct hb_built_generation *built;
    struct blob_plan plan = blob_example();
    struct subject s = example();
    size_t size;
    void *settled = blob_build(&plan, &size);

    (void)state;
    test_memory_init(&memory, 0x3);
    store = hb_table_store_create(&memory.memory);
    built = hb_generation_build(s.blob, NULL, store, &memory.memory);
    for (int node = 0; node < 2; node++) {
        const struct hb_pool_past *past = built->set.node[node]->past;

        assert_int_equal(past[0].previous[12], 1);
        assert_true(hb_slot_is_unsettled(past[0].unsettled, 7));
        assert_false(hb_slot_is_unsettled(past[0].unsettled, 8));
        assert_null(past[1].unsettled);
    }
    hb_generation_free(built, store, &memory.memory);
    built = hb_generation_build(settled, NULL, store, &memory.memory);
    assert_null(built->set.node[0]->past);
    hb_generation_free(built, store, &memory.memory);
    hb_table_store_destroy(store);
    free(s.blob);
    free(settled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_past_is_accepted),     cmocka_unit_test(each_mistake_is_refused),
        cmocka_unit_test(the_whole_body_counts),  cmocka_unit_test(a_previous_owner_may_be_down),
        cmocka_unit_test(a_held_past_is_checked), cmocka_unit_test(the_workers_get_the_past),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
