/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl plan: two files compared without a control, and answers of control as people see them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ctl.h"
#include "json.h"

static char directory[] = "/tmp/hb-plan-XXXXXX";
static char old_file[64], new_file[64];

static int make_directory(void **state)
{
    (void)state;
    if (mkdtemp(directory) == NULL)
        return 1;
    snprintf(old_file, sizeof(old_file), "%s/old.yaml", directory);
    snprintf(new_file, sizeof(new_file), "%s/new.yaml", directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    unlink(old_file);
    unlink(new_file);
    return rmdir(directory);
}

/* Pool "web" with these backends, and pool "dns", which never changes. */
static void write_file(const char *path, const char *settings, const char *backends)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fprintf(file,
            "seed: 0123456789abcdef\n"
            "pools:\n"
            "  - name: web\n"
            "    table_size: 1009\n"
            "%s"
            "    backends:\n"
            "%s"
            "  - name: dns\n"
            "    table_size: 1009\n"
            "    backends: [{ name: d, address: 198.51.100.53 }]\n"
            "services:\n"
            "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web }\n"
            "  - { name: dns, vip: 192.0.2.10, protocol: tcp, port: 53, pool: dns }\n",
            settings, backends);
    fclose(file);
}

#define ONE   "      - { name: web1, address: 198.51.100.1 }\n"
#define TWO   "      - { name: web2, address: 198.51.100.2 }\n"
#define THREE "      - { name: web3, address: 198.51.100.3 }\n"

static char *out, *err;

/* Runs the command on the two files; `out` and `err` have what it printed. */
static int run(bool json)
{
    size_t out_size, err_size;
    struct hb_ctl ctl = {.file = new_file, .old = old_file, .json = json};
    int status;

    free(out);
    free(err);
    ctl.screen.out = open_memstream(&out, &out_size);
    ctl.err = open_memstream(&err, &err_size);
    status = hb_ctl_plan(&ctl);
    fclose(ctl.screen.out);
    fclose(ctl.err);
    return status;
}

static int end_output(void **state)
{
    (void)state;
    free(out);
    free(err);
    out = err = NULL;
    return 0;
}

static void expect_words(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" does not say \"%s\"", text, words);
}

static void show(const char *text)
{
    size_t size;
    char why[64];
    json_t *plan = hb_json_parse(text, strlen(text), why, sizeof(why));
    struct hb_screen screen = {.out = open_memstream(&out, &size)};

    assert_non_null(plan);
    hb_show_plan(&screen, plan);
    fclose(screen.out);
    json_decref(plan);
}

/* Nothing moves, so the pools are not shown, but what changes is named. */
static void test_settings_are_named(void **state)
{
    (void)state;
    write_file(old_file, "", ONE TWO);
    write_file(new_file, "    slow_start: 30s\n    failure: { minimum: 2 }\n", ONE TWO);
    assert_int_equal(run(false), HB_EXIT_OK);
    expect_words(out, "backends: 0 added, 0 removed, 0 changed\nsettings that change: pool web\n");
    expect_words(out, "2 pools keep their slots, weights and flows\n");
    free(out);
    show("{\"changed\": true, \"settings_changed\": true, \"pools\": ["
         "{\"name\": \"a\", \"settings_changed\": true}, {\"name\": \"b\"},"
         "{\"name\": \"c\", \"settings_changed\": true}]}");
    expect_words(out, "settings that change: pool a, pool c, general ones\n");
}

static void test_the_same_file(void **state)
{
    (void)state;
    write_file(old_file, "", ONE TWO);
    write_file(new_file, "", TWO ONE);
    assert_int_equal(run(false), HB_EXIT_OK);
    assert_string_equal(out, "the file describes what is in use already; nothing would change\n");
    assert_string_equal(err, "");
}

static void test_a_backend_goes(void **state)
{
    (void)state;
    write_file(old_file, "", ONE TWO);
    write_file(new_file, "", ONE);
    assert_int_equal(run(false), HB_EXIT_OK);
    assert_string_equal(
        out,
        "services: 0 added, 0 removed, 0 changed\n"
        "backends: 0 added, 1 removed, 0 changed\n"
        "\n"
        "pool web (maglev, 1009 slots): 504 slots move (at least 504 must), 0 between backends "
        "that stay\n"
        "  BACKEND  CHANGE   STATE  WEIGHT  SHARE NOW    AFTER  FLOWS  BREAK\n"
        "  web1     stays    up          1     50.0 %  100.0 %      ?   none\n"
        "  web2     removed  up          1     50.0 %    0.0 %      ?    all\n"
        "\n"
        "1 pool keeps its slots, weights and flows\n"
        "Flows break where the tables say so; how many flows there are is not known\n");
}

static void test_weights_and_algorithm(void **state)
{
    (void)state;
    write_file(old_file, "", ONE TWO);
    write_file(new_file, "",
               ONE "      - { name: web2, address: 198.51.100.2, weight: 3 }\n" THREE);
    assert_int_equal(run(false), HB_EXIT_OK);
    expect_words(out, "  web2     stays   up     1 -> 3");
    expect_words(out, "  web3     added   new         1      0.0 %");
    expect_words(out, "No flow breaks");
}

