/* SPDX-License-Identifier: BSD-3-Clause */
/* The published figures of consistent hashing, exactly: the same hash, the same keys, the same
 * numbers of keys moved. They were computed by another program. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "hash_fixture.h"
#include "hashing/jump.h"
#include "hashing/ring.h"

static void test_h32(void **state)
{
    static const struct {
        const char *text;
        uint32_t hash;
    } rows[] = {
        {"", 2872998923},           {"a", 444641715},           {"S0#0", 3947687215},
        {"S0#1", 2208385398},       {"S4#99", 1518828340},      {"user:42", 599759890},
        {"user:42|S0", 1477688857}, {"user:42|S1", 3150605096}, {"user:42|S2", 3833641293},
        {"user:42|S3", 2425600809}, {"NodeA-1", 4076737608},    {"192.0.2.10", 270077131},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(hb_h32_text(rows[i].text), rows[i].hash);
    assert_int_equal(hb_h32_pair("user:42", 7, "S2"), 3833641293);
    assert_int_equal(hb_h32_pair("user:42 and more", 7, "S3"), 2425600809);
}

static void test_first_keys(void **state)
{
    static const char *const keys[] = {
        "user:631395207", "user:144321889", "user:752337801", "user:388273379",
        "user:339684707", "user:19686341",  "user:937942085", "user:513364028",
    };
    struct hb_key_source source = {HB_KEY_SEED};
    char key[HB_KEY_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        assert_int_equal(hb_next_key(&source, key), strlen(keys[i]));
        assert_string_equal(key, keys[i]);
    }
}

/* Grows `name` from `count` servers by one with 10,000 keys. */
static struct hb_key_moves grow(const char *name, uint32_t count, uint32_t virtual_nodes)
{
    const struct hb_hash_method *method = hb_hash_method_by_name(name);
    struct servers servers = make_servers(count + 1);
    struct hb_table_request before = servers.request, after;
    struct hb_key_moves moves;
    uint32_t *owners_before, *owners_after;

    before.options.virtual_nodes = virtual_nodes;
    after = before;
    before.count = count;
    owners_before = ask_owners(method, &before, 10000);
    owners_after = ask_owners(method, &after, 10000);
    assert_non_null(owners_before);
    assert_non_null(owners_after);
    assert_int_equal(hb_key_moves(&before, owners_before, &after, owners_after, 10000, &moves),
                     HB_TABLE_OK);
    free(owners_before);
    free(owners_after);
    free_servers(&servers);
    return moves;
}

static void test_grow_4_to_5(void **state)
{
    struct hb_key_moves moves = grow("modulo", 4, 0);

    (void)state;
    assert_int_equal(moves.moved, 8007);
    assert_int_equal(moves.to_new, 2014);
    assert_int_equal(moves.between_old, 5993);
    moves = grow("ring", 4, 100);
    assert_int_equal(moves.moved, 2195);
    assert_int_equal(moves.to_new, 2195);
    assert_int_equal(moves.between_old, 0);
}

static void test_jump_10_to_11(void **state)
{
    struct hb_key_moves moves = grow("jump", 10, 0);

    (void)state;
    assert_int_equal(moves.moved, 883);
    assert_int_equal(moves.to_new, 883);
    assert_int_equal(moves.between_old, 0);
}

static void test_ring_balance(void **state)
{
    static const struct {
        uint32_t nodes, min, max;
        double sd;
        uint32_t counts[10];
    } rows[] = {
        {1, 224, 24526, 8471.771, {18491, 224, 6338, 13471, 2360, 24526, 1720, 11790, 978, 20102}},
        {10,
         5376,
         14921,
         2665.446,
         {10415, 6806, 9928, 14921, 9636, 12639, 8436, 5376, 9538, 12305}},
        {100,
         8387,
         11381,
         842.814,
         {9890, 10034, 11381, 10141, 11061, 8946, 10087, 8387, 10433, 9640}},
        {1000,
         9394,
         10539,
         323.041,
         {10111, 10036, 10220, 9394, 9714, 10402, 10539, 9808, 9792, 9984}},
    };

    (void)state;
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        struct servers servers = make_servers(10);
        struct hb_share_figures figures;
        uint32_t counts[10] = {0};
        uint32_t *owners;

        servers.request.options.virtual_nodes = rows[row].nodes;
        owners = ask_owners(hb_hash_method_by_name("ring"), &servers.request, 100000);
        for (uint32_t i = 0; i < 100000; i++)
            counts[owners[i]]++;
        assert_memory_equal(counts, rows[row].counts, sizeof(counts));
        figures = hb_share_figures(counts, 10);
        assert_int_equal(figures.min, rows[row].min);
        assert_int_equal(figures.max, rows[row].max);
        assert_true(fabs(figures.sd - rows[row].sd) < 0.0006);
        assert_true(figures.mean == 10000.0);
        free(owners);
        free_servers(&servers);
    }
}

