/* SPDX-License-Identifier: BSD-3-Clause */
/* What an operator may type, rightly and wrongly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "command_line.h"

struct parsed {
    struct hb_ctl ctl;
    bool run;
    int status;
    char *out, *err, *words;
    char *argv[20];
};

static struct parsed parse(const char *line)
{
    struct parsed parsed = {0};
    size_t out_size, err_size;
    int argc = 0;
    char *word;

    parsed.words = strdup(line);
    parsed.argv[argc++] = (char *)"halbachctl";
    for (word = strtok(parsed.words, " "); word; word = strtok(NULL, " "))
        parsed.argv[argc++] = word;
    parsed.ctl.screen.out = open_memstream(&parsed.out, &out_size);
    parsed.ctl.err = open_memstream(&parsed.err, &err_size);
    parsed.run = hb_command_line_parse(&parsed.ctl, argc, parsed.argv, &parsed.status);
    if (parsed.run && parsed.ctl.command->run == hb_ctl_help)
        parsed.status = hb_ctl_help(&parsed.ctl);
    fclose(parsed.ctl.screen.out);
    fclose(parsed.ctl.err);
    return parsed;
}

static void release(struct parsed *parsed)
{
    free(parsed->words);
    free(parsed->out);
    free(parsed->err);
}

static void test_good_lines(void **state)
{
    struct parsed parsed = parse("--json drain web3 --pool=web --wait --socket /tmp/s");

    (void)state;
    assert_true(parsed.run);
    assert_ptr_equal(parsed.ctl.command->run, hb_ctl_drain);
    assert_true(parsed.ctl.json && parsed.ctl.wait && !parsed.ctl.all);
    assert_string_equal(parsed.ctl.pool, "web");
    assert_string_equal(parsed.ctl.socket_path, "/tmp/s");
    assert_int_equal(parsed.ctl.arguments_count, 1);
    assert_string_equal(parsed.ctl.arguments[0], "web3");
    release(&parsed);

    parsed = parse("config check a.yaml");
    assert_ptr_equal(parsed.ctl.command->run, hb_ctl_config_check);
    assert_string_equal(parsed.ctl.arguments[0], "a.yaml");
    assert_string_equal(parsed.ctl.socket_path, HB_CONTROL_SOCKET);
    release(&parsed);

    /* A backend may have an odd name. */
    parsed = parse("undrain -- --web3");
    assert_true(parsed.run);
    assert_string_equal(parsed.ctl.arguments[0], "--web3");
    release(&parsed);
}

static void test_wrong_lines(void **state)
{
    static const struct {
        const char *line, *words;
    } rows[] = {
        {"", "Commands:"},
        {"stauts", "there is no command 'stauts'; did you mean 'status'?"},
        {"servcies", "did you mean 'services'?"},
        {"serv", "did you mean 'services'?"},
        {"undrian web1", "did you mean 'undrain'?"},
        {"config", "did you mean 'config check'?"},
        {"confg check x", "did you mean 'config check'?"},
        {"frobnicate", "'halbachctl help' lists them"},
        {"help frobnicate", "there is no command 'frobnicate'"},
        {"status --jsno", "there is no option '--jsno'; did you mean '--json'?"},
        {"status -x", "there is no option '-x'"},
        {"status --json=yes", "--json takes no value"},
        {"backends --pool", "--pool needs a value: --pool POOL"},
        {"backends --pool=", "--pool needs a value"},
        {"drops --pool web",
         "drops takes no --pool; usage: halbachctl drops [--watch [SECONDS]] [--all]"},
        {"drain", "too few arguments; usage: halbachctl drain BACKEND [--pool POOL] [--wait]"},
        {"drain a b", "too many arguments"},
        {"lookup a", "usage: halbachctl lookup CLIENT:PORT VIP:PORT [tcp|udp|sctp]"},
        {"a b c d e f", "too many arguments"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa "
         "b",
         "there is no command"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct parsed parsed = parse(rows[i].line);

        assert_int_equal(parsed.status, HB_EXIT_USAGE);
        assert_string_equal(parsed.out, "");
        if (!strstr(parsed.err, rows[i].words))
            fail_msg("'%s' got \"%s\", not \"%s\"", rows[i].line, parsed.err, rows[i].words);
        release(&parsed);
    }
}

static void test_help_comes_from_the_rows(void **state)
{
    static const struct {
        const char *line, *words;
    } rows[] = {
        {"--help", "config check    check a configuration file"},
        {"help", "Exit status: 0, 1 (failed), 2 (wrong usage)."},
        {"help drain", "Example: halbachctl drain web3 --deadline 10m --wait"},
        {"help config check", "halbachctl config check FILE"},
        {"drain --help", "  wait until its last flow has ended"},
        {"stats -h", "halbachctl stats [--watch [SECONDS]]"},
        {"--version", "halbachctl " HB_VERSION "\n"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct parsed parsed = parse(rows[i].line);

        assert_int_equal(parsed.status, HB_EXIT_OK);
        assert_string_equal(parsed.err, "");
        if (!strstr(parsed.out, rows[i].words))
            fail_msg("'%s' got \"%s\"", rows[i].line, parsed.out);
        release(&parsed);
    }
}

/* What a person reads on 80 columns does not wrap by itself. */
static void test_help_fits_a_terminal(void **state)
{
    const struct hb_command *command;

    (void)state;
    for (size_t i = 0; (command = hb_command_at(i)) != NULL; i++) {
        char *text = NULL, *line, *rest;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        hb_print_command(out, command);
        fclose(out);
        for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
            /* An example is there to be copied. */
            if (strlen(line) >= 80 && strncmp(line, "Example: ", 9) != 0)
                fail_msg("%s: %zu columns: %s", command->name, strlen(line), line);
        }
        free(text);
    }
}

/* A negative number is a wrong weight, not an option. */
static void test_negative_numbers_are_words(void **state)
{
    struct parsed parsed = parse("weight web1 -1 --pool web");

    (void)state;
    assert_true(parsed.run);
    assert_string_equal(parsed.ctl.arguments[1], "-1");
    assert_string_equal(parsed.ctl.pool, "web");
    release(&parsed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_lines),
        cmocka_unit_test(test_wrong_lines),
        cmocka_unit_test(test_help_comes_from_the_rows),
        cmocka_unit_test(test_help_fits_a_terminal),
        cmocka_unit_test(test_negative_numbers_are_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
