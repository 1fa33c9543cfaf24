/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl doctor: what on this machine costs speed, and the remedy. Asks no daemon. */
#include "doctor.h"

#include <string.h>

#include "ctl.h"
#include "json.h"

void hb_show_doctor(const struct hb_screen *screen, const json_t *findings)
{
    static const struct hb_column columns[] = {
        {"CHECK", false, 0}, {"RESULT", false, 0}, {"WHAT", false, 0}};
    struct hb_table *table = hb_table_new(columns, 3);
    unsigned costs = 0;
    const json_t *finding;
    size_t i;

    json_array_foreach (findings, i, finding) {
        const char *level = hb_json_text(finding, "level");
        bool bad = strcmp(level, "costs") == 0;

        costs += bad;
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(finding, "check"));
        hb_table_add(table,
                     bad                        ? HB_YELLOW
                     : strcmp(level, "ok") == 0 ? HB_GREEN
                                                : HB_PLAIN,
                     "%s", bad ? "costs speed" : level);
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(finding, "text"));
    }
    hb_table_finish(table, screen);
    fprintf(screen->out, "\n");
    json_array_foreach (findings, i, finding) {
        if (*hb_json_text(finding, "remedy") == '\0' ||
            strcmp(hb_json_text(finding, "level"), "costs") != 0)
            continue;
        hb_print(screen, HB_PLAIN, "%s: %s", hb_json_text(finding, "check"),
                 hb_json_text(finding, "remedy"));
        fputc('\n', screen->out);
    }
    if (costs == 0)
        fprintf(screen->out, "nothing was found that costs speed\n");
}

int hb_ctl_doctor(const struct hb_ctl *ctl)
{
    json_t *findings = json_array();

    hb_doctor_examine("", ctl->arguments, ctl->arguments_count, findings);
    if (ctl->json) {
        json_dumpf(findings, ctl->screen.out, JSON_INDENT(2));
        fputc('\n', ctl->screen.out);
    } else {
        hb_show_doctor(&ctl->screen, findings);
    }
    json_decref(findings);
    return HB_EXIT_OK;
}
