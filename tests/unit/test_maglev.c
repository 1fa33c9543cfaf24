/* SPDX-License-Identifier: BSD-3-Clause */
/* The Maglev builder: the paper's example by hand, a plain model, and the properties that are
 * promised. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hashing/maglev.h"
#include "table_fixture.h"

#define SEED 42

/* The paper's table 1: M = 7, three backends, their permutations and what comes of them. */
static const struct hb_maglev_member paper[] = {
    {.offset = 3, .skip = 4, .weight = 1, .id = 0},
    {.offset = 0, .skip = 2, .weight = 1, .id = 1},
    {.offset = 3, .skip = 1, .weight = 1, .id = 2},
};

/* Offsets and skips are in range at both ends of the sizes, and come from the identity and the
 * seed. */
static void test_permutations(void **state)
{
    static const uint32_t sizes[] = {7, 65537, 5000011};
    struct hb_maglev_member one, other;

    (void)state;
    for (int size = 0; size < 3; size++) {
        for (uint64_t seed = 0; seed < 1000; seed++) {
            hb_maglev_permutation("192.0.2.1", sizes[size], seed, &one);
            assert_in_range(one.offset, 0, sizes[size] - 1);
            assert_in_range(one.skip, 1, sizes[size] - 1);
        }
    }
    hb_maglev_permutation("192.0.2.1", 5000011, SEED, &one);
    hb_maglev_permutation("192.0.2.2", 5000011, SEED, &other);
    assert_int_not_equal(one.offset, other.offset);
    assert_int_not_equal(one.skip, other.skip);
    hb_maglev_permutation("192.0.2.1", 5000011, SEED + 1, &other);
    assert_int_not_equal(one.offset, other.offset);
    assert_int_not_equal(one.skip, other.skip);
}

static void test_paper_example(void **state)
{
    static const uint16_t all[7] = {1, 0, 1, 0, 2, 2, 0};
    static const uint16_t without_b1[7] = {0, 0, 0, 0, 2, 2, 2};
    const struct hb_maglev_member two[] = {paper[0], paper[2]};
    uint16_t owner[7];

    (void)state;
    assert_int_equal(hb_maglev_fill(paper, 3, 7, owner), HB_TABLE_OK);
    assert_memory_equal(owner, all, sizeof(all));
    assert_int_equal(hb_maglev_fill(two, 2, 7, owner), HB_TABLE_OK);
    assert_memory_equal(owner, without_b1, sizeof(without_b1));
}

static void test_fill_refuses(void **state)
{
    uint16_t owner[7];

    (void)state;
    assert_int_equal(hb_maglev_fill(paper, 0, 7, owner), HB_TABLE_NO_MEMBERS);
    assert_int_equal(hb_maglev_fill(paper, 3, 2, owner), HB_TABLE_SIZE_TOO_SMALL);
    assert_int_equal(hb_maglev_fill(paper, 3, 5000012, owner), HB_TABLE_SIZE_NOT_PRIME);
}

/* Any common weight is the same as weight 1. */
static void test_paper_example_with_equal_weights(void **state)
{
    static const uint16_t all[7] = {1, 0, 1, 0, 2, 2, 0};
    struct hb_maglev_member heavy[3];
    uint16_t owner[7];

    (void)state;
    memcpy(heavy, paper, sizeof(heavy));
    for (int b = 0; b < 3; b++)
        heavy[b].weight = 65535;
    assert_int_equal(hb_maglev_fill(heavy, 3, 7, owner), HB_TABLE_OK);
    assert_memory_equal(owner, all, sizeof(all));
}

/* ---- A model that is too slow to use and too plain to be wrong. ---- */

