/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl.h"

#include <string.h>
#include <unistd.h>

#include "api_client.h"

bool hb_ctl_ask(const struct hb_ctl *ctl, bool post, const char *path, struct hb_answer *answer)
{
    if (hb_api_request(ctl->socket_path, post, path, answer) == 0)
        return true;
    hb_answer_report(answer, ctl->err);
    return false;
}

/* Nobody but a person at a terminal can answer. */
static bool ask_person(const struct hb_ctl *ctl, const char *problem)
{
    char line[16];

    if (!ctl->err_is_terminal || isatty(STDIN_FILENO) != 1)
        return false;
    fprintf(ctl->err, "%s\nDo it all the same? [y/N] ", problem);
    fflush(ctl->err);
    return fgets(line, sizeof(line), stdin) != NULL && (line[0] == 'y' || line[0] == 'Y');
}

bool hb_ctl_change(const struct hb_ctl *ctl, const char *path, struct hb_answer *answer)
{
    char forced[HB_PATH_SIZE];

    if (hb_api_request(ctl->socket_path, true, path, answer) == 0)
        return true;
    if (answer->status == 409 && !ctl->force && ask_person(ctl, answer->error)) {
        hb_answer_free(answer);
        snprintf(forced, sizeof(forced), "%s", path);
        hb_path_add(forced, "force", "1");
        if (hb_api_request(ctl->socket_path, true, forced, answer) == 0)
            return true;
    }
    hb_answer_report(answer, ctl->err);
    return false;
}

bool hb_path_add(char path[HB_PATH_SIZE], const char *name, const char *value)
{
    size_t size = strlen(path);
    char escaped[256];

    if (value == NULL)
        return true;
    if (!hb_url_escape(escaped, sizeof(escaped), value))
        return false;
    return snprintf(path + size, HB_PATH_SIZE - size, "%c%s=%s", strchr(path, '?') ? '&' : '?',
                    name, escaped) < (int)(HB_PATH_SIZE - size);
}

bool hb_ctl_backend_path(const struct hb_ctl *ctl, const char *action, char path[HB_PATH_SIZE])
{
    char name[256];

    /* Names have 63 bytes at most, 189 when every one is escaped. */
    if (hb_url_escape(name, sizeof(name), ctl->arguments[0])) {
        snprintf(path, HB_PATH_SIZE, "/v1/backends/%s/%s", name, action);
        if (hb_path_add(path, "pool", ctl->pool) &&
            hb_path_add(path, "force", ctl->force ? "1" : NULL))
            return true;
    }
    fprintf(ctl->err, "halbachctl: no backend or pool has such a long name\n");
    return false;
}

void hb_ctl_tell_not_applied(const struct hb_ctl *ctl)
{
    fprintf(ctl->err,
            "halbachctl: kept, but the dataplane has not taken it yet; it will as soon as "
            "it can be reached; 'halbachctl status' says more\n");
}

void hb_ctl_print_json(const struct hb_ctl *ctl, const struct hb_answer *answer)
{
    size_t size = answer->size;

    while (size > 0 && (answer->body[size - 1] == '\n' || answer->body[size - 1] == '\r'))
        size--;
    fprintf(ctl->screen.out, "%.*s\n", (int)size, answer->body);
}
