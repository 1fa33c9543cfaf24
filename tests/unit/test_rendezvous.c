/* SPDX-License-Identifier: BSD-3-Clause */
/* Rendezvous hashing: the fixed-point logarithm, the order of scores, owners by key, and tables by
 * draws. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "hashing/h32.h"
#include "hashing/member_order.h"
#include "hashing/rendezvous.h"
#include "table_fixture.h"

#define CASES 300
#define ONE   (UINT64_C(1) << HB_LOG2_BITS)

static uint64_t random_word(uint64_t *random)
{
    return (uint64_t)next_random(random) << 32 | next_random(random);
}

static void test_log_of_powers(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 64; bit++)
        assert_int_equal(hb_minus_log2(UINT64_C(1) << bit), (64 - bit) * ONE);
    assert_int_equal(hb_minus_log2(0), 64 * ONE);
    assert_int_equal(hb_minus_log2(UINT64_MAX), 1);
    /* 64 - log2(3 * 2^62) = 2 - 1.58496250072115618... */
    assert_int_equal(hb_minus_log2(UINT64_C(3) << 62), (uint64_t)(0.41503749927884382 * ONE) + 1);
}

/* Against the C library: off by less than two units and the library's own error. */
static void test_log_is_right(void **state)
{
    uint64_t random = 31;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint64_t u = random_word(&random) >> next_random(&random) % 60;
        double exact, got = (double)hb_minus_log2(u) / ONE;

        u |= u == 0;
        exact = 64 - log2((double)u);
        assert_true(got >= exact - 1e-13);
        assert_true(got < exact + 2.0 / ONE + 1e-13);
    }
}

/* Never larger for a larger number: also for close ones, where rounding would show. */
static void test_log_is_monotone(void **state)
{
    uint64_t random = 32;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint64_t u = random_word(&random) >> next_random(&random) % 60;
        uint64_t step = 1 + (random_word(&random) >> (1 + next_random(&random) % 63));

        if (u + step > u)
            assert_true(hb_minus_log2(u + step) <= hb_minus_log2(u));
        if (u > 0)
            assert_true(hb_minus_log2(u - 1) >= hb_minus_log2(u));
    }
}

static struct hb_rendezvous_claim make_claim(uint32_t weight, uint32_t member, uint64_t hash)
{
    return (struct hb_rendezvous_claim){weight, member, hash, hb_minus_log2(hash)};
}

/* A strict order: of any three different claims, one beats the other, and never in a circle. */
static void test_beats_is_an_order(void **state)
{
    static const uint32_t weights[] = {1, 2, 3, 65535};
    uint64_t random = 33;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct hb_rendezvous_claim c[3];
        bool ab, bc, ac;

        for (uint32_t n = 0; n < 3; n++) /* often equal or neighbouring hashes */
            c[n] = make_claim(weights[next_random(&random) % 4], n,
                              (UINT64_MAX - next_random(&random) % 3) << next_random(&random) % 64);
        ab = hb_rendezvous_beats(&c[0], &c[1]);
        bc = hb_rendezvous_beats(&c[1], &c[2]);
        ac = hb_rendezvous_beats(&c[0], &c[2]);
        assert_false(hb_rendezvous_beats(&c[0], &c[0]));
        assert_int_equal(hb_rendezvous_beats(&c[1], &c[0]), !ab);
        assert_int_equal(hb_rendezvous_beats(&c[2], &c[1]), !bc);
        if (ab == bc)
            assert_int_equal(ac, ab);
        for (int n = 0; n < 2; n++) { /* equal weights: the larger hash */
            if (c[n].weight == c[2].weight && c[n].hash != c[2].hash)
                assert_int_equal(hb_rendezvous_beats(&c[n], &c[2]), c[n].hash > c[2].hash);
        }
    }
}

/* A twice as heavy member needs a loss of less than twice the other's. */
static void test_weights_scale_scores(void **state)
{
    struct hb_rendezvous_claim one = make_claim(1, 0, UINT64_C(1) << 63); /* loss 1 */
    struct hb_rendezvous_claim two = make_claim(2, 1, UINT64_C(1) << 62); /* loss 2: equal scores */

    (void)state;
    assert_true(hb_rendezvous_beats(&one, &two)); /* the larger hash */
    assert_false(hb_rendezvous_beats(&two, &one));
    two = make_claim(2, 1, (UINT64_C(1) << 62) + (UINT64_C(1) << 30));
    assert_true(hb_rendezvous_beats(&two, &one));
    two = make_claim(2, 1, (UINT64_C(1) << 62) - (UINT64_C(1) << 30));
    assert_true(hb_rendezvous_beats(&one, &two));
    two = one;
    two.member = 5;
    assert_true(hb_rendezvous_beats(&one, &two)); /* the earlier name */
}

struct keyed_pool {
    struct pool pool;
    uint32_t *order;
};

static struct keyed_pool make_keyed_pool(uint32_t count)
{
    struct keyed_pool made = {.pool = make_pool(count)};

    made.order = calloc(count, sizeof(*made.order));
    assert_int_equal(hb_member_order(made.pool.members, count, made.order), HB_TABLE_OK);
    return made;
}

static void free_keyed_pool(struct keyed_pool *made)
{
    free(made->order);
    free_pool(&made->pool);
}

