/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * command_line.h: commands and options as rows; parsing and help come from the rows.
 */
#ifndef HB_CTL_COMMAND_LINE_H
#define HB_CTL_COMMAND_LINE_H

#include <stddef.h>
#include <stdio.h>

#include "ctl.h"

struct hb_command {
    const char *name;      /* one word or two: "config check" */
    const char *arguments; /* as help shows them, "BACKEND"; "" for none */
    unsigned least, most;  /* how many arguments */
    const char *options;   /* the options it takes besides the global ones, "pool wait" */
    const char *summary;   /* one line */
    const char *details;   /* what a person needs to know to use it */
    const char *example;
    const char *example_text; /* what the example does */
    int (*run)(const struct hb_ctl *ctl);
};

struct hb_option {
    const char *name;     /* without the dashes */
    const char *argument; /* NULL: a flag */
    const char *summary;
    size_t field; /* in struct hb_ctl: bool for flags, else const char * */
    bool global;
};

/* Row by row, `hash ...` included; NULL behind the last. */
const struct hb_command *hb_command_at(size_t i);
const struct hb_option *hb_option_at(size_t i);
bool hb_command_takes(const struct hb_command *command, const struct hb_option *option);
/* Whether the argument of an option may be left out: then it is "1". */
bool hb_option_is_optional(const struct hb_option *option);
/* Whether the command repeats by itself with these options. */
bool hb_command_watches(const struct hb_ctl *ctl);

/* help.c */
void hb_print_overview(FILE *to);
void hb_print_usage(FILE *to, const struct hb_command *command);
void hb_print_command(FILE *to, const struct hb_command *command);

/* suggest.c: makes `name` the nearest one when it is nearer to `word` than `*best` edits, and near
 * enough to be meant. */
void hb_consider(const char *word, const char *name, const char **nearest, unsigned *best);

/* The rows of `hash ...`, in hash_rows.c; both end with a row without a name. */
extern const struct hb_command hb_hash_commands[];
extern const struct hb_option hb_hash_option_rows[];

/* Fills `ctl` (whose streams are set) from the command line. Returns true when there is a command
 * to run; else it has printed what was asked for (--version) or what is wrong, and `*status` is the
 * exit status. */
bool hb_command_line_parse(struct hb_ctl *ctl, int argc, char **argv, int *status);

#endif
