/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which configuration is in use: the file's at the start, after each reload, and a former one after
 * a rollback. All ways lead through apply(): a configuration is taken as a whole, in one
 * generation, or refused as a whole.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_server.h"
#include "background.h"
#include "clock.h"
#include "control.h"
#include "history_file.h"
#include "log.h"
#include "slot_files.h"

struct complaints {
    struct hb_control *control;
    json_t *complaints, *warnings;
};

static void on_complaint(void *context, bool warning, const char *message)
{
    struct complaints *complaints = context;
    json_t *list = warning ? complaints->warnings : complaints->complaints;
    char *last = complaints->control->last_error;

    hb_log(warning ? HB_LOG_WARNING : HB_LOG_ERROR, "%s", message);
    if (list != NULL)
        json_array_append_new(list, json_string(message));
    if (!warning && last[0] == '\0')
        snprintf(last, sizeof(complaints->control->last_error), "%s", message);
}

/* A change that is kept in memory only is told; traffic goes before memory. */
static void warn_not_kept(struct complaints *list, int error)
{
    char message[512];

    if (error == 0)
        return;
    snprintf(message, sizeof(message),
             "%s: the configuration is in use, but it could not be kept for a rollback or a "
             "restart: %s; check the folder's mode and free space",
             list->control->history->path, strerror(-error));
    on_complaint(list, true, message);
}

static uint32_t keep_of(const struct hb_config *config)
{
    return config->keep_configurations != 0 ? config->keep_configurations : HB_CONFIGURATIONS_KEPT;
}

/* --- start --- */

/* What a rollback left in use, or NULL (logged): then the file is used. */
static struct hb_config *read_rolled_back(struct hb_control *control)
{
    struct complaints list = {control, NULL, NULL};
    struct hb_config *config = NULL;
    uint64_t number = control->history->in_use;
    char *text = NULL;
    size_t size = 0;
    int error = hb_history_read(control->history, number, &text, &size);

    if (error == 0)
        config = hb_config_parse(text, size, control->options.config, on_complaint, &list);
    if (config != NULL)
        hb_log(HB_LOG_WARNING,
               "configuration %" PRIu64 " is in use since a rollback, not what %s says now; "
               "'halbachctl reload' takes the file again",
               number, control->options.config);
    else
        hb_log(HB_LOG_ERROR,
               "configuration %" PRIu64 ", which a rollback took, cannot be used any more (%s); %s "
               "is used",
               number, error != 0 ? strerror(-error) : "see above", control->options.config);
    free(text);
    control->last_error[0] = '\0';
    return config;
}

struct hb_config *hb_control_read_first(struct hb_control *control)
{
    const char *file = control->options.config;
    struct complaints list = {control, NULL, NULL};
    struct hb_config *config = NULL;

    if (hb_config_read(file, &control->first_text, &control->first_size, on_complaint, &list) == 0)
        config =
            hb_config_parse(control->first_text, control->first_size, file, on_complaint, &list);
    if (hb_history_holds(control->history, control->first_text ? control->first_text : "",
                         control->first_size)) {
        struct hb_config *former = read_rolled_back(control);

        if (former != NULL) {
            hb_config_free(config);
            control->first_rolled_back = true;
            return former;
        }
    }
    return config;
}

void hb_control_accept_first(struct hb_control *control, const struct hb_config *config)
{
    const struct hb_actor nobody = {.by = HB_ACTOR_NONE};
    struct complaints list = {control, NULL, NULL};

    if (!control->first_rolled_back)
        warn_not_kept(&list, hb_history_accept(control->history, control->first_text,
                                               control->first_size, keep_of(config), hb_now_unix(),
                                               &nobody, "start of control"));
    free(control->first_text);
    control->first_text = NULL;
}

/* --- reload and rollback --- */

static int refuse(struct hb_control *control, const char *what, int error)
{
    control->reloads_refused++;
    hb_log(HB_LOG_ERROR, "%s: the %s was refused, nothing has changed", control->options.config,
           what);
    hb_events_add(control->events, HB_NEWS_RELOAD, NULL, NULL, "%s refused: %s", what,
                  control->last_error[0] ? control->last_error : strerror(-error));
    return error;
}

/* Takes a configuration over, all or nothing. What it listens on is opened before anything else is
 * touched. */
static int apply(struct hb_control *control, const struct hb_config *config,
                 struct hb_model_diff *diff, struct complaints *list)
{
    char problem[256];
    int error = hb_api_prepare(control->api, &config->api, problem, sizeof(problem));