/* The owner is the one with the largest -w / ln(u), as the C library computes it. */
static void test_owner_is_the_best_score(void **state)
{
    static const uint32_t weights[] = {0, 1, 2, 5, 100, 65535};
    struct hb_key_source source = {1};
    uint64_t random = 34;

    (void)state;
    for (int round = 0; round < CASES; round++) {
        struct keyed_pool made = make_keyed_pool(2 + next_random(&random) % 30);
        uint32_t count = made.pool.count, ranked[32], best = 0, found;
        double score[32];
        char key[HB_KEY_TEXT];
        size_t size = hb_next_key(&source, key);

        for (uint32_t i = 0; i < count; i++) {
            struct hb_table_member *member = &made.pool.members[i];

            member->weight = weights[i == 0 ? 1 : next_random(&random) % 6];
            score[i] =
                hb_rendezvous_score(hb_h32_pair(key, size, member->identity), member->weight);
            best = score[i] > score[best] ? i : best;
        }
        assert_int_equal(hb_rendezvous_owner(made.pool.members, count, made.order, key, size),
                         best);
        found = hb_rendezvous_rank(made.pool.members, count, made.order, key, size, ranked);
        assert_int_equal(ranked[0], best);
        for (uint32_t i = 0; i < found; i++) {
            assert_true(made.pool.members[ranked[i]].weight > 0);
            assert_true(i == 0 || score[ranked[i - 1]] > score[ranked[i]]);
        }
        for (uint32_t i = 0; i < count; i++)
            found -= made.pool.members[i].weight > 0;
        assert_int_equal(found, 0);
        free_keyed_pool(&made);
    }
}

static void test_nobody_has_a_weight(void **state)
{
    struct keyed_pool made = make_keyed_pool(3);
    uint32_t ranked[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        made.pool.members[i].weight = 0;
    assert_int_equal(hb_rendezvous_owner(made.pool.members, 3, made.order, "k", 1), 3);
    assert_int_equal(hb_rendezvous_rank(made.pool.members, 3, made.order, "k", 1, ranked), 0);
    free_keyed_pool(&made);
}

/* When the owner of a slot leaves, the others inherit by their weights: that is what the draws must
 * have in common with a score for each pair. */
static void test_heirs_follow_weights(void **state)
{
    static const uint32_t weights[] = {4, 1, 2, 3};
    struct pool pool = make_pool(4);
    uint16_t *with = make_table(65537), *without = make_table(65537);
    struct hb_table_request request = {
        .members = pool.members, .count = 4, .slots = 65537, .seed = 5};
    uint32_t left = 0, heirs[5] = {0};

    (void)state;
    for (int i = 0; i < 4; i++)
        pool.members[i].weight = weights[i];
    assert_int_equal(hb_rendezvous.build(&request, with), HB_TABLE_OK);
    pool.members[0].weight = 0;
    assert_int_equal(hb_rendezvous.build(&request, without), HB_TABLE_OK);
    for (uint32_t slot = 0; slot < 65537; slot++) {
        if (with[slot] != pool.members[0].id) {
            assert_int_equal(without[slot], with[slot]);
            continue;
        }
        left++;
        heirs[without[slot]]++;
    }
    assert_true(fabs(left - 65537 * 0.4) < 6 * sqrt(65537 * 0.24));
    for (int i = 1; i < 4; i++) {
        double part = weights[i] / 6.0;

        assert_true(fabs(heirs[pool.members[i].id] - left * part) <
                    6 * sqrt(left * part * (1 - part)));
    }
    free(without);
    free(with);
    free_pool(&pool);
}

/* All weights times a number: the same table, for only their proportion counts. Clocks are compared
 * exactly, so not one slot differs. */
static void test_only_proportions_count(void **state)
{
    uint64_t random = 36;

    (void)state;
    for (int round = 0; round < 50; round++) {
        struct pool pool = make_pool(2 + next_random(&random) % 30);
        uint32_t factor = 2 + next_random(&random) % 5000;
        struct hb_table_request request = {
            .members = pool.members, .count = pool.count, .slots = 1021, .seed = random};
        uint16_t one[1021], other[1021];

        for (uint32_t i = 0; i < pool.count; i++)
            pool.members[i].weight = 1 + next_random(&random) % 13;
        assert_int_equal(hb_rendezvous.build(&request, one), HB_TABLE_OK);
        for (uint32_t i = 0; i < pool.count; i++)
            pool.members[i].weight *= factor;
        assert_int_equal(hb_rendezvous.build(&request, other), HB_TABLE_OK);
        assert_memory_equal(one, other, sizeof(one));
        free_pool(&pool);
    }
}

/* A large table and the heaviest weights beside the lightest. */
static void test_large_table(void **state)
{
    struct pool pool = make_pool(3);
    uint16_t *owner = make_table(655373);
    struct hb_table_request request = {
        .members = pool.members, .count = 3, .slots = 655373, .seed = 5};
    uint32_t slots[4] = {0};

    (void)state;
    pool.members[0].weight = 65535;
    pool.members[1].weight = 65535;
    pool.members[2].weight = 1;
    assert_int_equal(hb_rendezvous.build(&request, owner), HB_TABLE_OK);
    for (uint32_t slot = 0; slot < 655373; slot++)
        slots[owner[slot]]++;
    assert_in_range(slots[1], 325200, 330200); /* half, and six standard deviations */
    assert_in_range(slots[2], 325200, 330200);
    assert_in_range(slots[3], 0, 20); /* 5 */
    free(owner);
    free_pool(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_of_powers),
        cmocka_unit_test(test_log_is_right),
        cmocka_unit_test(test_log_is_monotone),
        cmocka_unit_test(test_beats_is_an_order),
        cmocka_unit_test(test_weights_scale_scores),
        cmocka_unit_test(test_owner_is_the_best_score),
        cmocka_unit_test(test_nobody_has_a_weight),
        cmocka_unit_test(test_heirs_follow_weights),
        cmocka_unit_test(test_only_proportions_count),
        cmocka_unit_test(test_large_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
