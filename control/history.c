/* SPDX-License-Identifier: BSD-3-Clause */
#include "history.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "history_file.h"
#include "whole_file.h"

/* --- generations --- */

static bool acted_after(const struct hb_history *history, uint64_t generation)
{
    for (uint32_t a = 0; a < history->actions_count; a++) {
        if (history->actions[a].generation == generation)
            return true;
    }
    return false;
}

/* Whether what came after is more of the same. A generation that was refused stands for itself. */
static bool goes_on(const struct hb_history *history, const struct hb_past_generation *row,
                    const struct hb_past_generation *next)
{
    return row->routine && next->routine && row->number + 1 == next->first &&
           row->configuration == next->configuration && row->outcome == next->outcome &&
           row->outcome != HB_OUTCOME_REFUSED && !acted_after(history, row->number);
}

static void join_causes(char cause[HB_EVENT_CAUSE], const char *more)
{
    char parts[HB_EVENT_CAUSE], *next;
    bool all = true;

    snprintf(parts, sizeof(parts), "%s", more);
    for (char *part = parts; part != NULL; part = next) {
        next = strstr(part, "; ");
        if (next != NULL) {
            *next = '\0';
            next += 2;
        }
        all = hb_cause_add(cause, part) && all;
    }
    if (!all && !hb_cause_add(cause, "and more"))
        strcat(cause, "; and more"); /* there is always room for it */
}

/* Makes one row of the last two, if they belong together. */
static void fold_last(struct hb_history *history)
{
    struct hb_past_generation *row, *last;

    if (history->generations_count < 2)
        return;
    last = &history->generations[history->generations_count - 1];
    row = last - 1;
    if (!goes_on(history, row, last))
        return;
    row->number = last->number;
    row->unix_s = last->unix_s;
    row->moved += last->moved;
    join_causes(row->cause, last->cause);
    history->generations_count--;
}

void hb_history_add(struct hb_history *history, const struct hb_past_generation *generation)
{
    struct hb_past_generation *last;

    /* Two that nobody has answered: without a dataplane a slow start goes on. */
    fold_last(history);
    if (history->generations_count == HB_HISTORY_GENERATIONS) {
        history->generations_count--;
        memmove(history->generations, history->generations + 1,
                history->generations_count * sizeof(history->generations[0]));
    }
    last = &history->generations[history->generations_count++];
    *last = *generation;
    last->first = last->number;
    last->first_unix_s = last->unix_s;
    history->changed = true;
}

void hb_history_outcome(struct hb_history *history, uint64_t number, enum hb_outcome outcome)
{
    for (uint32_t g = history->generations_count; g-- > 0;) {
        if (history->generations[g].number != number)
            continue;
        history->changed |= history->generations[g].outcome != outcome;
        history->generations[g].outcome = outcome;
        fold_last(history);
        return;
    }
}

/* --- actions --- */

void hb_history_act(struct hb_history *history, uint64_t unix_s, const struct hb_actor *actor,
                    const char *text)
{
    struct hb_past_action *action;

    if (history->actions_count == HB_HISTORY_ACTIONS) {
        history->actions_count--;
        memmove(history->actions, history->actions + 1,
                history->actions_count * sizeof(history->actions[0]));
    }
    action = &history->actions[history->actions_count++];
    *action = (struct hb_past_action){.unix_s = unix_s, .actor = *actor};
    if (history->generations_count > 0)
        action->generation = history->generations[history->generations_count - 1].number;
    snprintf(action->text, sizeof(action->text), "%s", text);
    history->changed = true;
}

/* --- configurations --- */

static void make_digest(const char *text, size_t size, char digest[HB_CONFIGURATION_DIGEST])
{
    XXH128_hash_t hash = XXH3_128bits(text, size);

    snprintf(digest, HB_CONFIGURATION_DIGEST, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64,
             (uint64_t)hash.low64);
}

static bool name_file(const struct hb_history *history, uint64_t number, char path[PATH_MAX])
{
    return snprintf(path, PATH_MAX, "%s/%" PRIu64 ".yaml", history->folder, number) < PATH_MAX;
}

static void drop_oldest(struct hb_history *history)
{
    char path[PATH_MAX];

    if (name_file(history, history->configurations[0].number, path))
        unlink(path);
    history->configurations_count--;
    memmove(history->configurations, history->configurations + 1,
            history->configurations_count * sizeof(history->configurations[0]));
}

const struct hb_past_configuration *hb_history_find(const struct hb_history *history,
                                                    uint64_t number)
{
    for (uint32_t c = 0; c < history->configurations_count; c++) {
        if (history->configurations[c].number == number)
            return &history->configurations[c];
    }
    return NULL;
}

