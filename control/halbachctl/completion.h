/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * completion.h: what may stand where on the command line, from the rows of the command table.
 *
 * Arguments are known by their names in the rows: BACKEND, POOL, SERVICE, FILE, PATH, INTERFACE,
 * COMMAND; and "a|b" are words to choose from. So a row that is added is completed at once.
 */
#ifndef HB_CTL_COMPLETION_H
#define HB_CTL_COMPLETION_H

#include <stdbool.h>
#include <stdio.h>

#include "command_line.h"

enum hb_complete {
    HB_COMPLETE_NOTHING,
    HB_COMPLETE_BACKENDS,
    HB_COMPLETE_POOLS,
    HB_COMPLETE_SERVICES,
    HB_COMPLETE_FILES,
    HB_COMPLETE_INTERFACES,
    HB_COMPLETE_COMMANDS,
    HB_COMPLETE_WORDS,
};

struct hb_completion {
    enum hb_complete kind;
    char words[256]; /* with blanks between them */
};

/* What an option takes; HB_COMPLETE_NOTHING when it takes something nobody can guess. */
void hb_complete_option(const struct hb_option *option, struct hb_completion *completion);
/* What argument number `index` (from 0) of a command is. False when it has no such argument. */
bool hb_complete_argument(const struct hb_command *command, unsigned index,
                          struct hb_completion *completion);

/* Whether an earlier row begins with the same word. `size` bytes are the word. */
bool hb_first_word(size_t row, size_t *size);

void hb_completion_bash(FILE *to);
void hb_completion_zsh(FILE *to);

#endif
