/* SPDX-License-Identifier: BSD-3-Clause */
/* The published figures of consistent hashing, through the command line, exactly. */
#include "hash_cli.h"

#include <math.h>

static void expect_moves(const struct call *call, const char *method, uint64_t moved,
                         uint64_t to_new, uint64_t from_gone, uint64_t between_old)
{
    const json_t *row = row_of(call, "methods", method);

    assert_int_equal(hb_json_count(row, "moved"), moved);
    assert_int_equal(hb_json_count(row, "to_new"), to_new);
    assert_int_equal(hb_json_count(row, "from_gone"), from_gone);
    assert_int_equal(hb_json_count(row, "between_old"), between_old);
}

static void test_four_servers_become_five(void **state)
{
    struct call made = call_well("hash compare --backends 4 --change add:1 --keys 10000 --vnodes "
                                 "100 --seed 16 --json");

    (void)state;
    expect_moves(&made, "modulo", 8007, 2014, 0, 5993);
    expect_moves(&made, "ring", 2195, 2195, 0, 0);
    assert_int_equal(hb_json_count(row_of(&made, "methods", "rendezvous"), "between_old"), 0);
    assert_int_equal(hb_json_count(row_of(&made, "methods", "skeleton"), "between_old"), 0);
    assert_int_equal(hb_json_count(row_of(&made, "methods", "jump"), "between_old"), 0);
    assert_true(hb_json_real(made.json, "minimum.moved") == 2000);
    release(&made);
}

static void test_rendezvous_loses_one_of_five(void **state)
{
    static const struct {
        const char *path;
        uint64_t keys;
    } counts[] = {{"before.counts.S0", 2031},
                  {"before.counts.S1", 1959},
                  {"before.counts.S2", 2014},
                  {"before.counts.S3", 2046},
                  {"before.counts.S4", 1950}};
    struct call made = call_well("hash compare --backends 5 --change remove:S2 --keys 10000 "
                                 "--algorithms rendezvous --json");
    const json_t *row = row_of(&made, "methods", "rendezvous");
    size_t i;

    (void)state;
    expect_moves(&made, "rendezvous", 2014, 0, 2014, 0);
    for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        assert_int_equal(hb_json_count(row, counts[i].path), counts[i].keys);
    assert_false(hb_json_has(row, "after.counts.S2"));
    release(&made);
}

static void test_jump_gets_an_eleventh(void **state)
{
    struct call made = call_well("hash compare --backends 10 --change add:1 --keys 10000 "
                                 "--algorithms jump --json");

    (void)state;
    expect_moves(&made, "jump", 883, 883, 0, 0);
    assert_false(hb_json_flag(row_of(&made, "methods", "jump"), "jump_replacement"));
    release(&made);
}

static void test_buckets_of_known_keys(void **state)
{
    static const struct {
        const char *hash, *of_10, *of_11, *of_1000;
    } keys[] = {{"0", "S0", "S0", "S0"},
                {"1", "S6", "S6", "S549"},
                {"42", "S2", "S2", "S571"},
                {"256", "S3", "S3", "S520"},
                {"1000000007", "S7", "S10", "S790"},
                {"18446744073709551615", "S9", "S10", "S313"}};
    struct call ten =
        call_well("hash compare --backends 10 --change add:1 --algorithms jump --json "
                  "--hashes 0,1,42,256,1000000007,18446744073709551615");
    struct call many =
        call_well("hash compare --backends 1000 --change add:1 --algorithms jump --json "
                  "--hashes 0,1,42,256,1000000007,18446744073709551615");
    const json_t *of_ten = hb_json_at(row_of(&ten, "methods", "jump"), "owners");
    const json_t *of_many = hb_json_at(row_of(&many, "methods", "jump"), "owners");
    size_t i;

    (void)state;
    assert_int_equal(json_array_size(of_ten), 6);
    for (i = 0; i < 6; i++) {
        assert_string_equal(hb_json_text(json_array_get(of_ten, i), "hash"), keys[i].hash);
        assert_string_equal(hb_json_text(json_array_get(of_ten, i), "before"), keys[i].of_10);
        assert_string_equal(hb_json_text(json_array_get(of_ten, i), "after"), keys[i].of_11);
        assert_string_equal(hb_json_text(json_array_get(of_many, i), "before"), keys[i].of_1000);
    }
    release(&ten);
    release(&many);
}

