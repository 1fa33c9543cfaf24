/* SPDX-License-Identifier: BSD-3-Clause */
/* Preference lists, and the methods behind one interface. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "hash_fixture.h"
#include "hashing/preference.h"

#define CASES      200
#define ALL(m)     (int m = 0; hb_hash_methods[m] != NULL; m++)
#define SERVER_MAX 40

static void *prepare(const struct hb_hash_method *method, const struct hb_table_request *request)
{
    enum hb_table_error error;
    void *state;

    error = method->prepare(request, &state);
    if (error != HB_TABLE_OK)
        fail_msg("%s: %s", method->name, hb_table_error_text(error));
    return state;
}

static void test_list_of_methods(void **state)
{
    (void)state;
    for
        ALL(m)
        {
            const struct hb_hash_method *method = hb_hash_methods[m];

            assert_ptr_equal(hb_hash_method_by_name(method->name), method);
            assert_non_null(hb_table_builder_of(method->algorithm));
            assert_true(strlen(method->summary) > 0);
        }
    /* Every algorithm of a live pool can be explored. */
    for (int b = 0; hb_table_builders[b] != NULL; b++)
        assert_non_null(hb_hash_method_by_name(hb_table_builders[b]->name));
    assert_null(hb_hash_method_by_name("Ring"));
}

static struct servers make_random_servers(const struct hb_hash_method *method, uint64_t *random)
{
    struct servers servers = make_servers(1 + next_random(random) % SERVER_MAX);

    servers.request.slots = 1021;
    servers.request.options.virtual_nodes = 8;
    servers.request.options.jump_replacement = true;
    for (uint32_t i = 1; i < servers.request.count; i++) {
        servers.members[i].weight = next_random(random) % 4;
        if (method->algorithm == HB_ALGORITHM_JUMP && servers.members[i].weight > 1)
            servers.members[i].weight = 1;
    }
    return servers;
}

/* A list never repeats a backend, begins with the owner, and has everybody with a weight. */
static void test_lists_never_repeat(void **state)
{
    struct hb_key_source source = {HB_KEY_SEED};
    uint64_t random = 51;

    (void)state;
    for
        ALL(m)
        {
            const struct hb_hash_method *method = hb_hash_methods[m];

            for (int round = 0; round < CASES; round++) {
                struct servers servers = make_random_servers(method, &random);
                uint32_t count = servers.request.count, members[SERVER_MAX], found, weighted = 0;
                bool seen[SERVER_MAX] = {false};
                char key[HB_KEY_TEXT];
                size_t size = hb_next_key(&source, key);
                void *prepared = prepare(method, &servers.request);

                for (uint32_t i = 0; i < count; i++)
                    weighted += servers.members[i].weight > 0;
                found = hb_preference(method, prepared, NULL, key, size, UINT32_MAX, members);
                assert_int_equal(found, weighted);
                assert_int_equal(members[0], method->owner(prepared, key, size));
                for (uint32_t i = 0; i < found; i++) {
                    assert_false(seen[members[i]]);
                    seen[members[i]] = true;
                    assert_true(servers.members[members[i]].weight > 0);
                }
                assert_int_equal(hb_preference(method, prepared, NULL, key, size, 1, members), 1);
                assert_true(method->memory(prepared) > 0);
                method->release(prepared);
                free_servers(&servers);
            }
        }
}

/* Where nothing moves between old backends, the second of the list is who takes over. */
static void test_second_takes_over(void **state)
{
    uint64_t random = 52;

    (void)state;
    for
        ALL(m)
        {
            const struct hb_hash_method *method = hb_hash_methods[m];
            struct hb_key_source source = {HB_KEY_SEED};

            if (method->moves_between_old || method->uses_table)
                continue;
            for (int round = 0; round < CASES; round++) {
                struct servers servers = make_random_servers(method, &random);
                uint32_t members[SERVER_MAX], found;
                char key[HB_KEY_TEXT];
                size_t size = hb_next_key(&source, key);
                void *prepared = prepare(method, &servers.request);

                found = hb_preference(method, prepared, NULL, key, size, UINT32_MAX, members);
                method->release(prepared);
                for (uint32_t i = 0; i + 1 < found; i++) {
                    servers.members[members[i]].weight = 0;
                    prepared = prepare(method, &servers.request);
                    assert_int_equal(method->owner(prepared, key, size), members[i + 1]);
                    method->release(prepared);
                }
                free_servers(&servers);
            }
        }
}

