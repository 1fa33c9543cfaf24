/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl completion */
#include "completion.h"

#include <stdlib.h>
#include <string.h>

#include "api_client.h"
#include "json.h"

static const struct {
    const char *name;
    enum hb_complete kind;
} placeholders[] = {
    {"BACKEND", HB_COMPLETE_BACKENDS},     {"POOL", HB_COMPLETE_POOLS},
    {"SERVICE", HB_COMPLETE_SERVICES},     {"FILE", HB_COMPLETE_FILES},
    {"PATH", HB_COMPLETE_FILES},           {"N|FILE", HB_COMPLETE_FILES},
    {"INTERFACE", HB_COMPLETE_INTERFACES}, {"COMMAND", HB_COMPLETE_COMMANDS},
};

/* Options whose summary, not their placeholder, tells the words. */
static const struct {
    const char *option, *words;
} choices[] = {
    {"at-deadline", "keep reassign reset"},
    {"kind", "moves shares failures balance ring"},
    {"algorithms", "modulo ring ketama rendezvous skeleton jump maglev"},
};

/* A placeholder, or words with bars between them. */
static void classify(const char *text, size_t size, struct hb_completion *completion)
{
    completion->kind = HB_COMPLETE_NOTHING;
    completion->words[0] = '\0';
    for (size_t p = 0; p < sizeof(placeholders) / sizeof(placeholders[0]); p++) {
        if (strlen(placeholders[p].name) == size && strncmp(placeholders[p].name, text, size) == 0)
            completion->kind = placeholders[p].kind;
    }
    /* "tcp|udp" is a choice, "INTERFACE | PCI-ADDRESS" is not. */
    if (completion->kind != HB_COMPLETE_NOTHING || !memchr(text, '|', size) ||
        size >= sizeof(completion->words) || (text[0] >= 'A' && text[0] <= 'Z'))
        return;
    completion->kind = HB_COMPLETE_WORDS;
    for (size_t i = 0; i < size; i++)
        completion->words[i] = text[i] == '|' ? ' ' : text[i];
    completion->words[size] = '\0';
}

void hb_complete_option(const struct hb_option *option, struct hb_completion *completion)
{
    completion->kind = HB_COMPLETE_NOTHING;
    completion->words[0] = '\0';
    if (option->argument)
        classify(option->argument, strlen(option->argument), completion);
    for (size_t c = 0; c < sizeof(choices) / sizeof(choices[0]); c++) {
        if (strcmp(choices[c].option, option->name) != 0)
            continue;
        completion->kind = HB_COMPLETE_WORDS;
        snprintf(completion->words, sizeof(completion->words), "%s", choices[c].words);
    }
}

bool hb_complete_argument(const struct hb_command *command, unsigned index,
                          struct hb_completion *completion)
{
    const char *text = command->arguments;
    unsigned at = 0;

    completion->kind = HB_COMPLETE_NOTHING;
    if (index >= command->most)
        return false;
    while (*text != '\0') {
        size_t gap = strspn(text, " []"), size;

        text += gap;
        size = strcspn(text, " []");
        if (size == 0)
            break;
        if (strncmp(text, "...", size) == 0 && size == 3)
            return true; /* the last one again and again */
        classify(text, size, completion);
        text += size;
        /* An alternative is the same argument. */
        if (strncmp(text, " | ", 3) == 0)
            text += 3 + strcspn(text + 3, " []");
        if (at++ == index)
            return true;
    }
    return at > 0 && strstr(command->arguments, "...") != NULL;
}

bool hb_first_word(size_t row, size_t *size)
{
    const char *name = hb_command_at(row)->name;

    *size = strcspn(name, " ");
    for (size_t other = 0; other < row; other++) {
        const char *before = hb_command_at(other)->name;

        if (strcspn(before, " ") == *size && strncmp(before, name, *size) == 0)
            return false;
    }
    return true;
}

/* --- names from the running control --- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Each name once, sorted. */
static void print_names(FILE *to, const json_t *list, const char *member)
{
    size_t count = json_array_size(list), i;
    const char **names = calloc(count + 1, sizeof(*names));

    for (i = 0; names && i < count; i++)
        names[i] = hb_json_text(json_array_get(list, i), member);
    if (names)
        qsort(names, count, sizeof(*names), compare_names);
    for (i = 0; names && i < count; i++) {
        if (i == 0 || strcmp(names[i - 1], names[i]) != 0)
            fprintf(to, "%s\n", names[i]);
    }
    free(names);
}

/* A shell that completes wants names or nothing: no complaint when control is away. */
static int complete_names(const struct hb_ctl *ctl, const char *path, const char *list,
                          const char *member)
{
    struct hb_answer answer;
    bool good = hb_api_request(ctl->socket_path, false, path, &answer) == 0;

    if (good)
        print_names(ctl->screen.out, hb_json_at(answer.json, list), member);
    hb_answer_free(&answer);
    return good ? HB_EXIT_OK : HB_EXIT_FAILED;
}

int hb_ctl_completion(const struct hb_ctl *ctl)
{
    const char *what = ctl->arguments[0];

    if (strcmp(what, "bash") == 0)
        hb_completion_bash(ctl->screen.out);
    else if (strcmp(what, "zsh") == 0)
        hb_completion_zsh(ctl->screen.out);
    else if (strcmp(what, "backends") == 0)
        return complete_names(ctl, "/v1/backends", "backends", "name");
    else if (strcmp(what, "pools") == 0)
        return complete_names(ctl, "/v1/status", "pools", "name");
    else if (strcmp(what, "services") == 0)
        return complete_names(ctl, "/v1/services", "services", "name");
    else {
        fprintf(ctl->err,
                "halbachctl: nothing is known of '%s'; give bash, zsh, backends, pools or "
                "services\n",
                what);
        return HB_EXIT_USAGE;
    }
    return HB_EXIT_OK;
}
