/* SPDX-License-Identifier: BSD-3-Clause */
/* What --help and 'halbachctl help' print, from the rows of the tables. */
#include <string.h>

#include "command_line.h"

#define FORM_WIDTH 15
#define TEXT_WIDTH 79 /* of a terminal with 80 columns */

/* "--socket PATH", "--watch [SECONDS]" */
static int option_form(const struct hb_option *option, char *form, size_t size)
{
    bool optional = hb_option_is_optional(option);

    if (!option->argument)
        return snprintf(form, size, "--%s", option->name);
    return snprintf(form, size, "--%s %s%s%s", option->name, optional ? "[" : "", option->argument,
                    optional ? "]" : "");
}

static int form_width(const struct hb_option *option)
{
    char form[32];

    return option_form(option, form, sizeof(form));
}

/* Words from column `at` on; further lines begin there, too. */
static void print_words(FILE *to, int at, const char *words)
{
    int used = at;

    while (*words) {
        int size = (int)strcspn(words, " ");

        if (used > at && used + 1 + size > TEXT_WIDTH) {
            fprintf(to, "\n%*s", at, "");
            used = at;
        }
        used += fprintf(to, "%s%.*s", used > at ? " " : "", size, words);
        words += size + (words[size] == ' ');
    }
    fputc('\n', to);
}

static void print_option(FILE *to, const struct hb_option *option, int width)
{
    char form[32];

    option_form(option, form, sizeof(form));
    fprintf(to, "  %-*s  ", width, form);
    print_words(to, 2 + width + 2, option->summary);
}

void hb_print_overview(FILE *to)
{
    const struct hb_command *command;
    const struct hb_option *option;
    size_t i;

    fprintf(to, "halbachctl [OPTIONS] COMMAND: look at and steer the Halbach load balancer\n\n"
                "Commands:\n");
    for (i = 0; (command = hb_command_at(i)) != NULL; i++)
        fprintf(to, "  %-15s %s\n", command->name, command->summary);
    fprintf(to, "\nOptions of every command:\n");
    for (i = 0; (option = hb_option_at(i)) != NULL; i++) {
        if (option->global)
            print_option(to, option, FORM_WIDTH);
    }
    fprintf(to, "\nExit status: 0, 1 (failed), 2 (wrong usage).\n"
                "'halbachctl help COMMAND' explains one command, with an example.\n");
}

/* `width` 0: all of it on one line. */
static void print_usage(FILE *to, const struct hb_command *command, int width)
{
    const struct hb_option *option;
    int at = fprintf(to, "halbachctl %s%s%s", command->name, *command->arguments ? " " : "",
                     command->arguments);
    size_t i;

    for (i = 0; (option = hb_option_at(i)) != NULL; i++) {
        char form[32];
        int size;

        if (option->global || !hb_command_takes(command, option))
            continue;
        size = option_form(option, form, sizeof(form)) + 3;
        if (width > 0 && at + size > width)
            at = fprintf(to, "\n    ") - 1;
        at += fprintf(to, " [%s]", form);
    }
    fputc('\n', to);
}

void hb_print_usage(FILE *to, const struct hb_command *command)
{
    print_usage(to, command, 0);
}

void hb_print_command(FILE *to, const struct hb_command *command)
{
    const struct hb_option *option;
    int width = FORM_WIDTH;
    size_t i;

    print_usage(to, command, TEXT_WIDTH);
    fprintf(to, "    %s\n\n", command->summary);
    if (*command->details)
        fprintf(to, "%s\n\n", command->details);
    for (i = 0; (option = hb_option_at(i)) != NULL; i++) {
        if (hb_command_takes(command, option) && form_width(option) > width)
            width = form_width(option);
    }
    fprintf(to, "Options:\n");
    for (i = 0; (option = hb_option_at(i)) != NULL; i++) {
        if (hb_command_takes(command, option))
            print_option(to, option, width);
    }
    fprintf(to, "\nExample: %s\n    %s\n", command->example, command->example_text);
}
