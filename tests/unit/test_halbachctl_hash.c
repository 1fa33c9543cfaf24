/* SPDX-License-Identifier: BSD-3-Clause */
/* What may be typed after `halbachctl hash`, rightly and wrongly, and what is promised about it. */
#include "hash_cli.h"

#include <math.h>
#include <unistd.h>

#include "hash_measure.h"

#define LIST "web1 2 a\nweb2 1 a # not the newest\n\n  # nothing here\nweb3 1 b\nweb4 1 c\nweb5\n"

static void test_wrong_words(void **state)
{
    static const struct {
        const char *line;
        int status;
        const char *words;
    } rows[] = {
        {"hash", 2, "did you mean 'hash compare'?"},
        {"hash comprae", 2, "did you mean 'hash compare'?"},
        {"hash balnce", 2, "did you mean 'hash balance'?"},
        {"hash compare", 2, "hash compare needs the change to look at, such as --change add:1"},
        {"hash compare --change add", 2, "--change add: expected add:COUNT"},
        {"hash compare --change add:", 2, "expected add:COUNT"},
        {"hash compare --change swap:1", 2, "expected add:COUNT"},
        {"hash compare --change remove:S99", 2, "there is no backend 'S99' to change"},
        {"hash compare --change weight:S1=65536", 2, "a whole number from 0 to 65535"},
        {"hash compare --change weight:S1", 2, "expected add:COUNT"},
        {"hash compare --change remove:S1=2", 2, "expected add:COUNT"},
        {"hash compare --change add:S1", 2, "'S1' cannot be added: there is one of that name"},
        {"hash compare --change remove:S0 --backends 1", 2, "keep at least one"},
        {"hash compare --change remove:4 --backends 4", 2, "a whole number from 1 to 3"},
        {"hash compare --change add:1 --backends 65535", 2, "as many as can be"},
        {"hash compare --change add:2 --backends 65534", 2, "a whole number from 1 to 1"},
        {"hash compare --change add:1 --keys 0", 2, "a whole number from 1 to 10000000"},
        {"hash compare --change add:1 --keys /no/such", 1, "--keys /no/such: No such file"},
        {"hash compare --change add:1 --hit 1", 2, "expected a ratio between 0 and 1"},
        {"hash compare --change add:1 --hit 0.9x", 2, "expected a ratio between 0 and 1"},
        {"hash compare --change add:1 --seed -1", 2, "--seed -1: expected a whole number"},
        {"hash compare --change add:1 --backends 0", 2, "a whole number from 1 to 65535"},
        {"hash compare --change add:1 --backends /no/such", 1, "--backends /no/such: No such file"},
        {"hash compare --change add:1 --backends /no/such.yaml", 1, "/no/such.yaml is refused"},
        {"hash compare --change add:1 --algorithms ring,rign", 2,
         "there is no method 'rign'; there are modulo, ring, rendezvous, skeleton, jump, maglev, "
         "and ketama"},
        {"hash compare --change add:1 --hashes 1,2 --keys 5", 2, "leave --keys out"},
        {"hash compare --change add:1 --hashes 1,x", 2, "--hashes x: expected a whole number"},
        {"hash compare --change add:1 --vnodes 1,10", 2, "--vnodes 1,10: expected a whole number"},
        {"hash compare --change add:1 --algorithms maglev --table-size 65536", 1, ""},
        {"hash balance --vnodes 1,0", 2, "--vnodes 0: expected a whole number from 1 to 65535"},
        {"hash balance --change add:1", 2, "hash balance takes no --change"},
        {"hash balance --backends 1000 --vnodes 65535 --keys 1", 1, "virtual"},
        {"hash owner", 2, "usage: halbachctl hash owner KEY [--pool POOL] [--backends N|FILE]"},
        {"hash prefer a --count 0", 2, "--count 0: expected a whole number from 1"},
        {"hash affected --tokens A=1 --space 9", 2, "--join NAME@TOKEN, --join NAME or --leave"},
        {"hash affected --tokens A=1,B --space 9 --leave A", 2, "expected NAME=TOKEN"},
        {"hash affected --tokens A=1,B=9 --space 9 --leave A", 2, "a whole number from 0 to 8"},
        {"hash affected --tokens A=1,A=1 --space 9 --leave A", 2, "name each token once"},
        {"hash affected --tokens A=1 --space 9 --leave A", 2, "nobody would be left to inherit"},
        {"hash affected --tokens A=1 --space 9 --leave B", 2, "--leave B: it is not on the ring"},
        {"hash affected --tokens A=1 --space 9 --join B", 2, "expected NAME@TOKEN"},
        {"hash affected --tokens A=1 --backends 4 --leave A", 2, "give one"},
        {"hash affected --backends 4 --space 9 --leave S1", 2, "--space goes with --tokens"},
        {"hash affected --backends 4 --join S1", 2, "it is on the ring already"},
        {"hash ring --tokens A=1 --space 4294967297", 2, "a whole number from 1 to 4294967296"},
        {"hash ring --tokens A=1 --space 9 --positions 9", 2, "a whole number from 0 to 8"},
        {"hash ring --tokens , --space 9", 2, "expected NAME=TOKEN"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct call made = call(rows[i].line);

        if (made.status != rows[i].status || !strstr(made.err, rows[i].words))
            fail_msg("'%s' ended with %d and said: %s", rows[i].line, made.status, made.err);
        release(&made);
    }
}

static void test_list_of_backends(void **state)
{
    char path[64], line[256];
    struct call made;

    (void)state;
    write_file(path, "", LIST);
    snprintf(line, sizeof(line),
             "hash prefer user:42 --backends %s --zones --count 4 --algorithms rendezvous,ring",
             path);
    expect_text(line, "user:42: the first 4 of 5 backends, distinct zones first\n"
                      "\n"
                      "METHOD      PREFERS\n"
                      "rendezvous  web1 (a), web5, web3 (b), web4 (c)\n"
                      "ring        web4 (c), web2 (a), web3 (b), web5\n");

    /* Shares follow weights: web1 has two of six parts. */
    snprintf(line, sizeof(line),
             "hash compare --backends %s --change weight:web1=1 --keys 60000 --json", path);
    made = call_well(line);
    assert_true(fabs(hb_json_real(made.json, "minimum.moved_share") - (2.0 / 6 - 1.0 / 5)) < 1e-9);
    assert_in_range(hb_json_count(row_of(&made, "methods", "rendezvous"), "before.counts.web1"),
                    19500, 20500);
    assert_in_range(hb_json_count(row_of(&made, "methods", "maglev"), "after.counts.web1"), 11500,
                    12500);
    assert_true(hb_json_has(row_of(&made, "methods", "jump"), "error")); /* it has no weights */
    /* Figures of shares are by weight: as even as with equal ones. */
    assert_true(hb_json_real(row_of(&made, "methods", "rendezvous"), "before.sd") < 300);
    assert_in_range(hb_json_count(row_of(&made, "methods", "maglev"), "before.max"), 11500, 12500);
    release(&made);
    unlink(path);
}

static void test_bad_lists(void **state)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"a\nb 65536\n", ":2: expected NAME [WEIGHT [ZONE]]"},
        {"a 1 z more\n", ":1: expected NAME [WEIGHT [ZONE]]"},
        {"a -1\n", ":1: expected NAME [WEIGHT [ZONE]]"},
        {"a 0\n", "no backend has a weight above 0"},
        {"", "no backend has a weight above 0"},
        {"a\nb\na\n", "one of them is listed twice"},
    };
    char path[64], line[256];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct call made;

        write_file(path, "", rows[i].text);
        snprintf(line, sizeof(line), "hash compare --backends %s --change add:1 --keys 10", path);
        made = call(line);
        if (made.status != HB_EXIT_FAILED || !strstr(made.err, rows[i].words))
            fail_msg("row %zu ended with %d and said: %s", i, made.status, made.err);
        release(&made);
        unlink(path);
    }
}

