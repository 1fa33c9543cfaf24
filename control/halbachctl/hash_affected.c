/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl hash affected: what changes hands when a backend joins or leaves a ring. */
#include <inttypes.h>

#include "hash_small_ring.h"
#include "json.h"

void hb_show_hash_affected(const struct hb_screen *screen, const json_t *document)
{
    static const struct hb_column columns[] = {
        {"FROM", false, 0}, {"TO", false, 0}, {"INTERVALS", true, 0}, {"SHARE", true, 0}};
    const json_t *row;
    struct hb_table *table;
    size_t i;

    hb_hash_show_handovers(screen, document);
    if (json_array_size(hb_json_at(document, "pairs")) ==
        json_array_size(hb_json_at(document, "handovers")))
        return;
    table = hb_table_new(columns, 4);
    fputc('\n', screen->out);
    json_array_foreach (hb_json_at(document, "pairs"), i, row) {
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(row, "from"));
        hb_table_add(table, HB_PLAIN, "%s", hb_json_text(row, "to"));
        hb_table_add(table, HB_PLAIN, "%" PRIu64, hb_json_count(row, "intervals"));
        hb_table_add(table, HB_PLAIN, "%.3g %%", hb_json_real(row, "share") * 100);
    }
    hb_table_finish(table, screen);
}

/* Who gives how much to whom, in the order of their first interval. */
static json_t *sum_pairs(const struct hb_hash_rings *rings)
{
    json_t *pairs = json_array(), *by_name = json_object();
    uint32_t i;

    for (i = 0; i < rings->handovers_count; i++) {
        const struct hb_hash_handover *handover = &rings->handovers[i];
        char key[2 * HB_NAME_SIZE + 2];
        json_t *pair;

        snprintf(key, sizeof(key), "%s\n%s", handover->from, handover->to);
        pair = json_object_get(by_name, key);
        if (!pair) {
            pair = json_pack("{s:s, s:s, s:I, s:f}", "from", handover->from, "to", handover->to,
                             "intervals", (json_int_t)0, "share", 0.0);
            json_object_set(by_name, key, pair);
            json_array_append_new(pairs, pair);
        }
        json_object_set_new(pair, "intervals",
                            json_integer((json_int_t)hb_json_count(pair, "intervals") + 1));
        json_object_set_new(pair, "share",
                            json_real(hb_json_real(pair, "share") +
                                      (double)handover->size / (double)rings->before->space));
    }
    json_decref(by_name);
    return pairs;
}

int hb_ctl_hash_affected(const struct hb_ctl *ctl)
{
    struct hb_hash_rings rings = {0};
    json_t *document;
    int status;

    if (!ctl->hash.join && !ctl->hash.leave)
        return hb_hash_refuse(ctl, HB_EXIT_USAGE,
                              "hash affected needs who joins or leaves: --join NAME@TOKEN, --join "
                              "NAME or --leave NAME");
    status = hb_hash_rings_load(ctl, 10, HB_RING_VIRTUAL_NODES, &rings);
    if (status == HB_EXIT_OK) {
        document = json_pack("{s:I, s:I, s:f, s:o, s:o}", "space", (json_int_t)rings.before->space,
                             "moved", (json_int_t)rings.moved, "moved_share",
                             (double)rings.moved / (double)rings.before->space, "handovers",
                             hb_hash_handovers_json(&rings), "pairs", sum_pairs(&rings));
        if (ctl->json) {
            hb_hash_print_json(ctl, document);
        } else {
            hb_show_hash_affected(&ctl->screen, document);
            json_decref(document);
        }
    }
    hb_hash_rings_free(&rings);
    return status;
}
