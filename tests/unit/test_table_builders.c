/* SPDX-License-Identifier: BSD-3-Clause */
/* What every builder promises, over hundreds of random pools: nothing but the set, the weights, the
 * size and the seed decides, and a backend that joins or leaves moves no slot between the others
 * where that is promised. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "table_fixture.h"

#define CASES  300
#define SEED   42
#define SLOTS  1021
#define ALL(b) (int b = 0; hb_table_builders[b] != NULL; b++)

static const struct hb_table_builder *const steady[] = {&hb_ring, &hb_rendezvous, &hb_jump};

static void test_list(void **state)
{
    static const char *const names[] = {"maglev", "ring", "rendezvous", "jump", "modulo"};

    (void)state;
    for (int i = 0; i < 5; i++) {
        const struct hb_table_builder *builder = hb_table_builder_by_name(names[i]);

        assert_non_null(builder);
        assert_string_equal(builder->name, names[i]);
        assert_ptr_equal(builder, hb_table_builders[i]);
        assert_int_equal(builder->algorithm, i + 1);
        assert_ptr_equal(hb_table_builder_of(builder->algorithm), builder);
    }
    assert_null(hb_table_builders[5]);
    assert_null(hb_table_builder_by_name("Maglev"));
    assert_null(hb_table_builder_by_name(""));
    assert_null(hb_table_builder_of(0));
    assert_null(hb_table_builder_of(6));
}

/* A pool with random weights where the method has any. Some are 0. */
static struct pool make_random_pool(const struct hb_table_builder *builder, uint32_t count,
                                    uint64_t *random)
{
    static const uint32_t weights[] = {1, 1, 1, 2, 3, 10};
    struct pool pool = make_pool(count);

    for (uint32_t i = 0; i < count && builder != &hb_jump; i++) {
        pool.members[i].weight = weights[next_random(random) % 6];
        if (i > 0 && next_random(random) % 16 == 0)
            pool.members[i].weight = 0;
    }
    return pool;
}

static struct hb_table_request ask_for(const struct pool *pool, uint32_t slots, uint64_t seed)
{
    return (struct hb_table_request){.members = pool->members,
                                     .count = pool->count,
                                     .slots = slots,
                                     .seed = seed,
                                     .options = {.virtual_nodes = 20}};
}

static void assert_builds(const struct hb_table_builder *builder,
                          const struct hb_table_request *request, uint16_t *owner)
{
    enum hb_table_error error = builder->build(request, owner);

    if (error != HB_TABLE_OK)
        fail_msg("%s: %s", builder->name, hb_table_error_text(error));
}

/* BL-58: neither order nor ids decide, and the digest knows only the set. */
static void test_bl58_order_of_members(void **state)
{
    uint64_t random = 11;

    (void)state;
    for
        ALL(b)
        {
            for (int round = 0; round < CASES; round++) {
                const struct hb_table_builder *builder = hb_table_builders[b];
                struct pool pool =
                    make_random_pool(builder, 2 + next_random(&random) % 40, &random);
                struct hb_table_request request = ask_for(&pool, SLOTS, next_random(&random));
                uint8_t digest[2][HB_DIGEST_SIZE];
                uint16_t owner[SLOTS], shuffled[SLOTS];

                request.options.ketama = round % 4 == 0;
                assert_builds(builder, &request, owner);
                hb_table_owners_digest(owner, SLOTS, pool.members, pool.count, digest[0]);
                shuffle_pool(&pool, &random);
                assert_builds(builder, &request, shuffled);
                assert_memory_equal(owner, shuffled, sizeof(owner));
                for (uint32_t i = 0; i < pool.count; i++)
                    pool.members[i].id = (uint16_t)(60000 - 7 * pool.members[i].id);
                assert_builds(builder, &request, shuffled);
                hb_table_owners_digest(shuffled, SLOTS, pool.members, pool.count, digest[1]);
                assert_memory_equal(digest[0], digest[1], HB_DIGEST_SIZE);
                for (uint32_t slot = 0; slot < SLOTS; slot++)
                    assert_int_equal(shuffled[slot], 60000 - 7 * owner[slot]);
                free_pool(&pool);
            }
        }
}

static bool has_member(const struct pool *pool, uint32_t count, uint16_t id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (pool->members[i].id == id)
            return pool->members[i].weight > 0;
    }
    return false;
}

