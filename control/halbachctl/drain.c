/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl drain, undrain */
#include <inttypes.h>
#include <string.h>

#include "api_client.h"
#include "ctl.h"
#include "drain_wait.h"
#include "format.h"
#include "json.h"

/* The deadline has passed, and what was left did not stay: another deadline changes nothing. */
static bool is_over(const json_t *backend)
{
    return hb_json_flag(backend, "drain.drained") && hb_json_has(backend, "drain.deadline_s") &&
           hb_json_count(backend, "drain.deadline_s") == 0 &&
           strcmp(hb_json_text(backend, "drain.at_deadline"), "keep") != 0;
}

static void show_duty(const struct hb_screen *screen, const json_t *backend, bool drain)
{
    if (hb_json_flag(backend, "changed"))
        hb_print(screen, drain ? HB_YELLOW : HB_GREEN, drain ? "draining" : "back in service");
    else if (!drain)
        hb_print(screen, HB_PLAIN, "was not draining");
    else if (is_over(backend))
        hb_print(screen, HB_PLAIN, "drained already, its deadline has passed; 'undrain' ends that");
    else
        hb_print(screen, HB_PLAIN, "drains already");
}

void hb_show_drain(const struct hb_screen *screen, const json_t *answer, bool drain)
{
    const json_t *backend;
    size_t i;

    json_array_foreach (hb_json_at(answer, "backends"), i, backend) {
        uint64_t flows = hb_json_count(backend, "flows");
        struct hb_text text;

        hb_print(screen, HB_PLAIN, "%s (pool %s): ", hb_json_text(backend, "name"),
                 hb_json_text(backend, "pool"));
        show_duty(screen, backend, drain);
        if (drain && !is_over(backend))
            fprintf(screen->out, ", %" PRIu64 " flow%s left", flows, hb_plural(flows));
        if (drain && !is_over(backend) && hb_json_has(backend, "drain.deadline_s"))
            fprintf(screen->out, ", deadline in %s (%s)",
                    hb_format_duration(&text, hb_json_count(backend, "drain.deadline_s")),
                    hb_json_text(backend, "drain.at_deadline"));
        if (hb_json_flag(backend, "changed"))
            fprintf(screen->out, "; %" PRIu64 " slots moved (at least %" PRIu64 " had to)",
                    hb_json_count(backend, "moved"), hb_json_count(backend, "ideal"));
        fputc('\n', screen->out);
    }
}

static uint64_t sum_flows(const json_t *answer)
{
    const json_t *backend;
    uint64_t flows = 0;
    size_t i;

    json_array_foreach (hb_json_at(answer, "backends"), i, backend) {
        flows += hb_json_count(backend, "flows");
    }
    return flows;
}

/* Adds what is specific to a drain. */
static bool add_order(const struct hb_ctl *ctl, char path[HB_PATH_SIZE])
{
    if (hb_path_add(path, "deadline", ctl->deadline) &&
        hb_path_add(path, "at_deadline", ctl->at_deadline))
        return true;
    fprintf(ctl->err, "halbachctl: --deadline takes a time such as 10m, and --at-deadline keep, "
                      "reassign or reset\n");
    return false;
}

static int change_backend(const struct hb_ctl *ctl, const char *action, bool drain)
{
    struct hb_answer answer = {0};
    char path[HB_PATH_SIZE];
    bool good, applied;
    uint64_t flows;

    if (!hb_ctl_backend_path(ctl, action, path) || (drain && !add_order(ctl, path)))
        return HB_EXIT_FAILED;
    good = hb_ctl_change(ctl, path, &answer);
    applied = good && hb_json_flag(answer.json, "applied");
    if (good && ctl->json)
        hb_ctl_print_json(ctl, &answer);
    else if (good)
        hb_show_drain(&ctl->screen, answer.json, drain);
    if (good && !applied)
        hb_ctl_tell_not_applied(ctl);
    flows = sum_flows(answer.json);
    hb_answer_free(&answer);

    if (good && drain && ctl->wait)
        return hb_drain_wait(ctl, ctl->arguments[0], flows);
    return applied ? HB_EXIT_OK : HB_EXIT_FAILED;
}

int hb_ctl_drain(const struct hb_ctl *ctl)
{
    return change_backend(ctl, "drain", true);
}

int hb_ctl_undrain(const struct hb_ctl *ctl)
{
    return change_backend(ctl, "undrain", false);
}