    if (error != 0) {
        on_complaint(list, false, problem);
        return error;
    }
    error = hb_model_apply(control->model, config, hb_now_ms(), diff);
    if (error != 0) {
        hb_api_abandon(control->api);
        on_complaint(list, false, diff->error);
        return error;
    }
    hb_api_configure(control->api, &config->api);
    control->loaded_unix = hb_now_unix();
    return 0;
}

/* After the history knows what is in use, so that the generation is noted under it. */
static void publish(struct hb_control *control, const char *what, const struct hb_model_diff *diff)
{
    hb_control_sync(control);
    hb_control_publish(control);
    hb_control_save(control);
    hb_control_save_history(control);
    hb_background_finish(control->background); /* or a file that goes could come back */
    hb_slot_files_prune(control->slots, control->model);
    hb_log(HB_LOG_NOTICE, "%s: %s: services +%u -%u ~%u, backends +%u -%u ~%u",
           control->options.config, what, diff->services_added, diff->services_removed,
           diff->services_changed, diff->backends_added, diff->backends_removed,
           diff->backends_changed);
}

int hb_control_reload(struct hb_control *control, struct hb_model_diff *diff, json_t *complaints,
                      json_t *warnings)
{
    struct complaints list = {control, complaints, warnings};
    struct hb_actor actor = hb_events_actor(control->events);
    struct hb_config *config = NULL;
    char *text = NULL;
    size_t size = 0;
    int error;

    memset(diff, 0, sizeof(*diff));
    control->last_error[0] = '\0';
    error = hb_config_read(control->options.config, &text, &size, on_complaint, &list);
    if (error == 0)
        config = hb_config_parse(text, size, control->options.config, on_complaint, &list);
    error = config ? apply(control, config, diff, &list) : -EINVAL;
    if (error != 0) {
        error = refuse(control, "reload", error);
    } else {
        control->reloads++;
        hb_events_add(control->events, HB_NEWS_RELOAD, NULL, NULL, "reload");
        hb_control_hold_history(control);
        warn_not_kept(&list, hb_history_accept(control->history, text, size, keep_of(config),
                                               hb_now_unix(), &actor, "reload"));
        publish(control, "reloaded", diff);
    }
    hb_config_free(config);
    free(text);
    return error;
}

/* A configuration that was kept, parsed; NULL with the complaints in the list. */
static struct hb_config *read_former(struct hb_control *control, uint64_t number,
                                     struct complaints *list)
{
    struct hb_config *config = NULL;
    char message[512], name[64], *text = NULL;
    size_t size = 0;
    int error = hb_history_read(control->history, number, &text, &size);

    snprintf(name, sizeof(name), "configuration %" PRIu64, number);
    if (error == 0) {
        config = hb_config_parse(text, size, name, on_complaint, list);
        free(text);
        return config;
    }
    snprintf(message, sizeof(message), "%s/%" PRIu64 ".yaml: %s; 'halbachctl history' lists others",
             control->history->folder, number,
             error == -EBADMSG ? "it is not the text that control wrote" : strerror(-error));
    on_complaint(list, false, message);
    return NULL;
}

/* The text of the configuration file, so that it is known whether it was changed later. */
static void note_rollback(struct hb_control *control, uint64_t number, struct complaints *list)
{
    struct hb_actor actor = hb_events_actor(control->events);
    char *file = NULL;
    size_t size = 0;

    /* A file that cannot be read is as good as an empty one. */
    if (hb_history_file_read(control->options.config, &file, &size) != 0)
        file = NULL;
    hb_control_hold_history(control);
    warn_not_kept(list, hb_history_roll_back(control->history, number, file ? file : "",
                                             file ? size : 0, hb_now_unix(), &actor));
    free(file);
}

int hb_control_roll_back(struct hb_control *control, uint64_t number, struct hb_model_diff *diff,
                         json_t *complaints, json_t *warnings)
{
    struct complaints list = {control, complaints, warnings};
    uint64_t from = control->history->in_use;
    struct hb_config *config;
    int error;

    memset(diff, 0, sizeof(*diff));
    control->last_error[0] = '\0';
    config = read_former(control, number, &list);
    error = config ? apply(control, config, diff, &list) : -EINVAL;
    hb_config_free(config);
    if (error != 0)
        return refuse(control, "rollback", error);
    hb_events_add(control->events, HB_NEWS_ROLLBACK, NULL, NULL,
                  "rollback from configuration %" PRIu64 " to %" PRIu64, from, number);
    note_rollback(control, number, &list);
    publish(control, "rolled back", diff);
    return 0;
}