static void test_rendezvous(void **state)
{
    static const uint32_t expected[5] = {2031, 1959, 2014, 2046, 1950};
    const struct hb_hash_method *method = hb_hash_method_by_name("rendezvous");
    struct servers servers = make_servers(5);
    struct hb_table_member fewer[4];
    struct hb_table_request after = servers.request;
    struct hb_key_moves moves;
    uint32_t *before = ask_owners(method, &servers.request, 10000), *owners;
    uint32_t counts[5] = {0};

    (void)state;
    for (uint32_t i = 0; i < 10000; i++)
        counts[before[i]]++;
    assert_memory_equal(counts, expected, sizeof(counts));
    for (uint32_t i = 0; i < 4; i++)
        fewer[i] = servers.members[i < 2 ? i : i + 1];
    after.members = fewer;
    after.count = 4;
    owners = ask_owners(method, &after, 10000);
    assert_int_equal(hb_key_moves(&servers.request, before, &after, owners, 10000, &moves),
                     HB_TABLE_OK);
    assert_int_equal(moves.moved, 2014);
    assert_int_equal(moves.from_gone, 2014);
    assert_int_equal(moves.between_old, 0);
    assert_int_equal(moves.to_new, 0);
    free(owners);
    free(before);
    free_servers(&servers);
}

static void test_jump_values(void **state)
{
    static const struct {
        uint64_t key;
        uint32_t of_10, of_11, of_1000;
    } rows[] = {
        {0, 0, 0, 0},     {1, 6, 6, 549},           {42, 2, 2, 571},
        {256, 3, 3, 520}, {1000000007, 7, 10, 790}, {UINT64_MAX, 9, 10, 313},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(hb_jump_bucket(rows[i].key, 10), rows[i].of_10);
        assert_int_equal(hb_jump_bucket(rows[i].key, 11), rows[i].of_11);
        assert_int_equal(hb_jump_bucket(rows[i].key, 1000), rows[i].of_1000);
        assert_int_equal(hb_jump_bucket(rows[i].key, 1), 0);
    }
}

/* ---- small rings, worked by hand ---- */

static struct hb_ring_map *make_ring(const struct hb_ring_token *tokens, uint32_t count,
                                     uint64_t space)
{
    struct hb_ring_map *ring;

    assert_int_equal(hb_ring_from_tokens(tokens, count, space, &ring), 0);
    return ring;
}

static void assert_owner(const struct hb_ring_map *ring, uint64_t position, const char *name)
{
    assert_string_equal(ring->names[hb_ring_owner(ring, position)], name);
}

static void assert_join(const struct hb_ring_map *ring, struct hb_ring_token token,
                        const char *interval, const char *from)
{
    struct hb_ring_interval joined = hb_ring_join(ring, token.name, token.position);
    char text[HB_RING_INTERVAL_TEXT];

    assert_false(joined.empty);
    assert_string_equal(hb_ring_print_interval(&joined, text), interval);
    assert_string_equal(ring->names[joined.from], from);
}

static void test_ring_of_360(void **state)
{
    const struct hb_ring_token tokens[] = {{"A", 100}, {"B", 200}, {"C", 300}, {"D", 260}};
    struct hb_ring_map *ring = make_ring(tokens, 3, 360);

    (void)state;
    assert_owner(ring, 150, "B");
    assert_owner(ring, 250, "C");
    assert_owner(ring, 350, "A");
    assert_join(ring, tokens[3], "(200, 260]", "C");
    hb_ring_free(ring);
    ring = make_ring(tokens, 4, 360);
    assert_owner(ring, 150, "B");
    assert_owner(ring, 250, "D");
    assert_owner(ring, 350, "A");
    hb_ring_free(ring);
}