static void test_zones_first(void **state)
{
    /* members:                    0    1    2    3    4     5   6    7 */
    const char *const zones[8] = {"a", "b", "a", "c", NULL, "", "b", "a"};
    uint32_t list[8] = {2, 0, 4, 5, 1, 6, 3, 7};
    static const uint32_t expected[8] = {2, 4, 1, 3, 0, 5, 6, 7};
    const char *const one[8] = {0};
    uint32_t same[8] = {2, 0, 4, 5, 1, 6, 3, 7};

    (void)state;
    assert_int_equal(hb_preference_spread(zones, list, 8), 4);
    assert_memory_equal(list, expected, sizeof(list));
    assert_int_equal(hb_preference_spread(one, same, 8), 1); /* no zones: the key's order */
    assert_int_equal(same[0], 2);
    assert_int_equal(same[1], 0);
    assert_int_equal(same[7], 7);
    assert_int_equal(hb_preference_spread(one, same, 0), 0);
}

/* With zones a list still has everybody once, as many zones as there are come first, and inside
 * both parts the key's order stays. */
static void test_zones_of_random_lists(void **state)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    struct hb_key_source source = {HB_KEY_SEED};
    uint64_t random = 53;

    (void)state;
    for
        ALL(m)
        {
            const struct hb_hash_method *method = hb_hash_methods[m];

            for (int round = 0; round < CASES; round++) {
                struct servers servers = make_random_servers(method, &random);
                uint32_t plain[SERVER_MAX], spread[SERVER_MAX], place[SERVER_MAX], found, ahead;
                const char *zones[SERVER_MAX];
                char key[HB_KEY_TEXT];
                size_t size = hb_next_key(&source, key);
                void *prepared = prepare(method, &servers.request);
                int used[5] = {0};

                for (uint32_t i = 0; i < servers.request.count; i++)
                    zones[i] = names[next_random(&random) % 5];
                found = hb_preference(method, prepared, NULL, key, size, UINT32_MAX, plain);
                assert_int_equal(
                    hb_preference(method, prepared, zones, key, size, UINT32_MAX, spread), found);
                assert_int_equal(spread[0], plain[0]);
                for (uint32_t i = 0; i < found; i++)
                    place[plain[i]] = i;
                for (ahead = 0; ahead < found && used[zones[spread[ahead]][0] - 'a'] == 0; ahead++)
                    used[zones[spread[ahead]][0] - 'a'] = 1;
                for (uint32_t i = 0; i < found; i++) {
                    assert_int_equal(used[zones[spread[i]][0] - 'a'], 1);
                    if (i > 0 && i != ahead)
                        assert_true(place[spread[i - 1]] < place[spread[i]]);
                }
                method->release(prepared);
                free_servers(&servers);
            }
        }
}

/* In a small table some servers have no slot; they still come, at the end. */
static void test_servers_without_a_slot(void **state)
{
    const struct hb_hash_method *method = hb_hash_method_by_name("skeleton");
    struct servers servers = make_servers(11);
    uint32_t members[11], owned = 0;
    bool seen[11] = {false}, owns[11] = {false};
    uint16_t owner[11];
    void *prepared;

    (void)state;
    servers.request.slots = 11;
    assert_int_equal(hb_rendezvous.build(&servers.request, owner), HB_TABLE_OK);
    for (int slot = 0; slot < 11; slot++) {
        owned += !owns[owner[slot]];
        owns[owner[slot]] = true;
    }
    assert_in_range(owned, 4, 10);
    prepared = prepare(method, &servers.request);
    assert_int_equal(hb_preference(method, prepared, NULL, "k", 1, 11, members), 11);
    for (uint32_t i = 0; i < 11; i++) {
        assert_false(seen[members[i]]);
        seen[members[i]] = true;
        assert_int_equal(owns[members[i]], i < owned);
    }
    method->release(prepared);
    free_servers(&servers);
}

static void test_methods_refuse(void **state)
{
    (void)state;
    for
        ALL(m)
        {
            const struct hb_hash_method *method = hb_hash_methods[m];
            struct servers servers = make_servers(3);
            void *prepared = &servers;

            servers.members[2].identity = "S1";
            assert_int_equal(method->prepare(&servers.request, &prepared), HB_TABLE_DUPLICATE);
            assert_null(prepared);
            for (int i = 0; i < 3; i++)
                servers.members[i].weight = 0;
            assert_int_equal(method->prepare(&servers.request, &prepared), HB_TABLE_NO_MEMBERS);
            servers.request.count = 0;
            assert_int_equal(method->prepare(&servers.request, &prepared), HB_TABLE_NO_MEMBERS);
            method->release(NULL);
            free_servers(&servers);
        }
}

