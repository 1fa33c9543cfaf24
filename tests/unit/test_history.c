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

static void write_file(const char *path, const char *text, size_t size)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fwrite(text, 1, size, file);
    fclose(file);
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
        cmocka_unit_test_setup_teardown(test_a_torn_index_is_set_aside, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_a_configuration_that_was_touched_is_not_taken,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_no_room_to_write, make_folder, remove_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
