/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables with measured times, from written documents; and pictures, with and without gnuplot. */
#include "hash_cli.h"

#include <sys/stat.h>
#include <unistd.h>

static void test_compare_with_times(void **state)
{
    static const char document[] =
        "{\"backends_before\": 1, \"backends_after\": 2, \"change\": \"add:1\", \"keys\": 1000,"
        " \"keys_from\": \"seed 16\", \"virtual_nodes\": 400, \"table_size\": 65537,"
        " \"hit_before\": 0.9, \"mean_after\": 500.0, \"owners_listed\": false,"
        " \"minimum\": {\"moved\": 500.0, \"moved_share\": 0.5, \"hit_after\": 0.45,"
        "  \"misses_grow\": 5.5},"
        " \"methods\": ["
        "  {\"name\": \"maglev\", \"moved\": 503, \"moved_share\": 0.503, \"to_new\": 501,"
        "   \"between_old\": 2, \"hit_after\": 0.4473, \"misses_grow\": 5.527,"
        "   \"after\": {\"min\": 497, \"max\": 503, \"mean\": 500.0, \"sd\": 3.0},"
        "   \"build_ms\": 1.25, \"lookup_ns\": 9.6, \"memory_bytes\": 131090},"
        "  {\"name\": \"jump\", \"error\": \"it has \\u001b no weights\"}]}";
    struct hb_screen screen = {0};
    char *text, why[64];
    json_t *json = hb_json_parse(document, strlen(document), why, sizeof(why));
    size_t size;

    (void)state;
    assert_non_null(json);
    screen.out = open_memstream(&text, &size);
    hb_show_hash_compare(&screen, json);
    fclose(screen.out);
    assert_string_equal(text, "1 backend, then 2 (add:1); 1000 keys (seed 16)\n"
                              "400 virtual nodes for each unit of weight; tables of 65537 slots\n"
                              "\n"
                              "Keys that move, and a cache that had 90.0 % of hits:\n"
                              "METHOD     MOVED  OF ALL  TO NEW  BETWEEN OLD  HIT RATIO  MISSES\n"
                              "maglev       503  50.3 %     501            2     44.7 %  x 5.53\n"
                              "(minimum)    500  50.0 %       -            0     45.0 %  x 5.50\n"
                              "\n"
                              "Keys for each backend after the change (mean 500.0), and costs:\n"
                              "METHOD  MIN  MAX   SD  OF MEAN     BUILD  LOOKUP    MEMORY\n"
                              "maglev  497  503  3.0    0.6 %  1.250 ms   10 ns  131.1 kB\n"
                              "\n"
                              "jump: not possible: it has ? no weights\n");
    free(text);
    json_decref(json);
}

static void test_balance_with_times(void **state)
{
    static const char document[] =
        "{\"backends\": 10, \"keys\": 100000, \"mean\": 10000.0, \"vnodes_for_5_percent\": 360,"
        " \"rings\": [{\"vnodes\": 100, \"points\": 1000, \"min\": 8387, \"max\": 11381,"
        "  \"sd\": 842.814, \"sd_over_mean\": 0.0842814, \"theory\": 0.0948683,"
        "  \"build_ms\": 0.024, \"memory_bytes\": 8158}]}";
    struct hb_screen screen = {0};
    char *text, why[64];
    json_t *json = hb_json_parse(document, strlen(document), why, sizeof(why));
    size_t size;

    (void)state;
    assert_non_null(json);
    screen.out = open_memstream(&text, &size);
    hb_show_hash_balance(&screen, json);
    fclose(screen.out);
    assert_string_equal(
        text, "A ring of 10 backends, 100000 keys, 10000.0 for each\n"
              "\n"
              "VIRTUAL NODES  POINTS   MIN    MAX     SD  OF MEAN  THEORY     BUILD  MEMORY\n"
              "          100    1000  8387  11381  842.8    8.4 %   9.5 %  0.024 ms  8158 B\n"
              "\n"
              "THEORY is sqrt((N - 1) / (N V)). For 5 % of the mean a ring of so many backends "
              "needs\n"
              "360 virtual nodes each.\n");
    free(text);
    json_decref(json);
}

static void test_owner(void **state)
{
    (void)state;
    expect_text("hash owner user:42 --backends 4 --vnodes 8",
                "user:42 has the hash 599759890; 4 backends\n"
                "\n"
                "METHOD      OWNER  HOW\n"
                "modulo      S2     hash modulo the sum of weights\n"
                "ring        S2     position 599759890, the next token is at 606227879\n"
                "rendezvous  S2     the best of 4 scores\n"
                "skeleton    S0     slot 9151 of 65537\n"
                "jump        S2     a bucket of 4\n"
                "maglev      S0     slot 9151 of 65537\n");
}

/* ---- pictures ---- */

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;

    assert_non_null(file);
    if (getdelim(&text, &size, '\0', file) < 0)
        text[0] = '\0';
    fclose(file);
    return text;
}

/* Nothing is left behind, not even a part. */
static void expect_no_file(const char *path)
{
    struct stat facts;

    assert_int_equal(stat(path, &facts), -1);
}

