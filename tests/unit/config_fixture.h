/* SPDX-License-Identifier: BSD-3-Clause */
/* config_fixture.h: reads configurations from text and keeps what was complained about. */
#ifndef HB_TESTS_CONFIG_FIXTURE_H
#define HB_TESTS_CONFIG_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

/* A small configuration; the rows of tests replace one of its lines. */
static const char *const base_lines[] = {
    /* 1 */ "seed: 0123456789abcdef",
    /* 2 */ "pools:",
    /* 3 */ "  - name: web",
    /* 4 */ "    table_size: 251",
    /* 5 */ "    health: { type: tcp }",
    /* 6 */ "    backends:",
    /* 7 */ "      - { name: web1, address: 198.51.100.11 }",
    /* 8 */ "services:",
    /* 9 */ "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web }",
};
#define BASE_LINES 9

struct complaints {
    char *messages[1100];
    bool warning[1100];
    int count;
    int errors;
};

static inline void keep_complaint(void *context, bool warning, const char *message)
{
    struct complaints *complaints = context;

    if (complaints->count < 1100) {
        complaints->warning[complaints->count] = warning;
        complaints->messages[complaints->count++] = strdup(message);
    }
    complaints->errors += !warning;
}

static inline void drop_complaints(struct complaints *complaints)
{
    for (int i = 0; i < complaints->count; i++)
        free(complaints->messages[i]);
    memset(complaints, 0, sizeof(*complaints));
}

static inline bool has_complaint(const struct complaints *complaints, bool warning,
                                 const char *message)
{
    for (int i = 0; i < complaints->count; i++) {
        if (complaints->warning[i] == warning && strcmp(complaints->messages[i], message) == 0)
            return true;
    }
    return false;
}

static inline void print_complaints(const struct complaints *complaints)
{
    for (int i = 0; i < complaints->count; i++)
        fprintf(stderr, "    %s\n", complaints->messages[i]);
}

/* The base with line `line` (from 1) replaced; the caller frees it. */
static inline char *edit_base(int line, const char *replacement)
{
    size_t room = 2048 + strlen(replacement), length = 0;
    char *text = malloc(room);

    for (int i = 1; i <= BASE_LINES; i++)
        length += (size_t)snprintf(text + length, room - length, "%s\n",
                                   i == line ? replacement : base_lines[i - 1]);
    return text;
}

static inline struct hb_config *parse(const char *text, struct complaints *complaints)
{
    return hb_config_parse(text, strlen(text), "t", keep_complaint, complaints);
}

#endif
