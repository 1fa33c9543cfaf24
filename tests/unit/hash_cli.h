/* SPDX-License-Identifier: BSD-3-Clause */
/* hash_cli.h: calls of `halbachctl hash ...` inside a test, from the words typed to what is
 * printed. */
#ifndef HB_TESTS_HASH_CLI_H
#define HB_TESTS_HASH_CLI_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "command_line.h"
#include "json.h"

struct call {
    int status;
    char *out, *err;
    json_t *json; /* of the output, when --json was among the words */
};

static inline struct call call(const char *line)
{
    struct hb_ctl ctl = {0};
    struct call call = {0};
    char *words = strdup(line), *word, *rest = NULL, *argv[32];
    size_t out_size, err_size;
    int argc = 0;

    argv[argc++] = (char *)(uintptr_t) "halbachctl";
    for (word = strtok_r(words, " ", &rest); word && argc < 32; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    ctl.screen.out = open_memstream(&call.out, &out_size);
    ctl.err = open_memstream(&call.err, &err_size);
    if (hb_command_line_parse(&ctl, argc, argv, &call.status))
        call.status = ctl.command->run(&ctl);
    fclose(ctl.screen.out);
    fclose(ctl.err);
    if (ctl.json && *call.out) {
        char why[128] = "";

        call.json = hb_json_parse(call.out, strlen(call.out), why, sizeof(why));
        if (!call.json)
            fail_msg("'%s' printed no JSON (%s): %s", line, why, call.out);
    }
    free(words);
    return call;
}

static inline void release(struct call *call)
{
    free(call->out);
    free(call->err);
    json_decref(call->json);
}

/* What stands on standard error beside the progress that a slow machine is told. */
static inline const char *complaint(const char *text)
{
    const char *end = strchr(text, '\n'), *progress = strstr(text, " % of ");

    while (end != NULL && progress != NULL && progress < end) {
        text = end + 1;
        end = strchr(text, '\n');
        progress = strstr(text, " % of ");
    }
    return text;
}

/* A call that must do well. */
static inline struct call call_well(const char *line)
{
    struct call made = call(line);

    if (made.status != HB_EXIT_OK || *complaint(made.err))
        fail_msg("'%s' ended with %d and said: %s", line, made.status, made.err);
    return made;
}

/* The row of an array whose "name" is this. */
static inline const json_t *row_of(const struct call *call, const char *array, const char *name)
{
    const json_t *row;
    size_t i;

    json_array_foreach (hb_json_at(call->json, array), i, row) {
        if (strcmp(hb_json_text(row, "name"), name) == 0)
            return row;
    }
    fail_msg("no row of %s is named %s in %s", array, name, call->out);
    return NULL;
}

static inline void expect_text(const char *line, const char *text)
{
    struct call made = call_well(line);

    assert_string_equal(made.out, text);
    release(&made);
}

/* A new file with this text; the caller unlinks it. */
static inline void write_file(char path[64], const char *suffix, const char *text)
{
    int fd;
    FILE *file;

    snprintf(path, 64, "/tmp/hb-hash-XXXXXX%s", suffix);
    fd = mkstemps(path, (int)strlen(suffix));
    assert_true(fd >= 0);
    file = fdopen(fd, "w");
    fputs(text, file);
    fclose(file);
}

#endif
