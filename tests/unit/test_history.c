/* SPDX-License-Identifier: BSD-3-Clause */
/* What is remembered of generations and configurations, and what a rollback finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "history.h"

static const struct hb_actor nobody = {.by = HB_ACTOR_NONE};
static const struct hb_actor root = {.by = HB_ACTOR_UNIX, .uid = 0, .pid = 7};

static char folder[32], state_file[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/hb-history-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(state_file, sizeof(state_file), "%s/state.json", folder);
    return 0;
}

static int remove_folder(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

static int accept_text(struct hb_history *history, const char *text, uint32_t keep)
{
    return hb_history_accept(history, text, strlen(text), keep, 1000, &root, "reload");
}

static void expect_text(const struct hb_history *history, uint64_t number, const char *expected)
{
    char *text;
    size_t size;

    assert_int_equal(hb_history_read(history, number, &text, &size), 0);
    assert_string_equal(text, expected);
    assert_int_equal(size, strlen(expected));
    free(text);
}

static struct hb_history *reopen(struct hb_history *history)
{
    hb_history_close(history);
    history = hb_history_open(state_file);
    assert_non_null(history);
    return history;
}

static void test_configurations_are_numbered(void **state)
{
    struct hb_history *history = hb_history_open(state_file);

    (void)state;
    assert_int_equal(hb_history_previous(history), 0);
    assert_int_equal(accept_text(history, "one", 10), 0);
    assert_int_equal(history->in_use, 1);
    assert_int_equal(hb_history_previous(history), 0);
    assert_int_equal(accept_text(history, "one", 10), 0); /* the same again is no other */
    assert_int_equal(history->in_use, 1);
    assert_int_equal(accept_text(history, "two", 10), 0);
    assert_int_equal(accept_text(history, "one", 10), 0); /* back by hand: the third */
    assert_int_equal(history->in_use, 3);
    assert_int_equal(hb_history_previous(history), 2);
    history = reopen(history);
    assert_int_equal(history->in_use, 3);
    assert_int_equal(history->configurations_count, 3);
    expect_text(history, 1, "one");
    expect_text(history, 2, "two");
    assert_int_equal(history->configurations[1].actor.pid, 7);
    hb_history_close(history);
}

static void test_the_oldest_make_way(void **state)
{
    struct hb_history *history = hb_history_open(state_file);
    char text[16], path[160], *read;
    size_t size;

    (void)state;
    for (int i = 1; i <= 12; i++) {
        snprintf(text, sizeof(text), "text %d", i);
        assert_int_equal(accept_text(history, text, 10), 0);
    }
    assert_int_equal(history->configurations_count, 10);
    assert_null(hb_history_find(history, 2));
    assert_int_equal(hb_history_read(history, 2, &read, &size), -ENOENT);
    snprintf(path, sizeof(path), "%s/2.yaml", history->folder);
    assert_int_equal(access(path, F_OK), -1);
    expect_text(history, 3, "text 3");
    expect_text(history, 12, "text 12");
    hb_history_close(history);
}