#define POOL(name, host)                                                                           \
    "  - name: " name "\n    algorithm: maglev\n    table_size: 251\n    forwarding: ipip\n"       \
    "    health: { type: none }\n    backends:\n"                                                  \
    "      - { name: one, address: 198.51.100." host "1 }\n"                                       \
    "      - { name: two, address: 198.51.100." host "2, weight: 2, zone: b }\n"

static const char configuration[] =
    "seed: 00112233445566778899aabbccddeeff\n"
    "tunnel: { source: 198.51.100.200 }\n"
    "pools:\n" POOL("web", "1") POOL("dns", "2") "services:\n"
                                                 "  - { name: www, vip: 192.0.2.10, protocol: tcp, "
                                                 "port: 80, pool: web }\n"
                                                 "  - { name: dns, vip: 192.0.2.11, protocol: udp, "
                                                 "port: 53, pool: dns }\n";

static void test_configuration(void **state)
{
    char path[64], line[256];
    struct call made, other;

    (void)state;
    write_file(path, ".yaml", configuration);
    snprintf(line, sizeof(line), "hash owner user:1 --backends %s", path);
    made = call(line);
    assert_int_equal(made.status, HB_EXIT_USAGE);
    assert_non_null(strstr(made.err, "has 2 pools; choose one: --pool web"));
    release(&made);

    snprintf(line, sizeof(line), "hash owner user:1 --backends %s --pool www", path);
    made = call(line);
    assert_int_equal(made.status, HB_EXIT_FAILED);
    assert_non_null(strstr(made.err, "has no pool 'www'"));
    release(&made);

    /* Size and seed of tables are the file's, whatever --seed says. */
    snprintf(line, sizeof(line),
             "hash compare --backends %s --pool web --change remove:two --algorithms maglev --json",
             path);
    made = call_well(line);
    assert_int_equal(hb_json_count(made.json, "table_size"), 251);
    assert_int_equal(hb_json_count(made.json, "backends_before"), 2);
    assert_true(fabs(hb_json_real(made.json, "minimum.moved_share") - 2.0 / 3) < 1e-9);
    snprintf(line, sizeof(line),
             "hash owner user:1 --backends %s --pool web --algorithms maglev --json --seed 5",
             path);
    other = call_well(line);
    release(&made);
    snprintf(line, sizeof(line),
             "hash owner user:1 --backends %s --pool web --algorithms maglev --json", path);
    made = call_well(line);
    assert_string_equal(made.out, other.out);
    release(&made);
    release(&other);
    unlink(path);
}