/* No key moves between old servers where a method says so; what it does not say, it does. */
static void test_claims_of_methods(void **state)
{
    (void)state;
    for
        ALL(m)
        {
            const struct hb_hash_method *method = hb_hash_methods[m];
            struct servers servers = make_servers(21);
            struct hb_table_request before = servers.request;
            struct hb_key_moves moves;
            uint32_t *old, *new;

            before.count = 20;
            old = ask_owners(method, &before, 20000);
            new = ask_owners(method, &servers.request, 20000);
            assert_int_equal(hb_key_moves(&before, old, &servers.request, new, 20000, &moves),
                             HB_TABLE_OK);
            assert_int_equal(moves.between_old > 0, method->moves_between_old);
            assert_int_equal(moves.moved, moves.to_new + moves.between_old);
            assert_in_range(moves.to_new, 600, 1350); /* 952; a ring's share may be 20 % off */
            assert_int_equal(moves.from_gone, 0);
            free(new);
            free(old);
            free_servers(&servers);
        }
}

/* Counterparts are found by identity, whatever the order; weight 0 counts as not there. */
static void test_key_moves(void **state)
{
    static const struct hb_table_member before[] = {{.identity = "a", .weight = 1},
                                                    {.identity = "b", .weight = 1},
                                                    {.identity = "c", .weight = 0},
                                                    {.identity = "d", .weight = 1}};
    static const struct hb_table_member after[] = {{.identity = "e", .weight = 1},
                                                   {.identity = "d", .weight = 0},
                                                   {.identity = "c", .weight = 2},
                                                   {.identity = "b", .weight = 1}};
    const struct hb_table_request one = {.members = before, .count = 4};
    const struct hb_table_request other = {.members = after, .count = 4};
    static const uint32_t from[6] = {0, 0, 1, 1, 3, 3}, to[6] = {0, 2, 3, 2, 3, 0};
    struct hb_key_moves moves;
    double share;

    (void)state;
    assert_int_equal(hb_key_moves(&one, from, &other, to, 6, &moves), HB_TABLE_OK);
    assert_int_equal(moves.moved, 5);       /* b stays b */
    assert_int_equal(moves.to_new, 4);      /* e, c, c, e */
    assert_int_equal(moves.from_gone, 4);   /* a, a, d, d */
    assert_int_equal(moves.between_old, 0); /* d to b is from one that is gone */
    assert_int_equal(hb_minimum_moved(&one, &other, &share), HB_TABLE_OK);
    assert_true(fabs(share - (1.0 / 3 + 1.0 / 3 + 1.0 / 12)) < 1e-12);
    assert_int_equal(hb_minimum_moved(&one, &one, &share), HB_TABLE_OK);
    assert_true(share == 0);
}

static void test_figures_refuse(void **state)
{
    static const struct hb_table_member twice[] = {{.identity = "a", .weight = 1},
                                                   {.identity = "a", .weight = 1}};
    static const struct hb_table_member none[] = {{.identity = "a", .weight = 0}};
    const struct hb_table_request doubled = {.members = twice, .count = 2};
    const struct hb_table_request good = {.members = twice, .count = 1};
    const struct hb_table_request empty = {.members = none, .count = 1};
    static const uint32_t owners[1];
    struct hb_key_moves moves;
    double share;

    (void)state;
    assert_int_equal(hb_key_moves(&good, owners, &doubled, owners, 1, &moves), HB_TABLE_DUPLICATE);
    assert_int_equal(hb_key_moves(&doubled, owners, &good, owners, 1, &moves), HB_TABLE_DUPLICATE);
    assert_int_equal(hb_minimum_moved(&doubled, &good, &share), HB_TABLE_DUPLICATE);
    assert_int_equal(hb_minimum_moved(&good, &empty, &share), HB_TABLE_NO_MEMBERS);
    assert_int_equal(hb_minimum_moved(&empty, &good, &share), HB_TABLE_NO_MEMBERS);
    assert_int_equal(hb_share_figures(NULL, 0).max, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_of_methods),
        cmocka_unit_test(test_lists_never_repeat),
        cmocka_unit_test(test_second_takes_over),
        cmocka_unit_test(test_zones_first),
        cmocka_unit_test(test_zones_of_random_lists),
        cmocka_unit_test(test_servers_without_a_slot),
        cmocka_unit_test(test_methods_refuse),
        cmocka_unit_test(test_claims_of_methods),
        cmocka_unit_test(test_key_moves),
        cmocka_unit_test(test_figures_refuse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
