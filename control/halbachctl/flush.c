/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl flush */
#include <inttypes.h>

#include "api_client.h"
#include "ctl.h"
#include "format.h"
#include "json.h"

void hb_show_flush(const struct hb_screen *screen, const json_t *answer)
{
    uint64_t flushed = hb_json_count(answer, "workers_flushed");
    uint64_t workers = hb_json_count(answer, "workers");

    fprintf(screen->out, "%" PRIu64 " entries forgotten", hb_json_count(answer, "flows"));
    if (flushed < workers)
        hb_print(screen, HB_YELLOW,
                 "; %" PRIu64 " of %" PRIu64 " workers have not answered yet, and will do it",
                 workers - flushed, workers);
    fputc('\n', screen->out);
}

int hb_ctl_flush(const struct hb_ctl *ctl)
{
    char path[HB_PATH_SIZE] = "/v1/flush";
    struct hb_answer answer;
    bool good;

    hb_path_add(path, "force", ctl->force ? "1" : NULL);
    good = hb_ctl_change(ctl, path, &answer);
    if (good && ctl->json)
        hb_ctl_print_json(ctl, &answer);
    else if (good)
        hb_show_flush(&ctl->screen, answer.json);
    hb_answer_free(&answer);
    return good ? HB_EXIT_OK : HB_EXIT_FAILED;
}
