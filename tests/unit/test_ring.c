/* SPDX-License-Identifier: BSD-3-Clause */
/* Hash rings: their edges by hand, what joins and leaves say against what they do, the points of
 * libketama, and how slots of a live table lie on the circle. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "hashing/ketama.h"
#include "table_fixture.h"

#define CASES 300

static struct hb_ring_map *make_ring(const struct hb_ring_token *tokens, uint32_t count,
                                     uint64_t space)
{
    struct hb_ring_map *ring;

    assert_int_equal(hb_ring_from_tokens(tokens, count, space, &ring), 0);
    return ring;
}

static const char *owner_of(const struct hb_ring_map *ring, uint64_t position)
{
    return ring->names[hb_ring_owner(ring, position)];
}

static void test_refused_tokens(void **state)
{
    static const struct hb_ring_token twice[] = {{"a", 3}, {"b", 3}, {"a", 3}};
    static const struct hb_ring_token outside[] = {{"a", 3}, {"b", 10}};
    struct hb_ring_map *ring = (struct hb_ring_map *)1;

    (void)state;
    assert_int_equal(hb_ring_from_tokens(twice, 3, 10, &ring), -EEXIST);
    assert_null(ring);
    assert_int_equal(hb_ring_from_tokens(outside, 2, 10, &ring), -EINVAL);
    assert_int_equal(hb_ring_from_tokens(outside, 0, 10, &ring), -EINVAL);
    assert_int_equal(hb_ring_from_tokens(outside, 1, 0, &ring), -EINVAL);
    assert_int_equal(hb_ring_from_tokens(outside, 1, HB_RING_SPACE + 1, &ring), -EINVAL);
    assert_int_equal(hb_ring_from_tokens(outside, 2, 11, &ring), 0);
    hb_ring_free(ring);
    hb_ring_free(NULL);
}

/* A hash that equals a token is the token's; one after the last wraps to the first. */
static void test_edges(void **state)
{
    static const struct hb_ring_token tokens[] = {{"z", UINT32_MAX - 1}, {"y", 0}, {"x", 77}};
    struct hb_ring_map *ring = make_ring(tokens, 3, HB_RING_SPACE);
    struct hb_ring_interval interval;
    char text[HB_RING_INTERVAL_TEXT];

    (void)state;
    assert_string_equal(ring->names[0], "z"); /* members in the order given */
    assert_string_equal(ring->names[1], "y");
    assert_string_equal(ring->names[2], "x");
    assert_int_equal(hb_ring_member(ring, "x"), 2);
    assert_int_equal(hb_ring_member(ring, "X"), -1);
    assert_string_equal(owner_of(ring, 0), "y");
    assert_string_equal(owner_of(ring, 1), "x");
    assert_string_equal(owner_of(ring, 77), "x");
    assert_string_equal(owner_of(ring, 78), "z");
    assert_string_equal(owner_of(ring, UINT32_MAX - 1), "z");
    assert_string_equal(owner_of(ring, UINT32_MAX), "y");
    interval = hb_ring_join(ring, "w", UINT32_MAX); /* behind the last token */
    assert_string_equal(hb_ring_print_interval(&interval, text), "(4294967294, 4294967295]");
    assert_string_equal(ring->names[interval.from], "y");
    interval = hb_ring_join(ring, "w", 50); /* behind the first */
    assert_string_equal(hb_ring_print_interval(&interval, text), "(0, 50]");
    assert_string_equal(ring->names[interval.from], "x");
    hb_ring_free(ring);
    ring = make_ring(tokens, 1, HB_RING_SPACE); /* everything is z's */
    assert_string_equal(owner_of(ring, 0), "z");
    assert_string_equal(owner_of(ring, UINT32_MAX), "z");
    hb_ring_free(ring);
}