static void test_ring_of_1000(void **state)
{
    const struct hb_ring_token tokens[] = {{"n1", 100}, {"n2", 400}, {"n3", 700}, {"n4", 450}};
    struct hb_ring_map *ring = make_ring(tokens, 3, 1000);

    (void)state;
    assert_owner(ring, 50, "n1");
    assert_owner(ring, 200, "n2");
    assert_owner(ring, 410, "n3");
    assert_owner(ring, 500, "n3");
    assert_owner(ring, 800, "n1");
    assert_join(ring, tokens[3], "(400, 450]", "n3");
    hb_ring_free(ring);
    ring = make_ring(tokens, 4, 1000);
    assert_owner(ring, 50, "n1");
    assert_owner(ring, 200, "n2");
    assert_owner(ring, 410, "n4");
    assert_owner(ring, 500, "n3");
    assert_owner(ring, 800, "n1");
    hb_ring_free(ring);
}

static void test_ring_of_101(void **state)
{
    const struct hb_ring_token tokens[] = {{"a", 20}, {"b", 50}, {"c", 80}, {"d", 60}};
    struct hb_ring_map *before = make_ring(tokens, 3, 101), *after = make_ring(tokens, 4, 101);
    struct hb_ring_interval left;
    char text[HB_RING_INTERVAL_TEXT];
    uint32_t heir;

    (void)state;
    assert_join(before, tokens[3], "(50, 60]", "c");
    for (uint64_t position = 0; position < 101; position++) {
        bool changed = position >= 51 && position <= 60;

        assert_owner(after, position,
                     changed ? "d" : before->names[hb_ring_owner(before, position)]);
        if (changed)
            assert_owner(before, position, "c");
    }
    left = hb_ring_leave(after, hb_ring_find(after, 50), &heir); /* b */
    assert_string_equal(after->names[heir], "d");
    assert_string_equal(after->names[left.from], "b");
    assert_string_equal(hb_ring_print_interval(&left, text), "(20, 50]");
    hb_ring_free(after);
    hb_ring_free(before);
}

static void test_ring_with_virtual_nodes(void **state)
{
    const struct hb_ring_token tokens[] = {{"A", 105}, {"A", 930}, {"B", 290},
                                           {"B", 610}, {"C", 450}, {"C", 845}};
    struct hb_ring_map *ring = make_ring(tokens, 6, 1000);

    (void)state;
    assert_int_equal(ring->members_count, 3);
    assert_owner(ring, 105, "A");
    assert_owner(ring, 106, "B");
    assert_owner(ring, 451, "B");
    assert_owner(ring, 846, "A");
    assert_owner(ring, 931, "A");
    assert_owner(ring, 999, "A");
    assert_owner(ring, 0, "A");
    hb_ring_free(ring);
}

static void test_formulas(void **state)
{
    struct servers servers = make_servers(11);
    struct hb_table_request before = servers.request;
    double share;

    (void)state;
    before.count = 10;
    assert_int_equal(hb_minimum_moved(&before, &servers.request, &share), HB_TABLE_OK);
    assert_true(fabs(share - 1.0 / 11) < 1e-12);
    assert_int_equal(hb_minimum_moved(&servers.request, &before, &share), HB_TABLE_OK);
    assert_true(fabs(share - 1.0 / 11) < 1e-12);
    assert_int_equal(hb_ring_nodes_for(10, 50), 360); /* (N - 1) / (N * c^2) */
    assert_int_equal(hb_ring_nodes_for(2, 50), 200);
    assert_int_equal(hb_ring_nodes_for(10, 10), 9000);
    assert_int_equal(hb_ring_nodes_for(3, 70), 137); /* 136.05 */
    assert_int_equal(hb_ring_nodes_for(1, 50), 1);
    assert_int_equal(hb_ring_nodes_for(0, 50), 1);
    assert_int_equal(hb_ring_nodes_for(65535, 50), HB_RING_VIRTUAL_NODES);
    free_servers(&servers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_h32),
        cmocka_unit_test(test_first_keys),
        cmocka_unit_test(test_grow_4_to_5),
        cmocka_unit_test(test_jump_10_to_11),
        cmocka_unit_test(test_ring_balance),
        cmocka_unit_test(test_rendezvous),
        cmocka_unit_test(test_jump_values),
        cmocka_unit_test(test_ring_of_360),
        cmocka_unit_test(test_ring_of_1000),
        cmocka_unit_test(test_ring_of_101),
        cmocka_unit_test(test_ring_with_virtual_nodes),
        cmocka_unit_test(test_formulas),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