#define JUMP_POOL(seed, a, b, address_a, address_b, bucket_a, bucket_b)                            \
    "seed: " seed "\ntunnel: { source: 198.51.100.200 }\npools:\n  - name: web\n"                  \
    "    algorithm: jump\n    table_size: 251\n    forwarding: ipip\n"                             \
    "    health: { type: none }\n    backends:\n"                                                  \
    "      - { name: " a ", address: " address_a ", bucket: " bucket_a " }\n"                      \
    "      - { name: " b ", address: " address_b ", bucket: " bucket_b " }\n"                      \
    "services:\n  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web }\n"

/* How many of 64 keys are with "one", by a method. */
static unsigned count_of_one(const char *text, const char *method, uint64_t *pattern)
{
    char path[64], line[256];
    unsigned count = 0, key;

    *pattern = 0;
    write_file(path, ".yaml", text);
    for (key = 0; key < 64; key++) {
        struct call made;

        snprintf(line, sizeof(line), "hash owner key%u --backends %s --algorithms %s --json", key,
                 path, method);
        made = call_well(line);
        if (strcmp(hb_json_text(row_of(&made, "methods", method), "owner"), "one") == 0) {
            *pattern |= UINT64_C(1) << key;
            count++;
        }
        release(&made);
    }
    unlink(path);
    return count;
}

