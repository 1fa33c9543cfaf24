/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash_plot.h: pictures, drawn by gnuplot.
 *
 * A picture is a function that measures and writes gnuplot's commands, data included, so the same
 * text makes a file of any kind and people can change it (--out FILE.gp). Lines differ by dashes,
 * points and brightness, not by colour alone: pictures stay readable when printed in black.
 */
#ifndef HB_CTL_HASH_PLOT_H
#define HB_CTL_HASH_PLOT_H

#include "hash_measure.h"

struct hb_plot {
    const struct hb_ctl *ctl;
    FILE *script;
    unsigned height; /* of the picture in pixels; it may ask for more */
    struct hb_hash_progress progress;
    json_t *data; /* an array, for --json: what is drawn */
};

#define HB_PLOT_KEYS 20000 /* preset of pictures that ask many times */

/* Each returns the exit status. */
int hb_plot_moves(struct hb_plot *plot);
int hb_plot_shares(struct hb_plot *plot);
int hb_plot_failures(struct hb_plot *plot);
int hb_plot_balance(struct hb_plot *plot);
int hb_plot_ring(struct hb_plot *plot);

/* Prints a text as gnuplot's, in quotes. */
void hb_plot_quote(FILE *script, const char *text);

/* "lc rgb '#0072b2' dt 2 pt 5": how line number `index` looks. */
#define HB_PLOT_STYLES 8
extern const char *const hb_plot_line_styles[HB_PLOT_STYLES];
extern const char *const hb_plot_colours[HB_PLOT_STYLES];

/* Runs gnuplot: the script on its standard input, the picture from its standard output into a new
 * file that takes the name when all went well. Returns the exit status. */
int hb_gnuplot_run(const struct hb_ctl *ctl, const char *script, size_t size, const char *file);

/* Writes a file in one step: nobody sees half of it. The same for scripts. */
int hb_plot_write(const struct hb_ctl *ctl, const char *script, size_t size, const char *file);

#endif
