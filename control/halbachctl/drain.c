/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl drain, undrain */
#include <inttypes.h>

#include "api_client.h"
#include "ctl.h"
#include "drain_wait.h"
#include "json.h"

void hb_show_drain(const struct hb_screen *screen, const json_t *answer, bool drain)
{
    const json_t *backend;
    size_t i;

    json_array_foreach (hb_json_at(answer, "backends"), i, backend) {
        uint64_t flows = hb_json_count(backend, "flows");

        hb_print(screen, HB_PLAIN, "%s (pool %s): ", hb_json_text(backend, "name"),
                 hb_json_text(backend, "pool"));
        if (!hb_json_flag(backend, "changed"))
            hb_print(screen, HB_PLAIN, drain ? "drains already" : "was not draining");
        else
            hb_print(screen, drain ? HB_YELLOW : HB_GREEN, "%s",
                     drain ? "draining" : "back in service");
        if (drain)
            fprintf(screen->out, ", %" PRIu64 " flow%s left", flows, flows == 1 ? "" : "s");
        if (hb_json_flag(backend, "changed"))
            fprintf(screen->out, "; %" PRIu64 " slots moved (at least %" PRIu64 " had to)",
                    hb_json_count(backend, "moved"), hb_json_count(backend, "ideal"));
        fputc('\n', screen->out);
    }
}

static bool make_path(const struct hb_ctl *ctl, const char *action, char *path, size_t size)
{
    char name[256], pool[256] = "";

    /* Names have 63 bytes at most, 189 when every one is escaped. */
    if (!hb_url_escape(name, sizeof(name), ctl->arguments[0]) ||
        !hb_url_escape(pool, sizeof(pool), ctl->pool ? ctl->pool : "")) {
        fprintf(ctl->err, "halbachctl: no backend or pool has such a long name\n");
        return false;
    }
    snprintf(path, size, "/v1/backends/%s/%s%s%s", name, action, ctl->pool ? "?pool=" : "", pool);
    return true;
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

static int change_backend(const struct hb_ctl *ctl, const char *action, bool drain)
{
    struct hb_answer answer = {0};
    bool good, applied;
    uint64_t flows;
    char path[640];

    if (!make_path(ctl, action, path, sizeof(path)))
        return HB_EXIT_FAILED;
    good = hb_ctl_ask(ctl, true, path, &answer);
    applied = good && hb_json_flag(answer.json, "applied");
    if (good && ctl->json)
        hb_ctl_print_json(ctl, &answer);
    else if (good)
        hb_show_drain(&ctl->screen, answer.json, drain);
    if (good && !applied)
        fprintf(ctl->err,
                "halbachctl: kept, but the dataplane has not taken it yet; it will as soon as it "
                "can be reached; 'halbachctl status' says more\n");
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
