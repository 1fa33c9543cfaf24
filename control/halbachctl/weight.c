/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl weight */
#include <inttypes.h>

#include "api_client.h"
#include "ctl.h"
#include "json.h"

void hb_show_weight(const struct hb_screen *screen, const json_t *answer)
{
    const json_t *backend;
    size_t i;

    json_array_foreach (hb_json_at(answer, "backends"), i, backend) {
        bool changed = hb_json_flag(backend, "changed");

        hb_print(screen, HB_PLAIN, "%s (pool %s): ", hb_json_text(backend, "name"),
                 hb_json_text(backend, "pool"));
        fprintf(screen->out, "weight %" PRIu64, hb_json_count(backend, "weight"));
        if (changed)
            fprintf(screen->out, "; %" PRIu64 " slots moved (at least %" PRIu64 " had to)",
                    hb_json_count(backend, "moved"), hb_json_count(backend, "ideal"));
        else
            fprintf(screen->out, " already");
        fputc('\n', screen->out);
    }
}

int hb_ctl_weight(const struct hb_ctl *ctl)
{
    const char *weight = ctl->arguments_count > 1 ? ctl->arguments[1] : NULL;
    struct hb_answer answer = {0};
    char path[HB_PATH_SIZE];
    bool good, applied;

    if ((weight != NULL) == ctl->reset) {
        fprintf(ctl->err, "halbachctl: weight takes a number, as in 'halbachctl weight web3 5', or "
                          "--reset\n");
        return HB_EXIT_USAGE;
    }
    if (!hb_ctl_backend_path(ctl, "weight", path) || !hb_path_add(path, "weight", weight) ||
        !hb_path_add(path, "reset", ctl->reset ? "1" : NULL))
        return HB_EXIT_FAILED;
    good = hb_ctl_change(ctl, path, &answer);
    applied = good && hb_json_flag(answer.json, "applied");
    if (good && ctl->json)
        hb_ctl_print_json(ctl, &answer);
    else if (good)
        hb_show_weight(&ctl->screen, answer.json);
    if (good && !applied)
        hb_ctl_tell_not_applied(ctl);
    hb_answer_free(&answer);
    return applied ? HB_EXIT_OK : HB_EXIT_FAILED;
}
