/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl reload */
#include <inttypes.h>

#include "api_client.h"
#include "ctl.h"
#include "json.h"

static void show_difference(const struct hb_screen *screen, const json_t *answer, const char *what)
{
    const json_t *counts = hb_json_at(answer, what);

    fprintf(screen->out, "%s: %" PRIu64 " added, %" PRIu64 " removed, %" PRIu64 " changed\n", what,
            hb_json_count(counts, "added"), hb_json_count(counts, "removed"),
            hb_json_count(counts, "changed"));
}

static void show_warnings(const struct hb_screen *screen, const json_t *answer)
{
    const json_t *warning;
    size_t i;

    json_array_foreach (hb_json_at(answer, "warnings"), i, warning) {
        hb_print(screen, HB_YELLOW, "warning: ");
        hb_print(screen, HB_PLAIN, "%s",
                 json_is_string(warning) ? json_string_value(warning) : "-");
        fputc('\n', screen->out);
    }
}

void hb_show_changes(const struct hb_screen *screen, const json_t *answer)
{
    const json_t *pool;
    size_t i;

    show_warnings(screen, answer);
    show_difference(screen, answer, "services");
    show_difference(screen, answer, "backends");
    json_array_foreach (hb_json_at(answer, "pools"), i, pool) {
        hb_print(screen, HB_PLAIN, "pool %s: %" PRIu64 " slots moved (at least %" PRIu64 " had to)",
                 hb_json_text(pool, "name"), hb_json_count(pool, "moved"),
                 hb_json_count(pool, "ideal"));
        fputc('\n', screen->out);
    }
    if (hb_json_flag(answer, "applied"))
        fprintf(screen->out, "the dataplane forwards by generation %" PRIu64 "\n",
                hb_json_count(answer, "generation"));
}

void hb_show_reload(const struct hb_screen *screen, const json_t *answer)
{
    if (hb_json_flag(answer, "changed")) {
        hb_show_changes(screen, answer);
        return;
    }
    show_warnings(screen, answer);
    fprintf(screen->out,
            "configuration %" PRIu64 " is in use; what the dataplane forwards by has not changed "
            "(generation %" PRIu64 ")\n",
            hb_json_count(answer, "configuration"), hb_json_count(answer, "generation"));
}

int hb_ctl_reload(const struct hb_ctl *ctl)
{
    struct hb_answer answer;
    bool good = hb_ctl_ask(ctl, true, "/v1/reload", &answer);

    if (good && ctl->json)
        hb_ctl_print_json(ctl, &answer);
    else if (good)
        hb_show_reload(&ctl->screen, answer.json);
    if (good && !hb_json_flag(answer.json, "applied")) {
        fprintf(ctl->err,
                "halbachctl: the configuration is accepted, but the dataplane has not taken it "
                "yet; 'halbachctl status' says why\n");
        good = false;
    }
    hb_answer_free(&answer);
    return good ? HB_EXIT_OK : HB_EXIT_FAILED;
}