/* Slots of each member: below one slot becomes one; the rest by largest remainder. */
static void model_quotas(const struct hb_maglev_member *m, uint32_t count, uint32_t slots,
                         uint32_t *quota)
{
    uint64_t left = slots, weights = 0, given = 0, share;
    bool again = true;

    memset(quota, 0, count * sizeof(*quota));
    for (uint32_t i = 0; i < count; i++)
        weights += m[i].weight;
    while (again) {
        again = false;
        for (uint32_t i = 0; i < count; i++) {
            if (quota[i] == 0 && left * m[i].weight < weights) {
                quota[i] = 1;
                left--;
                weights -= m[i].weight;
                again = true;
            }
        }
    }
    bool *open = calloc(count, sizeof(*open));

    share = left;
    for (uint32_t i = 0; i < count; i++) {
        open[i] = quota[i] == 0;
        if (open[i])
            given += quota[i] = share * m[i].weight / weights;
    }
    for (; given < share; given++) {
        uint32_t best = count;

        for (uint32_t i = 0; i < count; i++) {
            if (!open[i])
                continue;
            uint64_t rest = share * m[i].weight % weights;
            uint64_t best_rest = best < count ? share * m[best].weight % weights : 0;

            if (best == count || rest > best_rest ||
                (rest == best_rest && m[i].weight > m[best].weight))
                best = i;
        }
        quota[best]++;
        open[best] = false;
    }
    free(open);
}

static void model_fill(const struct hb_maglev_member *m, uint32_t count, uint32_t slots,
                       uint16_t *owner)
{
    uint32_t *quota = calloc(count, sizeof(*quota));
    uint32_t *taken = calloc(count, sizeof(*taken));
    bool *used = calloc(slots, sizeof(*used));

    model_quotas(m, count, slots, quota);
    for (uint32_t turn = 0; turn < slots; turn++) {
        uint32_t next = count;
        uint64_t slot;

        for (uint32_t i = 0; i < count; i++) {
            if (taken[i] == quota[i])
                continue;
            if (next < count) {
                uint64_t due = (uint64_t)taken[i] * m[next].weight;
                uint64_t best = (uint64_t)taken[next] * m[i].weight;

                if (due > best || (due == best && m[i].weight <= m[next].weight))
                    continue;
            }
            next = i;
        }
        assert_true(next < count);
        slot = m[next].offset;
        while (used[slot])
            slot = (slot + m[next].skip) % slots;
        used[slot] = true;
        owner[slot] = m[next].id;
        taken[next]++;
    }
    free(used);
    free(taken);
    free(quota);
}

static void test_equals_the_model(void **state)
{
    static const uint32_t sizes[] = {7, 11, 13, 101, 251, 1021};
    static const uint32_t weights[] = {1, 1, 1, 2, 3, 7, 100, 65535};

    (void)state;
    for (uint64_t round = 0; round < 600; round++) {
        uint64_t random = round + 1;
        uint32_t slots = sizes[next_random(&random) % 6];
        uint32_t count = 1 + next_random(&random) % (slots < 60 ? slots : 60);
        bool equal = next_random(&random) % 3 == 0;
        struct hb_maglev_member members[64];
        uint16_t built[1021], expected[1021];

        for (uint32_t i = 0; i < count; i++)
            members[i] = (struct hb_maglev_member){
                .offset = next_random(&random) % slots,
                .skip = 1 + next_random(&random) % (slots - 1),
                .weight = equal ? 5 : weights[next_random(&random) % 8],
                .id = (uint16_t)(i + 1),
            };
        model_fill(members, count, slots, expected);
        assert_int_equal(hb_maglev_fill(members, count, slots, built), HB_TABLE_OK);
        assert_memory_equal(built, expected, slots * sizeof(*built));
    }
}

/* BL-58: the order of the input changes nothing; neither do ids. */
static void test_bl58_order_of_members(void **state)
{
    static const uint32_t sizes[] = {251, 1021, 65537};
    static const uint32_t mixed[] = {1, 2, 3, 1, 1, 10, 1, 2, 1, 5};

    (void)state;
    for (int size = 0; size < 3; size++) {
        for (int weighted = 0; weighted < 2; weighted++) {
            struct pool pool = make_pool(10);
            uint16_t *expected = make_table(sizes[size]), *built = make_table(sizes[size]);
            uint64_t random = 7;

            for (int i = 0; weighted && i < 10; i++)
                pool.members[i].weight = mixed[i];
            assert_int_equal(build_maglev(pool.members, 10, sizes[size], SEED, expected), 0);
            for (int round = 0; round < 101; round++) {
                if (round == 0)
                    reverse_pool(&pool);
                else
                    shuffle_pool(&pool, &random);
                assert_int_equal(build_maglev(pool.members, 10, sizes[size], SEED, built), 0);
                assert_memory_equal(built, expected, sizes[size] * sizeof(*built));
            }
            free(built);
            free(expected);
            free_pool(&pool);
        }
    }
}

