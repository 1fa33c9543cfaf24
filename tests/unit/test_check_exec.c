/* SPDX-License-Identifier: BSD-3-Clause */
/* test_check_exec.c: commands as checks, with small scripts as commands. */
#include "check_fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

static char folder[] = "/tmp/hb-exec-XXXXXX";
static char script[64];

/* Writes the script that `command` begins with. */
static void write_script(const char *body)
{
    FILE *file;

    snprintf(script, sizeof(script), "%s/check", folder);
    file = fopen(script, "we");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", body);
    fclose(file);
    assert_int_equal(chmod(script, 0755), 0);
}

static void set_up_command(struct check_bench *bench, const char *body, const char *arguments)
{
    write_script(body);
    set_up_bench(bench, &hb_checker_exec, "198.51.100.7", 8080);
    snprintf(bench->config.command, sizeof(bench->config.command), "%s%s", script, arguments);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(script);
    return rmdir(folder);
}

static void test_status_and_first_line(void **state)
{
    struct check_bench bench;

    (void)state;
    set_up_command(&bench, "echo all is well; echo more; exit 0", "");
    ASSERT_PROBE(&bench, HB_PROBE_OK, "all is well");
    assert_null(strstr(bench.detail, "more"));
    write_script("echo disk full >&2; exit 3");
    ASSERT_PROBE(&bench, HB_PROBE_WRONG, "disk full");
    write_script("exit 3");
    ASSERT_PROBE(&bench, HB_PROBE_WRONG, "ended with status 3");
    write_script("kill -SEGV $$");
    ASSERT_PROBE(&bench, HB_PROBE_WRONG, "signal 11");
    write_script("exit 0");
    ASSERT_PROBE(&bench, HB_PROBE_OK, "status 0");
    tear_down_bench(&bench);
}

static void test_knows_its_target(void **state)
{
    struct check_bench bench;

    (void)state;
    set_up_command(&bench, "echo $HALBACH_ADDRESS $HALBACH_PORT $HALBACH_TIMEOUT_MS $# $2",
                   " one  two");
    ASSERT_PROBE(&bench, HB_PROBE_OK, "198.51.100.7 8080 10000 2 two");
    tear_down_bench(&bench);
}

static bool is_gone(pid_t pid)
{
    return kill(pid, 0) < 0 && errno == ESRCH;
}

/* The whole group goes: the shell, and what it started. */
static void test_killed_at_the_limit(void **state)
{
    struct check_bench bench;
    char path[80], line[32] = "";
    FILE *file;

    (void)state;
    set_up_command(&bench, "sleep 1000 & echo $! > $1; wait", "");
    snprintf(path, sizeof(path), "%s/pid", folder);
    snprintf(bench.config.command, sizeof(bench.config.command), "%s %s", script, path);
    bench.config.timeout_ms = 1000; /* for the shell to get as far as `wait` */
    ASSERT_PROBE(&bench, HB_PROBE_TIMEOUT, "killed at the time limit");
    file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof(line), file));
    fclose(file);
    unlink(path);
    /* It was killed; init has yet to collect it. */
    for (int i = 0; i < 1000 && !is_gone(atoi(line)); i++)
        usleep(10000);
    assert_true(is_gone(atoi(line)));
    write_script("exit 0");
    ASSERT_PROBE(&bench, HB_PROBE_OK, "");
    tear_down_bench(&bench);
}

static void test_destroyed_under_way(void **state)
{
    struct check_bench bench;

    (void)state;
    set_up_command(&bench, "exec sleep 1000", "");
    begin_probe(&bench);
    assert_int_equal(bench.reason, HB_PROBE_UNDER_WAY);
    tear_down_bench(&bench);
}

/* Nothing is said about the target. */
static void test_what_cannot_start(void **state)
{
    struct check_bench bench;

    (void)state;
    set_up_command(&bench, "exit 0", "");
    chmod(script, 0644);
    ASSERT_PROBE(&bench, HB_PROBE_LOCAL_ERROR, "may not be executed");
    unlink(script);
    ASSERT_PROBE(&bench, HB_PROBE_LOCAL_ERROR, "is not there");
    write_script("exit 0");
    ASSERT_PROBE(&bench, HB_PROBE_OK, "");
    tear_down_bench(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status_and_first_line), cmocka_unit_test(test_knows_its_target),
        cmocka_unit_test(test_killed_at_the_limit),   cmocka_unit_test(test_destroyed_under_way),
        cmocka_unit_test(test_what_cannot_start),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
