/* SPDX-License-Identifier: BSD-3-Clause */
/* hash_plot_balance.c: how evenly a ring spreads keys, by virtual nodes, beside the theory. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "hash_plot.h"
#include "hashing/ring.h"

#define PRESET "1,2,3,5,7,10,20,30,50,70,100,200,300,500,700,1000"

static int measure(struct hb_plot *plot, struct hb_hash_pool *pool, const struct hb_hash_keys *keys,
                   const uint64_t *vnodes, uint32_t count)
{
    const struct hb_hash_choice ring = {.name = "ring", .method = hb_hash_method_by_name("ring")};
    char text[HB_TABLE_EXPLANATION];
    int status = HB_EXIT_OK;
    uint32_t i;

    fprintf(plot->script, "$measured << EOD\n");
    for (i = 0; status == HB_EXIT_OK && i < count; i++) {
        struct hb_hash_result result;

        pool->virtual_nodes = (uint32_t)vnodes[i];
        status = hb_hash_measure(&plot->progress, &ring, pool, keys, &result);
        if (status == HB_EXIT_OK && (result.error != HB_TABLE_OK || result.refusal))
            status = hb_hash_refuse(plot->ctl, HB_EXIT_FAILED, "%" PRIu64 " virtual nodes: %s",
                                    vnodes[i], hb_hash_why(pool, &ring, &result, text));
        if (status == HB_EXIT_OK) {
            double percent = result.shares.sd * 100 / result.shares.mean;

            fprintf(plot->script, "%" PRIu64 " %.4f\n", vnodes[i], percent);
            json_array_append_new(
                plot->data,
                json_pack("{s:I, s:f}", "vnodes", (json_int_t)vnodes[i], "sd_percent", percent));
        }
        hb_hash_result_free(&result);
    }
    fprintf(plot->script, "EOD\n");
    return status;
}

static void write_plot(FILE *script, const struct hb_hash_pool *pool,
                       const struct hb_hash_keys *keys, uint64_t least, uint64_t most)
{
    uint32_t backends = hb_hash_pool_weighted(pool);

    fprintf(script,
            "set title 'A ring of %" PRIu32 " backends: how evenly %" PRIu32 " keys spread'\n"
            "set logscale xy\nset border 3\nset tics nomirror out\nset grid lt 1 lw 0.5 lc rgb "
            "'#cccccc'\n"
            "set xlabel 'virtual nodes of each backend'\n"
            "set ylabel 'standard deviation of shares (%% of mean)'\n"
            "set xrange [%.2f:%.2f]\nset yrange [*:%.1f]\nset format y '%%g'\n"
            "set key top right Left reverse samplen 3\n",
            backends, keys->count, (double)least / 1.3, (double)most * 1.3,
            200 / sqrt((double)least));
    fprintf(
        script,
        "theory(v) = 100 * sqrt((%" PRIu32 ".0 - 1) / (%" PRIu32 ".0 * v))\n"
        "plot theory(x) with lines lw 2 lc rgb '#0072b2' title 'theory: √((N − 1) / (N V))', \\\n"
        "  5 with lines lw 1 dt 2 lc rgb '#000000' title '5 %%: %" PRIu32 " virtual nodes', \\\n"
        "  $measured using 1:2 with points pt 7 ps 1.2*mark lc rgb '#000000' title 'measured'\n",
        backends, backends, hb_ring_nodes_for(backends, 50));
}

int hb_plot_balance(struct hb_plot *plot)
{
    const struct hb_ctl *ctl = plot->ctl;
    const char *list = ctl->hash.vnodes ? ctl->hash.vnodes : PRESET;
    struct hb_hash_keys keys = {0};
    struct hb_hash_pool pool = {0};
    uint64_t *vnodes = NULL, least = UINT64_MAX, most = 0;
    uint32_t count = 0, i;
    int status =
        hb_hash_numbers(ctl, "vnodes", list, 1, HB_RING_VIRTUAL_NODES_MAX, &vnodes, &count);

    if (status == HB_EXIT_OK)
        status = hb_hash_pool_load(ctl, 10, &pool);
    if (status == HB_EXIT_OK)
        status = hb_hash_keys_load(ctl, HB_HASH_KEYS, &keys);
    if (status == HB_EXIT_OK)
        status = measure(plot, &pool, &keys, vnodes, count);
    for (i = 0; i < count; i++) {
        least = vnodes[i] < least ? vnodes[i] : least;
        most = vnodes[i] > most ? vnodes[i] : most;
    }
    if (status == HB_EXIT_OK)
        write_plot(plot->script, &pool, &keys, least, most);
    free(vnodes);
    hb_hash_keys_free(&keys);
    hb_hash_pool_free(&pool);
    return status;
}
