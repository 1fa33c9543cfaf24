/* SPDX-License-Identifier: BSD-3-Clause */
#include "history_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "whole_file.h"

#define FORMAT   "halbach-history"
#define VERSION  1
#define FILE_MAX (32 << 20)

static const char *const outcome_names[HB_OUTCOMES] = {
    [HB_OUTCOME_WANTED] = "wanted",
    [HB_OUTCOME_SERVED] = "served",
    [HB_OUTCOME_REFUSED] = "refused",
};

static const char *const actor_names[] = {
    [HB_ACTOR_NONE] = "none",
    [HB_ACTOR_UNIX] = "unix",
    [HB_ACTOR_TCP] = "tcp",
    [HB_ACTOR_SIGNAL] = "signal",
};
#define ACTORS (sizeof(actor_names) / sizeof(*actor_names))

const char *hb_outcome_name(enum hb_outcome outcome)
{
    return outcome_names[outcome];
}

/* --- writing --- */

json_t *hb_actor_json(const struct hb_actor *actor)
{
    if (actor->by == HB_ACTOR_NONE)
        return json_null();
    if (actor->by != HB_ACTOR_UNIX)
        return json_pack("{s:s, s:n, s:n}", "by", actor_names[actor->by], "uid", "pid");
    return json_pack("{s:s, s:I, s:I}", "by", actor_names[actor->by], "uid", (json_int_t)actor->uid,
                     "pid", (json_int_t)actor->pid);
}

static json_t *generation_to_json(const struct hb_past_generation *generation)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:o, s:s}", "number",
                     (json_int_t)generation->number, "first", (json_int_t)generation->first, "unix",
                     (json_int_t)generation->unix_s, "first_unix",
                     (json_int_t)generation->first_unix_s, "configuration",
                     (json_int_t)generation->configuration, "moved", (json_int_t)generation->moved,
                     "outcome", outcome_names[generation->outcome], "actor",
                     hb_actor_json(&generation->actor), "cause", generation->cause);
}

static json_t *action_to_json(const struct hb_past_action *action)
{
    return json_pack("{s:I, s:I, s:o, s:s}", "unix", (json_int_t)action->unix_s, "generation",
                     (json_int_t)action->generation, "actor", hb_actor_json(&action->actor),
                     "action", action->text);
}

static json_t *configuration_to_json(const struct hb_past_configuration *configuration)
{
    return json_pack("{s:I, s:I, s:I, s:s, s:o, s:s}", "number", (json_int_t)configuration->number,
                     "unix", (json_int_t)configuration->unix_s, "size",
                     (json_int_t)configuration->size, "digest", configuration->digest, "actor",
                     hb_actor_json(&configuration->actor), "cause", configuration->cause);
}

static json_t *rollback_to_json(const struct hb_history *history)
{
    if (!history->rolled_back)
        return json_null();
    return json_pack("{s:I, s:o, s:s}", "unix", (json_int_t)history->rolled_back_unix, "actor",
                     hb_actor_json(&history->rolled_back_by), "left_file", history->left_file);
}

int hb_history_save(struct hb_history *history)
{
    json_t *generations = json_array(), *configurations = json_array(), *actions = json_array();
    json_t *root;
    char *text = NULL;
    int error = -ENOMEM;

    for (uint32_t g = 0; g < history->generations_count; g++)
        json_array_append_new(generations, generation_to_json(&history->generations[g]));
    for (uint32_t c = 0; c < history->configurations_count; c++)
        json_array_append_new(configurations, configuration_to_json(&history->configurations[c]));
    for (uint32_t a = 0; a < history->actions_count; a++)
        json_array_append_new(actions, action_to_json(&history->actions[a]));
    root =
        json_pack("{s:s, s:i, s:I, s:o, s:o, s:o, s:o}", "format", FORMAT, "version", VERSION,
                  "in_use", (json_int_t)history->in_use, "rollback", rollback_to_json(history),
                  "configurations", configurations, "generations", generations, "actions", actions);
    /* Short of memory the arrays are short too: nothing incomplete may replace a whole file. */
    if (root != NULL && json_array_size(generations) == history->generations_count &&
        json_array_size(configurations) == history->configurations_count &&
        json_array_size(actions) == history->actions_count)
        text = json_dumps(root, JSON_INDENT(1));
    json_decref(root);
    if (text != NULL)
        error = hb_whole_file_replace(history->path, text, strlen(text));
    free(text);
    if (error == 0)
        history->changed = false;
    return error;
}

