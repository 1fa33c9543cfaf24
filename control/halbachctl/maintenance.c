/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl maintenance */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "api_client.h"
#include "ctl.h"
#include "format.h"
#include "json.h"

#define LOOK_EVERY_MS 500
#define PATIENCE_S    30 /* without an answer of control: it may be restarting */

static void show_command(const struct hb_screen *screen, const json_t *answer)
{
    const char *result = hb_json_text(answer, "command.result");

    if (!hb_json_has(answer, "command.text"))
        fprintf(screen->out, "; no command is configured for it, so tell your routers yourself");
    else
        fprintf(screen->out, "; its command: %s", result);
    if (hb_json_has(answer, "command.problem"))
        hb_print(screen, HB_RED, " (%s)", hb_json_text(answer, "command.problem"));
}

void hb_show_maintenance(const struct hb_screen *screen, const json_t *answer)
{
    bool withdrawn = strcmp(hb_json_text(answer, "state"), "withdrawn") == 0;

    hb_print(screen, withdrawn ? HB_YELLOW : HB_GREEN, "%s", hb_json_text(answer, "state"));
    show_command(screen, answer);
    if (hb_json_has(answer, "packets_per_s"))
        fprintf(screen->out, "; %.0f packets/s for VIPs", hb_json_real(answer, "packets_per_s"));
    if (hb_json_flag(answer, "safe"))
        hb_print(screen, HB_GREEN, "; safe to stop");
    fputc('\n', screen->out);
}

/* Returns the exit status, or -1 to go on; tells what has changed since the last look. */
static int judge(const struct hb_ctl *ctl, const json_t *answer, char told[HB_PATH_SIZE])
{
    FILE *to = ctl->json ? ctl->err : ctl->screen.out;
    char now[HB_PATH_SIZE];

    if (strcmp(hb_json_text(answer, "state"), "withdrawn") != 0) {
        fprintf(ctl->err, "halbachctl: somebody has taken the maintenance back\n");
        return HB_EXIT_FAILED;
    }
    if (hb_json_flag(answer, "safe")) {
        fprintf(to, "safe: fewer than %" PRIu64 " packets/s have come for VIPs for three seconds\n",
                hb_json_count(answer, "quiet"));
        return HB_EXIT_OK;
    }
    snprintf(now, sizeof(now), "waiting: %s%s, %s%.0f packets/s for VIPs",
             hb_json_has(answer, "command.text") ? "command " : "no command",
             hb_json_has(answer, "command.text") ? hb_json_text(answer, "command.result") : "",
             hb_json_has(answer, "packets_per_s") ? "" : "dataplane out of reach, ",
             hb_json_real(answer, "packets_per_s"));
    if (strcmp(now, told) != 0)
        fprintf(to, "%s\n", now);
    fflush(to);
    memcpy(told, now, sizeof(now));
    return -1;
}

static int wait_until_safe(const struct hb_ctl *ctl)
{
    const struct timespec pause = {.tv_nsec = LOOK_EVERY_MS * 1000000L};
    char told[HB_PATH_SIZE] = "";
    unsigned silent = 0;

    for (;;) {
        struct hb_answer answer;
        int result = -1;

        if (hb_api_request(ctl->socket_path, false, "/v1/maintenance", &answer) == 0) {
            silent = 0;
            result = judge(ctl, answer.json, told);
        } else if (++silent > PATIENCE_S * 1000 / LOOK_EVERY_MS) {
            hb_answer_report(&answer, ctl->err);
            result = HB_EXIT_FAILED;
        }
        hb_answer_free(&answer);
        if (result >= 0)
            return result;
        nanosleep(&pause, NULL);
    }
}

int hb_ctl_maintenance(const struct hb_ctl *ctl)
{
    const char *state = ctl->arguments_count > 0 ? ctl->arguments[0] : NULL;
    char path[HB_PATH_SIZE] = "/v1/maintenance";
    bool on = state != NULL && strcmp(state, "on") == 0;
    struct hb_answer answer;
    bool good;

    if ((state != NULL && !on && strcmp(state, "off") != 0) || (ctl->wait && !on)) {
        fprintf(ctl->err,
                "halbachctl: maintenance takes on, off or nothing; --wait goes with on\n");
        return HB_EXIT_USAGE;
    }
    hb_path_add(path, "state", state);
    good = hb_ctl_ask(ctl, state != NULL, path, &answer);
    if (good && ctl->json)
        hb_ctl_print_json(ctl, &answer);
    else if (good)
        hb_show_maintenance(&ctl->screen, answer.json);
    hb_answer_free(&answer);
    if (good && ctl->wait)
        return wait_until_safe(ctl);
    return good ? HB_EXIT_OK : HB_EXIT_FAILED;
}