uint64_t hb_history_previous(const struct hb_history *history)
{
    uint64_t previous = 0;

    for (uint32_t c = 0; c < history->configurations_count; c++) {
        if (history->configurations[c].number < history->in_use)
            previous = history->configurations[c].number;
    }
    return previous;
}

/* The one that is in use, or the newest, if it has this text: it gets no second number. */
static const struct hb_past_configuration *find_same(const struct hb_history *history,
                                                     const char *digest)
{
    const struct hb_past_configuration *in_use = hb_history_find(history, history->in_use);
    const struct hb_past_configuration *newest =
        history->configurations_count > 0
            ? &history->configurations[history->configurations_count - 1]
            : NULL;

    if (in_use != NULL && strcmp(in_use->digest, digest) == 0)
        return in_use;
    return newest != NULL && strcmp(newest->digest, digest) == 0 ? newest : NULL;
}

static int write_down(const struct hb_history *history, uint64_t number, const char *text,
                      size_t size)
{
    char path[PATH_MAX];

    if (!name_file(history, number, path))
        return -ENAMETOOLONG;
    if (mkdir(history->folder, 0700) != 0 && errno != EEXIST)
        return -errno;
    return hb_whole_file_replace(path, text, size);
}

static uint64_t next_number(const struct hb_history *history)
{
    uint64_t newest = history->in_use;

    if (history->configurations_count > 0 &&
        history->configurations[history->configurations_count - 1].number > newest)
        newest = history->configurations[history->configurations_count - 1].number;
    return newest + 1;
}

int hb_history_accept(struct hb_history *history, const char *text, size_t size, uint32_t keep,
                      uint64_t unix_s, const struct hb_actor *actor, const char *cause)
{
    struct hb_past_configuration made = {.unix_s = unix_s, .size = size, .actor = *actor};
    const struct hb_past_configuration *same;
    int error = 0;

    make_digest(text, size, made.digest);
    same = find_same(history, made.digest);
    made.number = same ? same->number : next_number(history);
    snprintf(made.cause, sizeof(made.cause), "%s", cause);
    if (same == NULL)
        error = write_down(history, made.number, text, size);
    if (same == NULL && error == 0) {
        keep = keep < 2 ? 2 : keep > HB_CONFIGURATIONS_MAX ? HB_CONFIGURATIONS_MAX : keep;
        while (history->configurations_count >= keep)
            drop_oldest(history);
        history->configurations[history->configurations_count++] = made;
    }
    history->changed |= history->in_use != made.number || history->rolled_back;
    history->in_use = made.number;
    history->rolled_back = false;
    return error != 0 ? error : history->changed ? hb_history_save(history) : 0;
}

int hb_history_read(const struct hb_history *history, uint64_t number, char **text, size_t *size)
{
    const struct hb_past_configuration *known = hb_history_find(history, number);
    char path[PATH_MAX], digest[HB_CONFIGURATION_DIGEST];
    int error;

    if (known == NULL || !name_file(history, number, path))
        return -ENOENT;
    error = hb_history_file_read(path, text, size);
    if (error != 0)
        return error;
    make_digest(*text, *size, digest);
    if (*size == known->size && strcmp(digest, known->digest) == 0)
        return 0;
    free(*text);
    *text = NULL;
    return -EBADMSG;
}

int hb_history_roll_back(struct hb_history *history, uint64_t number, const char *file, size_t size,
                         uint64_t unix_s, const struct hb_actor *actor)
{
    history->in_use = number;
    history->rolled_back = true;
    history->rolled_back_unix = unix_s;
    history->rolled_back_by = *actor;
    make_digest(file, size, history->left_file);
    history->changed = true;
    return hb_history_save(history);
}

bool hb_history_holds(const struct hb_history *history, const char *file, size_t size)
{
    char digest[HB_CONFIGURATION_DIGEST];

    make_digest(file, size, digest);
    return history->rolled_back && strcmp(digest, history->left_file) == 0;
}

/* --- life --- */

struct hb_history *hb_history_open(const char *state_file)
{
    struct hb_history *history = calloc(1, sizeof(*history));

    if (history == NULL)
        return NULL;
    if (asprintf(&history->path, "%s.history", state_file) < 0)
        history->path = NULL;
    if (asprintf(&history->folder, "%s.configs", state_file) < 0)
        history->folder = NULL;
    if (history->path == NULL || history->folder == NULL) {
        hb_history_close(history);
        return NULL;
    }
    hb_history_file_load(history);
    return history;
}

void hb_history_close(struct hb_history *history)
{
    if (history == NULL)
        return;
    free(history->path);
    free(history->folder);
    free(history);
}