static void test_balance_of_ten_servers(void **state)
{
    static const struct {
        uint64_t vnodes, counts[10];
        uint64_t min, max;
        double sd;
    } rings[] = {
        {1, {18491, 224, 6338, 13471, 2360, 24526, 1720, 11790, 978, 20102}, 224, 24526, 8471.771},
        {10,
         {10415, 6806, 9928, 14921, 9636, 12639, 8436, 5376, 9538, 12305},
         5376,
         14921,
         2665.446},
        {100,
         {9890, 10034, 11381, 10141, 11061, 8946, 10087, 8387, 10433, 9640},
         8387,
         11381,
         842.814},
        {1000,
         {10111, 10036, 10220, 9394, 9714, 10402, 10539, 9808, 9792, 9984},
         9394,
         10539,
         323.041},
    };
    struct call made =
        call_well("hash balance --vnodes 1,10,100,1000 --backends 10 --keys 100000 --json");
    size_t i, j;

    (void)state;
    assert_int_equal(json_array_size(hb_json_at(made.json, "rings")), 4);
    for (i = 0; i < 4; i++) {
        const json_t *row = json_array_get(hb_json_at(made.json, "rings"), i);

        assert_int_equal(hb_json_count(row, "vnodes"), rings[i].vnodes);
        assert_int_equal(hb_json_count(row, "points"), rings[i].vnodes * 10);
        for (j = 0; j < 10; j++)
            assert_int_equal(json_integer_value(json_array_get(hb_json_at(row, "counts"), j)),
                             rings[i].counts[j]);
        assert_int_equal(hb_json_count(row, "min"), rings[i].min);
        assert_int_equal(hb_json_count(row, "max"), rings[i].max);
        assert_true(fabs(hb_json_real(row, "sd") - rings[i].sd) < 0.0005);
    }
    release(&made);
}

static void test_six_keys_by_modulo(void **state)
{
    (void)state;
    expect_text("hash compare --hashes 5,20,38,50,77,95 --backends 4 --change add:1 "
                "--algorithms modulo --vnodes 100",
                "4 backends, then 5 (add:1); 6 keys (given as hashes)\n"
                "100 virtual nodes for each unit of weight; tables of 65537 slots\n"
                "\n"
                "Keys that move, and a cache that had 95.0 % of hits:\n"
                "METHOD     MOVED  OF ALL  TO NEW  BETWEEN OLD  HIT RATIO   MISSES\n"
                "modulo         5  83.3 %       0            5     15.8 %  x 16.83\n"
                "(minimum)      1  20.0 %       -            0     76.0 %   x 4.80\n"
                "\n"
                "METHOD  HASH  BEFORE  AFTER\n"
                "modulo     5  S1      S0\n"
                "modulo    20  S0      S0\n"
                "modulo    38  S2      S3\n"
                "modulo    50  S2      S0\n"
                "modulo    77  S1      S2\n"
                "modulo    95  S3      S0\n");
}

static void test_ring_of_360(void **state)
{
    (void)state;
    expect_text("hash ring --tokens A=100,B=200,C=300 --space 360 --positions 150,250,350 "
                "--join D@260",
                "A ring of 360 positions, 3 tokens, 3 backends\n"
                "\n"
                "TOKEN  BACKEND  OWNS         SHARE\n"
                "  100  A        (300, 100]  44.4 %\n"
                "  200  B        (100, 200]  27.8 %\n"
                "  300  C        (200, 300]  27.8 %\n"
                "\n"
                "POSITION  OWNER  AFTER\n"
                "     150  B      B\n"
                "     250  C      D\n"
                "     350  A      A\n"
                "\n"
                "60 of 360 positions change hands (16.7 %)\n"
                "\n"
                "INTERVAL    POSITIONS   SHARE  FROM  TO\n"
                "(200, 260]         60  16.7 %  C     D\n");
}