/* BL-58, on the edge of what the fast sort looks at: identities that share a long beginning, and
 * one that is the beginning of another. */
static void test_bl58_order_of_similar_identities(void **state)
{
    const char *names[] = {"2001:db8:0:b::1",        "2001:db8:0:b::11",
                           "2001:db8:0:b::1111:1",   "2001:db8:0:b::1111:1111:1",
                           "2001:db8:0:b::1111:11",  "2001:db8:0:b::1111:1111:2",
                           "2001:db8:0:b::1111:111", "2001:db8:0:b:"};
    struct hb_table_member members[8];
    uint16_t expected[251], built[251];

    (void)state;
    for (uint16_t i = 0; i < 8; i++)
        members[i] = (struct hb_table_member){.identity = names[i], .weight = 1, .id = i};
    assert_int_equal(build_maglev(members, 8, 251, SEED, expected), HB_TABLE_OK);
    for (int rotation = 1; rotation < 8; rotation++) {
        struct hb_table_member first = members[0];

        memmove(members, members + 1, 7 * sizeof(first));
        members[7] = first;
        assert_int_equal(build_maglev(members, 8, 251, SEED, built), HB_TABLE_OK);
        assert_memory_equal(built, expected, sizeof(built));
    }
}

static uint32_t count_owned(const uint16_t *owner, uint32_t slots, uint16_t id)
{
    uint32_t owned = 0;

    for (uint32_t slot = 0; slot < slots; slot++)
        owned += owner[slot] == id;
    return owned;
}

struct removal {
    uint32_t count, slots, step;
    uint32_t bound; /* slots of others that may move, per removal */
    bool mixed;     /* weights 1 to 4 instead of 1 */
};

/* BL-59: a removal moves what it must and a small remainder; adding back restores every bit. */
static void test_bl59_removal(void **state)
{
    static const struct removal rows[] = {
        {10, 251, 1, 30, false},     {10, 1021, 1, 60, false},       {10, 65537, 1, 400, false},
        {100, 65537, 7, 700, false}, {1000, 65537, 97, 1200, false}, {100, 65537, 1, 1600, true},
    };

    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        const struct removal *row = &rows[r];
        struct pool pool = make_pool(row->count);
        uint16_t *before = make_table(row->slots), *after = make_table(row->slots);
        uint32_t worst = 0, ideal = 0;
        uint64_t moved = 0, must = 0, removals = 0;

        for (uint32_t i = 0; row->mixed && i < row->count; i++)
            pool.members[i].weight = 1 + i % 4;
        assert_int_equal(build_maglev(pool.members, row->count, row->slots, SEED, before), 0);
        for (uint32_t gone = 0; gone < row->count; gone += row->step) {
            uint16_t id = pool.members[gone].id;
            uint32_t weight = pool.members[gone].weight;
            struct hb_table_change change;

            pool.members[gone].weight = 0;
            assert_int_equal(build_maglev(pool.members, row->count, row->slots, SEED, after), 0);
            change = hb_table_compare(before, after, row->slots);
            ideal = count_owned(before, row->slots, id);
            assert_int_equal(count_owned(after, row->slots, id), 0);
            assert_int_equal(change.moved - change.collateral, ideal);
            assert_in_range(change.collateral, 0, row->bound);
            worst = change.collateral > worst ? change.collateral : worst;
            moved += change.moved;
            must += ideal;
            removals++;
            pool.members[gone].weight = weight;
            assert_int_equal(build_maglev(pool.members, row->count, row->slots, SEED, after), 0);
            assert_memory_equal(after, before, row->slots * sizeof(*after));
        }
        print_message("%u backends%s, %u slots: a removal moves %.1f slots, the ideal is %.1f; at "
                      "most %u of others (%.2f %%)\n",
                      row->count, row->mixed ? " of weights 1 to 4" : "", row->slots,
                      (double)moved / (double)removals, (double)must / (double)removals, worst,
                      100.0 * worst / row->slots);
        free(after);
        free(before);
        free_pool(&pool);
    }
}