/* What is hashed of a configuration: addresses and the seed, not names; jump's buckets. */
static void test_what_counts_of_a_configuration(void **state)
{
    static const char first[] =
        JUMP_POOL("0123456789abcdef", "one", "two", "198.51.100.1", "198.51.100.2", "0", "1");
    static const char renamed[] =
        JUMP_POOL("0123456789abcdef", "x", "one", "198.51.100.2", "198.51.100.1", "1", "0");
    static const char reseeded[] =
        JUMP_POOL("fedcba9876543210", "one", "two", "198.51.100.1", "198.51.100.2", "1", "0");
    uint64_t pattern, other;

    (void)state;
    assert_in_range(count_of_one(first, "rendezvous", &pattern), 16, 48);
    count_of_one(renamed, "rendezvous", &other);
    assert_true(pattern == other);
    count_of_one(first, "maglev", &pattern);
    count_of_one(reseeded, "maglev", &other);
    assert_true(pattern != other);
    count_of_one(first, "jump", &pattern);
    count_of_one(reseeded, "jump", &other); /* the buckets are the other way round there */
    assert_true(pattern == ~other);
}

static void test_keys_from_a_file(void **state)
{
    char path[64], line[256];
    struct call made, owner;

    (void)state;
    write_file(path, "", "user:42\n\nuser:42\nuser:42");
    snprintf(line, sizeof(line),
             "hash compare --backends 4 --change add:1 --keys %s --json --algorithms rendezvous",
             path);
    made = call_well(line);
    owner = call_well("hash owner user:42 --backends 4 --json --algorithms rendezvous");
    assert_int_equal(hb_json_count(made.json, "keys"), 3);
    snprintf(line, sizeof(line), "before.counts.%s",
             hb_json_text(row_of(&owner, "methods", "rendezvous"), "owner"));
    assert_int_equal(hb_json_count(row_of(&made, "methods", "rendezvous"), line), 3);
    release(&made);
    release(&owner);
    unlink(path);
}

/* What a run measures but times. */
static char *without_times(const char *line)
{
    struct call made = call_well(line);
    json_t *row;
    size_t i;
    char *text;

    json_array_foreach (json_object_get(made.json, "methods"), i, row) {
        json_object_del(row, "build_ms");
        json_object_del(row, "lookup_ns");
    }
    text = json_dumps(made.json, JSON_INDENT(1));
    release(&made);
    return text;
}

static void test_a_seed_repeats(void **state)
{
    char *first = without_times("hash compare --change add:1 --keys 3000 --json --seed 7");
    char *again = without_times("hash compare --change add:1 --keys 3000 --json --seed 7");
    char *other = without_times("hash compare --change add:1 --keys 3000 --json --seed 8");

    (void)state;
    assert_string_equal(first, again);
    assert_string_not_equal(first, other);
    free(first);
    free(again);
    free(other);
}

static void test_nothing_moves_between_old(void **state)
{
    static const char *const methods[] = {"ring", "rendezvous", "skeleton", "jump"};
    static const char *const changes[] = {"add:1", "add:7", "remove:S3", "remove:S0,remove:S9",
                                          "remove:5"};
    unsigned seed, i, j;

    (void)state;
    for (seed = 1; seed <= 6; seed++) {
        for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
            char line[160];
            struct call made;

            snprintf(line, sizeof(line),
                     "hash compare --backends %u --change %s --keys 2000 --seed %u --vnodes 40 "
                     "--table-size 2503 --json",
                     8 + seed * 2, changes[i], seed);
            made = call_well(line);
            for (j = 0; j < 4; j++)
                assert_int_equal(hb_json_count(row_of(&made, "methods", methods[j]), "between_old"),
                                 0);
            release(&made);
        }
    }
}