static void test_wrong_pictures(void **state)
{
    static const struct {
        const char *line;
        int status;
        const char *words;
    } rows[] = {
        {"hash plot", 2, "needs a file to write, such as --out shares.svg"},
        {"hash plot --kind pie --out a.svg", 2,
         "expected moves, shares, failures, balance or ring"},
        {"hash plot --out a.pdf", 2, "expected a name that ends in .svg, .png or .gp"},
        {"hash plot --kind ring --out /no/such/a.gp", 1, "choose a file in a folder"},
        {"hash plot --kind ring --out /no/such/a.svg", 1, "choose a file in a folder"},
        {"hash plot --kind ring --backends 10 --vnodes 400 --out a.gp", 2, "would be one blur"},
        {"hash plot --kind moves --keys 101 --out a.gp", 2, "draw at most 100: --keys 32"},
        {"hash plot --kind failures --backends 1 --out a.gp", 2, "give two"},
        {"hash plot --kind failures --backends 9 --failures 9 --out a.gp", 2, "from 1 to 8"},
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

static void test_scripts(void **state)
{
    static const struct {
        const char *words, *part;
    } rows[] = {
        {"--kind shares --backends 4 --keys 1000 --algorithms ring,jump",
         "set ylabel 'keys (% of "},
        {"--kind failures --backends 6 --keys 500 --vnodes 20 --algorithms ring,maglev",
         "set xlabel 'backends that failed, of 6'"},
        {"--kind failures --backends 6 --keys 500 --vnodes 20 --algorithms ring,maglev",
         "though their backend stayed; none: ring'"},
        {"--kind moves --algorithms modulo,ring", "32 keys in the order of their hashes"},
        {"--kind balance --keys 1000 --vnodes 1,10", "$measured << EOD\n1 "},
        {"--kind ring --tokens it's=100,B=200 --space 360", "set label 'it''s' at "},
    };
    char folder[] = "/tmp/hb-plot-XXXXXX", path[64], line[256], *text;
    size_t i;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/picture.gp", folder);
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct call made;

        snprintf(line, sizeof(line), "hash plot %s --out %s", rows[i].words, path);
        made = call_well(line);
        release(&made);
        text = read_file(path);
        if (!strstr(text, rows[i].part))
            fail_msg("\"%s\" is not in %s", rows[i].part, text);
        free(text);
    }
    unlink(path);
    rmdir(folder);
}

static void test_gnuplot_missing_or_failing(void **state)
{
    char folder[] = "/tmp/hb-plot-XXXXXX", program[64], path[64], line[256];
    char *kept = strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
    struct call made;
    FILE *file;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/picture.svg", folder);
    snprintf(program, sizeof(program), "%s/gnuplot", folder);
    snprintf(line, sizeof(line), "hash plot --kind ring --out %s", path);
    setenv("PATH", folder, 1);
    made = call(line);
    assert_int_equal(made.status, HB_EXIT_FAILED);
    assert_string_equal(made.out, "");
    assert_string_equal(made.err, "halbachctl: gnuplot is not installed; as root, run 'apt-get "
                                  "install gnuplot-nox', or write its commands with --out "
                                  "FILE.gp\n");
    expect_no_file(path);
    release(&made);

    file = fopen(program, "w");
    fputs("#!/bin/sh\necho '<svg>'\necho 'line 7: no such terminal' >&2\nexit 3\n", file);
    fclose(file);
    assert_int_equal(chmod(program, 0755), 0);
    made = call(line);
    assert_int_equal(made.status, HB_EXIT_FAILED);
    assert_non_null(strstr(made.err, "gnuplot failed with status 3 and said: line 7: no such"));
    expect_no_file(path);
    release(&made);
    unlink(program);
    assert_int_equal(rmdir(folder), 0); /* so nothing else was left there */
    setenv("PATH", kept, 1);
    free(kept);
}

static void test_pictures(void **state)
{
    static const char *const kinds[] = {
        "moves --algorithms jump,maglev", "shares --backends 4 --keys 500",
        "failures --backends 8 --keys 300 --vnodes 10", "balance --keys 500 --vnodes 1,10,100",
        "ring --tokens A=100,B=200,C=300 --space 360"};
    char folder[] = "/tmp/hb-plot-XXXXXX", path[64], line[256], *text;
    size_t i;

    (void)state;
    if (system("gnuplot --version >/dev/null 2>&1") != 0)
        skip(); /* scripts/deps installs it */
    assert_non_null(mkdtemp(folder));
    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct call made;

        snprintf(path, sizeof(path), "%s/%zu.svg", folder, i);
        snprintf(line, sizeof(line), "hash plot --kind %s --out %s --json", kinds[i], path);
        made = call_well(line);
        assert_string_equal(hb_json_text(made.json, "file"), path);
        assert_true(json_array_size(hb_json_at(made.json, "data")) > 0);
        release(&made);
        text = read_file(path);
        assert_non_null(strstr(text, "<svg"));
        assert_non_null(strstr(text, "</svg>"));
        free(text);
        unlink(path);
        snprintf(path, sizeof(path), "%s/%zu.png", folder, i);
        snprintf(line, sizeof(line), "hash plot --kind %s --out %s", kinds[i], path);
        made = call_well(line);
        release(&made);
        text = read_file(path);
        assert_memory_equal(text, "\x89PNG", 4);
        free(text);
        unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compare_with_times),
        cmocka_unit_test(test_balance_with_times),
        cmocka_unit_test(test_owner),
        cmocka_unit_test(test_wrong_pictures),
        cmocka_unit_test(test_scripts),
        cmocka_unit_test(test_gnuplot_missing_or_failing),
        cmocka_unit_test(test_pictures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