/* They have the secret seed in them. */
static void test_nobody_else_may_read_them(void **state)
{
    struct hb_history *history = hb_history_open(state_file);
    struct stat status;
    char path[160];

    (void)state;
    assert_int_equal(accept_text(history, "seed: secret", 10), 0);
    snprintf(path, sizeof(path), "%s/1.yaml", history->folder);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(stat(history->folder, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    hb_history_close(history);
}

static void test_a_rollback_holds_until_the_file_changes(void **state)
{
    struct hb_history *history = hb_history_open(state_file);

    (void)state;
    accept_text(history, "one", 10);
    accept_text(history, "two", 10);
    assert_false(hb_history_holds(history, "two", 3));
    assert_int_equal(hb_history_roll_back(history, 1, "two", 3, 2000, &root), 0);
    history = reopen(history);
    assert_true(history->rolled_back);
    assert_int_equal(history->rolled_back_unix, 2000);
    assert_int_equal(history->in_use, 1);
    assert_true(hb_history_holds(history, "two", 3));
    assert_false(hb_history_holds(history, "three", 5));
    /* A reload of the same file follows it again, under its old number. */
    assert_int_equal(accept_text(history, "two", 10), 0);
    assert_int_equal(history->in_use, 2);
    assert_false(history->rolled_back);
    assert_int_equal(hb_history_previous(history), 1);
    hb_history_close(history);
}

static void test_generations_are_remembered(void **state)
{
    struct hb_history *history = hb_history_open(state_file);
    struct hb_past_generation generation = {.configuration = 4, .actor = root, .moved = 77};

    (void)state;
    strcpy(generation.cause, "drain of \"web1\"\n");
    for (uint64_t i = 1; i <= HB_HISTORY_GENERATIONS + 5; i++) {
        generation.number = i;
        generation.unix_s = 1000 + i;
        hb_history_add(history, &generation);
    }
    hb_history_outcome(history, 2, HB_OUTCOME_REFUSED); /* not kept any more: nothing */
    hb_history_outcome(history, HB_HISTORY_GENERATIONS + 5, HB_OUTCOME_SERVED);
    assert_true(history->changed);
    assert_int_equal(hb_history_save(history), 0);
    assert_false(history->changed);
    history = reopen(history);
    assert_int_equal(history->generations_count, HB_HISTORY_GENERATIONS);
    assert_int_equal(history->generations[0].number, 6);
    generation = history->generations[HB_HISTORY_GENERATIONS - 1];
    assert_int_equal(generation.outcome, HB_OUTCOME_SERVED);
    assert_int_equal(generation.moved, 77);
    assert_int_equal(generation.actor.by, HB_ACTOR_UNIX);
    assert_string_equal(generation.cause, "drain of \"web1\"\n");
    hb_history_close(history);
}

/* --- rows of several generations --- */

static void add(struct hb_history *history, uint64_t number, bool routine, const char *cause,
                enum hb_outcome outcome)
{
    struct hb_past_generation generation = {.number = number,
                                            .unix_s = 1000 + number,
                                            .moved = 10,
                                            .configuration = 1,
                                            .routine = routine};

    snprintf(generation.cause, sizeof(generation.cause), "%s", cause);
    hb_history_add(history, &generation);
    if (outcome != HB_OUTCOME_WANTED)
        hb_history_outcome(history, number, outcome);
}

static void expect_row(const struct hb_history *history, uint32_t row, uint64_t first,
                       uint64_t number, const char *cause)
{
    const struct hb_past_generation *at = &history->generations[row];

    assert_true(row < history->generations_count);
    assert_int_equal(at->first, first);
    assert_int_equal(at->number, number);
    assert_int_equal(at->first_unix_s, 1000 + first);
    assert_int_equal(at->unix_s, 1000 + number);
    assert_int_equal(at->moved, 10 * (number - first + 1));
    assert_string_equal(at->cause, cause);
}

/* A thousand steps of slow starts do not push out what somebody did. */
static void test_routine_is_one_row(void **state)
{
    struct hb_history *history = hb_history_open(state_file);

    (void)state;
    add(history, 1, false, "backend a: draining", HB_OUTCOME_SERVED);
    for (uint64_t i = 2; i <= 1000; i++)
        add(history, i, true, i % 3 ? "slow start of backend a" : "slots have settled",
            HB_OUTCOME_SERVED);
    add(history, 1001, false, "reload", HB_OUTCOME_SERVED);
    add(history, 1002, true, "slots have settled", HB_OUTCOME_SERVED);
    assert_int_equal(history->generations_count, 4);
    assert_int_equal(hb_history_save(history), 0);
    history = reopen(history);
    assert_int_equal(history->generations_count, 4);
    expect_row(history, 0, 1, 1, "backend a: draining");
    expect_row(history, 1, 2, 1000, "slow start of backend a; slots have settled");
    expect_row(history, 2, 1001, 1001, "reload");
    expect_row(history, 3, 1002, 1002, "slots have settled");
    assert_int_equal(history->generations[1].outcome, HB_OUTCOME_SERVED);
    hb_history_close(history);
}

/* What was refused stands alone, and so does what nobody has answered, beside what serves. */
static void test_rows_keep_outcomes_apart(void **state)
{
    static const struct {
        uint64_t number;
        enum hb_outcome outcome;
    } steps[] = {{1, HB_OUTCOME_SERVED},  {2, HB_OUTCOME_SERVED},  {3, HB_OUTCOME_REFUSED},
                 {4, HB_OUTCOME_REFUSED}, {5, HB_OUTCOME_SERVED},  {7, HB_OUTCOME_SERVED},
                 {8, HB_OUTCOME_WANTED},  {9, HB_OUTCOME_WANTED},  {10, HB_OUTCOME_WANTED},
                 {11, HB_OUTCOME_SERVED}, {12, HB_OUTCOME_SERVED}, {13, HB_OUTCOME_WANTED}};
    struct hb_history *history = hb_history_open(state_file);

    (void)state;
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
        add(history, steps[i].number, true, "step", steps[i].outcome);
    assert_int_equal(history->generations_count, 8);
    expect_row(history, 0, 1, 2, "step");
    expect_row(history, 1, 3, 3, "step");
    expect_row(history, 2, 4, 4, "step");
    expect_row(history, 3, 5, 5, "step"); /* 6 is missing */
    expect_row(history, 4, 7, 7, "step");
    expect_row(history, 5, 8, 10, "step");
    expect_row(history, 6, 11, 12, "step");
    expect_row(history, 7, 13, 13, "step");
    assert_int_equal(history->generations[5].outcome, HB_OUTCOME_WANTED);
    hb_history_close(history);
}

/* Nothing is added to a row from before somebody did something. */
static void test_actions_part_rows(void **state)
{
    struct hb_history *history = hb_history_open(state_file);

    (void)state;
    hb_history_act(history, 900, &root, "maintenance begun");
    add(history, 1, true, "step", HB_OUTCOME_SERVED);
    add(history, 2, true, "step", HB_OUTCOME_SERVED);
    hb_history_act(history, 1002, &root, "flow caches flushed");
    add(history, 3, true, "step", HB_OUTCOME_SERVED);
    add(history, 4, true, "step", HB_OUTCOME_SERVED);
    assert_int_equal(hb_history_save(history), 0);
    history = reopen(history);
    assert_int_equal(history->generations_count, 2);
    expect_row(history, 0, 1, 2, "step");
    expect_row(history, 1, 3, 4, "step");
    assert_int_equal(history->actions_count, 2);
    assert_int_equal(history->actions[0].generation, 0);
    assert_int_equal(history->actions[1].generation, 2);
    assert_int_equal(history->actions[1].unix_s, 1002);
    assert_int_equal(history->actions[1].actor.pid, 7);
    assert_string_equal(history->actions[1].text, "flow caches flushed");
    for (int i = 0; i < HB_HISTORY_ACTIONS; i++)
        hb_history_act(history, 2000, &nobody, "again");
    assert_int_equal(history->actions_count, HB_HISTORY_ACTIONS);
    assert_string_equal(history->actions[0].text, "again");
    hb_history_close(history);
}

/* However many backends begin slowly one after another: a row's text has an end. */
static void test_a_row_of_many_causes(void **state)
{
    struct hb_history *history = hb_history_open(state_file);
    char cause[64];
    size_t length;

    (void)state;
    for (uint64_t i = 1; i <= 500; i++) {
        snprintf(cause, sizeof(cause), "slow start of backend web%u", (unsigned)i);
        add(history, i, true, cause, HB_OUTCOME_SERVED);
    }
    assert_int_equal(history->generations_count, 1);
    length = strlen(history->generations[0].cause);
    assert_memory_equal(history->generations[0].cause, "slow start of backend web1; slow", 32);
    assert_string_equal(history->generations[0].cause + length - 10, "; and more");
    hb_history_close(history);
}

static void write_file(const char *path, const char *text, size_t size)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fwrite(text, 1, size, file);
    fclose(file);
}

/* As a version wrote it that knew neither rows of several generations nor actions. */
static void test_an_older_index_is_read(void **state)
{
    static const char text[] =
        "{\"format\": \"halbach-history\", \"version\": 1, \"in_use\": 3, \"rollback\": null,"
        " \"configurations\": [{\"number\": 3, \"unix\": 5, \"size\": 1, \"digest\": \"00\","
        "  \"actor\": null, \"cause\": \"reload\"}],"
        " \"generations\": [{\"number\": 12, \"unix\": 1012, \"configuration\": 3, \"moved\": 10,"
        "  \"outcome\": \"served\", \"actor\": null, \"cause\": \"a step of a slow start\"}]}";
    struct hb_history *history;
    char path[96];

    (void)state;
    snprintf(path, sizeof(path), "%s.history", state_file);
    write_file(path, text, strlen(text));
    history = hb_history_open(state_file);
    assert_int_equal(history->in_use, 3);
    assert_int_equal(history->configurations_count, 1);
    assert_int_equal(history->actions_count, 0);
    assert_int_equal(history->generations_count, 1);
    expect_row(history, 0, 12, 12, "a step of a slow start");
    hb_history_close(history);
}

/* Torn at any byte: set aside, and the history is empty; never half of it. */
static void test_a_torn_index_is_set_aside(void **state)
{
    struct hb_history *history = hb_history_open(state_file);
    char path[96], bad[104], whole[4096];
    size_t size;
    FILE *file;

    (void)state;
    accept_text(history, "one", 10);
    add(history, 1, false, "start", HB_OUTCOME_SERVED);
    hb_history_act(history, 5, &root, "flow caches flushed");
    assert_int_equal(hb_history_save(history), 0);
    snprintf(path, sizeof(path), "%s", history->path);
    snprintf(bad, sizeof(bad), "%s.bad", path);
    hb_history_close(history);
    file = fopen(path, "r");
    size = fread(whole, 1, sizeof(whole), file);
    fclose(file);
    for (size_t cut = 0; cut < size; cut++) {
        write_file(path, whole, cut);
        history = hb_history_open(state_file);
        assert_int_equal(history->in_use, 0);
        assert_int_equal(history->configurations_count, 0);
        assert_int_equal(history->generations_count, 0);
        assert_int_equal(history->actions_count, 0);
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(access(bad, F_OK), 0);
        hb_history_close(history);
    }
    write_file(path, "{\"format\": \"something else\"}", 28);
    history = hb_history_open(state_file);
    assert_int_equal(history->configurations_count, 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(accept_text(history, "again", 10), 0); /* and it works on */
    hb_history_close(history);
}

static void test_a_configuration_that_was_touched_is_not_taken(void **state)
{
    struct hb_history *history = hb_history_open(state_file);
    char path[160], *text;
    size_t size;

    (void)state;
    accept_text(history, "one", 10);
    accept_text(history, "two", 10);
    snprintf(path, sizeof(path), "%s/1.yaml", history->folder);
    write_file(path, "onE", 3);
    assert_int_equal(hb_history_read(history, 1, &text, &size), -EBADMSG);
    unlink(path);
    assert_int_equal(hb_history_read(history, 1, &text, &size), -ENOENT);
    hb_history_close(history);
}

static void test_no_room_to_write(void **state)
{
    struct hb_history *history = hb_history_open("/nonexistent/state.json");

    (void)state;
    assert_non_null(history);
    assert_int_equal(hb_history_accept(history, "one", 3, 10, 1, &nobody, "start"), -ENOENT);
    assert_int_equal(history->in_use, 1);
    assert_int_equal(hb_history_save(history), -ENOENT);
    assert_true(history->changed);
    hb_history_close(history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_configurations_are_numbered, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_the_oldest_make_way, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_nobody_else_may_read_them, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_a_rollback_holds_until_the_file_changes, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_generations_are_remembered, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_routine_is_one_row, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_rows_keep_outcomes_apart, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_actions_part_rows, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_a_row_of_many_causes, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_an_older_index_is_read, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_a_torn_index_is_set_aside, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_a_configuration_that_was_touched_is_not_taken,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_no_room_to_write, make_folder, remove_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