/* The last of `pool` joins the others, and leaves again. */
static void check_join(const struct hb_table_builder *builder, struct pool *pool,
                       struct hb_table_request request)
{
    uint16_t without[SLOTS], with[SLOTS], joining = pool->members[pool->count - 1].id;
    uint32_t moved = 0;

    request.count = pool->count - 1;
    assert_builds(builder, &request, without);
    request.count = pool->count;
    assert_builds(builder, &request, with);
    for (uint32_t slot = 0; slot < request.slots; slot++) {
        assert_true(has_member(pool, pool->count, with[slot]));
        moved += with[slot] != without[slot];
        assert_true(with[slot] == without[slot] || with[slot] == joining);
    }
    assert_true(moved > 0 || request.slots < 20 * pool->count);
}

/* Adding a backend never moves a slot between old ones; so removing it does not either. */
static void test_join_moves_nothing_else(void **state)
{
    static const uint32_t sizes[] = {251, 509, 1021};
    uint64_t random = 12;

    (void)state;
    for (int b = 0; b < 3; b++) {
        for (int round = 0; round < CASES; round++) {
            struct pool pool = make_random_pool(steady[b], 2 + next_random(&random) % 60, &random);
            uint32_t slots = sizes[next_random(&random) % 3];

            pool.members[0].weight = 1;
            pool.members[pool.count - 1].weight = 1;
            check_join(steady[b], &pool, ask_for(&pool, slots, next_random(&random)));
            free_pool(&pool);
        }
    }
}

/* A change of one weight moves slots to or from that backend only. */
static void test_weight_moves_nothing_else(void **state)
{
    static const struct hb_table_builder *const weighted[] = {&hb_ring, &hb_rendezvous};
    uint64_t random = 13;

    (void)state;
    for (int b = 0; b < 2; b++) {
        for (int round = 0; round < CASES; round++) {
            struct pool pool =
                make_random_pool(weighted[b], 2 + next_random(&random) % 40, &random);
            struct hb_table_request request = ask_for(&pool, SLOTS, next_random(&random));
            struct hb_table_member *changed = &pool.members[next_random(&random) % pool.count];
            uint16_t before[SLOTS], after[SLOTS];
            bool heavier;

            pool.members[0].weight = 1;
            changed->weight = 3;
            assert_builds(weighted[b], &request, before);
            heavier = next_random(&random) % 2;
            changed->weight = heavier ? 4 + next_random(&random) % 9 : next_random(&random) % 3;
            if (changed == &pool.members[0] && changed->weight == 0)
                changed->weight = 1;
            assert_builds(weighted[b], &request, after);
            for (uint32_t slot = 0; slot < SLOTS; slot++) {
                if (before[slot] != after[slot])
                    assert_int_equal(heavier ? after[slot] : before[slot], changed->id);
            }
            free_pool(&pool);
        }
    }
}

/* How far a member's slots may be from its part: six standard deviations, of drawing each slot by
 * chance and, on a ring, of the lengths of its arcs. */
static double bound_of(const struct hb_table_builder *builder, const struct hb_table_request *r,
                       double part, uint32_t weight)
{
    double variance = r->slots * part * (1 - part);
    double arcs = r->slots * part;

    if (builder == &hb_ring)
        variance += arcs * arcs / (weight * r->options.virtual_nodes);
    return builder == &hb_maglev ? 1 : 6 * sqrt(variance) + 1;
}

static void test_shares_follow_weights(void **state)
{
    uint16_t *owner = make_table(65537);
    uint32_t *slots = calloc(65536, sizeof(*slots));
    uint64_t random = 14;

    (void)state;
    for
        ALL(b)
        {
            for (int round = 0; round < 20; round++) {
                const struct hb_table_builder *builder = hb_table_builders[b];
                struct pool pool =
                    make_random_pool(builder, 2 + next_random(&random) % 60, &random);
                struct hb_table_request request = ask_for(&pool, 65537, next_random(&random));
                double weights = 0;

                request.options.virtual_nodes = 200;
                assert_builds(builder, &request, owner);
                memset(slots, 0, 65536 * sizeof(*slots));
                for (uint32_t slot = 0; slot < 65537; slot++)
                    slots[owner[slot]]++;
                for (uint32_t i = 0; i < pool.count; i++)
                    weights += pool.members[i].weight;
                for (uint32_t i = 0; i < pool.count; i++) {
                    double part = pool.members[i].weight / weights;
                    double off = fabs(slots[pool.members[i].id] - part * 65537);

                    if (off > bound_of(builder, &request, part, pool.members[i].weight))
                        fail_msg("%s: %u slots for a part of %f", builder->name,
                                 slots[pool.members[i].id], part);
                }
                free_pool(&pool);
            }
        }
    free(slots);
    free(owner);
}

