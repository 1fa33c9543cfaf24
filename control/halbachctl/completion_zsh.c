/* SPDX-License-Identifier: BSD-3-Clause */
/* The script for zsh. The first line lets compinit find it when it is installed. */
#include <string.h>

#include "completion.h"

/* In single quotes, for _describe: a colon ends the word that is described. */
static void print_quoted(FILE *to, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs("'\\''", to);
        else if (*text == ':')
            fputs("\\:", to);
        else
            fputc(*text, to);
    }
}

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
        fputs("_files", to);
        break;
    case HB_COMPLETE_INTERFACES:
        fputs("compadd -- /sys/class/net/*(N:t)", to);
        break;
    case HB_COMPLETE_COMMANDS:
        fputs("_describe command commands", to);
        break;
    case HB_COMPLETE_WORDS:
        fprintf(to, "compadd -- %s", completion->words);
        break;
    case HB_COMPLETE_NOTHING:
        fputs("_message 'a value'", to);
    }
}

/* Words with what they do; of a command with verbs only the word. */
static void print_commands(FILE *to)
{
    const struct hb_command *command;
    size_t size;

    fputs("    local -a commands=(\n", to);
    for (size_t i = 0; (command = hb_command_at(i)) != NULL; i++) {
        if (!hb_first_word(i, &size))
            continue;
        fprintf(to, "        '%.*s", (int)size, command->name);
        if (command->name[size] == '\0') {
            fputc(':', to);
            print_quoted(to, command->summary);
        }
        fputs("'\n", to);
    }
    fputs("    )\n    local -A verbs=(", to);
    for (size_t i = 0; (command = hb_command_at(i)) != NULL; i++) {
        const struct hb_command *other;

        if (!hb_first_word(i, &size) || command->name[size] == '\0')
            continue;
        fprintf(to, " %.*s '", (int)size, command->name);
        for (size_t j = i; (other = hb_command_at(j)) != NULL; j++) {
            if (strncmp(other->name, command->name, size + 1) == 0)
                fprintf(to, "%s%s", j > i ? " " : "", other->name + size + 1);
        }
        fputs("'", to);
    }
    fputs(" )\n", to);
}

static void print_arguments_of_options(FILE *to)
{
    const struct hb_option *option;

    fputs("    local -a with_argument=(-f", to);
    for (size_t i = 0; (option = hb_option_at(i)) != NULL; i++) {
        if (option->argument && !hb_option_is_optional(option))
            fprintf(to, " --%s", option->name);
    }
    fputs(")\n", to);
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
        fprintf(to, "    (--%s%s) ", option->name, strcmp(option->name, "file") == 0 ? "|-f" : "");
        print_source(to, &completion);
        fputs("; return ;;\n", to);
    }
    fputs("    esac\n", to);
}

static void print_options(FILE *to)
{
    const struct hb_command *command;
    const struct hb_option *option;

    fputs("        local -a options=(", to);
    for (size_t o = 0; (option = hb_option_at(o)) != NULL; o++) {
        if (!option->global)
            continue;
        fprintf(to, "'--%s:", option->name);
        print_quoted(to, option->summary);
        fputs("' ", to);
    }
    fputs(")\n        case $command in\n", to);
    for (size_t i = 0; (command = hb_command_at(i)) != NULL; i++) {
        fprintf(to, "        ('%s') options+=(", command->name);
        for (size_t o = 0; (option = hb_option_at(o)) != NULL; o++) {
            if (option->global || !hb_command_takes(command, option))
                continue;
            fprintf(to, "'--%s:", option->name);
            print_quoted(to, option->summary);
            fputs("' ", to);
        }
        fputs(") ;;\n", to);
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
            fprintf(to, "    ('%s:%u') ", command->name, a);
            print_source(to, &completion);
            fputs(" ;;\n", to);
        }
    }
    fputs("    esac\n", to);
}

void hb_completion_zsh(FILE *to)
{
    fputs("#compdef halbachctl\n"
          "# zsh completion for halbachctl; made by 'halbachctl completion zsh'\n\n"
          "# Names that the running control knows.\n"
          "_halbachctl_names() {\n"
          "    compadd -- ${(f)\"$(halbachctl $socket completion $1 2>/dev/null)\"}\n"
          "}\n\n"
          "_halbachctl() {\n"
          "    local current=$words[CURRENT] previous=$words[CURRENT-1]\n"
          "    local command='' word\n"
          "    local -i index place=0 skip=0\n"
          "    local -a socket\n",
          to);
    print_commands(to);
    print_arguments_of_options(to);
    fputs("    for ((index = 2; index < CURRENT; index++)); do\n"
          "        word=$words[index]\n"
          "        if ((skip)); then\n"
          "            skip=0\n"
          "        elif [[ $word == --socket ]]; then\n"
          "            socket=(--socket $words[index+1])\n"
          "            skip=1\n"
          "        elif [[ $word == -f && $command == events ]]; then\n"
          "            continue\n"
          "        elif ((${with_argument[(Ie)$word]})); then\n"
          "            skip=1\n"
          "        elif [[ $word == -* || ($word =~ '^[0-9.]+$' && $words[index-1] == --watch) ]]; "
          "then\n"
          "            continue\n"
          "        elif [[ -z $command ]]; then\n"
          "            command=$word\n"
          "        elif [[ -n ${verbs[$command]} ]]; then\n"
          "            command+=\" $word\"\n"
          "        else\n"
          "            ((place += 1))\n"
          "        fi\n"
          "    done\n\n"
          "    if [[ $previous != -f || $command != events ]]; then\n",
          to);
    print_option_values(to);
    fputs("    fi\n\n    if [[ $current == -* ]]; then\n", to);
    print_options(to);
    fputs("        _describe option options\n        return\n    fi\n\n"
          "    if [[ -z $command ]]; then _describe command commands; return; fi\n"
          "    if [[ -n ${verbs[$command]} ]]; then compadd -- ${=verbs[$command]}; return; fi\n",
          to);
    print_positions(to);
    fputs("}\n\n"
          "# Found by compinit this is the function's body; read by 'source' it must be told.\n"
          "if [[ $funcstack[1] == _halbachctl ]]; then\n"
          "    _halbachctl \"$@\"\n"
          "elif (($+functions[compdef])); then\n"
          "    compdef _halbachctl halbachctl\n"
          "fi\n",
          to);
}