/* BL-59, weight 1 to 2 and back. */
static void test_bl59_weight_and_back(void **state)
{
    struct pool pool = make_pool(100);
    uint16_t *before = make_table(65537), *after = make_table(65537);
    struct hb_table_change change;

    (void)state;
    assert_int_equal(build_maglev(pool.members, 100, 65537, SEED, before), HB_TABLE_OK);
    pool.members[3].weight = 2;
    assert_int_equal(build_maglev(pool.members, 100, 65537, SEED, after), HB_TABLE_OK);
    change = hb_table_compare(before, after, 65537);
    print_message("weight 1 to 2 of one in 100: %u slots moved, the ideal is %u\n", change.moved,
                  count_owned(after, 65537, pool.members[3].id) -
                      count_owned(before, 65537, pool.members[3].id));
    assert_in_range(change.moved, 600, 1400);
    pool.members[3].weight = 1;
    assert_int_equal(build_maglev(pool.members, 100, 65537, SEED, after), HB_TABLE_OK);
    assert_memory_equal(after, before, 65537 * sizeof(*after));
    free(after);
    free(before);
    free_pool(&pool);
}

/* BL-60: sizes that are not prime or out of range start no build, and no size makes one hang. */
static void test_bl60_sizes(void **state)
{
    static const uint32_t bad[] = {0,   1,     2,     3,          4,          5,       6,      100,
                                   256, 65536, 65538, 2147483647, 2147483648, 5000012, 5000077};
    struct pool pool = make_pool(5);
    uint16_t owner[7];

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(build_maglev(pool.members, 5, bad[i], SEED, owner),
                         HB_TABLE_SIZE_NOT_PRIME);
    assert_int_equal(build_maglev(pool.members, 5, 4294967291u, SEED, owner),
                     HB_TABLE_SIZE_NOT_PRIME);
    assert_int_equal(build_maglev(pool.members, 5, 7, SEED, owner), HB_TABLE_OK);
    free_pool(&pool);
}

static void test_bl60_fill_ends_for_composite_sizes(void **state)
{
    const struct hb_maglev_member even[] = {
        {.offset = 0, .skip = 2, .weight = 1, .id = 1},
        {.offset = 2, .skip = 4, .weight = 1, .id = 2},
    };
    static const uint32_t sizes[] = {100, 256, 65536};
    uint16_t *owner = make_table(65536);

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(hb_maglev_fill(even, 2, sizes[i], owner), HB_TABLE_SIZE_NOT_PRIME);
    free(owner);
}

/* BL-61: from one slot a backend to too few slots. */
static void test_bl61_capacity(void **state)
{
    static const struct {
        uint32_t slots, count;
        enum hb_table_error expected;
    } rows[] = {
        {251, 250, HB_TABLE_OK},
        {251, 251, HB_TABLE_OK},
        {251, 252, HB_TABLE_SIZE_TOO_SMALL},
        {251, 1000, HB_TABLE_SIZE_TOO_SMALL},
        {65537, 5000, HB_TABLE_OK},
        {65537, 65535, HB_TABLE_OK},
        {65537, 65538, HB_TABLE_SIZE_TOO_SMALL},
    };

    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct pool pool = make_pool(rows[r].count);
        uint16_t *owner = make_table(rows[r].slots);
        uint32_t *owned = calloc(65536, sizeof(*owned));

        assert_int_equal(build_maglev(pool.members, rows[r].count, rows[r].slots, SEED, owner),
                         rows[r].expected);
        for (uint32_t slot = 0; rows[r].expected == HB_TABLE_OK && slot < rows[r].slots; slot++)
            owned[owner[slot]]++;
        for (uint32_t i = 0; rows[r].expected == HB_TABLE_OK && i < rows[r].count; i++)
            assert_in_range(owned[pool.members[i].id], rows[r].slots / rows[r].count,
                            rows[r].slots / rows[r].count + 1);
        free(owned);
        free(owner);
        free_pool(&pool);
    }
}