/* Extreme weights: 1 beside 65,535. */
static void test_extreme_weights(void **state)
{
    struct hb_table_member members[] = {
        {.identity = "198.51.100.1", .weight = 65535, .id = 1, .bucket = 0},
        {.identity = "198.51.100.2", .weight = 1, .id = 2, .bucket = 1},
        {.identity = "198.51.100.3", .weight = 65535, .id = 3, .bucket = 2},
    };
    struct hb_table_request request = {.members = members,
                                       .count = 3,
                                       .slots = 65537,
                                       .seed = SEED,
                                       .options = {.virtual_nodes = 1}};
    uint16_t *owner = make_table(65537);

    (void)state;
    for
        ALL(b)
        {
            uint32_t slots[4] = {0};

            members[1].weight = hb_table_builders[b] == &hb_jump ? 65535 : 1;
            assert_builds(hb_table_builders[b], &request, owner);
            for (uint32_t slot = 0; slot < 65537; slot++)
                slots[owner[slot]]++;
            if (hb_table_builders[b] == &hb_jump) {
                assert_in_range(slots[2], 21000, 22700);
                continue;
            }
            assert_in_range(slots[2], hb_table_builders[b] == &hb_maglev, 10);
            assert_in_range(slots[1], 31900, 33600);
            assert_in_range(slots[3], 31900, 33600);
        }
    free(owner);
}

static void test_one_backend_has_all(void **state)
{
    static const uint32_t weights[] = {1, 77, 65535};
    static const uint32_t sizes[] = {7, 251, 65537};
    struct pool pool = make_pool(3);
    uint16_t *owner = make_table(65537);

    (void)state;
    for
        ALL(b)
        {
            for (int w = 0; w < 3; w++) {
                struct hb_table_request request = ask_for(&pool, sizes[w], SEED);

                pool.members[0].weight = weights[w];
                pool.members[1].weight = pool.members[2].weight = 0;
                assert_builds(hb_table_builders[b], &request, owner);
                for (uint32_t slot = 0; slot < sizes[w]; slot++)
                    assert_int_equal(owner[slot], pool.members[0].id);
                request.count = 1;
                assert_builds(hb_table_builders[b], &request, owner);
                for (uint32_t slot = 0; slot < sizes[w]; slot++)
                    assert_int_equal(owner[slot], pool.members[0].id);
            }
        }
    free(owner);
    free_pool(&pool);
}

/* BL-60, BL-61, BL-66 */
static void test_refusals(void **state)
{
    static const struct {
        uint32_t count, slots;
        enum hb_table_error error;
        const char *text;
    } rows[] = {
        {1000, 251, HB_TABLE_SIZE_TOO_SMALL,
         "251 slots are too few for 1000 backends with a weight; the smallest prime that will do "
         "is 1009"},
        {252, 251, HB_TABLE_SIZE_TOO_SMALL,
         "251 slots are too few for 252 backends with a weight; the smallest prime that will do "
         "is 257"},
        {251, 251, HB_TABLE_OK, "built"},
        {7, 7, HB_TABLE_OK, "built"},
        {8, 7, HB_TABLE_SIZE_TOO_SMALL,
         "7 slots are too few for 8 backends with a weight; the smallest prime that will do is 11"},
        {5, 256, HB_TABLE_SIZE_NOT_PRIME,
         "256 slots: that is not prime; the nearest primes are 251 and 257"},
        {5, 5, HB_TABLE_SIZE_NOT_PRIME,
         "5 slots: a table has a prime number of them from 7 to 5000011"},
        {5, 5000077, HB_TABLE_SIZE_NOT_PRIME,
         "5000077 slots: a table has a prime number of them from 7 to 5000011"},
        {0, 251, HB_TABLE_NO_MEMBERS, "no backend has a weight above 0"},
    };
    char text[HB_TABLE_EXPLANATION];

    (void)state;
    for
        ALL(b)
        {
            for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct pool pool = make_pool(1000);
                struct hb_table_request request = ask_for(&pool, rows[i].slots, SEED);
                uint16_t owner[SLOTS];

                request.count = rows[i].count;
                assert_int_equal(hb_table_builders[b]->build(&request, owner), rows[i].error);
                hb_table_explain(&request, rows[i].error, text, sizeof(text));
                assert_string_equal(text, rows[i].text);
                for (uint32_t m = 0; m < 1000; m++)
                    pool.members[m].weight = 0;
                if (rows[i].error != HB_TABLE_SIZE_NOT_PRIME)
                    assert_int_equal(hb_table_builders[b]->build(&request, owner),
                                     HB_TABLE_NO_MEMBERS);
                free_pool(&pool);
            }
        }
    assert_int_equal(hb_table_smallest_size(0), 7);
    assert_int_equal(hb_table_smallest_size(7), 7);
    assert_int_equal(hb_table_smallest_size(8), 11);
}

