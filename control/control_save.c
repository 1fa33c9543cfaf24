/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What control writes down: the state file, the history, the owners of slots.
 *
 * What an operator is told to be done is on the disk before: that is written at once. All else is
 * written in the background (background.h) from a copy made now, so that neither a slow disk nor
 * the text of ten thousand backends holds checks and generations up.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "background.h"
#include "clock.h"
#include "control.h"
#include "log.h"
#include "slot_files.h"
#include "take_over.h"

/* Says an error once, until it is another one. */
static void note_error(int *last, int error, const char *path, const char *what, const char *again)
{
    if (error != 0 && error != *last)
        hb_log(HB_LOG_ERROR,
               "%s: %s cannot be saved: %s; check the folder's mode and free space (%s)", path,
               what, strerror(-error), again);
    *last = error;
}

/* --- the state file --- */

#define STATE "state"

struct state_job {
    const char *path;
    struct hb_state state;
};

static int describe_state(struct hb_control *control, struct hb_state *state)
{
    int error = hb_state_of_model(control->model, control->publication.highest, hb_now_ms(),
                                  hb_now_unix_ms(), state);

    state->withdrawn = control->maintenance.withdrawn;
    state->withdrawn_since_unix = control->maintenance.since_unix;
    return error;
}

static void note_state(struct hb_control *control, int error)
{
    control->state_dirty = control->state_dirty || error != 0;
    note_error(&control->state_error, error, control->options.state, "the state",
               "tried again every second");
}

int hb_control_save(struct hb_control *control)
{
    struct hb_state state;
    int error = describe_state(control, &state);

    hb_background_hold(control->background, STATE);
    if (error == 0)
        error = hb_state_save(control->options.state, &state);
    hb_state_clear(&state);
    control->state_dirty = false;
    note_state(control, error);
    return error;
}

static int run_state(void *data)
{
    const struct state_job *job = data;

    return hb_state_save(job->path, &job->state);
}

static void state_done(void *context, const void *data, int error)
{
    (void)data;
    note_state(context, error);
}

static void free_state(void *data)
{
    struct state_job *job = data;

    hb_state_clear(&job->state);
    free(job);
}

void hb_control_save_soon(struct hb_control *control)
{
    struct state_job *job = calloc(1, sizeof(*job));

    if (job == NULL || describe_state(control, &job->state) != 0) {
        free(job);
        return; /* it stays dirty */
    }
    job->path = control->options.state;
    control->state_dirty = false;
    hb_background_add(control->background, &(struct hb_job){.name = STATE,
                                                            .run = run_state,
                                                            .done = state_done,
                                                            .free = free_state,
                                                            .data = job,
                                                            .context = control});
}

/* --- the history --- */

#define HISTORY "history"

static void note_history(struct hb_control *control, int error)
{
    control->history->changed = control->history->changed || error != 0;
    note_error(&control->history_error, error, control->history->path, "the history",
               "tried again every second");
}

void hb_control_hold_history(struct hb_control *control)
{
    if (hb_background_hold(control->background, HISTORY))
        control->history->changed = true;
}

void hb_control_save_history(struct hb_control *control)
{
    hb_control_hold_history(control);
    if (control->history->changed)
        note_history(control, hb_history_save(control->history));
}

void hb_control_note_action(struct hb_control *control, const char *text)
{
    struct hb_actor actor = hb_events_actor(control->events);

    hb_history_act(control->history, hb_now_unix(), &actor, text);
    hb_control_save_history(control);
}

static int run_history(void *data)
{
    return hb_history_save(data);
}

static void history_done(void *context, const void *data, int error)
{
    (void)data;
    note_history(context, error);
}

void hb_control_save_history_soon(struct hb_control *control)
{
    struct hb_history *copy;

    if (!control->history->changed)
        return;
    copy = malloc(sizeof(*copy)); /* its paths stay control's */
    if (copy == NULL)
        return;
    *copy = *control->history;
    control->history->changed = false;
    hb_background_add(control->background, &(struct hb_job){.name = HISTORY,
                                                            .run = run_history,
                                                            .done = history_done,
                                                            .free = free,
                                                            .data = copy,
                                                            .context = control});
}

/* --- the owners of slots --- */

struct slots_job {
    const char *folder;
    char pool[HB_NAME_SIZE];
    void *file;
    size_t size;
};

/* "slots POOL" */
static const char *slots_name(const char *pool, char *name, size_t size)
{
    snprintf(name, size, "slots %s", pool);
    return name;
}
#define SLOTS_NAME_SIZE (HB_NAME_SIZE + 8)

static int run_slots(void *data)
{
    const struct slots_job *job = data;

    return hb_slot_file_put(job->folder, job->pool, job->file, job->size);
}

static void slots_done(void *context, const void *data, int error)
{
    const struct slots_job *job = data;
    struct hb_control *control = context;
    struct hb_model_pool *pool = hb_model_pool(control->model, job->pool);

    if (error != 0 && pool != NULL)
        pool->history.changed = true;
    note_error(&control->slots_error, error, control->slots, "the owners of slots",
               "tried again with the next change");
}

static void free_slots(void *data)
{
    struct slots_job *job = data;

    free(job->file);
    free(job);
}

static void save_slots(struct hb_control *control, struct hb_model_pool *pool)
{
    struct slots_job *job = calloc(1, sizeof(*job));
    char name[SLOTS_NAME_SIZE];

    if (job != NULL)
        job->file = hb_slot_file_make(pool, &job->size);
    if (job == NULL || job->file == NULL) {
        free(job);
        note_error(&control->slots_error, -ENOMEM, control->slots, "the owners of slots",
                   "tried again with the next change");
        return;
    }
    job->folder = control->slots;
    memcpy(job->pool, pool->name, sizeof(job->pool));
    pool->history.changed = false;
    hb_background_add(control->background,
                      &(struct hb_job){.name = slots_name(pool->name, name, sizeof(name)),
                                       .run = run_slots,
                                       .done = slots_done,
                                       .free = free_slots,
                                       .data = job,
                                       .context = control});
}

void hb_control_save_slots(struct hb_control *control)
{
    for (uint32_t p = 0; p < control->model->pools_count; p++) {
        struct hb_model_pool *pool = &control->model->pools[p];

        if (pool->history.changed && pool->history.owner != NULL)
            save_slots(control, pool);
    }
}

static bool is_unsaved(struct hb_control *control, const struct hb_model_pool *pool)
{
    char name[SLOTS_NAME_SIZE];

    return pool->owner != NULL &&
           (pool->history.changed ||
            hb_background_has(control->background, slots_name(pool->name, name, sizeof(name))));
}

void hb_control_tables_to_leave_out(struct hb_control *control, struct hb_held_tables *tables)
{
    const struct hb_held_tables *held = &control->publication.held;
    bool busy = hb_background_busy(control->background);

    tables->count = 0;
    tables->digest = calloc(held->count + 1, sizeof(*tables->digest));
    if (tables->digest == NULL)
        return;
    if (held->count > 0)
        memcpy(tables->digest, held->digest, held->count * sizeof(*tables->digest));
    tables->count = held->count;
    for (uint32_t p = 0; p < control->model->pools_count; p++) {
        const struct hb_model_pool *pool = &control->model->pools[p];

        if (!(busy || pool->history.changed) || !is_unsaved(control, pool))
            continue;
        for (uint32_t t = tables->count; t-- > 0;)
            if (memcmp(tables->digest[t], pool->digest, HB_DIGEST_SIZE) == 0)
                memcpy(tables->digest[t], tables->digest[--tables->count], HB_DIGEST_SIZE);
    }
}