/* BL-61: weights so far apart that a part is below one slot. */
static void test_bl61_a_weight_always_has_a_slot(void **state)
{
    struct pool pool = make_pool(101);
    uint16_t *owner = make_table(65537);

    (void)state;
    pool.members[0].weight = 65535;
    assert_int_equal(build_maglev(pool.members, 2, 65537, SEED, owner), HB_TABLE_OK);
    assert_int_equal(count_owned(owner, 65537, pool.members[1].id), 1);
    assert_int_equal(build_maglev(pool.members, 2, 7, SEED, owner), HB_TABLE_OK);
    assert_int_equal(count_owned(owner, 7, pool.members[1].id), 1);
    assert_int_equal(count_owned(owner, 7, pool.members[0].id), 6);
    /* One heavy, a hundred light ones, and just as many slots. */
    assert_int_equal(build_maglev(pool.members, 101, 101, SEED, owner), HB_TABLE_OK);
    for (int i = 0; i < 101; i++)
        assert_int_equal(count_owned(owner, 101, pool.members[i].id), 1);
    assert_int_equal(build_maglev(pool.members, 101, 251, SEED, owner), HB_TABLE_OK);
    assert_int_equal(count_owned(owner, 251, pool.members[0].id), 151);
    free(owner);
    free_pool(&pool);
}

/* Every share is exact to one slot, whatever the mixture; sums of weights above M included. */
static void test_shares(void **state)
{
    static const uint32_t mixtures[][4] = {
        {1, 1, 1, 1}, {1, 2, 3, 4}, {100, 100, 1, 7}, {65535, 65535, 60000, 1000}, {50, 50, 1, 1}};
    uint16_t *owner = make_table(65537);

    (void)state;
    for (size_t mixture = 0; mixture < sizeof(mixtures) / sizeof(mixtures[0]); mixture++) {
        struct pool pool = make_pool(100);
        uint64_t weights = 0;
        double worst = 0;

        for (int i = 0; i < 100; i++)
            weights += pool.members[i].weight = mixtures[mixture][i % 4];
        assert_int_equal(build_maglev(pool.members, 100, 65537, SEED, owner), HB_TABLE_OK);
        for (int i = 0; i < 100; i++) {
            double exact = 65537.0 * pool.members[i].weight / (double)weights;
            double owned = count_owned(owner, 65537, pool.members[i].id);
            double off = owned > exact ? owned - exact : exact - owned;

            assert_true(off < 1.0);
            if (exact >= 100)
                assert_true(off / exact < 0.01);
            worst = off / exact > worst ? off / exact : worst;
        }
        print_message("100 backends, weights %u %u %u %u: no share is off by more than %.3f %%\n",
                      mixtures[mixture][0], mixtures[mixture][1], mixtures[mixture][2],
                      mixtures[mixture][3], 100 * worst);
        free_pool(&pool);
    }
    free(owner);
}

/* BL-62: values that another machine, compiler or release must reproduce. */
static void test_bl62_pinned(void **state)
{
    struct pool pool = make_pool(10);
    uint16_t *owner = make_table(65537);
    uint8_t digest[HB_DIGEST_SIZE];
    char text[2 * HB_DIGEST_SIZE + 1];

    (void)state;
    assert_int_equal(build_maglev(pool.members, 10, 65537, SEED, owner), HB_TABLE_OK);
    hb_table_owners_digest(owner, 65537, pool.members, 10, digest);
    assert_string_equal(print_digest(digest, text), "69970920a21391ebbc51b31fad9e4bad");
    pool.members[0].weight = 3;
    pool.members[1].weight = 0;
    pool.members[2].weight = 65535;
    assert_int_equal(build_maglev(pool.members, 10, 1021, SEED + 1, owner), HB_TABLE_OK);
    hb_table_owners_digest(owner, 1021, pool.members, 10, digest);
    assert_string_equal(print_digest(digest, text), "91f675fc03d95fb57f497bea0cad5dd1");
    free(owner);
    free_pool(&pool);
}