/* Equal tokens: the name that comes first has the interval, whatever the order given. */
static void test_equal_tokens(void **state)
{
    static const struct hb_ring_token tokens[] = {{"b", 50}, {"a", 50}, {"c", 50}, {"d", 80}};
    struct hb_ring_map *ring = make_ring(tokens, 4, 100);
    struct hb_ring_interval interval;
    uint32_t heir, members[4];
    char text[HB_RING_INTERVAL_TEXT];

    (void)state;
    assert_string_equal(owner_of(ring, 50), "a");
    assert_string_equal(owner_of(ring, 90), "a");
    assert_string_equal(owner_of(ring, 51), "d");
    assert_int_equal(hb_ring_successors(ring, 20, 4, members), 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(ring->names[members[i]][0], 'a' + i);
    interval = hb_ring_join(ring, "aa", 50);
    assert_true(interval.empty);
    assert_string_equal(hb_ring_print_interval(&interval, text), "nothing");
    interval = hb_ring_join(ring, "A", 50);
    assert_false(interval.empty);
    assert_string_equal(hb_ring_print_interval(&interval, text), "(80, 50]");
    assert_string_equal(ring->names[interval.from], "a");
    assert_true(hb_ring_join(ring, "a", 40).empty); /* its own already */
    interval = hb_ring_leave(ring, 0, &heir);       /* a: b has the same place */
    assert_false(interval.empty);
    assert_string_equal(ring->names[heir], "b");
    assert_true(hb_ring_leave(ring, 1, &heir).empty); /* b has nothing */
    hb_ring_free(ring);
    ring = make_ring(tokens, 1, 100);
    assert_true(hb_ring_leave(ring, 0, &heir).empty); /* nobody else is there */
    hb_ring_free(ring);
}

static bool is_inside(const struct hb_ring_interval *interval, uint64_t position)
{
    if (interval->empty)
        return false;
    if (interval->after < interval->to)
        return position > interval->after && position <= interval->to;
    return position > interval->after || position <= interval->to;
}

/* Random tokens of a to f in a small space, no name twice at a place. Returns how many. */
static uint32_t make_random_tokens(struct hb_ring_token *tokens, uint64_t *random, uint64_t space)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    uint32_t want = 1 + next_random(random) % 12, count = 0;

    for (uint32_t i = 0; i < want; i++) {
        struct hb_ring_token token = {names[next_random(random) % 6], next_random(random) % space};
        bool there = false;

        for (uint32_t k = 0; k < count; k++)
            there |= tokens[k].position == token.position && tokens[k].name == token.name;
        if (!there)
            tokens[count++] = token;
    }
    return count;
}

/* What a join is said to move is what differs between the rings without and with it. */
static void test_join_is_what_it_says(void **state)
{
    uint64_t random = 21;
    int joined = 0;

    (void)state;
    for (int round = 0; round < CASES; round++) {
        struct hb_ring_token tokens[13];
        uint32_t count = make_random_tokens(tokens, &random, 40);
        struct hb_ring_map *before = make_ring(tokens, count, 40), *after;
        struct hb_ring_interval interval;

        tokens[count] = (struct hb_ring_token){round % 2 ? "A" : "g", next_random(&random) % 40};
        interval = hb_ring_join(before, tokens[count].name, tokens[count].position);
        after = make_ring(tokens, count + 1, 40);
        for (uint64_t position = 0; position < 40; position++) {
            const char *old = owner_of(before, position), *new = owner_of(after, position);

            if (is_inside(&interval, position)) {
                assert_string_equal(new, tokens[count].name);
                assert_string_equal(old, before->names[interval.from]);
                joined++;
            } else {
                assert_string_equal(new, old);
            }
        }
        hb_ring_free(after);
        hb_ring_free(before);
    }
    assert_true(joined > CASES);
}

/* The same for a member that leaves with all its tokens. */
static void test_leave_is_what_it_says(void **state)
{
    uint64_t random = 22;
    int inherited = 0;

    (void)state;
    for (int round = 0; round < CASES; round++) {
        struct hb_ring_token tokens[12], rest[12];
        uint32_t count = make_random_tokens(tokens, &random, 40), left = 0;
        struct hb_ring_map *before = make_ring(tokens, count, 40), *after;

        for (uint32_t i = 0; i < count; i++) {
            if (strcmp(tokens[i].name, tokens[0].name) != 0)
                rest[left++] = tokens[i];
        }
        if (left == 0) {
            hb_ring_free(before);
            continue;
        }
        after = make_ring(rest, left, 40);
        for (uint64_t position = 0; position < 40; position++) {
            uint32_t point = hb_ring_find(before, position), heir;
            const char *old = owner_of(before, position), *new = owner_of(after, position);
            struct hb_ring_interval interval = hb_ring_leave(before, point, &heir);

            if (strcmp(old, tokens[0].name) != 0) {
                assert_string_equal(new, old);
                continue;
            }
            assert_true(is_inside(&interval, position));
            assert_string_equal(new, before->names[heir]);
            inherited++;
        }
        hb_ring_free(after);
        hb_ring_free(before);
    }
    assert_true(inherited > CASES);
}

/* Successors never repeat, start with the owner, and are those who own when the ones before are
 * gone. */
