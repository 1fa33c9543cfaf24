/* SPDX-License-Identifier: BSD-3-Clause */
/* The script for bash. It needs no other package: bash gives the words, compgen filters. */
#include <string.h>

#include "completion.h"

static void print_source(FILE *to, const struct hb_completion *completion)
{
    switch (completion->kind) {
    case HB_COMPLETE_BACKENDS:
        fputs("_halbachctl_names backends", to);
        break;
    case HB_COMPLETE_POOLS:
        fputs("_halbachctl_names pools", to);
        break;
    case HB_COMPLETE_SERVICES:
        fputs("_halbachctl_names services", to);
        break;
    case HB_COMPLETE_FILES:
        fputs("compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "
              "\"$current\")",
              to);
        break;
    case HB_COMPLETE_INTERFACES:
        fputs("_halbachctl_words \"$(command ls /sys/class/net 2>/dev/null)\"", to);
        break;
    case HB_COMPLETE_COMMANDS:
        fputs("_halbachctl_words \"$commands\"", to);
        break;
    case HB_COMPLETE_WORDS:
        fprintf(to, "_halbachctl_words '%s'", completion->words);
        break;
    case HB_COMPLETE_NOTHING:
        fputs("COMPREPLY=()", to);
    }
}

/* "commands='status services ...'", and the second words of those that have two. */
static void print_commands(FILE *to)
{
    const struct hb_command *command;
    size_t size;

    fputs("    local commands='", to);
    for (size_t i = 0; (command = hb_command_at(i)) != NULL; i++) {
        if (hb_first_word(i, &size))
            fprintf(to, "%s%.*s", i > 0 ? " " : "", (int)size, command->name);
    }
    fputs("'\n    local -A verbs=(", to);
    for (size_t i = 0; (command = hb_command_at(i)) != NULL; i++) {
        const struct hb_command *other;

        if (!hb_first_word(i, &size) || command->name[size] == '\0')
            continue;
        fprintf(to, "[%.*s]='", (int)size, command->name);
        for (size_t j = i; (other = hb_command_at(j)) != NULL; j++) {
            if (strncmp(other->name, command->name, size + 1) == 0)
                fprintf(to, "%s%s", j > i ? " " : "", other->name + size + 1);
        }
        fputs("' ", to);
    }
    fputs(")\n", to);
}

/* Options with an argument, so that it is not taken for a command. */
static void print_arguments_of_options(FILE *to)
{
    const struct hb_option *option;
    const char *bar = "";

    fputs("    local with_argument='@(", to);
    for (size_t i = 0; (option = hb_option_at(i)) != NULL; i++) {
        if (!option->argument || hb_option_is_optional(option))
            continue;
        fprintf(to, "%s--%s", bar, option->name);
        bar = "|";
    }
    fputs("|-f)'\n", to);
}

static void print_option_values(FILE *to)
{
    const struct hb_option *option;
    struct hb_completion completion;

    fputs("    case $previous in\n", to);
    for (size_t i = 0; (option = hb_option_at(i)) != NULL; i++) {
        if (!option->argument || hb_option_is_optional(option))
            continue;
        hb_complete_option(option, &completion);
        fprintf(to, "    --%s%s) ", option->name, strcmp(option->name, "file") == 0 ? " | -f" : "");
        print_source(to, &completion);
        fputs("; return ;;\n", to);
    }
    fputs("    esac\n", to);
}

static void print_options(FILE *to)
{
    const struct hb_command *command;
    const struct hb_option *option;

    fputs("        case $command in\n", to);
    for (size_t i = 0; (command = hb_command_at(i)) != NULL; i++) {
        fprintf(to, "        '%s') options+='", command->name);
        for (size_t o = 0; (option = hb_option_at(o)) != NULL; o++) {
            if (!option->global && hb_command_takes(command, option))
                fprintf(to, " --%s", option->name);
        }
        fputs("' ;;\n", to);
    }
    fputs("        esac\n", to);
}

static void print_positions(FILE *to)
{
    const struct hb_command *command;
    struct hb_completion completion;

    fputs("    case $command:$place in\n", to);
    for (size_t i = 0; (command = hb_command_at(i)) != NULL; i++) {
        for (unsigned a = 0; hb_complete_argument(command, a, &completion); a++) {
            if (completion.kind == HB_COMPLETE_NOTHING)
                continue;
            fprintf(to, "    '%s':%u) ", command->name, a);
            print_source(to, &completion);
            fputs(" ;;\n", to);
        }
    }
    fputs("    esac\n", to);
}

void hb_completion_bash(FILE *to)
{
    const struct hb_option *option;

    fputs("# bash completion for halbachctl; made by 'halbachctl completion bash'\n"
          "# shellcheck shell=bash disable=SC2053\n\n"
          "# Words that fit: $1 has them.\n"
          "_halbachctl_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$current\"); }\n\n"
          "# Names that the running control knows.\n"
          "_halbachctl_names() { _halbachctl_words \"$(halbachctl \"${socket[@]}\" completion "
          "\"$1\" 2>/dev/null)\"; }\n\n"
          "_halbachctl() {\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local command='' word index place=0 skip=0 socket=()\n",
          to);
    print_commands(to);
    print_arguments_of_options(to);
    fputs(
        "    COMPREPLY=()\n"
        "    # Bash splits --pool=web into three words.\n"
        "    if [[ $current == = ]]; then current=''; fi\n"
        "    if [[ $previous == = ]]; then previous=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
        "    for ((index = 1; index < COMP_CWORD; index++)); do\n"
        "        word=${COMP_WORDS[index]}\n"
        "        if [[ $word == = ]]; then\n"
        "            skip=1\n"
        "        elif ((skip)); then\n"
        "            skip=0\n"
        "        elif [[ $word == --socket ]]; then\n"
        "            socket=(--socket \"${COMP_WORDS[index + 1]}\")\n"
        "            skip=1\n"
        "        elif [[ $word == -f && $command == events ]]; then\n"
        "            continue\n"
        "        elif [[ $word == $with_argument ]]; then\n"
        "            skip=1\n"
        "        elif [[ $word == -* || $word =~ ^[0-9.]+$ && ${COMP_WORDS[index - 1]} == --watch "
        "]]; then\n"
        "            continue\n"
        "        elif [[ -z $command ]]; then\n"
        "            command=$word\n"
        "        elif [[ -n ${verbs[$command]:-} ]]; then\n"
        "            command+=\" $word\"\n"
        "        else\n"
        "            place=$((place + 1))\n"
        "        fi\n"
        "    done\n\n",
        to);
    fputs("    if [[ $previous != -f || $command != events ]]; then\n", to);
    print_option_values(to);
    fputs("    fi\n\n    if [[ $current == -* ]]; then\n        local options='", to);
    for (size_t i = 0; (option = hb_option_at(i)) != NULL; i++) {
        if (option->global)
            fprintf(to, "%s--%s", i > 0 ? " " : "", option->name);
    }
    fputs("'\n", to);
    print_options(to);
    fputs("        _halbachctl_words \"$options\"\n        return\n    fi\n\n"
          "    if [[ -z $command ]]; then _halbachctl_words \"$commands\"; return; fi\n"
          "    if [[ -n ${verbs[$command]:-} ]]; then _halbachctl_words \"${verbs[$command]}\"; "
          "return; fi\n",
          to);
    print_positions(to);
    fputs("}\n\ncomplete -F _halbachctl halbachctl\n", to);
}
