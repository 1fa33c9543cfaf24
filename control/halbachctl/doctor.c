/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl doctor: what on this machine costs speed, and the remedy. Asks no daemon. */
#include "doctor.h"

#include <string.h>

#include "ctl.h"
#include "json.h"

static unsigned count(const json_t *findings, const char *level)
{
    const json_t *finding;
    unsigned found = 0;
    size_t i;

    json_array_foreach (findings, i, finding)
        found += strcmp(hb_json_text(finding, "level"), level) == 0;
    return found;
}

void hb_show_doctor(const struct hb_screen *screen, const json_t *findings)
{
    static const struct hb_column columns[] = {
        {"CHECK", false, 0}, {"RESULT", false, 0}, {"WHAT", false, 0}};
    struct hb_table *table = hb_table_new(columns, 3);
    const json_t *finding;
    size_t i;

    json_array_foreach (findings, i, finding) {
        const char *level = hb_json_text(finding, "level");
        bool bad = strcmp(level, "costs") == 0;

        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(finding, "check"));
        hb_table_add(table,
                     bad                             ? HB_YELLOW
                     : strcmp(level, "ok") == 0      ? HB_GREEN
                     : strcmp(level, "missing") == 0 ? HB_RED
                                                     : HB_PLAIN,
                     "%s", bad ? "costs speed" : level);
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(finding, "text"));
    }
    hb_table_finish(table, screen);
    fprintf(screen->out, "\n");
    json_array_foreach (findings, i, finding) {
        const char *level = hb_json_text(finding, "level");

        if (strcmp(level, "costs") != 0 && strcmp(level, "missing") != 0)
            continue;
        hb_print(screen, HB_PLAIN, "%s: %s", hb_json_text(finding, "check"),
                 hb_json_text(finding, "remedy"));
        fputc('\n', screen->out);
    }
    if (count(findings, "costs") + count(findings, "missing") == 0)
        fprintf(screen->out, "nothing was found that costs speed\n");
}

int hb_ctl_doctor(const struct hb_ctl *ctl)
{
    json_t *findings = json_array();
    bool missing;

    hb_doctor_examine("", ctl->arguments, ctl->arguments_count, findings);
    if (ctl->json) {
        json_dumpf(findings, ctl->screen.out, JSON_INDENT(2));
        fputc('\n', ctl->screen.out);
    } else {
        hb_show_doctor(&ctl->screen, findings);
    }
    missing = count(findings, "missing") > 0;
    json_decref(findings);
    return missing ? HB_EXIT_FAILED : HB_EXIT_OK;
}