static void test_successors(void **state)
{
    uint64_t random = 23;

    (void)state;
    for (int round = 0; round < CASES; round++) {
        struct hb_ring_token tokens[12];
        uint32_t count = make_random_tokens(tokens, &random, 40), members[6], found;
        uint64_t position = next_random(&random) % 40;
        struct hb_ring_map *ring = make_ring(tokens, count, 40);

        found = hb_ring_successors(ring, position, 6, members);
        assert_int_equal(found, ring->members_count);
        assert_int_equal(hb_ring_successors(ring, position, 1, members), 1);
        for (uint32_t i = 0; i < found; i++) {
            struct hb_ring_map *rest = make_ring(tokens, count, 40);
            uint32_t kept = 0;

            assert_string_equal(owner_of(rest, position), ring->names[members[i]]);
            hb_ring_free(rest);
            for (uint32_t t = 0; t < count; t++) {
                if (strcmp(tokens[t].name, ring->names[members[i]]) != 0)
                    tokens[kept++] = tokens[t];
            }
            assert_true(kept < count);
            count = kept;
        }
        assert_int_equal(count, 0);
        hb_ring_free(ring);
    }
}

/* A ring of members has one token for each unit of weight and virtual node, sorted. */
static void test_points(void **state)
{
    struct pool pool = make_pool(5);
    struct hb_table_request request = {.members = pool.members, .count = 5};
    struct hb_ring_map *ring;
    uint32_t counts[5] = {0};

    (void)state;
    for (uint32_t i = 0; i < 5; i++)
        pool.members[i].weight = i;
    assert_int_equal(hb_ring_from_members(&request, hb_ring_hash_h32, &ring), HB_TABLE_OK);
    assert_int_equal(ring->points_count, 10 * HB_RING_VIRTUAL_NODES);
    for (uint32_t i = 0; i < ring->points_count; i++) {
        counts[ring->points[i].member]++;
        assert_true(i == 0 || ring->points[i - 1].position <= ring->points[i].position);
    }
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(counts[i], i * HB_RING_VIRTUAL_NODES);
    assert_in_range(hb_ring_memory(ring), 8 * ring->points_count, 8 * ring->points_count + 500);
    hb_ring_free(ring);
    request.options.virtual_nodes = HB_RING_POINTS_MAX / 10 + 1;
    assert_int_equal(hb_ring_from_members(&request, hb_ring_hash_h32, &ring),
                     HB_TABLE_TOO_MANY_POINTS);
    assert_null(ring);
    free_pool(&pool);
}

static void test_too_many_points(void **state)
{
    struct hb_table_member members[257];
    char names[257][16], text[HB_TABLE_EXPLANATION];
    struct hb_table_request request = {.members = members, .count = 2, .slots = 1021};
    uint16_t owner[1021];

    (void)state;
    for (int i = 0; i < 257; i++) {
        snprintf(names[i], sizeof(names[i]), "10.0.%d.1", i);
        members[i] = (struct hb_table_member){.identity = names[i], .weight = 65535};
    }
    assert_int_equal(hb_ring.build(&request, owner), HB_TABLE_TOO_MANY_POINTS);
    assert_string_equal(hb_table_explain(&request, HB_TABLE_TOO_MANY_POINTS, text, sizeof(text)),
                        "the ring would have more than 16777216 points; set virtual_nodes to 128 "
                        "or less, or lower all weights");
    request.options.virtual_nodes = 128;
    request.count = 257;
    assert_int_equal(hb_ring.build(&request, owner), HB_TABLE_TOO_MANY_POINTS);
    assert_string_equal(hb_table_explain(&request, HB_TABLE_TOO_MANY_POINTS, text, sizeof(text)),
                        "the weights add up to 16842495, but a ring has at most 16777216 points; "
                        "lower them");
    request.options.ketama = true; /* which has its own way with weights */
    assert_int_equal(hb_ring.build(&request, owner), HB_TABLE_OK);
}

/* Expected: computed with another program's MD5 and floats of 32 bits. 61 equal servers are the
 * smallest number for which float rounds 40 down to 39. */
static void test_ketama_hashes(void **state)
{
    (void)state;
    assert_int_equal(hb_ketama_hash("", 0), 3649838548);
    assert_int_equal(hb_ketama_hash("user:42", 7), 417323606);
    for (uint32_t members = 1; members < 61; members++)
        assert_int_equal(hb_ketama_hashes(1, members, members), 40);
    assert_int_equal(hb_ketama_hashes(1, 61, 61), 39);
    assert_int_equal(hb_ketama_hashes(7, 7 * 62, 62), 40);
    assert_int_equal(hb_ketama_hashes(1, 122, 122), 39);
    assert_int_equal(hb_ketama_hashes(3, 10, 4), 48);
    assert_int_equal(hb_ketama_hashes(65535, 65536, 2), 79);
    assert_int_equal(hb_ketama_hashes(1, 65536, 2), 0);
    for (uint32_t weight = 1; weight <= 5; weight++)
        assert_int_equal(hb_ketama_hashes(weight, 15, 5), 40 * weight / 3);
}