/* --- reading --- */

int hb_history_file_read(const char *path, char **text, size_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error = 0;
    struct stat status;
    ssize_t got = 0;

    *text = NULL;
    *size = 0;
    if (fd < 0)
        return -errno;
    if (fstat(fd, &status) != 0)
        error = -errno;
    else if (!S_ISREG(status.st_mode) || status.st_size > FILE_MAX)
        error = -EBADMSG;
    else if ((*text = malloc((size_t)status.st_size + 1)) == NULL)
        error = -ENOMEM;
    while (error == 0 && *size < (size_t)status.st_size) {
        got = read(fd, *text + *size, (size_t)status.st_size - *size);
        if (got <= 0)
            error = got < 0 ? -errno : -EBADMSG;
        else
            *size += (size_t)got;
    }
    close(fd);
    if (error == 0)
        (*text)[*size] = '\0';
    else
        free(*text);
    return error;
}

static bool read_number(const json_t *object, const char *name, uint64_t *number)
{
    const json_t *value = json_object_get(object, name);

    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *number = (uint64_t)json_integer_value(value);
    return true;
}

/* A member that earlier versions did not write. */
static bool read_new_number(const json_t *object, const char *name, uint64_t before,
                            uint64_t *number)
{
    *number = before;
    return json_object_get(object, name) == NULL || read_number(object, name, number);
}

static bool read_text(const json_t *object, const char *name, char *text, size_t size)
{
    const char *value = json_string_value(json_object_get(object, name));

    return value != NULL && (size_t)snprintf(text, size, "%s", value) < size;
}

static bool read_actor(const json_t *object, struct hb_actor *actor)
{
    const json_t *value = json_object_get(object, "actor");
    const char *by = json_string_value(json_object_get(value, "by"));
    uint64_t uid = 0, pid = 0;
    unsigned a = 0;

    *actor = (struct hb_actor){.by = HB_ACTOR_NONE};
    if (json_is_null(value))
        return true;
    while (by != NULL && a < ACTORS && strcmp(by, actor_names[a]) != 0)
        a++;
    if (by == NULL || a == ACTORS)
        return false;
    actor->by = a;
    if (a == HB_ACTOR_UNIX && (!read_number(value, "uid", &uid) || uid > UINT32_MAX ||
                               !read_number(value, "pid", &pid) || pid > INT32_MAX))
        return false;
    actor->uid = (uint32_t)uid;
    actor->pid = (int32_t)pid;
    return true;
}

static bool read_generation(const json_t *object, struct hb_past_generation *generation)
{
    const char *outcome = json_string_value(json_object_get(object, "outcome"));
    unsigned o = 0;

    while (outcome != NULL && o < HB_OUTCOMES && strcmp(outcome, outcome_names[o]) != 0)
        o++;
    generation->outcome = o;
    return outcome != NULL && o < HB_OUTCOMES &&
           read_number(object, "number", &generation->number) &&
           read_number(object, "unix", &generation->unix_s) &&
           read_new_number(object, "first", generation->number, &generation->first) &&
           read_new_number(object, "first_unix", generation->unix_s, &generation->first_unix_s) &&
           generation->first <= generation->number &&
           read_number(object, "configuration", &generation->configuration) &&
           read_number(object, "moved", &generation->moved) &&
           read_actor(object, &generation->actor) &&
           read_text(object, "cause", generation->cause, sizeof(generation->cause));
}