static void test_as_json(void **state)
{
    json_t *plan;
    char why[64];

    (void)state;
    write_file(old_file, "", ONE TWO);
    write_file(new_file, "", ONE THREE);
    assert_int_equal(run(true), HB_EXIT_OK);
    plan = hb_json_parse(out, strlen(out), why, sizeof(why));
    assert_non_null(plan);
    assert_int_equal(hb_json_count(plan, "backends.added"), 1);
    assert_string_equal(hb_json_text(plan, "breaks"), "perhaps");
    assert_true(json_is_array(json_object_get(plan, "warnings")));
    json_decref(plan);
}

/* As control would, and under the names of the files. */
static void test_files_that_are_refused(void **state)
{
    (void)state;
    write_file(old_file, "", ONE TWO);
    write_file(new_file, "    tabel_size: 7\n", ONE);
    assert_int_equal(run(false), HB_EXIT_FAILED);
    assert_string_equal(out, "");
    expect_words(err, "new.yaml would be refused as a whole; mend it and plan again\n");
    expect_words(err, "new.yaml:5: pools[0]: unknown key \"tabel_size\"; did you mean");
    unlink(new_file);
    assert_int_equal(run(true), HB_EXIT_FAILED);
    expect_words(err, "new.yaml: there is no such file");
    write_file(new_file, "", ONE);
    unlink(old_file);
    assert_int_equal(run(false), HB_EXIT_FAILED);
    expect_words(err, "old.yaml: there is no such file");
}

static void test_without_a_file(void **state)
{
    size_t size;
    struct hb_ctl ctl = {.old = old_file, .err = open_memstream(&err, &size)};

    (void)state;
    assert_int_equal(hb_ctl_plan(&ctl), HB_EXIT_USAGE);
    fclose(ctl.err);
    expect_words(err, "-f NEW.yaml");
}

/* ---- an answer of control ---- */

#define PLAN(live, kept, broken, unsure)                                                           \
    "{\"changed\": true, \"reseeded\": false, \"breaks\": \"yes\","                                \
    " \"flows\": {\"live\": " live ", \"kept\": " kept ", \"broken\": " broken                     \
    ", \"unsure\": " unsure "}, \"services\": {}, \"backends\": {\"removed\": 1},"                 \
    " \"pools\": [{\"name\": \"web\", \"change\": \"stays\","                                      \
    "  \"algorithm\": {\"before\": \"ring\", \"after\": \"maglev\"},"                              \
    "  \"table_size\": {\"before\": 65537, \"after\": 65537}, \"usable\": {\"after\": 0},"         \
    "  \"moved\": 16402, \"ideal\": 16384, \"collateral\": 18, \"problem\": null,"                 \
    "  \"backends\": [{\"name\": \"web3\", \"change\": \"removed\", \"state\": \"draining\","      \
    "   \"weight\": {\"before\": 2, \"after\": null},"                                             \
    "   \"slots\": {\"before\": 16384, \"after\": null},"                                          \
    "   \"share\": {\"before\": 0.25, \"after\": 0.0}, \"flow_fate\": \"break\","                  \
    "   \"flows\": {\"live\": " live ", \"kept\": " kept ", \"broken\": " broken                   \
    ", \"unsure\": " unsure "}}]}], \"warnings\": [\"new.yaml:3: a\"]}"

static void test_live_flows(void **state)
{
    (void)state;
    show(PLAN("900", "812", "88", "0"));
    expect_words(out, "warning: new.yaml:3: a\n");
    expect_words(out, "pool web (ring -> maglev, 65537 slots): 16402 slots move (at least 16384 "
                      "must), 18 between backends that stay\n");
    expect_words(out, "no backend would be usable: new flows would be dropped\n");
    expect_words(out, "web3     removed  draining       2     25.0 %  0.0 %    900     88\n");
    expect_words(out, "88 live flows break: 812 of 900 keep their backend\n");
    free(out);
    show(PLAN("1", "0", "1", "0"));
    expect_words(out, "1 live flow breaks: 0 of 1 keep");
    free(out);
    show(PLAN("10", "2", "3", "5"));
    expect_words(out, "3 to 8\n");
    expect_words(out, "3 to 8 live flows break: 2 of 10 keep");
    free(out);
    show(PLAN("7", "7", "0", "0"));
    expect_words(out, "No flow breaks: 7 of 7 keep their backend\n");
}

static void test_an_empty_answer_is_survived(void **state)
{
    (void)state;
    show("{}");
    free(out);
    show("{\"changed\": true, \"pools\": [{}, {\"backends\": [{}]}]}");
}

#define CASE(name) cmocka_unit_test_teardown(name, end_output)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_the_same_file),
        CASE(test_settings_are_named),
        CASE(test_a_backend_goes),
        CASE(test_weights_and_algorithm),
        CASE(test_as_json),
        CASE(test_files_that_are_refused),
        CASE(test_without_a_file),
        CASE(test_live_flows),
        CASE(test_an_empty_answer_is_survived),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