static void build_and_check(struct pool *pool, uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t weight[3] = {a, b, c};
    uint32_t weights = a + b + c, kept = 0;
    struct hb_table_member fresh[3];
    uint16_t edited[1021], scratch[1021];

    for (int i = 0; i < 3; i++) {
        pool->members[i].weight = weight[i];
        if (weight[i] > 0)
            fresh[kept++] = pool->members[i];
    }
    assert_int_equal(build_maglev(pool->members, 3, 1021, SEED, edited), HB_TABLE_OK);
    assert_int_equal(build_maglev(fresh, kept, 1021, SEED, scratch), HB_TABLE_OK);
    assert_memory_equal(edited, scratch, sizeof(edited));
    for (int i = 0; i < 3; i++) {
        uint32_t owned = count_owned(edited, 1021, pool->members[i].id);

        assert_in_range(owned, 1021 * weight[i] / weights, 1021 * weight[i] / weights + 1);
    }
}

/* BL-64: after each edit the table is the one that a fresh start would build. */
static void test_bl64_weight_edits(void **state)
{
    struct pool pool = make_pool(3);

    (void)state;
    build_and_check(&pool, 100, 100, 100);
    build_and_check(&pool, 100, 100, 1);
    build_and_check(&pool, 50, 50, 1);
    build_and_check(&pool, 50, 50, 0);
    build_and_check(&pool, 3, 7, 0);
    build_and_check(&pool, 100, 100, 100);
    free_pool(&pool);
}

/* BL-66: weight 0 gets nothing; nothing but weight 0 is an error, not a division by zero. */
static void test_bl66_weight_zero(void **state)
{
    struct pool pool = make_pool(2);
    uint16_t owner[251];

    (void)state;
    pool.members[1].weight = 0;
    assert_int_equal(build_maglev(pool.members, 2, 251, SEED, owner), HB_TABLE_OK);
    assert_int_equal(count_owned(owner, 251, pool.members[0].id), 251);
    pool.members[0].weight = 0;
    assert_int_equal(build_maglev(pool.members, 2, 251, SEED, owner), HB_TABLE_NO_MEMBERS);
    assert_int_equal(build_maglev(pool.members, 0, 251, SEED, owner), HB_TABLE_NO_MEMBERS);
    free_pool(&pool);
}

static void test_duplicates_are_refused(void **state)
{
    struct hb_table_member members[] = {{.identity = "198.51.100.11", .weight = 1, .id = 1},
                                        {.identity = "198.51.100.12", .weight = 1, .id = 2},
                                        {.identity = "198.51.100.11", .weight = 9, .id = 3}};
    uint16_t owner[251];

    (void)state;
    assert_int_equal(build_maglev(members, 3, 251, SEED, owner), HB_TABLE_DUPLICATE);
}

static void test_seed_matters(void **state)
{
    struct pool pool = make_pool(10);
    uint16_t *one = make_table(65537), *other = make_table(65537);

    (void)state;
    assert_int_equal(build_maglev(pool.members, 10, 65537, SEED, one), HB_TABLE_OK);
    assert_int_equal(build_maglev(pool.members, 10, 65537, SEED + 1, other), HB_TABLE_OK);
    /* Two unrelated tables of ten backends agree on a tenth of their slots. */
    assert_in_range(hb_table_compare(one, other, 65537).moved, 58000, 60000);
    free(other);
    free(one);
    free_pool(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permutations),
        cmocka_unit_test(test_paper_example),
        cmocka_unit_test(test_paper_example_with_equal_weights),
        cmocka_unit_test(test_fill_refuses),
        cmocka_unit_test(test_equals_the_model),
        cmocka_unit_test(test_bl58_order_of_members),
        cmocka_unit_test(test_bl58_order_of_similar_identities),
        cmocka_unit_test(test_bl59_removal),
        cmocka_unit_test(test_bl59_weight_and_back),
        cmocka_unit_test(test_bl60_sizes),
        cmocka_unit_test(test_bl60_fill_ends_for_composite_sizes),
        cmocka_unit_test(test_bl61_capacity),
        cmocka_unit_test(test_bl61_a_weight_always_has_a_slot),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_bl62_pinned),
        cmocka_unit_test(test_bl64_weight_edits),
        cmocka_unit_test(test_bl66_weight_zero),
        cmocka_unit_test(test_duplicates_are_refused),
        cmocka_unit_test(test_seed_matters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
