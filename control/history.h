/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * history.h: which generations there were and who or what caused each, and the configurations that
 * were accepted, so that a former one can be taken again (rollback).
 *
 * Kept beside the state file: the index FILE.history (JSON, the last generations and a row for each
 * configuration) and FILE.configs/NUMBER.yaml, the configurations as they were read. They have the
 * seed in them, so nobody but the owner may read them. Each file is replaced as a whole
 * (whole_file.h). An index that is torn or foreign is set aside; a configuration whose digest is
 * not that of the index is never taken.
 *
 * Configurations are numbered 1, 2, 3, ... in the order in which they were accepted. One of them is
 * in use. After a rollback that is not the newest, and it stays in use, also over a restart of
 * control, until the configuration file is reloaded or is another one than it was then.
 *
 * One thread. Reads no clock.
 */
#ifndef HB_CONTROL_HISTORY_H
#define HB_CONTROL_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "events.h"

#define HB_HISTORY_GENERATIONS  200 /* rows kept */
#define HB_HISTORY_ACTIONS      100 /* kept */
#define HB_CONFIGURATIONS_MAX   100
#define HB_CONFIGURATIONS_KEPT  10 /* unless the configuration says otherwise */
#define HB_CONFIGURATION_DIGEST 33 /* bytes of its text */

enum hb_outcome { HB_OUTCOME_WANTED, HB_OUTCOME_SERVED, HB_OUTCOME_REFUSED, HB_OUTCOMES };

/* One row: a generation, or several that follow one another, all of them routine (the steps of slow
 * starts, slots that settle) with the same outcome. So routine pushes nothing out that somebody
 * did.
 */
struct hb_past_generation {
    uint64_t number; /* of the last */
    uint64_t first;  /* none is missing in between */
    uint64_t unix_s, first_unix_s;
    uint64_t configuration; /* its number; 0: not known */
    uint64_t moved;         /* slots, in all tables and generations */
    bool routine;           /* not kept over restarts: a row of before takes no more in */
    enum hb_outcome outcome;
    struct hb_actor actor;
    char cause[HB_EVENT_CAUSE];
};

/* What somebody did that makes no generation. */
struct hb_past_action {
    uint64_t unix_s;
    uint64_t generation; /* the last that was wanted then; 0: none */
    struct hb_actor actor;
    char text[HB_EVENT_CAUSE];
};

struct hb_past_configuration {
    uint64_t number;
    uint64_t unix_s;
    uint64_t size;
    struct hb_actor actor;
    char digest[HB_CONFIGURATION_DIGEST];
    char cause[HB_EVENT_CAUSE];
};

struct hb_history {
    char *path, *folder;
    struct hb_past_generation generations[HB_HISTORY_GENERATIONS]; /* oldest first */
    uint32_t generations_count;
    struct hb_past_action actions[HB_HISTORY_ACTIONS]; /* oldest first */
    uint32_t actions_count;
    struct hb_past_configuration configurations[HB_CONFIGURATIONS_MAX]; /* oldest first */
    uint32_t configurations_count;
    uint64_t in_use; /* a configuration's number; 0: none yet */
    bool rolled_back;
    uint64_t rolled_back_unix;
    struct hb_actor rolled_back_by;
    char left_file[HB_CONFIGURATION_DIGEST]; /* the configuration file at the rollback */
    bool changed;                            /* since it was saved */
};

/* Reads what is there; a file that cannot be used is set aside (logged). NULL without memory. */
struct hb_history *hb_history_open(const char *state_file);
/* Does not save. */
void hb_history_close(struct hb_history *history);

/* Replaces the index. 0 or negative errno; then `changed` stays. */
int hb_history_save(struct hb_history *history);

/* --- generations --- */

/* A new generation is wanted; its number must be above all before. `first` and `first_unix_s` are
 * filled in. */
void hb_history_add(struct hb_history *history, const struct hb_past_generation *generation);
/* What became of a generation; nothing when it is not kept. */
void hb_history_outcome(struct hb_history *history, uint64_t number, enum hb_outcome outcome);

/* --- actions --- */

void hb_history_act(struct hb_history *history, uint64_t unix_s, const struct hb_actor *actor,
                    const char *text);

/* --- configurations --- */

/* A configuration was accepted and is in use now: not by a rollback, so the file is followed again.
 * Writes its text down when it is not the one in use or the newest, drops the oldest above `keep`,
 * and saves. Negative errno: it is in use but could not be kept. */
int hb_history_accept(struct hb_history *history, const char *text, size_t size, uint32_t keep,
                      uint64_t unix_s, const struct hb_actor *actor, const char *cause);

/* The number of the configuration before the one in use, or 0. */
uint64_t hb_history_previous(const struct hb_history *history);
/* NULL when it is not kept. */
const struct hb_past_configuration *hb_history_find(const struct hb_history *history,
                                                    uint64_t number);
/* Its text, which the caller frees. -ENOENT: it is not kept. -EBADMSG: it is not what was written.
 */
int hb_history_read(const struct hb_history *history, uint64_t number, char **text, size_t *size);

/* A former configuration is in use now; `file` is the text that the configuration file has. Saves;
 * negative errno: it would not survive a restart of control. */
int hb_history_roll_back(struct hb_history *history, uint64_t number, const char *file, size_t size,
                         uint64_t unix_s, const struct hb_actor *actor);
/* At the start: whether a rollback still holds, given the text that the configuration file has. */
bool hb_history_holds(const struct hb_history *history, const char *file, size_t size);

#endif