static bool read_action(const json_t *object, struct hb_past_action *action)
{
    return read_number(object, "unix", &action->unix_s) &&
           read_number(object, "generation", &action->generation) &&
           read_actor(object, &action->actor) &&
           read_text(object, "action", action->text, sizeof(action->text));
}

static bool read_configuration(const json_t *object, struct hb_past_configuration *configuration)
{
    return read_number(object, "number", &configuration->number) && configuration->number > 0 &&
           read_number(object, "unix", &configuration->unix_s) &&
           read_number(object, "size", &configuration->size) &&
           read_actor(object, &configuration->actor) &&
           read_text(object, "digest", configuration->digest, sizeof(configuration->digest)) &&
           read_text(object, "cause", configuration->cause, sizeof(configuration->cause));
}

static bool read_rollback(const json_t *root, struct hb_history *history)
{
    const json_t *object = json_object_get(root, "rollback");

    history->rolled_back = json_is_object(object);
    return json_is_null(object) ||
           (history->rolled_back && read_number(object, "unix", &history->rolled_back_unix) &&
            read_actor(object, &history->rolled_back_by) &&
            read_text(object, "left_file", history->left_file, sizeof(history->left_file)));
}

/* Returns what is wrong with it, or NULL. */
static const char *read_index(const json_t *root, struct hb_history *history)
{
    const json_t *generations = json_object_get(root, "generations");
    const json_t *configurations = json_object_get(root, "configurations");
    const json_t *actions = json_object_get(root, "actions"); /* earlier versions had none */
    const char *format = json_string_value(json_object_get(root, "format"));
    uint64_t version;

    if (format == NULL || strcmp(format, FORMAT) != 0)
        return "it is not a history of halbach-control";
    if (!read_number(root, "version", &version) || version != VERSION)
        return "it is of another version";
    if (!read_number(root, "in_use", &history->in_use) || !read_rollback(root, history) ||
        !json_is_array(generations) || !json_is_array(configurations) ||
        json_array_size(generations) > HB_HISTORY_GENERATIONS ||
        (actions != NULL && !json_is_array(actions)) ||
        json_array_size(configurations) > HB_CONFIGURATIONS_MAX ||
        json_array_size(actions) > HB_HISTORY_ACTIONS)
        return "a member is missing or of the wrong type";
    for (size_t g = 0; g < json_array_size(generations); g++) {
        if (!read_generation(json_array_get(generations, g),
                             &history->generations[history->generations_count++]))
            return "a generation's entry is damaged";
    }
    for (size_t c = 0; c < json_array_size(configurations); c++) {
        if (!read_configuration(json_array_get(configurations, c),
                                &history->configurations[history->configurations_count++]))
            return "a configuration's entry is damaged";
    }
    for (size_t a = 0; a < json_array_size(actions); a++) {
        if (!read_action(json_array_get(actions, a), &history->actions[history->actions_count++]))
            return "an action's entry is damaged";
    }
    return NULL;
}

static void forget(struct hb_history *history)
{
    char *path = history->path, *folder = history->folder;

    memset(history, 0, sizeof(*history));
    history->path = path;
    history->folder = folder;
}

void hb_history_file_load(struct hb_history *history)
{
    const char *wrong;
    char *text;
    json_t *root;
    size_t size;
    int error = hb_history_file_read(history->path, &text, &size);

    if (error == -ENOENT)
        return;
    if (error != 0) {
        hb_log(HB_LOG_WARNING,
               "%s: cannot be read: %s; control starts without a history, and there is nothing to "
               "roll back to; check its owner and mode",
               history->path, strerror(-error));
        return;
    }
    root = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    free(text);
    wrong = root ? read_index(root, history) : "it is torn or not JSON";
    json_decref(root);
    if (wrong == NULL)
        return;
    forget(history);
    hb_whole_file_set_aside(
        history->path, wrong,
        "control starts without a history, so there is nothing to roll back to");
}