static void test_jump_says_how_it_lost_one(void **state)
{
    struct call made =
        call_well("hash compare --backends 5 --change remove:S2 --keys 1000 --algorithms jump");

    (void)state;
    assert_non_null(strstr(made.out, "\njump: with jump_replacement: by itself it can lose only "
                                     "the backend of the last bucket\n"));
    release(&made);
    made = call_well("hash compare --backends 5 --change remove:S4 --keys 1000 --algorithms jump");
    assert_null(strstr(made.out, "jump_replacement"));
    release(&made);
    made = call_well("hash compare --backends 12 --change remove:S11,remove:S10 --keys 10000 "
                     "--algorithms jump --json");
    assert_false(hb_json_flag(row_of(&made, "methods", "jump"), "jump_replacement"));
    assert_int_equal(hb_json_count(row_of(&made, "methods", "jump"), "between_old"), 0);
    release(&made);
    /* The way from 10 to 11, backwards. */
    made = call_well("hash compare --backends 11 --change remove:1 --keys 10000 "
                     "--algorithms jump --json");
    assert_int_equal(hb_json_count(row_of(&made, "methods", "jump"), "moved"), 883);
    release(&made);

    /* When no method can do it, that is a failure, and the reason is shown. */
    made = call("hash compare --backends 5 --change weight:S1=2 --keys 1000 --algorithms jump");
    assert_int_equal(made.status, HB_EXIT_FAILED);
    assert_non_null(strstr(made.out, "jump: not possible: "));
    release(&made);
}

static void test_preference_begins_with_the_owner(void **state)
{
    struct call owner = call_well("hash owner user:42 --json");
    struct call prefer = call_well("hash prefer user:42 --count 99 --json");
    const json_t *row;
    size_t i, j, k;

    (void)state;
    json_array_foreach (hb_json_at(prefer.json, "methods"), i, row) {
        const json_t *list = hb_json_at(row, "prefers");
        const char *name = hb_json_text(row, "name");

        assert_int_equal(json_array_size(list), 10);
        assert_string_equal(hb_json_text(json_array_get(list, 0), "backend"),
                            hb_json_text(row_of(&owner, "methods", name), "owner"));
        for (j = 0; j < 10; j++) {
            for (k = 0; k < j; k++)
                assert_string_not_equal(hb_json_text(json_array_get(list, j), "backend"),
                                        hb_json_text(json_array_get(list, k), "backend"));
        }
    }
    release(&owner);
    release(&prefer);
}

static void test_rings_at_their_edges(void **state)
{
    (void)state;
    /* Over the end, in one piece; two tokens on one position: the name that comes first has it. */
    expect_text("hash affected --tokens A=10,B=50 --space 100 --join C@5",
                "55 of 100 positions change hands (55 %)\n"
                "\n"
                "INTERVAL  POSITIONS  SHARE  FROM  TO\n"
                "(50, 5]          55   55 %  A     C\n");
    expect_text("hash affected --tokens A=10,B=50 --space 100 --join C@50",
                "0 of 100 positions change hands (0 %)\n");
    expect_text("hash affected --tokens B=10,C=50 --space 100 --join A@50",
                "40 of 100 positions change hands (40 %)\n"
                "\n"
                "INTERVAL  POSITIONS  SHARE  FROM  TO\n"
                "(10, 50]         40   40 %  C     A\n");
    expect_text("hash ring --tokens A=10,B=10 --space 100 --positions 10,11",
                "A ring of 100 positions, 2 tokens, 2 backends\n"
                "\n"
                "TOKEN  BACKEND  OWNS        SHARE\n"
                "   10  A        (10, 10]  100.0 %\n"
                "   10  B        -           0.0 %\n"
                "\n"
                "POSITION  OWNER\n"
                "      10  A\n"
                "      11  A\n");
    /* Neighbours that take from the same one are one interval. */
    expect_text("hash affected --tokens A=10,B=90 --space 100 --join C@40,C@50",
                "40 of 100 positions change hands (40 %)\n"
                "\n"
                "INTERVAL  POSITIONS  SHARE  FROM  TO\n"
                "(10, 50]         40   40 %  B     C\n");
}