static void test_duplicates_are_refused(void **state)
{
    struct pool pool = make_pool(5);
    struct hb_table_request request = ask_for(&pool, 251, SEED);
    uint16_t owner[251];

    (void)state;
    pool.members[4].identity = "10.0.0.2";
    for
        ALL(b)
    assert_int_equal(hb_table_builders[b]->build(&request, owner), HB_TABLE_DUPLICATE);
    free_pool(&pool);
}

/* The seed decides, but for the ring of libketama, which has none. */
static void test_seed_matters(void **state)
{
    struct pool pool = make_pool(10);
    uint16_t one[SLOTS], other[SLOTS];

    (void)state;
    for
        ALL(b)
        {
            struct hb_table_request request = ask_for(&pool, SLOTS, SEED);

            assert_builds(hb_table_builders[b], &request, one);
            request.seed++;
            assert_builds(hb_table_builders[b], &request, other);
            /* Unrelated tables of ten backends agree on a tenth of their slots, give or take. */
            assert_in_range(hb_table_compare(one, other, SLOTS).moved, 850, 980);
            request.options.ketama = true;
            assert_builds(hb_table_builders[b], &request, one);
            request.seed++;
            assert_builds(hb_table_builders[b], &request, other);
            assert_int_equal(hb_table_compare(one, other, SLOTS).moved == 0,
                             hb_table_builders[b] == &hb_ring);
        }
    free_pool(&pool);
}

/* BL-62: the same on every machine and compiler. These are what the first version built. */
static void test_bl62_pinned(void **state)
{
    static const char *const digests[] = {
        "3fa18214840d0d76b1a8d7c1c04260b4", /* maglev */
        "c5e6105c68fd144e80ec755d0241f3af", /* ring */
        "b7efe760faf54be4f065fb95871514fa", /* rendezvous */
        "6717a9684af7693ac9fa86e260713d7a", /* jump */
        "f644af4a18a51159eee3a1a9f89909de", /* modulo */
        "98aa84ab964e3e1ff540f7520d01137f", /* ketama */

    };
    static const uint32_t weights[10] = {1, 2, 3, 1, 1, 10, 1, 2, 1, 5};

    (void)state;
    for (int i = 0; i < 6; i++) {
        const struct hb_table_builder *builder = hb_table_builders[i < 5 ? i : 1];
        struct pool pool = make_pool(10);
        struct hb_table_request request = ask_for(&pool, SLOTS, SEED);
        uint8_t digest[HB_DIGEST_SIZE];
        uint16_t owner[SLOTS];
        char text[33];

        request.options.ketama = i == 5;
        for (int m = 0; m < 10 && builder != &hb_jump; m++)
            pool.members[m].weight = weights[m];
        assert_builds(builder, &request, owner);
        hb_table_owners_digest(owner, SLOTS, pool.members, pool.count, digest);
        assert_string_equal(print_digest(digest, text), digests[i]);
        free_pool(&pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_bl58_order_of_members),
        cmocka_unit_test(test_join_moves_nothing_else),
        cmocka_unit_test(test_weight_moves_nothing_else),
        cmocka_unit_test(test_shares_follow_weights),
        cmocka_unit_test(test_extreme_weights),
        cmocka_unit_test(test_one_backend_has_all),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_duplicates_are_refused),
        cmocka_unit_test(test_seed_matters),
        cmocka_unit_test(test_bl62_pinned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
