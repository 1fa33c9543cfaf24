/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl drops */
#include <inttypes.h>

#include "api_client.h"
#include "ctl.h"
#include "format.h"
#include "json.h"

void hb_show_drops(const struct hb_screen *screen, const json_t *answer, bool all)
{
    static const struct hb_column columns[] = {
        {"REASON", false, 0}, {"PACKETS", true, 0}, {"MEANING", false, 20 | HB_FOLD}};
    const json_t *drop;
    struct hb_table *table;
    struct hb_text text;
    size_t i;

    if (!all && hb_json_count(answer, "total") == 0) {
        fprintf(screen->out, "nothing was dropped since the start of the dataplane\n");
        return;
    }
    table = hb_table_new(columns, 3);
    json_array_foreach (hb_json_at(answer, "drops"), i, drop) {
        uint64_t packets = hb_json_count(drop, "packets");

        if (packets == 0 && !all)
            continue;
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(drop, "reason"));
        hb_table_add(table, packets > 0 ? HB_YELLOW : HB_PLAIN, "%s",
                     hb_format_count(&text, packets));
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(drop, "text"));
    }
    hb_table_add(table, HB_BOLD, "total");
    hb_table_add(table, HB_BOLD, "%s", hb_format_count(&text, hb_json_count(answer, "total")));
    hb_table_add(table, HB_PLAIN, "since the start of the dataplane");
    hb_table_finish(table, screen);
}

int hb_ctl_drops(const struct hb_ctl *ctl)
{
    struct hb_answer answer;
    bool good = hb_ctl_ask(ctl, false, "/v1/drops", &answer);

    if (good && ctl->json)
        hb_ctl_print_json(ctl, &answer);
    else if (good)
        hb_show_drops(&ctl->screen, answer.json, ctl->all);
    hb_answer_free(&answer);
    return good ? HB_EXIT_OK : HB_EXIT_FAILED;
}