static void test_ring_of_1000(void **state)
{
    static const char *const owners[] = {"n1", "n2", "n3", "n3", "n1"};
    static const char *const after[] = {"n1", "n2", "n4", "n3", "n1"};
    struct call made = call_well("hash ring --tokens n1=100,n2=400,n3=700 --space 1000 --positions "
                                 "50,200,410,500,800 --join n4@450 --json");
    const json_t *handovers = hb_json_at(made.json, "handovers");
    size_t i;

    (void)state;
    for (i = 0; i < 5; i++) {
        const json_t *row = json_array_get(hb_json_at(made.json, "positions"), i);

        assert_string_equal(hb_json_text(row, "owner"), owners[i]);
        assert_string_equal(hb_json_text(row, "owner_after"), after[i]);
    }
    assert_int_equal(json_array_size(handovers), 1);
    assert_string_equal(hb_json_text(json_array_get(handovers, 0), "interval"), "(400, 450]");
    release(&made);
}

static void test_ring_of_101(void **state)
{
    (void)state;
    expect_text("hash affected --tokens a=20,b=50,c=80 --space 101 --join d@60",
                "10 of 101 positions change hands (9.9 %)\n"
                "\n"
                "INTERVAL  POSITIONS  SHARE  FROM  TO\n"
                "(50, 60]         10  9.9 %  c     d\n");
    expect_text("hash affected --tokens a=20,b=50,c=80,d=60 --space 101 --leave b",
                "30 of 101 positions change hands (29.7 %)\n"
                "\n"
                "INTERVAL  POSITIONS   SHARE  FROM  TO\n"
                "(20, 50]         30  29.7 %  b     d\n");
    /* Both at once: d joins first, then b leaves. */
    expect_text("hash affected --tokens a=20,b=50,c=80 --space 101 --join d@60 --leave b",
                "40 of 101 positions change hands (39.6 %)\n"
                "\n"
                "INTERVAL  POSITIONS   SHARE  FROM  TO\n"
                "(20, 50]         30  29.7 %  b     d\n"
                "(50, 60]         10   9.9 %  c     d\n");
}

static void test_ring_with_virtual_nodes(void **state)
{
    static const struct {
        uint64_t position;
        const char *owner;
    } rows[] = {{105, "A"}, {106, "B"}, {451, "B"}, {846, "A"}, {931, "A"}, {999, "A"}};
    struct call made = call_well("hash ring --tokens A=105,A=930,B=290,B=610,C=450,C=845 --space "
                                 "1000 --positions 105,106,451,846,931,999 --json");
    size_t i;

    (void)state;
    for (i = 0; i < 6; i++) {
        const json_t *row = json_array_get(hb_json_at(made.json, "positions"), i);

        assert_int_equal(hb_json_count(row, "position"), rows[i].position);
        assert_string_equal(hb_json_text(row, "owner"), rows[i].owner);
    }
    release(&made);
}

/* 0.95 * (1 - moved), and how the rest grows; 16.2 times when 80 % move. */
static void test_cache_view(void **state)
{
    struct call made = call_well("hash compare --backends 4 --change add:1 --keys 10000 "
                                 "--algorithms modulo --hit 0.95 --json");
    const json_t *row = row_of(&made, "methods", "modulo");

    (void)state;
    assert_true(fabs(hb_json_real(row, "hit_after") - 0.95 * 0.1993) < 1e-9);
    assert_true(fabs(hb_json_real(row, "misses_grow") - (1 - 0.95 * 0.1993) / 0.05) < 1e-6);
    assert_true(fabs(hb_json_real(made.json, "minimum.hit_after") - 0.76) < 1e-9);
    release(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_four_servers_become_five),
        cmocka_unit_test(test_rendezvous_loses_one_of_five),
        cmocka_unit_test(test_jump_gets_an_eleventh),
        cmocka_unit_test(test_buckets_of_known_keys),
        cmocka_unit_test(test_balance_of_ten_servers),
        cmocka_unit_test(test_six_keys_by_modulo),
        cmocka_unit_test(test_ring_of_360),
        cmocka_unit_test(test_ring_of_1000),
        cmocka_unit_test(test_ring_of_101),
        cmocka_unit_test(test_ring_with_virtual_nodes),
        cmocka_unit_test(test_cache_view),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