/* The first and the last piece, over zero, are one as well. */
static void test_intervals_join_over_zero(void **state)
{
    (void)state;
    expect_text("hash affected --tokens A=10,B=50 --space 100 --join C@95,C@5",
                "55 of 100 positions change hands (55 %)\n"
                "\n"
                "INTERVAL  POSITIONS  SHARE  FROM  TO\n"
                "(50, 5]          55   55 %  A     C\n");
}

/* Whoever joins with all its tokens takes what it gives back when it leaves. */
static void test_join_and_leave_mirror(void **state)
{
    struct call join = call_well("hash affected --backends 10 --join S10 --vnodes 40 --json");
    struct call leave = call_well("hash affected --backends 11 --leave S10 --vnodes 40 --json");
    size_t count = json_array_size(hb_json_at(join.json, "handovers")), i;

    (void)state;
    assert_true(count > 20);
    assert_int_equal(json_array_size(hb_json_at(leave.json, "handovers")), count);
    assert_int_equal(hb_json_count(join.json, "moved"), hb_json_count(leave.json, "moved"));
    for (i = 0; i < count; i++) {
        const json_t *there = json_array_get(hb_json_at(join.json, "handovers"), i);
        const json_t *back = json_array_get(hb_json_at(leave.json, "handovers"), i);

        assert_string_equal(hb_json_text(there, "interval"), hb_json_text(back, "interval"));
        assert_string_equal(hb_json_text(there, "from"), hb_json_text(back, "to"));
        assert_string_equal(hb_json_text(there, "to"), "S10");
    }
    release(&join);
    release(&leave);
}

static void test_progress_only_after_a_second(void **state)
{
    struct hb_ctl ctl = {0};
    struct hb_hash_progress progress;
    char *text;
    size_t size;

    (void)state;
    ctl.err = open_memstream(&text, &size);
    hb_hash_progress_start(&progress, &ctl);
    progress.started.tv_sec += 1000;
    hb_hash_progress_tell(&progress, "ring", 1, 4, "keys");
    fflush(ctl.err);
    assert_string_equal(text, "");
    progress.started.tv_sec -= 1002;
    hb_hash_progress_tell(&progress, "ring", 1, 4, "keys");
    hb_hash_progress_tell(&progress, "ring", 2, 4, "keys"); /* not again at once */
    hb_hash_progress_end(&progress);
    fclose(ctl.err);
    assert_string_equal(text, "ring: 25 % of 4 keys\n");
    free(text);

    ctl.err_is_terminal = true;
    ctl.err = open_memstream(&text, &size);
    hb_hash_progress_start(&progress, &ctl);
    progress.started.tv_sec -= 2;
    hb_hash_progress_tell(&progress, "ring", 3, 4, "keys");
    hb_hash_progress_end(&progress);
    fclose(ctl.err);
    assert_string_equal(text, "\r\033[Kring: 75 % of 4 keys\r\033[K");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_words),
        cmocka_unit_test(test_list_of_backends),
        cmocka_unit_test(test_bad_lists),
        cmocka_unit_test(test_configuration),
        cmocka_unit_test(test_what_counts_of_a_configuration),
        cmocka_unit_test(test_keys_from_a_file),
        cmocka_unit_test(test_a_seed_repeats),
        cmocka_unit_test(test_nothing_moves_between_old),
        cmocka_unit_test(test_jump_says_how_it_lost_one),
        cmocka_unit_test(test_preference_begins_with_the_owner),
        cmocka_unit_test(test_rings_at_their_edges),
        cmocka_unit_test(test_intervals_join_over_zero),
        cmocka_unit_test(test_join_and_leave_mirror),
        cmocka_unit_test(test_progress_only_after_a_second),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