static void test_ketama_ring(void **state)
{
    static const struct hb_table_member members[] = {
        {.identity = "10.0.1.1:11211", .weight = 600},
        {.identity = "10.0.1.2:11211", .weight = 300},
        {.identity = "10.0.1.3:11211", .weight = 200},
        {.identity = "10.0.1.4:11211", .weight = 350},
    };
    static const uint32_t expected_counts[4] = {4398, 1950, 1016, 2636};
    static const char first_owners[] = "114142141143213331414411";
    const struct hb_table_request request = {
        .members = members, .count = 4, .options = {.ketama = true}};
    struct hb_ring_map *ring;
    uint32_t counts[4] = {0};

    (void)state;
    assert_int_equal(hb_ring_from_members(&request, hb_ring_hash_h32, &ring), HB_TABLE_OK);
    assert_int_equal(ring->points_count, 636);
    assert_int_equal(ring->points[0].position, 4398564);
    assert_int_equal(ring->points[0].member, 3);
    assert_int_equal(ring->points[635].position, 4290013132);
    for (int i = 0; i < 10000; i++) {
        char key[16];
        int size = snprintf(key, sizeof(key), "key:%d", i);
        uint32_t owner = hb_ring_owner(ring, hb_ketama_hash(key, (size_t)size));

        counts[owner]++;
        if (i < 24)
            assert_int_equal(owner, first_owners[i] - '1');
    }
    assert_memory_equal(counts, expected_counts, sizeof(counts));
    hb_ring_free(ring);
}

/* Slots cover the circle evenly, each place once, and neighbours in the table are far apart. */
static void test_slot_positions(void **state)
{
    static const uint32_t sizes[] = {7, 251, 1021, 65537};

    (void)state;
    for (int i = 0; i < 4; i++) {
        uint32_t slots = sizes[i];
        uint64_t step = HB_RING_SPACE / slots;
        bool *taken = calloc(slots, sizeof(*taken));

        for (uint32_t slot = 0; slot < slots; slot++) {
            uint32_t position = hb_ring_slot_position(slot, slots);
            uint32_t next = hb_ring_slot_position((slot + 1) % slots, slots);
            uint32_t place = (uint32_t)((uint64_t)position * slots >> 32);

            assert_false(taken[place]);
            taken[place] = true;
            assert_in_range(position, place * (uint64_t)step + step / 2, (place + 1) * (step + 1));
            assert_in_range(next - position, HB_RING_SPACE / 4, HB_RING_SPACE / 4 * 3);
        }
        free(taken);
    }
}

/* The live table is the ring, read at the slots' positions. */
static void test_table_is_the_ring(void **state)
{
    uint64_t random = 24;

    (void)state;
    for (int round = 0; round < 50; round++) {
        struct pool pool = make_pool(1 + next_random(&random) % 30);
        struct hb_table_request request = {
            .members = pool.members,
            .count = pool.count,
            .slots = 1021,
            .seed = next_random(&random),
            .options = {.virtual_nodes = 1 + next_random(&random) % 50, .ketama = round % 5 == 0}};
        struct hb_ring_map *ring;
        uint16_t owner[1021];

        for (uint32_t i = 0; i < pool.count; i++)
            pool.members[i].weight = 1 + next_random(&random) % 4;
        assert_int_equal(hb_ring.build(&request, owner), HB_TABLE_OK);
        assert_int_equal(hb_ring_from_members(&request, hb_ring_hash_xxh3, &ring), HB_TABLE_OK);
        for (uint32_t slot = 0; slot < 1021; slot++) {
            uint32_t member = hb_ring_owner(ring, hb_ring_slot_position(slot, 1021));

            assert_int_equal(owner[slot], pool.members[member].id);
        }
        hb_ring_free(ring);
        free_pool(&pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_tokens),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_equal_tokens),
        cmocka_unit_test(test_join_is_what_it_says),
        cmocka_unit_test(test_leave_is_what_it_says),
        cmocka_unit_test(test_successors),
        cmocka_unit_test(test_points),
        cmocka_unit_test(test_too_many_points),
        cmocka_unit_test(test_ketama_hashes),
        cmocka_unit_test(test_ketama_ring),
        cmocka_unit_test(test_slot_positions),
        cmocka_unit_test(test_table_is_the_ring),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
